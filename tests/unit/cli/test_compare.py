"""``xce sim compare`` and ``xce workload``: whole commands in processes of their own."""

import csv
import gzip
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

from tests.conftest import ROOT
from xce.adapters.cli.compare_table import print_comparison
from xce.adapters.cli.visible import PlainConsole
from xce.adapters.comparison.folder import RUNS, ResultFolder
from xce.adapters.comparison.processes import Failed, in_processes
from xce.adapters.comparison.runs import Run
from xce.adapters.settings import load_config
from xce.domain.formats.comparison import Comparison, RunOutcome
from xce.replay.workloads.from_swf import load_swf

SMALL = str(ROOT / "examples" / "small.yaml")
TRACE = ROOT / "examples" / "small.swf"
VARY = "session.idle_host_after=5min,2h"
TIMEOUT_S = 300


def xce(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "xce.adapters.cli.main", *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def compare(out: Path, *more: str) -> "subprocess.CompletedProcess[str]":
    return xce(
        "sim", "compare", SMALL, "--workload", str(TRACE), "--vary", VARY, "--out", str(out), *more
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the folder of a comparison, and what was printed."""
    out = tmp_path_factory.mktemp("compared") / "out"
    done = compare(out, "--json")
    assert done.returncode == 0, done.stderr
    return out, done.stdout


def test_a_comparison_leaves_a_report_a_document_and_a_table(finished: tuple[Path, str]) -> None:
    out, printed = finished

    comparison = Comparison.from_json(printed)
    assert comparison == Comparison.from_json((out / "comparison.json").read_text(encoding="utf-8"))
    assert comparison.policies == ("idle_host_after=5min", "idle_host_after=2h")
    with (out / "comparison.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["session.idle_host_after"] for row in rows] == ["5min", "2h"]
    assert [row["cost"] for row in rows] == [str(run.figures.cost) for run in comparison.runs]
    assert "idle_host_after=5min" in (out / "report.html").read_text(encoding="utf-8")
    assert len(list((out / RUNS).iterdir())) == 2


@pytest.mark.parametrize("width", [30, 60, 80, 120, 300])
def test_no_figure_is_cut_on_a_narrow_terminal(finished: tuple[Path, str], width: int) -> None:
    comparison = Comparison.from_json(finished[1])
    file = io.StringIO()
    console = PlainConsole(file=file, width=width, force_terminal=True, no_color=True)

    print_comparison(comparison, "small.swf", console)

    lines = Text.from_ansi(file.getvalue()).plain.splitlines()
    shown = "\n".join(lines)
    for run in comparison.runs:
        assert run.policy in shown
        assert f"{run.figures.cost:,.2f}" in shown
        assert f"{run.figures.waste:,.2f}" in shown
    assert "…" not in shown
    assert max(len(line) for line in lines) <= width


def test_what_is_there_is_not_run_again_and_a_broken_file_is(
    tmp_path: Path, finished: tuple[Path, str]
) -> None:
    out = tmp_path / "out"
    shutil.copytree(finished[0], out)
    kept, broken = sorted((out / RUNS).iterdir())
    mark = json.loads(kept.read_text(encoding="utf-8"))
    mark["report"]["source"] = "kept from before"
    kept.write_text(json.dumps(mark), encoding="utf-8")
    broken.write_text(broken.read_text(encoding="utf-8")[:1000], encoding="utf-8")

    done = compare(out, "--json")

    again = Comparison.from_json(done.stdout)
    assert done.stderr == f"1 of 2 runs are in {out} already\n"
    sources = [run.report.source for run in again.runs]
    assert sorted(sources) == ["kept from before", "small.swf"]
    whole = Comparison.from_json(finished[1])
    assert [run.figures for run in again.runs] == [run.figures for run in whole.runs]


def test_jobs_that_have_not_ended_are_told_with_their_reasons(tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text("cluster:\n  hosts:\n    - {name: h1, total: {slots: 4}}\n", "utf-8")
    rules = ("--vary", "workload.memory.use=false")

    done = xce("sim", "compare", str(site), "--workload", str(TRACE), *rules, "--jobs", "2",
               "--out", str(tmp_path / "out"), "--processes", "1")  # fmt: skip

    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("not ended, ")]
    assert line.startswith("not ended, use=false: 1 job: impossible: ")
    assert line.endswith(" (2)")


def test_a_comparison_that_is_interrupted_says_how_it_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = [sys.executable, "-m", "xce.adapters.cli.main", "sim", "compare", SMALL, "--workload", str(TRACE),
                 "--vary", "driver.seed=1,2,3", "--out", str(out), "--processes", "1", "--quiet"]  # fmt: skip
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while process.poll() is None and not _children(process.pid):
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()

    assert process.returncode == 130
    assert said.endswith(
        f" of 3 runs are kept in {out}; the same command goes on from there\nxce: interrupted\n"
    )


def runs_of(jobs: int) -> tuple[list[Run], dict[str, Any]]:
    config = load_config(Path(SMALL))
    workload = load_swf(TRACE, config.workload, seed=1, jobs_max=jobs)
    runs = [Run.of(name, "small", (), config, "d", len(workload.jobs)) for name in ("a", "b", "c")]
    return runs, {"d": workload}


def test_processes_yield_every_outcome_and_say_how_far_they_are() -> None:
    runs, workloads = runs_of(30)
    told: dict[str, int] = {}

    results = list(in_processes(runs, workloads, 2, told.__setitem__))

    outcomes = [one for one in results if isinstance(one, RunOutcome)]
    assert {one.key for one in outcomes} == {run.key for run in runs}
    assert len({one.report.log.digest for one in outcomes}) == 1
    assert set(told.values()) == {30}


def test_a_process_that_is_killed_is_a_run_that_failed() -> None:
    runs, workloads = runs_of(79)
    children: list[int] = []

    def told(key: str, ended: int) -> None:
        if key == runs[0].key and not children:
            children.extend(_children(os.getpid()))
            for child in children:
                os.kill(child, signal.SIGKILL)

    results = list(in_processes(runs, workloads, 1, told))

    failed = [one for one in results if isinstance(one, Failed)]
    assert len(results) == 3
    assert [one.run.key for one in failed] == [runs[0].key]
    assert "SIGKILL" in failed[0].why


def _children(parent: int) -> list[int]:
    """Return the processes that carry runs out: children that are no trackers of resources."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                status = (entry / "stat").read_text(encoding="utf-8")
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue  # it has ended
            if int(status.rpartition(")")[2].split()[1]) == parent and b"spawn_main" in line:
                found.append(int(entry.name))
    return found


def test_a_comparison_that_was_killed_goes_on_and_leaves_no_process(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = [sys.executable, "-m", "xce.adapters.cli.main", "sim", "compare", SMALL, "--workload", str(TRACE),
                 "--vary", "driver.seed=1,2,3", "--out", str(out), "--processes", "1", "--quiet"]  # fmt: skip
    with subprocess.Popen(
        arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while process.poll() is None and not list(out.glob(f"{RUNS}/*.json")):
            with_timeout(process)
        children = _children(process.pid)
        process.kill()
    there = {path.name: path.read_bytes() for path in out.glob(f"{RUNS}/*.json")}

    again = xce(*arguments[3:])

    assert again.returncode == 0, again.stderr
    assert len(list(out.glob(f"{RUNS}/*.json"))) == 3
    assert {name: (out / RUNS / name).read_bytes() for name in there} == there
    assert not [child for child in children if Path(f"/proc/{child}").exists() and _is_ours(child)]


def with_timeout(process: "subprocess.Popen[bytes]") -> None:
    """Give a process some time; it may well go on."""
    try:
        process.wait(timeout=0.05)
    except subprocess.TimeoutExpired:
        return


def _is_ours(process: int) -> bool:
    try:
        return b"spawn_main" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


def test_a_folder_keeps_a_file_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path / "f")

    folder.write("a.txt", "whole")

    assert [path.name for path in (tmp_path / "f").iterdir() if path.is_file()] == ["a.txt"]
    assert folder.find("nothing") is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--workload", "none.swf"), "none.swf: cannot be read"),
        (("--workload", str(TRACE), "--workload", str(TRACE)), "two are called small.swf"),
        (("--workload", str(TRACE), "--vary", "policy.x=1"), "unknown key"),
    ],
)
def test_wrong_input_is_said_before_anything_runs(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = xce("sim", "compare", SMALL, *arguments, "--out", str(tmp_path / "out"))

    assert done.returncode == 2
    assert message in done.stderr


# ---------------------------------------------------------------------- workloads
def test_made_up_work_is_the_same_bytes_each_time_and_can_be_shown(tmp_path: Path) -> None:
    files = [tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl.gz"]
    parameters = tmp_path / "site.yaml"
    parameters.write_text("jobs_per_day: 50\nnights: {arrays: 1, largest: 50}\n", encoding="utf-8")
    for file in files:
        done = xce("workload", "make", str(file), "--seed", "3", "--days", "2", "--parameters", str(parameters))  # fmt: skip
        assert done.returncode == 0, done.stderr

    shown = json.loads(xce("workload", "show", str(files[0]), "--json").stdout)

    assert files[0].read_bytes() == files[1].read_bytes()
    assert len(gzip.decompress(files[0].read_bytes()).splitlines()) == shown["jobs"] + 1
    assert shown["arrays"] == 2


def test_a_trace_becomes_a_workload_file_that_simulates_alike(tmp_path: Path) -> None:
    file = tmp_path / "small.jsonl"

    done = xce("workload", "convert", str(TRACE), str(file), "--config", SMALL, "--jobs", "20")
    again = xce("workload", "convert", str(TRACE), str(file), "--config", SMALL)

    assert done.returncode == 0, done.stderr
    assert "20 jobs" in done.stdout
    assert again.returncode == 2
    assert "exists already" in again.stderr


def test_a_scenario_is_compared_with_its_own_jobs(tmp_path: Path) -> None:
    scenario = ROOT / "examples" / "scenarios" / "licences-that-linger.yaml"

    done = xce(
        "sim", "compare", str(scenario), "--vary", "driver.seed=1,2", "--out", str(tmp_path / "out"), "--json",
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    comparison = Comparison.from_json(done.stdout)
    assert comparison.workloads == ("licences-that-linger",)
    assert comparison.policies == ("seed=1", "seed=2")


def test_a_policy_that_does_not_what_is_expected_is_told_and_ends_it_with_3_if_that_is_asked(
    tmp_path: Path,
) -> None:
    scenario = tmp_path / "strict.yaml"
    scenario.write_text(
        "name: strict\nuntil: 30min\ncluster: {hosts: [{name: own1, total: {slots: 1}}]}\n"
        "workload: {jobs: [{id: 'j[1-2]', run_time: 20min}]}\nexpect: [{of: ended, equals: 2}]\n"
    )
    out = str(tmp_path / "out")

    told = xce("sim", "compare", str(scenario), "--out", out)
    asked = xce("sim", "compare", str(scenario), "--out", out, "--expect")

    assert (told.returncode, asked.returncode) == (0, 3)
    assert "NOT  strict: ended = 2 at the end; found: 1" in told.stdout
    assert asked.stdout == told.stdout
