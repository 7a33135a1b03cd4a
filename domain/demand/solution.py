"""From candidates to a demand that is sound, tight and complete.

The catalog pass proposes; the scheduler's own rules on S' decide. Where hosts opened for a later job would
change the place of an earlier one, the pass is run again with those hosts there from the start, and if that
does not settle it, job by job, each step checked on S'.
"""

import itertools
from collections.abc import Sequence
from typing import Final

from xce.domain.cluster.state import State
from xce.domain.demand.catalog_pass import Pass
from xce.domain.demand.exactness import Prime, Run, Tightening, is_stable
from xce.domain.demand.exchange import EXCHANGED_MAX, cheaper, price_of
from xce.domain.demand.filling import GROUPS_MAX, MANNERS, SCARCE, TRIED_MAX, Filling, are_fillable
from xce.domain.demand.offer import Offer
from xce.domain.demand.one_task_each import OneTaskEach
from xce.domain.demand.packed_proof import PackedProof, are_simple
from xce.domain.demand.sorting_out import Candidate
from xce.domain.demand.supply import Supply
from xce.domain.demand.waiting_tasks import WaitingTasks
from xce.domain.scheduling.classes import JobClass

#: How often the pass is run again with the hosts of the run before.
_REPEATS: Final = 4
#: More candidates than these are not counted one by one where that would be needed.
_ONE_BY_ONE: Final = 300

#: Candidates that are not counted, with the reason where it is known.
LeftOut = list[tuple[Candidate, str | None]]


class Solution:
    """A sound demand.

    Attributes:
        jobs: the counted jobs, in job order.
        order: the demanded hosts, in the order opened.
        counts: by meter, the demanded amounts beyond what is in flight.
        run: the counted jobs on S' with this demand.
        left_out: the other candidates, with the reason where it is known.
        is_tight: whether it is proved that nothing of the demand is spare.
        proof: for simple jobs, the hosts with the tasks on them.
    """

    __slots__ = ("catalog", "counts", "is_tight", "jobs", "left_out", "order", "proof", "run")

    def __init__(
        self,
        catalog: Pass,
        jobs: Sequence[Candidate],
        order: list[Offer],
        counts: dict[int, int],
        run: Run,
        left_out: LeftOut,
    ) -> None:
        self.catalog = catalog
        self.jobs = jobs
        self.order: list[Offer] = order
        self.counts = counts
        self.run = run
        self.left_out = left_out
        self.is_tight = True
        self.proof: PackedProof | None = None


