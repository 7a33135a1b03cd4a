"""Totals of shared resources: given events, then owned, borrowed, total, in flight and returning."""

import pytest

from tests.unit.projections.run import Run, accept, at, declare, lent, occupied, pool, units
from xce.domain.engine.commands import (
    ConfirmGrantReturn,
    GiveUpRequest,
    RefuseGrantReturn,
    StartGrantReturn,
)
from xce.projections.totals import SharedTotal


def given() -> Run:
    run = Run(pool())
    run.do(declare(owned=10, max_borrow=40))
    return run


def numbers(run: Run) -> tuple[int, int, int, int, int]:
    total = run.projections.totals.of("lic")
    return total.owned, total.borrowed, total.total, total.in_flight, total.returning


def borrowed_five() -> Run:
    run = given()
    run.do(units("R1", 5))
    run.do(accept("R1"), lent("R1", ("g1", 5)))
    return run


def test_a_declared_resource_has_what_is_owned() -> None:
    run = given()

    assert numbers(run) == (10, 0, 10, 0, 0)
    assert run.projections.totals.of("lic").headroom == 40


def test_a_resource_that_was_never_declared_is_not_there() -> None:
    assert given().projections.totals.get("tok") is None
    with pytest.raises(KeyError):
        given().projections.totals.of("tok")


def test_what_is_asked_is_in_flight_and_not_in_the_total() -> None:
    run = given()

    run.do(units("R1", 5))

    assert numbers(run) == (10, 0, 10, 5, 0)
    assert run.projections.totals.of("lic").headroom == 35


def test_a_grant_turns_what_is_in_flight_into_borrowed() -> None:
    assert numbers(borrowed_five()) == (10, 5, 15, 0, 0)


def test_a_partial_grant_leaves_the_rest_in_flight_until_the_request_ends() -> None:
    run = given()
    run.do(units("R1", 5), accept("R1"), lent("R1", ("g1", 2), ended=False))
    assert numbers(run) == (10, 2, 12, 3, 0)

    run.do(lent("R1", ("g1", 2), ended=True))

    assert numbers(run) == (10, 2, 12, 0, 0)


def test_a_surplus_is_borrowed_and_not_negative_in_flight() -> None:
    run = given()

    run.do(units("R1", 5), units("R2", 1), accept("R1"), lent("R1", ("g1", 7), ended=False))

    assert numbers(run) == (10, 7, 17, 1, 0)


def test_a_late_grant_after_the_request_was_given_up_is_borrowed() -> None:
    run = given()
    run.do(units("R1", 5), accept("R1"))
    run.do(GiveUpRequest("R1", "too late"))
    assert numbers(run) == (10, 0, 10, 0, 0)

    run.do(lent("R1", ("g1", 5), ended=False))

    assert numbers(run) == (10, 5, 15, 0, 0)


def test_an_amount_that_goes_back_leaves_the_total_at_once_and_is_returning_until_confirmed() -> (
    None
):
    run = borrowed_five()

    run.do(occupied(3), StartGrantReturn("B1", "pool/g1", 4))
    assert numbers(run) == (10, 1, 11, 0, 4)

    run.do(ConfirmGrantReturn("B1", "pool/g1"))
    assert numbers(run) == (10, 1, 11, 0, 0)


def test_a_refused_return_is_in_the_total_again() -> None:
    run = borrowed_five()

    run.do(occupied(3), StartGrantReturn("B1", "pool/g1", 4))
    run.do(RefuseGrantReturn("B1", "pool/g1", "too early"))

    assert numbers(run) == (10, 5, 15, 0, 0)


def test_a_lost_grant_takes_what_was_left_and_what_was_returning_away() -> None:
    run = borrowed_five()
    run.do(occupied(0), StartGrantReturn("B1", "pool/g1", 2))

    grant, resource = run.grant("pool/g1"), run.resource()
    grant.lose(why="term over", at=at(9), by="test", epoch=1)
    resource.lose_grant(grant_id="pool/g1", at=at(9), by="test")
    run.save(grant, resource)

    assert numbers(run) == (10, 0, 10, 0, 0)


def test_settings_and_owned_follow_the_configuration() -> None:
    run = borrowed_five()

    run.do(declare(owned=3, max_borrow=4, step=2))

    total = run.projections.totals.of("lic")
    assert (total.owned, total.total, total.step, total.max_borrow) == (3, 8, 2, 4)
    assert total.headroom == 0
    assert run.projections.totals.all() == (total,)


def test_a_view_that_was_read_does_not_change() -> None:
    run = given()
    before = run.projections.totals.of("lic")
    assert run.projections.totals.of("lic") is before, "nothing changed: nothing is made anew"

    run.do(units("R1", 5))

    assert before == SharedTotal(
        name="lic",
        owned=10,
        provider="pool",
        max_borrow=40,
        idle_return_after=before.idle_return_after,
    )
    assert run.projections.totals.of("lic").in_flight == 5
