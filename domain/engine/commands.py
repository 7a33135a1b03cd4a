"""What the controller can be told to do, as data: the same in a service, over REST and in the simulator.

The types carry the bounds that ``domain/engine/wire.py`` checks in what comes from outside; making a command checks nothing.
``domain/engine/site_commands.py`` has those that are about the site as a whole, not about what providers lend.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, get_args

from xce.domain.engine.site_commands import (
    ClearAlert,
    DrainHost,
    Freeze,
    OpenHost,
    RaiseAlert,
    RecordConfiguration,
    RecordTold,
    ReportDrain,
    Unfreeze,
)
from xce.domain.events.base import Why
from xce.domain.formats.base import Amount, Count, Duration, Money, Name, Time
from xce.domain.formats.config import SharedPool
from xce.domain.formats.provider import Kind, ProviderDescription
from xce.domain.formats.shared_report import SharedReport
from xce.domain.formats.snapshot import Attribute
from xce.domain.ports import StatusAnswer
from xce.domain.provisioning.decision import Deed
from xce.domain.provisioning.evidence import Exit, Sha256, Text
from xce.domain.provisioning.orphan import OrphanKind


# ------------------------------------------------------------------ what exists
@dataclass(frozen=True, slots=True)
class DescribeProvider:
    """A provider says what it is, or says it anew."""

    description: ProviderDescription


@dataclass(frozen=True, slots=True)
class PauseProvider:
    """Do not ask for ``item`` (None: for anything) of a provider until then."""

    provider: Name
    item: Name | None
    until: Time
    why: Why


@dataclass(frozen=True, slots=True)
class DeclareShared:
    """A shared resource with an owned base; ``provider`` can lend up to ``max_borrow`` in multiples of ``step``."""

    name: Name
    owned: Count
    provider: Name | None
    max_borrow: Count
    step: Amount
    idle_return_after: Duration
    min_hold: Duration

    @classmethod
    def of(cls, pool: SharedPool) -> "DeclareShared":
        """Return the command that declares a shared resource of a configuration."""
        return cls(
            pool.name,
            pool.owned,
            pool.provider,
            pool.max_borrow,
            pool.step,
            pool.idle_return_after,
            pool.min_hold,
        )


@dataclass(frozen=True, slots=True)
class ResumeProvider:
    """End a pause of ``item`` (None: of the whole provider) before its time."""

    provider: Name
    item: Name | None


@dataclass(frozen=True, slots=True)
class SetOwned:
    """An administrator sets the owned base of a shared resource."""

    name: Name
    owned: Count


@dataclass(frozen=True, slots=True)
class TakeLease:
    """``holder`` becomes the only one who may act on a provider.

    Refused while another holds it and its term is not over, unless ``force``; the same holder takes it anew: it was started again.
    """

    provider: Name
    holder: Name
    term: Duration
    force: bool = False


@dataclass(frozen=True, slots=True)
class RenewLease:
    """``holder`` still acts on a provider, under ``epoch``: its term starts anew. In memory only."""

    provider: Name
    holder: Name
    epoch: Amount


@dataclass(frozen=True, slots=True)
class ReleaseLease:
    """``holder`` gives a provider up."""

    provider: Name
    holder: Name


@dataclass(frozen=True, slots=True)
class ReportBookings:
    """The scheduler's report of what is occupied of each shared resource, None: unknown; and what else it knows. In memory only.

    One that names ``primary`` and ``as_of``, both from the supply that the session was of, is refused when it comes late: after a
    failover, or behind a newer one. What is occupied must not be what it was.
    """

    occupied: Mapping[Name, Count | None]
    reports: Mapping[Name, SharedReport] = field(default_factory=dict[str, SharedReport])
    primary: Count | None = None
    as_of: Time | None = None


# --------------------------------------------------------------------- requests
@dataclass(frozen=True, slots=True)
class OpenRequest:
    """The intent to ask a provider, durable before the call. The id is also the request's tag."""

    request: Name
    provider: Name
    kind: Kind
    item: Name
    amount: Amount
    price_per_hour: Money | None
    deadline: Time
    reason: Why
    jobs: tuple[Name, ...]
    demand_position: Count
    project: Name | None = None


