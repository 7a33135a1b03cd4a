"""Instance: given earlier steps, when a command, then new events or a refusal."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.aggregates import AT, FACT, HOUR, fact, then
from xce.domain.errors import IllegalTransitionError, RejectedError
from xce.domain.formats.provider import Billing
from xce.domain.provisioning.instance import Instance, InstanceState

Step = Callable[[Instance], None]


def granted(hold_until: datetime | None = None) -> Instance:
    return Instance.grant(
        instance="I1",
        request_id="R1",
        provider="aws",
        template="c4",
        machine="i-1",
        name="node-17",
        price_per_hour=Decimal("0.17"),
        billing=Billing(),
        hold_until=hold_until,
        **FACT,
    )


def given(*steps: Step, hold_until: datetime | None = None) -> Instance:
    instance = granted(hold_until)
    for step in steps:
        step(instance)
    instance.collect_events()
    return instance


def join(instance: Instance) -> None:
    instance.join(
        host="node-17", booted_at=AT, attributes={"type": "X86_64"}, total={"slots": 4}, **FACT
    )


def report(instance: Instance) -> None:
    instance.start_check(
        host="node-17", booted_at=AT, attributes={"type": "X86_64"}, total={"slots": 4}, **FACT
    )


def miss_join(instance: Instance) -> None:
    instance.miss_join(why="no join in 10 min", **FACT)


def drain(instance: Instance) -> None:
    instance.start_drain(why="idle", **FACT)


def reopen(instance: Instance) -> None:
    instance.reopen(why="job j9 slipped in", **FACT)


def give_back(return_id: str = "X1") -> Step:
    return lambda instance: instance.intend_return(return_id=return_id, why="idle", **FACT)


def accept_return(provider_return_id: str = "ret-1") -> Step:
    return lambda instance: instance.accept_return(
        return_id="X1", provider_return_id=provider_return_id, **FACT
    )


def refuse(return_id: str = "X1") -> Step:
    return lambda instance: instance.refuse_return(return_id=return_id, why="busy", **FACT)


def confirm(instance: Instance) -> None:
    instance.confirm_return(**FACT)


def lose(instance: Instance) -> None:
    instance.lose(why="not listed any more", **FACT)


def test_a_life_from_grant_to_confirmed_return() -> None:
    instance = given()

    for step in (join, drain, give_back(), accept_return(), confirm):
        step(instance)

    assert then(instance) == [
        (
            "Joined",
            {
                "host": "node-17",
                "booted_at": AT,
                "attributes": {"type": "X86_64"},
                "total": {"slots": 4},
            },
        ),
        ("DrainStarted", {"why": "idle"}),
        ("ReturnIntended", {"return_id": "X1", "why": "idle"}),
        ("ReturnAccepted", {"return_id": "X1", "provider_return_id": "ret-1"}),
        ("Returned", {}),
    ]
    assert instance.state is InstanceState.RETURNED


@pytest.mark.parametrize(
    "steps",
    [
        [report],
        [report, join],
        [report, miss_join],
        [join],
        [miss_join],
        [join, drain],
        [join, drain, reopen],
        [join, drain, give_back()],
        [join, drain, give_back(), accept_return()],
        [join, drain, give_back(), refuse()],
        [join, drain, give_back(), confirm],
        [join, lose],
    ],
)
def test_a_repeated_command_records_nothing(steps: list[Step]) -> None:
    instance = given(*steps)

    steps[-1](instance)

    assert then(instance) == []


def test_another_boot_of_the_same_name_is_not_this_machine() -> None:
    """F21: identity is the machine; a join that is not the one recorded is refused, not merged."""
    instance = given(join)

    with pytest.raises(IllegalTransitionError, match=r"Joined .* instance is joined"):
        instance.join(host="node-17", booted_at=AT + HOUR, attributes={}, total={}, **FACT)

    assert then(instance) == []


def test_a_host_that_is_checked_still_starts_and_may_boot_again_meanwhile() -> None:
    instance = given(report)
    assert instance.state is InstanceState.STARTING

    instance.start_check(host="node-17", booted_at=AT + HOUR, attributes={}, total={}, **FACT)

    told: dict[str, Any] = {
        "host": "node-17",
        "booted_at": AT + HOUR,
        "attributes": {},
        "total": {},
    }
    assert then(instance) == [("CheckStarted", told)]
    assert instance.report is not None
    assert instance.report.booted_at == AT + HOUR


@pytest.mark.parametrize("steps", [[join], [miss_join], [lose]])
def test_what_has_joined_was_given_up_or_is_gone_is_not_checked(steps: list[Step]) -> None:
    instance = given(*steps)

    with pytest.raises(IllegalTransitionError, match="CheckStarted"):
        report(instance)

    assert then(instance) == []


def test_a_host_that_was_given_up_does_not_join() -> None:
    """F03."""
    with pytest.raises(IllegalTransitionError, match="never_joined"):
        join(given(miss_join))


def test_a_drained_host_with_a_job_is_opened_again_and_not_returned() -> None:
    """F10: in no order does a return go out for a host that takes work."""
    instance = given(join, drain, reopen)

    with pytest.raises(IllegalTransitionError, match=r"ReturnIntended .* joined"):
        give_back()(instance)

    assert then(instance) == []


def test_a_host_goes_back_only_after_a_drain_or_a_missed_join() -> None:
    with pytest.raises(IllegalTransitionError, match="joined"):
        give_back()(given(join))
    with pytest.raises(IllegalTransitionError, match="starting"):
        give_back()(given())

    instance = given(miss_join)
    give_back()(instance)

    assert [name for name, _ in then(instance)] == ["ReturnIntended"]


def test_nothing_goes_back_before_its_hold() -> None:
    instance = given(join, drain, hold_until=AT + HOUR)

    with pytest.raises(RejectedError, match="must be kept until"):
        give_back()(instance)
    assert then(instance) == []

    instance.intend_return(return_id="X1", why="idle", **fact(AT + HOUR))

    assert [name for name, _ in then(instance)] == ["ReturnIntended"]


@pytest.mark.parametrize(
    ("steps", "state"),
    [([join, drain], InstanceState.DRAINING), ([miss_join], InstanceState.NEVER_JOINED)],
)
def test_a_refused_return_leads_back_to_where_it_was(
    steps: list[Step], state: InstanceState
) -> None:
    instance = given(*steps, give_back())

    refuse()(instance)

    assert then(instance) == [("ReturnRefused", {"return_id": "X1", "why": "busy"})]
    assert instance.state is state


def test_a_return_after_a_refusal_needs_a_new_id() -> None:
    instance = given(join, drain, give_back(), refuse())

    with pytest.raises(RejectedError, match="X1 of instance I1 was refused before"):
        give_back()(instance)

    give_back("X2")(instance)
    refuse("X1")(instance)  # the old answer comes once more

    assert [name for name, _ in then(instance)] == ["ReturnIntended"]
    assert instance.return_id == "X2"


def test_an_answer_to_another_return_is_refused() -> None:
    instance = given(join, drain, give_back())

    with pytest.raises(RejectedError, match="goes back as X1, not as X9"):
        refuse("X9")(instance)


def test_a_retried_return_may_get_another_id_from_the_provider() -> None:
    instance = given(join, drain, give_back(), accept_return())

    accept_return("ret-2")(instance)

    assert then(instance) == [
        ("ReturnAccepted", {"return_id": "X1", "provider_return_id": "ret-2"})
    ]


def test_a_return_of_what_is_under_way_needs_no_second_id() -> None:
    with pytest.raises(IllegalTransitionError, match=r"ReturnIntended .* returning"):
        give_back("X2")(given(join, drain, give_back()))


def test_what_is_gone_stays_gone() -> None:
    """F21: the clean-up of a dead machine's record runs late, and touches nothing."""
    dead = given(join, lose)

    confirm(dead)
    lose(dead)

    assert then(dead) == []
    for step in (join, drain, reopen, give_back(), accept_return(), refuse()):
        with pytest.raises(IllegalTransitionError, match="instance is lost"):
            step(dead)


def test_a_machine_that_vanishes_while_it_goes_back_is_lost() -> None:
    instance = given(join, drain, give_back())

    lose(instance)

    assert then(instance) == [("Lost", {"why": "not listed any more"})]


def test_an_unasked_return_is_not_confirmed() -> None:
    with pytest.raises(IllegalTransitionError, match=r"Returned .* joined"):
        confirm(given(join))
