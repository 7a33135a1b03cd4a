"""How fast demand is computed, and how good it is: ``python -m benchmarks.demand [--json] [--quick]``.

The inputs are those that peers were measured on (``bench/workload.py`` beside the project, or in ``$XCE_SHARED``), as snapshots: every job waits and
no host is there. CPU seconds are of ``run_session`` alone, after imports and parsing, the best of a few runs; the input is frozen out of garbage
collection. Of these, what making the models of the result takes is printed apart, and growth is of the rest. The price is of the demanded hosts per
hour, over the fractional lower bound; nothing that fits may be left unplaced. Ray's figures are from ``bench/peers.jsonl``, measured on another day;
``benchmarks.ray_side`` runs its scheduler side by side with ours.
"""

import argparse
import gc
import json
import os
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from math import log
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Self

from xce.domain.demand import finalise
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import (
    Catalog,
    Host,
    HostUse,
    InFlight,
    InFlightHost,
    PendingJob,
    RunningJob,
    Settings,
    Snapshot,
    Tasks,
    Template,
)
from xce.domain.scheduling import session

NOW: Final = datetime(2026, 3, 1, 10, tzinfo=UTC)
GIB: Final = 1024
SHARED: Final = Path(os.environ.get("XCE_SHARED", Path(__file__).parents[2] / "shared"))

Job = dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """One line.

    Attributes:
        writing_s: the part of the CPU seconds in which the models of the result are made.
        ratio: price over the bound.
        ray_cpu_s, ray_ratio: Ray's on the same input, where it was measured.
    """

    what: str
    jobs: int
    cpu_s: float
    writing_s: float
    hosts: int
    left_out: int
    tight: str
    price: float | None = None
    ratio: float | None = None
    ray_cpu_s: float | None = None
    ray_ratio: float | None = None


