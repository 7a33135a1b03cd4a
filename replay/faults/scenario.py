"""What a seed says of the site: its providers, daemons, jobs and budget."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from xce.domain.formats.config import PolicyConfig
from xce.domain.formats.policy import Budget
from xce.domain.formats.provider import Kind
from xce.replay.faults.batch import Job
from xce.replay.faults.chance import Chance
from xce.replay.faults.cloud import Means

#: Faults per opportunity, in percent of the usual rates: quiet, usual and stormy runs.
_SCALES: Final = (25, 100, 100, 300)
_MEANS: Final = (Means.TAG, Means.LISTING, Means.BOTH, Means.NEITHER)


@dataclass(frozen=True, slots=True)
class ProviderPlan:
    """One provider."""

    name: str
    kind: Kind
    means: Means
    capacity: int


@dataclass(frozen=True, slots=True)
class Scenario:
    """One site.

    Attributes:
        jobs: with the seconds at which they come.
        storm_s: faults happen until then.
        budget: most hosts; None: no bound.
        scale: of the rates of faults, in percent.
    """

    providers: tuple[ProviderPlan, ...]
    provisioners: tuple[str, ...]
    jobs: tuple[tuple[float, Job], ...]
    storm_s: float
    budget: int | None
    scale: int

    @property
    def shared(self) -> ProviderPlan | None:
        """Who lends."""
        return next((one for one in self.providers if one.kind is Kind.COUNTABLE), None)

    def policy(self) -> PolicyConfig:
        """Return the policy of all provisioners."""
        budgets = () if self.budget is None else (Budget(name="all", max_hosts=self.budget),)
        return PolicyConfig(
            budgets=budgets,
            request_deadline=timedelta(minutes=8),
            join_limit=timedelta(minutes=6),
            pause_after_refusal=timedelta(minutes=2),
            demand_time_to_live=timedelta(minutes=4),
            max_per_request=3,
        )


def scenario(chance: Chance) -> Scenario:
    """Return the site of a seed."""

    def pick(purpose: str, low: int, high: int, number: int = 0) -> int:
        return chance.draw(purpose, number, low, high)

    providers = [ProviderPlan("alpha", Kind.HOST, _MEANS[pick("means", 0, 3)], pick("room", 2, 6))]
    if pick("beta", 0, 1):
        means = _MEANS[pick("means", 0, 3, 1)]
        providers.append(ProviderPlan("beta", Kind.HOST, means, pick("room", 2, 5, 1)))
    if pick("gamma", 0, 4) < 2:
        means = _MEANS[pick("means", 0, 3, 2)]
        providers.append(ProviderPlan("gamma", Kind.COUNTABLE, means, pick("room", 2, 4, 2)))
    lends = providers[-1].kind is Kind.COUNTABLE
    storm = float(pick("storm", 900, 2100))
    jobs = tuple(
        (
            float(pick("job comes", 30, round(storm) - 120, number)),
            Job(
                f"j{number + 1}",
                float(pick("job works", 60, 600, number)),
                lends and pick("job unit", 0, 2, number) > 0,
            ),
        )
        for number in range(pick("jobs", 4, 12))
    )
    return Scenario(
        tuple(providers),
        ("p1", "p2") if pick("provisioners", 0, 4) < 3 else ("p1",),
        tuple(sorted(jobs, key=lambda entry: entry[0])),
        storm,
        pick("budget hosts", 2, 5) if pick("budget", 0, 1) else None,
        _SCALES[pick("scale", 0, len(_SCALES) - 1)],
    )
