"""Grant: given earlier steps, when a command, then new events or a refusal."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal

import pytest

from tests.unit.aggregates import AT, FACT, HOUR, fact, then
from xce.domain.errors import IllegalTransitionError, RejectedError
from xce.domain.provisioning.grant import Grant, GrantState

Step = Callable[[Grant], None]


def granted(amount: int = 6, hold_until: datetime | None = None) -> Grant:
    return Grant.grant(
        grant="G1",
        request_id="R1",
        provider="pool",
        resource="lic_spice",
        amount=amount,
        hold_until=hold_until,
        expires_at=AT + 8 * HOUR,
        price_per_hour=Decimal("2.00"),
        **FACT,
    )


def given(*steps: Step, hold_until: datetime | None = None) -> Grant:
    grant = granted(hold_until=hold_until)
    for step in steps:
        step(grant)
    grant.collect_events()
    return grant


def start(return_id: str, amount: int) -> Step:
    return lambda grant: grant.start_return(return_id=return_id, amount=amount, **FACT)


def confirm(return_id: str) -> Step:
    return lambda grant: grant.confirm_return(return_id=return_id, **FACT)


def refuse(return_id: str) -> Step:
    return lambda grant: grant.refuse_return(return_id=return_id, why="hold", **FACT)


def lose(grant: Grant) -> None:
    grant.lose(why="term ended", **FACT)


def test_a_grant_goes_back_in_parts() -> None:
    grant = given()

    for step in (start("X1", 2), confirm("X1"), start("X2", 4), confirm("X2")):
        step(grant)

    assert then(grant) == [
        ("ReturnStarted", {"return_id": "X1", "amount": 2}),
        ("ReturnConfirmed", {"return_id": "X1"}),
        ("ReturnStarted", {"return_id": "X2", "amount": 4}),
        ("ReturnConfirmed", {"return_id": "X2"}),
    ]
    assert grant.state is GrantState.CLOSED


def test_no_more_goes_back_than_is_left() -> None:
    grant = given(start("X1", 4))

    with pytest.raises(RejectedError, match="has 2 left; 3 of it cannot go back"):
        start("X2", 3)(grant)
    with pytest.raises(RejectedError, match="0 of it cannot go back"):
        start("X2", 0)(grant)

    assert then(grant) == []


def test_nothing_goes_back_before_the_hold() -> None:
    grant = given(hold_until=AT + HOUR)

    with pytest.raises(RejectedError, match="must be kept until"):
        start("X1", 1)(grant)

    grant.start_return(return_id="X1", amount=1, **fact(AT + HOUR))
    assert [name for name, _ in then(grant)] == ["ReturnStarted"]


def test_each_return_takes_effect_once() -> None:
    grant = given(start("X1", 2), confirm("X1"), start("X2", 1), refuse("X2"))

    for step in (start("X1", 2), confirm("X1"), start("X2", 1), refuse("X2")):
        step(grant)

    assert then(grant) == []
    assert (grant.returned, grant.returning, grant.active) == (2, 0, 4)


def test_a_return_id_keeps_its_amount() -> None:
    with pytest.raises(RejectedError, match="X1 is of 2, found 3"):
        start("X1", 3)(given(start("X1", 2)))


def test_a_refused_part_is_ours_again() -> None:
    grant = given(start("X1", 6))

    refuse("X1")(grant)

    assert then(grant) == [("ReturnRefused", {"return_id": "X1", "why": "hold"})]
    assert (grant.state, grant.active) == (GrantState.ACTIVE, 6)


def test_two_returns_at_once_are_answered_one_by_one() -> None:
    grant = given(start("X1", 2), start("X2", 4))

    refuse("X1")(grant)
    first = grant.state
    confirm("X2")(grant)

    assert [first, grant.state] == [GrantState.RETURNING, GrantState.ACTIVE]
    assert (grant.active, grant.returned) == (2, 4)


@pytest.mark.parametrize(("first", "second"), [(confirm, refuse), (refuse, confirm)])
def test_an_answer_is_not_taken_back(
    first: Callable[[str], Step], second: Callable[[str], Step]
) -> None:
    grant = given(start("X1", 2), first("X1"))

    with pytest.raises(RejectedError, match="return X1 of grant G1 was"):
        second("X1")(grant)


def test_an_answer_to_no_return_is_refused() -> None:
    with pytest.raises(RejectedError, match="has no return X9"):
        confirm("X9")(given())


def test_a_lost_grant_is_over() -> None:
    grant = given(start("X1", 2), lose)

    for step in (lose, confirm("X1"), refuse("X1"), start("X1", 2)):
        step(grant)

    assert then(grant) == []
    assert grant.active == 0
    with pytest.raises(IllegalTransitionError, match="grant is lost"):
        start("X2", 1)(grant)


def test_what_was_given_back_cannot_be_lost() -> None:
    grant = given(start("X1", 6), confirm("X1"))

    lose(grant)

    assert then(grant) == []
    with pytest.raises(IllegalTransitionError, match="grant is closed"):
        start("X2", 1)(grant)


def test_a_grant_is_of_something() -> None:
    with pytest.raises(RejectedError, match="at least 1, found 0"):
        granted(amount=0)


def accept(return_id: str, theirs: str) -> Step:
    return lambda grant: grant.accept_return(return_id=return_id, provider_return_id=theirs, **FACT)


def test_the_providers_id_of_a_return_is_recorded_once_and_a_new_one_again() -> None:
    grant = given(start("X1", 2))

    for step in (accept("X1", "ret-1"), accept("X1", "ret-1"), accept("X1", "ret-2")):
        step(grant)

    assert then(grant) == [
        ("ReturnAccepted", {"return_id": "X1", "provider_return_id": "ret-1"}),
        ("ReturnAccepted", {"return_id": "X1", "provider_return_id": "ret-2"}),
    ]


@pytest.mark.parametrize("end", [confirm("X1"), refuse("X1"), lose])
def test_a_return_that_is_over_is_not_accepted_any_more(end: Step) -> None:
    grant = given(start("X1", 2), end)

    accept("X1", "ret-1")(grant)

    assert then(grant) == []


def test_a_return_that_never_was_cannot_be_accepted() -> None:
    grant = given()

    with pytest.raises(RejectedError, match="no return X9"):
        accept("X9", "ret-9")(grant)

    assert then(grant) == []
