"""Costs: given events, then what each provider's templates and resources cost, to the millionth."""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest

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
    RefuseGrantReturn,
    StartGrantReturn,
    StartReturn,
)
from xce.domain.formats.periods import Period
from xce.domain.formats.provider import Billing, BillingUnit, Kind
from xce.domain.policy import money
from xce.domain.values import LONGEST
from xce.projections.spending import SpendingLine

HOURLY = Billing(unit=BillingUnit.HOUR)


def one_host(
    billing: Billing | None = None, *, price: str | None = "6.00", until: float | None = None
) -> Run:
    """Return a run with one host, granted at minute 0 and gone at minute ``until``."""
    run = Run(cloud("aws", template("H", price), billing=billing))
    run.do(hosts("R1", 1, "H", price=price), accept("R1"), came("R1", "m1", ended=True), at=at(0))
    if until is not None:
        run.do(MissJoin("aws/m1", "x"), StartReturn("B1", ("aws/m1",), "x"), at=at(until - 1))
        run.do(ConfirmReturn("B1", "aws/m1"), at=at(until))
    return run


def cost(run: Run, now: datetime) -> Decimal:
    return run.projections.spending.cost_at(now)


def test_what_was_only_asked_costs_nothing() -> None:
    run = Run(cloud("aws", template()))
    run.do(hosts("R1", 3))

    assert cost(run, at(60)) == 0
    assert run.projections.spending.lines(at(60)) == ()


def test_a_host_costs_from_its_grant_to_its_confirmed_return() -> None:
    run = one_host(until=30)

    assert run.projections.spending.lines(at(500)) == (
        SpendingLine(
            provider="aws",
            kind=Kind.HOST,
            item="H",
            live=0,
            ended=1,
            used=minutes(30),
            billed=minutes(30),
            cost=Decimal("3.000000"),
            per_hour=Decimal(0),
            unpriced=0,
        ),
    )


def test_a_host_that_lives_costs_up_to_now_and_adds_to_the_rate() -> None:
    run = one_host()

    assert cost(run, at(10)) == 1
    assert cost(run, at(60)) == 6
    assert run.projections.spending.per_hour(at(60)) == 6
    assert run.projections.spending.lines(at(60))[0].live == 1


def test_a_lost_host_costs_until_it_is_known_to_be_gone() -> None:
    run = one_host()
    instance = run.instance("aws/m1")
    instance.lose(why="gone", at=at(20), by="test", epoch=1)
    run.save(instance)

    assert cost(run, at(99)) == 2


@pytest.mark.parametrize(
    ("billing", "until", "expected"),
    [
        (HOURLY, 59, "6"),
        (HOURLY, 60, "6"),
        (HOURLY, 61, "12"),
        (Billing(unit=BillingUnit.SECOND, minimum=minutes(1)), 25, "2.5"),
        (Billing(unit=BillingUnit.SECOND, minimum=minutes(30)), 10, "3"),
        (Billing(unit=BillingUnit.HOUR, minimum=minutes(90)), 10, "12"),
    ],
)
def test_f11_started_hours_and_minimums_are_paid(
    billing: Billing, until: float, expected: str
) -> None:
    run = one_host(billing, until=until)

    assert cost(run, at(500)) == Decimal(expected)
    assert cost(one_host(billing), at(until)) == Decimal(expected)


def test_seconds_are_started_seconds() -> None:
    run = one_host(price="3600")

    assert cost(run, at(0) + timedelta(milliseconds=1200)) == 2


def test_f03_two_hosts_that_never_joined_cost_until_the_provider_has_them_back() -> None:
    run = Run(cloud("aws", template("T", "2.00"), billing=Billing(minimum=minutes(1))))
    for number in (0, 1):
        name = f"aws/m{number}"
        asked = at(10 * number)
        run.do(hosts(f"R{number}", 1, "T", price="2.00"), accept(f"R{number}"), at=asked)
        run.do(came(f"R{number}", f"m{number}", ended=True), at=asked)
        run.do(MissJoin(name, "x"), StartReturn(f"B{number}", (name,), "x"), at=asked + minutes(10))
        run.do(ConfirmReturn(f"B{number}", name), at=asked + minutes(10))

    assert cost(run, at(49)) == Decimal("0.666667")
    assert run.projections.spending.lines(at(49))[0].billed == minutes(20)


