"""What the core needs from the world, as small protocols; adapters and the simulator fulfil them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Protocol, TypeVar, runtime_checkable

from xce.domain.errors import AdapterError
from xce.domain.events.base import Aggregate
from xce.domain.events.recorded import Head, Recorded
from xce.domain.formats.base import Lent, Name, Time
from xce.domain.formats.observation import Observation
from xce.domain.formats.observers import ObserverConfig
from xce.domain.formats.provider import Kind, ProviderDescription
from xce.domain.formats.session_result import Allocation
from xce.domain.formats.snapshot import Snapshot

A = TypeVar("A", bound=Aggregate[Any])


class Clock(Protocol):
    """Source of time."""

    def now(self) -> datetime:
        """Return the time now, timezone-aware UTC; never earlier than a time it returned before."""
        ...


class IdSource(Protocol):
    """Source of ids."""

    def next_id(self, prefix: str) -> str:
        """Return an id that starts with ``prefix`` and was never returned before, also not before a restart."""
        ...


class AggregateSource(Protocol):
    """Where saved aggregates are found."""

    def get(self, aggregate_class: type[A], aggregate_id: str) -> A:
        """Return the aggregate as it is saved; a new object at each call.

        Raises:
            NotFoundError: it was never saved.
        """
        ...


class EventLog(AggregateSource, Protocol):
    """The durable log: all that ever happened, in one order.

    Any number of processes may read it, and several may write: versions of aggregates and fences decide who is right.
    """

    def append(
        self, aggregates: Sequence[Aggregate[Any]], *, fences: Mapping[str, int] | None = None
    ) -> Sequence[Recorded]:
        """Save the pending events of aggregates, in this order: all or nothing, and on disk when it returns.

        The fences are compared in the same transaction, before its own lease events move them: ``{"primary": 3,
        "lease:aws": 5}``. Granting a lease, or taking it over, moves its fence to the new epoch; its release or lapse moves it one
        further, so that nobody can write under it any more.

        Raises:
            ConflictError: an aggregate has changed since it was loaded: load again, decide again.
            StaleEpochError: a fence is not where the caller thinks: it must stop acting.
            TransientError: the log is locked by another, the disk is full, or the server is away; the same call may be repeated. Where a server
                went before it answered, the message says that the outcome is not known: then the repeated call finds out, or whoever loads
                again does, and events may be in the log that nobody was told of (``read`` has them).
            PermanentError: the log cannot be written at all.
            BrokenLogError: the log is damaged.

        After any other error nothing is saved. The aggregates still have their pending events.
        """
        ...

    def read(self, after: int = 0, upto: int | None = None) -> Iterator[Recorded]:
        """Yield the events behind position ``after``, in order, up to and including ``upto`` or the present end.

        Holds a bounded part of the log in memory. May be repeated.

        Raises:
            BrokenLogError: an event cannot be read; it names the position. Events before it have been yielded.
        """
        ...

    def head(self) -> Head:
        """Return the position and digest of the last event."""
        ...

    def fence(self, name: str) -> int:
        """Return where a fence is; 0: it was never moved."""
        ...

    def take_primary(self) -> int:
        """Become the primary: move the fence ``primary`` and return its new epoch. Earlier primaries cannot write after that."""
        ...

    def close(self) -> None:
        """Let go of the log; may be repeated."""
        ...


# ------------------------------------------------------------------- providers
@dataclass(frozen=True, slots=True)
class Ask:
    """One ask: ``amount`` hosts of template ``item``, or units of resource ``item``.

    Attributes:
        tag: our request id; a provider with the capability recognises a repeated one.
        least_useful: a countable grant below this helps nobody; 0: any amount does.
    """

    tag: str
    kind: Kind
    item: str
    amount: int
    least_useful: int = 0


@dataclass(frozen=True, slots=True)
class Accepted:
    """The provider took the ask on under an id of its own."""

    provider_request_id: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The provider did not take it: nothing was created.

    Attributes:
        code: stable reason, such as ``InsufficientCapacity``.
        retry_after_s: seconds after which it may be asked again; None: it did not say.
    """

    code: str
    why: str
    retry_after_s: int | None = None


