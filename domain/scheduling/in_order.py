"""Waiting jobs in job order, in short lists: with very many of them each comes and goes as fast as with few."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from xce.domain.scheduling.groups import ORDER, Order, Place

#: Jobs of one short list before it is cut in two.
_LENGTH_MAX: Final = 1_024


def _first(part: list[Place]) -> Order:
    return part[0].order


class InOrder:
    """Places in job order; no two have the same order."""

    __slots__ = ("_parts", "_size")

    def __init__(self, places: Iterable[Place]) -> None:
        ordered = sorted(places, key=ORDER)
        half = _LENGTH_MAX // 2
        #: None of them is empty, and each is before the next.
        self._parts = [ordered[at : at + half] for at in range(0, len(ordered), half)]
        self._size = len(ordered)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Place]:
        return chain.from_iterable(self._parts)

    def put(self, place: Place) -> None:
        """Add a job."""
        self._size += 1
        if not self._parts:
            self._parts.append([place])
            return
        number = self._part_of(place)
        part = self._parts[number]
        part.insert(bisect_left(part, place.order, key=ORDER), place)
        if len(part) > _LENGTH_MAX:
            half = len(part) // 2
            self._parts.insert(number + 1, part[half:])
            del part[half:]

    def remove(self, place: Place) -> None:
        """Take a job out."""
        number = self._part_of(place)
        part = self._parts[number]
        at = bisect_left(part, place.order, key=ORDER)
        assert part[at] is place, "it is there"
        del part[at]
        self._size -= 1
        if not part:
            del self._parts[number]

    def _part_of(self, place: Place) -> int:
        """Return the list in which a job is or would be."""
        return max(0, bisect_right(self._parts, place.order, key=_first) - 1)
