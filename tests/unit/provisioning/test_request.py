"""Request: given earlier steps, when a command, then new events or a refusal."""

from collections.abc import Callable
from decimal import Decimal

import pytest

from tests.unit.aggregates import AT, FACT, HOUR, then
from xce.domain.errors import IllegalTransitionError, RejectedError
from xce.domain.formats.provider import Kind
from xce.domain.provisioning.request import CLOSED, Request, RequestState

Step = Callable[[Request], None]


def intended(amount: int = 10, kind: Kind = Kind.HOST) -> Request:
    return Request.intend(
        request="R1",
        provider="aws",
        kind=kind,
        item="c4" if kind is Kind.HOST else "lic_spice",
        amount=amount,
        price_per_hour=Decimal("0.17"),
        deadline=AT + HOUR,
        reason="3 jobs wait",
        jobs=["101", "102"],
        demand_position=7,
        hold=HOUR,
        **FACT,
    )


def given(*steps: Step, amount: int = 10, kind: Kind = Kind.HOST) -> Request:
    request = intended(amount, kind)
    for step in steps:
        step(request)
    request.collect_events()
    return request


def accept(request: Request) -> None:
    request.accept(provider_request_id="add-7f31", **FACT)


def lose_track(request: Request) -> None:
    request.lose_track(why="timeout", **FACT)


def machine(*numbers: int) -> Step:
    def step(request: Request) -> None:
        for number in numbers:
            request.grant_instance(instance_id=f"I{number}", machine=f"m{number}", **FACT)

    return step


def amount_of(grant: str, amount: int) -> Step:
    return lambda request: request.grant_amount(grant_id=grant, amount=amount, **FACT)


def fail(failed: int) -> Step:
    return lambda request: request.fall_short(failed=failed, why="capacity", **FACT)


def close(outcome: RequestState) -> Step:
    return lambda request: request.close(outcome=outcome, why="last answer", **FACT)


def test_an_intent_says_all_that_will_be_asked_and_why() -> None:
    request = intended()

    assert then(request) == [
        (
            "Intended",
            {
                "provider": "aws",
                "kind": Kind.HOST,
                "item": "c4",
                "amount": 10,
                "price_per_hour": Decimal("0.17"),
                "deadline": AT + HOUR,
                "reason": "3 jobs wait",
                "jobs": ("101", "102"),
                "demand_position": 7,
                "hold": HOUR,
                "project": None,
            },
        )
    ]
    assert request.id == "request:R1"
    assert request.open_amount == 10


def test_no_hosts_are_not_a_request() -> None:
    with pytest.raises(RejectedError, match="at least 1, found 0"):
        intended(amount=0)


def test_a_deadline_in_the_past_is_refused() -> None:
    with pytest.raises(RejectedError, match="is over at"):
        Request.intend(
            request="R1", provider="aws", kind=Kind.HOST, item="c4", amount=1, price_per_hour=None,
            deadline=AT, reason="", jobs=[], demand_position=0, hold=HOUR, **FACT,
        )  # fmt: skip


def test_the_providers_id_is_recorded_once() -> None:
    request = given()

    accept(request)
    accept(request)

    assert then(request) == [("Accepted", {"provider_request_id": "add-7f31"})]


def test_another_id_for_an_accepted_request_is_refused() -> None:
    request = given(accept)

    with pytest.raises(IllegalTransitionError, match=r"Accepted .* request is accepted"):
        request.accept(provider_request_id="add-0000", **FACT)

    assert then(request) == []


@pytest.mark.parametrize("steps", [[accept, lose_track], [accept, close(RequestState.TIMED_OUT)]])
def test_a_request_is_known_to_its_provider_under_one_id_for_ever(steps: list[Step]) -> None:
    request = given(*steps)

    with pytest.raises(RejectedError, match="is 'add-7f31' at the provider, found 'add-0000'"):
        request.accept(provider_request_id="add-0000", **FACT)


def test_an_unknown_outcome_that_is_looked_up_is_accepted() -> None:
    request = given(accept, lose_track)

    accept(request)

    assert then(request) == [("Accepted", {"provider_request_id": "add-7f31"})]
    assert request.state is RequestState.ACCEPTED


def test_an_unknown_outcome_stays_in_flight() -> None:
    request = given(lose_track)

    lose_track(request)

    assert then(request) == []
    assert request.open_amount == 10


# ------------------------------------------------------------------- F08, accounting
def test_asked_ten_got_seven_is_partial_and_read_again_changes_nothing() -> None:
    """F08."""
    request = given(accept)
    answer = (machine(1, 2, 3, 4, 5, 6, 7), fail(3))

    for step in answer:
        step(request)
    close(request.outcome)(request)

    names = [name for name, _ in then(request)]
    assert names == ["InstanceGranted"] * 7 + ["FellShort", "Closed"]
    assert request.state is RequestState.PARTIAL
    assert (request.granted, request.failed, request.open_amount) == (7, 3, 0)

    for step in answer:
        step(request)
    close(request.outcome)(request)

    assert then(request) == []


def test_eleven_machines_for_ten_are_all_recorded() -> None:
    """F08, variation b."""
    request = given(accept, machine(*range(1, 11)))

    machine(11)(request)
    close(request.outcome)(request)

    assert [name for name, _ in then(request)] == ["InstanceGranted", "Closed"]
    assert (request.granted, request.open_amount) == (11, 0)
    assert request.state is RequestState.COMPLETE


