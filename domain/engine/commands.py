"""What the controller can be told to do, as data: the same in a service, over REST and in the simulator."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from xce.domain.formats.provider import Kind, ProviderDescription
from xce.domain.formats.snapshot import Attribute
from xce.domain.ports import StatusAnswer


# ------------------------------------------------------------------ what exists
@dataclass(frozen=True, slots=True)
class DescribeProvider:
    """A provider says what it is, or says it anew."""

    description: ProviderDescription


@dataclass(frozen=True, slots=True)
class PauseProvider:
    """Do not ask for ``item`` (None: for anything) of a provider until then."""

    provider: str
    item: str | None
    until: datetime
    why: str


@dataclass(frozen=True, slots=True)
class DeclareShared:
    """A shared resource with an owned base; ``provider`` can lend up to ``max_borrow`` in multiples of ``step``."""

    name: str
    owned: int
    provider: str | None
    max_borrow: int
    step: int
    idle_return_after: timedelta
    min_hold: timedelta


@dataclass(frozen=True, slots=True)
class TakeLease:
    """``holder`` becomes the only one who may act on a provider."""

    provider: str
    holder: str
    term: timedelta


@dataclass(frozen=True, slots=True)
class ReleaseLease:
    """``holder`` gives a provider up."""

    provider: str
    holder: str


@dataclass(frozen=True, slots=True)
class ReportBookings:
    """The scheduler's report of what is occupied of each shared resource; None: unknown. In memory only."""

    occupied: Mapping[str, int | None]


# --------------------------------------------------------------------- requests
@dataclass(frozen=True, slots=True)
class OpenRequest:
    """The intent to ask a provider, durable before the call. The id is also the request's tag."""

    request: str
    provider: str
    kind: Kind
    item: str
    amount: int
    price_per_hour: Decimal | None
    deadline: datetime
    reason: str
    jobs: tuple[str, ...]
    demand_position: int


@dataclass(frozen=True, slots=True)
class AcceptRequest:
    """The provider took the request on."""

    request: str
    provider_request_id: str


@dataclass(frozen=True, slots=True)
class RefuseRequest:
    """The provider did not take the request: nothing was created."""

    request: str
    why: str


@dataclass(frozen=True, slots=True)
class LoseTrack:
    """It is unknown whether the call had an effect."""

    request: str
    why: str


@dataclass(frozen=True, slots=True)
class RecordStatus:
    """What the provider says of a request."""

    request: str
    answer: StatusAnswer


@dataclass(frozen=True, slots=True)
class GiveUpRequest:
    """The request's deadline is over: what has not come is not counted on any more."""

    request: str
    why: str


# -------------------------------------------------------------------- instances
@dataclass(frozen=True, slots=True)
class RecordJoin:
    """A host reported to the cluster."""

    instance: str
    host: str
    booted_at: datetime
    attributes: Mapping[str, Attribute]
    total: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class MissJoin:
    """An instance did not join in time, or failed while starting."""

    instance: str
    why: str


@dataclass(frozen=True, slots=True)
class StartDrain:
    """Close a host to new work, with the intention to return it."""

    instance: str
    why: str


@dataclass(frozen=True, slots=True)
class Reopen:
    """A job slipped in before the drain: the host takes work again."""

    instance: str
    why: str


@dataclass(frozen=True, slots=True)
class StartReturn:
    """The intent to give instances back, durable before the call."""

    return_id: str
    instances: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class AcceptReturn:
    """The provider took the return on."""

    return_id: str
    instances: tuple[str, ...]
    provider_return_id: str


@dataclass(frozen=True, slots=True)
class RefuseReturn:
    """The provider did not take an instance back."""

    return_id: str
    instance: str
    why: str


@dataclass(frozen=True, slots=True)
class ConfirmReturn:
    """The provider confirmed that an instance is gone."""

    return_id: str
    instance: str


# ----------------------------------------------------------------------- grants
@dataclass(frozen=True, slots=True)
class StartGrantReturn:
    """An amount leaves the total, durable before the provider is told. Void if it is occupied by then."""

    return_id: str
    grant: str
    amount: int


@dataclass(frozen=True, slots=True)
class ConfirmGrantReturn:
    """The provider confirmed the return of an amount."""

    return_id: str
    grant: str


@dataclass(frozen=True, slots=True)
class RefuseGrantReturn:
    """The provider refused: the amount comes back into the total."""

    return_id: str
    grant: str
    why: str


Command = (
    DescribeProvider | PauseProvider | DeclareShared | TakeLease | ReleaseLease | ReportBookings
    | OpenRequest | AcceptRequest | RefuseRequest | LoseTrack | RecordStatus | GiveUpRequest
    | RecordJoin | MissJoin | StartDrain | Reopen | StartReturn | AcceptReturn | RefuseReturn | ConfirmReturn
    | StartGrantReturn | ConfirmGrantReturn | RefuseGrantReturn
)  # fmt: skip
