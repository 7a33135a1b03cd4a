"""Jobs with the time they really take, which only the driver of a simulation holds.

``WorkloadJob.pending`` is all that a session ever sees of a job; the true run time is no part of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from xce.domain.formats.snapshot import ArrayElement, PendingJob, Tasks


@dataclass(frozen=True, slots=True)
class Shape:
    """What a job needs; many jobs have the same."""

    tasks: int
    resreq: str = ""
    exclusive: bool = False


@dataclass(frozen=True, slots=True)
class WorkloadJob:
    """One job.

    Attributes:
        submit: seconds after the workload's start.
        run_time: seconds that it will run, 0 or more: the truth, for the driver alone.
        run_limit: what the user asked for, which the scheduler knows; None: nothing was asked.
        failures: seconds after which attempts fail, one after the other; the job is then queued again.
        given_up: the last of these failures is the end of the job; it does not run to its end.
    """

    id: str
    submit: int
    run_time: int
    shape: Shape
    user: str = "nobody"
    project: str = "default"
    queue: str = "normal"
    run_limit: timedelta | None = None
    priority: int = 0
    held: bool = False
    waits_for: tuple[str, ...] = ()
    array: ArrayElement | None = None
    failures: tuple[int, ...] = ()
    given_up: bool = False

    def attempt(self, number: int) -> tuple[int, bool]:
        """Return how many seconds an attempt (0: the first) runs, and whether it fails."""
        if number < len(self.failures):
            return min(self.failures[number], self.run_time), True
        return self.run_time, False

    def pending(self, start: datetime) -> PendingJob:
        """Return what the scheduler sees of the job, in a workload that starts at ``start``."""
        return PendingJob(
            id=self.id,
            user=self.user,
            project=self.project,
            queue=self.queue,
            submitted=start + timedelta(seconds=self.submit),
            tasks=Tasks(min=self.shape.tasks, max=None),
            resreq=self.shape.resreq,
            exclusive=self.shape.exclusive,
            run_limit=self.run_limit,
            priority=self.priority,
            held=self.held,
            waits_for=self.waits_for,
            array=self.array,
        )


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Jobs that a workload does not have, and why."""

    why: str
    jobs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """Something of a trace that could not be taken as it was, how many jobs it touches, and the first of them."""

    what: str
    jobs: int
    first: str


@dataclass(frozen=True, slots=True)
class Workload:
    """All jobs, by submit time and then in the order of the source.

    Attributes:
        source: where it comes from, for people.
        start: the time of second 0.
        records: jobs read; each is in ``jobs`` or in ``left_out``.
        notes: what was changed or not understood on the way, by text.
    """

    source: str
    start: datetime
    jobs: tuple[WorkloadJob, ...]
    records: int
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[Note, ...] = ()

    def head(self, count: int | None) -> "Workload":
        """Return the first so many jobs, all for None; what was left out of the source stays named."""
        if count is None or count >= len(self.jobs):
            return self
        records = self.records - len(self.jobs) + count
        return replace(self, jobs=self.jobs[:count], records=records)


class Ledger:
    """Counts of what happened to jobs on the way from a trace to a workload."""

    def __init__(self) -> None:
        self._left_out: dict[str, list[str]] = {}
        self._notes: dict[str, tuple[int, str]] = {}

    def leave_out(self, job: str, why: str) -> None:
        """Count a job that the workload will not have."""
        self._left_out.setdefault(why, []).append(job)

    def note(self, job: str, whats: Iterable[str]) -> None:
        """Count what was found at a job; the same text twice at one job counts once."""
        for what in dict.fromkeys(whats):
            count, first = self._notes.get(what, (0, job))
            self._notes[what] = (count + 1, first)

    def left_out(self) -> tuple[LeftOut, ...]:
        """Return all jobs left out, by reason."""
        return tuple(LeftOut(why, tuple(jobs)) for why, jobs in sorted(self._left_out.items()))

    def notes(self) -> tuple[Note, ...]:
        """Return all notes, by text."""
        return tuple(
            Note(what, count, first) for what, (count, first) in sorted(self._notes.items())
        )
