"""Recordings of several daemons as one: everything in time, rounds tied to the sessions whose demand they were given."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.unit.recordings.test_rounds import AT, CLOUD, snapshot
from xce.adapters.cli.main import app
from xce.adapters.recordings import RecordingFile, read_lines
from xce.domain.errors import InputError
from xce.domain.formats.policy import PolicyInput
from xce.domain.formats.session_result import SessionResult
from xce.domain.policy.decide import decide
from xce.domain.scheduling.session import run_session
from xce.replay.anonymous import anonymised
from xce.replay.joined import joined
from xce.replay.recording import Entry, Other, RecordedSession, RecordingReader, RecordingWriter
from xce.replay.rounds import RecordedRound
from xce.replay.verification import verify


def at(second: int) -> datetime:
    return AT + timedelta(seconds=second)


def event(position: int, second: int) -> dict[str, object]:
    return {"position": position, "name": "xce.x", "by": "x", "at": at(second).isoformat()}


def writer(lines: list[str], by: str, *, trace: bool = False) -> RecordingWriter:
    config = {"controller": {"token_file": "/secret"}, "scripts": [{"folder": "/secret"}], "n": 1}
    return RecordingWriter(lines.append, by=by, release="1", at=AT, config=config, trace=trace)


def add_session(to: RecordingWriter, jobs: int, minute: int) -> SessionResult:
    shown = snapshot(jobs, minute)
    result = run_session(shown)
    to.session(shown, result)
    return result


def add_round(to: RecordingWriter, result: SessionResult, second: int) -> None:
    inputs = PolicyInput(now=at(second), providers=(CLOUD,), demand=result.demand, idle=result.idle)
    digest = sha256(result.to_json().encode()).hexdigest()
    to.round(inputs, decide(inputs).decisions, digest=digest)


class Daemons:
    """What two daemons recorded: three sessions a minute apart, a round after each, and one that heard of the second late."""

    def __init__(self) -> None:
        self.scheduler: list[str] = []
        self.provisioner: list[str] = []
        to = writer(self.scheduler, "xce scheduler")
        results: list[SessionResult] = []
        for minute in range(3):
            to.event(event(minute + 1, 60 * minute))
            results.append(add_session(to, 3 + minute, minute))
        to.end()
        to = writer(self.provisioner, "xce provisioner")
        for minute, result in enumerate(results):
            add_round(to, result, 60 * minute + 1)
            to.answer(at=at(60 * minute + 2), provider="cloud", call={"n": minute}, answer={})
        add_round(to, results[1], 130)
        to.end()

    def joined(self) -> list[str]:
        lines: list[str] = []
        joined([("s", self.scheduler), ("p", self.provisioner)], lines.append)
        return lines


def entries(lines: list[str]) -> Iterator[Entry]:
    return RecordingReader("x").entries(lines)


def kinds(lines: list[str]) -> str:
    return "".join(json.loads(line)["kind"][0] for line in lines[1:])


def test_everything_is_in_one_file_in_time_and_verifies() -> None:
    lines = Daemons().joined()

    assert kinds(lines) == "esra" * 3 + "re"
    verdict = verify(lines, "x")
    assert verdict.mismatch is None
    assert verdict.whole
    assert (verdict.counts.sessions, verdict.counts.rounds, verdict.counts.events) == (3, 4, 3)


def test_rounds_are_tied_to_their_sessions_and_demand_is_not_written_again() -> None:
    lines = Daemons().joined()

    found = [entry for entry in entries(lines) if isinstance(entry, RecordedRound)]

    assert [entry.session for entry in found] == [1, 2, 3, 2]
    assert all(entry.inputs.demand.hosts for entry in found)
    rounds = [line for line in lines if '"kind":"round"' in line]
    assert "bobs" not in "".join(json.dumps(json.loads(line)["input"]) for line in rounds)


def test_what_a_daemon_recorded_comes_back_in_its_order() -> None:
    daemons = Daemons()
    both = list(entries(daemons.joined()))

    for lines, kind in ((daemons.scheduler, RecordedSession), (daemons.provisioner, Other)):
        mine = [entry for entry in entries(lines) if isinstance(entry, kind)]
        theirs = [entry for entry in both if isinstance(entry, kind)]
        assert [one for one in theirs if one in mine] == mine


def test_a_round_about_a_session_that_nobody_recorded_keeps_its_demand() -> None:
    alone: list[str] = []
    to = writer(alone, "xce provisioner")
    add_round(to, run_session(snapshot(7)), 1)
    lines: list[str] = []

    made = joined([("p", alone)], lines.append)

    (found,) = [entry for entry in entries(lines) if isinstance(entry, RecordedRound)]
    assert (made.tied, found.session) == (0, None)
    assert found.inputs.demand.hosts[0].count == 4
    assert kinds(lines) == "r"  # it was cut off, and so is this


def test_two_lives_of_a_driver_are_numbered_on_and_their_common_events_are_there_once() -> None:
    first: list[str] = []
    to = writer(first, "xce scheduler")
    to.event(event(1, 0))
    add_session(to, 3, 0)
    second: list[str] = []
    to = writer(second, "xce scheduler")
    for position in (1, 2):  # a new driver records the log from its beginning
        to.event(event(position, 60 * (position - 1)))
    add_session(to, 5, 2)
    lines: list[str] = []

    joined([("1", first), ("2", second)], lines.append)

    assert kinds(lines) == "eses"
    assert verify(lines, "x").counts.sessions == 2


def test_daemons_of_one_kind_are_named_once() -> None:
    parts: list[tuple[str, list[str]]] = []
    for by in ("xce scheduler", "xce provisioner", "xce provisioner"):
        lines: list[str] = []
        writer(lines, by).end()
        parts.append((by, lines))
    made: list[str] = []

    joined(parts, made.append)

    assert json.loads(made[0])["by"] == "xce scheduler, xce provisioner"


def test_traced_and_untraced_sessions_are_not_joined() -> None:
    lines: list[str] = []
    parts: list[tuple[str, list[str]]] = [("a", []), ("b", [])]
    for trace, (_, part) in zip((True, False), parts, strict=True):
        writer(part, "xce scheduler", trace=trace)

    with pytest.raises(InputError, match="traced in one and not in another"):
        joined(parts, lines.append)


def test_a_joined_recording_without_names_says_nothing_of_files_and_verifies() -> None:
    lines = Daemons().joined()
    out: list[str] = []

    anonymised(lambda: lines, "x", out.append)

    assert "secret" not in "".join(out)
    assert "bob" not in "".join(out)
    assert [part["n"] for part in json.loads(out[0])["config"]["joined"]] == [1, 1]
    verdict = verify(out, "x")
    assert verdict.mismatch is None
    assert (verdict.counts.rounds, verdict.whole) == (4, True)


def test_the_command_writes_a_new_file_that_verifies(tmp_path: Path) -> None:
    daemons = Daemons()
    for name, lines in (("s", daemons.scheduler), ("p", daemons.provisioner)):
        (tmp_path / name).write_text("".join(lines), encoding="utf-8")
    out = tmp_path / "all.rec.gz"
    words = ["recording", "join", str(out), str(tmp_path / "s"), str(tmp_path / "p")]

    done = CliRunner().invoke(app, words)

    assert done.exit_code == 0, done.output
    assert "3 sessions, 4 rounds" in done.stderr
    assert "4 rounds are about sessions" in done.stderr
    assert verify(read_lines(out), "x").mismatch is None
    shown = CliRunner().invoke(app, ["recording", "show", str(out)]).stdout.replace("\n", " ")
    assert "made by xce scheduler, xce provisioner" in shown
    assert re.search(r", at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC ", shown)
    assert CliRunner().invoke(app, words).exit_code != 0  # it exists


def test_a_file_of_a_recording_counts_its_rounds(tmp_path: Path) -> None:
    path = tmp_path / "p.rec.gz"
    with RecordingFile(path, by="xce provisioner", at=datetime.now(UTC), config={}) as file:
        add_round(file.writer, run_session(snapshot(7)), 1)

    assert verify(read_lines(path), "p").counts.rounds == 1
