"""Recordings: what was seen and said comes back, is run again, and says where it differs."""

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from xce.adapters import recordings
from xce.adapters.cli.main import app
from xce.adapters.recordings import RecordingFile, free_name, read_lines
from xce.adapters.store.open import open_log
from xce.domain.errors import InputError, RejectedError
from xce.domain.formats.snapshot import Snapshot
from xce.domain.scheduling.session import run_session
from xce.replay.anonymous import anonymised
from xce.replay.joined import joined
from xce.replay.recording import (
    WHOLE_EVERY,
    Other,
    RecordedSession,
    RecordingReader,
    RecordingWriter,
    Start,
)
from xce.replay.verification import verify

#: Makes a damaged recording of a good one.
Damage = Callable[[list[str]], list[str]]
AT = datetime(2026, 3, 1, 10, tzinfo=UTC)


def snapshot(minute: int) -> Snapshot:
    """One host of two slots; as many jobs wait as minutes have passed."""
    jobs = [
        {"id": f"job-of-bob-{n}", "user": "bob" if n % 2 else "alice", "queue": "q", "resreq": "",
         "waits_for": ["secret-7"] if n == 3 else []}
        for n in range(minute)
    ]  # fmt: skip
    document = {
        "format": "xce.snapshot/1",
        "now": (AT + timedelta(minutes=minute)).isoformat(),
        "hosts": [{"name": "h1", "total": {"slots": 2}}],
        "limits": [{"name": "l", "resource": "jobs", "amount": 3, "users": ["bob"]}],
        "groups": [{"name": "g", "users": ["alice", "carol"]}],
        "queues": [{"name": "q"}],
        "pending": jobs,
    }
    return Snapshot.from_json(json.dumps(document))


def recorded(*minutes: int, trace: bool = False, end: bool = True) -> list[str]:
    lines: list[str] = []
    config = {"record": "x", "controller": {"token_file": "/secret"}, "users": ["bob"]}
    writer = RecordingWriter(
        lines.append, by="a test", release="1", at=AT, config=config, trace=trace
    )
    for minute in minutes:
        writer.session(snapshot(minute), run_session(snapshot(minute), trace=trace))
    writer.event(
        {"position": 1, "name": "xce.x", "at": AT.isoformat(), "by": "admin/alice", "data": {"why": "job-of-bob-1", "jobs": ["job-of-bob-1"]}}
    )  # fmt: skip
    writer.answer(
        at=AT, provider="cloud", call={"call": "ask"}, answer={"message": "for bob", "n": 1}
    )
    if end:
        writer.end()
    return lines


def sessions(lines: list[str]) -> list[RecordedSession]:
    entries = RecordingReader("x").entries(lines)
    return [entry for entry in entries if isinstance(entry, RecordedSession)]


def changed(line: str, **fields: Any) -> str:
    return json.dumps({**json.loads(line), **fields}) + "\n"


# ------------------------------------------------------------------ round trip
def test_snapshots_and_results_come_back_byte_for_byte() -> None:
    minutes = [0, 1, 4, 4, 2, 0]

    found = sessions(recorded(*minutes))

    for entry, minute in zip(found, minutes, strict=True):
        assert entry.snapshot.to_json() == snapshot(minute).to_json()
        again = run_session(snapshot(minute)).to_json()
        assert json.dumps(entry.result, separators=(",", ":")) == again


def test_what_has_not_changed_is_not_written_again() -> None:
    first, *_ = lines = recorded(4, 4, 4)

    assert json.loads(first)["format"] == "xce.recording/1"
    assert "snapshot" in json.loads(lines[1])
    assert "delta" in json.loads(lines[2])
    assert json.loads(lines[2])["result"] == {}
    assert len(lines[2]) < len(lines[1]) / 4


