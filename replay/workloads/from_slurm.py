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
from xce.replay.workloads.swf import HUNDRED_YEARS, YEAR_2200
from xce.replay.workloads.workload import Ledger, Shape, Workload, WorkloadJob

_MEM: Final = "mem"
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*", re.ASCII)
_LICENCE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(@[\w.:-]+)?", re.ASCII)
_RUNNING: Final = frozenset({"RUNNING", "SUSPENDED", "COMPLETING", "STAGE_OUT"})
_TASKS_MAX: Final = 1_000_000
#: As the formats have it; half of a surrogate pair is no character.
_NAME: Final = re.compile("[^\\x00-\\x1f\\x7f\ud800-\udfff]{1,256}")
#: Characters of a value in a message.
_SHOWN: Final = 60

#: A longer limit is none.
_LIMIT_MAX: Final = 10 * 365 * 24 * 60
#: As Slurm writes it in texts.
_NO_LIMIT: Final = frozenset({"UNLIMITED", "INFINITE", "Partition_Limit"})

Entry = Mapping[str, Any]


class _UnfitError(Exception):
    """What is wrong with an entry, and where in it."""

    def __init__(self, path: tuple[str, ...], message: str) -> None:
        super().__init__(message)
        self.path = path


def from_slurm(document: object, config: WorkloadConfig, source: str) -> Workload:
    """Return the workload of an accounting document.

    Raises:
        InputError: it is none, an entry lacks what every one has, or there is no entry.
    """
    entries, complaints = _entries(document, source)
    ledger = Ledger()
    found: list[tuple[int, WorkloadJob]] = []
    seen: set[str] = set()
    for number, entry in enumerate(entries):
        try:
            name, job, notes, submitted = _job(entry, config)
        except _UnfitError as unfit:
            path = ".".join((f"jobs[{number}]", *unfit.path))
            raise InputError.of(source, str(unfit), path=path) from None
        if name in seen:
            raise InputError.of(
                source,
                f"job {name} is there twice; wanted what sacct prints without --duplicates",
                path=f"jobs[{number}]",
            )
        seen.add(name)
        ledger.note(name, (*notes, *(complaints if number == 0 else ())))
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


def _entries(document: object, source: str) -> tuple[list[Entry], list[str]]:
    """Return the entries, and what Slurm itself complained of."""
    whole = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    complaints = [f"sacct said: {said}" for said in _errors(whole.get("errors"))]
    jobs: Any = whole.get("jobs")
    if complaints and not jobs:
        raise InputError.of(source, f"has no jobs; {'; '.join(complaints)}")
    if not isinstance(jobs, list):
        raise InputError.of(source, "has no list of jobs; wanted what sacct --json prints")
    entries = cast("list[Entry]", jobs)
    if not entries:
        raise InputError.of(source, "has no jobs")
    return entries, complaints


def _errors(errors: Any) -> Iterator[str]:
    """Yield the errors in a document: texts, or entries of which one field or the other has the text."""
    for one in cast("list[object]", errors) if isinstance(errors, list) else []:
        if isinstance(one, dict):
            entry = cast("Entry", one)
            yield str(entry.get("description") or entry.get("error") or "an error without a text")
        else:
            yield str(one)


def _at(job: WorkloadJob, submit: int) -> WorkloadJob:
    return WorkloadJob(
        job.id, submit, job.run_time, job.shape, job.user, job.project, job.queue, job.run_limit
    )


def _job(
    found: object, config: WorkloadConfig
) -> tuple[str, WorkloadJob | str, tuple[str, ...], int]:
    """Return name, job (or why there is none), notes and time of submission of an entry."""
    if not isinstance(found, dict):
        raise _UnfitError((), f"is {_shown(found)}; wanted an object")
    entry = cast("Entry", found)
    name = _name(entry)
    submitted = _number(entry, "time", "submission")
    if submitted is None:
        return name, "time of submission unknown", (), 0
    _require_below(submitted, YEAR_2200, "time", "submission")
    limit = _number(entry, "time", "limit")  # minutes
    notes: list[str] = []
    if limit is not None and limit > _LIMIT_MAX:
        notes.append("time asked is above ten years: no run limit")
        limit = None
    run_time = _run_time(entry, limit, config, notes)
    if isinstance(run_time, str):
        return name, run_time, tuple(notes), submitted
    _require_below(run_time, HUNDRED_YEARS, "time", "elapsed")
    shape = _shape(entry, config, notes)
    if isinstance(shape, str):
        return name, shape, tuple(notes), submitted
    job = WorkloadJob(
        id=name,
        submit=0,
        run_time=run_time,
        shape=shape,
        user=_word(entry, "user") or "nobody",
        project=_word(entry, "account") or "default",
        queue=_word(entry, "partition") or "normal",
        run_limit=timedelta(minutes=limit) if limit else None,
    )
    return name, job, tuple(notes), submitted


