"""Time of this machine: stamps that never go back, and a monotonic clock for durations (decision 16)."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Lock

from xce.domain.engine.steady_clock import SteadyClock


def _wall() -> datetime:
    return datetime.now(UTC)


class SystemClock:
    """The wall clock, held to never go back: see ``SteadyClock``. Threads may share it."""

    def __init__(
        self,
        not_before: datetime | None = None,
        *,
        wall: Callable[[], datetime] = _wall,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start; ``not_before`` is the last stamp of an earlier life."""
        self._monotonic_s = monotonic_s
        self._lock = Lock()
        self._steady = SteadyClock(wall, monotonic_s, not_before)

    def now(self) -> datetime:
        """Return the wall clock's time, UTC, or, where that has been set back, the time since the last stamp after that stamp."""
        with self._lock:
            return self._steady.now()

    def not_before(self, stamp: datetime) -> None:
        """Learn of a stamp that was given elsewhere."""
        with self._lock:
            self._steady.not_before(stamp)

    def elapsed_s(self) -> float:
        """Return seconds of a clock that nobody can set; its zero means nothing."""
        return self._monotonic_s()
