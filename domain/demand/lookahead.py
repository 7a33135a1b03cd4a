"""What a new host would hold: the waiting jobs, in job order, that would fill it up.

Trying jobs in order on hosts in order is the same as filling one host after the other, each with the jobs in
order that still fit. So the jobs that a host opened now will hold can be known before it is opened, and a
template is worth what they are worth. Jobs that this cannot see (alternatives, gangs that may spread in
several ways, limits about hosts) are not counted on; they are placed all the same.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from xce.domain.cluster.kinds import HostKind
from xce.domain.cluster.state import State
from xce.domain.demand.offer import Offer
from xce.domain.demand.packing import Packing
from xce.domain.demand.sorting_out import Candidate
from xce.domain.demand.worth import dual_prices
from xce.domain.scheduling.classes import JobClass

#: How many waiting jobs are looked at to fill a host when templates are compared, and when one is chosen.
_COMPARED: Final = 400
_FILLED: Final = 4_000
#: Hosts of one gang that are filled one by one; the others are taken to fill up as well as these.
_GANG_HOSTS: Final = 4


class Ahead:
    """The jobs that wait, and what of them the hosts opened so far will hold."""

    def __init__(self, core: State, candidates: Sequence[Candidate]) -> None:
        self._core = core
        self._classes: list[JobClass] = []
        self._class_of: list[int] = []
        self._items: dict[int, range] = {}
        self._counts: dict[JobClass, int] = {}
        self._list(candidates)
        amounts = [amounts_of(job) for job in self._classes]
        self._packing = Packing(list(dict.fromkeys(name for need in amounts for name in need)))
        self._needs = [self._packing.pack(need) for need in amounts]
        self._smallest = self._packing.pack(
            {name: min(need.get(name, 0) for need in amounts) for name in self._packing.resources}
        )
        self._are_plain = select_nothing(self._classes)
        self._next: list[int] = list(range(1, len(self._class_of) + 1))
        self._head = 0
        self._taken = bytearray(len(self._class_of))
        self._needs_on: dict[HostKind, list[int]] = {}
        self._prices: dict[int, dict[str, float]] = {}
        self._worths: dict[int, list[float]] = {}
        self._bounds: dict[int, dict[int, float]] = {}
        self._capacity: dict[HostKind, int] = {}
        self._fill_what_is_there()

    def _list(self, candidates: Sequence[Candidate]) -> None:
        """List the jobs that can be seen, in job order, as far as shared amounts and limits reach."""
        numbers: dict[JobClass, int] = {}
        left = self._core.left[:]
        counts = self._counts
        for candidate in candidates:
            job = candidate.job_class
            if candidate.left_out is None:
                counts[job] = counts.get(job, 0) + 1
            number = numbers.get(job)
            if number is None:
                if candidate.left_out is not None or not is_simple(job):
                    continue
                number = numbers[job] = len(self._classes)
                self._classes.append(job)
            elif candidate.left_out is not None:
                continue
            fixed = job.alternatives[0].parts[0].fixed
            if fixed:
                if any(task * job.least + once > left[meter] for meter, task, once in fixed):
                    continue
                for meter, task, once in fixed:
                    left[meter] -= task * job.least + once
            start = len(self._class_of)
            # Each host of a gang holds one of its tasks.
            if job.least == 1:
                self._class_of.append(number)
            else:
                self._class_of += [number] * job.least
            self._items[candidate.place] = range(start, len(self._class_of))

    def _fill_what_is_there(self) -> None:
        """Let the hosts that are there, and those in flight, be filled first."""
        core = self._core
        real = len(core.ground.hosts.hosts)
        first = 0 if self._fit_somewhere(real) else real
        owned = {*core.ground.hosts.exclusive_to, *core.ground.hosts.available_until}
        for place in range(first, core.count):
            if core.is_open(place) and place not in owned and place not in core.shut:
                free = {name: core.column(name)[place] for name in self._packing.resources}
                self._commit(self._fill(core.kind(place), self._packing.pack(free), (), _FILLED))

    def _fit_somewhere(self, real: int) -> bool:
        """Return whether a job that is listed has room on a real host: it waits for something else."""
        core = self._core
        for job in self._classes:
            part = job.alternatives[0].parts[0]
            amounts = part.request.bucket(1, first=True)
            if core.first_fit(part.scope.base(core.ground), 0, amounts, core.shut) >= 0:
                return True
        return False

    def prices(self, tier: int, offers: Sequence[Offer]) -> dict[str, float]:
        """Return what a unit of each resource is worth where these templates are for sale."""
        known = self._prices.get(tier)
        if known is None:
            priced = [offer for offer in offers if offer.price is not None]
            names = list(dict.fromkeys(name for offer in priced for name in offer.kind.totals))
            need = dict.fromkeys(names, 0.0)
            for job, count in self._counts.items():
                for name, amount in total_amounts(job).items():
                    if name in need:
                        need[name] += float(amount * count)
            duals = dual_prices(
                [*need.values()],
                [[float(offer.kind.totals.get(name, 0)) for name in names] for offer in priced],
                [float(offer.price or 0) for offer in priced],
            )
            known = self._prices[tier] = dict(zip(names, duals, strict=True))
            self._bounds[tier] = {
                offer.number: sum(
                    known.get(name, 0.0) * total for name, total in offer.kind.totals.items()
                )
                / float(offer.price)
                if offer.price
                else float("inf")
                for offer in priced
            }
            self._worths[tier] = [
                sum(known.get(name, 0.0) * amount for name, amount in amounts_of(job).items())
                for job in self._classes
            ]
        return known

    def bounds(self, tier: int) -> dict[int, float]:
        """Return, by number of the template, the most that a full host is worth for each unit of its price."""
        return self._bounds[tier]

    def worth_of(self, job: JobClass, prices: Mapping[str, float]) -> float:
        """Return what all that a job takes of hosts is worth."""
        return sum(prices.get(name, 0.0) * amount for name, amount in total_amounts(job).items())

    def worth_of_used(
        self, used: Sequence[Mapping[str, int]], prices: Mapping[str, float]
    ) -> float:
        """Return what a job's part on new hosts is worth."""
        return sum(
            prices.get(name, 0.0) * amount for taken in used for name, amount in taken.items()
        )

    def worth_of_fill(
        self, kind: HostKind, used: Sequence[Mapping[str, int]], tier: int, opener: int
    ) -> float:
        """Return what the jobs are worth that would fill new hosts, of which something is used already.

        ``opener``: the place of the candidate that opens the hosts; it is not counted.
        """
        total = 0.0
        worths = self._worths[tier]
        gone = set(self._items.get(opener, ()))
        compared = used[:_GANG_HOSTS]
        for taken in compared:
            for item, _ in self._fill(kind, self._room(kind, taken), gone, _COMPARED):
                gone.add(item)
                total += worths[self._class_of[item]]
        return total * len(used) / len(compared)

    def open(self, kind: HostKind, used: Sequence[Mapping[str, int]]) -> None:
        """Let new hosts be filled by the waiting jobs: those are counted on no more."""
        for taken in used:
            self._commit(self._fill(kind, self._room(kind, taken), (), _FILLED))

    def placed(self, place: int) -> None:
        """Record that a candidate has a place."""
        for item in self._items.get(place, ()):
            self._taken[item] = 1

    def _room(self, kind: HostKind, used: Mapping[str, int]) -> int:
        capacity = self._capacity.get(kind)
        if capacity is None:
            capacity = self._capacity[kind] = self._packing.pack(kind.totals)
        return capacity - self._packing.pack(used)

    def _commit(self, filled: Iterable[tuple[int, int]]) -> None:
        for item, before in filled:
            self._taken[item] = 1
            if before < 0:
                self._head = self._next[item]
            else:
                self._next[before] = self._next[item]

    def _fill(
        self, kind: HostKind, room: int, gone: Collection[int], most: int
    ) -> list[tuple[int, int]]:
        """Return the items that fill a host up, each with the last item before it that is not among them."""
        needs = self._on(kind)
        guard, smallest = self._packing.guard, self._smallest
        class_of, following, taken = self._class_of, self._next, self._taken
        filled: list[tuple[int, int]] = []
        room |= guard
        if (room - smallest) & guard != guard:
            return filled
        item, before, end = self._head, -1, len(class_of)
        while item < end:
            if taken[item]:
                # Placed elsewhere meanwhile: out of the list.
                if before < 0:
                    self._head = following[item]
                else:
                    following[before] = following[item]
                item = following[item]
                continue
            most -= 1
            rest = room - needs[class_of[item]]
            if rest & guard == guard and item not in gone:
                room = rest
                filled.append((item, before))
                if (room - smallest) & guard != guard:
                    break
            else:
                before = item
            if most <= 0:
                break
            item = following[item]
        return filled

    def _on(self, kind: HostKind) -> list[int]:
        """Return what each class needs on a host of this kind, more than anything has if it does not match."""
        if self._are_plain:
            return self._needs
        known = self._needs_on.get(kind)
        if known is None:
            known = self._needs_on[kind] = needs_on(
                kind, self._classes, self._needs, self._packing.too_much
            )
        return known


