"""Invariant 5: spending never passes a budget by more than the granularity of one request.

It is judged whenever something is asked, against the budgets that it is given: a log does not have them, they are part of how a
provisioner is configured. What comes beyond an ask can pass a budget without us asking; then nothing more may be asked. Of two
provisioners that ask at the same time each knows nothing of the other's ask, so for a moment a budget may be passed by that one.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import ClassVar, Final

from xce.domain.events.recorded import Recorded
from xce.domain.formats.periods import Period
from xce.domain.formats.policy import Budget
from xce.domain.formats.provider import Kind
from xce.domain.policy import money
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.request import Request
from xce.projections.invariants.report import Invariant
from xce.projections.spending import Spending

#: So long after an ask another provisioner may not know of it.
UNHEARD_FOR: Final = timedelta(minutes=2)


@dataclass(slots=True)
class _Part:
    """A request, an instance or a grant; ``amount`` is what of it counts now."""

    provider: str
    template: str | None
    project: str | None
    price: Decimal | None
    amount: int


@dataclass(frozen=True, slots=True)
class _Ask:
    part: _Part
    by: str
    at: datetime
    amount: int


class Budgets(Invariant):
    """Counts hosts, what everything costs per hour, what was asked of late and what was spent, for each budget."""

    NAME: ClassVar[str] = "invariant-5"
    TITLE: ClassVar[str] = (
        "spending never passes a budget by more than the granularity of one request"
    )

    def __init__(self, budgets: Iterable[Budget] = ()) -> None:
        super().__init__()
        self._budgets: tuple[Budget, ...] = ()
        self._remembered = UNHEARD_FOR
        self._parts: dict[str, _Part] = {}
        self._returns: dict[tuple[str, str], int] = {}
        self._asks: list[_Ask] = []
        self._spending = Spending()
        self.keep(budgets)

    def keep(self, budgets: Iterable[Budget]) -> None:
        """Hold what is asked from now on against these budgets."""
        self._budgets = tuple(budgets)
        longest = (one.max_asked.within for one in self._budgets if one.max_asked is not None)
        self._remembered = max((self._remembered, *longest))

    def _see(self, recorded: Recorded) -> None:
        event = recorded.event
        match event:
            case Request.Intended():
                self._asked(event)
            case Request.InstanceGranted() | Request.MachineFailed():
                self._less(event.originator_id, 1)
            case Request.AmountGranted() | Request.FellShort():
                self._less(event.originator_id, event.amount)
            case Request.Closed():
                self._parts.pop(event.originator_id, None)
            case Instance.Granted():
                self._parts[event.originator_id] = _Part(
                    event.provider, event.template, event.project, event.price_per_hour, 1
                )
            case Instance.Returned() | Instance.Lost() | Grant.Lost():
                self._parts.pop(event.originator_id, None)
            case Grant.Granted():
                self._parts[event.originator_id] = _Part(
                    event.provider, None, event.project, event.price_per_hour, event.amount
                )
            case Grant.ReturnStarted():
                self._returns[event.originator_id, event.return_id] = event.amount
            case Grant.ReturnConfirmed():
                amount = self._returns.pop((event.originator_id, event.return_id), 0)
                self._less(event.originator_id, amount)
            case Grant.PartLost():
                self._less(event.originator_id, event.amount)
            case _:
                pass
        with suppress(LookupError):  # what follows on nothing costs nothing; another check names it
            self._spending.apply((recorded,))

    def _less(self, name: str, amount: int) -> None:
        part = self._parts.get(name)
        if part is not None:
            part.amount = max(0, part.amount - amount)

    def _asked(self, event: Request.Intended) -> None:
        template = event.item if event.kind is Kind.HOST else None
        part = _Part(event.provider, template, event.project, event.price_per_hour, event.amount)
        ask = _Ask(part, event.by, event.timestamp, event.amount)
        self._asks = [one for one in self._asks if one.at > event.timestamp - self._remembered]
        for budget in self._budgets:
            if _covers(budget, part):
                self._judge(budget, ask)
        self._asks.append(ask)
        self._parts[event.originator_id] = part

    def _judge(self, budget: Budget, ask: _Ask) -> None:
        covered = [one for one in self._parts.values() if one.amount and _covers(budget, one)]
        unheard = [
            one.part for one in self._asks if _is_unheard(one, ask) and _covers(budget, one.part)
        ]
        if ask.part.template is not None:
            if budget.max_hosts is not None:
                used = _hosts(covered)
                self._require(
                    used + ask.amount - _hosts(unheard) <= budget.max_hosts,
                    f"{ask.amount} hosts are asked with {used} of {budget.max_hosts} of budget"
                    f" {budget.name} used",
                )
            if budget.max_asked is not None:
                within, most = budget.max_asked.within, budget.max_asked.hosts
                late = [
                    one
                    for one in self._asks
                    if one.at > ask.at - within
                    and not _is_unheard(one, ask)
                    and _covers(budget, one.part)
                ]
                asked = sum(one.amount for one in late if one.part.template is not None)
                self._require(
                    asked + ask.amount <= most,
                    f"{ask.amount} hosts are asked after {asked} of {most} of budget {budget.name}",
                )
        if budget.max_cost_per_hour is not None:
            self._judge_cost(budget, budget.max_cost_per_hour, ask.part, covered, unheard)
        self._judge_periods(budget, ask)

    def _judge_cost(
        self,
        budget: Budget,
        limit: Decimal,
        part: _Part,
        covered: list[_Part],
        unheard: list[_Part],
    ) -> None:
        if part.price is None:
            self._require(False, f"something unpriced is asked, which budget {budget.name} bounds")
            return
        rate = money.plus(_rate(covered), _rate([part]))
        self._require(
            money.plus(rate, -_rate(unheard)) <= limit,
            f"with this ask all costs {money.plain(rate)} per hour; budget {budget.name} allows"
            f" {money.plain(limit)}",
        )

    def _judge_periods(self, budget: Budget, ask: _Ask) -> None:
        limits = {Period.DAY: budget.max_cost_per_day, Period.MONTH: budget.max_cost_per_month}
        for period, limit in limits.items():
            if limit is None:
                continue
            spent = money.ZERO
            for line in self._spending.spent(period, budget.zone, ask.at).lines:
                if budget.covers(line.provider, line.template, line.project):
                    spent = money.plus(spent, line.cost)
            self._require(
                spent <= limit,
                f"something is asked with {money.plain(spent)} of {money.plain(limit)} of budget"
                f" {budget.name} of the {period.value} spent",
            )


def _is_unheard(earlier: _Ask, ask: _Ask) -> bool:
    return earlier.by != ask.by and earlier.at > ask.at - UNHEARD_FOR


def _covers(budget: Budget, part: _Part) -> bool:
    return budget.covers(part.provider, part.template, part.project)


def _hosts(parts: Iterable[_Part]) -> int:
    return sum(one.amount for one in parts if one.template is not None)


def _priced(parts: Iterable[_Part]) -> Iterator[Decimal]:
    for one in parts:
        if one.price is not None:
            yield money.times(one.price, one.amount)


def _rate(parts: Iterable[_Part]) -> Decimal:
    total = money.ZERO
    for cost in _priced(parts):
        total = money.plus(total, cost)
    return total
