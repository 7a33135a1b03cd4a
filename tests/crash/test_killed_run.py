"""A simulation killed at any moment (SIGKILL) leaves a log that opens, verifies and rebuilds."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.replay.worlds import the_demo
from xce.adapters.store.open import open_log
from xce.adapters.store.verify import verify
from xce.projections.all import Projections

#: Longest that a run takes from the moment its log is there, in seconds, on a slow machine.
RUN_S = 1.0
START_LIMIT_S = 60
TIMES = int(os.environ.get("XCE_KILLS", "20"))


def run_and_kill(folder: Path, delay_s: float) -> Path:
    """Start the demo, kill it ``delay_s`` after its log appeared, and return the log."""
    log = folder / "demo" / "events.db"
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "xce.adapters.cli.main",
            "demo",
            "--out",
            str(log.parent),
            "--quiet",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        waited = 0.0
        while not log.exists() and process.poll() is None and waited < START_LIMIT_S:
            waited += 0.002
            _wait(process, 0.002)
        _wait(process, delay_s)
    finally:
        process.kill()
        _, complaints = process.communicate()
    assert complaints == b""
    return log


def _wait(process: "subprocess.Popen[bytes]", seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


@pytest.mark.parametrize("number", range(TIMES))
def test_the_log_of_a_killed_run_opens_verifies_and_rebuilds(tmp_path: Path, number: int) -> None:
    delay_s = random.Random(number).uniform(0, RUN_S)

    path = run_and_kill(tmp_path, delay_s)

    with open_log(path, read_only=True) as log:
        report = verify(log)
        assert report.passed, report
        head = log.head()
        assert Projections.rebuild(log).position == head.position
        clean = the_demo().events
        assert [entry.digest for entry in log.read()] == [
            entry.digest for entry in clean[: head.position]
        ], "what is there is the beginning of the undisturbed run"


def test_a_killed_run_can_be_made_again_in_the_same_folder(tmp_path: Path) -> None:
    log = run_and_kill(tmp_path, 0.05)

    done = subprocess.run(
        [
            sys.executable, "-m", "xce.adapters.cli.main", "demo",
            "--out", str(log.parent), "--quiet", "--force",
        ],
        capture_output=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert (log.parent / "report.html").stat().st_size > 10_000
