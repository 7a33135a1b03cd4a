"""What a controller that stands by can say: all that is in the log, as far as it has followed it.

It is asked by people who want to look while there is no primary, never by daemons: whoever plans must see its own last decision (F28).
"""

from collections.abc import Callable
from itertools import islice
from typing import Final, TypeVar

from xce.adapters.clock import SystemClock
from xce.adapters.controller.views import Views
from xce.adapters.store.follower import Follower
from xce.domain.events.recorded import Head, Recorded
from xce.domain.ports import EventLog

T = TypeVar("T")

#: Header of a caller who takes an answer that may be behind, and of such an answer.
STANDBY_HEADER: Final = "x-xce-standby"
#: What a caller says in it.
ALLOW: Final = "allow"
#: Header of an answer of a standby: it has read the log up to there.
POSITION_HEADER: Final = "x-xce-position"
#: Header of an answer of a standby: where the primary is.
PRIMARY_HEADER: Final = "x-xce-primary"

_CLOCK: Final = SystemClock()


class StandbyReads:
    """Reads the views of a follower that another thread brings forward."""

    def __init__(self, log: EventLog, follower: Follower) -> None:
        self.log = log
        self._follower = follower

    @property
    def head(self) -> Head:
        """Of the last event that is folded."""
        with self._follower.still() as head:
            return head

    def read(self, question: Callable[[Views], T]) -> T:
        """Return what ``question`` makes of the views; what only the primary knows is unknown."""
        with self._follower.still():
            return question(Views(self._follower.projections, _CLOCK.now(), {}, {}, None))

    def events_after(self, position: int, limit: int) -> list[Recorded]:
        """Return the next events behind a position, up to the last that is folded.

        Raises:
            BrokenLogError: the log cannot be read.
        """
        return list(islice(self.log.read(position, self.head.position), limit))
