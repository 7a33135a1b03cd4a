"""Something that was kept of a course of events, moment by moment: the sessions of a recording, or the events of a log.

A moment of a recording is a session, with the events before it and the rounds of the policy after it; one of a log is what was written
at one time. Only the present moment is held, and what all events up to it come to. Who wants to go back goes on from a place before it.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, Final, Protocol

from xce.domain.errors import BrokenLogError, InputError
from xce.domain.events.recorded import Recorded
from xce.domain.events.stored import EVENTS
from xce.domain.formats.policy import Decision
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import Host, PendingJob, RunningJob, Snapshot
from xce.projections.all import Projections
from xce.replay.history import History
from xce.replay.recording import Entry, Line, Other, RecordedSession, RecordingReader
from xce.replay.rounds import RecordedRound

_NO_DIGEST: Final = b""


@dataclass(slots=True)
class Moment:
    """What happened together.

    Attributes:
        events: before the session.
        rounds: of the policy, after it.
        answers: of providers, how many.
    """

    events: list[Recorded] = field(default_factory=list[Recorded])
    session: RecordedSession | None = None
    rounds: list[RecordedRound] = field(default_factory=list[RecordedRound])
    answers: int = 0

    @property
    def at(self) -> datetime | None:
        """Its time; None: nothing of it has one."""
        if self.session is not None:
            return self.session.snapshot.now
        if self.rounds:
            return self.rounds[-1].inputs.now
        return self.events[-1].event.timestamp if self.events else None

    @property
    def starts(self) -> tuple[str, ...]:
        """The jobs that its session starts."""
        if self.session is None:
            return ()
        return tuple(one["job"] for one in self.session.result["allocations"])


class Kept(Protocol):
    """What was kept of a course of events; it can be gone through again and again."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def has_sessions(self) -> bool:
        """Whether there are sessions in it."""
        ...

    def moments(self) -> "Moments":
        """Return all moments from the first one."""
        ...


class Moments(Protocol):
    """Moments, one after the other."""

    def following(self) -> Moment | None:
        """Return the next one; None: there is none.

        Raises:
            InputError, BrokenLogError: it cannot be read.
        """
        ...

    def mark(self) -> "Callable[[], Moments]":
        """Return what yields the moments that follow now, again and again."""
        ...


@dataclass(frozen=True, slots=True)
class KeptRecording:
    """A recording; ``lines`` reads it from its beginning."""

    name: str
    lines: Callable[[], Iterable[str]]
    has_sessions: bool = True

    def moments(self) -> "Moments":
        """See ``Kept.moments``."""
        return _OfRecording(self, RecordingReader(self.name), None)

    def event_of(self, entry: Line) -> Recorded:
        """Return an event as the log had it.

        Raises:
            InputError: it is none that this release knows.
        """
        fields: dict[str, Any] = {
            "originator_id": entry["aggregate"],
            "originator_version": entry["version"],
            "timestamp": entry["at"],
            "by": entry["by"],
            **entry["data"],
        }
        try:
            event = EVENTS.decode(
                entry["position"],
                entry["aggregate"],
                entry["version"],
                entry["name"],
                json.dumps(fields).encode(),
            )
        except BrokenLogError as error:
            raise InputError.of(self.name, str(error)) from None
        return Recorded(entry["position"], event, _NO_DIGEST)


@dataclass(frozen=True, slots=True)
class KeptLog:
    """A log; ``events`` reads what is after a position."""

    name: str
    events: Callable[[int], Iterable[Recorded]]
    has_sessions: bool = False

    def moments(self) -> "Moments":
        """See ``Kept.moments``."""
        return _OfLog(self, 0)


class _OfRecording:
    """Fulfils ``Moments``: reads on from where a reader stands; ``begun`` is what it read last, of a moment that has just begun."""

    def __init__(self, kept: KeptRecording, reader: RecordingReader, begun: Entry | None) -> None:
        self._kept = kept
        self._reader = reader
        self._begun = begun
        self._entries = reader.entries(islice(kept.lines(), reader.lines, None))

    def following(self) -> Moment | None:
        moment = Moment()
        entry = self._begun or next(self._entries, None)
        self._begun = None
        while entry is not None:
            begins = isinstance(entry, RecordedSession) or (
                isinstance(entry, Other) and entry.kind == "event"
            )
            if begins and (moment.session is not None or moment.rounds):
                self._begun = entry
                return moment
            self._add(moment, entry)
            entry = next(self._entries, None)
        return None if moment.at is None else moment

    def mark(self) -> Callable[[], Moments]:
        kept, reader, begun = self._kept, self._reader.copy(), self._begun
        return lambda: _OfRecording(kept, reader.copy(), begun)

    def _add(self, moment: Moment, entry: Entry) -> None:
        match entry:
            case Other(kind="event"):
                moment.events.append(self._kept.event_of(entry.document))
            case RecordedSession():
                moment.session = entry
            case RecordedRound():
                moment.rounds.append(entry)
            case Other():
                moment.answers += 1
            case _:
                pass


