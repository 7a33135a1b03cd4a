"""Something that was kept of a course of events, moment by moment: the sessions of a recording, or the events of a log.

A moment of a recording is a session, with the events before it and the rounds of the policy after it; one of a log is what was written
at one time. Only the present moment is held, and what all events up to it come to. Who wants to go back begins again.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol

from xce.domain.errors import BrokenLogError, InputError
from xce.domain.events.recorded import Recorded
from xce.domain.events.stored import EVENTS
from xce.domain.formats.policy import Decision
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import Host, PendingJob, RunningJob, Snapshot
from xce.projections.all import Projections
from xce.replay.history import History
from xce.replay.recording import Line, Other, RecordedSession, RecordingReader
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

    def moments(self) -> Iterator[Moment]:
        """Yield all moments from the first one.

        Raises:
            InputError, BrokenLogError: it cannot be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class KeptRecording:
    """A recording; ``lines`` reads it from its beginning."""

    name: str
    lines: Callable[[], Iterable[str]]
    has_sessions: bool = True

    def moments(self) -> Iterator[Moment]:
        """See ``Kept.moments``."""
        moment = Moment()
        for entry in RecordingReader(self.name).entries(self.lines()):
            match entry:
                case Other(kind="event"):
                    if moment.session is not None or moment.rounds:
                        yield moment
                        moment = Moment()
                    moment.events.append(self._event(entry.document))
                case RecordedSession():
                    if moment.session is not None or moment.rounds:
                        yield moment
                        moment = Moment()
                    moment.session = entry
                case RecordedRound():
                    moment.rounds.append(entry)
                case Other():
                    moment.answers += 1
                case _:
                    pass
        if moment.at is not None:
            yield moment

    def _event(self, entry: Line) -> Recorded:
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
    """A log; ``events`` reads it from its beginning."""

    name: str
    events: Callable[[], Iterable[Recorded]]
    has_sessions: bool = False

    def moments(self) -> Iterator[Moment]:
        """See ``Kept.moments``."""
        moment = Moment()
        for recorded in self.events():
            if moment.events and recorded.event.timestamp != moment.at:
                yield moment
                moment = Moment()
            moment.events.append(recorded)
        if moment.events:
            yield moment


class WalkedSession:
    """Fulfils ``SeenSession``: what it said is read when somebody wants it."""

    def __init__(
        self, session: RecordedSession | None, number: int, decisions: tuple[Decision, ...]
    ) -> None:
        self._session = session
        self._result: SessionResult | None = None
        self.sessions = number
        self.decisions = decisions

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


class Walk:
    """Stands in what was kept, before its first moment or after one; fulfils ``Stand``."""

    def __init__(self, kept: Kept) -> None:
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
        self._moments = kept.moments()
        self._now: datetime | None = None

    def step(self) -> bool:
        """Go on to the next moment; return False where there is none.

        Raises:
            InputError, BrokenLogError: what was kept cannot be read from here on.
        """
        moment = next(self._moments, None)
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
            self.seen.decisions = decisions
        return True

    def _take(self, events: list[Recorded]) -> None:
        if events and self.no_books is None:
            first = events[0].position
            if first != self.projections.position + 1:
                self.no_books = f"the events before {first} were not kept"
            else:
                self.projections.apply(events)
                for recorded in events:
                    self.history.apply(recorded.event)
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
