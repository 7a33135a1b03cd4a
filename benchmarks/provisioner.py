"""The provisioner under load: ``python -m benchmarks.provisioner [--json] [--machines N] [--call-s S] [--idle N] [--seconds S]``.

A real controller and a real daemon, each a process of its own, with simulated providers as scripts.

- slow: one provider with many machines whose every call takes long, beside a quick one. How late is a poll of the quick one, in
  polling periods, and how much memory does the daemon take at most? Wanted: at most 1 period, and 200 MiB.
- idle: many providers without demand. How much of a core does the daemon itself take (scripts apart)? Wanted: below 5 %.
"""

import argparse
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from xce.adapters.client import Client
from xce.adapters.controller.access import new_token, token_line
from xce.adapters.providers.install import SIMULATED_CONF, Comes, Knows, install
from xce.domain.engine.messages import Caller, Role
from xce.domain.errors import XceError
from xce.domain.formats.session_result import Demand, HostDemand, JobHosts, SessionResult

POLL_S: Final = 30
_UP_WITHIN_S: Final = 120.0
_CLK: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Measured:
    """One line of the result."""

    what: str
    measured: float
    wanted: float
    unit: str

    @property
    def line(self) -> str:
        """The line for people."""
        verdict = "ok" if self.measured <= self.wanted else "MISSED"
        return f"{self.what:<52} {self.measured:>8.2f} {self.unit:<8} wanted {self.wanted:g}  {verdict}"


