"""Recordings: what a driver saw and published, so that it can be run again, elsewhere and later (SPEC R2, R3).

A recording is lines of JSON, ``xce.recording/1``, kept compressed:

- ``start``: who recorded, which release, its configuration, whether sessions were traced
- ``session``: the snapshot (whole, or as a delta to the one before) and the result; top-level fields of a result that are as in
  the one before are only named
- ``seen``: what a live driver made the next session's snapshot of: the batch system's view, the log's supply, observations
- ``round``: what the policy was given, as what is different from the round before, and what it decided
- ``event``: an event of the log
- ``answer``: what a provider answered to a call
- ``end``: how many of each there were; a recording without it was cut off, and holds up to where it was cut
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, cast

from xce.domain.errors import InputError, Problem
from xce.domain.formats.delta import Delta, apply, difference
from xce.domain.formats.policy import Decision, Decisions, PolicyInput
from xce.domain.formats.rest import Observations, Supply
from xce.domain.formats.session_result import Demand, Idle, SessionResult
from xce.domain.formats.snapshot import Snapshot
from xce.replay import line_checks
from xce.replay.rounds import SESSIONS_BACK, InventoryChanges, RecordedRound, Rounds
from xce.replay.views import Seen, Views

FORMAT: Final = "xce.recording/1"
#: A session has its whole snapshot after so many deltas, so that a part can be read by itself.
WHOLE_EVERY: Final = 1000

Line = dict[str, Any]


@dataclass(slots=True)
class Counts:
    """How many of each kind there are."""

    sessions: int = 0
    rounds: int = 0
    events: int = 0
    answers: int = 0

    def document(self) -> Line:
        """Return them as JSON."""
        return {
            "sessions": self.sessions,
            "rounds": self.rounds,
            "events": self.events,
            "answers": self.answers,
        }


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
        self._rounds = Rounds()
        self._views = Views()
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
        # Each field by itself: {"name":value} without its braces.
        now = {
            name: result.model_dump_json(include={name})[1:-1]
            for name in SessionResult.model_fields
        }
        same = [name for name, text in now.items() if self._result.get(name) == text]
        new = ",".join(text for name, text in now.items() if name not in same)
        self._result = now
        parts.append(f'"same":{json.dumps(same)},"result":{{{new}}}')
        self._write("{" + ",".join(parts) + "}\n")

    def seen(
        self,
        view: Snapshot | None,
        supply: Supply,
        observations: Observations | None,
        *,
        begins: bool = False,
    ) -> None:
        """Record what the next session's snapshot is made of; ``begins``: by a driver that remembers nothing before it."""
        self._write(self._views.line(view, supply, observations, begins=begins) + "\n")

    def round(
        self,
        inputs: PolicyInput,
        decisions: Iterable[Decision],
        *,
        session: int | None = None,
        digest: str | None = None,
    ) -> None:
        """Record a round of the policy.

        Args:
            inputs: what it was given.
            decisions: what it decided.
            session: whose demand and idle supply it was given, if that is one of the last ones.
            digest: of the result of that session, for a round whose sessions another file has.
        """
        self.counts.rounds += 1
        line = self._rounds.line(
            self.counts.rounds, inputs, decisions, session=session, digest=digest
        )
        self._write(line + "\n")

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


Entry = Start | Seen | RecordedSession | RecordedRound | Other


@dataclass(frozen=True, slots=True)
class _Read:
    """Demand and idle supply, as JSON and read: one reading serves as long as they stay the same."""

    demand: object
    idle: object
    said: tuple[Demand, Idle]


