"""From a run that is over to the figures it is judged by and the curves that are drawn of it."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Final

from xce.domain.formats.comparison import Curves, Figures
from xce.domain.formats.config import SimulationConfig
from xce.domain.formats.periods import Period
from xce.domain.formats.policy import Budget
from xce.domain.formats.provider import Billing
from xce.domain.formats.scenario import Verdict
from xce.domain.formats.simulation import SimulationReport, TemplateUse
from xce.projections.ledger import Use
from xce.replay.curves import cost_timeline
from xce.replay.history import History
from xce.replay.rounding import ratio, rounded
from xce.replay.statistics import (
    NEEDED,
    OWN,
    PROVISIONED,
    RUNNING,
    WAITING_JOBS,
    token_series,
)
from xce.replay.timeline import Timeline

POINTS: Final = 300
_SECOND: Final = timedelta(seconds=1)
#: Millionths times seconds in one unit of money per hour.
_HOURLY: Final = 1_000_000 * 3600
_SLOTS: Final = "slots"
#: Outcomes of requests that brought nothing.
_FAILED: Final = ("failed", "timed_out")


def figures(
    config: SimulationConfig,
    report: SimulationReport,
    timeline: Timeline,
    violations: int,
    verdicts: Collection[Verdict] = (),
) -> Figures:
    """Return what a run is judged by; ``timeline`` is the statistics' own, whole."""
    slots = {
        (provider.name, template.template_id): template.provides.get(_SLOTS, 0)
        for provider in config.providers
        for template in provider.templates
    }
    paid = sum(_paid(use, slots) for use in report.templates)
    busy = sum(use.busy_slot_seconds for use in report.templates)
    held = {use.name: _held_borrowed(timeline, use.name, report.ended) for use in report.shared}
    borrowed = sum(use.unit_seconds for use in report.shared)
    wasted = [
        _wasted(use.cost, use.busy_slot_seconds, _paid(use, slots)) for use in report.templates
    ]
    wasted += [_wasted(use.cost, held[use.name], use.unit_seconds) for use in report.shared]
    waste = _sum(wasted)
    cost = report.cost
    return Figures(
        jobs=report.jobs.submitted,
        jobs_not_ended=report.jobs.submitted - report.jobs.ended,
        cost=cost,
        cost_hosts=_total(use.cost for use in report.templates),
        cost_tokens=_total(use.cost for use in report.shared),
        wait_mean=report.waiting.mean,
        wait_median=report.waiting.median,
        wait_p95=report.waiting.p95,
        wait_max=report.waiting.max,
        own_use=report.own.utilisation,
        obtained_use=ratio(min(busy, paid), paid),
        borrowed_use=ratio(min(sum(held.values()), borrowed), borrowed),
        waste=None if waste is None else rounded(waste, 6),
        waste_share=rounded(waste / Fraction(cost), 4) if cost and waste is not None else None,
        hosts=sum(use.hosts for use in report.templates),
        host_seconds_billed=sum(use.billed_seconds for use in report.templates),
        tokens=sum(use.borrowed for use in report.shared),
        requests=report.requests.requests,
        requests_failed=sum(report.requests.by_outcome.get(name, 0) for name in _FAILED),
        violations=violations,
        not_as_expected=sum(not one.passed for one in verdicts) if verdicts else None,
    )


def _paid(use: TemplateUse, slots: Mapping[tuple[str, str], int]) -> int:
    return use.billed_seconds * slots.get((use.provider, use.template), 0)


