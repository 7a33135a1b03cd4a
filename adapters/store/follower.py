"""Projections that follow a log: what others append is folded from the store, what this process appends from what the append returned.

Nothing is skipped: an append that does not begin right behind the position reached makes the follower read what is between. That happens when another
process wrote, or when an append of this process was saved although its answer was lost.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from threading import RLock
from typing import Final

from xce.adapters import collector
from xce.domain.errors import BrokenLogError, TransientError, XceError
from xce.domain.events.digest import GENESIS
from xce.domain.events.recorded import Head, Recorded
from xce.domain.ports import EventLog
from xce.projections.all import Projections

#: Events folded at once; a read that fails between two pages leaves whole pages.
PAGE_EVENTS: Final = 1000


class Follower:
    """The projections of one log, at one position of it. One thread folds; others may read what is ``still``."""

    def __init__(
        self, log: EventLog, projections: Projections | None = None, head: Head | None = None
    ) -> None:
        """Start where ``projections`` stand.

        Args:
            log: to follow.
            projections: None: nothing is folded yet.
            head: position and digest of the last event that they hold; None: the log's beginning.
        """
        self._log = log
        self.projections = projections or Projections()
        #: Of the last event that is folded.
        self.head = head or Head(0, GENESIS)
        assert self.projections.position == self.head.position, "the projections stand elsewhere"
        self._lock = RLock()

    @property
    def position(self) -> int:
        """Of the last event that is folded."""
        return self.head.position

    @contextmanager
    def still(self) -> Generator[Head]:
        """Let nothing be folded meanwhile, so that another thread may read; what it does must be quick."""
        with self._lock:
            yield self.head

    def catch_up(self) -> int:
        """Fold all that is in the log and return how many events that were.

        Raises:
            TransientError: the log cannot be read now; what was folded stays, and the call may be repeated.
            BrokenLogError: an event cannot be read; all before it is folded.
        """
        before = self.position
        self._follow(None)
        return self.position - before

    def appended(self, recorded: Sequence[Recorded]) -> None:
        """Fold what an append of this process returned, and before it what the log has between.

        Raises:
            TransientError, BrokenLogError: as ``catch_up``, which may then be called in place of this.
        """
        behind = [one for one in recorded if one.position > self.position]
        if not behind:
            return
        if behind[0].position > self.position + 1:
            self._follow(behind[0].position - 1)
        self._fold(behind)

    def at_least(self, position: int) -> Projections:
        """Return the projections with an event of the log in them: whoever plans must see its own last decision (F28).

        Raises:
            TransientError: the log does not have the position (yet).
            BrokenLogError: an event up to there cannot be read.
        """
        if self.position < position:
            self.catch_up()
        if self.position < position:
            raise TransientError(
                f"position {position} cannot be read yet: the log ends at {self.position}"
            )
        return self.projections

    def _follow(self, upto: int | None) -> None:
        events = self._log.read(self.position, upto)
        with collector.paused():
            while True:
                page, error = _page(events)
                self._fold(page)
                if error is not None:
                    raise error
                if not page:
                    return

    def _fold(self, page: list[Recorded]) -> None:
        if page:
            with self._lock:
                self.projections.apply(page)
                self.head = Head(page[-1].position, page[-1].digest)


def _page(events: Iterator[Recorded]) -> tuple[list[Recorded], XceError | None]:
    """Return the next events, and what stopped the reading."""
    page: list[Recorded] = []
    try:
        page.extend(islice(events, PAGE_EVENTS))  # what came before an error stays
    except (BrokenLogError, TransientError) as error:
        return page, error
    return page, None
