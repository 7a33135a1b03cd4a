"""Stamps that never go back, from a wall clock that may be set and a clock that cannot (field case F22, decision 16)."""

from collections.abc import Callable
from datetime import datetime, timedelta


class SteadyClock:
    """The wall clock, held to never go back. For one thread at a time.

    Where the wall clock is set back, stamps go on from the last one by the monotonic clock: what is due ten minutes after a stamp is due
    ten minutes later, and not when the wall clock has caught up.
    """

    def __init__(
        self,
        wall: Callable[[], datetime],
        monotonic_s: Callable[[], float],
        not_before: datetime | None = None,
    ) -> None:
        """Start; ``not_before`` is the last stamp of an earlier life."""
        self._wall = wall
        self._monotonic_s = monotonic_s
        self._last: datetime | None = not_before
        self._last_s = monotonic_s()

    def now(self) -> datetime:
        """Return the wall clock's time, or, where that has been set back, the time since the last stamp after that stamp."""
        now, earliest = self._wall(), self._earliest()
        if earliest is not None and now < earliest:
            return earliest
        self._last, self._last_s = now, self._monotonic_s()
        return now

    def not_before(self, stamp: datetime) -> None:
        """Learn of a stamp that was given elsewhere."""
        earliest = self._earliest()
        if earliest is None or stamp > earliest:
            self._last, self._last_s = stamp, self._monotonic_s()

    def _earliest(self) -> datetime | None:
        """Return the time since the last stamp after that stamp."""
        if self._last is None:
            return None
        return self._last + timedelta(seconds=max(0.0, self._monotonic_s() - self._last_s))