def test_units_cost_until_the_lender_has_them_back_part_by_part() -> None:
    run = Run(pool(price="3.00"))
    run.do(declare())
    run.do(units("R1", 6, price="3.00"), accept("R1"), lent("R1", ("g1", 6)), at=at(0))
    run.do(occupied(0), StartGrantReturn("B1", "pool/g1", 4), at=at(10))
    assert cost(run, at(20)) == 6, "what is on its way back still costs"
    run.do(ConfirmGrantReturn("B1", "pool/g1"), at=at(20))
    run.do(StartGrantReturn("B2", "pool/g1", 2), at=at(30))
    run.do(RefuseGrantReturn("B2", "pool/g1", "no"), at=at(35))
    run.do(StartGrantReturn("B3", "pool/g1", 1), at=at(40))
    run.do(ConfirmGrantReturn("B3", "pool/g1"), at=at(40))

    (line,) = run.projections.spending.lines(at(60))
    assert (line.kind, line.item, line.live, line.ended) == (Kind.COUNTABLE, "lic", 1, 5)
    assert line.used == minutes(4 * 20 + 40 + 60)
    assert line.cost == 3 * Decimal(180) / 60
    assert line.per_hour == 3

    grant, resource = run.grant("pool/g1"), run.resource()
    grant.lose(why="term over", at=at(60), by="test", epoch=1)
    resource.lose_grant(grant_id="pool/g1", at=at(60), by="test")
    run.save(grant, resource)
    assert cost(run, at(999)) == 9


def test_an_unknown_price_is_counted_beside_the_cost() -> None:
    run = one_host(price=None, until=30)
    run.do(hosts("R2", 1, "H", price="6.00"), accept("R2"), came("R2", "m2"), at=at(30))

    (line,) = run.projections.spending.lines(at(60))
    assert line.cost == 3
    assert (line.unpriced, line.billed) == (1, minutes(60))


def test_costs_are_kept_for_each_provider_and_template_at_the_price_that_was_agreed() -> None:
    run = Run(cloud("p10", template("a", "1")), cloud("p2", template("b", "1"), template("a", "9")))
    run.do(hosts("R1", 1, "a", of="p10", price="1"), accept("R1"), came("R1", "m1"))
    run.do(hosts("R2", 1, "b", of="p2", price="2"), accept("R2"), came("R2", "m2"))
    run.do(hosts("R3", 1, "a", of="p2", price="3"), accept("R3"), came("R3", "m3"))
    run.do(hosts("R4", 1, "a", of="p2", price="4"), accept("R4"), came("R4", "m4"))

    lines = run.projections.spending.lines(at(60))

    assert [(line.provider, line.item, line.cost) for line in lines] == [
        ("p2", "a", Decimal(7)),
        ("p2", "b", Decimal(2)),
        ("p10", "a", Decimal(1)),
    ]
    assert run.projections.spending.cost_at(at(60), provider="p2") == 9
    assert run.projections.spending.per_hour(at(60), provider="p2") == 9
    assert cost(run, at(60)) == sum(line.cost for line in lines)


def test_a_cost_is_exact_to_the_millionth_over_many_small_parts() -> None:
    run = Run(cloud("aws", template("T", "0.000001")))
    run.do(hosts("R1", 3, "T", price="0.1"), accept("R1"), came("R1", "a", "b", "c", ended=True))

    assert cost(run, at(1)) == Decimal("0.005")
    assert cost(run, at(0) + timedelta(seconds=7)) == Decimal("0.000583")


@pytest.mark.parametrize("amount", [10**9, 2**53 - 1])
def test_a_lender_that_lends_more_than_time_can_count_does_not_stop_the_fold(amount: int) -> None:
    # Given an ask of 6 that is answered with a billion, at the highest price that there is.
    highest = "99999999999999.999999"
    run = Run(pool(price=highest))
    run.do(declare())
    run.do(units("R1", 6, price=highest), accept("R1"), lent("R1", ("g1", amount)), at=at(0))

    (living,) = run.projections.spending.lines(at(60 * 24 * 30))
    spent = run.projections.spending.spent(Period.MONTH, "UTC", at(60 * 24 * 30))
    run.do(occupied(0), StartGrantReturn("B1", "pool/g1", amount), at=at(10))
    run.do(ConfirmGrantReturn("B1", "pool/g1"), at=at(60 * 24 * 30))
    (ended,) = run.projections.spending.lines(at(60 * 24 * 31))

    assert (living.live, ended.ended) == (amount, amount)
    assert living.used == ended.used == LONGEST
    assert ended.cost > money.MOST, "kept exactly"
    assert [line.cost for line in spent.lines] == [money.MOST], "said as formats can"
