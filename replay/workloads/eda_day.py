"""A day of a small chip-design site, from a seed: the workload of the demo.

Parameters are assumptions, chosen to look like what is said of such sites: most jobs take one core and one token of the simulator's
licence; interactive work in office hours; regressions dropped as arrays in the evening; few large-memory synthesis runs; a
few parallel place-and-route jobs. Nothing here is measured.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from xce.domain.formats.simulated_provider import Delay
from xce.replay.draws import delay, draw
from xce.replay.workloads.workload import Shape, Workload, WorkloadJob

START: Final = datetime(2026, 3, 2, 7, tzinfo=UTC)
HOUR: Final = 3600
MINUTE: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Kind:
    """Jobs of one sort.

    Attributes:
        count: how many in the day.
        window: first and last hour after ``START`` of their submission.
        run_time: spread of their true run time.
        run_limit: what the user asks for.
    """

    name: str
    user: str
    queue: str
    count: int
    window: tuple[Decimal, Decimal]
    shape: Shape
    run_time: Delay
    run_limit: timedelta


def _spread(p50: int, p95: int) -> Delay:
    return Delay(p50=p50 * MINUTE, p95=p95 * MINUTE)


KINDS: Final = (
    Kind("sim", "ana", "normal", 120, (Decimal(1), Decimal(10)),
         Shape(1, "select[type==X86_64] rusage[mem=3GiB,lic_sim=1]"), _spread(12, 45), 2 * 60 * MINUTE),
    Kind("lint", "ben", "normal", 80, (Decimal(1), Decimal(9)),
         Shape(1, "select[type==X86_64] rusage[mem=1GiB]"), _spread(3, 9), 30 * MINUTE),
    Kind("regress", "nightly", "night", 260, (Decimal("10.5"), Decimal("10.6")),
         Shape(1, "select[type==X86_64] rusage[mem=2GiB,lic_sim=1]"), _spread(9, 30), 2 * 60 * MINUTE),
    Kind("synth", "eve", "normal", 14, (Decimal(2), Decimal(11)),
         Shape(1, "select[type==X86_64] rusage[slots=4,mem=48GiB,lic_syn=1]"), _spread(50, 120), 6 * 60 * MINUTE),
    Kind("pnr", "eve", "normal", 8, (Decimal(3), Decimal(10)),
         Shape(8, "select[type==X86_64] rusage[mem=4GiB,lic_pnr=2/job] span[ptile=4]"), _spread(40, 90), 6 * 60 * MINUTE),
)  # fmt: skip


def eda_day(seed: int) -> Workload:
    """Return the day; the same seed gives the same jobs."""
    jobs = sorted(
        (job for kind in KINDS for job in _jobs(kind, seed)), key=lambda job: (job.submit, job.id)
    )
    numbered = tuple(
        WorkloadJob(
            id=str(number),
            submit=job.submit,
            run_time=job.run_time,
            shape=job.shape,
            user=job.user,
            project="chip1",
            queue=job.queue,
            run_limit=job.run_limit,
        )
        for number, job in enumerate(jobs, start=1)
    )
    return Workload("eda-day", START, numbered, len(numbered))


def _jobs(kind: Kind, seed: int) -> Iterator[WorkloadJob]:
    first, last = kind.window
    for i in range(kind.count):
        name = f"{kind.name}-{i}"
        hours = first + (last - first) * Decimal(int(draw(seed, "submit", name) * 10**6)) / 10**6
        run_time = delay(kind.run_time, seed, "run time", name)
        yield WorkloadJob(
            id=name,
            submit=int(hours * HOUR),
            run_time=int(min(run_time, kind.run_limit).total_seconds()),
            shape=kind.shape,
            user=kind.user,
            queue=kind.queue,
            run_limit=kind.run_limit,
        )
