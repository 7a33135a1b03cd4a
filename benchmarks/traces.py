"""Whole workload traces through the virtual-time driver: ``python -m benchmarks.traces [NAME ...] [--jobs N] [--on] [--twice] [--json]``.

MetaCentrum (17,900 jobs with memory, node properties and a licence) and KTH (28,489 jobs), read from ``traces/`` beside the project, under the
configurations of ``examples/``; KTH once more without a catalog and with long queues, first come, first served (``kth-fcfs``); LCG (188,041 jobs of one
task). Says how many jobs a CPU second simulates, and checks that the numbers add up: every job ended or is named, cost is billed time x price, every
token is back or held for a stated reason. With ``--on`` sessions are traced and the log is a file on disk. With ``--twice`` each runs again, and must
give the same bytes and log.
"""

import argparse
import json
import os
import resource
import sys
import time
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from xce.adapters.cli.simulate import Run, new_log, simulate
from xce.adapters.settings import load_config
from xce.domain.formats.simulation import SimulationReport
from xce.replay.workloads.from_swf import load_swf

ROOT: Final = Path(__file__).parents[1]
SHARED: Final = Path(os.environ.get("XCE_SHARED", ROOT.parent / "shared"))
TRACES: Final = {
    "metacentrum": ("METACENTRUM-wagap-2013-q1.swf.gz", "metacentrum.yaml"),
    "kth": ("KTH-SP2-1996-2.swf.gz", "kth.yaml"),
    "kth-fcfs": ("KTH-SP2-1996-2.swf.gz", "kth-fcfs.yaml"),
    "lcg": ("LCG-2005-1.swf.gz", "../benchmarks/lcg.yaml"),
}


@dataclass(frozen=True)
class Measured:
    """One trace. CPU seconds are of reading, simulating and summing up together."""

    trace: str
    jobs: int
    ended: int
    named: int
    sessions: int
    events: int
    cpu_s: float
    jobs_per_cpu_s: int
    peak_mib: int
    log_digest: str
    same_twice: bool | None


def run(name: str, jobs: int | None, log_file: Path | None = None) -> tuple[Run, float]:
    """Run one trace; return it with its CPU seconds. With a file for the log sessions are traced too."""
    file, example = TRACES[name]
    config = load_config(ROOT / "examples" / example)
    before = time.process_time()
    workload = load_swf(
        SHARED / "traces" / file,
        config.workload,
        seed=config.driver.seed,
        time_zero=config.driver.time_zero,
        jobs_max=jobs,
    )
    with new_log(log_file) as log:
        done = simulate(config, workload, log, quiet=True, trace=log_file is not None)
    return done, time.process_time() - before


def require_sums(report: SimulationReport) -> int:
    """Return how many jobs are named as not run; stop if anything does not add up."""
    jobs = report.jobs
    left_out = sum(len(group.jobs) for group in jobs.left_out)
    not_ended = sum(len(group.jobs) for group in jobs.not_ended)
    assert jobs.read == jobs.submitted + left_out, "a job is neither submitted nor named"
    assert jobs.submitted == jobs.ended + not_ended, "a job has neither ended nor is named"
    for use in report.templates:
        assert use.price_per_hour is not None
        assert use.cost is not None
        exact = Fraction(use.price_per_hour) * use.billed_seconds / 3600
        assert abs(Fraction(use.cost) - exact) <= Fraction(1, 10**6), f"{use.template}: cost"
    for shared in report.shared:
        assert shared.borrowed == shared.returned + shared.lost + shared.held_at_end, shared.name
        assert bool(shared.why_held) == bool(shared.held_at_end), shared.name
    return left_out + not_ended


def measure(name: str, jobs: int | None, *, twice: bool, on: bool) -> Measured:
    """Run one trace once or twice."""
    with TemporaryDirectory() as folder:
        done, cpu_s = run(name, jobs, Path(folder, "log.sqlite") if on else None)
    report = done.report
    same = None
    if twice:
        again, _ = run(name, jobs)
        same = again.report.to_json() == report.to_json()
    return Measured(
        name, report.jobs.read, report.jobs.ended, require_sums(report), report.sessions, report.log.position,
        round(cpu_s, 1), round(report.jobs.read / cpu_s),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, report.log.digest, same,
    )  # fmt: skip


def main() -> None:
    """Measure and print; exit 1 if a second run differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, help="only the first N records of each")
    parser.add_argument("names", nargs="*", choices=[*TRACES, []], metavar="NAME")
    parser.add_argument("--on", action="store_true", help="sessions traced, log on disk")
    parser.add_argument("--twice", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if not (SHARED / "traces").is_dir():
        print(f"no traces at {SHARED / 'traces'}: nothing measured")
        return
    lines: list[Measured] = []
    for name in given.names or TRACES:
        line = measure(name, given.jobs, twice=given.twice, on=given.on)
        lines.append(line)
        if not given.json:
            print(json.dumps(asdict(line)))
    if given.json:
        print(json.dumps([asdict(line) for line in lines], indent=1))
    if any(line.same_twice is False for line in lines):
        sys.exit("a second run gave other bytes")


if __name__ == "__main__":
    main()
