"""Whether the counted jobs still start without one demanded host, found out fast where jobs are simple.

A simple job takes the first host with room for each of its tasks, so without one host all jobs on the hosts
before it stay where they are. The others, in job order, fill the hosts behind it one after the other; that
is the same as placing job by job, and needs no search.
"""

from collections.abc import Sequence

from xce.domain.cluster.kinds import HostKind
from xce.domain.demand.lookahead import is_simple
from xce.domain.demand.packing import Packing
from xce.domain.demand.supply import Offer, tasks_on_empty
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
        spent: tasks that were placed anew.
    """

    def __init__(
        self, placements: Sequence[Placed], order: Sequence[Offer], first_new: int
    ) -> None:
        self._order = list(order)
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
        self._on_kind: dict[HostKind, tuple[int, list[int]]] = {}
        self._suffix: list[int] = []
        self._used: list[int] = []
        self._add_up()

    @property
    def tasks(self) -> int:
        """Return how many tasks are on new hosts."""
        return len(self._class_of)

    @property
    def order(self) -> list[Offer]:
        """Return the hosts as they are now."""
        return list(self._order)

    def _add_up(self) -> None:
        """Add up what hosts have, and what is on them, from each place to the end."""
        used = [0] * len(self._order)
        for number, host in zip(self._class_of, self._host_of, strict=True):
            used[host] += self._needs[number]
        self._suffix = [0] * (len(self._order) + 1)
        self._used = [0] * (len(self._order) + 1)
        for place in range(len(self._order) - 1, -1, -1):
            capacity, _ = self._kind(self._order[place].kind)
            self._suffix[place] = self._suffix[place + 1] + capacity
            self._used[place] = self._used[place + 1] + used[place]

    def _kind(self, kind: HostKind) -> tuple[int, list[int]]:
        known = self._on_kind.get(kind)
        if known is None:
            packing = self._packing
            needs = [
                need if tasks_on_empty(job.alternatives[0].parts[0], kind, 1) else packing.too_much
                for job, need in zip(self._classes, self._needs, strict=True)
            ]
            known = self._on_kind[kind] = (packing.pack(kind.totals), needs)
        return known

    def without(self, gone: int) -> list[int] | None:
        """Return on which host each task is if one host is not there, None if one finds no place.

        Hosts keep their numbers.
        """
        packing, suffix = self._packing, self._suffix
        guard, smallest = packing.guard, self._smallest
        if not packing.fits(self._used[gone], suffix[gone + 1]):
            return None
        tasks = [task for task, host in enumerate(self._host_of) if host >= gone]
        following = list(range(1, len(tasks) + 1))
        head, left, end = 0, self._used[gone], len(tasks)
        class_of, group_of = self._class_of, self._group_of
        placed = self._host_of[:]
        for place in range(gone + 1, len(self._order)):
            capacity, needs = self._kind(self._order[place].kind)
            room = capacity | guard
            at, before, group = head, -1, -1
            while at < end:
                task = tasks[at]
                rest = room - needs[class_of[task]]
                if rest & guard == guard and group_of[task] != group:
                    room, group = rest, group_of[task]
                    placed[task] = place
                    left -= self._needs[class_of[task]]
                    self.spent += 1
                    at = following[at]
                    if before < 0:
                        head = at
                    else:
                        following[before] = at
                    if (room - smallest) & guard != guard:
                        break
                else:
                    before = at
                    at = following[at]
            if head >= end:
                return placed
            if not packing.fits(left, suffix[place + 1]):
                return None
        return placed if head >= end else None

    def drop(self, gone: int, placed: Sequence[int]) -> None:
        """Take a host out; ``placed`` is what ``without`` said."""
        del self._order[gone]
        self._host_of = [host - 1 if host > gone else host for host in placed]
        self._add_up()
