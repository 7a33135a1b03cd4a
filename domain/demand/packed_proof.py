"""Whether the counted jobs still start without one demanded host, found out fast where jobs are simple.

A simple job takes the first host with room for each of its tasks, so without one host all jobs on the hosts
before it stay where they are. The others, in job order, fill the hosts behind it one after the other; that
is the same as placing job by job, and needs no search.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from xce.domain.cluster.kinds import HostKind
from xce.domain.demand.lookahead import is_simple, needs_on, select_nothing
from xce.domain.demand.packing import Packing
from xce.domain.demand.supply import Offer
from xce.domain.scheduling.classes import JobClass
from xce.domain.scheduling.placement import Placed


def are_simple(placements: Sequence[Placed]) -> bool:
    """Return whether all jobs take the first host with room for each of their tasks, and nothing else."""
    seen: set[JobClass] = set()
    for placed in placements:
        job = placed.job
        if job not in seen:
            if not is_simple(job) or job.alternatives[0].parts[0].request.selector.order:
                return False
            if job.least > 1 and not job.alternatives[0].parts[0].request.span.one_task_a_host:
                return False
            seen.add(job)
    return True


class PackedProof:
    """The new hosts of a demand with the tasks on them.

    Attributes:
        dropped: places of hosts that were taken out.
        spent: tasks that were placed anew.
    """

    def __init__(
        self, placements: Sequence[Placed], order: Sequence[Offer], first_new: int
    ) -> None:
        self._order = list(order)
        self.dropped: set[int] = set()
        self.spent = 0
        numbers: dict[JobClass, int] = {}
        self._classes: list[JobClass] = []
        self._class_of: list[int] = []
        self._group_of: list[int] = []
        self._host_of: list[int] = []
        amounts: list[dict[str, int]] = []
        for group, placed in enumerate(placements):
            job = placed.job
            number = numbers.get(job)
            if number is None:
                number = numbers[job] = len(self._classes)
                self._classes.append(job)
                amounts.append(dict(job.alternatives[0].parts[0].request.bucket(1, first=True)))
            for claim in placed.claims:
                if claim.place >= first_new:
                    self._class_of.append(number)
                    # Tasks of one job are on different hosts.
                    self._group_of.append(group)
                    self._host_of.append(claim.place - first_new)
        self._packing = Packing(list(dict.fromkeys(name for need in amounts for name in need)))
        self._needs = [self._packing.pack(need) for need in amounts]
        self._smallest = self._packing.pack(
            {
                name: min((need.get(name, 0) for need in amounts), default=0)
                for name in self._packing.resources
            }
        )
        self._are_plain = select_nothing(self._classes)
        self._on_kind: dict[HostKind, tuple[int, list[int]]] = {}
        self._suffix: list[int] = []
        self._used: list[int] = []
        self._add_up()

    @property
    def order(self) -> list[Offer]:
        """Return the hosts that are left."""
        return [offer for place, offer in enumerate(self._order) if place not in self.dropped]

    def _add_up(self) -> None:
        """Add up what hosts have, and what is on them, from each place to the end."""
        gone = self.dropped
        used = [0] * len(self._order)
        for number, host in zip(self._class_of, self._host_of, strict=True):
            used[host] += self._needs[number]
        self._suffix = [0] * (len(self._order) + 1)
        self._used = [0] * (len(self._order) + 1)
        for place in range(len(self._order) - 1, -1, -1):
            capacity = 0 if place in gone else self._kind(self._order[place].kind)[0]
            self._suffix[place] = self._suffix[place + 1] + capacity
            self._used[place] = self._used[place + 1] + used[place]

    def _kind(self, kind: HostKind) -> tuple[int, list[int]]:
        known = self._on_kind.get(kind)
        if known is None:
            packing = self._packing
            needs = (
                self._needs
                if self._are_plain
                else needs_on(kind, self._classes, self._needs, packing.too_much)
            )
            known = self._on_kind[kind] = (packing.pack(kind.totals), needs)
        return known

    def sweep(self, places: Iterable[int], budget: int) -> Iterator[tuple[int, Mapping[int, int]]]:
        """Yield the places, from the last to the first, without whose host all jobs still start.

        With each comes where the tasks go that move. Between two of them ``drop`` may be called for the one
        just yielded. Hosts keep their numbers, those that are dropped are empty from then on. It ends early
        when more than the budget is spent.
        """
        wanted = set(places)
        tasks_of: list[list[int]] = [[] for _ in self._order]
        for task, host in enumerate(self._host_of):
            tasks_of[host].append(task)
        tail: list[int] = []
        for place in range(len(self._order) - 1, -1, -1):
            if self.spent > budget:
                return
            tail = sorted(tail + tasks_of[place])
            if place in wanted:
                moved = self._without(place, tail)
                if moved is not None:
                    yield place, moved

    def _without(self, gone: int, tail: Sequence[int]) -> dict[int, int] | None:
        """Return where the tasks from a host on go if it is not there, None if one finds no place."""
        left = self._used[gone]
        if not self._packing.fits(left, self._suffix[gone + 1]):
            return None
        places = [at for at in range(gone + 1, len(self._order)) if at not in self.dropped]
        moved, is_done = self._pour(tail, left, self._order, places, self._suffix)
        self.spent += len(moved)
        return moved if is_done else None

    def holds(self, order: Sequence[Offer]) -> bool:
        """Return whether other new hosts would hold all tasks."""
        suffix = [0] * (len(order) + 1)
        for place in range(len(order) - 1, -1, -1):
            suffix[place] = suffix[place + 1] + self._kind(order[place].kind)[0]
        if not self._packing.fits(self._used[0], suffix[0]):
            return False
        tasks = range(len(self._class_of))
        moved, is_done = self._pour(tasks, self._used[0], order, range(len(order)), suffix)
        self.spent += len(moved)
        return is_done

    def _pour(
        self,
        tasks: Sequence[int],
        left: int,
        order: Sequence[Offer],
        places: Iterable[int],
        suffix: Sequence[int],
    ) -> tuple[dict[int, int], bool]:
        """Fill hosts with tasks, one after the other; return where they go, and whether all found a place.

        It ends once what is left is more than all hosts behind could hold. ``left``: amounts of all tasks.
        """
        packing = self._packing
        guard, smallest = packing.guard, self._smallest
        class_of, group_of, own = self._class_of, self._group_of, self._needs
        head, end = 0, len(tasks)
        following: dict[int, int] = {}
        moved: dict[int, int] = {}
        for place in places:
            capacity, needs = self._kind(order[place].kind)
            room = capacity | guard
            at, before, group = head, -1, -1
            while at < end:
                task = tasks[at]
                number = class_of[task]
                rest = room - needs[number]
                after = following.get(at, at + 1)
                if rest & guard == guard and group_of[task] != group:
                    room, group = rest, group_of[task]
                    moved[task] = place
                    left -= own[number]
                    if before < 0:
                        head = after
                    else:
                        following[before] = after
                    if (room - smallest) & guard != guard:
                        break
                else:
                    before = at
                at = after
            if head >= end or not packing.fits(left, suffix[place + 1]):
                break
        return moved, head >= end

    def drop(self, gone: int, moved: Mapping[int, int]) -> None:
        """Empty a host: its tasks and those behind it go where ``sweep`` said."""
        for task, place in moved.items():
            self._host_of[task] = place
        self.dropped.add(gone)
        self._add_up()
