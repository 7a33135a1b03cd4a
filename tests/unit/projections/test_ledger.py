"""Costs by day and month: given hosts that came and went, then what fell due when, by the clocks of any zone."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.projections.run import (
    Run,
    accept,
    at,
    came,
    cloud,
    declare,
    hosts,
    lent,
    minutes,
    occupied,
    pool,
    template,
    units,
)
from xce.domain.engine.commands import (
    ConfirmGrantReturn,
    ConfirmReturn,
    MissJoin,
    StartGrantReturn,
    StartReturn,
)
from xce.domain.formats.periods import Period
from xce.domain.formats.provider import Billing, BillingUnit, Kind
from xce.domain.policy.billing import billed, due
from xce.projections.ledger import EXACT_FOR, Ledger, Use

START = datetime(2026, 3, 27, 22, 0, tzinfo=UTC)
HOURLY = Billing(unit=BillingUnit.HOUR)
ZONES = ("UTC", "Europe/Berlin", "Asia/Kathmandu", "America/Sao_Paulo")

billings = st.sampled_from([Billing(), Billing(minimum=minutes(45)), HOURLY])


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]


# ---------------------------------------------------------------------- periods
@pytest.mark.parametrize(
    ("period", "zone", "at", "start", "end"),
    [
        (Period.DAY, "UTC", (2026, 3, 1, 10), (2026, 3, 1), (2026, 3, 2)),
        (Period.DAY, "UTC", (2026, 3, 1), (2026, 3, 1), (2026, 3, 2)),
        (Period.DAY, "Europe/Berlin", (2026, 3, 29, 12), (2026, 3, 28, 23), (2026, 3, 29, 22)),
        (Period.DAY, "Europe/Berlin", (2026, 10, 25, 12), (2026, 10, 24, 22), (2026, 10, 25, 23)),
        (Period.DAY, "America/Sao_Paulo", (2018, 11, 4, 5), (2018, 11, 4, 3), (2018, 11, 5, 2)),
        (Period.MONTH, "UTC", (2026, 12, 31, 23), (2026, 12, 1), (2027, 1, 1)),
        (Period.MONTH, "Asia/Kolkata", (2026, 1, 31, 19), (2026, 1, 31, 18, 30), (2026, 2, 28, 18, 30)),
        (Period.MONTH, "Europe/Berlin", (2026, 3, 15), (2026, 2, 28, 23), (2026, 3, 31, 22)),
    ],
)  # fmt: skip
def test_a_period_begins_and_ends_at_midnight_by_the_clocks_of_its_zone(
    period: Period, zone: str, at: tuple[int, ...], start: tuple[int, ...], end: tuple[int, ...]
) -> None:
    assert period.start(utc(*at), zone) == utc(*start, *(1,) * (3 - len(start)))
    assert period.end(utc(*at), zone) == utc(*end)


@given(
    st.sampled_from(Period),
    st.sampled_from(ZONES),
    st.integers(946_684_800, 1_900_000_000),
)
def test_periods_follow_each_other_without_a_gap(period: Period, zone: str, second: int) -> None:
    now = datetime.fromtimestamp(second, UTC)
    start, end = period.start(now, zone), period.end(now, zone)

    assert start <= now < end
    assert period.start(end, zone) == end
    assert period.start(end - timedelta(microseconds=1), zone) == start


# ----------------------------------------------------------------------- ledger
@st.composite
def uses(draw: st.DrawFn) -> Use:
    since = START + timedelta(seconds=draw(st.integers(0, 40 * 86400)))
    length = draw(st.integers(0, 4 * 3600) | st.integers(0, 60 * 86400))
    return Use(
        amount=draw(st.integers(1, 3)),
        price=draw(st.none() | st.integers(0, 9_000_000)),
        billing=draw(billings),
        since=since,
        until=since + timedelta(seconds=length),
    )


@given(st.lists(uses(), max_size=6), st.sampled_from(ZONES), st.sampled_from(Period))
def test_what_was_spent_since_a_day_or_month_began_is_what_fell_due_in_it(
    given_uses: list[Use], zone: str, period: Period
) -> None:
    ledger = Ledger()
    for use in sorted(given_uses, key=lambda use: use.until or START):
        ledger.enter(("aws", Kind.HOST, "c4", None), use)

    now = max((use.until for use in given_uses if use.until), default=START)
    start = period.start(now, zone)
    after = now + timedelta(days=1)
    wanted = [use.paid(start, after) for use in given_uses]
    found = [paid for _, paid in ledger.since(start)]
    assert sum(paid.cost for paid in found) == sum(paid.cost for paid in wanted)
    assert sum(paid.unpriced for paid in found) == sum(paid.unpriced for paid in wanted)


@given(st.lists(uses(), max_size=6))
def test_nothing_is_forgotten_and_quarters_older_than_a_month_become_days(
    given_uses: list[Use],
) -> None:
    ledger = Ledger()
    for use in sorted(given_uses, key=lambda use: use.until or START):
        ledger.enter(("aws", Kind.HOST, "c4", None), use)

    rows = list(ledger.rows())
    whole = sum(
        use.amount
        * (use.price or 0)
        * int(billed(use.until - use.since, use.billing).total_seconds())
        for use in given_uses
        if use.until is not None
    )
    newest = max((use.until for use in given_uses if use.until), default=START)
    assert sum(paid.cost for _, _, paid in rows) == whole
    assert sum(paid.unpriced for _, _, paid in rows) == sum(
        use.amount for use in given_uses if use.price is None
    )
    oldest_exact = newest - EXACT_FOR - timedelta(days=1)
    assert all(at > oldest_exact or at.hour == at.minute == 0 for _, at, _ in rows)


@given(billings, st.integers(0, 10**6), st.lists(st.integers(0, 10**6), min_size=1))
def test_what_falls_due_adds_up_over_any_cuts(
    billing: Billing, length: int, cuts: list[int]
) -> None:
    until = START + timedelta(seconds=length)
    times = [START, *(START + timedelta(seconds=cut) for cut in sorted(cuts))]
    times.append(max(times[-1], until) + timedelta(seconds=1))

    parts = [
        due(START, until, billing, stop) - due(START, until, billing, start)
        for start, stop in pairwise(times)
    ]

    assert all(part >= timedelta(0) for part in parts)
    assert sum(parts, timedelta(0)) == billed(until - START, billing)


# --------------------------------------------------------------------- the log
def test_costs_of_each_day_are_by_provider_item_and_project() -> None:
    """The run begins at 10:00; 14 hours are left of the day."""
    run = Run(cloud("aws", template("c4", "1.00")), pool())
    run.do(declare(), hosts("R1", 1, price="1.00", project="chip1"), accept("R1"), at=at(0))
    run.do(came("R1", "m1", ended=True), at=at(0))
    run.do(units("R2", 2, price="2.00"), accept("R2"), lent("R2", ("g", 2), ended=True), at=at(60))
    run.do(MissJoin("aws/m1", "x"), StartReturn("B1", ("aws/m1",), "x"), at=at(16 * 60))
    run.do(ConfirmReturn("B1", "aws/m1"), at=at(16 * 60))

    days = run.projections.spending.periods(Period.DAY, "UTC", at(15 * 60))
    shown = [
        (str(day.since.date()), line.item, line.project, str(line.cost))
        for day in days
        for line in day.lines
    ]
    assert shown == [
        ("2026-03-01", "c4", "chip1", "14.000000"),
        ("2026-03-01", "lic", None, "52.000000"),
        ("2026-03-02", "c4", "chip1", "2.000000"),
        ("2026-03-02", "lic", None, "4.000000"),
    ]
    (month,) = run.projections.spending.periods(Period.MONTH, "Asia/Tokyo", at(15 * 60))
    assert [str(line.cost) for line in month.lines] == ["16.000000", "56.000000"]


def test_a_day_of_another_zone_has_what_fell_due_between_its_midnights() -> None:
    run = Run(cloud("aws", template("c4", "1.00")))
    run.do(hosts("R1", 1, price="1.00"), accept("R1"), came("R1", "m1", ended=True), at=at(0))

    spent = run.projections.spending.spent(Period.DAY, "Asia/Tokyo", at(8 * 60))  # 03:00 there

    assert spent.since == utc(2026, 3, 1, 15)
    assert [str(line.cost) for line in spent.lines] == ["3.000000"]


def test_what_goes_back_in_parts_is_paid_part_by_part() -> None:
    run = Run(pool())
    run.do(
        declare(),
        units("R1", 3, price="1.00"),
        accept("R1"),
        lent("R1", ("g", 3), ended=True),
        at=at(0),
    )
    run.do(occupied(0), StartGrantReturn("B1", "pool/g", 2), at=at(60))
    run.do(ConfirmGrantReturn("B1", "pool/g"), at=at(60))

    (today, month) = run.projections.spending.this_far(("UTC",), at(120))

    assert [line.cost for line in today.lines] == [Fraction(4)]
    assert month.lines == today.lines


def test_what_ended_without_a_price_is_counted_on_the_day_it_ended() -> None:
    run = Run(cloud("aws", template("c4", None)))
    run.do(hosts("R1", 1, price=None), accept("R1"), came("R1", "m1", ended=True), at=at(0))
    run.do(MissJoin("aws/m1", "x"), StartReturn("B1", ("aws/m1",), "x"), at=at(15 * 60))
    run.do(ConfirmReturn("B1", "aws/m1"), at=at(15 * 60))

    days = run.projections.spending.periods(Period.DAY, "UTC", at(16 * 60))

    assert [(str(day.since.date()), [line.unpriced for line in day.lines]) for day in days] == [
        ("2026-03-02", [1])
    ]
