"""kill -9 of a process that appends, at moments nobody chose: the log opens, verifies, and has all that was acknowledged."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.conftest import ROOT
from xce.adapters.store.audit import database_of, query, rebuild
from xce.adapters.store.open import open_log
from xce.adapters.store.verify import verify
from xce.domain.events.recorded import Head

KILLS = int(os.environ.get("XCE_KILLS", "12"))


def kill_after(path: Path, lines: int, spin: int) -> list[str]:
    """Start the writer, wait for so many acknowledgements and a moment more, kill it; return all it acknowledged."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.writer", str(path)],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    seen = "".join(process.stdout.readline() for _ in range(lines))
    for _ in range(
        spin
    ):  # a short wait that no clock counts, so that the kill falls anywhere in an append
        pass
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    return [line for line in (seen + rest).splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.parametrize("seed", range(KILLS))
def test_what_was_acknowledged_is_there_after_a_kill(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    path = tmp_path / "log.db"
    acknowledged: list[str] = []
    for _ in range(2):  # killed, started again on what is left, killed again
        acknowledged += kill_after(path, random.randint(1, 40), random.randint(0, 200_000))
    heads = [
        Head(int(p), bytes.fromhex(d))
        for p, d in (line.strip().split(":") for line in acknowledged)
    ]

    with open_log(path, read_only=True) as log:
        stored = {Head(row.position, row.digest) for row in log.recorder.rows()}
        assert stored.issuperset(heads)
        report = verify(log, anchor=heads[-1])
        assert report.passed, [str(f) for check in report.checks for f in check.findings]
        rebuild(log, database_of(str(path)))

    answer = query(database_of(str(path)), "SELECT count(*) FROM events")
    assert answer.rows == ((report.events,),)