class RequestStatus(StrEnum):
    """Where the provider says a request is. Free text beside it is never decided on."""

    RUNNING = "running"
    COMPLETE = "complete"
    COMPLETE_WITH_ERROR = "complete_with_error"


class MachineResult(StrEnum):
    """What became of one machine."""

    EXECUTING = "executing"
    SUCCEED = "succeed"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class MachineReport:
    """One machine of a request. Identity is ``machine``; ``name`` may change or be reused."""

    machine: Name
    name: Name
    result: MachineResult
    launched_at: Time | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class GrantReport:
    """One amount of a resource that a request brought."""

    grant: Name
    resource: Name
    amount: Lent
    hold_until: Time | None = None
    expires_at: Time | None = None


@dataclass(frozen=True, slots=True)
class StatusAnswer:
    """What a provider says of one request; terminal answers may be repeated, or come only once."""

    status: RequestStatus
    machines: tuple[MachineReport, ...] = ()
    grants: tuple[GrantReport, ...] = ()
    message: str = ""


@dataclass(frozen=True, slots=True)
class GrantBack:
    """An amount of one grant that goes back."""

    grant: str
    amount: int


@dataclass(frozen=True, slots=True)
class ReturnStatus:
    """What became of one return: what is gone, and what the provider refuses to take back and why."""

    status: RequestStatus
    gone: frozenset[str] = frozenset()
    refused: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Holding:
    """Something that a provider has for us, in whatever state: it may cost money and counts against capacities.

    Attributes:
        theirs: the provider's id of the machine or grant.
        item: template or resource; None: it does not say.
        tag: the request it was made for; None: it carries none.
        amount: units of a grant; 1 for a machine.
        hold_until: nothing of a grant goes back before; None: at any time, or it does not say.
        expires_at: when the provider ends a grant by itself; None: never, or it does not say.
    """

    theirs: Name
    kind: Kind
    item: Name | None = None
    tag: Name | None = None
    name: str = ""
    amount: Lent = 1
    launched_at: Time | None = None
    hold_until: Time | None = None
    expires_at: Time | None = None


@dataclass(frozen=True, slots=True)
class Renewed:
    """What became of a wish to put the ends of grants off.

    Attributes:
        ends: when each grant ends now, by the provider's id; one that is not named ends when it would have.
    """

    ends: tuple[tuple[str, datetime], ...] = ()


@dataclass(frozen=True, slots=True)
class TakeBack:
    """The provider takes a machine back, or says that it is gone; it may name machines that we do not know.

    Attributes:
        grace_s: seconds until it is gone; None: it does not say.
    """

    machine: str
    grace_s: int | None = None


class Provider(Protocol):
    """Something that creates hosts or lends counts.

    Every method raises ``TransientError`` when a retry may help and ``PermanentError`` when it cannot; after either, or after a
    crash, whether ``ask`` had an effect is unknown. No other error leaves a provider.
    """

    def ask(self, ask: Ask, now: datetime) -> Accepted | Refused:
        """Ask for hosts or units. With the capability ``request_tag`` the same tag gives the same answer."""
        ...

    def status(self, provider_request_id: str, now: datetime) -> StatusAnswer:
        """Return where a request is; may be repeated."""
        ...

    def give_back(
        self,
        return_id: str,
        machines: tuple[str, ...],
        grants: tuple[GrantBack, ...],
        now: datetime,
        *,
        names: Mapping[str, str] | None = None,
    ) -> Accepted | Refused:
        """Give machines or amounts back; the same return id is the same return.

        ``names``: by machine id, the name under which the provider reported it, where it did.
        """
        ...

    def return_status(
        self, return_id: str, now: datetime, *, theirs: str | None = None
    ) -> ReturnStatus:
        """Return what became of a return, by machine id and grant id; may be repeated.

        ``theirs``: the id under which the provider took the return on.
        """
        ...


@dataclass(frozen=True, slots=True)
class ReportedMachine:
    """A machine that has reported to the cluster.

    Attributes:
        machine: the provider's id.
        name: as the provider reported it.
        host: its name in the cluster.
    """

    machine: str
    name: str
    host: str
    template: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What a health check found: by the provider's id, what became of it and why; of one that is not named it is not known yet."""

    results: tuple[tuple[str, MachineResult, str], ...] = ()