class Solver:
    """Finds the demand of one session.

    Attributes:
        base: the state after phase 1 with all that is in flight; not changed.
    """

    def __init__(
        self,
        base: State,
        supply: Supply,
        candidates: Sequence[Candidate],
        *,
        strict: bool,
        budget: int,
    ) -> None:
        self.base = base
        self._supply = supply
        self._candidates = candidates
        self._strict = strict
        self._budget = budget
        self._prime = Prime(base)

    def solve(self) -> Solution:
        """Return the demand of the candidates."""
        found = self._cheaper(self._by_filling() or self._sound())
        while True:
            before = len(found.order)
            self._tighten(found)
            failed = [job for job, why in found.left_out if why is None]
            if not failed or len(found.order) == before:
                return found
            # The room of hosts that were dropped may serve a job that found none.
            catalog, left_out = self._pass(found.order)
            better = self._settle(catalog, left_out)
            if better is None or len(better.jobs) <= len(found.jobs):
                return found
            found = better

    # simple jobs

    def _by_filling(self) -> Solution | None:
        """Return a sound demand where all jobs are simple, by filling one host after the other."""
        listed = self._listed()
        if listed is None:
            return None
        catalog, candidates, left_out = listed
        jobs = [candidate.job_class for candidate in candidates]
        best: Filling | None = None
        tries = max(1, min(len(MANNERS), TRIED_MAX // max(1, sum(job.least for job in jobs))))
        for manner in MANNERS[:tries]:
            tasks = WaitingTasks(jobs)
            if len(tasks.groups) > GROUPS_MAX:
                return None
            filling = Filling(catalog.core, self._supply, jobs, tasks, by_worth=True, manner=manner)
            if not filling.fill():
                continue
            if best is None or _is_cheaper(filling, best):
                best = filling
            if len(filling.opened) < 2 or filling.price is None:
                break
        if best is None:
            best = self._by_scarce_filling(catalog, jobs)
        return None if best is None else self._filled(catalog, candidates, left_out, best)

    def _by_scarce_filling(self, catalog: Pass, jobs: Sequence[JobClass]) -> Filling | None:
        """Return a filling where the supply is short: the first job comes first, unless fewer and larger hosts hold all."""
        tries = [(False, MANNERS[0])]
        if self._supply.rooms.are_shared:
            tries = [*((True, manner) for manner in SCARCE), *tries, (False, SCARCE[-1])]
        best: Filling | None = None
        for by_worth, manner in tries:
            filling = Filling(
                catalog.core,
                self._supply,
                jobs,
                WaitingTasks(jobs),
                by_worth=by_worth,
                manner=manner,
            )
            if not filling.fill():
                continue
            if by_worth:
                return filling
            if best is None or filling.left_out < best.left_out:
                best = filling
        return best

    def _listed(self) -> tuple[Pass, list[Candidate], LeftOut] | None:
        """Return the jobs that have their shared amounts, taken in a pass; None if any is not simple."""
        catalog = Pass(self._core_with_headroom(), self._supply)
        left = catalog.core.left
        candidates: list[Candidate] = []
        left_out: LeftOut = []
        if not are_fillable([job.job_class for job in self._candidates if job.left_out is None]):
            return None
        for candidate in self._candidates:
            job = candidate.job_class
            if candidate.left_out is not None:
                left_out.append((candidate, candidate.left_out))
                continue
            fixed = job.alternatives[0].parts[0].fixed
            if fixed:
                taken = [(meter, a_task * job.least + once) for meter, a_task, once in fixed]
                if any(amount > left[meter] and amount > 0 for meter, amount in taken):
                    catalog.give_up(job)
                    left_out.append((candidate, None))
                    continue
                for meter, amount in taken:
                    left[meter] -= amount
            candidates.append(candidate)
        return None if self._strict and left_out else (catalog, candidates, left_out)

    def _filled(
        self, catalog: Pass, candidates: list[Candidate], left_out: LeftOut, filling: Filling
    ) -> Solution | None:
        """Return the demand that comes of filling hosts."""
        failed = filling.failed
        if failed:
            if self._strict or any(job.alternatives[0].parts[0].fixed for job in failed):
                return None  # what they would have taken is there for others
            left_out += [
                (candidate, None)
                for candidate, place in zip(candidates, filling.place_of, strict=True)
                if place < 0
            ]
            left_out.sort(key=lambda each: each[0].place)
        more_of = filling.more_of
        if failed:
            placed = [number for number, place in enumerate(filling.place_of) if place >= 0]
            more_of = {n: more_of[old] for n, old in enumerate(placed) if old in more_of}
            jobs = [candidates[number] for number in placed]
            place_of = [filling.place_of[number] for number in placed]
        else:
            jobs, place_of = candidates, filling.place_of
        placements = OneTaskEach([job.job_class for job in jobs], place_of, more_of)
        if left_out:
            catalog.adopt(filling.opened, placements)
        for job in failed:
            catalog.give_up(job)
        counts = self._prime.shortfall(placements)
        run = Run(catalog.core, placements, None)
        return Solution(catalog, jobs, filling.opened, counts, run, left_out)

    # all others

    def _sound(self) -> Solution:
        catalog, left_out = self._pass(())
        counted = [counted.candidate for counted in catalog.counted]
        for _ in range(_REPEATS):
            found = self._settle(catalog, left_out)
            if found is not None:
                return found
            again, left_out = self._pass(catalog.opened)
            if [counted.candidate for counted in again.counted] != counted:
                break
            catalog = again
        return self._carefully()

    def _pass(self, opened: Sequence[Offer]) -> tuple[Pass, LeftOut]:
        """Run the catalog pass with some hosts there from the start; return it and whom it left out."""
        catalog = Pass(self._core_with_headroom(), self._supply, opened)
        left_out: LeftOut = []
        blocker: str | None = None
        for place, candidate in enumerate(self._candidates):
            if blocker is not None:
                left_out.append((candidate, f"behind job {blocker}"))
            elif candidate.left_out is not None:
                left_out.append((candidate, candidate.left_out))
            elif catalog.try_job(candidate, self._candidates, place):
                continue
            else:
                left_out.append((candidate, None))
            if self._strict and blocker is None:
                blocker = candidate.job.id
        return catalog, left_out

    def _core_with_headroom(self) -> State:
        core = self.base.copy()
        core.waiting = [waiting.copy() for waiting in self.base.waiting]
        for number, amount in self._supply.headroom.items():
            core.left[number] += amount
        return core

    def _settle(self, catalog: Pass, left_out: LeftOut) -> Solution | None:
        """Return what a pass proposes if it is sound on S'."""
        jobs = [counted.candidate for counted in catalog.counted]
        placements = [counted.placed for counted in catalog.counted]
        if not catalog.was_given and all(is_stable(placed) for placed in placements):
            counts = self._prime.shortfall(placements)
            run = Run(catalog.core, placements, None)
            return Solution(catalog, jobs, catalog.opened, counts, run, left_out)
        settled = self._prime.settled(jobs, catalog.opened, self._prime.shortfall(placements))
        if settled is None:
            settled = self._prime.settled(jobs, catalog.opened, self._supply.headroom)
        if settled is None:
            return None
        counts, run = settled
        return Solution(catalog, jobs, catalog.opened, counts, run, left_out)

    def _cheaper(self, found: Solution) -> Solution:
        """Exchange hosts for cheaper ones where all jobs are simple and all hosts of one priority."""
        order = found.order
        if len(order) == 1:
            return self._better_one(found)
        if not order or any(offer.price is None for offer in order):
            return found
        tier = next(tier for tier in self._supply.tiers if order[0] in tier)
        if any(offer not in tier for offer in order) or not are_simple(found.run.placements):
            return found
        proof = PackedProof(found.run.placements, order, self._prime.first_new)
        other = cheaper(proof, order, tier, self._supply.rooms)
        if price_of(other) < price_of(order):
            start = max(0, len(order) - EXCHANGED_MAX)
            proof.exchange(start, other[start:])
            found.order = other
            found.run = Run(found.run.core, proof.placements, None)
        found.proof = proof
        return found

    def _better_one(self, found: Solution) -> Solution:
        """Return the demand with its only host of the first template, in order of preference, that will do."""
        (chosen,) = found.order
        for tier in self._supply.tiers:
            for offer in tier:
                if offer is chosen:
                    return found
                settled = self._prime.settled(found.jobs, [offer], found.counts)
                if settled is not None and _by_no_later_alternative(settled[1], found.run):
                    found.order = [offer]
                    found.counts, found.run = settled
                    return found
        return found

    def _tighten(self, found: Solution) -> None:
        tightening = Tightening(
            self._prime, found.jobs, found.order, found.counts, found.run, self._budget
        )
        tightening.tighten(found.proof)
        found.order, found.counts, found.run = (
            tightening.order,
            tightening.counts,
            tightening.run,
        )
        found.is_tight = tightening.is_proved

    # where later jobs move earlier ones

    def _carefully(self) -> Solution:
        """Count a job only if all jobs so far start on S' with all hosts so far."""
        if len(self._candidates) > _ONE_BY_ONE:
            return self._without_those_that_wait()
        catalog = Pass(self._core_with_headroom(), self._supply, ())
        jobs: list[Candidate] = []
        left_out: LeftOut = []
        blocker: str | None = None
        for candidate in self._candidates:
            if blocker is not None:
                left_out.append((candidate, f"behind job {blocker}"))
                continue
            if candidate.left_out is not None:
                left_out.append((candidate, candidate.left_out))
            else:
                tried = self._with_one_more(catalog, jobs, candidate)
                if tried is not None:
                    catalog = tried
                    jobs.append(candidate)
                    continue
                left_out.append((candidate, None))
            if self._strict:
                blocker = candidate.job.id
        settled = self._prime.settled(jobs, catalog.opened, self._supply.headroom)
        assert settled is not None, "each step was checked"
        counts, run = settled
        return Solution(catalog, jobs, catalog.opened, counts, run, left_out)

    def _with_one_more(
        self, catalog: Pass, jobs: Sequence[Candidate], candidate: Candidate
    ) -> Pass | None:
        """Return a pass in which the jobs and one more are placed as S' places them, None if there is none."""
        more = [*jobs, candidate]
        for offers in itertools.chain(([],), catalog.options(candidate.job_class)):
            order = [*catalog.opened, *offers]
            if self._prime.settled(more, order, self._supply.headroom) is not None:
                again = Pass(self._core_with_headroom(), self._supply, order)
                if all(again.place_without_new(each) for each in more):
                    return again
        return None

    def _without_those_that_wait(self) -> Solution:
        """Count all jobs of a pass but those that S' leaves waiting, the first of them again and again."""
        catalog, left_out = self._pass(())
        jobs = [counted.candidate for counted in catalog.counted]
        if not self._strict and not self.base.ground.guarantees:
            jobs, waiting_jobs = self._prime.parted(jobs, catalog.opened, self._supply.headroom)
            left_out += [(job, None) for job in waiting_jobs]
        while True:
            settled = self._prime.settled(jobs, catalog.opened, self._supply.headroom)
            if settled is not None:
                counts, run = settled
                return Solution(catalog, jobs, catalog.opened, counts, run, left_out)
            run = self._prime.run(jobs, catalog.opened, self._supply.headroom)
            waiting = run.waits or jobs[-1]
            cut = jobs.index(waiting)
            gone = jobs[cut:] if self._strict else [waiting]
            left_out += [(job, None) for job in gone]
            jobs = [job for job in jobs if job not in gone]


def _is_cheaper(filling: Filling, other: Filling) -> bool:
    return None not in (filling.price, other.price) and (filling.price or 0) < (other.price or 0)


def _by_no_later_alternative(run: Run, other: Run) -> bool:
    """Return whether each job is placed by the same alternative as in another run, or an earlier one."""
    return all(
        placed.alternative.number <= before.alternative.number
        for placed, before in zip(run.placements, other.placements, strict=True)
    )
