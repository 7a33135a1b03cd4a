"""Two clusters on one licence pool, every daemon a real process, a licence server that prints lmstat text, and kill -9 on the way."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.crash.totals import Folded, Seen
from xce.adapters.controller.access import token_line
from xce.adapters.controller.service import read_controller_config
from xce.adapters.providers.pool import scripts as pool_scripts
from xce.adapters.providers.pool.book import PoolBook
from xce.adapters.schedulers.fake import FakeFile
from xce.adapters.store.open import open_log
from xce.adapters.store.verify import verify
from xce.domain.engine.messages import Caller, Role
from xce.domain.formats.licence_pool import LicencePool, PooledResource, PoolSite

pytestmark = pytest.mark.slow

#: A bound only; on an idle machine everything is over in a fraction of it.
WITHIN_S = 150.0
OWNED = 2
SIZE = 10
JOBS = 7

LMUTIL = """#!{python} -S
import json, sys
try:
    state = json.load(open({batch!r}))
except OSError:
    state = {{}}
used = sum(a for run in state.get("running", []) for e, a in run["job"].get("shared", {{}}).items() if e == "lic")
print("lmutil - Copyright (c) 1989-2023 Flexera. All Rights Reserved.")
print("Flexible License Manager status on Tue 5/12/2026 14:07")
print()
print("License server status: 27020@keys")
print("    License file(s) on keys: /srv/keys/all.lic:")
print()
print("keys: license server UP (MASTER) v11.19.5")
print()
print("Vendor daemon status (on keys):")
print()
print("    northlm: UP v11.19.5")
print("Feature usage info:")
print()
print(f"Users of lic_f:  (Total of 100 licenses issued;  Total of {{used}} licenses in use)")
print()
if used:
    print('  "lic_f" v1.0, vendor: northlm, expiry: permanent(no expiration date)')
    print("  floating license")
    print()
    print(f"    aster n1 /dev/tty (v1.0) (keys/27020 1), start Tue 5/12 8:03, {{used}} licenses")
    print()
"""
CONTROLLER = """
log: events.db
tokens: tokens.txt
listen: {{port: {port}}}
request_log: false
detection: 2s
shared:
  - name: lic
    owned: {owned}
    provider: pool
    max_borrow: 8
    step: 2
    idle_return_after: 4s
    settle_time: 1s
    observer: keys
    observation_ttl: 10min
"""
SCHEDULER = """
controller: {{addresses: ["http://127.0.0.1:{port}"], token_file: scheduler.token}}
source: {{fake: {{path: batch.json, boot_time: 1s}}}}
session_interval: 1s
"""
PROVISIONER = """
name: provisioner-1
controller: {{addresses: ["http://127.0.0.1:{port}"], token_file: provisioner.token}}
state: state
scripts: [{{name: pool, folder: pool}}]
observers:
  - kind: flexnet
    name: keys
    lmutil: {folder}/lmutil
    servers: [27020@keys]
    features: [{{resource: lic, feature: lic_f}}]
    interval: 30s
