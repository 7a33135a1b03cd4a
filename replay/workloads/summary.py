"""What a workload amounts to before anything is simulated, for people who want to know what they have."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

from pydantic import Field

from xce.domain.cluster.requirement import Compound, Per, Primary
from xce.domain.cluster.resreq import parse
from xce.domain.formats.base import Count, Format, Name, Time
from xce.replay.workloads.workload import Workload, WorkloadJob

_SECOND: Final = timedelta(seconds=1)
_HOURS: Final = 24


class QueueLoad(Format):
    """The jobs of one queue."""

    name: Name
    jobs: Count
    task_seconds: Count = Field(description="tasks times run time")


class SharedLoad(Format):
    """What jobs take once for the whole job, such as licences; as if nobody had to wait."""

    name: Name
    jobs: Count
    peak: Count = Field(description="most at once, if every job started when it was submitted")
    unit_seconds: Count


class WorkloadSummary(Format):
    """A workload in numbers. Peaks are those of a cluster on which nobody has to wait."""

    source: str
    first: Time | None = Field(description="submission; null: there are no jobs")
    last: Time | None
    records: Count
    jobs: Count
    left_out: dict[str, Count]
    notes: dict[str, Count]
    users: Count
    arrays: Count
    widest: Count = Field(description="most tasks of a job")
    peak_tasks: Count
    task_seconds: Count
    run_time_median: Count | None
    run_time_p95: Count | None
    run_time_max: Count | None
    by_hour: tuple[Count, ...] = Field(description="submissions by hour of the day, UTC")
    queues: tuple[QueueLoad, ...]
    shared: tuple[SharedLoad, ...]


def summary(workload: Workload) -> WorkloadSummary:
    """Return a workload in numbers."""
    jobs = workload.jobs
    times = sorted(job.run_time for job in jobs)
    hours = Counter((workload.start + job.submit * _SECOND).hour for job in jobs)
    queues: dict[str, list[WorkloadJob]] = {}
    for job in jobs:
        queues.setdefault(job.queue, []).append(job)
    return WorkloadSummary(
        source=workload.source,
        first=workload.start + jobs[0].submit * _SECOND if jobs else None,
        last=workload.start + jobs[-1].submit * _SECOND if jobs else None,
        records=workload.records,
        jobs=len(jobs),
        left_out={group.why: len(group.jobs) for group in workload.left_out},
        notes={note.what: note.jobs for note in workload.notes},
        users=len({job.user for job in jobs}),
        arrays=len({job.array.id for job in jobs if job.array is not None}),
        widest=max((job.shape.tasks for job in jobs), default=0),
        peak_tasks=_peak((job, job.shape.tasks) for job in jobs),
        task_seconds=sum(job.shape.tasks * job.run_time for job in jobs),
        run_time_median=times[(len(times) - 1) // 2] if times else None,
        run_time_p95=times[-(-95 * len(times) // 100) - 1] if times else None,
        run_time_max=times[-1] if times else None,
        by_hour=tuple(hours[hour] for hour in range(_HOURS)),
        queues=tuple(
            QueueLoad(
                name=name,
                jobs=len(group),
                task_seconds=sum(job.shape.tasks * job.run_time for job in group),
            )
            for name, group in sorted(queues.items())
        ),
        shared=tuple(_shared(jobs)),
    )


def _shared(jobs: Iterable[WorkloadJob]) -> Iterable[SharedLoad]:
    known: dict[str, Mapping[str, int]] = {}
    takers: dict[str, list[tuple[WorkloadJob, int]]] = {}
    for job in jobs:
        text = job.shape.resreq
        if text not in known:
            known[text] = _once(text)
        for name, amount in known[text].items():
            takers.setdefault(name, []).append((job, amount))
    for name, found in sorted(takers.items()):
        yield SharedLoad(
            name=name,
            jobs=len(found),
            peak=_peak(found),
            unit_seconds=sum(amount * job.run_time for job, amount in found),
        )


def _once(resreq: str) -> Mapping[str, int]:
    """Return what the first alternative takes once for the whole job."""
    first = parse(resreq).alternatives[0]
    parts: tuple[Primary, ...] = first.parts if isinstance(first, Compound) else (first,)
    taken: Counter[str] = Counter()
    for part in parts:
        for usage in part.rusage:
            if usage.per is Per.JOB:
                taken[usage.name] += int(usage.amount.value)
    return taken


def _peak(takers: Iterable[tuple[WorkloadJob, int]]) -> int:
    """Return the most that is taken at once, if every job starts when it is submitted."""
    changes: list[tuple[int, int]] = []
    for job, amount in takers:
        changes.append((job.submit, amount))
        changes.append((job.submit + job.run_time, -amount))
    now = most = 0
    for _, change in sorted(changes):  # of one second, what ends comes first
        now += change
        most = max(most, now)
    return most
