"""What is new, for those who follow: the last events, and the newest session result.

Nobody has a queue of their own here. A reader keeps its position and comes for more; one that falls behind the events kept in memory
reads the log. So a slow reader holds nobody up and costs nothing.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final

from xce.domain.events.recorded import Recorded
from xce.domain.formats.session_result import SessionResult

#: Events kept in memory for those who follow closely.
EVENTS_KEPT: Final = 4096


@dataclass(frozen=True, slots=True)
class Published:
    """A session result, as the scheduler posted it.

    Attributes:
        number: counts the results of this controller's life, from 1.
        result: the result.
        text: the same as JSON.
        at_s: when it came, on the monotonic clock.
        by: who posted it.
    """

    number: int
    result: SessionResult
    text: str
    at_s: float
    by: str


class Feed:
    """Shared by the writer and all readers; every method may be called from any thread."""

    def __init__(self, position: int, kept_max: int = EVENTS_KEPT) -> None:
        """Start behind a position of the log."""
        self._lock = Lock()
        self._kept: deque[Recorded] = deque(maxlen=kept_max)
        self._floor = position
        self._position = position
        self._session: Published | None = None
        self._watchers: dict[int, Callable[[], None]] = {}
        self._next_watcher = 0

    @property
    def position(self) -> int:
        """Position of the last event that was published."""
        return self._position

    @property
    def session(self) -> Published | None:
        """The newest session result; None: none since this controller started."""
        return self._session

    # --------------------------------------------------------------- publishing
    def add(self, batch: Sequence[Recorded]) -> None:
        """Publish events that are durable."""
        if not batch:
            return
        with self._lock:
            for recorded in batch:
                if len(self._kept) == self._kept.maxlen:
                    self._floor = self._kept[0].position
                self._kept.append(recorded)
            self._position = batch[-1].position
        self._wake()

    def post(self, result: SessionResult, text: str, *, at_s: float, by: str) -> Published:
        """Publish a session result; it replaces the one before."""
        with self._lock:
            number = 1 if self._session is None else self._session.number + 1
            self._session = published = Published(number, result, text, at_s, by)
        self._wake()
        return published

    # ------------------------------------------------------------------ reading
    def after(self, position: int, limit: int) -> list[Recorded] | None:
        """Return the next events behind a position, oldest first; None: they are no longer in memory, read the log."""
        with self._lock:
            if position < self._floor:
                return None
            if position >= self._position:
                return []
            # The wanted ones are at the end: walk back to the first of them.
            wanted: list[Recorded] = []
            for recorded in reversed(self._kept):
                if recorded.position <= position:
                    break
                wanted.append(recorded)
            wanted.reverse()
            return wanted[:limit]

    def watch(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call ``wake`` whenever something was published, from the publishing thread; return what ends that."""
        with self._lock:
            number = self._next_watcher
            self._next_watcher += 1
            self._watchers[number] = wake

        def unwatch() -> None:
            with self._lock:
                self._watchers.pop(number, None)

        return unwatch

    def _wake(self) -> None:
        with self._lock:
            watchers = list(self._watchers.values())
        for wake in watchers:
            wake()
