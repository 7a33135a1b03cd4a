"""What a line can go on with."""

import pytest

from tests.unit.prompt.sites import Hands, Talk
from xce.replay.prompt.completion import candidates
from xce.replay.prompt.prompt import COMMANDS, Prompt


@pytest.fixture(scope="module")
def talk() -> Talk:
    return Talk("run until 9min", "fork other")


def texts(talk: Talk, line: str) -> list[str]:
    return [one.text for one in candidates(talk.prompt, line)]


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("st", ["step"]),
        ("info de", ["demand", "decisions"]),
        ("why b", ["big", "b1", "b2", "b3", "b4"]),
        ("trace ne", ["never"]),
        ("run un", ["until"]),
        ("run until sess", ["session"]),
        ("run until start a1", ["a1"]),
        ("run until bor", ["borrowed"]),
        ("run until borrowed ", ["of"]),
        ("run until borrowed of ", ["lic"]),
        ("run until borrowed of lic >", [">", ">="]),
        ("run until request.in", ["request.instance-granted", "request.intended"]),
        ("set pr", ["price", "priority", "provider"]),
        ("set price l", ["large"]),
        ("set limit ", ["per-user"]),
        ("set owned ", ["lic"]),
        ("set outside ", ["lic"]),
        ("set policy min", ["minimum_hold"]),
        ("set provider cl", ["cloud"]),
        ("set provider cloud lost", ["lost_answers"]),
        ("do kill", ["kill-host"]),
        ("do kill-host host=o", ["host=own1"]),
        ("do cut-off provider=", ["provider=cloud", "provider=lender"]),
        ("switch ", ["main", "other"]),
        ("diff main o", ["other"]),
        ("help ru", ["run"]),
        ("frok ", []),
        ("step 1 ", []),
        ("do freeze why='", []),
    ],
)
def test_a_line_goes_on_with(talk: Talk, line: str, first: list[str]) -> None:
    found = texts(talk, line)

    assert sorted(found) == sorted(first)


def test_what_is_typed_of_the_last_word_is_counted(talk: Talk) -> None:
    (found,) = candidates(talk.prompt, "info dem")

    assert (found.text, found.typed) == ("demand", 3)


def test_an_empty_line_begins_with_any_command(talk: Talk) -> None:
    assert texts(talk, "") == list(COMMANDS)
    assert all(one.about for one in candidates(talk.prompt, ""))


def test_before_anything_is_loaded_there_are_no_names() -> None:
    prompt = Prompt(Hands())

    assert candidates(prompt, "why ") == ()
    assert [one.text for one in candidates(prompt, "lo")] == ["load"]
