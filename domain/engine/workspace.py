"""The aggregates that the present batch works on: found, changed, taken back one order at a time, appended all together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from xce.domain.engine.messages import Caller, Role
from xce.domain.errors import NotFoundError, RejectedError, StaleEpochError, StaleVersionError
from xce.domain.events import ids
from xce.domain.events.base import Aggregate, DomainEvent, fold
from xce.domain.ports import AggregateSource
from xce.domain.provisioning import drain as drains
from xce.domain.provisioning import grant as grants
from xce.domain.provisioning import instance as instances
from xce.domain.provisioning import orphan as orphans
from xce.domain.provisioning import request as requests
from xce.domain.provisioning.decision import Decision
from xce.domain.provisioning.drain import Drain
from xce.domain.provisioning.evidence import Evidence
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.lease import LeaseState, ProviderLease
from xce.domain.provisioning.orphan import Orphan
from xce.domain.provisioning.receipt import Receipt
from xce.domain.provisioning.request import Request

A = TypeVar("A", bound=Aggregate[Any])

_NOTHING: Mapping[str, int] = {}


class NoLeaseError(RejectedError):
    """Nobody holds the lease of the provider: its facts cannot be written now."""

    code = "no-lease"


class EpochMissingError(RejectedError):
    """A provisioner says under which lease epoch it acts: one that lost its lease must not write by chance."""

    code = "epoch-missing"


@dataclass(frozen=True, slots=True)
class Change:
    """What one append must store: aggregates with their new events, under these fences, all or nothing."""

    aggregates: tuple[Aggregate[Any], ...]
    fences: Mapping[str, int]

    def __bool__(self) -> bool:
        return bool(self.aggregates)


@dataclass(slots=True)
class _Mark:
    """How many pending events an aggregate had when the present order first touched it; -1: it was new."""

    aggregate: Aggregate[Any]
    pending: int


@dataclass(slots=True)
class _Batch:
    touched: dict[str, Aggregate[Any]] = field(default_factory=dict[str, Aggregate[Any]])
    fences: dict[str, int] = field(default_factory=dict[str, int])


class Workspace:
    """Keeps the aggregates that are not ended in memory; what a batch changes can be thrown away."""

    def __init__(self, source: AggregateSource) -> None:
        self._source = source
        self._live: dict[str, Aggregate[Any]] = {}
        self._batch = _Batch()
        self._marks: dict[str, _Mark] = {}
        self._fences_before: dict[str, int] = {}
        self._epochs: Mapping[str, int] = _NOTHING
        self._expected: Mapping[str, int] = _NOTHING
        self._must_name_epoch = False

    # ------------------------------------------------------------------ orders
    def begin(
        self,
        epochs: Mapping[str, int] = _NOTHING,
        expected: Mapping[str, int] = _NOTHING,
        *,
        must_name_epoch: bool = False,
    ) -> None:
        """Begin an order: under these lease epochs, for one who has read these versions."""
        self._must_name_epoch = must_name_epoch
        self._marks = {}
        self._fences_before = dict(self._batch.fences)
        self._epochs = epochs
        self._expected = expected

    def undo(self) -> None:
        """Take back what the present order did, and nothing of earlier ones in the batch."""
        self._batch.fences = self._fences_before
        for aggregate_id, mark in self._marks.items():
            aggregate = mark.aggregate
            if mark.pending == -1:
                del self._live[aggregate_id]
                del self._batch.touched[aggregate_id]
            elif len(aggregate.pending_events) > mark.pending:
                kept = cast("list[DomainEvent]", list(aggregate.pending_events[: mark.pending]))
                saved = self._saved(type(aggregate), aggregate_id)
                again = cast("Aggregate[Any]", fold(saved, kept))
                again.pending_events.extend(kept)
                self._live[aggregate_id] = again
                self._batch.touched[aggregate_id] = again

    def versions(self) -> dict[str, int]:
        """Return the version of each aggregate that the present order has named."""
        return {aggregate_id: mark.aggregate.version for aggregate_id, mark in self._marks.items()}

    def leases(self) -> list[ProviderLease]:
        """Return the leases that the present order has changed."""
        return [
            mark.aggregate
            for mark in self._marks.values()
            if isinstance(mark.aggregate, ProviderLease)
            and len(mark.aggregate.pending_events) > max(mark.pending, 0)
        ]

    def has_changed(self) -> bool:
        """Return whether the present order has recorded anything."""
        return any(
            len(mark.aggregate.pending_events) > max(mark.pending, 0)
            for mark in self._marks.values()
        )

    # ----------------------------------------------------------------- batches
    def take(self) -> Change:
        """Return what must be appended now."""
        touched = [a for a in self._batch.touched.values() if a.pending_events]
        return Change(tuple(touched), dict(self._batch.fences))

    def appended(self) -> None:
        """Go on after a successful append: ended aggregates leave memory."""
        for aggregate_id, aggregate in self._batch.touched.items():
            if _has_ended(aggregate):
                self._live.pop(aggregate_id, None)
        self._batch = _Batch()

    def forget(self) -> None:
        """Throw the batch away after a failed append."""
        for aggregate_id in self._batch.touched:
            self._live.pop(aggregate_id, None)
        self._batch = _Batch()

    # ------------------------------------------------------------- aggregates
    def fence(self, provider: str) -> int:
        """Return the epoch under which facts of a provider are written now, and put it among the fences.

        Raises:
            NoLeaseError: nobody holds the lease.
            StaleEpochError: the caller acts under another epoch.
            EpochMissingError: it does not say under which one, and must.
        """
        lease = self.find(ProviderLease, ids.lease_id(provider))
        mine = self._epochs.get(provider)
        if lease is not None and mine is not None and mine != lease.epoch:
            raise StaleEpochError(lease.id, mine, lease.epoch)
        if lease is None or lease.state is not LeaseState.HELD:
            raise NoLeaseError(f"nobody holds the lease of provider {provider}")
        if mine is None and self._must_name_epoch:
            raise EpochMissingError(f"say under which lease epoch you act on provider {provider}")
        if not lease.pending_events:  # a lease that is granted in this batch moves the fence itself
            self._batch.fences[lease.id] = lease.epoch
        return lease.epoch

    def fence_words(self, provider: str, by: str) -> None:
        """Put the epoch under which ``by`` speaks for a provider among the fences, if it does so under one.

        An administrator needs none, and a provider that nobody acts on is described by whoever comes first.

        Raises:
            NoLeaseError: nobody holds the lease that it names an epoch of.
            StaleEpochError: it speaks under another epoch.
            EpochMissingError: it names none, and another one acts on the provider.
        """
        named = provider in self._epochs
        if not named and not self._must_name_epoch:
            return
        lease = self.find(ProviderLease, ids.lease_id(provider))
        if lease is None:
            return
        if named:
            self.fence(provider)
        elif lease.state is LeaseState.HELD and by != Caller(Role.PROVISIONER, lease.holder).by:
            raise EpochMissingError(
                f"{lease.holder} acts on provider {provider}, not {by}: it alone says how the provider is"
            )

    def get(self, kind: type[A], aggregate_id: str) -> A:
        """Return an aggregate.

        Raises:
            NotFoundError: it does not exist.
            StaleVersionError: the caller has read another version.
        """
        aggregate = self.find(kind, aggregate_id)
        if aggregate is None:
            raise NotFoundError(f"there is no {kind.KIND} {ids.name_of(aggregate_id)}")
        return aggregate

    def find(self, kind: type[A], aggregate_id: str) -> A | None:
        """Return an aggregate; None: it does not exist.

        Raises:
            StaleVersionError: the caller has read another version.
        """
        aggregate = self._live.get(aggregate_id)
        if aggregate is None:
            aggregate = self._saved(kind, aggregate_id)
            if aggregate is None:
                return None
            self._live[aggregate_id] = aggregate
        if aggregate_id not in self._marks:
            expected = self._expected.get(aggregate_id)
            if expected is not None and expected != aggregate.version:
                raise StaleVersionError(aggregate_id, expected, aggregate.version)
            self._marks[aggregate_id] = _Mark(aggregate, len(aggregate.pending_events))
        self._batch.touched[aggregate_id] = aggregate
        return cast("A", aggregate)

    def add(self, aggregate: Aggregate[Any]) -> None:
        """Take in a new aggregate."""
        self._live[aggregate.id] = aggregate
        self._batch.touched[aggregate.id] = aggregate
        self._marks[aggregate.id] = _Mark(aggregate, -1)

    def _saved(self, kind: type[A], aggregate_id: str) -> A | None:
        try:
            return self._source.get(kind, aggregate_id)
        except NotFoundError:
            return None


def _has_ended(aggregate: Aggregate[Any]) -> bool:
    match aggregate:
        case Request():
            return aggregate.state in requests.CLOSED
        case Instance():
            return aggregate.state in instances.GONE
        case Grant():
            return aggregate.state not in grants.LIVE
        case Orphan():
            return aggregate.state in orphans.ENDED
        case Drain():
            return aggregate.state in drains.OVER
        case Receipt() | Decision() | Evidence():
            return True
        case _:
            return False
