"""From what ``sacct --json`` prints to a workload.

| of the entry | of the job |
|---|---|
| job and task number | id ``12``, ``12_3`` |
| user, account, partition | user, project, queue |
| CPUs asked | tasks, on one host where one node is asked |
| memory asked | ``rusage[mem=...]`` |
| licences asked | ``rusage[NAME=N/job]`` |
| constraints joined with ``&`` | ``select[...]`` |
| time limit | run limit |
| elapsed time | the driver's secret |

Times are taken as they are: the workload starts in the second of the first submission. Both shapes are read: plain numbers (Slurm 22.05)
and numbers that say whether they are set (23.02 and later).
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, Final, cast

from xce.domain.cluster.requirement import (
    All,
    Flag,
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
from xce.domain.formats.config import WorkloadConfig
from xce.replay.workloads.workload import Ledger, Shape, Workload, WorkloadJob

_MEM: Final = "mem"
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*", re.ASCII)
_LICENCE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(@[\w.:-]+)?", re.ASCII)
_RUNNING: Final = frozenset({"RUNNING", "SUSPENDED", "COMPLETING", "STAGE_OUT"})
_TASKS_MAX: Final = 1_000_000

Entry = Mapping[str, Any]


def from_slurm(document: object, config: WorkloadConfig, source: str) -> Workload:
    """Return the workload of an accounting document.

    Raises:
        InputError: it is none, an entry lacks what every one has, or there is no entry.
    """
    entries = _entries(document, source)
    ledger = Ledger()
    found: list[tuple[int, WorkloadJob]] = []
    seen: set[str] = set()
    for number, entry in enumerate(entries):
        try:
            name, job, notes, submitted = _job(entry, config)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError.of(
                source,
                f"is no job of sacct: {type(error).__name__} {error}",
                path=f"jobs[{number}]",
            ) from None
        if name in seen:
            raise InputError.of(source, f"job {name} is there twice", path=f"jobs[{number}]")
        seen.add(name)
        ledger.note(name, notes)
        if isinstance(job, str):
            ledger.leave_out(name, job)
        else:
            found.append((submitted, job))
    found.sort(key=lambda pair: pair[0])
    first = found[0][0] if found else 0
    return Workload(
        source=source.rsplit("/", 1)[-1],
        start=datetime.fromtimestamp(first, UTC),
        jobs=tuple(_at(job, submitted - first) for submitted, job in found),
        records=len(seen),
        left_out=ledger.left_out(),
        notes=ledger.notes(),
    )


def _entries(document: object, source: str) -> list[Entry]:
    if not isinstance(document, dict) or not isinstance(
        jobs := cast("dict[str, Any]", document).get("jobs"), list
    ):
        raise InputError.of(source, "has no list of jobs; wanted what sacct --json prints")
    entries = cast("list[Entry]", jobs)
    if not entries:
        raise InputError.of(source, "has no jobs")
    return entries


def _at(job: WorkloadJob, submit: int) -> WorkloadJob:
    return WorkloadJob(
        job.id, submit, job.run_time, job.shape, job.user, job.project, job.queue, job.run_limit
    )


def _job(
    entry: Entry, config: WorkloadConfig
) -> tuple[str, WorkloadJob | str, tuple[str, ...], int]:
    """Return name, job (or why there is none), notes and time of submission of an entry."""
    name = _name(entry)
    time = entry["time"]
    submitted = _number(time["submission"])
    if submitted is None:
        return name, "time of submission unknown", (), 0
    limit = _number(time["limit"])  # minutes
    run_time, notes = _run_time(entry, limit, config)
    if isinstance(run_time, str):
        return name, run_time, notes, submitted
    shape, shape_notes = _shape(entry, config)
    if isinstance(shape, str):
        return name, shape, notes, submitted
    job = WorkloadJob(
        id=name,
        submit=0,
        run_time=run_time,
        shape=shape,
        user=entry["user"] or "nobody",
        project=entry["account"] or "default",
        queue=entry["partition"] or "normal",
        run_limit=timedelta(minutes=limit) if limit else None,
    )
    return name, job, (*notes, *shape_notes), submitted


def _name(entry: Entry) -> str:
    array: Entry = entry.get("array") or {}
    leader, task = _number(array.get("job_id")), _number(array.get("task_id"))
    if leader and task is not None:
        return f"{leader}_{task}"
    return str(int(entry["job_id"]))


def _run_time(
    entry: Entry, limit: int | None, config: WorkloadConfig
) -> tuple[int | str, tuple[str, ...]]:
    """Return how long it ran; ``elapsed`` of a job that still runs is not its run time."""
    time = entry["time"]
    state: Any = entry["state"]["current"]  # a word, or a list of words
    current = str(state if isinstance(state, str) else state[0])
    if not _number(time["start"]):
        return "never started", ()
    if current in _RUNNING or not _number(time["end"]):
        if config.run_time_unknown == "as_asked" and limit:
            return limit * 60, ("run time unknown: taken as the time asked",)
        return "run time unknown: has not ended", ()
    elapsed = _number(time["elapsed"]) or 0
    if elapsed == 0 and config.run_time_zero == "leave_out":
        return "run time 0", ()
    return elapsed, ()


def _shape(entry: Entry, config: WorkloadConfig) -> tuple[Shape | str, tuple[str, ...]]:
    asked = {
        (one["type"], one["name"] or ""): count
        for one in entry["tres"]["requested"]
        if (count := _number(one["count"])) is not None
    }
    notes: list[str] = []
    processors = asked.get(("cpu", "")) or _number(entry["required"]["CPUs"]) or 0
    if not 1 <= processors <= _TASKS_MAX:
        return "number of CPUs unknown", ()
    nodes = asked.get(("node", ""), 1)
    usage = list(_memory(asked.get((_MEM, "")), processors, config, notes))
    for (kind, name), count in asked.items():
        if kind == "license":
            match = _LICENCE.fullmatch(name)
            if match is None:
                notes.append(f"licence {name!r} is no name and was ignored")
            elif count:
                usage.append(Usage(match[1], Number(Fraction(count)), Per.JOB))
        elif kind == "gres" and count:
            notes.append(f"{kind} {name} is ignored")
    span = Span(one_host=True) if nodes == 1 and processors > 1 else Span()
    if nodes > 1:
        notes.append("more than one node: spread as the scheduler likes")
    select = _select(entry.get("constraints") or "", config, notes)
    primary = Primary(select=select, rusage=tuple(usage), span=span)
    flags = entry.get("flags") or ()
    exclusive = "exclusive" in str(entry.get("shared") or "").lower() or "EXCLUSIVE" in flags
    return Shape(processors, write(Requirement((primary,))), exclusive), tuple(notes)


def _memory(
    asked: int | None, processors: int, config: WorkloadConfig, notes: list[str]
) -> Iterator[Usage]:
    """Yield what a task takes; accounting has MiB of the whole job."""
    rule = config.memory
    if not rule.use:
        return
    if not asked:
        if rule.default is None:
            notes.append("memory unknown: none is asked")
            return
        notes.append("memory unknown: the default is asked")
        asked = rule.default * processors
    yield Usage(_MEM, Number(Fraction(-(-asked // processors))), Per.TASK)


def _select(text: str, config: WorkloadConfig, notes: list[str]) -> Selection | None:
    flags: list[Flag] = []
    for word in text.split("&") if text else ():
        if not _WORD.fullmatch(word):
            notes.append(f"constraint {text!r} is more than names joined with & and was ignored")
            return None
        if word in config.ignored_properties:
            notes.append(f"constraint {word} is ignored, as configured")
        else:
            flags.append(Flag(word))
    if not flags:
        return None
    return flags[0] if len(flags) == 1 else All(tuple(flags))


def _number(value: Any) -> int | None:
    """Return a number that is set; both shapes of Slurm."""
    if isinstance(value, dict):
        shaped = cast("Entry", value)
        return int(shaped["number"]) if shaped.get("set") and not shaped.get("infinite") else None
    if value is None:
        return None
    number = int(value)
    return number if 0 <= number < 2**31 or 2**32 <= number < 2**53 else None
