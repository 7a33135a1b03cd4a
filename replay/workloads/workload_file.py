"""Workloads as files: ``xce.workload/1``, lines of JSON, the first of the whole and one for each job. Defaults are left away."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from typing import Annotated, Final, Literal

from pydantic import Field

from xce.domain.cluster.resreq import parse
from xce.domain.errors import InputError, Problem
from xce.domain.formats.base import Count, Duration, Format, Name, Time, Whole
from xce.domain.formats.snapshot import ArrayElement
from xce.replay.workloads.swf import HUNDRED_YEARS
from xce.replay.workloads.workload import LeftOut, Note, Shape, Workload, WorkloadJob

FORMAT: Final = "xce.workload/1"

#: Up to a hundred years: what says more is a mistake, and would be past the end of the calendar.
Seconds = Annotated[int, Field(ge=0, le=HUNDRED_YEARS)]


class LeftOutEntry(Format):
    """Jobs of the source that are not here, and why."""

    why: str
    jobs: tuple[Name, ...]


class NoteEntry(Format):
    """Something of the source that could not be taken as it was."""

    what: str
    jobs: Count
    first: Name


class WorkloadHead(Format):
    """The first line."""

    format: Literal["xce.workload/1"] = "xce.workload/1"
    source: str
    start: Time = Field(description="of second 0")
    jobs: Count = Field(description="lines that follow")
    records: Count = Field(description="jobs of the source: those that follow and those left out")
    left_out: tuple[LeftOutEntry, ...] = ()
    notes: tuple[NoteEntry, ...] = ()


class WorkloadLine(Format):
    """One job."""

    id: Name
    submit: Seconds = Field(description="seconds after the start")
    run_time: Seconds = Field(description="seconds: the truth, which no session is told")
    tasks: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    resreq: str = Field("", max_length=65536)
    exclusive: bool = False
    user: Name = "nobody"
    project: Name = "default"
    queue: Name = "normal"
    run_limit: Duration | None = None
    priority: Whole = 0
    held: bool = False
    waits_for: tuple[Name, ...] = ()
    array: ArrayElement | None = None
    failures: tuple[Count, ...] = Field(
        default=(), description="seconds after which attempts fail, one after the other"
    )
    given_up: bool = Field(default=False, description="the last failure is the end of the job")


def to_lines(workload: Workload) -> Iterator[str]:
    """Yield the lines, each with its end; equal workloads give equal lines."""
    head = WorkloadHead(
        source=workload.source,
        start=workload.start,
        jobs=len(workload.jobs),
        records=workload.records,
        left_out=tuple(LeftOutEntry(why=one.why, jobs=one.jobs) for one in workload.left_out),
        notes=tuple(
            NoteEntry(what=one.what, jobs=one.jobs, first=one.first) for one in workload.notes
        ),
    )
    yield head.to_json() + "\n"
    for job in workload.jobs:
        line = WorkloadLine.model_construct(
            id=job.id,
            submit=job.submit,
            run_time=job.run_time,
            tasks=job.shape.tasks,
            resreq=job.shape.resreq,
            exclusive=job.shape.exclusive,
            user=job.user,
            project=job.project,
            queue=job.queue,
            run_limit=job.run_limit,
            priority=job.priority,
            held=job.held,
            waits_for=job.waits_for,
            array=job.array,
            failures=job.failures,
            given_up=job.given_up,
        )
        yield line.model_dump_json(exclude_defaults=True) + "\n"


def from_lines(lines: Iterable[str], source: str) -> Workload:
    """Return the workload of a file.

    Raises:
        InputError: it is none, a line is wrong, two jobs have one id, jobs are out of order, or some are missing.
    """
    head: WorkloadHead | None = None
    jobs: list[WorkloadJob] = []
    shapes: dict[Shape, Shape] = {}
    seen: dict[str, int] = {}
    for number, text in enumerate(lines, start=1):
        try:
            if head is None:
                head = WorkloadHead.from_json(text, source)
                continue
            job = _job(WorkloadLine.from_json(text, source), shapes, source)
        except InputError as error:
            raise InputError(source, [_in_line(one, number) for one in error.problems]) from None
        if (earlier := seen.setdefault(job.id, number)) != number:
            raise InputError.of(source, f"job {job.id} is also in line {earlier}", line=number)
        if jobs and job.submit < jobs[-1].submit:
            raise InputError.of(
                source, "was submitted before the job of the line above", line=number
            )
        jobs.append(job)
    if head is None:
        raise InputError.of(source, "is empty; wanted a workload")
    if len(jobs) != head.jobs:
        raise InputError.of(source, f"has {len(jobs)} jobs; its first line says {head.jobs}")
    return Workload(
        source=head.source,
        start=head.start,
        jobs=tuple(jobs),
        records=head.records,
        left_out=tuple(LeftOut(one.why, one.jobs) for one in head.left_out),
        notes=tuple(Note(one.what, one.jobs, one.first) for one in head.notes),
    )


def _in_line(problem: Problem, number: int) -> Problem:
    """Return a problem of one line as one of the file; the column is that in a requirement."""
    where = f"column {problem.column}: " if problem.path == "resreq" and problem.column else ""
    return Problem(where + problem.message, problem.path, number)


def _job(line: WorkloadLine, shapes: dict[Shape, Shape], source: str) -> WorkloadJob:
    shape = Shape(line.tasks, line.resreq, line.exclusive)
    if shape not in shapes:
        try:
            parse(line.resreq)
        except InputError as error:
            raise InputError(
                source, [replace(one, path="resreq") for one in error.problems]
            ) from None
    return WorkloadJob(
        id=line.id,
        submit=line.submit,
        run_time=line.run_time,
        shape=shapes.setdefault(shape, shape),
        user=line.user,
        project=line.project,
        queue=line.queue,
        run_limit=line.run_limit,
        priority=line.priority,
        held=line.held,
        waits_for=line.waits_for,
        array=line.array,
        failures=line.failures,
        given_up=line.given_up,
    )


def digest_of(workload: Workload) -> str:
    """Return a digest of all that a simulation is told of the jobs."""
    digest = sha256()
    for line in to_lines(workload):
        digest.update(line.encode())
    return digest.hexdigest()


def length_of(workload: Workload) -> timedelta:
    """Return how long it is from the first submission to the last."""
    times = [job.submit for job in workload.jobs]
    return timedelta(seconds=max(times, default=0) - min(times, default=0))
