"""What a session costs that goes on from the one before: ``python -m benchmarks.deltas [--jobs N] [--hosts N] [--json]``.

A full cluster with a queue of few shapes behind it, kept by a ``Scheduler``. Each step changes a little, as a cluster does: nothing, a job comes,
a job ends and its place is taken. CPU seconds of one step, of a fresh session on the same snapshot, and of reading nothing but what is written for
each waiting job; with twice the jobs or hosts as well, for the growth.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from xce.domain.formats.delta import Delta, difference
from xce.domain.formats.snapshot import Host, HostUse, PendingJob, RunningJob, Snapshot, Tasks
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
    ends_s: float


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


def best(step: Callable[[int], tuple[Scheduler, Delta]]) -> float:
    """Return the CPU seconds of the fastest of several steps: the delta and the session."""
    times: list[float] = []
    for number in range(STEPS):
        scheduler, delta = step(number)
        before = time.process_time()
        scheduler.advance(delta)
        scheduler.run()
        times.append(time.process_time() - before)
    return min(times)


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

    return Measured(
        hosts,
        waiting,
        round(min(fresh), 6),
        round(best(nothing), 6),
        round(best(comes), 6),
        round(best(ends), 6),
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
    if given.json:
        print(json.dumps([asdict(line) for line in lines], indent=1))


if __name__ == "__main__":
    main()
