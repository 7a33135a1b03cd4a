"""Group commit: what several callers append at about the same time goes to disk together.

One durable append costs one wait for the disk, however many events are in it. While one group is on its way the next one gathers; so the more callers
there are, the larger the groups. Each caller is answered when its own events are durable, and by its own error: where a group fails because of one of
them, they are appended one by one.

Threads call ``append``; coroutines ``await append_async``. Both may be used at once.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Condition, Thread
from types import TracebackType
from typing import Any, Final, Protocol, Self

from xce.domain.errors import BrokenLogError, ConflictError, RejectedError, TransientError
from xce.domain.events.base import Aggregate
from xce.domain.events.recorded import Recorded
from xce.domain.provisioning.lease import ProviderLease

#: How long the first of a group waits for others, once nothing is on its way to the disk. Callers that wait for their answers
#: gather behind the group before anyway.
GATHER_S: Final = 0.0
GROUP_EVENTS_MAX: Final = 1000
#: More callers than that at once are sent away.
WAITING_MAX: Final = 1000

Answer = Sequence[Recorded]


class Appending(Protocol):
    """The part of an ``EventLog`` that is needed here."""

    def append(
        self, aggregates: Sequence[Aggregate[Any]], *, fences: Mapping[str, int] | None = None
    ) -> Answer:
        """Save the pending events of aggregates: see ``EventLog.append``."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    aggregates: Sequence[Aggregate[Any]]
    fences: Mapping[str, int]
    events: int
    answer: "Future[Answer]"


class GroupCommit:
    """Appends for many callers. It has one thread of its own; close it when done."""

    def __init__(
        self,
        log: Appending,
        *,
        gather_s: float = GATHER_S,
        group_events_max: int = GROUP_EVENTS_MAX,
        waiting_max: int = WAITING_MAX,
        appended: Callable[[Answer], None] | None = None,
    ) -> None:
        """Start.

        Args:
            log: to append to.
            gather_s: seconds that a first caller waits for others.
            group_events_max: a group is not made larger than that, unless one caller alone is.
            waiting_max: callers that may wait; see ``submit``.
            appended: called with all that a group recorded, in the order of the log, before any of its callers is answered: where
                projections are folded and events published.
        """
        self._log = log
        self._gather_s = gather_s
        self._group_events_max = group_events_max
        self._waiting_max = waiting_max
        self._appended = appended
        self._waiting: deque[_Waiting] = deque()
        self._changed = Condition()
        self._closing = False
        #: How many groups were appended, and how many callers were in them.
        self.groups = 0
        self.callers = 0
        self._thread = Thread(target=self._run, name="group commit", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    # --------------------------------------------------------------------- faces
    def submit(
        self, aggregates: Sequence[Aggregate[Any]], *, fences: Mapping[str, int] | None = None
    ) -> "Future[Answer]":
        """Take pending events of aggregates and return at once; the answer is there when they are durable: see ``EventLog.append``.

        The caller leaves the aggregates alone until then. An answer that is cancelled before its group has begun is not appended.

        Raises:
            TransientError: too many callers wait already, or this is being closed; nothing was taken.
        """
        events = sum(len(aggregate.pending_events) for aggregate in aggregates)
        entry = _Waiting(tuple(aggregates), dict(fences or {}), events, Future())
        if not events:
            entry.answer.set_result(())
            return entry.answer
        with self._changed:
            if self._closing:
                raise TransientError("the log is being closed; try again later")
            if len(self._waiting) >= self._waiting_max:
                raise TransientError(
                    f"{self._waiting_max} callers wait for the log already; try again later"
                )
            self._waiting.append(entry)
            self._changed.notify_all()
        return entry.answer

    def append(
        self, aggregates: Sequence[Aggregate[Any]], *, fences: Mapping[str, int] | None = None
    ) -> Answer:
        """Append and wait until it is durable: see ``EventLog.append``. For threads."""
        return self.submit(aggregates, fences=fences).result()

    async def append_async(
        self, aggregates: Sequence[Aggregate[Any]], *, fences: Mapping[str, int] | None = None
    ) -> Answer:
        """Append and wait until it is durable: see ``EventLog.append``. For coroutines."""
        return await asyncio.wrap_future(self.submit(aggregates, fences=fences))

    def close(self) -> None:
        """Take nothing more, append what waits, and return when all callers have their answers; may be repeated."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    # ------------------------------------------------------------------- the thread
    def _run(self) -> None:
        while group := self._next_group():
            self.groups += 1
            self.callers += len(group)
            self._append_group(group)

    def _next_group(self) -> list[_Waiting]:
        """Return the first callers whose events may go together, in the order they came; empty: closed, and nothing waits."""
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                if not self._waiting:
                    return []
                if self._gather_s:
                    self._gather()
                group: list[_Waiting] = []
                while self._waiting and _fits(self._waiting[0], group, self._group_events_max):
                    entry = self._waiting.popleft()
                    if entry.answer.set_running_or_notify_cancel():
                        group.append(entry)
                if group:
                    return group

    def _gather(self) -> None:
        until = time.monotonic() + self._gather_s
        while not self._closing and len(self._waiting) < self._group_events_max:
            left = until - time.monotonic()
            if left <= 0 or not self._changed.wait(left):
                return

    def _append_group(self, group: Sequence[_Waiting]) -> None:
        if len(group) == 1:
            self._append_one(group[0])
            return
        fences: dict[str, int] = {}
        for entry in group:
            fences.update(entry.fences)
        aggregates = [aggregate for entry in group for aggregate in entry.aggregates]
        try:
            recorded = self._log.append(aggregates, fences=fences)
        except (ConflictError, RejectedError):
            for entry in group:  # it may be the fault of one of them
                self._append_one(entry)
            return
        except Exception as error:  # noqa: BLE001  # this thread goes on, and its callers are told
            for entry in group:
                entry.answer.set_exception(error)
            return
        self._publish(recorded, group)

    def _append_one(self, entry: _Waiting) -> None:
        try:
            recorded = self._log.append(entry.aggregates, fences=entry.fences)
        except Exception as error:  # noqa: BLE001  # this thread goes on, and its caller is told
            entry.answer.set_exception(error)
            return
        self._publish(recorded, (entry,))

    def _publish(self, recorded: Answer, group: Sequence[_Waiting]) -> None:
        if self._appended is not None:
            try:
                self._appended(recorded)
            except Exception as error:  # noqa: BLE001  # saved, but this process cannot show it
                broken = BrokenLogError(f"saved, but not folded: {error}")
                for entry in group:
                    entry.answer.set_exception(broken)
                return
        first = 0
        for entry in group:
            entry.answer.set_result(recorded[first : first + entry.events])
            first += entry.events


def _fits(entry: _Waiting, group: Sequence[_Waiting], events_max: int) -> bool:
    """Return whether a caller may be in one append with those before it, and the log reads as if it had come behind them."""
    if not group:
        return True
    if entry.events + sum(other.events for other in group) > events_max:
        return False
    if _moves_fences(entry) or _moves_fences(group[0]):
        return False  # fences are compared before any is moved
    ids = {aggregate.id for aggregate in entry.aggregates}
    return not any(
        any(other.fences.get(name, epoch) != epoch for name, epoch in entry.fences.items())
        or any(aggregate.id in ids for aggregate in other.aggregates)
        for other in group
    )


def _moves_fences(entry: _Waiting) -> bool:
    return any(isinstance(aggregate, ProviderLease) for aggregate in entry.aggregates)
