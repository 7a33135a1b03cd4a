"""Finding the first host with room without looking at all the full ones again and again.

A list of hosts is cut into stretches. What a stretch had no room for, it has no room for as long as amounts
only go down, nor for anything larger. So a few refusals are kept for each stretch, and for each long one, and
most of a full cluster is passed over in a few steps. Where amounts go up again, the refusals there are dropped.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from xce.domain.cluster.requests import Amounts

#: Hosts of a stretch and of a long one, as powers of two.
_SHIFT: Final = 5
_LONG: Final = 10
_SIZE: Final = 1 << _SHIFT
#: Refusals kept for one stretch.
_KEPT: Final = 4

#: Amounts that a stretch has no room for, none of which is as large as another.
_Refused = tuple[tuple[int, ...], ...]


class Stretches:
    """The stretches of one list of hosts, to which hosts are added at the end.

    Attributes:
        hosts: the list itself; whoever takes hosts off its end says so by ``cut``.
        in_order: whether they are in host order.
        seen: how many of the places at which amounts went up are dealt with.
    """

    __slots__ = ("_refused", "hosts", "in_order", "seen")

    def __init__(self, hosts: list[int], *, in_order: bool = True) -> None:
        self.hosts = hosts
        self.in_order = in_order
        self.seen = 0
        #: By names of resources, and whether hosts with jobs are barred: refusals of each stretch and long one.
        self._refused: dict[tuple[str | int, ...], tuple[list[_Refused], list[_Refused]]] = {}

    def copy(self, hosts: list[int]) -> "Stretches":
        """Return a copy over a copy of the hosts."""
        made = Stretches(hosts, in_order=self.in_order)
        made.seen = self.seen
        made._refused = {key: (short[:], long[:]) for key, (short, long) in self._refused.items()}
        return made

    def cut(self, size: int) -> None:
        """Forget what is known of the hosts from a position on."""
        for short, long in self._refused.values():
            del short[size >> _SHIFT :]
            del long[size >> _LONG :]

    def forget(self) -> None:
        """Forget everything."""
        self._refused.clear()

    def went_up(self, places: Sequence[int]) -> None:
        """Forget what is known of the stretches of these hosts; the list is in host order."""
        hosts = self.hosts
        for place in places:
            position = bisect_left(hosts, place)
            for short, long in self._refused.values():
                if position >> _SHIFT < len(short):
                    short[position >> _SHIFT] = ()
                if position >> _LONG < len(long):
                    long[position >> _LONG] = ()

    def first_fit(
        self,
        start: int,
        amounts: Amounts,
        free: Mapping[str, Sequence[int]],
        barred: Collection[int],
        mark: int | None,
    ) -> int:
        """Return the first position from ``start`` on whose host has the amounts and is not barred, or -1.

        Args:
            start: the position.
            amounts: at least one.
            free: a column for each resource of the amounts.
            barred: places of hosts that are passed over.
            mark: says which hosts are barred, where those that are stay barred; None: they may not. Those of
                mark 0 are barred in any case.
        """
        names, wanted = zip(*amounts, strict=True)
        rows = [(free[name], amount) for name, amount in amounts]
        hosts = self.hosts
        size = len(hosts)
        known = self._refused.get((*names, mark or 0))
        if known is None:
            if mark is None:
                return first_of(hosts, start, size, rows, barred)
            known = self._refused[(*names, mark)] = ([], [])
        short, long = known
        missing = (size >> _SHIFT) - len(short)
        if missing > 0:
            short += [()] * missing
            long += [()] * ((size >> _LONG) - len(long))
        position, whole_from = start, -1
        while position < size:
            if not position & ((1 << _LONG) - 1):
                if whole_from >= 0:
                    long[whole_from] = _with(long[whole_from], wanted)
                whole_from = position >> _LONG
                if whole_from >= len(long):
                    whole_from = -1
                elif long[whole_from] and _covers(long[whole_from], wanted):
                    position += 1 << _LONG
                    whole_from = -1
                    continue
            stretch = position >> _SHIFT
            end = (stretch + 1) << _SHIFT
            if end > size:
                return first_of(hosts, position, size, rows, barred)
            refused = short[stretch]
            if not (refused and _covers(refused, wanted)):
                at = first_of(hosts, position, end, rows, barred)
                if at >= 0:
                    return at
                if mark is None or position & (_SIZE - 1):
                    whole_from = -1
                else:
                    short[stretch] = _with(refused, wanted)
            position = end
        if whole_from >= 0 and not size & ((1 << _LONG) - 1):
            long[whole_from] = _with(long[whole_from], wanted)
        return -1

    def all_fits(
        self,
        amounts: Amounts,
        free: Mapping[str, Sequence[int]],
        barred: Collection[int],
        enough: int,
    ) -> list[int]:
        """Return the hosts that have the amounts and are not barred, those barred staying so; ``enough`` at least, or all."""
        hosts = self.hosts
        size = len(hosts)
        rows = [(free[name], amount) for name, amount in amounts]
        fitting: list[int] = []
        position = 0
        while len(fitting) < enough:
            position = self.first_fit(position, amounts, free, barred, 0)
            if position < 0:
                break
            end = min(((position >> _SHIFT) + 1) << _SHIFT, size)
            found = hosts[position:end]
            for column, wanted in rows:
                found = [place for place in found if column[place] >= wanted]
            fitting += [place for place in found if place not in barred] if barred else found
            position = end
        return fitting


def first_of(
    hosts: Sequence[int],
    start: int,
    end: int,
    rows: Sequence[tuple[Sequence[int], int]],
    barred: Collection[int],
) -> int:
    """Return the first position from ``start`` to ``end`` whose host is not barred and has enough in all rows, or -1."""
    if len(rows) == 2:
        (column, wanted), (other, other_wanted) = rows
        for position in range(start, end):
            place = hosts[position]
            if (
                column[place] >= wanted
                and other[place] >= other_wanted
                and (not barred or place not in barred)
            ):
                return position
        return -1
    if len(rows) == 1:
        ((column, wanted),) = rows
        for position in range(start, end):
            place = hosts[position]
            if column[place] >= wanted and (not barred or place not in barred):
                return position
        return -1
    for position in range(start, end):
        place = hosts[position]
        if barred and place in barred:
            continue
        for column, wanted in rows:
            if column[place] < wanted:
                break
        else:
            return position
    return -1


def _covers(refused: _Refused, wanted: tuple[int, ...]) -> bool:
    """Return whether no more than is wanted was refused."""
    if len(wanted) == 2:
        first, second = wanted
        return any(one <= first and other <= second for one, other in refused)
    return any(all(map(int.__le__, amounts, wanted)) for amounts in refused)


def _with(refused: _Refused, wanted: tuple[int, ...]) -> _Refused:
    """Return the refusals with one more, the oldest dropped where there are too many."""
    kept = tuple(
        [amounts for amounts in refused if not all(map(int.__le__, wanted, amounts))][1 - _KEPT :]
    )
    return (*kept, wanted)
