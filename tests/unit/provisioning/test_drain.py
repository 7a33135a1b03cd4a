"""Drain: given earlier steps, when a command, then events."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from tests.unit.aggregates import AT, HOUR, STAMP, Replay, attempt, then
from xce.domain.errors import IllegalTransitionError, RejectedError
from xce.domain.provisioning.drain import OPEN, AtDeadline, Drain, DrainState

Step = Callable[[Drain], None]


def asked(
    *,
    yields: bool = True,
    deadline: datetime | None = None,
    at_deadline: AtDeadline = AtDeadline.WAIT,
) -> Drain:
    return Drain.ask(
        host="h1",
        instance="cloud/m1",
        why="idle",
        yields=yields,
        deadline=deadline,
        at_deadline=at_deadline,
        **STAMP,
    )


def given(drain: Drain, *steps: Step) -> Drain:
    for step in steps:
        step(drain)
    then(drain)
    return drain


def look(*jobs: str, after: timedelta = timedelta(0)) -> Step:
    return lambda drain: drain.look(jobs=jobs, at=AT + after, by="scheduler/s")


def cancel(drain: Drain) -> None:
    drain.cancel(why="needed", **STAMP)


def end(drain: Drain) -> None:
    drain.end(why="returned", **STAMP)


def again(drain: Drain) -> None:
    drain.ask_again(
        instance="cloud/m1",
        why="idle",
        yields=True,
        deadline=None,
        at_deadline=AtDeadline.WAIT,
        **STAMP,
    )


def names(drain: Drain) -> list[str]:
    return [name for name, _ in then(drain)]


def test_a_closed_host_without_a_job_is_empty() -> None:
    drain = given(asked())

    look()(drain)

    assert names(drain) == ["Closed", "Emptied"]


def test_a_job_that_slipped_in_wins_over_a_drain_that_yields() -> None:
    drain = given(asked())

    look("7")(drain)

    assert then(drain) == [("Closed", {}), ("SlippedIn", {"jobs": ("7",)})]
    assert drain.state is DrainState.CANCELLED


def test_a_drain_by_hand_waits_for_the_jobs_and_is_empty_after_the_last() -> None:
    drain = given(asked(yields=False), look("7"), look("7"))

    look()(drain)

    assert names(drain) == ["Emptied"]


def test_jobs_at_the_deadline_are_named_once_with_what_happens_to_them() -> None:
    drain = given(
        asked(yields=False, deadline=AT + HOUR, at_deadline=AtDeadline.REQUEUE), look("7")
    )

    look("7", after=HOUR)(drain)
    look("7", after=2 * HOUR)(drain)

    assert then(drain) == [
        ("DeadlinePassed", {"jobs": ("7",), "at_deadline": AtDeadline.REQUEUE}),
    ]


def test_the_same_look_again_records_nothing() -> None:
    drain = given(asked(), look())

    look()(drain)

    assert names(drain) == []


def test_an_empty_host_that_has_a_job_again_is_not_empty() -> None:
    drain = given(asked(yields=False), look())

    look("8")(drain)

    assert then(drain) == [("Refilled", {"jobs": ("8",)})]


def test_the_same_wish_again_records_nothing_and_another_one_is_refused() -> None:
    drain = given(asked())

    again(drain)

    assert names(drain) == []
    with pytest.raises(RejectedError, match="being drained in another way"):
        drain.ask_again(
            instance=None, why="", yields=False, deadline=None, at_deadline=AtDeadline.WAIT, **STAMP
        )


def test_a_host_that_is_open_or_gone_is_not_looked_at() -> None:
    for over in (cancel, end):
        drain = given(asked(), over)
        with pytest.raises(IllegalTransitionError):
            look()(drain)


STEPS = [look(), look("7"), look("7", after=HOUR), look("8", after=2 * HOUR), cancel, end, again]


@for_all(st.booleans(), st.sampled_from(AtDeadline), st.lists(st.sampled_from(STEPS), max_size=12))
def test_any_order_of_steps_can_be_replayed_and_a_refused_one_leaves_nothing(
    yields: bool, policy: AtDeadline, steps: list[Step]
) -> None:
    drain, replay = asked(yields=yields, deadline=AT + HOUR, at_deadline=policy), Replay()
    replay.take(drain)
    for step in steps:
        attempt(drain, lambda step=step: step(drain), RejectedError)  # type: ignore[misc]
        replay.take(drain)
        rebuilt = replay.rebuilt()
        assert isinstance(rebuilt, Drain)
        assert rebuilt.__dict__ == drain.__dict__
    assert (drain.state in OPEN) == (drain.state not in (DrainState.CANCELLED, DrainState.ENDED))