class _OfLog:
    """Fulfils ``Moments``."""

    def __init__(self, kept: KeptLog, after: int) -> None:
        self._kept = kept
        self._after = after
        self._events = iter(kept.events(after))
        self._begun: Recorded | None = None

    def following(self) -> Moment | None:
        moment = Moment()
        recorded = self._begun or next(self._events, None)
        self._begun = None
        while recorded is not None:
            if moment.events and recorded.event.timestamp != moment.at:
                self._begun = recorded
                break
            moment.events.append(recorded)
            recorded = next(self._events, None)
        if not moment.events:
            return None
        self._after = moment.events[-1].position
        return moment

    def mark(self) -> Callable[[], Moments]:
        return partial(_OfLog, self._kept, self._after)


class WalkedSession:
    """Fulfils ``SeenSession``: what it said is read when somebody wants it."""

    def __init__(
        self, session: RecordedSession | None, number: int, decisions: tuple[Decision, ...]
    ) -> None:
        self._session = session
        self._result: SessionResult | None = None
        self.sessions = number
        self.decisions = decisions

    def then(self, decisions: tuple[Decision, ...]) -> "WalkedSession":
        """Return the same session, with what a later round decided."""
        return WalkedSession(self._session, self.sessions, decisions)

    @property
    def snapshot(self) -> Snapshot | None:
        """See ``SeenSession.snapshot``."""
        return None if self._session is None else self._session.snapshot

    @property
    def result(self) -> SessionResult | None:
        """See ``SeenSession.result``."""
        if self._result is None and self._session is not None:
            self._result = SessionResult.from_json(json.dumps(self._session.result))
        return self._result


@dataclass(frozen=True, slots=True)
class Place:
    """Where a walk stood, so that another one can go on from there.

    Attributes:
        events: of the walk, the first ``count`` of which were up to here.
        following: makes the moments after it.
    """

    steps: int
    moment: Moment
    seen: WalkedSession
    now: datetime | None
    events: Sequence[Recorded]
    count: int
    following: Callable[[], Moments]

    @property
    def position(self) -> int:
        """The last event's; 0: there was none."""
        return self.events[self.count - 1].position if self.count else 0


class Walk:
    """Stands in what was kept, before its first moment or after one; fulfils ``Stand``."""

    def __init__(self, kept: Kept, moments: Moments | None = None) -> None:
        self.kept = kept
        self.moment = Moment()
        self.steps = 0
        self.is_over = False
        self.seen = WalkedSession(None, 0, ())
        self.projections = Projections()
        self.history = History()
        self._events: list[Recorded] = []
        #: Why the events come to nothing; None: they do.
        self.no_books: str | None = None
        self._moments = kept.moments() if moments is None else moments
        self._now: datetime | None = None

    def step(self) -> bool:
        """Go on to the next moment; return False where there is none.

        Raises:
            InputError, BrokenLogError: what was kept cannot be read from here on.
        """
        moment = self._moments.following()
        if moment is None:
            self.is_over = True
            return False
        self.steps += 1
        self.moment = moment
        self._now = moment.at or self._now
        self._take(moment.events)
        decisions = tuple(one for entry in moment.rounds for one in entry.decisions)
        if moment.session is not None:
            self.seen = WalkedSession(moment.session, moment.session.number, decisions)
        elif moment.rounds:
            self.seen = self.seen.then(decisions)
        return True

    def place(self) -> Place:
        """Return where it stands."""
        return Place(
            self.steps, self.moment, self.seen, self._now, self._events, len(self._events), self._moments.mark(),
        )  # fmt: skip

    @classmethod
    def at(cls, kept: Kept, place: Place) -> "Walk":
        """Return a walk that stands where another one stood; what the events come to is made of them again."""
        walk = cls(kept, place.following())
        walk.steps, walk.moment, walk.seen = place.steps, place.moment, place.seen
        walk._now = place.now
        walk._take([*place.events[: place.count]])
        return walk

    def _take(self, events: list[Recorded]) -> None:
        if self.no_books is None:
            after = self.projections.position
            following = [one for n, one in enumerate(events, start=after + 1) if one.position == n]
            self.projections.apply(following)
            for recorded in following:
                self.history.apply(recorded.event)
            if len(following) < len(events):
                missing = events[len(following)].position
                self.no_books = f"the events before {missing} were not kept"
        self._events += events

    # -------------------------------------------------------------------- stand
    @property
    def now(self) -> datetime:
        """The time of the moment; before the first one there is none.

        Raises:
            InputError: it is before the first moment.
        """
        if self._now is None:
            raise InputError.of(self.kept.name, "stands before its first moment; try: step")
        return self._now

    @property
    def events(self) -> Sequence[Recorded]:
        """See ``Stand.events``."""
        return self._events

    @property
    def position(self) -> int:
        """The last event's; 0: there was none."""
        return self._events[-1].position if self._events else 0

    @property
    def running(self) -> tuple[RunningJob, ...]:
        """See ``Stand.running``."""
        return () if self.seen.snapshot is None else self.seen.snapshot.running

    @property
    def pending(self) -> tuple[PendingJob, ...]:
        """See ``Stand.pending``."""
        return () if self.seen.snapshot is None else self.seen.snapshot.pending

    @property
    def hosts(self) -> tuple[Host, ...]:
        """See ``Stand.hosts``."""
        return () if self.seen.snapshot is None else self.seen.snapshot.hosts

    def fate(self, job: str) -> str:
        """See ``Stand.fate``."""
        if not self.kept.has_sessions:
            return "is known only by what was asked for it: a log has no sessions"
        return "neither waits nor runs here"
