"""Time of this machine: stamps that never go back, and a monotonic clock for durations (decision 16)."""

import time
from datetime import UTC, datetime
from threading import Lock


class SystemClock:
    """The wall clock, held to never go back. Threads may share it."""

    def __init__(self, not_before: datetime | None = None) -> None:
        """Start; ``not_before`` is the last stamp of an earlier life."""
        self._last = not_before
        self._lock = Lock()

    def now(self) -> datetime:
        """Return the later of the wall clock and the last stamp, UTC."""
        with self._lock:
            now = datetime.now(UTC)
            if self._last is not None and now < self._last:
                now = self._last
            self._last = now
            return now

    def not_before(self, stamp: datetime) -> None:
        """Learn of a stamp that was given elsewhere."""
        with self._lock:
            if self._last is None or stamp > self._last:
                self._last = stamp

    def elapsed_s(self) -> float:
        """Return seconds of a clock that nobody can set; its zero means nothing."""
        return time.monotonic()