def test_now_and_then_a_snapshot_is_whole() -> None:
    lines = recorded(*[1] * WHOLE_EVERY)

    assert [number for number, line in enumerate(lines) if '"snapshot":{' in line] == [
        1,
        WHOLE_EVERY,
    ]


def test_events_and_answers_come_back_in_their_order() -> None:
    entries = list(RecordingReader("x").entries(recorded(1)))

    assert isinstance(entries[0], Start)
    others = [entry for entry in entries if isinstance(entry, Other)]
    assert [(entry.kind, entry.document.get("provider")) for entry in others] == [
        ("event", None),
        ("answer", "cloud"),
    ]


# ---------------------------------------------------------------- verification
@pytest.mark.parametrize("trace", [False, True])
def test_a_recording_says_the_same_again(trace: bool) -> None:
    verdict = verify(recorded(1, 5, 3, trace=trace), "x")

    assert verdict.mismatch is None
    assert (verdict.counts.sessions, verdict.counts.events, verdict.whole) == (3, 1, True)


def test_the_first_difference_is_named_with_session_job_and_field() -> None:
    lines = recorded(1, 5, 3)
    document = json.loads(lines[2])
    document["result"]["pending"][1]["reason"] = "held"

    verdict = verify([lines[0], lines[1], json.dumps(document) + "\n", *lines[3:]], "x")

    found = verdict.mismatch
    assert found is not None
    assert (found.session, found.job, found.path) == (2, "job-of-bob-3", "pending[1].reason")
    assert (found.recorded, found.found) == ('"held"', '"no_resource"')


@pytest.mark.parametrize("sets", [[{}], [7], [{"id": []}], 7, None])
def test_reasons_that_are_none_differ_from_those_of_now(sets: object) -> None:
    lines = recorded(5)
    result = json.loads(lines[1])["result"] | {"reason_sets": sets}

    found = verify([lines[0], changed(lines[1], result=result)], "x").mismatch

    assert found is not None
    assert found.path.startswith("reason_sets")


def test_a_job_that_is_missing_in_the_recording_is_named() -> None:
    lines = recorded(5)
    document = json.loads(lines[1])
    del document["result"]["pending"][-1]

    found = verify([lines[0], json.dumps(document) + "\n"], "x").mismatch

    assert found is not None
    assert (found.job, found.path, found.recorded) == ("job-of-bob-4", "pending[2]", None)


# --------------------------------------------------------------- damaged lines
def event_line(event: object) -> str:
    return json.dumps({"kind": "event", "event": event}) + "\n"


DAMAGES: list[tuple[Damage, str]] = [
    (lambda lines: [], "is empty"),
    (lambda lines: lines[1:], "one start"),
    (lambda lines: [lines[0], *lines], "one start"),
    (lambda lines: [lines[0], "{\n"], "line 2|is not JSON"),
    (lambda lines: [lines[0], "7\n"], "wanted an object"),
    (lambda lines: [lines[0], lines[2]], "session 1 is missing"),
    (lambda lines: [lines[0], changed(lines[2], number=1)], "no snapshot before it"),
    (lambda lines: [lines[0], lines[-1]], "lines are missing"),
    (lambda lines: [lines[0], '{"kind":"other"}\n'], "does not know"),
    (lambda lines: [changed(lines[0], format="xce.recording/9")], "wanted xce.recording/1"),
    (
        lambda lines: [changed(lines[0], by=None).replace('"by": null, ', "")],
        "missing or wrong",
    ),
    (lambda lines: [lines[0], changed(lines[1], snapshot={"format": "x"})], "format"),
    (lambda lines: [changed(lines[0], at="yesterday")], "no time with a zone"),
    (lambda lines: [changed(lines[0], at="0001-01-01T00:00:00+14:00")], "no time with a zone"),
    (lambda lines: [changed(lines[0], config=[])], "config: wanted an object"),
    (
        lambda lines: [lines[0], '{"kind":"seen","begins":true,"supply":"ab"}\n'],
        "supply: wanted an object",
    ),
    (lambda lines: [lines[0], event_line("x")], "event: wanted an object"),
    (lambda lines: [lines[0], event_line({"position": "1"})], "event.position: wanted a number"),
    (lambda lines: [lines[0], event_line({"position": 1})], "missing or wrong: 'at'"),
    (
        lambda lines: [lines[0], event_line({"position": 1, "at": "2026-03-01T10:00:00"})],
        "no time with a zone",
    ),
    (lambda lines: [lines[0], event_line({"position": 1, "at": 7})], "event.at: wanted a text"),
    (
        lambda lines: [
            lines[0],
            f'{{"kind":"answer","at":"{AT.isoformat()}","provider":"p","call":{{}},"answer":7}}\n',
        ],
        "answer: wanted an object",
    ),
    (lambda lines: [lines[0], "[" * 100_000 + "\n"], "line 2|nested too deep"),
]


