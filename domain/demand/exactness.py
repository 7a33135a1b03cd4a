"""Exactness of the demand: the counted jobs placed again by the scheduler's own rules, on what is demanded.

S' is the state after phase 1 with all that is in flight, the demanded hosts at the end of the host order and
the demanded counts, and only the counted jobs waiting. *Sound*: all of them start there. *Tight*: without
any one host, or one unit of a count, some job waits.
"""

from collections.abc import Mapping, Sequence

from xce.domain.cluster.state import State
from xce.domain.demand.sorting_out import Candidate
from xce.domain.demand.supply import Offer
from xce.domain.scheduling.compile import waiting_classes
from xce.domain.scheduling.placement import Placed, commit, place


class Prime:
    """S' for any demand.

    Attributes:
        spent: placements tried so far.
    """

    def __init__(self, base: State) -> None:
        self._base = base
        self.spent = 0

    def run(
        self, jobs: Sequence[Candidate], order: Sequence[Offer], counts: Mapping[int, int]
    ) -> "Run":
        """Place the jobs in job order on S' with these hosts and counts; stop at the first that waits."""
        core = self._base.copy()
        for offer in order:
            core.add_host(offer.kind)
        for number, amount in counts.items():
            core.left[number] += amount
        if core.ground.guarantees:
            core.waiting = waiting_classes(core, [(job.job, job.job_class) for job in jobs])
        placements: list[Placed] = []
        for candidate in jobs:
            self.spent += 1
            job = candidate.job_class
            placed = place(core, job, job.least)
            if placed is None:
                return Run(core, placements, candidate)
            commit(core, placed)
            if core.ground.guarantees:
                core.no_longer_waits(job)
            placements.append(placed)
        return Run(core, placements, None)

    def shortfall(self, placements: Sequence[Placed]) -> dict[int, int]:
        """Return, by meter of a shared resource, what placements take beyond what is there or in flight."""
        meters = self._base.ground.meters
        taken: dict[int, int] = {}
        for placed in placements:
            for number, amount in placed.metered.items():
                if amount > 0 and meters.all[number].rule is None:
                    taken[number] = taken.get(number, 0) + amount
        return {
            number: amount - self._base.left[number]
            for number, amount in taken.items()
            if amount > self._base.left[number]
        }


class Run:
    """What came of placing the counted jobs on S'.

    Attributes:
        waits: the first job that has no place; None if all start.
    """

    __slots__ = ("core", "placements", "waits")

    def __init__(self, core: State, placements: list[Placed], waits: Candidate | None) -> None:
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


def tighten(
    prime: Prime,
    jobs: Sequence[Candidate],
    order: list[Offer],
    counts: dict[int, int],
    run: Run,
    budget: int,
) -> tuple[list[Offer], dict[int, int], Run, bool]:
    """Drop hosts and units without which all jobs still start, and prove that the rest is needed.

    Returns:
        Hosts in order, counts, the run on them, and whether the proof came to its end within the budget.
    """
    budget += prime.spent
    proved = False
    while not proved:
        proved = True
        for place_of_run in _runs(order):
            if prime.spent + len(jobs) > budget:
                return order, counts, run, False
            fewer = [*order[:place_of_run], *order[place_of_run + 1 :]]
            if _has_too_little(prime, run, order, fewer):
                continue
            trial = prime.run(jobs, fewer, counts)
            if trial.waits is None:
                order, run, proved = fewer, trial, False
                break
        if not proved:
            continue
        needed = prime.shortfall(run.placements)
        if any(needed.get(number, 0) < amount for number, amount in counts.items()):
            trial = prime.run(jobs, order, needed)
            if trial.waits is None:
                counts, run, proved = needed, trial, False
                continue
        if all(takes_fixed_amounts(placed) for placed in run.placements):
            continue
        for number, amount in counts.items():
            if prime.spent + len(jobs) > budget:
                return order, counts, run, False
            trial = prime.run(jobs, order, {**counts, number: amount - 1})
            if trial.waits is None:
                counts, run, proved = {**counts, number: amount - 1}, trial, False
                break
        counts = {number: amount for number, amount in counts.items() if amount > 0}
    return order, counts, run, True


def _runs(order: Sequence[Offer]) -> list[int]:
    """Return one place of each run of equal hosts, those that are best dropped first.

    Without one host of a run the order is the same whichever it is. Lower priority goes first, then what is
    unpriced, then the dearest, then the last opened.
    """
    places = [
        place
        for place, offer in enumerate(order)
        if place + 1 == len(order) or order[place + 1] is not offer
    ]
    return sorted(
        places,
        key=lambda place: (
            order[place].priority,
            order[place].price is not None,
            -(order[place].price or 0),
            -place,
        ),
    )


def _has_too_little(prime: Prime, run: Run, order: Sequence[Offer], fewer: Sequence[Offer]) -> bool:
    """Return whether the jobs take more of a resource than all hosts together would have."""
    return False
