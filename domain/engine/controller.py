"""The controller as a state machine: commands in, what to append out. No I/O, no clock, no ids of its own.

Three phases for every change: ``handle`` validates a command against the current aggregates; the driver appends what ``take``
returns, all or nothing; after that, and only then, ``appended`` lets it go. Commands handled in one batch see each other.
When an append failed, ``forget`` throws the batch away: load again, decide again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar, cast

from xce.domain.engine import accounting
from xce.domain.engine.commands import (
    AcceptRequest,
    AcceptReturn,
    Command,
    ConfirmGrantReturn,
    ConfirmReturn,
    DeclareShared,
    DescribeProvider,
    GiveUpRequest,
    LoseTrack,
    MissJoin,
    OpenRequest,
    PauseProvider,
    RecordJoin,
    RecordStatus,
    RefuseGrantReturn,
    RefuseRequest,
    RefuseReturn,
    ReleaseLease,
    Reopen,
    ReportBookings,
    StartDrain,
    StartGrantReturn,
    StartReturn,
    TakeLease,
)
from xce.domain.errors import NotFoundError, RejectedError
from xce.domain.events import ids
from xce.domain.events.base import Aggregate, DomainEvent, fold
from xce.domain.formats.provider import Kind, ProviderDescription
from xce.domain.ports import AggregateSource
from xce.domain.provisioning import grant as grants
from xce.domain.provisioning import instance as instances
from xce.domain.provisioning import request as requests
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.lease import LeaseState, ProviderLease
from xce.domain.provisioning.provider import Provider
from xce.domain.provisioning.request import Request, RequestState
from xce.domain.sharing.elastic_resource import ElasticResource

A = TypeVar("A", bound=Aggregate[Any])


@dataclass(frozen=True, slots=True)
class Change:
    """What one append must store: aggregates with their new events, under these fences, all or nothing."""

    aggregates: tuple[Aggregate[Any], ...]
    fences: Mapping[str, int]

    def __bool__(self) -> bool:
        return bool(self.aggregates)


@dataclass(slots=True)
class _Mark:
    """How many pending events an aggregate had when the present command first touched it; -1: it was new."""

    aggregate: Aggregate[Any]
    pending: int


@dataclass(frozen=True, slots=True)
class Stamp:
    """When a command is carried out, for whom."""

    at: datetime
    by: str


@dataclass(slots=True)
class _Batch:
    touched: dict[str, Aggregate[Any]] = field(default_factory=dict[str, Aggregate[Any]])
    fences: dict[str, int] = field(default_factory=dict[str, int])


class Controller:
    """Validates commands; keeps the aggregates that are not ended, and the bookings, in memory."""

    def __init__(self, source: AggregateSource) -> None:
        self._source = source
        self._live: dict[str, Aggregate[Any]] = {}
        self._batch = _Batch()
        self._marks: dict[str, _Mark] = {}
        self._occupied: dict[str, int | None] = {}

    # ----------------------------------------------------------------- batches
    def handle(self, command: Command, *, at: datetime, by: str) -> None:
        """Validate one command and keep what it changes for the next append.

        Raises:
            RejectedError: the current state does not allow it; nothing of the command is kept.
            NotFoundError: it names something that does not exist.
        """
        self._marks = {}
        fences = dict(self._batch.fences)
        try:
            self._dispatch(command, Stamp(at, by))
        except RejectedError:
            self._undo()
            self._batch.fences = fences
            raise

    def take(self) -> Change:
        """Return what must be appended now."""
        touched = [a for a in self._batch.touched.values() if a.pending_events]
        return Change(tuple(touched), dict(self._batch.fences))

    def appended(self) -> None:
        """Go on after a successful append: ended aggregates leave memory."""
        for aggregate_id, aggregate in self._batch.touched.items():
            if _has_ended(aggregate):
                del self._live[aggregate_id]
        self._batch = _Batch()

    def forget(self) -> None:
        """Throw the batch away after a failed append."""
        for aggregate_id in self._batch.touched:
            self._live.pop(aggregate_id, None)
        self._batch = _Batch()

    # --------------------------------------------------------------- dispatch
    def _dispatch(self, command: Command, stamp: Stamp) -> None:
        match command:
            case DescribeProvider():
                self._describe(command, stamp)
            case PauseProvider():
                self._get(Provider, ids.provider_id(command.provider)).pause(
                    item=command.item,
                    until=command.until,
                    why=command.why,
                    at=stamp.at,
                    by=stamp.by,
                )
            case DeclareShared():
                self._declare(command, stamp)
            case TakeLease() | ReleaseLease():
                self._lease(command, stamp)
            case ReportBookings():
                self._occupied.update(command.occupied)
            case (
                OpenRequest() | AcceptRequest() | RefuseRequest() | LoseTrack() | RecordStatus()
                | GiveUpRequest()
            ):  # fmt: skip
                self._request(command, stamp)
            case (
                RecordJoin() | MissJoin() | StartDrain() | Reopen() | StartReturn() | AcceptReturn()
                | RefuseReturn() | ConfirmReturn()
            ):  # fmt: skip
                self._instance(command, stamp)
            case StartGrantReturn() | ConfirmGrantReturn() | RefuseGrantReturn():
                self._grant(command, stamp)

    def _describe(self, command: DescribeProvider, stamp: Stamp) -> None:
        name = command.description.name
        provider = self._find(Provider, ids.provider_id(name))
        if provider is None:
            self._add(
                Provider.describe_first(description=command.description, at=stamp.at, by=stamp.by)
            )
        else:
            provider.describe(description=command.description, at=stamp.at, by=stamp.by)

    def _declare(self, command: DeclareShared, stamp: Stamp) -> None:
        resource = self._find(ElasticResource, ids.shared_id(command.name))
        if resource is None:
            self._add(
                ElasticResource.declare(
                    resource=command.name,
                    owned=command.owned,
                    provider=command.provider,
                    max_borrow=command.max_borrow,
                    step=command.step,
                    idle_return_after=command.idle_return_after,
                    min_hold=command.min_hold,
                    at=stamp.at,
                    by=stamp.by,
                )
            )
            return
        resource.set_owned(owned=command.owned, at=stamp.at, by=stamp.by)
        resource.change_settings(
            provider=command.provider,
            max_borrow=command.max_borrow,
            step=command.step,
            idle_return_after=command.idle_return_after,
            min_hold=command.min_hold,
            at=stamp.at,
            by=stamp.by,
        )

    def _lease(self, command: TakeLease | ReleaseLease, stamp: Stamp) -> None:
        lease = self._find(ProviderLease, ids.lease_id(command.provider))
        match command, lease:
            case TakeLease(), None:
                self._add(
                    ProviderLease.grant(
                        provider=command.provider,
                        holder=command.holder,
                        term=command.term,
                        at=stamp.at,
                        by=stamp.by,
                    )
                )
            case TakeLease(), ProviderLease():
                hand_over = lease.take_over if lease.state is LeaseState.HELD else lease.regrant
                hand_over(
                    holder=command.holder,
                    epoch=lease.epoch + 1,
                    term=command.term,
                    at=stamp.at,
                    by=stamp.by,
                )
            case ReleaseLease(), None:
                raise NotFoundError(f"nobody holds provider {command.provider}")
            case ReleaseLease(), ProviderLease():
                lease.release(epoch=lease.epoch, at=stamp.at, by=stamp.by)

    def _request(
        self,
        command: OpenRequest
        | AcceptRequest
        | RefuseRequest
        | LoseTrack
        | RecordStatus
        | GiveUpRequest,
        stamp: Stamp,
    ) -> None:
        if isinstance(command, OpenRequest):
            self._open(command, stamp)
            return
        request = self._get(Request, ids.request_id(command.request))
        at, by, epoch = stamp.at, stamp.by, self._fence(request.provider)
        match command:
            case AcceptRequest():
                request.accept(
                    provider_request_id=command.provider_request_id, at=at, by=by, epoch=epoch
                )
            case RefuseRequest():
                accounting.refuse(request, command.why, at=at, by=by, epoch=epoch)
            case LoseTrack():
                request.lose_track(why=command.why, at=at, by=by, epoch=epoch)
            case RecordStatus():
                self._record_status(request, command, stamp, epoch)
            case GiveUpRequest():
                request.close(
                    outcome=RequestState.TIMED_OUT, why=command.why, at=at, by=by, epoch=epoch
                )

    def _open(self, command: OpenRequest, stamp: Stamp) -> None:
        request_id = ids.request_id(command.request)
        if self._find(Request, request_id) is not None:
            raise RejectedError(f"request {command.request} was opened before")
        description = self._description(command.provider)
        hold = description.minimum_hold
        if command.kind is Kind.COUNTABLE:
            offered = [o.minimum_hold for o in description.resources if o.name == command.item]
            hold = max([hold, *offered])
        self._add(
            Request.intend(
                request=command.request,
                provider=command.provider,
                kind=command.kind,
                item=command.item,
                amount=command.amount,
                price_per_hour=command.price_per_hour,
                deadline=command.deadline,
                reason=command.reason,
                jobs=command.jobs,
                demand_position=command.demand_position,
                hold=hold,
                at=stamp.at,
                by=stamp.by,
                epoch=self._fence(command.provider),
            )
        )

    def _record_status(
        self, request: Request, command: RecordStatus, stamp: Stamp, epoch: int
    ) -> None:
        resource = None
        if request.kind is Kind.COUNTABLE:
            resource = self._get(ElasticResource, ids.shared_id(request.item))
        for new in accounting.record_status(
            request,
            command.answer,
            resource,
            billing=self._description(request.provider).billing,
            at=stamp.at,
            by=stamp.by,
            epoch=epoch,
        ):
            self._add(new)

    def _instance(
        self,
        command: RecordJoin
        | MissJoin
        | StartDrain
        | Reopen
        | StartReturn
        | AcceptReturn
        | RefuseReturn
        | ConfirmReturn,
        stamp: Stamp,
    ) -> None:
        if isinstance(command, (StartReturn, AcceptReturn)):
            for name in command.instances:
                self._return(command, self._get(Instance, ids.instance_id(name)), stamp)
            return
        instance = self._get(Instance, ids.instance_id(command.instance))
        at, by, epoch = stamp.at, stamp.by, self._fence(instance.provider)
        match command:
            case RecordJoin():
                instance.join(
                    host=command.host,
                    booted_at=command.booted_at,
                    attributes=command.attributes,
                    total=command.total,
                    at=at,
                    by=by,
                    epoch=epoch,
                )
            case MissJoin():
                instance.miss_join(why=command.why, at=at, by=by, epoch=epoch)
            case StartDrain():
                instance.start_drain(why=command.why, at=at, by=by, epoch=epoch)
            case Reopen():
                instance.reopen(why=command.why, at=at, by=by, epoch=epoch)
            case RefuseReturn():
                instance.refuse_return(
                    return_id=command.return_id, why=command.why, at=at, by=by, epoch=epoch
                )
            case ConfirmReturn():
                instance.confirm_return(at=at, by=by, epoch=epoch)

    def _return(
        self, command: StartReturn | AcceptReturn, instance: Instance, stamp: Stamp
    ) -> None:
        epoch = self._fence(instance.provider)
        match command:
            case StartReturn():
                instance.intend_return(
                    return_id=command.return_id,
                    why=command.why,
                    at=stamp.at,
                    by=stamp.by,
                    epoch=epoch,
                )
            case AcceptReturn():
                instance.accept_return(
                    return_id=command.return_id,
                    provider_return_id=command.provider_return_id,
                    at=stamp.at,
                    by=stamp.by,
                    epoch=epoch,
                )

    def _grant(
        self, command: StartGrantReturn | ConfirmGrantReturn | RefuseGrantReturn, stamp: Stamp
    ) -> None:
        grant = self._get(Grant, ids.grant_id(command.grant))
        resource = self._get(ElasticResource, ids.shared_id(grant.resource))
        at, by, epoch = stamp.at, stamp.by, self._fence(grant.provider)
        match command:
            case StartGrantReturn():
                occupied = self._occupied.get(grant.resource)
                if occupied is None:
                    raise RejectedError(
                        f"what is occupied of {grant.resource} is unknown: nothing of it goes back"
                    )
                grant.start_return(
                    return_id=command.return_id, amount=command.amount, at=at, by=by, epoch=epoch
                )
                resource.give_back(
                    return_id=command.return_id,
                    grant_id=command.grant,
                    amount=command.amount,
                    occupied=occupied,
                    at=at,
                    by=by,
                )
            case ConfirmGrantReturn():
                grant.confirm_return(return_id=command.return_id, at=at, by=by, epoch=epoch)
            case RefuseGrantReturn():
                grant.refuse_return(
                    return_id=command.return_id, why=command.why, at=at, by=by, epoch=epoch
                )
                resource.put_back(return_id=command.return_id, why=command.why, at=at, by=by)

    # ------------------------------------------------------------- aggregates
    def _fence(self, provider: str) -> int:
        """Return the epoch under which facts of a provider are written now, and put it among the fences."""
        lease = self._find(ProviderLease, ids.lease_id(provider))
        if lease is None or lease.state is not LeaseState.HELD:
            raise RejectedError(f"nobody holds the lease of provider {provider}")
        if not lease.pending_events:  # a lease that is granted in this batch moves the fence itself
            self._batch.fences[lease.id] = lease.epoch
        return lease.epoch

    def _description(self, provider: str) -> ProviderDescription:
        return self._get(Provider, ids.provider_id(provider)).description

    def _get(self, kind: type[A], aggregate_id: str) -> A:
        aggregate = self._find(kind, aggregate_id)
        if aggregate is None:
            raise NotFoundError(f"there is no {kind.KIND} {ids.name_of(aggregate_id)}")
        return aggregate

    def _find(self, kind: type[A], aggregate_id: str) -> A | None:
        aggregate = self._live.get(aggregate_id)
        if aggregate is None:
            aggregate = self._saved(kind, aggregate_id)
            if aggregate is None:
                return None
            self._live[aggregate_id] = aggregate
        if aggregate_id not in self._marks:
            self._marks[aggregate_id] = _Mark(aggregate, len(aggregate.pending_events))
        self._batch.touched[aggregate_id] = aggregate
        return cast("A", aggregate)

    def _saved(self, kind: type[A], aggregate_id: str) -> A | None:
        try:
            return self._source.get(kind, aggregate_id)
        except NotFoundError:
            return None

    def _add(self, aggregate: Aggregate[Any]) -> None:
        self._live[aggregate.id] = aggregate
        self._batch.touched[aggregate.id] = aggregate
        self._marks[aggregate.id] = _Mark(aggregate, -1)

    def _undo(self) -> None:
        """Take back what the present command did to aggregates that earlier commands of the batch had touched."""
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


def _has_ended(aggregate: Aggregate[Any]) -> bool:
    match aggregate:
        case Request():
            return aggregate.state in requests.CLOSED
        case Instance():
            return aggregate.state in instances.GONE
        case Grant():
            return aggregate.state not in grants.LIVE
        case _:
            return False