@dataclass(frozen=True, slots=True)
class AcceptRequest:
    """The provider took the request on."""

    request: Name
    provider_request_id: Name


@dataclass(frozen=True, slots=True)
class RefuseRequest:
    """The provider did not take the request: nothing was created."""

    request: Name
    why: Why


@dataclass(frozen=True, slots=True)
class LoseTrack:
    """It is unknown whether the call had an effect."""

    request: Name
    why: Why


@dataclass(frozen=True, slots=True)
class RecordStatus:
    """What the provider says of a request."""

    request: Name
    answer: StatusAnswer


@dataclass(frozen=True, slots=True)
class GiveUpRequest:
    """The request's deadline is over: what has not come is not counted on any more."""

    request: Name
    why: Why


@dataclass(frozen=True, slots=True)
class SettleRequest:
    """Nothing more is expected of a request that was given up before its provider had ended it."""

    request: Name
    why: Why


# -------------------------------------------------------------------- instances
@dataclass(frozen=True, slots=True)
class RecordJoin:
    """A host reported to the cluster: it opens, or is checked before it does. One that is ``busy`` has a job: it is open, checked or not."""

    instance: Name
    host: Name
    booted_at: Time
    attributes: Mapping[Name, Attribute]
    total: Mapping[Name, Count]
    busy: bool = False


@dataclass(frozen=True, slots=True)
class PassCheck:
    """A host that had reported is found in order: it opens."""

    instance: Name


@dataclass(frozen=True, slots=True)
class MissJoin:
    """An instance did not join in time, or failed while starting or in its health check."""

    instance: Name
    why: Why


@dataclass(frozen=True, slots=True)
class StartDrain:
    """Close a host to new work, with the intention to return it."""

    instance: Name
    why: Why


@dataclass(frozen=True, slots=True)
class Reopen:
    """A job slipped in before the drain: the host takes work again."""

    instance: Name
    why: Why


@dataclass(frozen=True, slots=True)
class StartReturn:
    """The intent to give instances back, durable before the call."""

    return_id: Name
    instances: tuple[Name, ...]
    why: Why


@dataclass(frozen=True, slots=True)
class AcceptReturn:
    """The provider took the return on."""

    return_id: Name
    instances: tuple[Name, ...]
    provider_return_id: Name


@dataclass(frozen=True, slots=True)
class RefuseReturn:
    """The provider did not take an instance back."""

    return_id: Name
    instance: Name
    why: Why


@dataclass(frozen=True, slots=True)
class ConfirmReturn:
    """The provider confirmed that an instance is gone."""

    return_id: Name
    instance: Name


@dataclass(frozen=True, slots=True)
class LoseInstance:
    """An instance is gone without our return: it died, or the provider took it back."""

    instance: Name
    why: Why


# ----------------------------------------------------------------------- grants
@dataclass(frozen=True, slots=True)
class StartGrantReturn:
    """An amount leaves the total, durable before the provider is told. Void if it is occupied by then."""

    return_id: Name
    grant: Name
    amount: Amount


@dataclass(frozen=True, slots=True)
class AcceptGrantReturn:
    """The provider took the return of an amount on."""

    return_id: Name
    grant: Name
    provider_return_id: Name


@dataclass(frozen=True, slots=True)
class ConfirmGrantReturn:
    """The provider confirmed the return of an amount."""

    return_id: Name
    grant: Name


@dataclass(frozen=True, slots=True)
class RefuseGrantReturn:
    """The provider refused: the amount comes back into the total."""

    return_id: Name
    grant: Name
    why: Why


@dataclass(frozen=True, slots=True)
class ExtendGrant:
    """The lender put the end of a grant off; None: it does not end by itself any more."""

    grant: Name
    expires_at: Time | None


