"""Running a recording again: whether sessions and rounds of the policy say the same, and where they first do not (SPEC R2)."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from xce.domain.engine.scheduler import SchedulerMemory
from xce.domain.formats.policy import Decision, Decisions
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import Snapshot
from xce.domain.policy.decide import decide
from xce.domain.scheduling.plans import Allocator
from xce.domain.scheduling.session import run_session
from xce.replay.recording import Counts, Line, Other, RecordedSession, RecordingReader, Start
from xce.replay.rounds import RecordedRound
from xce.replay.views import Seen


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first place where what was run again says something else.

    Attributes:
        session: the number of the session, or of the last one before the round.
        round: the number of the round of the policy; None: it is the session itself.
        now: of its snapshot, or of the policy's input.
        job: that the place is about; None: about no single one.
        path: of the place, such as ``demand.hosts[0].count`` or ``decisions[0].reason``.
        recorded: what the recording says there, as JSON; None: nothing.
        found: what is said now, as JSON; None: nothing.
    """

    session: int
    now: datetime
    job: str | None
    path: str
    recorded: str | None
    found: str | None
    round: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of running a recording again."""

    counts: Counts
    whole: bool
    mismatch: Mismatch | None


def verify(
    lines: Iterable[str],
    source: str,
    *,
    allocators: Callable[[Snapshot], Iterable[Allocator]] = lambda _: (),
    progress: Callable[[int], None] = lambda _: None,
) -> Verdict:
    """Run every session and every round again and compare what they say, byte by byte; stop at the first difference.

    Each session is run by itself, on its snapshot: so what a driver kept from one session to the next is checked too.

    Raises:
        InputError: not a recording.
    """
    reader = RecordingReader(source)
    trace = False
    driver = _Driver()
    for entry in reader.entries(lines):
        found: Mismatch | None = None
        match entry:
            case Start():
                trace = entry.trace
            case Seen():
                driver.see(entry)
            case RecordedSession():
                given = allocators(entry.snapshot)
                result = run_session(entry.snapshot, trace=trace, allocators=given)
                found = driver.mismatch(entry) or mismatch(entry, result)
                driver.note(entry.snapshot, result)
                progress(entry.number)
            case RecordedRound():
                found = round_mismatch(entry, reader.counts.sessions)
            case Other():
                pass
        if found is not None:
            return Verdict(reader.counts, reader.whole, found)
    return Verdict(reader.counts, reader.whole, None)


class _Driver:
    """The live driver's part in a session's snapshot, done again: what it remembers, and what it makes of the log and the batch system."""

    def __init__(self) -> None:
        self._memory: SchedulerMemory | None = None
        self._shown: Snapshot | None = None

    def see(self, seen: Seen) -> None:
        """Do again what a driver does with what it sees."""
        if seen.begins:
            self._memory = SchedulerMemory()
        self._shown = None
        if seen.view is None:
            self._memory = (
                None  # what it remembers of that is not known until another driver begins
            )
        elif self._memory is not None:
            self._shown = self._memory.look(seen.view, seen.supply, seen.observations)

    def mismatch(self, session: RecordedSession) -> Mismatch | None:
        """Return the first difference between a recorded snapshot and the one that is made now; None: there is none."""
        if self._shown is None:
            return None
        recorded, again = session.snapshot.to_json(), self._shown.to_json()
        if recorded == again:
            return None
        one, other = json.loads(recorded), json.loads(again)
        for path, job, before, found in _differences(one, other, "snapshot", None):
            return Mismatch(session.number, session.snapshot.now, job, path, before, found)
        raise AssertionError("texts that differ are of different values")

    def note(self, snapshot: Snapshot, result: SessionResult) -> None:
        """Note what a session needs; the next snapshot rests on it."""
        if self._memory is not None and self._shown is not None:
            self._memory.note_needs(snapshot, result)
        self._shown = None


def mismatch(session: RecordedSession, result: SessionResult) -> Mismatch | None:
    """Return the first difference between a recorded session and one that was run again; None: there is none."""
    text = result.to_json()
    if text == _text(session.result):
        return None
    again: Line = json.loads(text)
    for path, job, recorded, found in _differences(session.result, again, "", None):
        named = _job_with_reasons(path, session.result, again) if job is None else job
        return Mismatch(session.number, session.snapshot.now, named, path, recorded, found)
    raise AssertionError("texts that differ are of different values")


def _job_with_reasons(path: str, *results: Line) -> str | None:
    """Return the first job that waits for the reasons at a path, as recorded or as it is now."""
    if not path.startswith("reason_sets["):
        return None
    place = int(path.removeprefix("reason_sets[").partition("]")[0])
    for result in results:
        try:
            if place < len(result["reason_sets"]):
                number = result["reason_sets"][place]["id"]
                for line in result["pending"]:
                    if line["reasons"] == number:
                        return str(line["job"])
        except (KeyError, TypeError):
            continue  # what was recorded need not be a result
    return None


def round_mismatch(entry: RecordedRound, session: int) -> Mismatch | None:
    """Return the first difference between a recorded round and one that is decided again; ``session``: the last one before it."""
    decided = decide(entry.inputs).decisions
    recorded, again = _decisions(entry.decisions), _decisions(decided)
    if recorded == again:
        return None
    one, other = json.loads(recorded), json.loads(again)
    for path, job, before, found in _differences(one, other, "", None):
        named = job if job is not None else _first_job(path, entry.decisions, decided)
        number = session if entry.session is None else entry.session
        return Mismatch(number, entry.inputs.now, named, path, before, found, entry.number)
    raise AssertionError("texts that differ are of different values")


def differences(
    one: object, other: object
) -> Iterator[tuple[str, str | None, str | None, str | None]]:
    """Yield where two documents differ: the path, the job that it is about, and what stands there in each; None: nothing."""
    yield from _differences(one, other, "", None)


def _decisions(decisions: tuple[Decision, ...]) -> str:
    return Decisions.of(*decisions).model_dump_json(include={"decisions"})


def _first_job(path: str, *decided: tuple[Decision, ...]) -> str | None:
    """Return the first job that a decision at a path serves, as recorded or as it is now."""
    number = int(path.partition("[")[2].partition("]")[0])
    served = (one[number].jobs for one in decided if number < len(one))
    return next((jobs[0] for jobs in served if jobs), None)


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


_Found = tuple[str, str | None, str | None, str | None]


def _differences(one: object, other: object, path: str, job: str | None) -> Iterator[_Found]:
    mine, theirs = _object(one), _object(other)
    if mine is not None and theirs is not None:
        yield from _in_objects(mine, theirs, path, job)
        return
    left, right = _array(one), _array(other)
    if left is not None and right is not None:
        yield from _in_arrays(left, right, path, job)
    elif _text(one) != _text(other):
        yield path, job, _text(one), _text(other)


def _in_objects(mine: Line, theirs: Line, path: str, job: str | None) -> Iterator[_Found]:
    named: str | None = mine.get("job", job)
    if mine.get("job") != theirs.get("job"):
        yield path, named, _text(mine), _text(theirs)
        return
    for key in [*mine, *(key for key in theirs if key not in mine)]:
        below = f"{path}.{key}" if path else key
        if key not in mine or key not in theirs:
            yield below, named, _maybe(mine, key), _maybe(theirs, key)
        else:
            yield from _differences(mine[key], theirs[key], below, named)


def _in_arrays(left: list[Any], right: list[Any], path: str, job: str | None) -> Iterator[_Found]:
    for i in range(max(len(left), len(right))):
        below = f"{path}[{i}]"
        if i < len(left) and i < len(right):
            yield from _differences(left[i], right[i], below, job)
            continue
        extra = _object(left[i] if i < len(left) else right[i])
        named = job if extra is None else extra.get("job", job)
        mine = _text(left[i]) if i < len(left) else None
        yield below, named, mine, _text(right[i]) if i < len(right) else None


def _object(value: object) -> Line | None:
    return cast("Line", value) if isinstance(value, dict) else None


def _array(value: object) -> list[Any] | None:
    return value if isinstance(value, list) else None  # pyright: ignore[reportUnknownVariableType]


def _maybe(document: Line, key: str) -> str | None:
    return _text(document[key]) if key in document else None
