"""What the core needs from the world, as small protocols; adapters and the simulator fulfil them."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from xce.domain.events.base import Aggregate
from xce.domain.formats.provider import Kind

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

    machine: str
    name: str
    result: MachineResult
    launched_at: datetime | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class GrantReport:
    """One amount of a resource that a request brought."""

    grant: str
    resource: str
    amount: int
    hold_until: datetime | None = None
    expires_at: datetime | None = None


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
    ) -> Accepted | Refused:
        """Give machines or amounts back; the same return id is the same return."""
        ...

    def return_status(self, return_id: str, now: datetime) -> ReturnStatus:
        """Return what became of a return, by machine id and grant id; may be repeated."""
        ...