def _name(entry: Entry) -> str:
    if isinstance(entry.get("array"), dict):
        leader = _number(entry, "array", "job_id", needed=False)
        task = _number(entry, "array", "task_id", needed=False)
        if leader and task is not None:
            return f"{leader}_{task}"
    number = _number(entry, "job_id")
    if number is None:
        raise _UnfitError(("job_id",), f"is {_shown(entry['job_id'])}; wanted the number of a job")
    return str(number)


def _run_time(
    entry: Entry, limit: int | None, config: WorkloadConfig, notes: list[str]
) -> int | str:
    """Return how long it ran; ``elapsed`` of a job that still runs is not its run time."""
    state = _at_path(entry, "state", "current")  # a word, or a list of words
    stated: object = state
    words = cast("list[object]", stated) if isinstance(stated, list) else [stated]
    if not words or not all(isinstance(word, str) for word in words):
        raise _UnfitError(
            ("state", "current"), f"is {_shown(state)}; wanted a state, such as COMPLETED"
        )
    if not _number(entry, "time", "start"):
        return "never started"
    if words[0] in _RUNNING or not _number(entry, "time", "end"):
        if config.run_time_unknown == "as_asked" and limit:
            notes.append("run time unknown: taken as the time asked")
            return limit * 60
        return "run time unknown: has not ended"
    elapsed = _number(entry, "time", "elapsed") or 0
    if elapsed == 0 and config.run_time_zero == "leave_out":
        return "run time 0"
    return elapsed


def _shape(entry: Entry, config: WorkloadConfig, notes: list[str]) -> Shape | str:
    asked = _asked(entry)
    processors = asked.get(("cpu", "")) or _number(entry, "required", "CPUs", needed=False) or 0
    if not 1 <= processors <= _TASKS_MAX:
        return "number of CPUs unknown"
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
    constraints = entry.get("constraints") or ""
    if not isinstance(constraints, str):
        raise _UnfitError(("constraints",), f"is {_shown(constraints)}; wanted a text")
    select = _select(constraints, config, notes)
    primary = Primary(select=select, rusage=tuple(usage), span=span)
    flags = entry.get("flags") or ()
    exclusive = "exclusive" in str(entry.get("shared") or "").lower() or "EXCLUSIVE" in flags
    try:
        text = write(Requirement((primary,)))
    except ValueError as error:
        raise _UnfitError((), f"asks for what cannot be said: {error}") from None
    return Shape(processors, text, exclusive)


def _asked(entry: Entry) -> dict[tuple[str, str], int]:
    """Return the amounts that a job asked for, by type and name."""
    requested = _at_path(entry, "tres", "requested")
    place = ("tres", "requested")
    if not isinstance(requested, list):
        raise _UnfitError(place, f"is {_shown(requested)}; wanted a list")
    asked: dict[tuple[str, str], int] = {}
    for number, one in enumerate(cast("list[object]", requested)):
        here = ("tres", f"requested[{number}]")
        if not isinstance(one, dict):
            raise _UnfitError(here, f"is {_shown(one)}; wanted an object")
        part = cast("Entry", one)
        kind, name = part.get("type"), part.get("name") or ""
        if not isinstance(kind, str) or not isinstance(name, str):
            raise _UnfitError(here, f"is {_shown(part)}; wanted a type, a name and a count")
        count = _number(part, "count", within=here)
        if count is not None:
            asked[kind, name] = count
    return asked


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


def _at_path(entry: Entry, *path: str, within: tuple[str, ...] = ()) -> Any:
    """Return what is at a place in an entry."""
    value: Any = entry
    for step in path:
        if not isinstance(value, dict) or step not in value:
            raise _UnfitError((*within, *path), "is missing; every entry of sacct --json has it")
        value = cast("Entry", value)[step]
    return value


def _number(
    entry: Entry, *path: str, needed: bool = True, within: tuple[str, ...] = ()
) -> int | None:
    """Return a number that is set; both shapes of Slurm."""
    try:
        found = _at_path(entry, *path, within=within)
    except _UnfitError:
        if needed:
            raise
        return None
    value: object = found
    if isinstance(value, dict):
        shaped = cast("Entry", value)
        if not shaped.get("set") or shaped.get("infinite"):
            return None
        value = shaped.get("number")
    if value is None or (isinstance(value, str) and value in _NO_LIMIT):
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise _UnfitError((*within, *path), f"is {_shown(found)}; wanted a whole number")
    return value if 0 <= value < 2**31 or 2**32 <= value < 2**53 else None


def _word(entry: Entry, key: str) -> str:
    """Return a name, empty where there is none."""
    value = _at_path(entry, key)
    if value is None or value == "":
        return ""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise _UnfitError((key,), f"is {_shown(value)}; wanted a name of at most 256 characters")
    return value


def _require_below(value: int, most: int, *path: str) -> None:
    if value > most:
        raise _UnfitError(path, f"is {value}, which is absurd; wanted at most {most}")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