@dataclass(slots=True)
class RecordingReader:
    """Reads the lines of a recording, one after the other; holds one snapshot.

    Attributes:
        source: what errors call it.
        counts: what was read.
        lines: how many lines that were.
        whole: the recording says that it has ended, and all of it was there.
    """

    source: str
    counts: Counts = field(default_factory=Counts)
    lines: int = 0
    whole: bool = False
    _snapshot: Snapshot | None = None
    _result: Line = field(default_factory=dict[str, Any])
    #: Results of the last sessions, by number.
    _recent: dict[int, Line] = field(default_factory=dict[int, Line])
    _read: "_Read | None" = None
    _rounds: Rounds = field(default_factory=Rounds)
    _views: Views = field(default_factory=Views)

    def copy(self) -> "RecordingReader":
        """Return another one that stands at the same line, to read on from there."""
        return replace(
            self,
            counts=replace(self.counts),
            _recent=dict(self._recent),
            _rounds=copy(self._rounds),
            _views=self._views.copy(),
        )

    def entries(self, lines: Iterable[str]) -> Iterator[Entry]:
        """Yield what the lines hold that follow on those which were read.

        Raises:
            InputError: a line is none of a recording; it names the line.
        """
        for number, text in enumerate(lines, start=self.lines + 1):
            self.lines = number
            try:
                document: Any = json.loads(text)
            except ValueError as error:
                wanted = "; wanted a recording" if number == 1 else ""
                raise self._wrong(number, f"is not JSON: {error}{wanted}") from None
            except RecursionError:
                raise self._wrong(number, "is nested too deep") from None
            if not isinstance(document, dict):
                raise self._wrong(number, "wanted an object")
            made = self._entry(number, cast("Line", document))
            if made is not None:
                yield made
        if self.lines == 0:
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
                        line_checks.text(line["by"], "by"),
                        line_checks.text(line["release"], "release"),
                        line_checks.time(line["at"], "at"),
                        bool(line["trace"]),
                        line_checks.document(line["config"], "config"),
                    )
                case "session":
                    return self._session(line)
                case "seen":
                    return self._views.read(line, self.source)
                case "round":
                    return self._round(line)
                case "event":
                    self.counts.events += 1
                    return Other("event", line_checks.event(line["event"]))
                case "answer":
                    self.counts.answers += 1
                    return Other("answer", line_checks.answer(line))
                case "end":
                    if not self._is_all(line):
                        raise self._wrong(number, "lines are missing before the end")
                    self.whole = True
                    return None
                case _:
                    raise self._wrong(
                        number, f"is of kind {kind!r}, which this release does not know"
                    )
        except (KeyError, TypeError) as error:
            raise self._wrong(number, f"a field is missing or wrong: {error}") from None
        except RecursionError:
            raise self._wrong(number, "is nested too deep") from None
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
        self._recent[self.counts.sessions] = self._result
        if len(self._recent) > SESSIONS_BACK:
            del self._recent[next(iter(self._recent))]
        return RecordedSession(line["number"], snapshot, self._result)

    def _round(self, line: Line) -> RecordedRound:
        self.counts.rounds += 1
        if line["number"] != self.counts.rounds:
            raise InputError.of(self.source, f"round {self.counts.rounds} is missing")
        decided: Decisions | None = None
        if "decisions" in line:
            text = json.dumps({"decisions": line["decisions"]})
            decided = Decisions.from_json(text, self.source)
        session: int | None = line.get("session")
        return self._rounds.read(
            line["number"],
            PolicyInput.from_json(json.dumps(line["input"]), self.source),
            InventoryChanges.from_json(json.dumps(line.get("inventory", {})), self.source),
            decided,
            session=session,
            digest=line.get("digest"),
            said=None if session is None else self._said_in(session),
        )

    def _said_in(self, session: int) -> tuple[Demand, Idle]:
        """Return demand and idle supply of one of the last sessions."""
        result = self._recent.get(session)
        if result is None:
            raise InputError.of(self.source, f"session {session} is not just before its round")
        demand, idle = result["demand"], result["idle"]
        known = self._read
        if known is None or known.demand is not demand or known.idle is not idle:
            known = self._read = _Read(
                demand,
                idle,
                (
                    Demand.from_json(json.dumps(demand), self.source),
                    Idle.from_json(json.dumps(idle), self.source),
                ),
            )
        return known.said

    def _is_all(self, end: Line) -> bool:
        """Return whether an end counts what was read; recordings of old have no rounds."""
        counts = self.counts.document()
        return {
            name: end[name] if name != "rounds" else end.get(name, 0) for name in counts
        } == counts

    def _wrong(self, number: int, message: str) -> InputError:
        return InputError(self.source, [Problem(message, line=number)])
