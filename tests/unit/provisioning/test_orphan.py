"""Orphan: given earlier steps, when a command, then events."""

from collections.abc import Callable

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from tests.unit.aggregates import FACT, Replay, attempt, then
from xce.domain.errors import IllegalTransitionError, RejectedError
from xce.domain.formats.provider import Kind
from xce.domain.provisioning.orphan import OPEN, Orphan, OrphanKind, OrphanState

Step = Callable[[Orphan], None]

UNKNOWN = OrphanKind.UNKNOWN_TO_US


def found() -> Orphan:
    return Orphan.find(provider="aws", theirs="i-7", kind=UNKNOWN, tag="R1", why="listed", **FACT)


def given(*steps: Step) -> Orphan:
    orphan = found()
    for step in steps:
        step(orphan)
    then(orphan)
    return orphan


def find_again(orphan: Orphan) -> None:
    orphan.find_again(kind=UNKNOWN, tag=None, why="listed again", **FACT)


def adopt(owner: str = "instance:aws/i-7") -> Step:
    return lambda orphan: orphan.adopt(owner=owner, **FACT)


def dismiss(orphan: Orphan) -> None:
    orphan.dismiss(why="a test machine of ours", **FACT)


def give_back(return_id: str = "B1") -> Step:
    return lambda orphan: orphan.intend_return(return_id=return_id, why="nobody's", **FACT)


def refuse(return_id: str = "B1") -> Step:
    return lambda orphan: orphan.refuse_return(return_id=return_id, why="busy", **FACT)


def vanish(orphan: Orphan) -> None:
    orphan.vanish(why="not listed any more", **FACT)


def names(orphan: Orphan) -> list[str]:
    return [name for name, _ in then(orphan)]


def test_what_is_found_is_reported_with_the_request_it_names() -> None:
    assert then(found()) == [
        (
            "Found",
            {
                "provider": "aws",
                "theirs": "i-7",
                "kind": UNKNOWN,
                "tag": "R1",
                "why": "listed",
                "of": Kind.HOST,
                "item": None,
                "amount": 1,
                "price_per_hour": None,
                "project": None,
                "since": None,
            },
        )
    ]


@pytest.mark.parametrize("steps", [(), (give_back(),), (dismiss,)])
def test_it_is_not_reported_twice_while_it_is_open_nor_once_it_is_dismissed(
    steps: tuple[Step, ...],
) -> None:
    orphan = given(*steps)

    find_again(orphan)

    assert then(orphan) == []


@pytest.mark.parametrize("steps", [(vanish,), (adopt(),)])
def test_what_was_gone_or_owned_is_reported_when_it_is_found_again(
    steps: tuple[Step, ...],
) -> None:
    orphan = given(*steps)

    find_again(orphan)

    assert names(orphan) == ["Found"]
    assert (orphan.state, orphan.owner) == (OrphanState.REPORTED, None)


@pytest.mark.parametrize("step", [adopt(), dismiss, give_back(), vanish])
def test_a_repeat_records_nothing(step: Step) -> None:
    orphan = given(step)

    step(orphan)

    assert then(orphan) == []


def test_a_refused_return_leaves_it_reported_and_a_new_one_needs_a_new_id() -> None:
    orphan = given(give_back(), refuse())

    with pytest.raises(RejectedError, match="B1 of orphan aws/i-7 was refused before"):
        give_back()(orphan)
    give_back("B2")(orphan)

    assert names(orphan) == ["ReturnIntended"]


def test_a_refusal_of_another_return_is_refused() -> None:
    with pytest.raises(RejectedError, match="goes back as B1, not B2"):
        refuse("B2")(given(give_back()))


@pytest.mark.parametrize(
    ("steps", "step"),
    [
        ((give_back(),), adopt()),
        ((give_back(),), dismiss),
        ((give_back(),), give_back("B2")),
        ((adopt(),), adopt("instance:aws/i-8")),
        ((adopt(),), give_back()),
        ((adopt(),), vanish),
        ((dismiss,), give_back()),
        ((vanish,), dismiss),
        ((), refuse()),
    ],
)
def test_what_the_state_does_not_allow_is_refused(steps: tuple[Step, ...], step: Step) -> None:
    orphan = given(*steps)

    with pytest.raises(IllegalTransitionError):
        step(orphan)

    assert then(orphan) == []


STEPS: list[Step] = [
    find_again, adopt(), adopt("instance:aws/i-8"), dismiss, give_back(), give_back("B2"), refuse(), refuse("B2"), vanish,
]  # fmt: skip


@for_all(st.lists(st.sampled_from(STEPS), max_size=12))
def test_in_any_order_it_replays_to_the_same_and_an_ended_one_has_no_return_open(
    steps: list[Step],
) -> None:
    orphan, replay = found(), Replay()
    replay.take(orphan)
    for step in steps:
        attempt(orphan, lambda step=step: step(orphan), RejectedError)  # type: ignore[misc]
        replay.take(orphan)

    rebuilt = replay.rebuilt()
    assert isinstance(rebuilt, Orphan)
    assert rebuilt.state == orphan.state
    assert rebuilt.return_id == orphan.return_id
    assert (orphan.state is OrphanState.RETURNING) <= (orphan.state in OPEN)
