"""Exactness of the demand: the counted jobs placed again by the scheduler's own rules, on what is demanded.

S' is the state after phase 1 with all that is in flight, the demanded hosts at the end of the host order and
the demanded counts, and only the counted jobs waiting. *Sound*: all of them start there. *Tight*: without
any one host, or one unit of a count, some job waits.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from xce.domain.cluster.state import State
from xce.domain.demand.offer import Offer
from xce.domain.demand.one_task_each import OneTaskEach
from xce.domain.demand.packed_proof import Moved, PackedProof, are_simple
from xce.domain.demand.sorting_out import Candidate
from xce.domain.scheduling.compile import waiting_classes
from xce.domain.scheduling.placement import Placed, commit, place

#: How often counts are set anew to what the jobs take of them.
_REPEATS: Final = 4
#: Of more hosts than these only so many of the last are looked at as so many tasks can be placed for.
_PROVED_HOSTS: Final = 200
_MOVES_MAX: Final = 10_000
#: Looking at so many hosts with room is charged as one placement.
_LOOKED_AT_FOR_ONE: Final = 100
#: So many placements that are taken over are charged as one that is looked for.
_KEPT_FOR_ONE: Final = 20


class Prime:
    """S' for any demand.

    Attributes:
        spent: placements tried so far.
        work: the same with all that goes with them.
        first_new: place of the first demanded host.
    """

    def __init__(self, base: State) -> None:
        self._base = base
        self.spent = 0
        self.work = 0
        self.first_new = base.count

    def run(
        self,
        jobs: Sequence[Candidate],
        order: Sequence[Offer],
        counts: Mapping[int, int],
        kept: Sequence[Placed] = (),
    ) -> "Run":
        """Place the jobs in job order on S' with these hosts and counts; stop at the first that waits.

        ``kept``: where the first jobs are placed, if that is known.
        """
        core = self._with(order, counts)
        if core.ground.guarantees:
            core.waiting = waiting_classes(core, [(job.job, job.job_class) for job in jobs])
        placements: list[Placed] = []
        self.work += len(kept) // _KEPT_FOR_ONE
        guarantees = bool(core.ground.guarantees)
        for placed in kept:
            for claim in placed.claims:
                core.debit(claim.place, claim.amounts)
            job = placed.job
            if guarantees or placed.metered or job.placed or placed.alternative.is_exclusive:
                commit(core, placed)
                if guarantees:
                    core.no_longer_waits(job)
            else:
                core.busy.update([claim.place for claim in placed.claims])
        placements += kept
        for candidate in jobs[len(kept) :]:
            job = candidate.job_class
            given = place(core, job, job.least)
            self.spent += 1
            self.work += 1 + core.looked_at // _LOOKED_AT_FOR_ONE
            core.looked_at %= _LOOKED_AT_FOR_ONE
            if given is None:
                return Run(core, placements, candidate)
            commit(core, given)
            if core.ground.guarantees:
                core.no_longer_waits(job)
            placements.append(given)
        return Run(core, placements, None)

    def parted(
        self, jobs: Sequence[Candidate], order: Sequence[Offer], counts: Mapping[int, int]
    ) -> tuple[list[Candidate], list[Candidate]]:
        """Return the jobs that start on S', and those that wait there; only where no guarantees are kept.

        A job that waits takes nothing, so without it the others are placed the same.
        """
        core = self._with(order, counts)
        starting: list[Candidate] = []
        waiting: list[Candidate] = []
        for candidate in jobs:
            given = place(core, candidate.job_class, candidate.job_class.least)
            if given is None:
                waiting.append(candidate)
                continue
            commit(core, given)
            starting.append(candidate)
        return starting, waiting

    def _with(self, order: Sequence[Offer], counts: Mapping[int, int]) -> State:
        core = self._base.copy()
        for offer in order:
            core.add_host(offer.kind)
        for number, amount in counts.items():
            core.left[number] += amount
        return core

    def settled(
        self,
        jobs: Sequence[Candidate],
        order: Sequence[Offer],
        counts: Mapping[int, int],
        kept: Sequence[Placed] = (),
    ) -> "tuple[dict[int, int], Run] | None":
        """Return counts, and the run on them, with which all jobs start and take just these counts.

        It begins with the given ones, and goes on with what the jobs took of them.
        """
        amounts = dict(counts)
        for _ in range(_REPEATS):
            run = self.run(jobs, order, amounts, kept)
            if run.waits is not None:
                return None
            needed = self.shortfall(run.placements)
            if needed == {number: amount for number, amount in amounts.items() if amount > 0}:
                return needed, run
            amounts = needed
        return None

    def shortfall(self, placements: Sequence[Placed]) -> dict[int, int]:
        """Return, by meter of a shared resource, what placements take beyond what is there or in flight."""
        meters = self._base.ground.meters
        taken: dict[int, int] = {}
        if isinstance(placements, OneTaskEach):
            taken = placements.taken()
        else:
            for placed in placements:
                for number, amount in placed.metered.items():
                    taken[number] = taken.get(number, 0) + amount
        return {
            number: amount - self._base.left[number]
            for number, amount in taken.items()
            if amount > 0 and amount > self._base.left[number] and meters.all[number].rule is None
        }


class Run:
    """What came of placing the counted jobs on S'.

    Attributes:
        waits: the first job that has no place; None if all start.
    """

    __slots__ = ("core", "placements", "waits")

    def __init__(self, core: State, placements: Sequence[Placed], waits: Candidate | None) -> None:
        self.core = core
        self.placements = placements
        self.waits = waits


def is_stable(placed: Placed) -> bool:
    """Return whether hosts added behind all others cannot change where a job is placed.

    That is so if it takes the first host for each bucket of the only or the very first plan of its first
    alternative: what comes later in the host order is never looked at.
    """
    if placed.alternative.number > 0:
        return False
    for part in placed.alternative.parts:
        if part.allocator is not None:
            return False
        request = part.request
        if request.selector.order or request.selector.same:
            return False
        span = request.span
        is_fixed = span.one_host or span.one_task_a_host or span.ptile is not None
        if (
            not is_fixed
            and (part.tasks or placed.tasks) > 1
            and len(placed.claims) > len(placed.alternative.parts)
        ):
            return False
    return True


def takes_fixed_amounts(placed: Placed) -> bool:
    """Return whether a job takes the same of every shared resource wherever it is placed."""
    if len(placed.job.alternatives) > 1:
        return False
    return not any(part.request.shared_host for part in placed.alternative.parts)


class Tightening:
    """A demand that is made tight: hosts and units without which all jobs still start are dropped.

    Attributes:
        order, counts, run: the demand as it is now, and its jobs on S'.
        is_proved: whether it is proved that the rest is needed.
    """

    def __init__(
        self,
        prime: Prime,
        jobs: Sequence[Candidate],
        order: list[Offer],
        counts: dict[int, int],
        run: Run,
        budget: int,
    ) -> None:
        self._prime = prime
        self._jobs = jobs
        self._limit = prime.spent + budget
        self.order: list[Offer] = order
        self.counts = counts
        self.run = run
        self.is_proved = False

    def tighten(self, proof: PackedProof | None = None) -> None:
        """Drop what is spare, and prove that the rest is not, within the budget.

        ``proof``: the hosts with the tasks on them, where that is known.
        """
        while True:
            if proof is not None or are_simple(self.run.placements):
                hosts = self._drop_hosts_of_simple_jobs(proof)
                proof = None
            else:
                hosts = self._drop_hosts()
            if hosts is None:
                return
            units = self._drop_units()
            if units is None:
                return
            if not units and not hosts:
                self.is_proved = True
                return

    def _drop_hosts(self) -> bool | None:
        """Drop spare hosts; return whether there were any, None when the budget was spent.

        Of many hosts the last are looked at first: without one of them most jobs stay where they are.
        """
        dropped = False
        prime = self._prime
        keep = _Kept(prime.first_new, self.run.placements)
        lacking = _Lacking(prime.first_new, self.order, self.run)
        work_limit = prime.work + _MOVES_MAX
        while True:
            places = _runs(self.order)
            are_many = len(self.order) > _PROVED_HOSTS
            if are_many:
                places.sort(reverse=True)
            for at in places:
                if prime.spent >= self._limit or (are_many and prime.work >= work_limit):
                    return None
                if lacking.without(at):
                    continue
                fewer = [*self.order[:at], *self.order[at + 1 :]]
                settled = prime.settled(self._jobs, fewer, self.counts, keep.without(at))
                if settled is not None:
                    self.order, dropped = fewer, True
                    self.counts, self.run = settled
                    keep = _Kept(prime.first_new, self.run.placements)
                    lacking = _Lacking(prime.first_new, self.order, self.run)
                    break
            else:
                return dropped

    def _drop_hosts_of_simple_jobs(self, proof: PackedProof | None) -> bool | None:
        """The same where all jobs are simple, by filling hosts one after the other.

        Of several spare hosts the one goes first that is best dropped; where the budget cannot last for
        that, the one opened last.
        """
        prime, order = self._prime, self.order
        left = self._limit - prime.spent
        if len(order) > _PROVED_HOSTS:
            left = min(left, _MOVES_MAX)
        places = _runs(order)
        is_large = len(self._jobs) * len(places) > left
        if proof is None:
            proof = PackedProof(self.run.placements, order, prime.first_new)
        before = proof.spent
        spare: tuple[int, Moved] | None = None
        for at, moved in proof.sweep(places, before + left):
            if is_large:
                proof.drop(at, moved)
            elif spare is None or _goes_before(order, at, spare[0]):
                spare = at, moved
        if spare is not None:
            proof.drop(*spare)
        spent = proof.spent - before
        prime.spent += spent
        if not proof.dropped:
            return None if spent > left else False
        self.order = proof.order
        self.run = Run(self.run.core, proof.placements, None)
        return None if spent > left else True

    def _drop_units(self) -> bool | None:
        """Drop spare units of shared resources; return whether there were any, None without budget."""
        placements = self.run.placements
        if isinstance(placements, OneTaskEach) or all(map(takes_fixed_amounts, placements)):
            return False
        dropped = False
        for number in list(self.counts):
            while self.counts.get(number, 0) > 0:
                if self._prime.spent + len(self._jobs) > self._limit:
                    return None
                fewer = {**self.counts, number: self.counts[number] - 1}
                settled = self._prime.settled(self._jobs, self.order, fewer)
                if settled is None:
                    break
                self.counts, self.run = settled
                dropped = True
        return dropped


class _Lacking:
    """Whether there is less of something without one new host than the jobs take in all."""

    def __init__(self, first_new: int, order: Sequence[Offer], run: Run) -> None:
        self._first_new = first_new
        self._order = order
        self._core = run.core
        self._is_known = not any(
            len(placed.job.alternatives) > 1
            or any(part.request.host for part in placed.alternative.parts)
            for placed in run.placements
        )
        self._free: dict[str, int] = {}

    def without(self, gone: int) -> bool:
        """Return whether it is so without this host; where that is not simply known, it is not."""
        if not self._is_known:
            return False
        for name, total in self._order[gone].kind.totals.items():
            column = self._core.column(name)
            if name not in self._free:
                self._free[name] = sum(column)
            left = column[self._first_new + gone]
            if total > left and total - left > self._free[name] - left:
                return True
        return False


class _Kept:
    """Which placements stay as they are without one new host.

    A job that does not use a host is placed the same without it, as long as all jobs before it are. That does
    not hold for ``same``, whose groups are ordered by their first host, and for jobs outside of guarantees,
    which look at what is free in all.
    """

    def __init__(self, first_new: int, placements: Sequence[Placed]) -> None:
        self._first_new = first_new
        self._placements = [*placements]
        #: By placement, its last host in host order; by host, the first placement that uses it.
        self._reach: list[int] = []
        self._first_user: dict[int, int] = {}
        for number, placed in enumerate(self._placements):
            places = [claim.place for claim in placed.claims]
            self._reach.append(max(places, default=-1))
            for used in places:
                self._first_user.setdefault(used, number)
        self._holds = not any(
            placed.job.outside
            or any(
                part.request.selector.same
                for alternative in placed.job.alternatives
                for part in alternative.parts
            )
            for placed in self._placements
        )

    def without(self, gone: int) -> list[Placed]:
        """Return the placements up to the first that uses a host, on the hosts without it."""
        if not self._holds:
            return []
        place = self._first_new + gone
        kept = self._placements[: self._first_user.get(place)]
        return [
            placed if reach < place else placed.moved(place)
            for placed, reach in zip(kept, self._reach, strict=False)
        ]


def _runs(order: Sequence[Offer]) -> list[int]:
    """Return one place of each run of equal hosts, those that are best dropped first.

    Without one host of a run the order is the same whichever it is.
    """
    places = [
        place
        for place, offer in enumerate(order)
        if place + 1 == len(order) or order[place + 1] is not offer
    ]
    return sorted(places, key=lambda place: _dropping_key(order, place))


def _goes_before(order: Sequence[Offer], place: int, other: int) -> bool:
    return _dropping_key(order, place) < _dropping_key(order, other)


def _dropping_key(order: Sequence[Offer], place: int) -> tuple[int, bool, Decimal, int]:
    """Return what sorts hosts by how gladly they are dropped: low priority, unpriced, dear, opened late."""
    price = order[place].price
    return (order[place].priority, price is not None, -(price or Decimal(0)), -place)