def needs_on(
    kind: HostKind, classes: Sequence[JobClass], needs: Sequence[int], too_much: int
) -> list[int]:
    """Return what simple jobs need on a host of a kind, ``too_much`` where it is not what they select."""
    return [
        need if job.alternatives[0].parts[0].request.selector.matches(kind) else too_much
        for job, need in zip(classes, needs, strict=True)
    ]


def select_nothing(classes: Iterable[JobClass]) -> bool:
    """Return whether simple jobs take any kind of host."""
    return all(job.alternatives[0].parts[0].request.selector.select is None for job in classes)


def is_simple(job: JobClass) -> bool:
    """Return whether each task of a job can be seen as a bucket of its own that only room can stop."""
    if len(job.alternatives) != 1 or job.outside:
        return False
    parts = job.alternatives[0].parts
    if len(parts) != 1 or not parts[0].is_free:
        return False
    request = parts[0].request
    return not (request.selector.same or request.span.one_host or request.span.ptile)


def amounts_of(job: JobClass) -> dict[str, int]:
    """Return what one task of a simple job takes of its host, at least something."""
    amounts = dict(job.alternatives[0].parts[0].request.bucket(1, first=True))
    return amounts or {"slots": 0}


def total_amounts(job: JobClass) -> dict[str, int]:
    """Return what the first alternative of a job takes of hosts in all, amounts a host taken once."""
    amounts: dict[str, int] = {}
    for part in job.alternatives[0].parts:
        tasks = part.tasks or job.least
        request = part.request
        for name, amount in request.task:
            amounts[name] = amounts.get(name, 0) + amount * tasks
        for name, amount in (*request.host, *request.job):
            amounts[name] = amounts.get(name, 0) + amount
    return amounts
