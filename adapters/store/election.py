"""The election of a primary, as a state machine that is stepped: stand by, take over, serve, and know when it is over.

Durations come from a monotonic clock of this process, and only differences of it are used; no two clocks are ever compared. Whoever stands by
looks at the count at the seat: has it stood still for the detection time, the primary is gone, whatever it thinks itself.
"""

import time
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from xce.adapters.store.seat import Seat, Sign
from xce.domain.errors import TransientError

#: A primary that shows no sign of life for so long is gone.
DETECTION_S: Final = 3.0
#: So many looks, or signs, within the detection time.
STEPS: Final = 10


class Role(StrEnum):
    """What this process is for its log."""

    STANDBY = "standby"
    PRIMARY = "primary"
    #: Was the primary and is not any more: it stops, and begins again as a standby.
    LOST = "lost"


class Election:
    """One candidate. Call ``step`` every ``step_s`` seconds; not from several threads at once."""

    def __init__(
        self,
        seat: Seat,
        take: Callable[[], int],
        *,
        name: str,
        url: str = "",
        detection_s: float = DETECTION_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Stand by.

        Args:
            seat: of the log, for this process.
            take: makes this process the primary and returns its epoch; called with the seat's lock held. An error of it leaves this a standby.
            name: of this controller, for people.
            url: where it serves, for those who ask who the primary is.
            detection_s: seconds after which a primary without a sign of life is gone.
            monotonic: clock in seconds that never goes back.
        """
        self._seat = seat
        self._take = take
        self._name = name
        self._url = url
        self._detection_s = detection_s
        self._monotonic = monotonic
        self.step_s = detection_s / STEPS
        self.role = Role.STANDBY
        #: Of this primary; 0: it never was one.
        self.epoch = 0
        #: Who had the seat before this primary and did not leave it; None: whoever it was has ended by itself.
        self.before: Sign | None = None
        #: Who sits there, as last seen; None: nobody.
        self.primary: Sign | None = None
        self._seen_at_s = monotonic()
        #: When the last sign of mine that arrived was sent.
        self._sent_at_s = 0.0

    @property
    def leads(self) -> bool:
        """Whether this is the primary, by its own clock: counted from when the last sign that arrived was sent.

        While it is false nothing is promised: another may serve already. It becomes true again where the store was away and nobody else was faster.
        """
        return self.role is Role.PRIMARY and self._monotonic() - self._sent_at_s < self._detection_s

    def step(self) -> Role:
        """Look, or show a sign of life; return what this process is now.

        Raises:
            TransientError: the store cannot be reached, or the old primary has not ended yet; the next step tries again.
            PermanentError: the old primary is gone by its signs and cannot be ended from here.
            BrokenLogError: by ``take``.
        """
        match self.role:
            case Role.STANDBY:
                self._look()
            case Role.PRIMARY:
                self._show()
            case Role.LOST:
                pass
        return self.role

    def resign(self) -> None:
        """Give up the seat, so that another need not wait; the role is LOST if this was the primary. May be repeated."""
        if self.role is Role.PRIMARY:
            self.role = Role.LOST
        self._seat.leave()

    def close(self) -> None:
        """Resign as far as possible and let go of everything; may be repeated."""
        try:
            self.resign()
        except TransientError:
            pass  # the store is away: the sign will stand still and the lock ends with the session
        finally:
            self._seat.close()

    def _look(self) -> None:
        # The clock is read before the seat: were this process stopped in between, the time that it missed does not count.
        now = self._monotonic()
        if self._seat.claim():
            self._take_over()
            return
        sign = self._seat.sign()
        if sign != self.primary or sign is None:
            self.primary = sign
            self._seen_at_s = self._monotonic()
        elif now - self._seen_at_s >= self._detection_s:
            self._seen_at_s = now  # whoever comes first after this has the whole time again
            self._seat.evict(sign)
            if self._seat.claim():
                self._take_over()

    def _take_over(self) -> None:
        try:
            before = self._seat.sign()
            if before is not None:
                self._seat.clear(before)
            epoch = self._take()
            sent_at_s = self._monotonic()
            self._seat.sit(epoch=epoch, name=self._name, url=self._url)
        except BaseException:
            self._seat.close()
            raise
        self.epoch = epoch
        self.before = before
        self.role = Role.PRIMARY
        self.primary = self._seat.sign()
        self._sent_at_s = sent_at_s

    def _show(self) -> None:
        sent_at_s = self._monotonic()
        if self._seat.beat():
            self._sent_at_s = sent_at_s
        else:
            self.role = Role.LOST
