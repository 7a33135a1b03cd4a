"""Calls that wait for one provider's thread, and what this process is at; any thread may add, one takes."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock

from xce.domain.engine.calls import AnyCall, AskCall, GiveBackCall, StatusCall
from xce.domain.engine.polling import Underway


@dataclass(frozen=True, slots=True)
class Queued:
    """A call, and the lease epoch that its intent was written under."""

    epoch: int
    call: AnyCall


class Waiting:
    """A queue of calls. What was announced is under way until it is forgotten, in the queue or not."""

    def __init__(self) -> None:
        self._queue: deque[Queued] = deque()
        self._asks: set[str] = set()
        self._returns: set[str] = set()
        self._lock = Lock()

    def __len__(self) -> int:
        with self._lock:
            return len(self._queue)

    def announce(self, calls: Iterable[AnyCall]) -> None:
        """Say what we are at before it is durable: a poll in between must not take it for something left by the dead."""
        with self._lock:
            for call in calls:
                if isinstance(call, AskCall):
                    self._asks.add(call.ask.tag)
                elif isinstance(call, GiveBackCall):
                    self._returns.add(call.return_id)

    def forget(self, calls: Iterable[AnyCall]) -> None:
        """Say that it is over."""
        with self._lock:
            for call in calls:
                if isinstance(call, AskCall):
                    self._asks.discard(call.ask.tag)
                elif isinstance(call, GiveBackCall):
                    self._returns.discard(call.return_id)

    def underway(self) -> Underway:
        """Return what we are at."""
        with self._lock:
            return Underway(frozenset(self._asks), frozenset(self._returns))

    def put(self, epoch: int, calls: Iterable[AnyCall]) -> None:
        """Add calls."""
        with self._lock:
            self._queue.extend(Queued(epoch, call) for call in calls)

    def next(self) -> list[Queued]:
        """Take the next call; of status calls, all that follow one another. None waits: nothing."""
        with self._lock:
            if not self._queue:
                return []
            batch = [self._queue.popleft()]
            while (
                isinstance(batch[0].call, StatusCall)
                and self._queue
                and isinstance(self._queue[0].call, StatusCall)
                and self._queue[0].epoch == batch[0].epoch
            ):
                batch.append(self._queue.popleft())
            return batch

    def take_all(self) -> list[tuple[int, str]]:
        """Empty it; return the tags of the asks that waited, and were never made before, with their epochs."""
        with self._lock:
            tags = [
                (one.epoch, one.call.ask.tag)
                for one in self._queue
                if isinstance(one.call, AskCall) and not one.call.again
            ]
            self._queue.clear()
            self._asks.clear()
            self._returns.clear()
            return tags