def _held_borrowed(timeline: Timeline, resource: str, end: datetime) -> int:
    """Return the token seconds in which jobs held more than is owned, as seen from session to session."""
    name = token_series(resource, "in use")
    if name not in timeline.values:
        return 0
    in_use = timeline.values[name]
    owned = timeline.values[token_series(resource, "owned")]
    total = 0
    for i, at in enumerate(timeline.times):
        until = timeline.times[i + 1] if i + 1 < len(timeline.times) else max(end, at)
        total += max(0, int(in_use[i] - owned[i])) * ((until - at) // _SECOND)
    return total


def _wasted(cost: Decimal | None, used: int, paid: int) -> Fraction | None:
    """Return the part of a cost that nothing came of; of what has nothing to use, none."""
    if cost is None:
        return None
    if not paid:
        return Fraction(0)
    return Fraction(cost) * (1 - Fraction(min(used, paid), paid))


def _sum(parts: Iterable[Fraction | None]) -> Fraction | None:
    total = Fraction(0)
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def _total(parts: Iterable[Decimal | None]) -> Decimal | None:
    total = Decimal(0)
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def curves(
    timeline: Timeline, history: History, waits: Iterable[int], shared: Iterable[str], end: datetime
) -> Curves:
    """Return a run over time, thinned, and how its waiting times are spread."""
    thin = timeline.thinned(POINTS)
    names = [NEEDED, RUNNING, OWN, PROVISIONED, WAITING_JOBS]
    names += [
        token_series(name, what)
        for name in shared
        for what in ("owned", "borrowed", "in use", "wanted")
    ]
    spent = cost_timeline(history, end, POINTS)
    ordered = sorted(waits)
    return Curves(
        times=thin.times,
        series={
            name: tuple(int(value) for value in thin.values[name])
            for name in names
            if name in thin.values
        },
        spent_times=spent.times,
        spent=tuple(
            rounded(sum((Fraction(series[i]) for series in spent.values.values()), Fraction(0)), 2)
            for i in range(len(spent.times))
        ),
        waits=tuple(ordered[max(0, -(-share * len(ordered) // 100) - 1)] for share in range(101))
        if ordered
        else (),
    )


def passed_budgets(budgets: Iterable[Budget], history: History, end: datetime) -> Iterator[str]:
    """Yield the budgets that what existed was above, with the worst of each.

    A policy asks within its budgets; more than was asked, and answers that came late, can pass them all the same.
    """
    for budget in budgets:
        changes: list[tuple[datetime, int, Fraction]] = []
        for use in history.hosts.values():
            if budget.covers(use.provider, use.template, use.project):
                price = Fraction(use.price_per_hour or 0)
                changes.append((use.since, 1, price))
                changes.append((use.until or end, -1, -price))
        for grant in history.grants.values():
            if budget.covers(grant.provider, None, grant.project):
                price = Fraction(grant.price_per_hour or 0)
                changes.append((grant.since, 0, price * grant.amount))
                changes.extend((at, 0, -price * amount) for at, amount in grant.parts)
        yield from _above(budget, changes)
        yield from _above_in_periods(budget, history, end)


def _above_in_periods(budget: Budget, history: History, end: datetime) -> Iterator[str]:
    """Yield the day and the month in which most was spent, where that is above the budget."""
    uses = list(_uses(budget, history))
    for period, limit in (
        (Period.DAY, budget.max_cost_per_day),
        (Period.MONTH, budget.max_cost_per_month),
    ):
        if limit is None or not uses:
            continue
        worst, worst_start = Fraction(0), None
        start = period.start(min(use.since for use in uses), budget.zone)
        while start < end:
            stop = period.end(start, budget.zone)
            cost = Fraction(sum(use.paid(start, min(stop, end)).cost for use in uses), _HOURLY)
            if cost > worst:
                worst, worst_start = cost, start
            start = stop
        if worst_start is not None and worst > Fraction(limit):
            began = worst_start.isoformat().replace("+00:00", "Z")
            yield (
                f"budget {budget.name}: {rounded(worst, 2)} in the {period.value} that began {began};"
                f" at most {limit} is allowed"
            )


def _uses(budget: Budget, history: History) -> Iterator[Use]:
    for host in history.hosts.values():
        if budget.covers(host.provider, host.template, host.project):
            yield Use(1, _millionths(host.price_per_hour), host.billing, host.since, host.until)
    for grant in history.grants.values():
        if budget.covers(grant.provider, None, grant.project):
            price = _millionths(grant.price_per_hour)
            for until, amount in (*grant.parts, (None, grant.held)):
                yield Use(amount, price, Billing(), grant.since, until)


def _millionths(price: Decimal | None) -> int | None:
    return None if price is None else int(Fraction(price) * 1_000_000)


def _above(budget: Budget, changes: list[tuple[datetime, int, Fraction]]) -> Iterator[str]:
    hosts, rate = 0, Fraction(0)
    most_hosts, most_rate = 0, Fraction(0)
    for _, host, price in sorted(changes):  # of one moment, what ends comes first
        hosts += host
        rate += price
        most_hosts, most_rate = max(most_hosts, hosts), max(most_rate, rate)
    if budget.max_hosts is not None and most_hosts > budget.max_hosts:
        yield f"budget {budget.name}: {most_hosts} hosts at once; at most {budget.max_hosts} are allowed"
    if budget.max_cost_per_hour is not None and most_rate > Fraction(budget.max_cost_per_hour):
        yield (
            f"budget {budget.name}: {rounded(most_rate, 2)} an hour;"
            f" at most {budget.max_cost_per_hour} is allowed"
        )
