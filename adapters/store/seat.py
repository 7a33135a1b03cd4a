"""The seat of the primary: who serves a log now, and how somebody else gets its place. One for each log, kept where the log is.

A seat has a lock that ends with the process (or session) that holds it, and a sign that says who sits there and that it is alive: a count that
goes up. A process that died has let go of the lock; one that is frozen or cut off keeps it, and its count stands still. Neither is what keeps
an old primary from writing: that is the fence in the log. The seat is how to find out soon, and how to get a frozen writer's locks away.
"""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Sign:
    """What stands at a seat.

    Attributes:
        epoch: of the primary.
        beat: goes up as long as it is alive.
        name: of the controller, for people.
        url: where it serves; "": not said.
        where: how it is found to be ended: a process, or sessions.
    """

    epoch: int
    beat: int
    name: str
    url: str
    where: str


class Seat(Protocol):
    """The seat of one log, for one process. Every method raises ``TransientError`` where the store cannot be reached.

    Not for several threads at once.
    """

    def sign(self) -> Sign | None:
        """Return what stands there; None: nobody sits there, or has left."""
        ...

    def claim(self) -> bool:
        """Take the lock without waiting; True: it is mine, also if it was before."""
        ...

    def evict(self, sign: Sign) -> None:
        """End whoever put up the sign, by force, and return when it is gone; nothing happens where it is gone already.

        Raises:
            PermanentError: it cannot be ended from here.
            TransientError: it has not ended in time.
        """
        ...

    def clear(self, sign: Sign) -> None:
        """End what is left of the one before, who has lost the lock, so that nothing of it makes others wait."""
        ...

    def sit(self, *, epoch: int, name: str, url: str) -> None:
        """Put up my sign; the lock is mine."""
        ...

    def beat(self) -> bool:
        """Count on; False: it is not my seat any more."""
        ...

    def leave(self) -> None:
        """Take my sign down and let go of the lock; nothing happens where it is not mine. May be repeated."""
        ...

    def close(self) -> None:
        """Let go of everything, as the end of the process would; may be repeated."""
        ...


class SoleSeat:
    """The seat of a log in memory: no other process can reach it."""

    def __init__(self) -> None:
        self._sign: Sign | None = None

    def sign(self) -> Sign | None:
        """Return what stands there."""
        return self._sign

    def claim(self) -> bool:
        """Take it."""
        return True

    def evict(self, sign: Sign) -> None:
        """Do nothing: nobody else can be there."""

    def clear(self, sign: Sign) -> None:
        """Do nothing: nobody was there before."""

    def sit(self, *, epoch: int, name: str, url: str) -> None:
        """Put up my sign."""
        self._sign = Sign(epoch, 0, name, url, "")

    def beat(self) -> bool:
        """Stay."""
        return self._sign is not None

    def leave(self) -> None:
        """Take my sign down."""
        self._sign = None

    def close(self) -> None:
        """Do nothing more."""
