"""The waiting tasks of simple jobs, grouped so that the ones that fill a host are found fast.

Trying jobs in order on hosts in order is the same as filling one host after the other, each with the tasks in
job order that still fit. Tasks that take the same hosts and need the same of everything but one resource are a
group. Within a group the next task that fits is found by blocks, each with the least that one of its tasks
needs, so the work goes with the tasks that a host takes and the number of groups, not with all that wait.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from typing import Final

from xce.domain.cluster.kinds import HostKind
from xce.domain.cluster.state import Scope
from xce.domain.demand.lookahead import amounts_of
from xce.domain.demand.packing import FIELD, Packing
from xce.domain.scheduling.classes import JobClass

#: Tasks of a block, and blocks of one of the upper level, as a power of two.
_SHIFT: Final = 5
_MASK: Final = (1 << _SHIFT) - 1
#: What a task needs that is gone: more than any host has.
_GONE: Final = FIELD + 1


class Group:
    """Tasks that differ only in what they need of one resource, in job order.

    Attributes:
        jobs: by place, the number of the job; all tasks of a job have one place, a host takes one of them.
        left: by place, how many tasks of the job have no host yet.
        amounts: by place, what a task needs of the one resource; ``_GONE`` once none is left.
        head: before it none is left.
        count, total: tasks that are left, and what they need of the one resource.
    """

    __slots__ = (
        "_least", "_low", "_needs", "_upper", "amounts", "count", "head", "jobs", "left", "need", "number", "packed",
        "scope", "total",
    )  # fmt: skip

    def __init__(self, scope: Scope, need: Mapping[str, int], packed: int, number: int) -> None:
        self.number = number
        self.scope = scope
        self.need = need
        self.packed = packed
        self.jobs: list[int] = []
        self.left: list[int] = []
        self.amounts: list[int] = []
        self.head = 0
        self.count = 0
        self.total = 0
        self._needs: list[int] = []
        self._least: list[int] = []
        self._upper: list[int] = []
        self._low = _GONE

    def close(self) -> None:
        """Build the blocks; called once after all tasks are in."""
        self._needs = self.amounts[:]
        self._least = _minima(self.amounts)
        self._upper = _minima(self._least)
        self._low = min(self._upper, default=_GONE)
        self.count = sum(self.left)
        self.total = sum(map(int.__mul__, self.left, self.amounts))

    def find(self, at: int, most: int) -> int:
        """Return the first place from ``at`` on whose task needs at most so much, -1 if there is none."""
        if most < self._low:
            return -1
        amounts = self.amounts
        end = len(amounts)
        stop = min((at | _MASK) + 1, end)
        while at < stop:
            if amounts[at] <= most:
                return at
            at += 1
        if at >= end:
            return -1
        least, upper = self._least, self._upper
        block, blocks = at >> _SHIFT, len(least)
        while block < blocks:
            if not block & _MASK:
                above = block >> _SHIFT
                while above < len(upper) and upper[above] > most:
                    above += 1
                block = above << _SHIFT
                if block >= blocks:
                    return -1
            if least[block] <= most:
                at = block << _SHIFT
                while amounts[at] > most:
                    at += 1
                return at
            block += 1
        return -1

    def take(self, at: int) -> None:
        """Take one task of a place."""
        amount = self.amounts[at]
        self.count -= 1
        self.total -= amount
        self.left[at] -= 1
        if self.left[at]:
            return
        self.amounts[at] = _GONE
        block = at >> _SHIFT
        if self._least[block] == amount:
            start = block << _SHIFT
            self._least[block] = min(self.amounts[start : start + _MASK + 1])
            above = block >> _SHIFT
            if self._upper[above] == amount:
                start = above << _SHIFT
                self._upper[above] = min(self._least[start : start + _MASK + 1])
                if self._low == amount:
                    self._low = min(self._upper)
        if at == self.head:
            while at < len(self.amounts) and self.amounts[at] == _GONE:
                at += 1
            self.head = at

    def need_of(self, at: int) -> int:
        """Return what a task needs of the one resource, whether it waits or not."""
        return self._needs[at]

    def take_all(self) -> None:
        """Take all tasks."""
        size = len(self.jobs)
        self.left = [0] * size
        self.amounts = [_GONE] * size
        self._least = [_GONE] * len(self._least)
        self._upper = [_GONE] * len(self._upper)
        self._low = _GONE
        self.head, self.count, self.total = size, 0, 0

    def give_back(self, at: int) -> None:
        """Let one task of a place wait again."""
        amount = self._needs[at]
        self.count += 1
        self.total += amount
        self.left[at] += 1
        if self.left[at] > 1:
            return
        self.amounts[at] = amount
        block = at >> _SHIFT
        if amount < self._least[block]:
            self._least[block] = amount
            above = block >> _SHIFT
            self._upper[above] = min(self._upper[above], amount)
            self._low = min(self._low, amount)
        self.head = min(self.head, at)


def _minima(amounts: Sequence[int]) -> list[int]:
    size = _MASK + 1
    return [min(amounts[start : start + size]) for start in range(0, len(amounts), size)]


class WaitingTasks:
    """All tasks of simple jobs that wait for a host; a task is known by the number of its job.

    Attributes:
        groups: in the order of their first job.
        resources: what any task needs, the one that groups differ in apart; ``fine`` is that one.
    """

    def __init__(self, jobs: Sequence[JobClass]) -> None:
        """Group the tasks of jobs."""
        needs = {job: amounts_of(job) for job in dict.fromkeys(jobs)}
        distinct: dict[str, set[int]] = {}
        for need in needs.values():
            for name, amount in need.items():
                distinct.setdefault(name, set()).add(amount)
        self.fine = max(distinct, key=lambda name: len(distinct[name])) if distinct else ""
        self.resources = [name for name in distinct if name != self.fine]
        self._packing = Packing(self.resources)
        self.groups: list[Group] = []
        self._group_of: list[Group] = []
        self._place_of: list[int] = []
        self._of_kind: dict[HostKind, list[Group]] = {}
        self._takes: dict[tuple[int, HostKind], bool] = {}
        self._capacity: dict[HostKind, tuple[int, int]] = {}
        self._add(jobs, needs)

    def _add(self, jobs: Sequence[JobClass], needs: Mapping[JobClass, Mapping[str, int]]) -> None:
        places: dict[JobClass, tuple[Group, int, int]] = {}
        known: dict[tuple[Scope, int], Group] = {}
        for job, need in needs.items():
            rest = {name: amount for name, amount in need.items() if name != self.fine}
            scope = job.alternatives[0].parts[0].scope
            packed = self._packing.pack(rest)
            group = known.get((scope, packed))
            if group is None:
                group = known[scope, packed] = Group(scope, rest, packed, len(self.groups))
                self.groups.append(group)
            places[job] = (group, need.get(self.fine, 0), job.least)
        group_of, place_of = self._group_of, self._place_of
        for number, job in enumerate(jobs):
            group, amount, tasks = places[job]
            group_of.append(group)
            place_of.append(len(group.jobs))
            group.jobs.append(number)
            group.left.append(tasks)
            group.amounts.append(amount)
        for group in self.groups:
            group.close()

    def first(self) -> int | None:
        """Return the first job that waits, None if none does."""
        return min((group.jobs[group.head] for group in self.groups if group.count), default=None)

    def left(self, job: int) -> int:
        """Return how many tasks of a job wait."""
        return self._group_of[job].left[self._place_of[job]]

    def needed(self, resource: str) -> int:
        """Return what all waiting tasks need of a resource."""
        if resource == self.fine:
            return sum([group.total for group in self.groups])
        return sum([group.count * group.need.get(resource, 0) for group in self.groups])

    def fits(self, job: int, kind: HostKind) -> bool:
        """Return whether an empty host of a kind takes a task of a job."""
        group = self._group_of[job]
        key = (group.number, kind)
        known = self._takes.get(key)
        if known is None:
            known = self._takes[key] = group in self._on(kind)
        return known and group.need_of(self._place_of[job]) <= kind.totals.get(self.fine, 0)

    def worth(self, tasks: Sequence[int], worths: Sequence[float], worth_of_fine: float) -> float:
        """Return what tasks are worth.

        Args:
            tasks: the tasks.
            worths: by group, the worth of what a task needs of all but the one resource.
            worth_of_fine: of a unit of the one resource.
        """
        group_of, place_of = self._group_of, self._place_of
        worth, fine = 0.0, 0
        for job in tasks:
            group = group_of[job]
            worth += worths[group.number]
            fine += group.need_of(place_of[job])
        return worth + worth_of_fine * fine

    def filling(self, kind: HostKind) -> list[int]:
        """Return the tasks that an empty host of a kind takes."""
        room, most = self.capacity(kind)
        return self._filling(self._on(kind), room, most)

    def capacity(self, kind: HostKind) -> tuple[int, int]:
        """Return what an empty host has: of all but the one resource, packed, and of that one."""
        known = self._capacity.get(kind)
        if known is None:
            known = self._capacity[kind] = (
                self._packing.pack(kind.totals),
                kind.totals.get(self.fine, 0),
            )
        return known

    def sum_of(self, tasks: Iterable[int]) -> tuple[int, int]:
        """Return what tasks need together, in the same way."""
        group_of, place_of = self._group_of, self._place_of
        rest = fine = 0
        for job in tasks:
            group = group_of[job]
            rest += group.packed
            fine += group.need_of(place_of[job])
        return rest, fine

    def may_hold(self, room: tuple[int, int], rest: int, fine: int) -> bool:
        """Return whether as much is free as is needed."""
        return fine <= room[1] and self._packing.fits(rest, room[0])

    def fill_free(self, free: Callable[[str], int], admits: Callable[[Scope], bool]) -> list[int]:
        """Return the tasks that a host takes that has these amounts free and admits these scopes."""
        room = self._packing.pack({name: max(0, free(name)) for name in self.resources})
        return self._filling(
            [group for group in self.groups if admits(group.scope)], room, free(self.fine)
        )

    def take(self, tasks: Iterable[int]) -> None:
        """Take tasks: they wait no more."""
        group_of, place_of = self._group_of, self._place_of
        for job in tasks:
            group_of[job].take(place_of[job])

    def give_back(self, tasks: Iterable[int]) -> None:
        """Let tasks wait again."""
        group_of, place_of = self._group_of, self._place_of
        for job in tasks:
            group_of[job].give_back(place_of[job])

    def take_all(self) -> None:
        """Take all tasks that wait."""
        for group in self.groups:
            group.take_all()

    def drop(self, jobs: Iterable[int]) -> None:
        """Take all tasks of jobs, some of which may be gone already."""
        for job in jobs:
            self.take([job] * self.left(job))

    def _filling(self, groups: Iterable[Group], room: int, most: int) -> list[int]:
        """Return the tasks in job order that fit into a room, one of each job at most."""
        group_of, place_of = self._group_of, self._place_of
        guard = self._packing.guard
        room |= guard
        heap = [group.jobs[group.head] for group in groups if group.count]
        heapify(heap)
        tasks: list[int] = []
        while heap:
            job = heap[0]
            group = group_of[job]
            rest = room - group.packed
            if rest & guard != guard:
                heappop(heap)
                continue
            at = place_of[job]
            amounts = group.amounts
            amount = amounts[at]
            if amount <= most:
                tasks.append(job)
                most -= amount
                room = rest
                at += 1
                if at >= len(amounts):
                    heappop(heap)
                    continue
                if amounts[at] <= most:
                    heapreplace(heap, group.jobs[at])
                    continue
            at = group.find(at, most)
            if at < 0:
                heappop(heap)
            else:
                heapreplace(heap, group.jobs[at])
        return tasks

    def _on(self, kind: HostKind) -> list[Group]:
        """Return the groups of which an empty host of a kind may take a task."""
        known = self._of_kind.get(kind)
        if known is None:
            capacity, _ = self.capacity(kind)
            known = self._of_kind[kind] = [
                group
                for group in self.groups
                if group.scope.selector.matches(kind) and self._packing.fits(group.packed, capacity)
            ]
        return known