def workload() -> ModuleType:
    """Return the module that makes the inputs."""
    spec = spec_from_file_location("xce_bench_workload", SHARED / "bench" / "workload.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def template(entry: Job) -> Template:
    """Return a template of the workload in our words."""
    provides = {"slots": int(entry["cpu"]), "mem": round(entry["mem"] * GIB)}
    if entry["gpu"]:
        provides["gpu"] = int(entry["gpu"])
    return Template(
        id=entry["name"],
        provides=provides,
        allowed=entry["max"],
        price_per_hour=Decimal(str(entry["price"])),
    )


def pending(entry: Job, number: int) -> PendingJob:
    """Return a job of the workload in our words; a gang has one task on each of its hosts."""
    mem = -(-round(entry["mem"] * 100 * GIB) // 100)
    parts = [f"slots={entry['cpu']}", f"mem={mem}"]
    if entry["gpu"]:
        parts.append(f"gpu={entry['gpu']}")
    span = " span[hosts=-1]" if entry["hosts"] > 1 else ""
    return PendingJob(
        id=entry["id"],
        submitted=NOW - timedelta(hours=1) + timedelta(milliseconds=number),
        tasks=Tasks(min=entry["hosts"]),
        resreq=f"rusage[{','.join(parts)}]{span}",
    )


def snapshot(templates: list[Job], jobs: list[Job], **more: Any) -> Snapshot:
    """Return a snapshot in which all jobs wait."""
    in_flight = more.pop("in_flight", InFlight())
    return Snapshot(
        format="xce.snapshot/1",
        now=NOW,
        pending=tuple(pending(job, number) for number, job in enumerate(jobs)),
        catalog=Catalog(
            templates=tuple(template(entry) for entry in templates), in_flight=in_flight
        ),
        settings=Settings(catalog_pass_cap=1_000_000),
        **more,
    )


class Stopwatch:
    """Adds up the CPU seconds of functions of modules, which it stands in for while it is open."""

    def __init__(self, *functions: tuple[ModuleType, str]) -> None:
        self._functions = functions
        self._kept: list[Callable[..., Any]] = []
        self.seconds = 0.0

    def __enter__(self) -> Self:
        """Take the places of the functions."""
        for module, name in self._functions:
            self._kept.append(getattr(module, name))
            setattr(module, name, self._timed(self._kept[-1]))
        return self

    def __exit__(self, *_: object) -> None:
        """Put the functions back."""
        for (module, name), function in zip(self._functions, self._kept, strict=True):
            setattr(module, name, function)

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            before = time.process_time()
            try:
                return function(*given)
            finally:
                self.seconds += time.process_time() - before

        return run


def timed(given: Snapshot, rounds: int) -> tuple[float, float, SessionResult]:
    """Return the best CPU seconds of a session, those in which its result is made, and the result."""
    result = session.run_session(given)
    gc.collect()
    gc.freeze()
    best = (float("inf"), 0.0)
    for _ in range(rounds):
        with Stopwatch(
            (session, "allocations_of"), (session, "_pending"), (finalise, "Writer")
        ) as writing:
            before = time.process_time()
            result = session.run_session(given)
            best = min(best, (time.process_time() - before, writing.seconds))
    gc.unfreeze()
    return (*best, result)


def measure(what: str, given: Snapshot, jobs: int, rounds: int, bound: float | None) -> Measured:
    """Run one input."""
    cpu_s, writing_s, result = timed(given, rounds)
    prices = {entry.id: entry.price_per_hour or Decimal(0) for entry in given.catalog.templates}
    price = float(sum(prices[entry.template] * entry.count for entry in result.demand.hosts))
    demand = result.demand
    left_out = len(demand.not_counted) + len(demand.impossible) + len(demand.not_examined)
    return Measured(
        what, jobs, round(cpu_s, 3), round(writing_s, 3), sum(entry.count for entry in demand.hosts), left_out, demand.tight.value,
        round(price, 1), None if bound is None else round(price / bound, 4),
    )  # fmt: skip


def ray_figures() -> dict[tuple[int, str, float], Job]:
    """Return Ray's figures by size, shapes and share of gangs, with ten templates."""
    lines = (SHARED / "bench" / "peers.jsonl").read_text(encoding="utf-8").splitlines()
    rows: list[Job] = [json.loads(line) for line in lines if line.strip()]
    return {
        (row["n"], row["shapes"], row["gangs"]): row
        for row in rows
        if row["peer"] == "ray-v2" and row["m"] == 10
    }


def against_peers(sizes: tuple[int, ...], rounds: int) -> Iterator[Measured]:
    """Run the inputs of the peers."""
    make, ray = workload(), ray_figures()
    for shapes in ("few", "many"):
        for gangs in (0.0, 0.05):
            for size in sizes:
                templates, jobs = make.make(size, shapes, gangs)
                line = measure(
                    f"{shapes}, {gangs:.0%} gangs", snapshot(templates, jobs), size, rounds,
                    make.lower_bound(templates, jobs),
                )  # fmt: skip
                if (peer := ray.get((size, shapes, gangs))) is not None:
                    line = Measured(
                        **{
                            **asdict(line),
                            "ray_cpu_s": peer["cpu_s"],
                            "ray_ratio": round(peer["price"] / peer["price_bound"], 4),
                        }
                    )
                yield line


def many_hosts(jobs: int, hosts: int, rounds: int) -> Measured:
    """Run jobs of few shapes against real hosts that are half full."""
    templates, entries = workload().make(jobs, "few")
    half = {"slots": 8, "mem": 32 * GIB}
    real = tuple(Host(name=f"h{i}", total={"slots": 16, "mem": 64 * GIB}) for i in range(hosts))
    running = tuple(
        RunningJob(id=f"r{i}", hosts=(HostUse(name=f"h{i}", tasks=8, uses=half),))
        for i in range(hosts)
    )
    given = snapshot(templates, entries, hosts=real, running=running)
    return measure(f"few, {hosts} half-full hosts", given, jobs, rounds, None)


def with_in_flight(jobs: int, hosts: int, rounds: int) -> Measured:
    """Run jobs with gangs while hosts are on their way."""
    templates, entries = workload().make(jobs, "few", 0.05)
    names = [entry["name"] for entry in templates]
    coming = tuple(InFlightHost(id=f"i-{i}", template=names[i % len(names)]) for i in range(hosts))
    given = snapshot(templates, entries, in_flight=InFlight(hosts=coming))
    return measure(f"few, 5% gangs, {hosts} in flight", given, jobs, rounds, None)


def growth(lines: list[Measured]) -> dict[str, float]:
    """Return the largest exponent of CPU over jobs from one size to the next, by input, the result apart."""
    found: dict[str, float] = {}
    for before, after in pairwise(lines):
        if before.what == after.what and before.cpu_s > 0.005:
            core = [line.cpu_s - line.writing_s for line in (before, after)]
            exponent = log(core[1] / core[0]) / log(after.jobs / before.jobs)
            found[after.what] = round(max(found.get(after.what, 0.0), exponent), 2)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="small inputs only")
    given = parser.parse_args()
    if not (SHARED / "bench").is_dir():
        print(f"no inputs at {SHARED / 'bench'}: nothing measured")
        return
    sizes = (1000, 2000) if given.quick else (1000, 2000, 4000, 10000)
    lines: list[Measured] = []
    for line in against_peers(sizes, 3):
        lines.append(line)
        if not given.json:
            show(line)
    extra = [with_in_flight(1000, 300, 2)]
    if not given.quick:
        extra.append(many_hosts(100_000, 10_000, 2))
    for line in extra:
        lines.append(line)
        if not given.json:
            show(line)
    ratios = {
        gangs: [
            line.ratio
            for line in lines
            if line.ratio is not None and (" 0%" in line.what) is not gangs
        ]
        for gangs in (False, True)
    }
    summary = {
        "mean_ratio": round(sum(ratios[False]) / len(ratios[False]), 4),
        "mean_ratio_gangs": round(sum(ratios[True]) / len(ratios[True]), 4),
        "growth": growth(lines),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    if given.json:
        print(json.dumps({"lines": [asdict(line) for line in lines], **summary}, indent=1))
    else:
        print(json.dumps(summary))


def show(line: Measured) -> None:
    """Print one line for people."""
    ratio = "-" if line.ratio is None else f"{line.ratio:.4f}"
    ray = "" if line.ray_cpu_s is None else f"   Ray {line.ray_cpu_s:8.2f} s {line.ray_ratio:.4f}"
    print(
        f"{line.what:32} {line.jobs:7} jobs {line.cpu_s:7.3f} s ({line.writing_s:.3f} result) {line.hosts:5} hosts"
        f" {line.left_out:4} left out  {ratio:>7} x bound  {line.tight}{ray}"
    )


if __name__ == "__main__":
    main()
