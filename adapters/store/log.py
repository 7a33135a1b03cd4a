"""The log as the core sees it: aggregates in, recorded events out, over the library's application."""

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from eventsourcing.application import AggregateNotFoundError
from eventsourcing.persistence import InfrastructureFactory

from xce.adapters.store.application import LogApplication
from xce.adapters.store.recorder import Fencing, LogRecorder, NewRow
from xce.domain.errors import BrokenLogError, NotFoundError
from xce.domain.events.base import Aggregate, DomainEvent, fold
from xce.domain.events.recorded import Head, Recorded
from xce.domain.events.stored import EventRegistry
from xce.domain.provisioning.lease import LeaseState, ProviderLease

A = TypeVar("A", bound=Aggregate[Any])

PRIMARY = "primary"


class StoredLog:
    """An ``EventLog`` (see ``domain/ports.py``) over one backend. Threads may share it; they may not share an aggregate."""

    def __init__(
        self, factory: InfrastructureFactory[Any], registry: EventRegistry, source: str
    ) -> None:
        self._registry = registry
        self._application = LogApplication(factory, registry)
        #: Where it is, for messages.
        self.source = source

    def __enter__(self) -> Self:
        """Return the log itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    @property
    def recorder(self) -> LogRecorder:
        """The stored rows themselves, for verification."""
        return self._application.log_recorder

    @property
    def registry(self) -> EventRegistry:
        """The events this log can read."""
        return self._registry

    def append(
        self, aggregates: Sequence[Aggregate[Any]], *, fences: Mapping[str, int] | None = None
    ) -> Sequence[Recorded]:
        """Save the pending events: see ``EventLog.append``."""
        events = [event for aggregate in aggregates for event in aggregate.new_events()]
        if not events:
            return ()
        encode = self._registry.encode
        rows = self.recorder.append(
            [NewRow(e.originator_id, e.originator_version, *encode(e)) for e in events],
            Fencing(fences or {}, _moves(aggregates)),
        )
        for aggregate in aggregates:
            aggregate.pending_events.clear()
        return [
            Recorded(row.position, event, row.digest)
            for row, event in zip(rows, events, strict=True)
        ]

    def get(self, aggregate_class: type[A], aggregate_id: str) -> A:
        """Return an aggregate as it is saved.

        Raises:
            NotFoundError: it was never saved.
        """
        try:
            aggregate: object = self._application.repository.get(aggregate_id, projector_func=_fold)
        except AggregateNotFoundError:
            raise NotFoundError(f"{aggregate_id} is not in {self.source}") from None
        assert isinstance(aggregate, aggregate_class), f"{aggregate_id} is not {aggregate_class}"
        return aggregate

    def read(self, after: int = 0, upto: int | None = None) -> Iterator[Recorded]:
        """Yield the events behind a position: see ``EventLog.read``."""
        decode = self._registry.decode
        for position, originator_id, version, topic, state, digest in self.recorder.rows(
            after, upto
        ):
            yield Recorded(position, decode(position, originator_id, version, topic, state), digest)

    def head(self) -> Head:
        """Return the position and digest of the last event.

        Raises:
            BrokenLogError: the log does not say.
        """
        head, _ = self.recorder.stored_end()
        if head is None:
            raise BrokenLogError(f"{self.source}: the row with the head is missing")
        return head

    def fence(self, name: str) -> int:
        """Return where a fence is; 0: it was never moved."""
        _, fences = self.recorder.stored_end()
        return fences.get(name, 0)

    def take_primary(self) -> int:
        """Become the primary: see ``EventLog.take_primary``."""
        return self.recorder.move_fence(PRIMARY)

    def close(self) -> None:
        """Let go of the log; may be repeated."""
        self._application.close()


def _moves(aggregates: Sequence[Aggregate[Any]]) -> dict[str, int]:
    """Return where the fences of leases go: to the holder's epoch, or past it where nobody holds the lease any more."""
    return {
        lease.id: lease.epoch if lease.state is LeaseState.HELD else lease.epoch + 1
        for lease in aggregates
        if isinstance(lease, ProviderLease) and lease.pending_events
    }


def _fold(aggregate: Any, events: Any) -> Any:
    return fold(cast("Aggregate[Any] | None", aggregate), cast("Iterator[DomainEvent]", events))
