"""After failures: pauses that grow, a turn for the others, and the least as a probe (F03, F06, F07)."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.policy.makers import (
    asks,
    at,
    demand,
    holds,
    hosts,
    instance,
    minutes,
    of_kind,
    provider,
    request,
    resource,
    round_of,
    template,
)
from xce.domain.formats.policy import (
    Decision,
    DecisionKind,
    FailureEntry,
    Pause,
    PolicyInput,
    PolicySettings,
)
from xce.domain.policy.backoff import pause_for
from xce.domain.policy.decide import decide
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.request import RequestState

SETTINGS = PolicySettings(
    pause_after_refusal=minutes(10), longest_pause=minutes(60), failures_before_pause=2
)


def failed(
    in_a_row: int,
    last_at: datetime,
    *,
    of: str = "aws",
    item: str = "c4",
    refused: bool = False,
    at_once: bool = False,
) -> FailureEntry:
    return FailureEntry(
        provider=of,
        item=item,
        in_a_row=in_a_row,
        last_at=last_at,
        refused=refused,
        at_once=at_once,
        why="it never joined",
    )


def pauses(inputs: PolicyInput) -> list[Decision]:
    return of_kind(decide(inputs), DecisionKind.PAUSE)


# ----------------------------------------------------------------------- length
@pytest.mark.parametrize(
    ("failures", "wanted"), [(1, 10), (2, 20), (3, 40), (4, 60), (5, 60), (10**6, 60)]
)
def test_a_pause_doubles_with_each_failure_up_to_the_longest(failures: int, wanted: int) -> None:
    assert pause_for(failures, SETTINGS) == minutes(wanted)


@given(st.integers(1, 2000), st.integers(0, 10**6), st.integers(0, 10**6))
def test_pauses_never_shrink_and_are_never_shorter_than_the_first(
    failures: int, first: int, longest: int
) -> None:
    settings = PolicySettings(
        pause_after_refusal=timedelta(seconds=first), longest_pause=timedelta(seconds=longest)
    )
    pause, following = pause_for(failures, settings), pause_for(failures + 1, settings)

    assert timedelta(seconds=first) <= pause <= following
    assert following <= max(timedelta(seconds=first), timedelta(seconds=longest))


# ----------------------------------------------------------------------- pauses
def test_what_came_to_nothing_often_enough_in_a_row_is_paused_from_the_last_failure_on() -> None:
    inputs = round_of(
        provider("aws", template()),
        wants=demand(hosts("c4", 1)),
        failures=[failed(2, at(-3))],
        settings=SETTINGS,
    )

    (pause,) = pauses(inputs)

    assert (pause.provider, pause.template, pause.until) == ("aws", "c4", at(7))
    assert pause.reason == "2 asks in a row came to nothing: it never joined"
    (longer,) = pauses(inputs.model_copy(update={"failures": (failed(3, at(-3)),)}))
    assert longer.until == at(17)


def test_one_failure_is_enough_where_the_provider_said_that_another_ask_helps_nobody() -> None:
    inputs = round_of(
        provider("aws", template()),
        failures=[failed(1, at(-3), at_once=True)],
        settings=SETTINGS,
    )

    (pause,) = pauses(inputs)

    assert (pause.until, pause.reason) == (at(7), "1 ask came to nothing: it never joined")


def test_a_resource_is_paused_by_its_name() -> None:
    inputs = round_of(
        provider("pool", resources=[resource("lic")]),
        failures=[failed(2, at(0), of="pool", item="lic")],
        settings=SETTINGS,
    )

    (pause,) = pauses(inputs)

    assert (pause.resource, pause.template) == ("lic", None)


@pytest.mark.parametrize(
    "entry",
    [
        failed(1, at(-1)),
        failed(2, at(-10)),
        failed(2, at(-1), refused=True),
        failed(2, at(-1), of="gone"),
        failed(2, at(-1), item="m8"),
    ],
    ids=["too few", "over already", "recorded with the answer", "nobody's", "not offered"],
)
def test_other_failures_lead_to_no_pause_of_the_policy(entry: FailureEntry) -> None:
    assert pauses(round_of(provider(), failures=[entry], settings=SETTINGS)) == []


def test_a_pause_that_is_recorded_is_not_made_again() -> None:
    inputs = round_of(
        provider("aws", template()),
        failures=[failed(2, at(-3))],
        settings=SETTINGS,
        pauses=[Pause(provider="aws", item="c4", until=at(7), why="x")],
    )

    assert pauses(inputs) == []


# ------------------------------------------------------------------------- turn
def test_f06_whoever_failed_comes_after_the_others_for_a_while_whatever_its_priority() -> None:
    inputs = round_of(
        provider("a1", template(), priority=50),
        provider("a2", template(), priority=50),
        provider("b", template(), priority=40),
        wants=demand(hosts("c4", 1)),
        failures=[
            failed(1, at(-10), of="a1", refused=True),
            failed(1, at(-6), of="a2", refused=True),
        ],
        settings=SETTINGS,
    )

    assert asks(inputs) == [("b", "c4", 1)]
    assert asks(inputs.model_copy(update={"now": at(9)})) == [("b", "c4", 1)]
    assert asks(inputs.model_copy(update={"now": at(11)})) == [("a1", "c4", 1)]


def test_where_there_is_no_other_the_one_that_failed_is_asked_again() -> None:
    inputs = round_of(
        provider("aws", template()),
        wants=demand(hosts("c4", 1)),
        failures=[failed(1, at(-1))],
        settings=SETTINGS,
    )

    assert asks(inputs) == [("aws", "c4", 1)]


# ------------------------------------------------------------------------ probe
def test_f07_after_a_pause_the_least_is_asked_until_a_host_has_joined() -> None:
    inputs = round_of(
        provider("aws", template()),
        wants=demand(hosts("c4", 3)),
        failures=[failed(2, at(-20))],
        settings=SETTINGS,
    )

    assert asks(inputs) == [("aws", "c4", 1)]
    (hold,) = holds(inputs)
    assert "probe (2 asks in a row failed, last at 2026-03-01T09:40:00Z): 1 of 1 used" in hold
    assert asks(inputs.model_copy(update={"failures": ()})) == [("aws", "c4", 3)]


@pytest.mark.parametrize("starting", [False, True])
def test_a_probe_under_way_is_the_only_one(starting: bool) -> None:
    inputs = round_of(
        provider("aws", template()),
        wants=demand(hosts("c4", 2)),
        requests=[]
        if starting
        else [request("R1", state=RequestState.ACCEPTED, asked_at=at(-1), asked_position=1)],
        instances=[instance("i", state=InstanceState.STARTING)] if starting else [],
        failures=[failed(1, at(-20), refused=True)],
        settings=SETTINGS,
    )

    assert asks(inputs) == []


def test_a_probe_is_large_enough_for_the_first_job_that_less_would_not_serve() -> None:
    inputs = round_of(
        provider("aws", template()),
        wants=demand(hosts("c4", 9, ("first", 1, 3), ("second", 2, 6))),
        failures=[failed(2, at(-20))],
        settings=SETTINGS,
    )

    assert asks(inputs) == [("aws", "c4", 3)]


def test_a_probe_is_of_a_size_that_can_be_asked() -> None:
    inputs = round_of(
        provider("aws", template(), minimum=3, step=2),
        wants=demand(hosts("c4", 9)),
        failures=[failed(2, at(-20))],
        settings=SETTINGS,
    )

    assert asks(inputs) == [("aws", "c4", 4)]


def test_a_single_failure_that_pauses_nothing_is_no_reason_to_probe() -> None:
    inputs = round_of(
        provider("aws", template()),
        wants=demand(hosts("c4", 5)),
        failures=[failed(1, at(-1))],
        settings=SETTINGS,
    )

    assert asks(inputs) == [("aws", "c4", 5)]