@dataclass(frozen=True, slots=True)
class LosePart:
    """The lender has so much less of a grant lent to us than we counted."""

    grant: Name
    amount: Amount
    why: Why


@dataclass(frozen=True, slots=True)
class LoseGrant:
    """What is left of a grant is gone without our return: its term ended, or the lender does not list it any more."""

    grant: Name
    why: Why


# --------------------------------------------------------- orphans and decisions
@dataclass(frozen=True, slots=True)
class ReportOrphan:
    """A reconciliation found something that no live record owns, or that the provider does not know.

    ``since``: since when it is there, as its provider says, else since it was seen first; None: not known.
    """

    provider: Name
    theirs: Name
    kind: OrphanKind
    tag: Name | None
    why: Why
    of: Kind = Kind.HOST
    item: Name | None = None
    amount: Count = 1
    since: Time | None = None


@dataclass(frozen=True, slots=True)
class AdoptOrphan:
    """A live record owns it from now on; ``owner`` is its id, such as ``instance:aws/i-7``."""

    provider: Name
    theirs: Name
    owner: Name


@dataclass(frozen=True, slots=True)
class DismissOrphan:
    """A person says that it is none of ours; it is not reported again."""

    provider: Name
    theirs: Name
    why: Why


@dataclass(frozen=True, slots=True)
class ReturnOrphan:
    """The intent to give an orphan back, durable before the call."""

    provider: Name
    theirs: Name
    return_id: Name
    why: Why


@dataclass(frozen=True, slots=True)
class RefuseOrphanReturn:
    """The provider did not take an orphan back."""

    provider: Name
    theirs: Name
    return_id: Name
    why: Why


@dataclass(frozen=True, slots=True)
class CloseOrphan:
    """An orphan is not there any more: it went back, or away."""

    provider: Name
    theirs: Name
    why: Why


@dataclass(frozen=True, slots=True)
class RecordDecision:
    """Why something is done, in the order of what is done; ``led_to`` are ids such as ``request:R1``."""

    decision: Name
    provider: Name
    deed: Deed
    item: Name | None
    amount: Count
    reason: Why
    jobs: tuple[Name, ...]
    demand_position: Count
    demand_digest: Sha256 | None
    cost_per_hour: Money | None
    led_to: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class RecordEvidence:
    """What was said in a call, last in the order of what it led to; where that changes nothing, nothing is kept."""

    evidence: Name
    provider: Name
    call: Name
    subject: Text
    arguments: tuple[Text, ...]
    exit_code: Exit | None
    milliseconds: Count | None
    digest: Sha256
    output: Text
    log: Text
    step: Text
    killed: Text


Command = (
    DescribeProvider | PauseProvider | ResumeProvider | DeclareShared | SetOwned | ReportBookings
    | TakeLease | RenewLease | ReleaseLease
    | OpenRequest | AcceptRequest | RefuseRequest | LoseTrack | RecordStatus | GiveUpRequest
    | SettleRequest
    | RecordJoin | PassCheck | MissJoin | StartDrain | Reopen | StartReturn | AcceptReturn | RefuseReturn | ConfirmReturn
    | LoseInstance
    | StartGrantReturn | AcceptGrantReturn | ConfirmGrantReturn | RefuseGrantReturn | ExtendGrant | LosePart | LoseGrant
    | ReportOrphan | AdoptOrphan | DismissOrphan | ReturnOrphan | RefuseOrphanReturn | CloseOrphan | RecordDecision
    | RecordEvidence
    | DrainHost | OpenHost | ReportDrain | Freeze | Unfreeze | RecordConfiguration
    | RaiseAlert | ClearAlert | RecordTold
)  # fmt: skip

#: All commands, in the order of the reference.
COMMANDS: Final[tuple[type[Command], ...]] = get_args(Command)


def command_name(command: type[Command]) -> str:
    """Return what a command is called outside the code: ``open-request``."""
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in command.__name__).removeprefix(
        "-"
    )
