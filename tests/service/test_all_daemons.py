"""Controller, provisioner and scheduler driver as on one machine, with the configurations of ``examples/live``: from a waiting job to a host
that went back, through nothing but what operators and users type."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.service.running import NAMES, TOKENS, Running
from tests.service.test_operators import Operator
from xce.adapters.clock import SystemClock
from xce.adapters.providers.install import Comes, install
from xce.adapters.recordings import read_lines
from xce.adapters.schedulers import fake_state
from xce.adapters.schedulers.fake import FakeFile
from xce.adapters.store.open import open_log
from xce.adapters.store.verify import verify as verify_log
from xce.domain.engine.messages import Role
from xce.domain.formats.snapshot import Host, PendingJob
from xce.replay.joined import joined
from xce.replay.verification import verify

#: Nothing here takes long; a machine may.
PATIENCE_S = 180.0


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"it never came to this: {what}"
        time.sleep(0.1)


@contextmanager
def daemon(folder: Path, command: str) -> Generator[None]:
    """Run a daemon until the block ends; SIGTERM ends it cleanly."""
    words = [sys.executable, "-m", "xce.adapters.cli.main", command, "--config", f"{command}.yaml"]
    with (folder / f"{command}.log").open("wb") as log:
        process = subprocess.Popen(words, cwd=folder, stderr=log)
        try:
            yield
            process.send_signal(signal.SIGTERM)
            code = process.wait(PATIENCE_S)
        except BaseException:
            process.kill()
            process.wait()
            raise
    assert code == 0, (folder / f"{command}.log").read_text()


@pytest.fixture
def folder(service: Running, tmp_path: Path) -> Path:
    for name in ("scheduler", "provisioner"):
        text = (ROOT / "examples" / "live" / f"{name}.yaml").read_text(encoding="utf-8")
        text = text.replace("http://127.0.0.1:8470", service.address)
        text = text.replace("name: p1", f"name: {NAMES[Role.PROVISIONER]}")
        text = text.replace("session_interval: 5s", "session_interval: 1s")
        text = text.replace("poll: 2s", "poll: 1s, round: 1s")
        text = text.replace("# record:", "record:").replace("boot_time: 2s", "boot_time: 0s")
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
        (tmp_path / f"{name}.token").write_text(TOKENS[Role(name)])
    install(Comes.SIMULATED, tmp_path / "cloud")
    return tmp_path


def test_a_job_gets_its_host_and_the_host_goes_back(service: Running, folder: Path) -> None:
    file, admin = FakeFile(folder / "batch.json"), Operator(service.address)
    own = Host(name="own-1", total={"slots": 1})
    jobs = [PendingJob(id="new", resreq="")] * 3
    now, hour = SystemClock().now(), timedelta(hours=1)
    file.change(
        lambda state: fake_state.with_host(state, own),
        lambda state: fake_state.submitted(state, jobs, hour, now),
    )

    with daemon(folder, "scheduler"), daemon(folder, "provisioner"):
        until(lambda: len(file.read().running) == 3, "all jobs run")
        (instance,) = admin.json("instances")["items"]
        assert instance["state"] == "joined"
        assert f"s on {instance['host']}" in admin.says("why", "3")  # it starts, or runs
        (decision,) = admin.json("decisions")["items"]
        assert set(decision["jobs"]) == {"2", "3"}

        admin.says("return", instance["id"])
        until(lambda: admin.json("drains")["items"][0]["state"] == "closed", "it is closed")
        end = SystemClock().now()
        file.change(
            lambda state: fake_state.ended(state, {run.job.id: end for run in state.running})
        )
        until(lambda: admin.json("instances")["items"] == [], "the host went back")
        until(lambda: len(file.read().hosts) == 1, "it left the cluster")
        assert admin.json("drains")["items"] == []

    service.service.stop()
    until(lambda: not service.service.live.ready, "the controller stopped")
    with open_log(folder / "events.db", read_only=True) as log:
        assert verify_log(log).passed
    assert_recorded(folder)


def assert_recorded(folder: Path) -> None:
    """What the daemons recorded is one recording, and says the same again."""
    names = ("evening.rec.gz", "decisions.rec.gz")
    parts = [(name, read_lines(folder / name)) for name in names]
    lines: list[str] = []
    made = joined(parts, lines.append)
    assert made.tied
    verdict = verify(lines, "evening")
    assert verdict.mismatch is None
    assert verdict.whole
    assert verdict.counts.sessions
    assert verdict.counts.rounds
