"""A run that is made again from its journal is the same run, whatever was done to it."""

import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.prompt.sites import Talk
from xce.domain.errors import InputError
from xce.replay.prompt.play import Play

MOVES = st.one_of(
    st.integers(1, 12).map(lambda count: f"step {count}"),
    st.integers(1, 1500).map(lambda seconds: f"run {seconds}s"),
    st.sampled_from(
        (
            "run until session",
            "run until request.intended",
            "run until waiting >= 2",
            "set price small 0.95",
            "set price large 0.10",
            "set room small 1",
            "set owned lic 4",
            "set owned lic 1",
            "set limit per-user 2",
            "set policy observe_only true",
            "set policy minimum_hold 15min",
            "set session order strict",
            "set provider cloud lost_answers 0.5",
            "set provider cloud partial 0.5",
            "set outside lic 1",
            "do cut-off provider=cloud lasts=5min",
            "do restart lasts=3min",
            "do crash point=after-call lasts=2min",
            "do kill-host host=own1",
            "do drain host=own1",
            "do pause provider=cloud lasts=10min",
            "do cancel-job job=a2",
            "do freeze",
            "do unfreeze",
        )
    ),
)


def state_of(play: Play) -> tuple[object, ...]:
    """Return everything that can be told from outside."""
    cluster = play.world.cluster
    return (
        play.now,
        play.log.head(),
        play.seen.sessions,
        play.seen.result,
        cluster.hosts(),
        cluster.pending(),
        cluster.running(),
        play.world.projections.keep(),  # a text: what is folded on changes nothing of it
        play.world.next_time,
        play.is_over,
    )


def carried_out(talk: Talk, lines: list[str]) -> None:
    for line in lines:
        with contextlib.suppress(InputError):  # what is not possible changes nothing
            talk.say(line)


@settings(max_examples=20)
@given(st.lists(MOVES, max_size=8), st.lists(MOVES, max_size=4), st.integers(0, 3))
def test_a_fork_of_which_nothing_differs_is_the_same_to_the_byte(
    before: list[str], after: list[str], seed: int
) -> None:
    talk = Talk(seed=seed)
    carried_out(talk, before)
    here = state_of(talk.prompt.play(""))

    talk.say("fork other")
    assert state_of(talk.prompt.play("")) == here, "the fork begins where one stood"
    carried_out(talk, after)
    talk.say("run")
    talk.say("record other")
    there = state_of(talk.prompt.play(""))

    talk.say("switch main")
    assert state_of(talk.prompt.play("")) == here, "the other one stands where it stood"
    carried_out(talk, after)
    talk.say("run")
    talk.say("record main")

    assert state_of(talk.prompt.play("")) == there
    assert talk.hands.recordings["main"] == talk.hands.recordings["other"]
    assert talk.say("diff main other").document["first"] is None


@settings(max_examples=8)
@given(st.integers(0, 60), st.integers(0, 60))
def test_looking_changes_nothing(first: int, second: int) -> None:
    looked, blind = Talk(), Talk()
    for count in (first, second):
        if count:
            looked.say(f"step {count}")
            blind.say(f"step {count}")
        for line in ("info", "info jobs", "info demand", "info shared", "why a3", "trace a3", "branches", "help"):  # fmt: skip
            carried_out(looked, [line])

    assert state_of(looked.prompt.play("")) == state_of(blind.prompt.play(""))