class Place:
    """A folder with a controller, a daemon, and their configurations."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port: int = one.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        token = new_token()
        (folder / "tokens.txt").write_text(token_line(Caller(Role.ADMIN, "bench"), token) + "\n")
        (folder / "token").write_text(token)
        (folder / "controller.yaml").write_text(
            f"log: events.db\ntokens: tokens.txt\nlisten: {{port: {port}}}\nrequest_log: false\n"
        )
        self.client = Client(self.address, token=token, timeout_s=60.0)

    def configure(self, providers: list[str], poll_s: int = POLL_S) -> None:
        """Write the daemon's configuration."""
        scripts = "\n".join(f"  - {{name: {one}, folder: {one}}}" for one in providers)
        (self.folder / "provisioner.yaml").write_text(
            f'name: bench\ncontroller: {{addresses: ["{self.address}"], token_file: token}}\n'
            f"scripts:\n{scripts}\n"
            "policy: {max_in_flight_hosts: 20000, max_per_request: 10000, join_limit: 1d}\n"
            f"rhythm: {{poll: {poll_s}s}}\n"
        )

    @contextmanager
    def running(self, command: str) -> Generator[subprocess.Popen[bytes]]:
        """Run a daemon until the block ends."""
        log = (self.folder / f"{command}.log").open("wb")
        with log:
            process = subprocess.Popen(
                [
                    sys.executable, "-m", "xce.adapters.cli.main", command,
                    "--config", str(self.folder / f"{command}.yaml"),
                ],
                stderr=log,
            )  # fmt: skip
            try:
                if command == "controller":
                    self.until(self._serves, process)
                yield process
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(60)

    def _serves(self) -> bool:
        try:
            self.client.status()
        except XceError:
            return False
        return True

    def until(self, true: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
        """Wait for something."""
        deadline = time.monotonic() + _UP_WITHIN_S * 5
        while not true():
            assert process.poll() is None, f"it ended: see {self.folder}"
            assert time.monotonic() < deadline, f"it takes too long: see {self.folder}"
            time.sleep(0.2)

    def answers(self, provider: str, call: str) -> list[float]:
        """Return when a provider answered a kind of call, by the daemon's log."""
        found: list[float] = []
        for line in (self.folder / "provisioner.log").read_text().splitlines():
            entry: dict[str, Any] = json.loads(line)
            if entry.get("provider") == provider and entry.get("call") == call:
                stamp = entry["timestamp"].replace("Z", "+00:00")
                found.append(_seconds(stamp))
        return found


def _seconds(stamp: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(stamp).timestamp()


def cpu_s(pid: int) -> float:
    """Return the CPU seconds that a process has used itself."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _CLK


def peak_mib(pid: int) -> float:
    """Return the most memory that a process has held."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def slow(folder: Path, machines: int, call_s: float, seconds: float) -> list[Measured]:
    """Measure a slow, large provider beside a quick one that always has something to be polled."""
    place = Place(folder)
    offer = {**SIMULATED_CONF["templates"][0], "maxNumber": 2 * machines}
    faults = [{"fault": "slow", "seconds": call_s}]
    big = SIMULATED_CONF | {"resources": [], "templates": [offer], "faults": faults}
    stuck = SIMULATED_CONF | {
        "resources": [],
        "templates": [{**offer, "templateId": "quick4"}],
        "faults": [{"fault": "stuck", "script": "requestMachines"}],
    }
    install(Comes.SIMULATED, folder / "big", knows=Knows.TAGS, conf=big)
    install(Comes.SIMULATED, folder / "quick", knows=Knows.TAGS, conf=stuck)
    poll_s = 5
    place.configure(["big", "quick"], poll_s)
    with place.running("controller") as controller, place.running("provisioner") as daemon:
        place.until(lambda: len(list(place.client.providers())) == 2, controller)
        jobs = (JobHosts(job="1", order=1, hosts=machines),)
        few = (JobHosts(job="2", order=2, hosts=1),)
        demand = Demand(
            hosts=(
                HostDemand(template="std4", count=machines, jobs=jobs),
                HostDemand(template="quick4", count=1, jobs=few),
            ),
            order=(("std4", machines), ("quick4", 1)),
        )
        place.client.publish_session(
            SessionResult(position=place.client.status().position, demand=demand)
        )
        place.until(lambda: len(list(place.client.instances())) >= machines, daemon)
        before, from_s = cpu_s(daemon.pid), time.time()
        time.sleep(seconds)
        share = 100 * (cpu_s(daemon.pid) - before) / seconds
        polls = [at for at in place.answers("quick", "StatusCall") if at >= from_s - 2 * poll_s]
        memory = peak_mib(daemon.pid)
    gaps = [later - one for one, later in itertools.pairwise(polls)]
    late = max(gaps, default=float("inf")) / poll_s - 1
    return [
        Measured(f"quick provider's poll late beside {call_s:g} s calls", late, 1.0, "periods"),
        Measured(f"memory at {machines} machines", memory, 200.0, "MiB"),
        Measured(f"CPU at {machines} machines, polled every {poll_s} s", share, 100.0, "% core"),
    ]


def idle(folder: Path, providers: int, seconds: float) -> list[Measured]:
    """Measure providers that have nothing to do."""
    place = Place(folder)
    names = [f"p{number}" for number in range(providers)]
    for name in names:
        install(Comes.SIMULATED, folder / name, knows=Knows.NEITHER)
    place.configure(names)
    with place.running("controller") as controller, place.running("provisioner") as daemon:
        place.until(lambda: len(list(place.client.providers())) == providers, controller)
        time.sleep(5)
        before = cpu_s(daemon.pid)
        time.sleep(seconds)
        share = 100 * (cpu_s(daemon.pid) - before) / seconds
        memory = peak_mib(daemon.pid)
    return [
        Measured(f"CPU of the daemon with {providers} idle providers", share, 5.0, "% core"),
        Measured(f"memory with {providers} idle providers", memory, 200.0, "MiB"),
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--machines", type=int, default=5000)
    parser.add_argument("--call-s", type=float, default=8.0)
    parser.add_argument("--idle", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        measured = [
            *slow(Path(one), options.machines, options.call_s, options.seconds),
            *idle(Path(other), options.idle, options.seconds),
        ]
    for entry in measured:
        print(json.dumps(asdict(entry)) if options.json else entry.line)


if __name__ == "__main__":
    main()
