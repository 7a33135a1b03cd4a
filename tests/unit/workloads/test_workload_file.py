"""Workload files, and finding out what a file is."""

import gzip
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import ROOT
from tests.replay.worlds import demo_config
from xce.adapters import workloads
from xce.adapters.store.open import MEMORY, open_log
from xce.adapters.workloads import Kind, kind_of, load_workload
from xce.domain.errors import InputError
from xce.domain.formats.config import WorkloadConfig
from xce.domain.formats.snapshot import ArrayElement
from xce.replay.providers import SimulatedProvider
from xce.replay.recorded import RecordedSessions
from xce.replay.recording import RecordingWriter
from xce.replay.workloads.eda_day import eda_day
from xce.replay.workloads.workload import LeftOut, Note, Shape, Workload, WorkloadJob
from xce.replay.workloads.workload_file import digest_of, from_lines, to_lines
from xce.replay.world import World

START = datetime(2026, 3, 2, tzinfo=UTC)
JOB = WorkloadJob("j1", 5, 60, Shape(2, "rusage[mem=5]"), run_limit=timedelta(hours=1))
WORK = Workload("made", START, (JOB, WorkloadJob("j2", 5, 0, Shape(1))), 3, (LeftOut("bad", ("x",)),), (Note("odd", 1, "j2"),))  # fmt: skip

names = st.text("abcXYZ019_", min_size=1, max_size=6)
jobs = st.builds(
    WorkloadJob,
    id=names,
    submit=st.integers(0, 10**6),
    run_time=st.integers(0, 10**6),
    shape=st.builds(
        Shape, st.integers(1, 9), st.sampled_from(["", "rusage[mem=5]"]), st.booleans()
    ),
    user=names,
    priority=st.integers(-5, 5),
    held=st.booleans(),
    waits_for=st.lists(names, max_size=2).map(tuple),
    array=st.none() | st.builds(ArrayElement, id=names, index=st.integers(0, 9)),
    failures=st.lists(st.integers(0, 99), max_size=2).map(tuple),
    given_up=st.booleans(),
    run_limit=st.none() | st.integers(1, 10**6).map(lambda seconds: timedelta(seconds=seconds)),
)


@given(st.lists(jobs, unique_by=lambda job: job.id))
def test_what_is_written_is_read_again(drawn: list[WorkloadJob]) -> None:
    ordered = tuple(sorted(drawn, key=lambda job: job.submit))
    workload = Workload("made", START, ordered, len(ordered))

    assert from_lines(to_lines(workload), "w") == workload


def test_what_was_left_out_and_noted_is_kept() -> None:
    assert from_lines(to_lines(WORK), "w") == WORK


def test_the_head_of_a_workload_keeps_what_was_left_out() -> None:
    head = WORK.head(1)

    assert [job.id for job in head.jobs] == ["j1"]
    assert head.records == 2
    assert head.left_out == WORK.left_out
    assert WORK.head(None) is WORK.head(2) is WORK


def without_the_last(lines: list[str]) -> list[str]:
    return lines[:-1]


def with_the_last_twice(lines: list[str]) -> list[str]:
    return [*lines, lines[-1]]


def out_of_order(lines: list[str]) -> list[str]:
    return [lines[0], lines[1].replace('"submit":5', '"submit":9'), lines[2]]


def with_an_empty_job(lines: list[str]) -> list[str]:
    return [lines[0], "{}\n", lines[2]]


