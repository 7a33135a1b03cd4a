"""The frame of a provider's program: what is no call, no input or no state is said, and a refusal says when to come again."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from xce.adapters.providers import program
from xce.adapters.providers.program import Message, RefusalError


@dataclass
class State:
    count: int = 0


@dataclass
class Counter:
    conf: Message
    state: State
    keep: Callable[[], None]

    def add(self, given: Message) -> Message:
        self.state.count += given["by"] * self.conf["step"]
        self.keep()
        return {"count": self.state.count}

    def refuse(self, _given: Message) -> Message:
        self.state.count = -1  # not kept
        raise RefusalError("Error Code: Busy: later", retry_after_s=30)


SCRIPTS = {"add": Counter.add, "refuse": Counter.refuse}


@dataclass
class Place:
    folder: Path
    capsys: pytest.CaptureFixture[str]

    def run(self, script: str = "add", text: str = '{"by": 2}') -> tuple[int, dict[str, Any]]:
        (self.folder / "input.json").write_text(text)
        arguments = [script, "-f", str(self.folder / "input.json")]
        code = program.run(arguments, SCRIPTS, partial(program.kept, "counter", State, Counter))
        return code, json.loads(self.capsys.readouterr().out)


@pytest.fixture
def place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Place:
    (tmp_path / "counter.json").write_text('{"step": 5}')
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("PRO_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("PRO_DATA_DIR", str(tmp_path / "data"))
    return Place(tmp_path, capsys)


def test_the_next_call_goes_on_with_what_was_kept(place: Place) -> None:
    assert [place.run(), place.run()] == [(0, {"count": 10}), (0, {"count": 20})]


def test_a_configuration_in_conf_comes_first(place: Place) -> None:
    (place.folder / "conf").mkdir()
    (place.folder / "conf" / "counter.json").write_text('{"step": 1}')
    assert place.run() == (0, {"count": 2})


def test_a_refusal_says_when_to_come_again_and_keeps_nothing(place: Place) -> None:
    refused = (1, {"message": "Error Code: Busy: later", "retryAfter": 30})
    assert place.run("refuse") == refused
    assert place.run() == (0, {"count": 10})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "the input cannot be read"),
        ("[]", "the input is no object"),
        ("{}", "the input is not understood"),
        ('{"by": null}', "the input is not understood"),
    ],
)
def test_an_input_that_is_none_is_said(place: Place, text: str, why: str) -> None:
    code, said = place.run(text=text)
    assert (code, said["message"].startswith(why)) == (1, True)


@pytest.mark.parametrize(("file", "what"), [("counter.json", "configuration"), ("data/counter.json", "state")])  # fmt: skip
def test_a_file_that_is_broken_is_said_and_stays(place: Place, file: str, what: str) -> None:
    (place.folder / file).write_text("{")
    code, said = place.run()
    assert (code, said["message"].startswith(f"the {what} cannot be read")) == (1, True)
    assert (place.folder / file).read_text() == "{"


def test_a_folder_that_is_not_there_is_said(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRO_DATA_DIR", str(place.folder / "none"))
    code, said = place.run()
    assert (code, "No such file" in said["message"]) == (1, True)

    monkeypatch.delenv("PRO_DATA_DIR")
    assert place.run() == (1, {"message": "the environment has no PRO_DATA_DIR"})


@pytest.mark.parametrize("arguments", [[], ["add"], ["none", "-f", "x"], ["add", "-x", "x"]])
def test_what_is_no_call_is_a_usage_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    opened = partial(program.kept, "counter", State, Counter)
    assert program.run(arguments, SCRIPTS, opened, before="BOOK ") == 2
    assert capsys.readouterr() == ("", "wanted: BOOK SCRIPT -f FILE\n")