USES: dict[str, Callable[[list[str]], object]] = {
    "verified": lambda lines: verify(lines, "x"),
    "joined": lambda lines: joined([("x", lines), ("y", recorded(1, 2))], lambda line: None),
    "without names": lambda lines: anonymised(lambda: iter(lines), "x", lambda line: None),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(("damage", "message"), DAMAGES)
def test_what_is_no_recording_is_told_with_its_line(damage: Damage, message: str, use: str) -> None:
    lines = damage(recorded(1, 2))

    with pytest.raises(InputError, match=message):
        USES[use](lines)


# ------------------------------------------------------------------------ files
def lines_of(path: Path) -> list[str]:
    return list(read_lines(path))


def filled(path: Path) -> Path:
    with RecordingFile(path, by="a test", at=AT, config={}) as file:
        for minute in range(20):
            file.writer.session(snapshot(minute), run_session(snapshot(minute)))
            file.flush()
    return path


def test_a_file_that_was_cut_anywhere_is_read_up_to_there(tmp_path: Path) -> None:
    whole = filled(tmp_path / "a.rec.gz").read_bytes()
    all_of_it = lines_of(tmp_path / "a.rec.gz")
    cut = tmp_path / "cut.rec.gz"
    counts: set[int] = set()
    for length in range(len(whole) // 3, len(whole), 97):
        cut.write_bytes(whole[:length])
        lines = lines_of(cut)
        assert lines == all_of_it[: len(lines)]
        verdict = verify(lines, "cut")
        assert verdict.mismatch is None
        assert not verdict.whole
        counts.add(verdict.counts.sessions)
    assert len(counts) > 5


def test_a_file_that_exists_is_never_written_over(tmp_path: Path) -> None:
    path = filled(tmp_path / "a.rec.gz")

    with pytest.raises(InputError, match="exists already"):
        RecordingFile(path, by="x", at=AT, config={})

    assert free_name(path).name == "a.2.rec.gz"
    free_name(path).touch()
    assert free_name(path).name == "a.3.rec.gz"


def test_other_files_are_told(tmp_path: Path) -> None:
    damaged = tmp_path / "d.rec.gz"
    content = bytearray(filled(tmp_path / "a.rec.gz").read_bytes())
    content[300:310] = b"0123456789"
    damaged.write_bytes(content)
    plain = tmp_path / "plain"
    plain.write_text("hello\n")

    with pytest.raises(InputError, match=r"is damaged|cannot be read|not JSON"):
        verify(read_lines(damaged), "d")
    with pytest.raises(InputError, match="not JSON"):
        verify(read_lines(plain), "plain")
    log = tmp_path / "events.db"
    open_log(log).close()
    with pytest.raises(InputError, match="is a log and no recording; see: xce audit verify"):
        lines_of(log)
    with pytest.raises(InputError, match="cannot be read"):
        lines_of(tmp_path / "missing")


@pytest.mark.parametrize("before", [[], [b'{"kind":"start"}\n']])
def test_a_small_file_that_is_endless_inside_is_refused_and_not_taken_for_one_that_was_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: list[bytes]
) -> None:
    # Given the bounds of lines, made small.
    monkeypatch.setattr(recordings, "START_MAX", 1_000)
    monkeypatch.setattr(recordings, "LINE_MAX", 2_000)
    path = tmp_path / "bomb.rec.gz"
    with gzip.open(path, "wb") as file:
        file.writelines([*before, bytes(3_000)])

    with pytest.raises(InputError, match=r"no recording: a line of more than [12],000 bytes"):
        lines_of(path)


# -------------------------------------------------------------------- anonymous
def without_names(lines: list[str]) -> str:
    out: list[str] = []
    anonymised(lambda: lines, "x", out.append)
    return "".join(out)


def test_no_name_of_a_user_or_job_is_left_and_it_still_verifies() -> None:
    text = without_names(recorded(1, 5, 3, trace=True))

    for name in ("bob", "alice", "carol", "job-of", "secret"):
        assert name not in text
    verdict = verify(text.splitlines(keepends=True), "x")
    assert verdict.mismatch is None
    assert (verdict.counts.sessions, verdict.whole) == (3, True)


def test_names_keep_their_order_so_that_ties_fall_the_same_way() -> None:
    lines = recorded(12)

    before, after = sessions(lines), sessions(without_names(lines).splitlines(keepends=True))

    started = [[a["job"] for a in entry.result["allocations"]] for entry in (*before, *after)]
    assert started == [["job-of-bob-0", "job-of-bob-1"], ["job01", "job02"]]


def test_what_does_not_verify_is_not_passed_on() -> None:
    lines = recorded(5)
    document = json.loads(lines[1])
    document["result"]["warnings"] = ["bob was here"]

    with pytest.raises(RejectedError, match="says something else now, at warnings"):
        without_names([lines[0], json.dumps(document) + "\n"])


# ---------------------------------------------------------------- command line
@pytest.fixture
def simulated(tmp_path: Path) -> Path:
    path = tmp_path / "s.rec.gz"
    words = ["sim", "swf", "examples/small.swf", "--config", "examples/small.yaml", "--quiet"]
    assert CliRunner().invoke(app, [*words, "--record", str(path)]).exit_code == 0
    return path


def test_a_simulation_is_recorded_shown_verified_and_passed_on(
    simulated: Path, tmp_path: Path
) -> None:
    run = CliRunner().invoke
    shown = json.loads(run(app, ["recording", "show", str(simulated), "--json"]).stdout)
    assert (shown["by"], shown["whole"]) == ("xce sim", True)
    assert min(shown["sessions"], shown["events"], shown["answers"]) > 10
    verdict = json.loads(run(app, ["replay", "verify", str(simulated), "--json"]).stdout)
    assert (verdict["verified"], verdict["sessions"]) == (True, shown["sessions"])

    out = tmp_path / "a.rec.gz"
    assert run(app, ["recording", "anonymise", str(simulated), str(out)]).exit_code == 0

    assert "say the same again" in run(app, ["replay", "verify", str(out)]).stdout
    one = run(app, ["recording", "show", str(out), "--session", "3"]).stdout
    assert Snapshot.from_json(one).format == "xce.snapshot/1"


def test_a_recording_that_says_something_else_is_exit_3(simulated: Path, tmp_path: Path) -> None:
    lines = lines_of(simulated)
    place = next(number for number, line in enumerate(lines) if '"demand":{"hosts":[{' in line)
    forged = tmp_path / "forged.rec.gz"
    lines[place] = lines[place].replace('"count":1', '"count":2', 1)
    with gzip.open(forged, "wt") as file:
        file.writelines(lines)

    result = CliRunner().invoke(app, ["replay", "verify", str(forged)])

    assert result.exit_code == 3
    assert "demand.hosts[0].count" in result.stdout
    assert "recorded  2" in result.stdout
