"""Primaries killed, or frozen and woken, while four clients append: the standby goes on, nothing acknowledged is lost, the woken one appends nothing."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.conftest import ROOT
from tests.postgresql import Server
from xce.adapters.store.open import open_log
from xce.adapters.store.verify import verify
from xce.domain.events.recorded import Head

FAILOVERS = int(os.environ.get("XCE_FAILOVERS", "5"))
DETECTION_S = 0.5


class Candidate:
    """One controller process."""

    def __init__(self, place: str, name: str) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.candidate", place, name, str(DETECTION_S)],
            cwd=ROOT, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.lines: list[str] = []
        self.read_until(lambda line: line == "standing by")

    def read_until(self, wanted: Callable[[str], bool], times: int = 1) -> None:
        assert self.process.stdout is not None
        while times:
            line = self.process.stdout.readline()
            assert line, f"{self.name} ended: {self.lines[-3:]}"
            self.lines.append(line.rstrip("\n"))
            times -= wanted(self.lines[-1])

    def read_rest(self) -> None:
        rest, _ = self.process.communicate(timeout=60)
        whole = [line for line in rest.splitlines(keepends=True) if line.endswith("\n")]
        self.lines += [line.rstrip("\n") for line in whole]

    def saved(self) -> list[Head]:
        found = [line.split()[1].split(":") for line in self.lines if line.startswith("saved ")]
        return [Head(int(position), bytes.fromhex(digest)) for position, digest in found]


def is_saved(line: str) -> bool:
    return line.startswith("saved ")


def is_primary(line: str) -> bool:
    return line.startswith("primary ")


@pytest.mark.parametrize("backend", ["sqlite", "postgresql"])
def test_whatever_befalls_the_primary_the_standby_goes_on(
    request: pytest.FixtureRequest, tmp_path: Path, backend: str,
    record_property: Callable[[str, object], None],
) -> None:  # fmt: skip
    if backend == "sqlite":
        place = str(tmp_path / "log.db")
    else:
        server: Server = request.getfixturevalue("postgresql")
        place = server.address()
    open_log(place).close()
    random = Random(f"{backend} {FAILOVERS}")
    everybody = [primary := Candidate(place, "c0")]
    took: dict[str, list[float]] = {"kill": [], "freeze": []}
    try:
        primary.read_until(is_primary)
        for number in range(1, FAILOVERS + 1):
            everybody.append(standby := Candidate(place, f"c{number}"))
            primary.read_until(is_saved, random.randint(1, 40))
            way = ("kill", "freeze")[(number + random.randint(0, 1)) % 2]
            begun = time.monotonic()
            primary.process.send_signal(signal.SIGKILL if way == "kill" else signal.SIGSTOP)
            standby.read_until(is_primary)
            took[way].append(time.monotonic() - begun)
            standby.read_until(is_saved)
            if way == "freeze":
                primary.process.send_signal(signal.SIGCONT)
            primary.read_rest()
            frozen_session = way == "freeze" and backend == "postgresql"
            assert primary.lines[-1] == "refused" if frozen_session else is_saved(primary.lines[-1])
            assert primary.process.returncode == (0 if frozen_session else -signal.SIGKILL)
            primary = standby
    finally:
        for candidate in everybody:
            if candidate.process.poll() is None:
                candidate.process.kill()
                candidate.read_rest()
    record_property("took_s", took)
    print(f"{backend}: {took}")

    with open_log(place, read_only=True) as log:
        stored = {Head(row.position, row.digest) for row in log.recorder.rows()}
        owners = [
            recorded.event.originator_id.rpartition("-")[0].rpartition("-")[2][:-1]
            for recorded in log.read()
        ]
        report = verify(log)
    for candidate in everybody:
        assert stored.issuperset(candidate.saved())
    # The order of the log is the order of the primaries: nobody appends after its successor.
    turns = [owner for owner, before in zip(owners, ["", *owners], strict=False) if owner != before]
    assert turns == [candidate.name for candidate in everybody]
    assert report.passed, [str(f) for check in report.checks for f in check.findings]
    assert all(seconds < DETECTION_S + 10 for each in took.values() for seconds in each)
