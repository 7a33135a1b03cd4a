"""Time travel: the state of everything at a position of a log, or at a time.

The state is a fold over the events up to there and nothing else: no clock, no provider, no configuration. "Now" is the time of the last
event that was folded, or the time that was asked for. Checkpoints shorten the fold: what was folded up to a position, kept by somebody
else (``Checkpoints``) and only used where the log still has the event with that digest. With and without them the answer is equal.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol

from xce.domain.errors import BrokenLogError, NotFoundError
from xce.domain.events import ids
from xce.domain.events.base import Aggregate
from xce.domain.events.digest import GENESIS
from xce.domain.events.document import document_of
from xce.domain.events.recorded import Head, Recorded
from xce.domain.ports import EventLog
from xce.projections.all import Projections
from xce.projections.document import Document
from xce.projections.document import document_of as document_of_projections

#: A checkpoint is due so many positions behind the one before.
CHECKPOINT_EVERY: Final = 25_000


@dataclass(frozen=True, slots=True)
class Summary:
    """What was folded up to a position, aggregates aside.

    Attributes:
        position: of the last event.
        digest: the chain's digest up to there.
        at: time of the last event; None: there was none.
        events: how many, by stored name.
        states: how many aggregates, by kind and state: ``request complete``.
        projections: as ``Projections.keep`` returned it.
    """

    position: int
    digest: bytes
    at: datetime | None
    events: Mapping[str, int]
    states: Mapping[str, int]
    projections: Mapping[str, bytes]


class Base(Protocol):
    """Where a fold begins: a checkpoint, or the empty log."""

    @property
    def summary(self) -> Summary:
        """What was folded up to here, aggregates aside."""
        ...

    def aggregate(self, aggregate_id: str) -> Aggregate[Any] | None:
        """Return an aggregate as it stood; None: it had no event yet."""
        ...

    def document(self, aggregate_id: str) -> bytes | None:
        """Return its document (``domain/events/document.py``); None: it had no event yet."""
        ...

    def documents(self, kind: str | None) -> Iterator[tuple[str, bytes]]:
        """Yield all documents, or those of one kind, by id, in the order of the ids."""
        ...

    def changed(self, since: int) -> set[str]:
        """Return at least the ids that had an event behind ``since``, which is 0 or the position of an earlier checkpoint."""
        ...


class Checkpoints(Protocol):
    """Keeps what was folded. All of it may be lost at any time."""

    def latest(self, upto: int) -> Base | None:
        """Return the last checkpoint at or before a position whose event the log still has; None: there is none."""
        ...

    def keep(self, summary: Summary, changed: Mapping[str, Aggregate[Any]]) -> Base | None:
        """Keep a checkpoint, given the aggregates that changed since the one before, and return it; None: it could not be kept."""
        ...


class _Beginning:
    """The empty log."""

    def __init__(self) -> None:
        self.summary = Summary(0, GENESIS, None, {}, {}, Projections().keep())

    def aggregate(self, aggregate_id: str) -> Aggregate[Any] | None:
        return None

    def document(self, aggregate_id: str) -> bytes | None:
        return None

    def documents(self, kind: str | None) -> Iterator[tuple[str, bytes]]:
        return iter(())

    def changed(self, since: int) -> set[str]:
        return set()


class NoCheckpoints:
    """Every fold begins at the first event."""

    def latest(self, upto: int) -> Base | None:
        """Return nothing."""
        return None

    def keep(self, summary: Summary, changed: Mapping[str, Aggregate[Any]]) -> Base | None:
        """Keep nothing."""
        return None


@dataclass(frozen=True, slots=True)
class Moment:
    """The state of everything at one position.

    Attributes:
        head: position and digest of the last event up to there; in a log with holes the position may be before the one asked for.
        now: time of that event, or the time asked for; None: nothing had happened.
        events: how many events there were, by stored name.
        states: how many aggregates there were, by kind and state: ``request complete``.
        projections: totals, inventory, catalog and spending.
    """

    head: Head
    now: datetime | None
    events: Mapping[str, int]
    states: Mapping[str, int]
    projections: Projections
    _base: Base
    _folded: Mapping[str, Aggregate[Any]] = field(repr=False)

    def aggregate(self, aggregate_id: str) -> bytes | None:
        """Return the document of an aggregate; None: it had no event yet."""
        folded = self._folded.get(aggregate_id)
        return self._base.document(aggregate_id) if folded is None else document_of(folded)

    def aggregates(self, kind: str | None = None) -> Iterator[tuple[str, bytes]]:
        """Yield the documents of all aggregates, or of those of one kind, by id, in the order of the ids."""
        folded = iter(
            sorted(name for name in self._folded if kind is None or ids.kind_of(name) == kind)
        )
        following = next(folded, None)
        for name, document in self._base.documents(kind):
            while following is not None and following < name:
                yield following, document_of(self._folded[following])
                following = next(folded, None)
            if following == name:
                continue  # it has changed since; the loop above yields it with the next name
            yield name, document
        while following is not None:
            yield following, document_of(self._folded[following])
            following = next(folded, None)

    def views(self) -> Document:
        """Return what the projections say, as a plain document."""
        return document_of_projections(self.projections, self.now)

    def document(self) -> Document:
        """Return all of it as one plain document; of a large log this is large."""
        aggregates = {name: json.loads(text) for name, text in self.aggregates()}
        return {**self.views(), "aggregates": aggregates}

    def changed_since(self, earlier: "Moment") -> set[str]:
        """Return at least the ids of the aggregates that had an event since an earlier moment of the same log."""
        since = earlier._base.summary.position
        return self._base.changed(since) | earlier._folded.keys() | self._folded.keys()


class TimeTravel:
    """Answers for one log; it may grow meanwhile."""

    def __init__(
        self,
        log: EventLog,
        checkpoints: Checkpoints | None = None,
        *,
        source: str = "the log",
        every: int = CHECKPOINT_EVERY,
    ) -> None:
        """Make it.

        Args:
            log: open, for reading is enough.
            checkpoints: those of this log; None: none are used or made.
            source: what errors call the log.
            every: positions between two checkpoints.
        """
        self._log = log
        self._checkpoints = checkpoints or NoCheckpoints()
        self.source = source
        self._every = every

    def head(self) -> Head:
        """Return the end of the log.

        Raises:
            NotFoundError: the log is empty.
        """
        head = self._log.head()
        if not head.position:
            raise NotFoundError(f"{self.source} has no events")
        return head

    def at(self, position: int, *, now: datetime | None = None) -> Moment:
        """Return the state after the event at a position; 0 is before the first one.

        Args:
            position: of the log.
            now: the time to say costs and pauses for; None: that of the event.

        Raises:
            NotFoundError: the log is empty, or ends before the position.
            BrokenLogError: an event is unknown, damaged or missing; it names the position.
        """
        head = self.head()
        if not 0 <= position <= head.position:
            raise NotFoundError(
                f"{self.source} has no position {position}; it ends at {head.position}"
            )
        base = self._checkpoints.latest(position) or _Beginning()
        fold = _Fold(base)
        due = base.summary.position + self._every
        while due <= position:
            fold.apply(self._log.read(fold.head.position, due))
            fold.keep_in(self._checkpoints)
            due += self._every
        fold.apply(self._log.read(fold.head.position, position))
        self._require_end(fold.head, position, head)
        return fold.moment(now)

    def at_time(self, when: datetime) -> Moment:
        """Return the state at a time: after the last event that is not later. Times behind the end are the end.

        Raises:
            NotFoundError: the log is empty, or begins after the time.
            BrokenLogError: an event is unknown, damaged or missing.
        """
        return self.at(self.position_of(when), now=when)

    def position_of(self, when: datetime) -> int:
        """Return the position of the last event that is not later than a time; stamps never go back in a log.

        Raises:
            NotFoundError: the log is empty, or begins after the time.
            BrokenLogError: an event on the way there cannot be read.
        """
        head = self.head()
        first = self._first(0, head.position)
        if first.event.timestamp > when:
            raise NotFoundError(
                f"{self.source} begins at {_shown(first.event.timestamp)}, after {_shown(when)}"
            )
        # Whatever is at or before ``low`` is not later; whatever is behind ``high`` is.
        low, high = first.position, head.position
        while low < high:
            middle = (low + high + 1) // 2
            found = self._first(middle - 1, head.position)
            if found.event.timestamp <= when:
                low = found.position
            else:
                high = middle - 1
        return low

    def _first(self, after: int, upto: int) -> Recorded:
        """Return the first event behind a position; mostly the next one."""
        for end in (after + 1, upto):
            for recorded in self._log.read(after, end):
                return recorded
        raise BrokenLogError(
            f"event {after + 1} is missing: {self.source} ends before its head, {upto}", after + 1
        )

    def _require_end(self, reached: Head, position: int, head: Head) -> None:
        if reached.position == position == head.position and reached.digest != head.digest:
            raise BrokenLogError(f"event {position} does not have the digest of the head", position)
        if reached.position < position:
            self._first(reached.position, head.position)  # a hole has something behind it


class _Fold:
    """A fold that goes on."""

    def __init__(self, base: Base) -> None:
        summary = base.summary
        self._base = base
        self.head = Head(summary.position, summary.digest)
        self._at = summary.at
        self._events = Counter(summary.events)
        self._states = Counter(summary.states)
        self._projections = Projections.resumed(summary.position, summary.projections)
        #: As they stood at the base; those of them that are at hand.
        self._known: dict[str, Aggregate[Any]] = {}
        #: Those that had an event since.
        self._changed: dict[str, Aggregate[Any]] = {}
        self._next = self.head.position

    def apply(self, events: Iterable[Recorded]) -> None:
        """Fold events behind the position reached.

        Raises:
            BrokenLogError: one of them does not follow.
        """
        try:
            self._projections.apply(self._taken(events))
        except BrokenLogError as error:
            if error.position is not None:
                raise
            raise BrokenLogError(f"event {self._next}: {error}", self._next) from None
        except (LookupError, AssertionError, ArithmeticError, AttributeError) as error:
            # What the events of a whole log never do: one before this is missing, or was changed.
            raise BrokenLogError(
                f"event {self._next} does not fit what is before it: {error!r}", self._next
            ) from error

    def _taken(self, events: Iterable[Recorded]) -> Iterator[Recorded]:
        for recorded in events:
            self._next = recorded.position
            self._take(recorded)
            yield recorded

    def _take(self, recorded: Recorded) -> None:
        event = recorded.event
        name = event.originator_id
        before = self._changed.get(name)
        if before is None:
            before = self._known.get(name) or self._base.aggregate(name)
        old = None if before is None else before.state
        after = event.mutate(before)
        assert after is not None, "an event never ends an aggregate"
        if after.state is not old:
            self._states[f"{after.KIND} {after.state}"] += 1
            if old is not None:
                self._states[f"{after.KIND} {old}"] -= 1
        self._changed[name] = after
        self._events[event.TOPIC] += 1
        self._at = event.timestamp
        self.head = Head(recorded.position, recorded.digest)

    def keep_in(self, checkpoints: Checkpoints) -> None:
        """Keep what was folded, and go on from there: what has not changed for long need not stay in memory."""
        if self.head.position == self._base.summary.position:
            return
        summary = Summary(
            position=self.head.position,
            digest=self.head.digest,
            at=self._at,
            events=dict(self._events),
            states=dict(+self._states),
            projections=self._projections.keep(),
        )
        kept = checkpoints.keep(summary, self._changed)
        if kept is not None:
            self._base, self._known, self._changed = kept, self._changed, {}

    def moment(self, now: datetime | None) -> Moment:
        """Return the state reached."""
        return Moment(
            head=self.head,
            now=now or self._at,
            events=dict(self._events),
            states=dict(+self._states),
            projections=self._projections,
            _base=self._base,
            _folded=self._changed,
        )


def _shown(when: datetime) -> str:
    return when.isoformat().replace("+00:00", "Z")
