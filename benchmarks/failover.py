"""How long a failover takes: ``python -m benchmarks.failover [--events N ...] [--times N] [--json] [--without-postgresql]``.

Two real controllers over one log, each a process of its own: one leads, the other follows. The one that leads is killed (kill -9), or stands
still (kill -STOP) and is taken for dead after ``detection``, a second here; the time is from then until the other one answers as the primary. The
ratio is to a start: of a controller over the same log with nobody standing by, until it answers, imports and all. On SQLite, and on PostgreSQL where
its programs are installed; over a short log and a long one. "cpu" is of the standby, from then until it answers. The median of several, and the longest.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import httpx
from benchmarks.histories import write_history

from tests.crash.nursery import wait_until_it_serves
from tests.crash.test_killed_controller import free_port, store_of, write_config
from tests.postgresql import PASSWORD, programs, server
from tests.service.running import write_tokens
from xce.adapters.store.open import open_log

DETECTION_S: Final = 1.0
_UP_WITHIN_S: Final = 300.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Measured:
    """Failovers over one log, in seconds.

    Attributes:
        what: befell the one that led.
        events: that the log has.
        cpu_s: of the standby.
        started_s: a controller that is started when there is none, until it answers.
    """

    store: str
    what: str
    events: int
    times: int
    median_s: float
    longest_s: float
    cpu_s: float
    started_s: float

    @property
    def ratio(self) -> float:
        """Of a failover to a start."""
        return self.median_s / self.started_s


class Running:
    """A controller in a process of its own."""

    def __init__(self, config: Path, address: str) -> None:
        self.address = address
        with config.with_suffix(".log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "xce.adapters.cli.main",
                    "controller",
                    "--config",
                    str(config),
                ],
                stdout=log,
                stderr=log,
            )

    def stands_by(self) -> None:
        """Wait until it answers that it does."""
        deadline = time.monotonic() + _UP_WITHIN_S
        while time.monotonic() < deadline:
            try:
                if httpx.get(f"{self.address}/readyz", timeout=5.0).status_code == 503:
                    return
            except httpx.TransportError:
                pass  # it is not up yet
            time.sleep(0.05)
        raise AssertionError(f"{self.address} does not answer")

    def cpu_s(self) -> float:
        """Return the CPU time that it has used."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def befall(self, how: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(how)

    def end(self, how: signal.Signals) -> None:
        """End it, if it lives, and wait until it has."""
        self._process.send_signal(how)
        self._process.wait()


class Pair:
    """Two controllers over a log, which lead in turns."""

    def __init__(self, folder: Path, place: str) -> None:
        write_tokens(folder)
        self._ports = [free_port(), free_port()]
        self._configs = [
            write_config(
                folder, f"controller-{port}", place, port, f"detection: {DETECTION_S:g}s\n"
            )
            for port in self._ports
        ]
        self._number = 0

    def start(self) -> Running:
        """Start the one whose turn it is."""
        self._number += 1
        here = self._number % 2
        return Running(self._configs[here], f"http://127.0.0.1:{self._ports[here]}")


def measure(pair: Pair, store: str, events: int, times: int, how: signal.Signals) -> Measured:
    """Let one controller after the other die."""
    took: list[float] = []
    cpu: list[float] = []
    started: list[float] = []
    for _ in range(times):
        begun = time.monotonic()
        primary = pair.start()
        started.append(wait_until_it_serves(primary.address) - begun)
        standby = pair.start()
        standby.stands_by()
        used, begun = standby.cpu_s(), time.monotonic()
        primary.befall(how)
        took.append(wait_until_it_serves(standby.address) - begun)
        cpu.append(standby.cpu_s() - used)
        primary.end(signal.SIGKILL)
        standby.end(signal.SIGTERM)
    median = statistics.median
    what = "killed" if how is signal.SIGKILL else "frozen"
    return Measured(
        store, what, events, times, median(took), max(took), median(cpu), median(started)
    )


def measure_all(folder: Path, place: str, events: int, times: int) -> Iterator[Measured]:
    """Make a log, and measure over it whatever can befall the one that leads."""
    with open_log(place) as log:
        write_history(log, events)
        there = log.head().position
    pair = Pair(folder, place)
    for how in (signal.SIGKILL, signal.SIGSTOP):
        yield measure(pair, store_of(place), there, times, how)


@contextmanager
def places(folder: Path, *, postgresql: bool) -> Generator[list[str]]:
    """Yield a place for a log on each store."""
    on_sqlite = str(folder / "events.db")
    if not postgresql or programs() is None:
        yield [on_sqlite]
        return
    os.environ["PGPASSWORD"] = PASSWORD
    with contextmanager(server)() as running:
        yield [on_sqlite, running.address()]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--events", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--without-postgresql", action="store_true")
    options = parser.parse_args()
    results: list[Measured] = []
    for events in options.events:
        with (
            TemporaryDirectory() as name,
            places(Path(name), postgresql=not options.without_postgresql) as stores,
        ):
            for place in stores:
                results += measure_all(Path(name), place, events, options.times)
    if options.json:
        print(json.dumps([asdict(one) | {"ratio": one.ratio} for one in results]))
        return
    for one in results:
        print(
            f"{one.store:10} {one.events:>7,} events, {one.what}: {one.median_s:5.2f} s, at most {one.longest_s:5.2f};"
            f" cpu {one.cpu_s:4.2f} s; a start {one.started_s:5.2f} s, ratio {one.ratio:4.2f}"
        )


if __name__ == "__main__":
    main()
