"""Recordings of several daemons as one: sessions and events of the scheduler driver, rounds and answers of the provisioners.

Each file keeps its order; between files time decides. A round is tied to the session whose demand it was given by the digest of that
session's result, where that session is one of the last before it.
"""

import heapq
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from xce.domain.errors import InputError
from xce.domain.formats.session_result import SessionResult
from xce.replay.recording import (
    Entry,
    Line,
    Other,
    RecordedSession,
    RecordingReader,
    RecordingWriter,
    Start,
)
from xce.replay.rounds import SESSIONS_BACK, RecordedRound
from xce.replay.views import Seen

_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Joined:
    """What came of it.

    Attributes:
        writer: counts what was written.
        tied: rounds that are about a session of the recording.
    """

    writer: RecordingWriter
    tied: int


def joined(sources: Iterable[tuple[str, Iterable[str]]], write: Callable[[str], None]) -> Joined:
    """Write several recordings, each a name and its lines, as one.

    Raises:
        InputError: one is no recording, or sessions were traced in one and not in another.
    """
    parts = [_Part(RecordingReader(name), iter(lines)) for name, lines in sources]
    starts = [part.begin() for part in parts]
    writer = RecordingWriter(
        write,
        by=", ".join(dict.fromkeys(start.by for start in starts)),
        release=", ".join(sorted({start.release for start in starts})),
        at=min(datetime.fromisoformat(start.at) for start in starts),
        config={"joined": [{"by": start.by, **start.config} for start in starts]},
        trace=_traced(parts, starts),
    )
    together = _Together(writer)
    for _, _, entry in heapq.merge(
        *(part.timed(number) for number, part in enumerate(parts)), key=lambda one: one[:2]
    ):
        together.add(entry)
    if all(part.reader.whole for part in parts):
        writer.end()
    return Joined(writer, together.tied)


def _traced(parts: "Iterable[_Part]", starts: Iterable[Start]) -> bool:
    """Return whether sessions were traced, by the files that have any."""
    traces = {start.trace for part, start in zip(parts, starts, strict=True) if part.has_sessions}
    if len(traces) > 1:
        raise InputError.of("recordings", "sessions were traced in one and not in another")
    return traces == {True}


@dataclass(slots=True)
class _Part:
    """One of the files."""

    reader: RecordingReader
    lines: Iterator[str]
    has_sessions: bool = False
    _entries: Iterator[Entry] = field(default_factory=lambda: iter(()))

    def begin(self) -> Start:
        self._entries = self.reader.entries(self.lines)
        start = next(self._entries)
        assert isinstance(start, Start), "a recording has one start, in its first line"
        self.has_sessions = start.by != "xce provisioner"
        return start

    def timed(self, number: int) -> Iterator[tuple[datetime, int, Entry]]:
        """Yield what is in it with its time, which never goes back."""
        latest = _LONG_AGO
        for entry in self._entries:
            latest = max(latest, _time_of(entry))
            yield latest, number, entry


def _time_of(entry: Entry) -> datetime:
    match entry:
        case RecordedSession():
            return entry.snapshot.now
        case Seen():
            return entry.supply.now
        case RecordedRound():
            return entry.inputs.now
        case Other():
            return datetime.fromisoformat(entry.document["at"])
        case Start():
            return datetime.fromisoformat(entry.at)


class _Together:
    """Writes what comes, from whichever file."""

    def __init__(self, writer: RecordingWriter) -> None:
        self.writer = writer
        self.tied = 0
        self._position = 0
        #: The last sessions, by the digest of their results.
        self._sessions: dict[str, int] = {}

    def add(self, entry: Entry) -> None:
        """Write an entry; events that another file had too are written once."""
        match entry:
            case RecordedSession():
                result = SessionResult.from_json(_text(entry.result), "result")
                self.writer.session(entry.snapshot, result)
                self._note(sha256(result.to_json().encode()).hexdigest())
            case Seen():
                self.writer.seen(entry.view, entry.supply, entry.observations, begins=entry.begins)
            case RecordedRound():
                session = self._sessions.get(entry.digest or "")
                self.tied += session is not None
                self.writer.round(
                    entry.inputs, entry.decisions, session=session, digest=entry.digest
                )
            case Other(kind="event"):
                if entry.document["position"] > self._position:
                    self._position = entry.document["position"]
                    self.writer.event(entry.document)
            case Other():
                said = entry.document
                self.writer.answer(
                    at=datetime.fromisoformat(said["at"]),
                    provider=said["provider"],
                    call=said["call"],
                    answer=said["answer"],
                )
            case Start():
                raise AssertionError("a recording has one start, in its first line")

    def _note(self, digest: str) -> None:
        number = self.writer.counts.sessions
        self._sessions = {
            known: session
            for known, session in self._sessions.items()
            if session > number - SESSIONS_BACK and known != digest
        }
        self._sessions[digest] = number


def _text(document: Line | Any) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)
