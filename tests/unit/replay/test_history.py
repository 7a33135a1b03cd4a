"""What a log says of everything obtained, in the cases that do not go smoothly."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from tests.made_up.run import Who
from xce.domain.events.base import Aggregate, DomainEvent
from xce.domain.formats.provider import Billing, BillingUnit, Kind
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.request import Request, RequestState
from xce.replay.curves import cost_timeline
from xce.replay.history import History

AT = datetime(2026, 3, 2, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
WHO: Who = {"by": "test", "epoch": 1}


def instance(billing: Billing | None = None, price: str | None = "6.00") -> Instance:
    return Instance.grant(
        instance="cloud/vm-1", request_id="R1", provider="cloud", template="h", machine="vm-1", name=None,
        price_per_hour=None if price is None else Decimal(price), billing=billing or Billing(), hold_until=None, at=AT, **WHO,
    )  # fmt: skip


def request(amount: int = 3, kind: Kind = Kind.HOST) -> Request:
    return Request.intend(
        request="R1", provider="cloud", kind=kind, item="h", amount=amount, price_per_hour=Decimal("6.00"),
        deadline=AT + 15 * MINUTE, reason="3 jobs wait", jobs=("1", "2"), demand_position=0, hold=timedelta(0), at=AT, **WHO,
    )  # fmt: skip


def grant(amount: int = 10) -> Grant:
    return Grant.grant(
        grant="pool/lent-R1", request_id="R1", provider="pool", resource="lic", amount=amount, hold_until=None,
        expires_at=None, price_per_hour=Decimal("1.50"), at=AT, **WHO,
    )  # fmt: skip


def history_of(*aggregates: Aggregate[RequestState] | Instance | Grant) -> History:
    events: list[DomainEvent] = []
    for aggregate in aggregates:
        events += aggregate.new_events()
    return History.of(events)


def test_a_host_costs_until_its_return_is_confirmed() -> None:
    host = instance()
    host.miss_join(why="did not join within 10 min", at=AT + 10 * MINUTE, **WHO)
    host.intend_return(return_id="B1", why="never joined", at=AT + 10 * MINUTE, **WHO)
    host.confirm_return(at=AT + 12 * MINUTE, **WHO)

    (use,) = history_of(host).hosts.values()

    assert use.used(AT + timedelta(days=1)) == 12 * MINUTE
    assert use.cost(AT + timedelta(days=1)) == Fraction(6) * 12 / 60
    assert (use.joined_at, use.trouble) == (None, "did not join within 10 min")


def test_a_host_that_is_still_there_costs_up_to_now() -> None:
    (use,) = history_of(instance()).hosts.values()

    assert use.cost(AT + 30 * MINUTE) == 3


def test_a_started_hour_is_billed_whole_and_the_curve_ends_at_the_bill() -> None:
    host = instance(Billing(unit=BillingUnit.HOUR))
    host.miss_join(why="x", at=AT, **WHO)
    host.intend_return(return_id="B1", why="x", at=AT + 61 * MINUTE, **WHO)
    host.confirm_return(at=AT + 61 * MINUTE, **WHO)
    history = history_of(host)
    end = AT + 180 * MINUTE

    (use,) = history.hosts.values()
    curve = cost_timeline(history, end, points=180)

    assert use.billed_seconds(end) == 7200
    assert curve.values["h"][61] == Decimal("12.000000")
    assert curve.values["h"][60] == Decimal("6.000000")
    assert curve.values["h"][-1] == Decimal("12.000000")


def test_an_unknown_price_is_an_unknown_cost() -> None:
    (use,) = history_of(instance(price=None)).hosts.values()

    assert use.cost(AT + 30 * MINUTE) is None


def test_a_refused_return_is_told_apart_from_the_one_that_went_through() -> None:
    host = instance()
    host.miss_join(why="x", at=AT, **WHO)
    host.intend_return(return_id="B1", why="x", at=AT + MINUTE, **WHO)
    host.refuse_return(return_id="B1", why="not now", at=AT + 2 * MINUTE, **WHO)
    host.intend_return(return_id="B2", why="x", at=AT + 3 * MINUTE, **WHO)
    host.confirm_return(at=AT + 4 * MINUTE, **WHO)

    returns = history_of(host).returns

    assert [(use.return_id, use.outcome) for use in returns.values()] == [
        ("B1", "refused: not now"),
        ("B2", "returned"),
    ]


def test_a_request_counts_what_came_and_how_it_ended() -> None:
    asked = request()
    asked.accept(provider_request_id="p1", at=AT, **WHO)
    asked.grant_instance(instance_id="cloud/vm-1", machine="vm-1", at=AT + MINUTE, **WHO)
    asked.fall_short(failed=2, why="no capacity", at=AT + MINUTE, **WHO)
    asked.close(outcome=RequestState.PARTIAL, why="2 failed: no capacity", at=AT + MINUTE, **WHO)

    (use,) = history_of(asked).requests.values()

    assert (use.amount, use.granted, use.outcome, use.why) == (
        3,
        1,
        "partial",
        "2 failed: no capacity",
    )
    assert (use.reason, use.jobs, use.closed_at) == ("3 jobs wait", ("1", "2"), AT + MINUTE)


def test_a_request_without_an_answer_is_open() -> None:
    (use,) = history_of(request()).requests.values()

    assert (use.outcome, use.granted, use.closed_at) == ("open", 0, None)


def test_parts_of_a_grant_go_back_one_by_one_and_a_refused_part_stays() -> None:
    lent = grant()
    lent.start_return(return_id="B1", amount=4, at=AT + 10 * MINUTE, **WHO)
    lent.confirm_return(return_id="B1", at=AT + 10 * MINUTE, **WHO)
    lent.start_return(return_id="B2", amount=6, at=AT + 20 * MINUTE, **WHO)
    lent.refuse_return(return_id="B2", why="not now", at=AT + 20 * MINUTE, **WHO)
    end = AT + 60 * MINUTE

    (use,) = history_of(lent).grants.values()

    assert (use.held, use.returned, use.lost) == (6, 4, 0)
    assert use.unit_seconds(end) == 4 * 600 + 6 * 3600
    assert use.cost(end) == Fraction(3, 2) * (4 * 600 + 6 * 3600) / 3600


def test_a_lost_grant_is_lost_and_not_returned() -> None:
    lent = grant()
    lent.start_return(return_id="B1", amount=4, at=AT + 10 * MINUTE, **WHO)
    lent.confirm_return(return_id="B1", at=AT + 10 * MINUTE, **WHO)
    lent.lose(why="its term ended", at=AT + 30 * MINUTE, **WHO)

    (use,) = history_of(lent).grants.values()

    assert (use.held, use.returned, use.lost) == (0, 4, 6)
    assert use.unit_seconds(AT + timedelta(days=1)) == 4 * 600 + 6 * 1800
