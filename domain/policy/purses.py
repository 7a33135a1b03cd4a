"""Budgets of a day or month: what was spent in it, and what all that exists and is asked will still cost in it.

Everything is counted on to be kept to the end of the period, or for the time that the budget names. So what is asked in a period
cannot pass the budget in it; what was asked before and is kept longer is counted first in the next one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final, Self

from xce.domain.formats.periods import Period, Spent, SpentLine
from xce.domain.formats.policy import Budget
from xce.domain.formats.provider import Billing
from xce.domain.policy import money
from xce.domain.policy.billing import due
from xce.domain.policy.by_project import ByProject, Place
from xce.domain.policy.times import clock, later

#: Room where nothing bounds it; more than any amount.
UNBOUNDED: Final = 2**60

_SECOND: Final = timedelta(seconds=1)
_HOUR_S: Final = 3600
_CENT: Final = 10_000 * _HOUR_S


@dataclass(frozen=True, slots=True)
class Cost:
    """Something that costs, or will if it comes: ``amount`` hosts (of a template) or units.

    Attributes:
        what: its name, for people.
        project: whose budgets pay for it.
        price: of one, per hour; None: unknown.
        since: since when it costs; None: it is asked, and may come at any moment.
    """

    what: str
    provider: str
    template: str | None
    project: str | None
    price: Decimal | None
    amount: int
    since: datetime | None = None


@dataclass(slots=True)
class Purse:
    """The money of a budget for one day or month. All money is in millionths times seconds.

    Attributes:
        horizon: up to when a new host or unit is counted on to be kept.
        unknown: why it cannot be said what is left; None: it can.
    """

    what: str
    period: Period
    now: datetime
    horizon: datetime
    limit: int
    spent: int
    to_come: int
    unknown: str | None

    @property
    def left(self) -> int:
        """What is neither spent nor counted on."""
        return max(0, self.limit - self.spent - self.to_come)


@dataclass(slots=True)
class PeriodBound:
    """What a purse allows of offers that bill in one way; such bounds share their purse.

    Attributes:
        unaccounted: hosts and units of what is counted on to be paid that may exist and serve nobody.
    """

    purse: Purse
    billing: Billing
    unaccounted: int = 0

    def room(self, price: Decimal | None) -> int:
        """Return how many of this price what is left pays for."""
        if price is None or self.purse.unknown is not None:
            return 0
        one = self._one(price)
        return self.purse.left // one if one else UNBOUNDED

    def take(self, amount: int, price: Decimal | None) -> None:
        """Count an ask."""
        if amount:
            assert price is not None, "nothing unpriced passes"
            self.purse.to_come += amount * self._one(price)

    def why(self, price: Decimal | None) -> str:
        """Return what is spent and counted on, or what is not known."""
        purse = self.purse
        if purse.unknown is not None:
            return f"{purse.what} cannot be kept: {purse.unknown}"
        if price is None:
            return f"{purse.what} bounds the cost, and its price is unknown"
        return (
            f"{purse.what}: {_shown(purse.spent)} spent and {_shown(purse.to_come)} counted on"
            f" of {_shown(purse.limit)}{in_it(self.unaccounted)}, and one more costs {_shown(self._one(price))}"
        )

    def _one(self, price: Decimal) -> int:
        """Return what one more will cost."""
        return _units(price) * (
            due(self.purse.now, None, self.billing, self.purse.horizon) // _SECOND
        )


@dataclass(frozen=True, slots=True)
class KnownSpent:
    """What is known of what was spent in one day or month of a zone."""

    period: Period
    zone: str
    since: datetime
    lines: ByProject[SpentLine]

    @classmethod
    def of(cls, spent: Spent) -> Self:
        """Return it so that a budget finds its own lines."""
        return cls(spent.period, spent.zone, spent.since, ByProject(spent.lines, _place))


def purses_of(
    now: datetime,
    budget: Budget,
    costs: ByProject[Cost],
    spent: Iterable[KnownSpent],
    billings: dict[str, Billing],
) -> Iterator[Purse]:
    """Yield the purses of a budget: one for its day and one for its month, where it bounds them."""
    limits = {Period.DAY: budget.max_cost_per_day, Period.MONTH: budget.max_cost_per_month}
    if all(limit is None for limit in limits.values()):
        return
    covered = list(costs.covered(budget))
    for period, limit in limits.items():
        if limit is None:
            continue
        start = period.start(now, budget.zone)
        horizon = period.end(now, budget.zone)
        if budget.committed_for is not None:
            horizon = min(horizon, later(now, budget.committed_for))
        known = _known(spent, budget, period, start)
        counted = [] if known is None else list(known.lines.covered(budget))
        yield Purse(
            f"budget {budget.name} of the {period.value}",
            period,
            now,
            horizon,
            _units(limit) * _HOUR_S,
            sum(_units(line.cost) * _HOUR_S for line in counted),
            sum(_to_come(cost, now, horizon, billings) for cost in covered),
            f"what was spent since {clock(start)} is not known"
            if known is None
            else _unpriced(covered, counted),
        )


def _known(
    spent: Iterable[KnownSpent], budget: Budget, period: Period, start: datetime
) -> KnownSpent | None:
    """Return what is known of a period; what is of another one says nothing about this one."""
    found = (
        one for one in spent if (one.period, one.zone, one.since) == (period, budget.zone, start)
    )
    return next(found, None)


def _place(line: SpentLine) -> Place:
    return (line.provider, line.template, line.project)


def _to_come(cost: Cost, now: datetime, horizon: datetime, billings: dict[str, Billing]) -> int:
    """Return what something will cost from now on, kept up to a moment; 0 where its price is unknown."""
    if cost.price is None:
        return 0
    billing = billings.get(cost.provider) or Billing()
    since = now if cost.since is None else cost.since
    paid = due(since, None, billing, horizon) - due(since, None, billing, now)
    return _units(cost.price) * (paid // _SECOND) * cost.amount


def _unpriced(covered: Iterable[Cost], counted: Iterable[SpentLine]) -> str | None:
    """Return what of unknown price there is or was; an unknown price is not zero."""
    if names := sorted(cost.what for cost in covered if cost.price is None):
        return f"the price of {names[0]} is unknown"
    if ended := sum(line.unpriced for line in counted):
        return f"{ended} that ended in it had no price"
    return None


def _units(price: Decimal) -> int:
    return int(money.times(price, 1_000_000))


def in_money(units: int) -> Decimal:
    """Return an amount of a purse as money, rounded up to the millionth."""
    return money.millionths(-(-units // _HOUR_S))


def in_it(unaccounted: int) -> str:
    """Return for people how much of what counts is not accounted for; nothing where all is."""
    return f" ({unaccounted} of it unaccounted for)" if unaccounted else ""


def _shown(units: int) -> str:
    """Return an amount for people, rounded to the cent."""
    cents = (2 * units + _CENT) // (2 * _CENT)
    return f"{cents // 100}.{cents % 100:02}"
