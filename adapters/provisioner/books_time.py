"""The controller's time, on a machine whose clock may be minutes apart from it: what is in its books is older or younger by its clock only."""

from collections.abc import Callable
from datetime import datetime, timedelta

from xce.domain.formats.rest import Supply
from xce.domain.ports import Clock


class BooksTime:
    """The time of the newest reading, and what has passed since; before the first one, that of the own clock."""

    def __init__(self, clock: Clock, elapsed_s: Callable[[], float]) -> None:
        self._clock = clock
        self._elapsed_s = elapsed_s
        self._heard: tuple[datetime, float] | None = None

    def hear(self, supply: Supply) -> Supply:
        """Learn the time of a reading that was just asked for, or was already known; return the reading."""
        if self._heard is None or self._heard[0] != supply.now:
            self._heard = supply.now, self._elapsed_s()
        return supply

    def now(self) -> datetime:
        """Return the controller's time."""
        if self._heard is None:
            return self._clock.now()
        at, elapsed_s = self._heard
        return at + timedelta(seconds=max(0.0, self._elapsed_s() - elapsed_s))
