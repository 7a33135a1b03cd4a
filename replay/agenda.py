"""What will happen when, in virtual time; things at the same time keep the order in which they were put down."""

import heapq
from datetime import datetime
from typing import Generic, TypeVar

T = TypeVar("T")


class Agenda(Generic[T]):
    """A queue by time."""

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, int, T]] = []
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._heap)

    def put(self, at: datetime, item: T) -> None:
        """Put something down for a time."""
        self._count += 1
        heapq.heappush(self._heap, (at, self._count, item))

    @property
    def next_time(self) -> datetime | None:
        """When the next thing happens; None when nothing will."""
        return self._heap[0][0] if self._heap else None

    def take_until(self, at: datetime) -> list[T]:
        """Take everything that happens at ``at`` or before, in order."""
        taken: list[T] = []
        while self._heap and self._heap[0][0] <= at:
            taken.append(heapq.heappop(self._heap)[2])
        return taken


class CountedIds:
    """Ids R1, R2, ...: each prefix counts for itself, so that equal runs have equal ids."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def next_id(self, prefix: str) -> str:
        """See ``IdSource.next_id``."""
        self._counts[prefix] = self._counts.get(prefix, 0) + 1
        return f"{prefix}{self._counts[prefix]}"
