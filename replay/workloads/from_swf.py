"""From a trace to a workload: what each record of a log asks for, in the words of the scheduler.

| of the record | of the job |
|---|---|
| job number | id |
| user, group | ``u62``, project ``g1`` |
| queue name, else queue number | queue ``q_1d``, ``q3``, else ``normal`` |
| request, else processors asked, else used | tasks, span, select, exclusive |
| memory asked | ``rusage[mem=...]`` |
| time asked | run limit |
| run time | the driver's secret |
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Final

from xce.domain.cluster.requirement import (
    All,
    Alternative,
    Compare,
    Comparison,
    Compound,
    Flag,
    Not,
    Number,
    Per,
    Primary,
    Requirement,
    Selection,
    Span,
    Usage,
)
from xce.domain.cluster.resreq import write
from xce.domain.errors import InputError
from xce.domain.formats.config import MemoryScope, WorkloadConfig
from xce.domain.values import MIB, bytes_of_unit
from xce.replay.workloads.node_request import (
    Chunk,
    NodeRequest,
    NodeRequestError,
    parse_node_request,
)
from xce.replay.workloads.shaping import shaped
from xce.replay.workloads.swf import SwfJob, SwfTrace, open_swf
from xce.replay.workloads.workload import Ledger, Shape, Workload, WorkloadJob

#: Where neither the configuration nor the trace says when second 0 was.
START_OF_NOWHERE: Final = datetime(2000, 1, 1, tzinfo=UTC)
#: A first submit time above this (1980) counts from 1970; below, from the log's own start.
_ABSOLUTE: Final = 315_532_800
_TASKS_MAX: Final = 1_000_000
#: The longest run limit that the formats know.
_RUN_LIMIT_MAX: Final = 10 * 365 * 86_400
_MEM: Final = "mem"

#: Called with the number of records read so far.
Progress = Callable[[int], None]


def load_swf(
    path: Path,
    config: WorkloadConfig,
    *,
    seed: int,
    time_zero: datetime | None = None,
    jobs_max: int | None = None,
    progress: Progress | None = None,
) -> Workload:
    """Return the workload of a trace file, or of its first ``jobs_max`` records.

    Raises:
        InputError: the file cannot be read, a record is malformed, two have one job number, or there is none.
    """
    with open_swf(path) as trace:
        return _workload(trace, config, seed, time_zero, jobs_max, progress or (lambda _: None))


def _workload(
    trace: SwfTrace,
    config: WorkloadConfig,
    seed: int,
    time_zero: datetime | None,
    jobs_max: int | None,
    progress: Progress,
) -> Workload:
    mapper = _Mapper(config, trace.source)
    ledger = Ledger()
    jobs: list[WorkloadJob] = []
    lines: dict[int, int] = {}
    first: int | None = None
    for record in islice(trace.jobs(), jobs_max):
        if (earlier := lines.setdefault(record.number, record.line)) != record.line:
            raise InputError.of(
                trace.source, f"job {record.number} is also in line {earlier}", line=record.line
            )
        first = record.submit if first is None else min(first, record.submit)
        job, notes = mapper.job(record)
        if isinstance(job, str):
            ledger.leave_out(str(record.number), job)
        else:
            jobs.append(job)
        ledger.note(str(record.number), notes)
        progress(len(lines))
    if first is None:
        raise InputError.of(trace.source, "has no jobs")
    start, origin = _start(trace, first, time_zero)
    workload = Workload(
        source=Path(trace.source).name,
        start=start,
        jobs=tuple(
            sorted(
                (replace(job, submit=job.submit - origin) for job in jobs),
                key=lambda job: job.submit,
            )
        ),
        records=len(lines),
        left_out=ledger.left_out(),
        notes=ledger.notes(),
    )
    return shaped(workload, config, seed)


def _start(trace: SwfTrace, first: int, time_zero: datetime | None) -> tuple[datetime, int]:
    """Return the time of second 0, and what submit time it is in the trace."""
    absolute = first >= _ABSOLUTE and trace.unix_start is None
    origin = first if absolute else 0
    if time_zero is not None:
        return time_zero, origin
    if absolute:
        return datetime.fromtimestamp(first, UTC), origin
    if trace.unix_start is not None:
        return datetime.fromtimestamp(trace.unix_start, UTC), origin
    return START_OF_NOWHERE, origin


class _Mapper:
    """Maps records one by one; shapes that repeat are made once."""

    def __init__(self, config: WorkloadConfig, source: str) -> None:
        self._config = config
        self._source = source
        self._shapes: dict[tuple[str | None, int, int | None], tuple[Shape, tuple[str, ...]]] = {}

    def job(self, record: SwfJob) -> tuple[WorkloadJob | str, tuple[str, ...]]:
        """Return the job, or why there is none; and what is to be noted of it."""
        run_time, notes = self._run_time(record)
        if isinstance(run_time, str):
            return run_time, notes
        processors = record.processors_asked or record.processors_used or 0
        if not processors and record.request is None:
            return "number of processors unknown", notes
        run_limit, limit_notes = _run_limit(record, run_time)
        shape, shape_notes = self._shape(record, processors)
        job = WorkloadJob(
            id=str(record.number),
            submit=record.submit,
            run_time=run_time,
            shape=shape,
            user="nobody" if record.user is None else f"u{record.user}",
            project="default" if record.group is None else f"g{record.group}",
            queue=record.queue_name or ("normal" if record.queue is None else f"q{record.queue}"),
            run_limit=run_limit,
        )
        return job, (*notes, *limit_notes, *shape_notes)

    def _run_time(self, record: SwfJob) -> tuple[int | str, tuple[str, ...]]:
        if record.run_time is None:
            if self._config.run_time_unknown == "leave_out":
                return "run time unknown", ()
            if not record.time_asked:
                return "run time and time asked unknown", ()
            return record.time_asked, ("run time unknown: taken as the time asked",)
        if record.run_time == 0:
            if self._config.run_time_zero == "leave_out":
                return "run time 0", ()
            return 0, ("run time 0: ends in the second it starts",)
        return record.run_time, ()

    def _shape(self, record: SwfJob, processors: int) -> tuple[Shape, tuple[str, ...]]:
        memory = record.memory_asked if self._config.memory.use else None
        key = (record.request, processors, memory)
        known = self._shapes.get(key)
        if known is None:
            known = self._shapes[key] = self._new_shape(record, processors, memory)
        return known

    def _new_shape(
        self, record: SwfJob, processors: int, memory: int | None
    ) -> tuple[Shape, tuple[str, ...]]:
        if record.request is None:
            needed, notes = _need(processors, memory, self._config)
            primary = Primary(rusage=_memory_usage(needed, processors, Per.TASK))
            return Shape(processors, write(Requirement((primary,)))), notes
        try:
            request = parse_node_request(record.request)
        except NodeRequestError as error:
            column = None if record.request_column is None else record.request_column + error.offset
            raise InputError.of(
                self._source,
                f"request {record.request!r}: {error}",
                line=record.line,
                column=column,
            ) from None
        if request.total > _TASKS_MAX:
            raise InputError.of(
                self._source,
                f"request {record.request!r} is for {request.total} processors, wanted at most {_TASKS_MAX}",
                line=record.line,
                column=record.request_column,
            )
        try:
            return _request_shape(request, processors, memory, self._config)
        except ValueError as error:
            raise InputError.of(
                self._source,
                f"request asks for what cannot be said: {error}",
                line=record.line,
                column=record.request_column,
            ) from None


def _run_limit(record: SwfJob, run_time: int) -> tuple[timedelta | None, tuple[str, ...]]:
    if not record.time_asked:
        return None, ("time asked unknown: no run limit",)
    if record.time_asked > _RUN_LIMIT_MAX:
        return None, ("time asked is above ten years: no run limit",)
    past = ("ran past the time asked: runs as long here",) if run_time > record.time_asked else ()
    return timedelta(seconds=record.time_asked), past


def _need(
    processors: int, memory: int | None, config: WorkloadConfig
) -> tuple[Fraction | None, tuple[str, ...]]:
    """Return MiB of the whole job, exact; None where none is asked."""
    rule = config.memory
    if not rule.use:
        return None, ()
    if memory:
        exact = Fraction(memory * bytes_of_unit(rule.unit), MIB)
        return (exact * processors if rule.scope is MemoryScope.PROCESSOR else exact), ()
    if rule.default is None:
        return None, ("memory unknown: none is asked",)
    return Fraction(rule.default * processors), ("memory unknown: the default is asked",)


def _request_shape(
    request: NodeRequest,
    processors: int,
    memory: int | None,
    config: WorkloadConfig,
) -> tuple[Shape, tuple[str, ...]]:
    needed, notes = _need(request.total, memory, config)
    notes += tuple(f"request: {word} is not known and was ignored" for word in request.unknown)
    if processors and processors != request.total:
        notes += ("request and processor column differ: the request is taken",)
    parts: list[Primary] = []
    for chunk in request.chunks:
        share = None if needed is None else needed * chunk.total / request.total
        primary, chunk_notes = _chunk_primary(chunk, share, config)
        notes += chunk_notes
        parts.append(primary if len(request.chunks) == 1 else replace(primary, tasks=chunk.total))
    alternative: Alternative = parts[0] if len(parts) == 1 else Compound(tuple(parts))
    text = write(Requirement((alternative,)))
    return Shape(request.total, text, request.exclusive), notes


def _chunk_primary(
    chunk: Chunk, share: Fraction | None, config: WorkloadConfig
) -> tuple[Primary, tuple[str, ...]]:
    """Return the request for one chunk, ``share`` MiB being its part of the job's memory."""
    ignored = frozenset(config.ignored_properties)
    notes = [f"request: {word} is not known and was ignored" for word in chunk.unknown]
    notes += [
        f"request: property {name} is ignored, as configured"
        for name in chunk.properties
        if name in ignored
    ]
    if chunk.fraction:
        notes.append("request: a part of a processor was rounded")
    wanted: list[Selection] = [
        Flag(name) for name in dict.fromkeys(chunk.properties) if name not in ignored
    ]
    wanted += [Not(Flag(name)) for name in dict.fromkeys(chunk.without)]
    wanted += [
        Compare(config.host_attribute, Comparison.EQ, name) for name in dict.fromkeys(chunk.hosts)
    ]
    # Not "!=": that is false where the attribute is missing, and a host without a name is another host.
    wanted += [
        Not(Compare(config.host_attribute, Comparison.EQ, name))
        for name in dict.fromkeys(chunk.not_hosts)
    ]
    if chunk.total == 1:
        span = Span()
    elif chunk.nodes == 1:
        span = Span(one_host=True)
    else:
        span = Span(ptile=chunk.processors)
    of_chunk = share
    if chunk.memory is not None:
        of_chunk = Fraction(chunk.memory * chunk.nodes)
        notes.append("request: names memory a node, which is taken before the memory column")
    per = Per.TASK if chunk.processors == 1 else Per.HOST
    select = None if not wanted else wanted[0] if len(wanted) == 1 else All(tuple(wanted))
    primary = Primary(
        select=select,
        rusage=_memory_usage(of_chunk, chunk.nodes, per) if config.memory.use else (),
        span=span,
    )
    return primary, tuple(notes)


def _memory_usage(needed: Fraction | None, pieces: int, per: Per) -> tuple[Usage, ...]:
    """Return the usage of a need that is split evenly, each piece rounded up to a MiB."""
    if not needed:
        return ()
    piece = needed / pieces
    return (Usage(_MEM, Number(Fraction(-(-piece.numerator // piece.denominator))), per),)