def without_any(lines: list[str]) -> list[str]:
    return lines[:0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without_the_last, "has 1 jobs; its first line says 2"),
        (with_the_last_twice, "w:4: job j2 is also in line 3"),
        (out_of_order, "w:3: was submitted before"),
        (with_an_empty_job, "w:2: id"),
        (without_any, "is empty"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(
    change: Callable[[list[str]], list[str]], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        from_lines(change(list(to_lines(WORK))), "w")

    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["work.jsonl", "work.jsonl.gz"])
def test_a_file_is_known_by_its_first_line_packed_or_plain(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    text = "".join(to_lines(WORK)).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)

    assert kind_of(path) is Kind.WORKLOAD
    assert digest_of(load_workload(path, WorkloadConfig(), seed=1)) == digest_of(WORK)


def test_a_trace_is_known_and_read_as_ever() -> None:
    path = ROOT / "examples" / "small.swf"

    assert kind_of(path) is Kind.SWF
    assert len(load_workload(path, WorkloadConfig(), seed=1, jobs_max=30).jobs) == 30


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_workload(tmp_path / "none", WorkloadConfig(), seed=1)


def recorded(path: Path) -> Workload:
    """Record the demo's day, and return the jobs that were in it."""
    config, workload = demo_config(), eda_day(7)
    lines: list[str] = []
    writer = RecordingWriter(lines.append, by="test", release="1", at=START, config={})
    providers = {one.name: SimulatedProvider(one, 7) for one in config.providers}
    with open_log(MEMORY) as log:
        sessions = RecordedSessions(writer, log)
        World(config, workload, log, providers, watchers=(sessions,)).run()
        sessions.finish()
    path.write_text("".join(lines), encoding="utf-8")
    return workload


def test_a_recording_gives_back_the_jobs_that_were_in_it(tmp_path: Path) -> None:
    path = tmp_path / "day.rec"
    workload = recorded(path)

    again = load_workload(path, WorkloadConfig(), seed=1)

    assert kind_of(path) is Kind.RECORDING
    assert again.records == len(workload.jobs)
    truth = {job.id: job for job in workload.jobs}
    interval = demo_config().driver.session_interval.total_seconds()
    assert len(again.jobs) + sum(len(group.jobs) for group in again.left_out) == len(truth)
    assert len(again.jobs) > 0.98 * len(truth)
    for job in again.jobs:
        known = truth[job.id]
        assert (job.shape, job.user, job.queue, job.run_limit) == (known.shape, known.user, known.queue, known.run_limit)  # fmt: skip
        at = again.start + timedelta(seconds=job.submit)
        assert at == workload.start + timedelta(seconds=known.submit)
        # It is seen to have ended by the next session.
        assert known.run_time <= job.run_time <= known.run_time + interval


def test_a_recording_without_a_waiting_job_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.rec"
    lines: list[str] = []
    RecordingWriter(lines.append, by="test", release="1", at=START, config={}).end()
    path.write_text("".join(lines), encoding="utf-8")

    with pytest.raises(InputError, match="no session in which a job waited"):
        load_workload(path, WorkloadConfig(), seed=1)


def test_a_document_that_is_neither_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(json.dumps({"some": "thing"}), encoding="utf-8")

    with pytest.raises(InputError, match="wanted what sacct --json prints"):
        load_workload(path, WorkloadConfig(), seed=1)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
def test_a_line_without_end_is_refused_before_it_fills_the_memory(
    tmp_path: Path, pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workloads, "LINE_MAX", 1 << 20)
    path = tmp_path / "endless"
    good = "".join(to_lines(WORK)).encode()
    path.write_bytes(pack(good + b" " * (1 << 21)))

    with pytest.raises(InputError, match="a line of more than 1 MiB"):
        load_workload(path, WorkloadConfig(), seed=1)


LINE = {"id": "a", "submit": 0, "run_time": 60}
HEAD = {"format": "xce.workload/1", "source": "s", "start": "2026-03-02T00:00:00Z", "jobs": 1, "records": 1}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"submit": 2**53 - 1}, "w:2: submit: "),
        ({"run_time": 10**12}, "w:2: run_time: "),
        ({"tasks": 0}, "w:2: tasks: "),
        ({"tasks": 1_000_001}, "w:2: tasks: "),
        ({"resreq": "select["}, "w:2: resreq: column 8: expected a name"),
        ({"resreq": "a" * 65_537}, "w:2: resreq: "),
    ],
)
def test_a_job_that_no_simulation_could_run_is_refused_where_it_stands(
    change: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        from_lines([json.dumps(HEAD), json.dumps({**LINE, **change})], "w")

    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'\xef\xbb\xbf{"jobs": []}', "starts with a byte order mark"),
        (b'{"format": "xce.workload/2"}\n{}\n', "is 'xce.workload/2'; wanted xce.workload/1"),
        (b"[]", "has no list of jobs"),
        (b'{"jobs":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "is nested too deeply"),
    ],
)
def test_what_is_no_work_says_what_it_is(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "work"
    path.write_bytes(text)

    with pytest.raises(InputError) as caught:
        load_workload(path, WorkloadConfig(), seed=1)

    assert message in str(caught.value)


def test_a_pipe_is_no_file_of_jobs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(InputError, match="is a pipe"):
        load_workload(tmp_path / "pipe", WorkloadConfig(), seed=1)


def test_a_name_that_is_too_long_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_workload(tmp_path / ("a" * 5_000), WorkloadConfig(), seed=1)
