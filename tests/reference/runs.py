"""Which sets of jobs the catalog pass may count.

Which template a new host gets is free within the rules, so the pass is not repeated here. Instead all runs that
the rules allow are searched for one that counts exactly the jobs which a result counts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from tests.reference.placing import place_alternative
from tests.reference.plain import Outcome, phase_one
from tests.reference.supply import Supply, new_hosts, s_prime
from tests.reference.world import PlainJob, World
from xce.domain.formats.snapshot import Template


@dataclass(frozen=True)
class Step:
    """How far a run has come: the world with what was placed, the hosts opened, the jobs counted."""

    world: World
    opened: tuple[str, ...] = ()
    counted: tuple[PlainJob, ...] = ()


@dataclass
class Runs:
    """A search through the runs of the catalog pass that the rules allow; ``budget`` placements at most."""

    outcome: Outcome
    supply: Supply
    budget: int

    def can_count(self, candidates: Sequence[PlainJob], counted: set[str]) -> bool | None:
        """Return whether some run counts these jobs and no others; None when the budget was spent before that.

        A counted job for which the run finds nothing is passed over.
        """
        try:
            return self._from(self.start(), candidates, counted)
        except _SpentError:
            return None

    def start(self) -> Step:
        """Return the end of phase 1, with what is in flight and all headroom."""
        world = self.outcome.world.with_hosts(self.supply.in_flight_hosts)
        world = world.with_shared(self.supply.in_flight_counts).with_shared(self.supply.headroom)
        return Step(world)

    def _from(self, step: Step, candidates: Sequence[PlainJob], counted: set[str]) -> bool:
        if not candidates:
            return True
        job, *rest = candidates
        if job.id in counted:
            options = list(self.options(step, job))
            if not options:  # counted beyond what the pass finds, which is no fault if it is sound
                return self._from(step, rest, counted)
            return any(self._from(after, rest, counted) for after in options)
        if any(self.is_sound(after) for after in self.options(step, job)):
            return False
        return self._from(step, rest, counted)

    def is_sound(self, step: Step) -> bool:
        """Return whether all counted jobs start in S': new hosts can draw earlier ones away from their places."""
        amounts: dict[str, int] = {}
        for name in self.outcome.world.pools:
            taken = sum(holding.shared.get(name, 0) for holding in step.world.holdings)
            held = sum(holding.shared.get(name, 0) for holding in self.outcome.world.holdings)
            coming = self.outcome.world.balance(name) + self.supply.in_flight_counts.get(name, 0)
            if taken > held:
                amounts[name] = max(0, taken - held - coming)
        self._spend(len(step.counted))
        world = s_prime(self.outcome, self.supply, step.counted, step.opened, amounts)
        return len(phase_one(world).started) == len(step.counted)

    def options(self, step: Step, job: PlainJob) -> Iterator[Step]:
        """Yield the ways in which the pass may place a job."""
        for number in range(len(job.requirement.alternatives)):
            if (after := self._placed(step, job, number, ())) is not None:
                yield after
                continue
            single = [
                after
                for template in self.supply.templates
                for after in self._fewest(step, job, number, template)
            ]
            yield from single or self._mixed(step, job, number)

    def _fewest(self, step: Step, job: PlainJob, number: int, template: Template) -> list[Step]:
        for hosts in range(1, job.least + 1):
            new = (template.id,) * hosts
            if not self.supply.hold((*step.opened, *new)):
                break
            after = self._placed(step, job, number, new)
            if after is not None:
                return [after]
        return []

    def _mixed(self, step: Step, job: PlainJob, number: int) -> list[Step]:
        names = [
            template.id for template in self.supply.templates if self.supply.room[template.id] > 0
        ]
        for hosts in range(2, job.least + 1):
            found: list[Step] = []
            for mix in product(names, repeat=hosts):
                self._spend(1)
                if self.supply.hold((*step.opened, *mix)):
                    after = self._placed(step, job, number, mix)
                    found += [] if after is None else [after]
            if found:
                return found
        return []

    def _placed(self, step: Step, job: PlainJob, number: int, new: tuple[str, ...]) -> Step | None:
        self._spend(1)
        hosts = new_hosts(self.supply, new, first=len(step.opened) + 1)
        wider = step.world.with_hosts(hosts)
        holding = place_alternative(wider, job, job.requirement.alternatives[number], job.least)
        if holding is None:
            return None
        return Step(wider.start(job, holding), (*step.opened, *new), (*step.counted, job))

    def _spend(self, placements: int) -> None:
        self.budget -= placements
        if self.budget < 0:
            raise _SpentError


class _SpentError(Exception):
    """The budget of placements is spent."""
