"""What a session costs that goes on from the one before: ``python -m benchmarks.deltas [--jobs N] [--hosts N] [--json]``.

A full cluster with a queue of few shapes behind it, kept by a ``Scheduler``. Each step changes a little, as a cluster does: nothing, a job comes,
a job ends and its place is taken. CPU seconds of one step and of a fresh session on the same snapshot; of a step also without the writing of the
result, which goes with the jobs that wait (``core``: what a driver that starts jobs waits for). Once more with ten times the jobs, and with ten times
the hosts.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final

from xce.domain.formats.delta import Changes, Delta
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
    comes_core_s: float
    ends_s: float
    ends_core_s: float


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


def delta(
    *,
    later: timedelta = timedelta(0),
    running: Changes[RunningJob] | None = None,
    pending: Changes[PendingJob] | None = None,
) -> Delta:
    """Return what is different, as who sees it happen says it."""
    return Delta(
        format="xce.delta/1",
        base_now=NOW,
        now=NOW + later,
        running=running or Changes[RunningJob](),
        pending=pending or Changes[PendingJob](),
    )


def comes(scheduler: Scheduler, number: int) -> Iterator[Delta]:
    """Yield one delta after the other: a job comes."""
    while True:
        yield delta(pending=Changes[PendingJob](put=(waiting_job(number),)))
        number += 1


def ends(scheduler: Scheduler, number: int) -> Iterator[Delta]:
    """Yield one delta after the other: a job ends, and those that the session before let start run."""
    for ended in range(STEPS * 4):
        started = scheduler.outcome().allocations
        put = tuple(
            RunningJob(
                id=each.job, hosts=tuple(HostUse(name=on.name, uses=on.uses) for on in each.hosts)
            )
            for each in started
        )
        yield delta(
            running=Changes[RunningJob](removed=(f"r{ended}",), put=put),
            pending=Changes[PendingJob](removed=tuple(each.job for each in started)),
        )


def fastest(scheduler: Scheduler, deltas: Iterator[Delta], *, written: bool) -> float:
    """Return the CPU seconds of the fastest of several steps: delta and session, with the writing of its result or without."""
    found: list[float] = []
    for each in islice(deltas, STEPS):
        before = time.process_time()
        scheduler.advance(each)
        outcome = scheduler.outcome()
        if written:
            _ = outcome.result
        found.append(time.process_time() - before)
    return min(found)


def measure(hosts: int, waiting: int) -> Measured:
    """Measure one size."""
    snapshot = cluster(hosts, waiting)
    run_session(snapshot)
    fresh: list[float] = []
    for _ in range(3):
        before = time.process_time()
        run_session(snapshot)
        fresh.append(time.process_time() - before)
    times: list[float] = [min(fresh)]
    scheduler = Scheduler(snapshot)
    scheduler.run()
    times.append(fastest(scheduler, iter([delta(later=timedelta(seconds=1))]), written=True))
    for steps in (comes, ends):
        scheduler = Scheduler(snapshot)
        scheduler.run()
        deltas = steps(scheduler, waiting)
        times += [fastest(scheduler, deltas, written=written) for written in (True, False)]
    return Measured(hosts, waiting, *[round(each, 6) for each in times])


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
