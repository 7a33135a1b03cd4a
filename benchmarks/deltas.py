"""What a session costs that goes on from the one before: ``python -m benchmarks.deltas [--jobs N] [--hosts N] [--json]``.

A full cluster with a queue of few shapes behind it, kept by a ``Scheduler``. Each step changes a little, as a cluster does: nothing, a job comes,
a job ends and its place is taken. CPU seconds of one step and of a fresh session on the same snapshot; of a step also without the writing of the
result, which goes with the jobs that wait. Once more with ten times the jobs, and with ten times the hosts.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from benchmarks.demand import Stopwatch

from xce.domain.formats.delta import Delta, difference
from xce.domain.formats.snapshot import Host, HostUse, PendingJob, RunningJob, Snapshot, Tasks
from xce.domain.scheduling import kept_result
from xce.domain.scheduling.kept import Scheduler
from xce.domain.scheduling.session import run_session

NOW: Final = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
SHAPES: Final = ("", "rusage[mem=2GiB]", "rusage[mem=8GiB]", "select[fast] rusage[slots=2]")
STEPS: Final = 20


@dataclass(frozen=True)
class Measured:
    """CPU seconds of one step, the best of several."""

    hosts: int
    waiting: int
    fresh_s: float
    nothing_s: float
    comes_s: float
    comes_core_s: float
    ends_s: float
    ends_core_s: float


class Best(NamedTuple):
    """CPU seconds of the fastest of several steps: delta and session, and the same without writing the result."""

    whole_s: float
    core_s: float


def cluster(hosts: int, waiting: int) -> Snapshot:
    """Return a cluster whose hosts are full, with jobs of a few shapes waiting."""
    return Snapshot(
        format="xce.snapshot/1",
        now=NOW,
        hosts=tuple(
            Host(name=f"h{n}", total={"slots": 4, "mem": 16384}, attributes={"fast": n % 2 == 0})
            for n in range(hosts)
        ),
        running=tuple(
            RunningJob(id=f"r{n}", hosts=(HostUse(name=f"h{n}", uses={"slots": 4, "mem": 16384}),))
            for n in range(hosts)
        ),
        pending=tuple(waiting_job(n) for n in range(waiting)),
    )


def waiting_job(number: int) -> PendingJob:
    """Return a job that waits; jobs of four shapes take turns."""
    return PendingJob(
        id=f"j{number}",
        submitted=NOW - timedelta(hours=1) + timedelta(milliseconds=number),
        resreq=SHAPES[number % len(SHAPES)],
        tasks=Tasks(min=1),
    )


def best(step: Callable[[int], tuple[Scheduler, Delta]]) -> Best:
    """Measure several steps."""
    whole: list[float] = []
    core: list[float] = []
    for number in range(STEPS):
        scheduler, delta = step(number)
        with Stopwatch(
            (kept_result, "allocations_of"),
            (kept_result, "say"),
            (kept_result, "tell"),
            (kept_result, "pending_of"),
            (kept_result, "whys_of"),
        ) as writing:
            before = time.process_time()
            scheduler.advance(delta)
            scheduler.run()
            whole.append(time.process_time() - before)
        core.append(whole[-1] - writing.seconds)
    return Best(min(whole), min(core))


def measure(hosts: int, waiting: int) -> Measured:
    """Measure one size."""
    snapshot = cluster(hosts, waiting)
    run_session(snapshot)
    fresh: list[float] = []
    for _ in range(3):
        before = time.process_time()
        run_session(snapshot)
        fresh.append(time.process_time() - before)
    scheduler = Scheduler(snapshot)
    scheduler.run()

    def nothing(number: int) -> tuple[Scheduler, Delta]:
        seen = scheduler.snapshot
        later = seen.model_copy(update={"now": seen.now + timedelta(seconds=1)})
        return scheduler, difference(seen, later)

    def comes(number: int) -> tuple[Scheduler, Delta]:
        seen = scheduler.snapshot
        job = waiting_job(waiting + number)
        return scheduler, difference(
            seen, seen.model_copy(update={"pending": (*seen.pending, job)})
        )

    def ends(number: int) -> tuple[Scheduler, Delta]:
        seen = scheduler.snapshot
        left = tuple(job for job in seen.running if job.id != f"r{number}")
        return scheduler, difference(seen, seen.model_copy(update={"running": left}))

    come, end = best(comes), best(ends)
    return Measured(
        hosts,
        waiting,
        round(min(fresh), 6),
        round(best(nothing).whole_s, 6),
        round(come.whole_s, 6),
        round(come.core_s, 6),
        round(end.whole_s, 6),
        round(end.core_s, 6),
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2_000)
    parser.add_argument("--hosts", type=int, default=1_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    sizes = (
        (given.hosts, given.jobs),
        (given.hosts, 10 * given.jobs),
        (10 * given.hosts, given.jobs),
    )
    lines: list[Measured] = []
    for hosts, waiting in sizes:
        lines.append(measure(hosts, waiting))
        if not given.json:
            print(json.dumps(asdict(lines[-1])))
    growth = {
        "comes": round(lines[1].comes_core_s / lines[0].comes_core_s, 2),
        "ends": round(lines[1].ends_core_s / lines[0].ends_core_s, 2),
    }
    if given.json:
        print(json.dumps({"lines": [asdict(line) for line in lines], "growth": growth}, indent=1))
    else:
        print(json.dumps({"core of a session, ten times the jobs": growth}))


if __name__ == "__main__":
    main()
