"""Costs of orphans: given machines that nobody owns, then what they have cost is in the sums, and nothing counts twice."""

from datetime import datetime
from decimal import Decimal

import pytest

from tests.unit.projections.run import (
    Run,
    accept,
    at,
    came,
    cloud,
    hosts,
    pool,
    template,
)
from xce.domain.engine.commands import (
    CloseOrphan,
    Command,
    DismissOrphan,
    GiveUpRequest,
    LoseInstance,
    MissJoin,
    ReportOrphan,
    ReturnOrphan,
    SettleRequest,
    StartReturn,
)
from xce.domain.formats.periods import Period
from xce.domain.formats.provider import Billing, BillingUnit, Kind
from xce.domain.policy import money
from xce.domain.provisioning.orphan import OrphanKind
from xce.projections.spending import SpendingLine

UNKNOWN = OrphanKind.UNKNOWN_TO_US


def site(*, price: str | None = "6.00", billing: Billing | None = None) -> Run:
    return Run(cloud("aws", template("H", price), billing=billing), pool(price="3.00"))


def found(
    theirs: str = "i-1",
    *,
    since: datetime | None = None,
    item: str | None = "H",
    tag: str | None = None,
) -> ReportOrphan:
    return ReportOrphan("aws", theirs, UNKNOWN, tag, "listed twice", item=item, since=since)


def gone(theirs: str = "i-1") -> CloseOrphan:
    return CloseOrphan("aws", theirs, "not listed")


def cost(run: Run, now: datetime) -> Decimal:
    return run.projections.spending.cost_at(now)


def spent(run: Run, now: datetime) -> Decimal:
    lines = run.projections.spending.spent(Period.DAY, "UTC", now).lines
    return sum((line.cost for line in lines), money.ZERO)


def one_line(run: Run, now: datetime) -> SpendingLine:
    (line,) = run.projections.spending.lines(now)
    return line


def test_it_costs_from_when_its_provider_says_that_it_began() -> None:
    run = site()
    run.do(found(since=at(10)), at=at(30))

    assert cost(run, at(40)) == 3
    assert spent(run, at(40)) == 3
    assert run.projections.spending.per_hour(at(40)) == 6


def test_it_costs_from_when_it_was_found_where_nobody_says_when_it_began() -> None:
    run = site()
    run.do(found(), at=at(30))

    assert cost(run, at(40)) == 1


def test_it_costs_until_it_is_gone_whether_it_goes_back_meanwhile_or_not() -> None:
    run = site()
    run.do(found(since=at(10)), at=at(30))
    run.do(ReturnOrphan("aws", "i-1", "B1", "nobody's"), at=at(35))
    run.do(gone(), at=at(40))

    assert cost(run, at(99)) == 3
    assert spent(run, at(99)) == 3
    line = one_line(run, at(99))
    assert (line.owned, line.live, line.ended) == (False, 0, 1)
    assert line.per_hour == 0


def test_it_has_a_line_of_its_own() -> None:
    run = site()
    run.do(hosts("R1", 1, "H", price="6.00"), came("R1", "m1", ended=True), at=at(0))
    run.do(found(since=at(10)), at=at(30))

    lines = run.projections.spending.lines(at(40))

    assert [(line.item, line.owned, line.live, line.cost) for line in lines] == [
        ("H", True, 1, Decimal(4)),
        ("H", False, 1, Decimal(3)),
    ]
    assert cost(run, at(40)) == 7


def test_one_that_is_none_of_ours_has_cost_us_nothing() -> None:
    run = site()
    run.do(found(since=at(10)), at=at(30))
    run.do(DismissOrphan("aws", "i-1", "of another team"), at=at(40))

    assert cost(run, at(50)) == 0
    assert spent(run, at(50)) == 0
    assert run.projections.spending.lines(at(50)) == ()


def test_an_unknown_price_is_not_zero() -> None:
    run = site(price=None)
    run.do(found(since=at(10)), at=at(30))
    line = one_line(run, at(40))
    run.do(gone(), at=at(50))

    assert (line.cost, line.unpriced) == (Decimal(0), 1)
    (ended,) = run.projections.spending.spent(Period.DAY, "UTC", at(60)).lines
    assert (ended.item, ended.cost, ended.unpriced) == ("H", Decimal(0), 1)


def test_of_an_unknown_template_it_costs_what_it_counts_as() -> None:
    run = Run(cloud("aws", template("c4", "0.60"), template("m8", "6.00"), capacity=5))
    run.do(found(item=None, since=at(0)), at=at(10))

    line = one_line(run, at(20))

    assert (line.item, line.cost) == ("m8", Decimal(2))
    (counted,) = run.projections.catalog.unaccounted()
    assert (counted.item, counted.price, counted.since) == ("m8", Decimal(6), at(0))


def test_where_its_provider_offers_nothing_neither_item_nor_price_is_known() -> None:
    run = Run(cloud("aws"))
    run.do(found(item=None, since=at(0)), at=at(10))

    line = one_line(run, at(20))

    assert (line.item, line.cost, line.unpriced) == (None, Decimal(0), 1)