rhythm: {{poll: 1s, round: 1s, review: 1s, lease_term: 3s}}
"""
KINDS = ("controller", "scheduler", "provisioner")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Cluster:
    """One site: three daemons and a folder."""

    name: str
    folder: Path
    pool: Path
    port: int = 0
    running: dict[str, subprocess.Popen[bytes]] = field(
        default_factory=dict[str, subprocess.Popen[bytes]]
    )

    def prepare(self) -> None:
        self.folder.mkdir()
        self.port = port = free_port()
        tokens: list[str] = []
        for role in (Role.SCHEDULER, Role.PROVISIONER, Role.VIEWER):
            secret = f"xce_{self.name}-{role}"
            tokens.append(token_line(Caller(role, f"{role}-1"), secret))
            (self.folder / f"{role}.token").write_text(secret)
        (self.folder / "tokens.txt").write_text("\n".join(tokens) + "\n")
        for kind, text in zip(KINDS, (CONTROLLER, SCHEDULER, PROVISIONER), strict=True):
            made = text.format(port=port, owned=OWNED, folder=self.folder)
            (self.folder / f"{kind}.yaml").write_text(made)
        batch = str(self.folder / "batch.json")
        (self.folder / "lmutil").write_text(LMUTIL.format(python=sys.executable, batch=batch))
        (self.folder / "lmutil").chmod(0o755)
        pool_scripts.install(self.pool, self.name, self.folder / "pool")
        self.fake("host", "own-1", "--slots", "50")

    def fake(self, what: str, *arguments: str) -> None:
        place = str(self.folder / "batch.json")
        subprocess.run(
            [sys.executable, "-m", "xce.adapters.cli.main", "scheduler", "fake", what, place, *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip

    def submit(self, count: int, run_time: str) -> None:
        self.fake(
            "submit", "--count", str(count), "--run-time", run_time, "--resreq", "rusage[lic=1]"
        )

    def start(self, kind: str) -> None:
        with (self.folder / f"{kind}.log").open("ab") as log:
            self.running[kind] = subprocess.Popen(
                [sys.executable, "-m", "xce.adapters.cli.main", kind, "--config", f"{self.folder}/{kind}.yaml"],
                stdout=log,
                stderr=log,
            )  # fmt: skip

    def kill(self, kind: str) -> None:
        self.running[kind].kill()
        self.running[kind].wait()
        self.start(kind)

    def keep_alive(self) -> None:
        """Do what a service manager does: a daemon that has lost its controller may end, and is started again."""
        for kind, process in list(self.running.items()):
            if process.poll() is not None:
                self.start(kind)

    def watch(self) -> Seen:
        """Look at the controller from now on."""
        return Seen(f"http://127.0.0.1:{self.port}", f"xce_{self.name}-{Role.VIEWER}", ["lic"])

    def stop(self) -> None:
        for process in self.running.values():
            process.send_signal(signal.SIGTERM)
        for process in self.running.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def jobs(self) -> tuple[int, int]:
        """Return how many wait and how many run."""
        state = FakeFile(self.folder / "batch.json").read()
        return len(state.waiting), len(state.running)


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[dict[str, Cluster]]:
    pool = tmp_path / "pool.db"
    sites = (PoolSite(name="a", guaranteed=4), PoolSite(name="b", guaranteed=4))
    with PoolBook(pool) as book:
        book.apply(
            LicencePool(resources=(PooledResource(name="lic", size=SIZE, step=2, sites=sites),))
        )
    made = {name: Cluster(name, tmp_path / name, pool) for name in ("a", "b")}
    try:
        for cluster in made.values():
            cluster.prepare()
            for kind in KINDS:
                cluster.start(kind)
        yield made
    finally:
        for cluster in made.values():
            cluster.stop()


def test_tokens_go_where_jobs_wait_and_all_come_back_whatever_is_killed(
    clusters: dict[str, Cluster],
) -> None:
    one, two = clusters["a"], clusters["b"]
    book = PoolBook(one.pool)
    watching = {name: cluster.watch() for name, cluster in clusters.items()}

    def held(name: str) -> int:
        return book.standing("lic", datetime.now(UTC)).has(name)

    def until(what: Callable[[], bool], why: str) -> None:
        end = time.monotonic() + WITHIN_S
        while not what():
            for cluster in clusters.values():
                cluster.keep_alive()
            assert time.monotonic() < end, why
            time.sleep(0.2)  # between looks, never instead of one

    one.submit(JOBS, "15s")
    until(lambda: held("a") >= 4, "a waits, and borrows")
    one.kill("provisioner")
    two.submit(JOBS, "15s")
    two.kill("controller")
    until(lambda: held("b") >= 4, "b waits, and borrows what is kept for it")
    two.kill("scheduler")
    one.kill("controller")
    until(lambda: one.jobs() == two.jobs() == (0, 0), "all jobs run")
    two.kill("provisioner")
    until(lambda: held("a") == held("b") == 0, "all tokens are back")

    for name, cluster in clusters.items():
        seen = watching[name]
        seen.stop()
        cluster.stop()
        pools = read_controller_config(cluster.folder / "controller.yaml").shared
        with open_log(str(cluster.folder / "events.db"), read_only=True) as log:
            report = verify(log)
            folded = Folded(log, pools)
            differences = folded.differences(log, seen)
        assert report.passed, report
        assert differences == []
        assert len(set(folded.live.values())) >= 5, "totals that moved"
        assert len(set(seen.totals.values())) >= 3, "and were seen moving"
        assert seen.shown, "and were shown to sessions"
    lent = most = 0
    for move in book.moves():
        lent += {"lent": 1, "back": -1}.get(move.kind, 0) * move.amount
        most = max(most, lent)
    assert (lent, most <= SIZE) == (0, True)
    book.close()
