"""Recordings: what a driver saw and published, so that it can be run again, elsewhere and later (SPEC R2, R3).

A recording is lines of JSON, ``xce.recording/1``, kept compressed:

- ``start``: who recorded, which release, its configuration, whether sessions were traced
- ``session``: the snapshot (whole, or as a delta to the one before) and the result; top-level fields of a result that are as in
  the one before are only named
- ``event``: an event of the log
- ``answer``: what a provider answered to a call
- ``end``: how many of each there were; a recording without it was cut off, and holds up to where it was cut
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, cast

from xce.domain.errors import InputError, Problem
from xce.domain.formats.delta import Delta, apply, difference
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import Snapshot
from xce.domain.scheduling.plans import Allocator
from xce.domain.scheduling.session import run_session

FORMAT: Final = "xce.recording/1"
#: A session has its whole snapshot after so many deltas, so that a part can be read by itself.
WHOLE_EVERY: Final = 1000

Line = dict[str, Any]


@dataclass(slots=True)
class Counts:
    """How many of each kind there are."""

    sessions: int = 0
    events: int = 0
    answers: int = 0

    def document(self) -> Line:
        """Return them as JSON."""
        return {"sessions": self.sessions, "events": self.events, "answers": self.answers}


class RecordingWriter:
    """Makes the lines of a recording."""

    def __init__(
        self,
        write: Callable[[str], None],
        *,
        by: str,
        release: str,
        at: datetime,
        config: Mapping[str, Any],
        trace: bool = False,
    ) -> None:
        """Begin: ``write`` gets each line, with its end."""
        self._write = write
        self._before: Snapshot | None = None
        self._result: dict[str, str] = {}
        self.counts = Counts()
        self._line(
            "start",
            {
                "format": FORMAT, "by": by, "release": release, "at": at.isoformat(), "trace": trace, "config": dict(config),
            },
        )  # fmt: skip

    def session(self, snapshot: Snapshot, result: SessionResult) -> None:
        """Record a session."""
        self.counts.sessions += 1
        parts = [f'"kind":"session","number":{self.counts.sessions}']
        before = self._before
        if before is None or self.counts.sessions % WHOLE_EVERY == 0:
            parts.append(f'"snapshot":{snapshot.to_json()}')
        else:
            parts.append(f'"delta":{difference(before, snapshot).to_json()}')
        self._before = snapshot
        now = {
            name: json.dumps(value, separators=(",", ":"), ensure_ascii=False)
            for name, value in json.loads(result.to_json()).items()
        }
        same = [name for name, text in now.items() if self._result.get(name) == text]
        new = ",".join(f'"{name}":{text}' for name, text in now.items() if name not in same)
        self._result = now
        parts.append(f'"same":{json.dumps(same)},"result":{{{new}}}')
        self._write("{" + ",".join(parts) + "}\n")

    def event(self, document: Mapping[str, Any]) -> None:
        """Record an event, as the REST interface shows it."""
        self.counts.events += 1
        self._line("event", {"event": dict(document)})

    def answer(self, *, at: datetime, provider: str, call: Line, answer: Line) -> None:
        """Record what a provider answered."""
        self.counts.answers += 1
        self._line(
            "answer", {"at": at.isoformat(), "provider": provider, "call": call, "answer": answer}
        )

    def end(self) -> None:
        """End it."""
        self._line("end", self.counts.document())

    def _line(self, kind: str, document: Line) -> None:
        self._write(
            json.dumps({"kind": kind, **document}, separators=(",", ":"), ensure_ascii=False) + "\n"
        )


# ---------------------------------------------------------------------- reading
@dataclass(frozen=True, slots=True)
class Start:
    """How a recording begins."""

    by: str
    release: str
    at: str
    trace: bool
    config: Line


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """One session: what it was given, and what it said, as JSON."""

    number: int
    snapshot: Snapshot
    result: Line


@dataclass(frozen=True, slots=True)
class Other:
    """An event or an answer."""

    kind: str
    document: Line


Entry = Start | RecordedSession | Other


@dataclass(slots=True)
class RecordingReader:
    """Reads the lines of a recording, one after the other; holds one snapshot.

    Attributes:
        source: what errors call it.
        counts: what was read.
        whole: the recording says that it has ended, and all of it was there.
    """

    source: str
    counts: Counts = field(default_factory=Counts)
    whole: bool = False
    _snapshot: Snapshot | None = None
    _result: Line = field(default_factory=dict[str, Any])

    def entries(self, lines: Iterable[str]) -> Iterator[Entry]:
        """Yield what the lines hold.

        Raises:
            InputError: a line is none of a recording; it names the line.
        """
        number = 0
        for number, text in enumerate(lines, start=1):
            try:
                document: Any = json.loads(text)
            except ValueError as error:
                raise self._wrong(number, f"is not JSON: {error}") from None
            if not isinstance(document, dict):
                raise self._wrong(number, "wanted an object")
            made = self._entry(number, cast("Line", document))
            if made is not None:
                yield made
        if number == 0:
            raise InputError.of(self.source, "is empty; wanted a recording")

    def _entry(self, number: int, line: Line) -> Entry | None:
        kind = line.get("kind")
        if (number == 1) != (kind == "start"):
            raise self._wrong(number, "a recording has one start, in its first line")
        try:
            match kind:
                case "start":
                    if line["format"] != FORMAT:
                        raise self._wrong(number, f"is {line['format']!r}; wanted {FORMAT}")
                    return Start(
                        line["by"], line["release"], line["at"], line["trace"], line["config"]
                    )
                case "session":
                    return self._session(line)
                case "event":
                    self.counts.events += 1
                    return Other("event", line["event"])
                case "answer":
                    self.counts.answers += 1
                    return Other("answer", {k: v for k, v in line.items() if k != "kind"})
                case "end":
                    if {k: line[k] for k in self.counts.document()} != self.counts.document():
                        raise self._wrong(number, "lines are missing before the end")
                    self.whole = True
                    return None
                case _:
                    raise self._wrong(
                        number, f"is of kind {kind!r}, which this release does not know"
                    )
        except (KeyError, TypeError) as error:
            raise self._wrong(number, f"a field is missing or wrong: {error}") from None
        except InputError as error:
            raise InputError(
                self.source,
                [
                    Problem(problem.message, problem.path, problem.line or number)
                    for problem in error.problems
                ],
            ) from None

    def _session(self, line: Line) -> RecordedSession:
        self.counts.sessions += 1
        if line["number"] != self.counts.sessions:
            raise InputError.of(self.source, f"session {self.counts.sessions} is missing")
        if "snapshot" in line:
            snapshot = Snapshot.from_json(json.dumps(line["snapshot"]), self.source)
        elif self._snapshot is None:
            raise InputError.of(self.source, "a delta with no snapshot before it")
        else:
            delta = Delta.from_json(json.dumps(line["delta"]), self.source)
            snapshot = apply(self._snapshot, delta)
        self._snapshot = snapshot
        same = {name: self._result[name] for name in line["same"]}
        result: Line = {**same, **line["result"]}
        self._result = {name: result[name] for name in SessionResult.model_fields if name in result}
        return RecordedSession(line["number"], snapshot, self._result)

    def _wrong(self, number: int, message: str) -> InputError:
        return InputError(self.source, [Problem(message, line=number)])


# ------------------------------------------------------------------ verification
@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first place where a session that was run again says something else.

    Attributes:
        session: its number.
        now: of its snapshot.
        job: that the place is about; None: about no single one.
        path: of the place, such as ``demand.hosts[0].count``.
        recorded: what the recording says there, as JSON; None: nothing.
        found: what the session says now, as JSON; None: nothing.
    """

    session: int
    now: datetime
    job: str | None
    path: str
    recorded: str | None
    found: str | None


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
    """Run every session again and compare what it says, byte by byte; stop at the first difference.

    Raises:
        InputError: not a recording.
    """
    reader = RecordingReader(source)
    trace = False
    for entry in reader.entries(lines):
        match entry:
            case Start():
                trace = entry.trace
            case RecordedSession():
                result = run_session(
                    entry.snapshot, trace=trace, allocators=allocators(entry.snapshot)
                )
                found = mismatch(entry, result)
                if found is not None:
                    return Verdict(reader.counts, reader.whole, found)
                progress(entry.number)
            case Other():
                pass
    return Verdict(reader.counts, reader.whole, None)


def mismatch(session: RecordedSession, result: SessionResult) -> Mismatch | None:
    """Return the first difference between a recorded session and one that was run again; None: there is none."""
    again: Line = json.loads(result.to_json())
    if again == session.result and _text(again) == _text(session.result):
        return None
    for path, job, recorded, found in _differences(session.result, again, "", None):
        return Mismatch(session.number, session.snapshot.now, job, path, recorded, found)
    return None


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
