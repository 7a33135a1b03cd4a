"""What a seed says of the site: its providers, daemons, jobs and budget."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Final

from xce.domain.formats.config import PolicyConfig
from xce.domain.formats.policy import AskRate, Budget
from xce.domain.formats.provider import Kind
from xce.replay.faults.batch import Job
from xce.replay.faults.chance import Chance
from xce.replay.faults.cloud import Bound, Means

#: Faults per opportunity, in percent of the usual rates: quiet, usual and stormy runs.
_SCALES: Final = (25, 100, 100, 300)
#: Prices per hour, by provider: those of budgets that bound money are known.
_PRICES: Final = {"alpha": Decimal("0.20"), "beta": Decimal("0.30"), "gamma": Decimal("0.05")}
_DEAREST: Final = max(_PRICES.values())
#: A bound on the rate of asks is one within this.
_WITHIN: Final = timedelta(minutes=10)
#: Where all come at once, they come within so many seconds.
_RUSH_S: Final = 90
_BOUNDS: Final = tuple(Bound)
_MEANS: Final = (Means.TAG, Means.LISTING, Means.BOTH, Means.NEITHER)


@dataclass(frozen=True, slots=True)
class ProviderPlan:
    """One provider."""

    name: str
    kind: Kind
    means: Means
    capacity: int
    bound: Bound = Bound.TEMPLATE
    price: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """One site.

    Attributes:
        jobs: with the seconds at which they come.
        storm_s: faults happen until then.
        budget: None: there is none.
        scale: of the rates of faults, in percent.
    """

    providers: tuple[ProviderPlan, ...]
    provisioners: tuple[str, ...]
    jobs: tuple[tuple[float, Job], ...]
    storm_s: float
    budget: Budget | None
    scale: int
    #: The site's own bound on what it borrows.
    max_borrow: int

    @property
    def shared(self) -> ProviderPlan | None:
        """Who lends."""
        return next((one for one in self.providers if one.kind is Kind.COUNTABLE), None)

    def policy(self) -> PolicyConfig:
        """Return the policy of all provisioners."""
        return PolicyConfig(
            budgets=() if self.budget is None else (self.budget,),
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

    def plan(name: str, kind: Kind, number: int, least: int, most: int) -> ProviderPlan:
        means = _MEANS[pick("means", 0, 3, number)]
        bound = _BOUNDS[pick("bound", 0, len(_BOUNDS) - 1, number)]
        return ProviderPlan(
            name, kind, means, pick("room", least, most, number), bound, _PRICES[name]
        )

    providers = [plan("alpha", Kind.HOST, 0, 2, 6)]
    if pick("beta", 0, 1):
        providers.append(plan("beta", Kind.HOST, 1, 2, 5))
    if pick("gamma", 0, 4) < 2:
        providers.append(plan("gamma", Kind.COUNTABLE, 2, 2, 4))
    lends = providers[-1].kind is Kind.COUNTABLE
    storm = float(pick("storm", 900, 2100))
    latest = 30 + _RUSH_S if pick("rush", 0, 3) == 0 else round(storm) - 120
    jobs = tuple(
        (
            float(pick("job comes", 30, latest, number)),
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
        _budget(pick) if pick("budget", 0, 1) else None,
        _SCALES[pick("scale", 0, len(_SCALES) - 1)],
        max(1, providers[-1].capacity + pick("borrowed at most", -1, 1)),
    )


def _budget(pick: Callable[[str, int, int], int]) -> Budget:
    """Return a bound on hosts, on what all costs per hour, or on how fast hosts are asked."""
    hosts = pick("budget hosts", 2, 5)
    match pick("budget kind", 0, 3):
        case 0:
            return Budget(name="all", max_cost_per_hour=hosts * _DEAREST)
        case 1:
            return Budget(name="all", max_asked=AskRate(hosts=hosts, within=_WITHIN))
        case _:
            return Budget(name="all", max_hosts=hosts)