@runtime_checkable
class CheckingProvider(Protocol):
    """A provider whose hosts are checked before they take work."""

    def check(self, machines: tuple[ReportedMachine, ...], now: datetime) -> Checked:
        """Look whether machines are in order; may be repeated."""
        ...


@runtime_checkable
class RenewingProvider(Protocol):
    """A lender whose grants end by themselves, and that puts their ends off when it is asked."""

    def renew(self, grants: tuple[str, ...], now: datetime) -> Renewed:
        """Put the ends of grants off, by the provider's ids; may be repeated."""
        ...


class FullProvider(Provider, Protocol):
    """What a provisioner runs. What a provider cannot do (see its capabilities) it answers with None: unknown, not nothing."""

    def recall(self, tag: str, kind: Kind) -> "Accepted | Refused | None":
        """Return what was answered to an ask that was made from this machine, without asking; None: it is not known here.

        Raises ``TransientError`` where it was made and its answer cannot be read.
        """
        ...

    def statuses(
        self, ids: Iterable[str], now: datetime
    ) -> "Mapping[str, StatusAnswer | AdapterError]":
        """Return where requests are, by the provider's id, in as few calls as may be; the error of an id is its value."""
        ...

    def describe(self, now: datetime) -> ProviderDescription | None:
        """Return what the provider says of itself; None: nothing new, the last good description holds."""
        ...

    def holdings(self, now: datetime) -> tuple[Holding, ...] | None:
        """Return everything it has for us; None: it cannot list."""
        ...

    def take_backs(self, machines: Mapping[str, str], now: datetime) -> tuple[TakeBack, ...]:
        """Return which machines it takes back; ``machines``: names of those we have, by id."""
        ...


# ---------------------------------------------------------------- batch systems
@dataclass(frozen=True, slots=True)
class ExpectedHost:
    """A host that was granted and has not joined yet, so that a batch system can prepare for it.

    Attributes:
        instance: our id.
        machine: the provider's id.
        name: that it is expected under; None: the provider has not said.
        since: when it was granted.
        attributes: that its template promises.
        provides: amounts that its template promises, in base units.
    """

    instance: str
    machine: str | None
    name: str | None
    template: str
    since: datetime
    attributes: Mapping[str, bool | int | Decimal | str]
    provides: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SchedulerOrders:
    """What a batch system is to do after a session: wishes for now, which replace those of before.

    Attributes:
        position: log position of the session.
        close: hosts that take no new work any more; their state becomes draining.
        open: hosts that were drained and take work again.
        remove: hosts whose instances are gone.
        requeue: jobs that go back into the queue.
        start: jobs that start, and where; for a batch system that lets us place its jobs.
        expected: hosts on their way.
    """

    position: int
    close: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    requeue: tuple[str, ...] = ()
    start: tuple[Allocation, ...] = ()
    expected: tuple[ExpectedHost, ...] = ()


class SchedulerSource(Protocol):
    """A batch system: what it shows, and what it is told.

    Every method raises ``TransientError`` when a retry may help and ``PermanentError`` when it cannot; no other error leaves it.
    """

    def view(self) -> Snapshot | None:
        """Return the newest view of hosts, rules and jobs; None: there is none yet. May be repeated.

        Its position, catalog and the totals of elastic resources are not read: those are the controller's. A host that a provider created
        names its instance or machine, or has a boot time.
        """
        ...

    def obey(self, orders: SchedulerOrders) -> None:
        """Carry orders out, or show them to whoever does; may be repeated."""
        ...

    def wait(self, timeout_s: float) -> None:
        """Return when there may be a newer view, or after the time."""
        ...

    def close(self) -> None:
        """Let go; may be repeated."""
        ...


# ------------------------------------------------------------------- observers
class Observer(Protocol):
    """Somebody who sees what is really in use of shared resources."""

    @property
    def config(self) -> ObserverConfig:
        """Return how it was set up."""
        ...

    def look(self, sequence: int) -> tuple[Observation, ...]:
        """Look once; what cannot be seen is an observation of the quality ``unreachable``, never an error. May be repeated."""
        ...
