"""Whether the counted jobs still start on other new hosts, found out fast where jobs are simple.

A simple job takes the first host with room for each of its tasks, so without one host all jobs on the hosts
before it stay where they are. The others, in job order, fill the hosts behind it one after the other; that
is the same as placing job by job, and needs no search.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from xce.domain.demand.filling import are_fillable
from xce.domain.demand.offer import Offer
from xce.domain.demand.one_task_each import OneTaskEach
from xce.domain.demand.waiting_tasks import WaitingTasks
from xce.domain.scheduling.placement import Placed

#: Where tasks that move go, by place of the host.
Moved = Mapping[int, Sequence[int]]

_NOTHING: Final[Sequence[int]] = ()


def are_simple(placements: Sequence[Placed]) -> bool:
    """Return whether all jobs take the first host with room for each of their tasks, and nothing else."""
    return isinstance(placements, OneTaskEach) or are_fillable(
        [placed.job for placed in placements]
    )


class PackedProof:
    """The new hosts of a demand with the tasks on them.

    Attributes:
        dropped: places of hosts that were taken out.
        spent: tasks that were placed anew.
    """

    def __init__(
        self, placements: Sequence[Placed], order: Sequence[Offer], first_new: int
    ) -> None:
        self._placements = OneTaskEach.of(placements)
        self._order = list(order)
        self._first_new = first_new
        self.dropped: set[int] = set()
        self.spent = 0
        self._tasks = tasks = WaitingTasks(self._placements.jobs)
        on: list[list[int]] = [[] for _ in order]
        for job, place in enumerate(self._placements.place_of):
            if place >= first_new:
                on[place - first_new].append(job)
        for job, places in self._placements.more_of.items():
            for place in places:
                if place >= first_new:
                    on[place - first_new].append(job)
        self._on: list[Sequence[int]] = [*on]
        self._changed = len(order)
        tasks.take_all()
        self._used: list[tuple[int, int]] = [tasks.sum_of(jobs) for jobs in on]
        self._behind: list[tuple[int, int]] = []
        self._add_up()

    @property
    def order(self) -> list[Offer]:
        """Return the hosts that are left."""
        if not self.dropped:
            return self._order
        return [offer for place, offer in enumerate(self._order) if place not in self.dropped]

    @property
    def placements(self) -> OneTaskEach:
        """Return where the jobs are on the hosts that are left."""
        changed = self._first_new + self._changed
        known = self._placements
        moved: dict[int, list[int]] = {}
        left = [jobs for place, jobs in enumerate(self._on) if place not in self.dropped]
        for place, jobs in enumerate(left[self._changed :], changed):
            for job in jobs:
                places = moved.get(job)
                if places is None:
                    places = moved[job] = [at for at in known.places(job) if at < changed]
                places.append(place)
        return known.moved(moved)

    def _add_up(self) -> None:
        """Add up what the hosts behind each place have."""
        self._behind = self._room_behind(
            [None if at in self.dropped else offer for at, offer in enumerate(self._order)]
        )

    def _room_behind(self, order: Sequence[Offer | None]) -> list[tuple[int, int]]:
        rest = fine = 0
        behind = [(0, 0)] * len(order)
        for place in range(len(order) - 1, -1, -1):
            behind[place] = (rest, fine)
            offer = order[place]
            if offer is not None:
                more, more_fine = self._tasks.capacity(offer.kind)
                rest, fine = rest + more, fine + more_fine
        return behind

    def sweep(self, places: Iterable[int], budget: int) -> Iterator[tuple[int, Moved]]:
        """Yield the places, from the last to the first, without whose host all jobs still start.

        With each comes where the tasks go that move. Between two of them ``drop`` may be called for the one
        just yielded. Hosts keep their numbers, those that are dropped are empty from then on. It ends early
        when more than the budget is spent.
        """
        wanted = set(places)
        tasks = self._tasks
        rest = fine = 0
        for place in range(len(self._order) - 1, -1, -1):
            if self.spent > budget:
                break
            tasks.give_back(self._on[place])
            used, used_fine = self._used[place]
            rest, fine = rest + used, fine + used_fine
            if place in wanted and tasks.may_hold(self._behind[place], rest, fine):
                hosts = [
                    (at, self._order[at])
                    for at in range(place + 1, len(self._order))
                    if at not in self.dropped
                ]
                moved = self._pour(hosts, self._behind, rest, fine)
                if moved is not None:
                    yield place, moved
                    if place in self.dropped:
                        self._used = [
                            *self._used[:place],
                            *(tasks.sum_of(jobs) for jobs in self._on[place:]),
                        ]
        tasks.take_all()

    def holds(self, order: Sequence[Offer], start: int) -> bool:
        """Return whether other new hosts would hold all tasks of the hosts from a place on."""
        tasks = self._tasks
        behind = self._room_behind([None, *order])
        rest = sum(used for used, _ in self._used[start:])
        fine = sum(fine for _, fine in self._used[start:])
        if not tasks.may_hold(behind[0], rest, fine):
            return False
        for jobs in self._on[start:]:
            tasks.give_back(jobs)
        moved = self._pour(list(enumerate(order)), behind[1:], rest, fine)
        tasks.take_all()
        return moved is not None

    def exchange(self, start: int, order: Sequence[Offer]) -> None:
        """Put the tasks of the hosts from a place on onto others, which hold them."""
        tasks = self._tasks
        for jobs in self._on[start:]:
            tasks.give_back(jobs)
        behind = self._room_behind(order)
        rest = sum(used for used, _ in self._used[start:])
        fine = sum(fine for _, fine in self._used[start:])
        moved = self._pour(list(enumerate(order)), behind, rest, fine)
        assert moved is not None, "they were found to hold them"
        tasks.take_all()
        self._order = [*self._order[:start], *order]
        self._on = [*self._on[:start], *(moved.get(at, _NOTHING) for at in range(len(order)))]
        self._used = [*self._used[:start], *(tasks.sum_of(jobs) for jobs in self._on[start:])]
        self._changed = start
        self._placements = self.placements
        self._changed = len(self._order)
        self._add_up()

    def _pour(
        self,
        hosts: Sequence[tuple[int, Offer]],
        behind: Sequence[tuple[int, int]],
        rest: int,
        fine: int,
    ) -> dict[int, list[int]] | None:
        """Fill hosts with the waiting tasks; return where they go, None if one finds no place.

        It ends once what is left is more than all hosts behind could hold. The tasks wait again after it.
        ``rest`` and ``fine``: what they need together.
        """
        tasks = self._tasks
        moved: dict[int, list[int]] = {}
        for place, offer in hosts:
            jobs = tasks.filling(offer.kind)
            tasks.take(jobs)
            self.spent += len(jobs)
            moved[place] = jobs
            used, used_fine = tasks.sum_of(jobs)
            rest, fine = rest - used, fine - used_fine
            if not tasks.may_hold(behind[place], rest, fine):
                break
        is_done = tasks.first() is None
        for jobs in moved.values():
            tasks.give_back(jobs)
        return moved if is_done else None

    def drop(self, gone: int, moved: Moved) -> None:
        """Empty a host: its tasks and those behind it go where ``sweep`` said."""
        self.dropped.add(gone)
        self._changed = min(self._changed, gone)
        self._on[gone] = _NOTHING
        for place in range(gone + 1, len(self._order)):
            self._on[place] = moved.get(place, _NOTHING)
        self._add_up()