def test_units_cost_all_together() -> None:
    run = site()
    units = ReportOrphan(
        "pool", "g-1", UNKNOWN, None, "lent", of=Kind.COUNTABLE, item="lic", amount=4
    )
    run.do(units, at=at(0))

    assert cost(run, at(10)) == 2


def test_an_ask_of_which_nobody_knows_costs_nothing_as_nothing_is_known_to_exist() -> None:
    run = site()
    run.do(hosts("R1", 3, "H", price="6.00"), at=at(0))
    run.do(GiveUpRequest("R1", "over"), SettleRequest("R1", "nobody knows"), at=at(5))
    run.do(ReportOrphan("aws", "R1", UNKNOWN, "R1", "never found out"), at=at(5))

    assert cost(run, at(60)) == 0
    (counted,) = run.projections.catalog.unaccounted()
    assert counted.since is None


def test_its_price_is_that_of_its_request() -> None:
    run = site()
    run.do(hosts("R1", 1, "H", price="3.00", project="phys"), at=at(0))
    run.do(found(tag="R1", since=at(10)), at=at(10))

    assert cost(run, at(30)) == 1
    (line,) = run.projections.spending.spent(Period.DAY, "UTC", at(30)).lines
    assert line.project == "phys"


# ------------------------------------------------------------------- nothing counts twice
def test_a_host_that_was_lost_and_is_there_still_costs_once() -> None:
    run = site()
    run.do(hosts("R1", 1, "H", price="6.00"), came("R1", "m1", ended=True), at=at(0))
    run.do(LoseInstance("aws/m1", "not listed"), at=at(20))
    run.do(found("m1", since=at(0)), at=at(30))

    assert cost(run, at(60)) == 6


def test_one_that_was_gone_and_is_there_again_costs_once() -> None:
    run = site()
    run.do(found(since=at(0)), at=at(10))
    run.do(gone(), at=at(20))
    run.do(found(since=at(0)), at=at(40))

    assert cost(run, at(60)) == 6
    assert one_line(run, at(60)).ended == 1


def test_a_machine_whose_request_is_found_belongs_to_it_from_then_on() -> None:
    run = site()
    run.do(hosts("R1", 1, "H", price="6.00"), accept("R1"), at=at(0))
    run.do(found("m1", since=at(10)), at=at(20))
    run.do(came("R1", "m1", ended=True), at=at(30))

    assert cost(run, at(60)) == 5
    assert run.projections.inventory.view().unowned == ()
    assert run.projections.reasons.orphans() == ()
    lines = run.projections.spending.lines(at(60))
    assert [(line.owned, line.live, line.cost) for line in lines] == [
        (True, 1, Decimal(3)),
        (False, 0, Decimal(2)),
    ]


def test_what_a_record_owns_by_now_is_no_orphan() -> None:
    run = site()
    run.do(hosts("R1", 1, "H", price="6.00"), came("R1", "m1", ended=True), at=at(0))

    assert run.do(found("m1", since=at(0)), at=at(30)) == []


def test_a_machine_that_serves_another_request_while_it_goes_back_is_one_of_its_own() -> None:
    run = site()
    run.do(hosts("R1", 1, "H", price="6.00"), came("R1", "m1", ended=True), at=at(0))
    run.do(MissJoin("aws/m1", "x"), StartReturn("B1", ("aws/m1",), "x"), at=at(10))

    assert run.do(found("m1", since=at(0)), at=at(20)) == []
    run.do(found("m1", tag="R9", since=at(0)), at=at(20))

    assert cost(run, at(40)) == 6  # 40 minutes of the one, 20 of the other


def test_what_a_provider_says_of_times_before_we_knew_it_is_not_believed() -> None:
    run = site()
    run.do(found(since=datetime.fromisoformat("1970-01-01T00:00:00Z")), at=at(30))

    assert cost(run, at(60)) == 6


def test_what_is_said_to_begin_later_costs_from_when_it_was_found() -> None:
    run = site()
    run.do(found(since=at(999)), at=at(30))

    assert cost(run, at(60)) == 3


def test_what_is_spent_and_what_is_to_come_are_the_whole_hours_together() -> None:
    run = site(billing=Billing(unit=BillingUnit.HOUR))
    run.do(found(since=at(0)), at=at(30))

    (entry,) = run.projections.inventory.view().unowned

    assert entry.since == at(0)
    assert spent(run, at(40)) == 6


@pytest.mark.parametrize("minute", [25, 35, 45, 55])
def test_a_rebuilt_and_a_resumed_view_have_the_same(minute: int) -> None:
    run = site()
    steps: dict[int, Command] = {
        20: found(since=at(10)),
        30: gone(),
        40: found(since=at(10)),
        50: gone(),
    }
    kept, position = run.projections.keep(), run.projections.position
    for when, command in steps.items():
        if when > minute:
            kept, position = run.projections.keep(), run.projections.position
            break
        run.do(command, at=at(when))
    for when, command in steps.items():
        if when > minute:
            run.do(command, at=at(when))

    resumed = type(run.projections).resumed(position, kept)
    resumed.apply(run.log.read(position))

    assert resumed.difference(run.projections) is None
    assert run.rebuilt().difference(run.projections) is None
    assert cost(run, at(99)) == 4
