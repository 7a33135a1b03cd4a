"""From a recording back to the jobs that were in it.

What a job asked for is known from the sessions that saw it wait; when it started and ended, to the session: a job ends in the first
session that does not see it run any more. Jobs that ran already, or had not ended, when the recording began or ended have no run time.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from xce.domain.errors import InputError
from xce.domain.formats.snapshot import PendingJob, Snapshot
from xce.replay.recording import RecordedSession, RecordingReader
from xce.replay.workloads.workload import Ledger, Shape, Workload, WorkloadJob

_SECOND: Final = timedelta(seconds=1)


@dataclass(slots=True)
class _Seen:
    """What sessions saw of one job."""

    pending: PendingJob
    first: datetime
    started: datetime | None = None
    ended: datetime | None = None


def from_recording(lines: Iterable[str], source: str) -> Workload:
    """Return the workload of a recording.

    Raises:
        InputError: it is none, or no session in it saw a job wait.
    """
    jobs: dict[str, _Seen] = {}
    ran_before: dict[str, None] = {}
    running: set[str] = set()
    for entry in RecordingReader(source).entries(lines):
        if isinstance(entry, RecordedSession):
            snapshot = entry.snapshot
            now_running = {job.id for job in snapshot.running}
            for job in snapshot.running:
                if job.id not in jobs:
                    ran_before.setdefault(job.id)
            _ends(jobs, running - now_running, snapshot.now)
            _waits(jobs, snapshot)
            starts = {str(one["job"]) for one in entry.result["allocations"]}
            for name in starts:
                if name in jobs:
                    jobs[name].started = snapshot.now
                    jobs[name].ended = None
            running = now_running | starts
    if not jobs:
        raise InputError.of(source, "has no session in which a job waited")
    return _workload(jobs, ran_before, source)


def _ends(jobs: dict[str, _Seen], gone: Iterable[str], now: datetime) -> None:
    for name in gone:
        if name in jobs:
            jobs[name].ended = now


def _waits(jobs: dict[str, _Seen], snapshot: Snapshot) -> None:
    for job in snapshot.pending:
        known = jobs.get(job.id)
        if known is None:
            jobs[job.id] = _Seen(job, snapshot.now)
        else:
            known.pending = job  # what it asks for was changed


def _workload(jobs: dict[str, _Seen], ran_before: Iterable[str], source: str) -> Workload:
    ledger = Ledger()
    for name in ran_before:
        ledger.leave_out(name, "ran already when the recording began")
    start = min(seen.pending.submitted or seen.first for seen in jobs.values())
    start -= timedelta(microseconds=start.microsecond)
    found: list[WorkloadJob] = []
    for name, seen in jobs.items():
        pending = seen.pending
        if seen.started is None or seen.ended is None:
            ledger.leave_out(name, "had not ended when the recording did")
            continue
        if pending.tasks.max not in (None, pending.tasks.min):
            ledger.note(name, ["could take more tasks: taken for its fewest"])
        found.append(
            WorkloadJob(
                id=name,
                submit=((pending.submitted or seen.first) - start) // _SECOND,
                run_time=(seen.ended - seen.started) // _SECOND,
                shape=Shape(pending.tasks.min, pending.resreq, pending.exclusive),
                user=pending.user,
                project=pending.project,
                queue=pending.queue,
                run_limit=pending.run_limit,
                priority=pending.priority,
                held=pending.held,
                waits_for=pending.waits_for,
                array=pending.array,
            )
        )
    found.sort(key=lambda job: job.submit)
    left_out = ledger.left_out()
    return Workload(
        source=source.rsplit("/", 1)[-1],
        start=start,
        jobs=tuple(found),
        records=len(found) + sum(len(group.jobs) for group in left_out),
        left_out=left_out,
        notes=ledger.notes(),
    )
