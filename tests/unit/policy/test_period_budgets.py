"""Budgets of a day and of a month: what was spent, what is counted on, and that nothing asked in a period passes it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.policy.makers import (
    NOW,
    asks,
    at,
    carried_out,
    demand,
    grant,
    holds,
    hosts,
    instance,
    minutes,
    provider,
    request,
    resource,
    round_of,
    template,
    units,
)
from xce.domain.errors import InputError
from xce.domain.formats.periods import Period, Spent, SpentLine
from xce.domain.formats.policy import Budget
from xce.domain.formats.provider import Billing, BillingUnit, Kind
from xce.domain.policy.billing import due
from xce.domain.policy.bounds import budget_uses
from xce.domain.policy.checks import read_policy_input
from xce.domain.provisioning.instance import InstanceState

HOURLY = Billing(unit=BillingUnit.HOUR)


def spent(
    cost: str = "0",
    *,
    period: Period = Period.DAY,
    zone: str = "UTC",
    of: str = "aws",
    item: str = "c4",
    kind: Kind = Kind.HOST,
    project: str | None = None,
    unpriced: int = 0,
    now: datetime = NOW,
) -> Spent:
    line = SpentLine(
        provider=of, kind=kind, item=item, project=project, cost=Decimal(cost), unpriced=unpriced
    )
    return Spent(period=period, zone=zone, since=period.start(now, zone), lines=(line,))


def daily(limit: str, **fields: object) -> Budget:
    return Budget.model_validate({"name": "day", "max_cost_per_day": Decimal(limit), **fields})


def monthly(limit: str, **fields: object) -> Budget:
    return Budget.model_validate({"name": "month", "max_cost_per_month": Decimal(limit), **fields})


# ------------------------------------------------------------------------- days
def test_what_was_spent_and_what_will_be_until_midnight_bounds_what_is_asked() -> None:
    inputs = round_of(
        provider("aws", template(price="1.00")),
        wants=demand(hosts("c4", 9)),
        instances=[instance(price="1.00")],
        budgets=[daily("60.00")],
        spent=[spent("3.50")],
    )

    # 10:00, 14 hours to go: 60 - 3.50 - 14 for the host that is there; a new one is 14 as well.
    assert asks(inputs) == [("aws", "c4", 3)]
    (hold,) = holds(inputs)
    assert hold == (
        "6 of 9 hosts of c4 not asked: aws: budget day of the day: 3.50 spent and 56.00 counted on of 60.00,"
        " and one more costs 14.00"
    )
    assert asks(carried_out(inputs)) == []


def test_the_day_is_that_of_the_zone() -> None:
    """10:00 UTC is 23:00 in Auckland: one hour is left of the day."""
    inputs = round_of(
        provider("aws", template(price="1.00")),
        wants=demand(hosts("c4", 9)),
        budgets=[daily("4.00", zone="Pacific/Auckland")],
        spent=[spent("1.00", zone="Pacific/Auckland"), spent("4.00")],
    )

    assert asks(inputs) == [("aws", "c4", 3)]


def test_a_day_on_which_clocks_go_on_is_an_hour_shorter() -> None:
    now = datetime(2026, 3, 28, 23, 0, tzinfo=UTC)  # midnight in Berlin, the day before summer time
    inputs = round_of(
        provider("aws", template(price="1.00")),
        wants=demand(hosts("c4", 1)),
        budgets=[daily("23.00", zone="Europe/Berlin")],
        spent=[spent(zone="Europe/Berlin", now=now)],
        now=now,
    )

    assert asks(inputs) == [("aws", "c4", 1)]


def test_what_was_spent_in_another_period_or_is_not_known_is_not_zero() -> None:
    inputs = round_of(
        provider("aws", template(price="1.00")),
        wants=demand(hosts("c4", 1)),
        budgets=[daily("60.00")],
        spent=[spent(now=NOW - timedelta(days=1)), spent(period=Period.MONTH)],
    )

    assert asks(inputs) == []
    (hold,) = holds(inputs)
    assert hold == (
        "1 of 1 hosts of c4 not asked: aws: budget day of the day cannot be kept:"
        " what was spent since 2026-03-01T00:00:00Z is not known"
    )


def test_what_is_kept_for_a_while_only_is_counted_on_for_that_while() -> None:
    inputs = round_of(
        provider("aws", template(price="1.00")),
        wants=demand(hosts("c4", 99)),
        instances=[instance(price="1.00")],
        budgets=[monthly("60.00", committed_for=minutes(120))],
        spent=[spent("8.00", period=Period.MONTH)],
    )

    assert asks(inputs) == [("aws", "c4", 25)]


def test_a_month_is_counted_on_to_its_end() -> None:
    inputs = round_of(
        provider("aws", template(price="0.01")),
        wants=demand(hosts("c4", 99)),
        budgets=[monthly("22.00")],
        spent=[spent("0", period=Period.MONTH)],
    )

    # 734 hours to go: 7.34 a host.
    assert asks(inputs) == [("aws", "c4", 2)]


def test_a_started_hour_falls_due_when_it_begins() -> None:
    inputs = round_of(
        provider("aws", template(price="6.00"), billing=HOURLY),
        wants=demand(hosts("c4", 9)),
        instances=[instance(price="6.00", granted_at=at(13 * 60 + 10), state=InstanceState.JOINED)],
        budgets=[daily("24.00")],
        spent=[spent("6.00")],
        now=at(13 * 60 + 40),  # 23:40; the hour of 23:10 is paid, and no other begins today
    )

    assert asks(inputs) == [("aws", "c4", 3)]


def test_units_count_too_and_other_providers_do_not() -> None:
    lent = spent("1.00", of="pool", kind=Kind.COUNTABLE, item="lic").lines
    inputs = round_of(
        provider("aws", template(price="1.00")),
        provider("pool", resources=[resource(price="1.00")]),
        wants=demand(hosts("c4", 1, ("a", 1, 1)), units("lic", 2, ("b", 2, 1), ("c", 3, 1))),
        requests=[request("R1", "m8", 9, of="gcp", price="1.00", asked_position=1)],
        grants=[grant(amount=1, price="1.00", granted_at=at(-60))],
        budgets=[daily("43.00", providers=("aws", "pool"))],
        spent=[
            spent().model_copy(update={"lines": (*lent, *spent("99", of="gcp", item="m8").lines)})
        ],
    )

    # 43 - 1 spent - 14 for the unit that is lent: a host and a unit, of 14 each.
    assert asks(inputs) == [("aws", "c4", 1), ("pool", "lic", 1)]


@pytest.mark.parametrize(
    ("live", "ended", "why"),
    [
        (None, 0, "the price of instance i-1 is unknown"),
        ("1.00", 2, "2 that ended in it had no price"),
    ],
)
def test_an_unknown_price_is_not_zero(live: str | None, ended: int, why: str) -> None:
    inputs = round_of(
        provider("aws", template(price="1.00")),
        wants=demand(hosts("c4", 1)),
        instances=[instance(price=live, item="c9")],
        budgets=[daily("60.00")],
        spent=[spent(unpriced=ended)],
    )

    assert asks(inputs) == []
    assert why in holds(inputs)[0]


def test_an_unpriced_offer_is_not_asked_and_a_free_one_is() -> None:
    unpriced, free = (
        round_of(
            provider("aws", template(price=price)),
            wants=demand(hosts("c4", 1)),
            budgets=[daily("0.00")],
            spent=[spent()],
        )
        for price in (None, "0")
    )

    assert "bounds the cost, and its price is unknown" in holds(unpriced)[0]
    assert asks(free) == [("aws", "c4", 1)]


def test_nobody_can_count_on_no_time() -> None:
    text = (
        '{"format": "xce.policy/1", "now": "2026-03-01T10:00:00Z",'
        ' "budgets": [{"name": "x", "committed_for": "0s"}]}'
    )

    with pytest.raises(InputError, match=r"budgets\[0\].committed_for: wanted at least 1s"):
        read_policy_input(text)


def test_how_far_each_bound_is_used_is_told() -> None:
    inputs = round_of(
        provider("aws", template(price="1.00")),
        instances=[instance(price="1.00")],
        budgets=[
            daily("60.00", max_hosts=5),
            monthly("90.00", committed_for=minutes(60), max_cost_per_hour=Decimal(2)),
        ],
        spent=[spent("3.50"), spent("7.25", period=Period.MONTH)],
    )

    told = [
        (use.budget, use.bound, *map(float, (use.used, use.counted_on, use.limit)))
        for use in budget_uses(inputs)
    ]
    assert told == [
        ("day", "max_hosts", 1.0, 0.0, 5.0),
        ("month", "max_cost_per_hour", 1.0, 0.0, 2.0),
        ("day", "max_cost_per_day", 3.5, 14.0, 60.0),
        ("month", "max_cost_per_month", 7.25, 1.0, 90.0),
    ]


# --------------------------------------------------------------------- in general
@dataclass
class _Host:
    price: Decimal
    billing: Billing
    since: datetime
    until: datetime | None = None

    def paid(self, start: datetime, stop: datetime) -> Fraction:
        time = due(self.since, self.until, self.billing, stop) - due(
            self.since, self.until, self.billing, start
        )
        return Fraction(self.price) * int(time.total_seconds()) / 3600


@dataclass
class _Site:
    """Hosts that come and go while time passes."""

    limit: Decimal
    period: Period
    zone: str
    now: datetime
    hosts: list[_Host] = field(default_factory=list[_Host])

    @property
    def start(self) -> datetime:
        return self.period.start(self.now, self.zone)

    def cost(self, start: datetime, stop: datetime) -> Fraction:
        return sum((host.paid(start, stop) for host in self.hosts), Fraction(0))

    def ask(self, wish: int, price: str, billing: Billing) -> None:
        live = [host for host in self.hosts if host.until is None]
        cost = self.cost(self.start, self.now)
        ceiling = Decimal(-(-cost.numerator * 10**6 // cost.denominator)).scaleb(-6)
        inputs = round_of(
            provider("aws", template(price=price), billing=billing),
            wants=demand(hosts("c4", wish)),
            instances=[
                instance(str(n), granted_at=host.since, price=str(host.price))
                for n, host in enumerate(live)
            ],
            budgets=[
                Budget.model_validate(
                    {
                        "name": "b",
                        f"max_cost_per_{self.period}": self.limit,
                        "zone": self.zone,
                    }
                )
            ],
            spent=[
                Spent(
                    period=self.period,
                    zone=self.zone,
                    since=self.start,
                    lines=(SpentLine(provider="aws", kind=Kind.HOST, item="c4", cost=ceiling),),
                )
            ],
            now=self.now,
        )
        for _, _, amount in asks(inputs):
            self.hosts += [_Host(Decimal(price), billing, self.now) for _ in range(amount or 0)]


@given(
    st.sampled_from(Period),
    st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York"]),
    st.sampled_from([Billing(), Billing(minimum=minutes(90)), HOURLY]),
    st.lists(
        st.tuples(
            st.integers(1, 2000),
            st.integers(0, 6),
            st.sampled_from(["0.17", "1", "7.3"]),
            st.integers(0, 5),
        ),
        min_size=1,
        max_size=25,
    ),
)
def test_what_is_asked_in_a_period_never_passes_it(
    period: Period, zone: str, billing: Billing, course: list[tuple[int, int, str, int]]
) -> None:
    """However long hosts are kept: what a period costs is within its budget, or what was there when it began would pass it alone."""
    site = _Site(Decimal(90), period, zone, datetime(2026, 3, 27, 9, 0, tzinfo=UTC))
    started: dict[datetime, Fraction] = {site.start: Fraction(0)}
    for wait, wish, price, gone in course:
        before = site.now
        site.now += minutes(wait)
        start = period.start(before, zone)
        while (start := period.end(start, zone)) <= site.now:
            started[start] = site.cost(start, period.end(start, zone))
        for host in site.hosts[:gone]:
            host.until = host.until or site.now
        site.ask(wish, price, billing)

    for start, at_first in started.items():
        cost = site.cost(start, period.end(start, zone))
        assert cost <= max(Fraction(site.limit), at_first)