def test_while_an_answer_is_partial_the_rest_is_in_flight() -> None:
    request = given(accept, machine(1, 2), fail(3))

    assert request.open_amount == 5


def test_a_failure_is_recorded_by_what_is_new_of_it() -> None:
    request = given(accept, fail(1))

    fail(3)(request)

    assert then(request) == [("FellShort", {"amount": 2, "why": "capacity"})]


def test_a_machine_is_counted_once_whatever_it_is_called() -> None:
    request = given(machine(1))

    request.grant_instance(instance_id="I99", machine="m1", **FACT)

    assert then(request) == []
    assert request.instance_of == {"m1": "I1"}


def test_one_instance_is_not_two_machines() -> None:
    request = given(machine(1))

    with pytest.raises(RejectedError, match=r"instance I1 .* is not 'm2'"):
        request.grant_instance(instance_id="I1", machine="m2", **FACT)


def test_a_machine_that_fails_is_owned_and_not_granted() -> None:
    request = given(accept)

    request.fail_machine(instance_id="I1", machine="m1", why="no address", **FACT)
    request.fail_machine(instance_id="I1", machine="m1", why="no address", **FACT)

    assert then(request) == [
        ("MachineFailed", {"instance_id": "I1", "machine": "m1", "why": "no address"})
    ]
    assert (request.granted, request.failed, request.open_amount) == (0, 1, 9)


def test_a_late_machine_is_recorded_with_the_request_that_was_given_up() -> None:
    """F05."""
    request = given(close(RequestState.TIMED_OUT))

    machine(1)(request)

    assert then(request) == [("InstanceGranted", {"instance_id": "I1", "machine": "m1"})]
    assert request.state is RequestState.TIMED_OUT
    assert request.open_amount == 0


def test_a_late_id_is_recorded_with_the_request_that_was_given_up() -> None:
    request = given(lose_track, close(RequestState.TIMED_OUT))

    accept(request)

    assert then(request) == [("Accepted", {"provider_request_id": "add-7f31"})]
    assert request.state is RequestState.TIMED_OUT


def test_amounts_are_counted_by_grant() -> None:
    request = given(accept, kind=Kind.COUNTABLE)

    amount_of("G1", 4)(request)
    amount_of("G1", 4)(request)
    amount_of("G2", 7)(request)

    assert then(request) == [
        ("AmountGranted", {"grant_id": "G1", "amount": 4}),
        ("AmountGranted", {"grant_id": "G2", "amount": 7}),
    ]
    assert request.granted == 11


def test_a_grant_keeps_its_amount() -> None:
    request = given(amount_of("G1", 4), kind=Kind.COUNTABLE)

    with pytest.raises(RejectedError, match="grant G1 is of 4, found 5"):
        amount_of("G1", 5)(request)


@pytest.mark.parametrize(
    ("kind", "step"), [(Kind.HOST, amount_of("G1", 1)), (Kind.COUNTABLE, machine(1))]
)
def test_hosts_and_units_are_not_mixed(kind: Kind, step: Step) -> None:
    request = given(kind=kind)

    with pytest.raises(RejectedError, match="is for"):
        step(request)

    assert then(request) == []


def test_more_than_was_asked_cannot_fail() -> None:
    request = given(amount=2)

    with pytest.raises(RejectedError, match="3 of it cannot fail"):
        fail(3)(request)


# ------------------------------------------------------------------- closing
@pytest.mark.parametrize("outcome", sorted(CLOSED))
def test_a_closed_request_is_closed_once(outcome: RequestState) -> None:
    steps: dict[RequestState, Step] = {
        RequestState.COMPLETE: machine(1, 2),
        RequestState.PARTIAL: machine(1),
    }
    request = given(steps.get(outcome, accept), amount=2)

    close(outcome)(request)
    close(outcome)(request)

    assert then(request) == [("Closed", {"outcome": outcome, "why": "last answer"})]
    for other in CLOSED - {outcome}:
        with pytest.raises(IllegalTransitionError, match=f"request is {outcome}"):
            close(other)(request)


@pytest.mark.parametrize(
    ("granted", "outcome"),
    [(0, RequestState.COMPLETE), (1, RequestState.FAILED), (1, RequestState.COMPLETE), (2, RequestState.PARTIAL)],
)  # fmt: skip
def test_an_outcome_that_the_count_contradicts_is_refused(
    granted: int, outcome: RequestState
) -> None:
    request = given(machine(*range(granted)), amount=2)

    with pytest.raises(RejectedError, match=f"granted {granted} of 2"):
        close(outcome)(request)


def test_an_open_state_is_not_an_outcome() -> None:
    with pytest.raises(RejectedError, match="not an outcome"):
        close(RequestState.ACCEPTED)(given())


def test_a_closed_request_is_not_lost_track_of() -> None:
    with pytest.raises(IllegalTransitionError, match=r"OutcomeUnknown .* timed_out"):
        lose_track(given(close(RequestState.TIMED_OUT)))


def settle(request: Request) -> None:
    request.settle(why="the provider has ended it", **FACT)


def test_a_request_that_was_given_up_is_settled_once() -> None:
    request = given(accept, close(RequestState.TIMED_OUT))

    settle(request)
    settle(request)

    assert [name for name, _ in then(request)] == ["Settled"]
    assert request.state is RequestState.TIMED_OUT


def test_an_open_request_cannot_be_settled() -> None:
    request = given(accept)

    with pytest.raises(IllegalTransitionError):
        settle(request)

    assert then(request) == []
