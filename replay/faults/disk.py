"""The disk of all controllers: one log with fences, that can fail before it has saved, or after."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, TypeVar, cast

from xce.domain.errors import ConflictError, NotFoundError, StaleEpochError, TransientError
from xce.domain.events.base import Aggregate, DomainEvent, fold
from xce.domain.events.recorded import Head, Recorded
from xce.domain.provisioning.lease import LeaseState, ProviderLease

A = TypeVar("A", bound=Aggregate[Any])

PRIMARY: Final = "primary"
_NO_DIGEST: Final = b""


class Fate(StrEnum):
    """What becomes of one append."""

    SAVED = "saved"
    REFUSED = "refused"
    UNHEARD = "saved, and nobody hears of it"


class Disk:
    """What is durable. Every controller has a ``DiskLog`` on it."""

    def __init__(self) -> None:
        self.recorded: list[Recorded] = []
        self.fences: dict[str, int] = {}
        self.events_of: dict[str, list[DomainEvent]] = {}
        #: Told of each append, at the moment it is durable.
        self.on_saved: Callable[[Sequence[Recorded]], None] = lambda recorded: None

    def save(
        self, events: Sequence[DomainEvent], expected: Mapping[str, int], moves: Mapping[str, int]
    ) -> Sequence[Recorded]:
        """Save all or nothing, after comparing the fences and versions."""
        for name, mine in expected.items():
            current = self.fences.get(name, 0)
            if current != mine:
                raise StaleEpochError(name, mine, current)
        versions: dict[str, int] = {}
        for event in events:
            name = event.originator_id
            before = versions.get(name, len(self.events_of.get(name, ())))
            if event.originator_version != before + 1:
                raise ConflictError(f"{name} version {event.originator_version} is taken")
            versions[name] = before + 1
        position = len(self.recorded)
        new = [Recorded(position + 1 + i, one, _NO_DIGEST) for i, one in enumerate(events)]
        self.recorded += new
        for event in events:
            self.events_of.setdefault(event.originator_id, []).append(event)
        for name, epoch in moves.items():
            self.fences[name] = max(epoch, self.fences.get(name, 0))
        self.on_saved(new)
        return new


class DiskLog:
    """Fulfils ``EventLog`` for one controller."""

    def __init__(self, disk: Disk, fate: Callable[[], Fate] = lambda: Fate.SAVED) -> None:
        self._disk = disk
        self._fate = fate

    def append(
        self, aggregates: Sequence[Aggregate[Any]], *, fences: Mapping[str, int] | None = None
    ) -> Sequence[Recorded]:
        """See ``EventLog.append``."""
        events = [event for aggregate in aggregates for event in aggregate.new_events()]
        if not events:
            return ()
        fate = self._fate()
        if fate is Fate.REFUSED:
            raise TransientError("the disk is full")
        recorded = self._disk.save(events, fences or {}, _moves(aggregates))
        for aggregate in aggregates:
            aggregate.pending_events.clear()
        if fate is Fate.UNHEARD:
            raise TransientError("the disk did not answer: the outcome is not known")
        return recorded

    def get(self, aggregate_class: type[A], aggregate_id: str) -> A:
        """See ``EventLog.get``."""
        events = self._disk.events_of.get(aggregate_id)
        if not events:
            raise NotFoundError(f"{aggregate_id} is not on the disk")
        made = fold(cast("Aggregate[Any] | None", None), events)
        assert isinstance(made, aggregate_class), f"{aggregate_id} is not {aggregate_class}"
        return made

    def read(self, after: int = 0, upto: int | None = None) -> Iterator[Recorded]:
        """See ``EventLog.read``."""
        yield from self._disk.recorded[after:upto]

    def head(self) -> Head:
        """See ``EventLog.head``; without a digest."""
        return Head(len(self._disk.recorded), _NO_DIGEST)

    def fence(self, name: str) -> int:
        """See ``EventLog.fence``."""
        return self._disk.fences.get(name, 0)

    def take_primary(self) -> int:
        """See ``EventLog.take_primary``."""
        self._disk.fences[PRIMARY] = self.fence(PRIMARY) + 1
        return self._disk.fences[PRIMARY]

    def close(self) -> None:
        """Nothing to let go of."""


def _moves(aggregates: Sequence[Aggregate[Any]]) -> dict[str, int]:
    return {
        lease.id: lease.epoch if lease.state is LeaseState.HELD else lease.epoch + 1
        for lease in aggregates
        if isinstance(lease, ProviderLease) and lease.pending_events
    }
