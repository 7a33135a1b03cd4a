"""What each command does to the aggregates: validation against their state, then events. No batch, no roles, no keys here."""

from dataclasses import dataclass
from datetime import datetime

from xce.domain.engine import accounting, orphans
from xce.domain.engine.commands import (
    AcceptGrantReturn,
    AcceptRequest,
    AcceptReturn,
    ConfirmGrantReturn,
    ConfirmReturn,
    DeclareShared,
    DescribeProvider,
    ExtendGrant,
    GiveUpRequest,
    LoseGrant,
    LoseInstance,
    LosePart,
    LoseTrack,
    MissJoin,
    OpenRequest,
    PassCheck,
    PauseProvider,
    RecordDecision,
    RecordEvidence,
    RecordJoin,
    RecordStatus,
    RefuseGrantReturn,
    RefuseRequest,
    RefuseReturn,
    Reopen,
    ReportOrphan,
    ResumeProvider,
    SetOwned,
    SettleRequest,
    StartDrain,
    StartGrantReturn,
    StartReturn,
)
from xce.domain.engine.workspace import Workspace
from xce.domain.errors import RejectedError
from xce.domain.events import ids
from xce.domain.events.base import cut
from xce.domain.formats.provider import Kind, ProviderDescription
from xce.domain.provisioning.decision import Decision
from xce.domain.provisioning.evidence import Evidence
from xce.domain.provisioning.grant import LIVE, Grant
from xce.domain.provisioning.instance import Instance, InstanceState
from xce.domain.provisioning.orphan import OrphanKind
from xce.domain.provisioning.provider import Provider
from xce.domain.provisioning.request import Request, RequestState
from xce.domain.sharing.elastic_resource import ElasticResource

RequestCommand = (
    OpenRequest | AcceptRequest | RefuseRequest | LoseTrack | RecordStatus | GiveUpRequest
    | SettleRequest
)  # fmt: skip
InstanceCommand = (
    RecordJoin | PassCheck | MissJoin | StartDrain | Reopen | StartReturn | AcceptReturn | RefuseReturn
    | ConfirmReturn | LoseInstance
)  # fmt: skip
GrantCommand = (
    StartGrantReturn
    | AcceptGrantReturn
    | ConfirmGrantReturn
    | RefuseGrantReturn
    | ExtendGrant
    | LosePart
    | LoseGrant
)
ProviderCommand = DescribeProvider | PauseProvider | ResumeProvider
SharedCommand = DeclareShared | SetOwned


@dataclass(frozen=True, slots=True)
class Stamp:
    """When a command is carried out, for whom."""

    at: datetime
    by: str


# -------------------------------------------------------------- what exists
def provider(space: Workspace, command: ProviderCommand, stamp: Stamp) -> None:
    """A provider describes itself, or is paused."""
    name = command.description.name if isinstance(command, DescribeProvider) else command.provider
    space.fence_words(name, stamp.by)
    if isinstance(command, DescribeProvider):
        known = space.find(Provider, ids.provider_id(name))
        if known is None:
            space.add(
                Provider.describe_first(description=command.description, at=stamp.at, by=stamp.by)
            )
        else:
            known.describe(description=command.description, at=stamp.at, by=stamp.by)
        return
    known = space.get(Provider, ids.provider_id(command.provider))
    if isinstance(command, PauseProvider):
        known.pause(
            item=command.item, until=command.until, why=command.why, at=stamp.at, by=stamp.by
        )
    else:
        known.resume(item=command.item, at=stamp.at, by=stamp.by)


def shared(space: Workspace, command: SharedCommand, stamp: Stamp) -> None:
    """The configuration declares a shared resource, or an administrator sets what is owned of it."""
    if isinstance(command, SetOwned):
        space.get(ElasticResource, ids.shared_id(command.name)).set_owned(
            owned=command.owned, at=stamp.at, by=stamp.by
        )
        return
    resource = space.find(ElasticResource, ids.shared_id(command.name))
    if resource is None:
        space.add(
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


# ------------------------------------------------------------------ requests
def request(space: Workspace, command: RequestCommand, stamp: Stamp) -> None:
    """An ask of a provider, from the intent to its end."""
    if isinstance(command, OpenRequest):
        _open(space, command, stamp)
        return
    known = space.get(Request, ids.request_id(command.request))
    at, by, epoch = stamp.at, stamp.by, space.fence(known.provider)
    match command:
        case AcceptRequest():
            known.accept(provider_request_id=command.provider_request_id, at=at, by=by, epoch=epoch)
        case RefuseRequest():
            accounting.refuse(known, command.why, at=at, by=by, epoch=epoch)
        case LoseTrack():
            known.lose_track(why=command.why, at=at, by=by, epoch=epoch)
        case RecordStatus():
            _record_status(space, known, command, stamp, epoch)
        case GiveUpRequest():
            known.close(outcome=RequestState.TIMED_OUT, why=command.why, at=at, by=by, epoch=epoch)
        case SettleRequest():
            known.settle(why=command.why, at=at, by=by, epoch=epoch)


def _open(space: Workspace, command: OpenRequest, stamp: Stamp) -> None:
    request_id = ids.request_id(command.request)
    known = space.find(Request, request_id)
    if known is not None:
        if _is_same(known, command):
            return
        raise RejectedError(f"request {command.request} was opened before, for something else")
    description = _description(space, command.provider)
    hold = description.minimum_hold
    if command.kind is Kind.COUNTABLE:
        offered = [o.minimum_hold for o in description.resources if o.name == command.item]
        hold = max([hold, *offered])
    space.add(
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
            project=command.project,
            at=stamp.at,
            by=stamp.by,
            epoch=space.fence(command.provider),
        )
    )


def _is_same(known: Request, command: OpenRequest) -> bool:
    return (
        known.provider, known.kind, known.item, known.amount, known.price_per_hour,
        known.deadline, known.jobs, known.demand_position, known.project,
    ) == (
        command.provider, command.kind, command.item, command.amount, command.price_per_hour,
        command.deadline, command.jobs, command.demand_position, command.project,
    )  # fmt: skip


def _record_status(
    space: Workspace, known: Request, command: RecordStatus, stamp: Stamp, epoch: int
) -> None:
    resource = None
    if known.kind is Kind.COUNTABLE:
        resource = space.get(ElasticResource, ids.shared_id(known.item))

    def record_of(name: str) -> Instance | Grant | None:
        if known.kind is Kind.HOST:
            return space.find(Instance, ids.instance_id(name))
        return space.find(Grant, ids.grant_id(name))

    passed = accounting.Passed()
    for new in accounting.record_status(
        known,
        command.answer,
        resource,
        billing=_description(space, known.provider).billing,
        record_of=record_of,
        passed=passed,
        at=stamp.at,
        by=stamp.by,
        epoch=epoch,
    ):
        space.add(new)
        orphans.own(space, new, at=stamp.at, by=stamp.by, epoch=epoch)
    for theirs, one in passed.unowned.items():
        found = ReportOrphan(
            known.provider,
            theirs,
            OrphanKind.UNKNOWN_TO_US,
            known.name,
            cut(one.why),
            of=known.kind,
            item=known.item,
            amount=one.amount,
            since=one.since,
        )
        orphans.handle(space, found, at=stamp.at, by=stamp.by)


# ----------------------------------------------------------------- instances
def instance(space: Workspace, command: InstanceCommand, stamp: Stamp) -> None:
    """A host that a request brought, from its join to its end."""
    if isinstance(command, (StartReturn, AcceptReturn)):
        for name in command.instances:
            _return(space, command, space.get(Instance, ids.instance_id(name)), stamp)
        return
    known = space.get(Instance, ids.instance_id(command.instance))
    at, by, epoch = stamp.at, stamp.by, space.fence(known.provider)
    match command:
        case RecordJoin() | PassCheck():
            _join(space, command, known, stamp)
        case MissJoin():
            known.miss_join(why=command.why, at=at, by=by, epoch=epoch)
        case StartDrain():
            known.start_drain(why=command.why, at=at, by=by, epoch=epoch)
        case Reopen():
            known.reopen(why=command.why, at=at, by=by, epoch=epoch)
        case RefuseReturn():
            known.refuse_return(
                return_id=command.return_id, why=command.why, at=at, by=by, epoch=epoch
            )
        case ConfirmReturn():
            known.confirm_return(at=at, by=by, epoch=epoch)
        case LoseInstance():
            known.lose(why=command.why, at=at, by=by, epoch=epoch)


def _join(space: Workspace, command: RecordJoin | PassCheck, known: Instance, stamp: Stamp) -> None:
    """Open a host that reports, or whose check has passed; one that is to be checked only reports."""
    at, by, epoch = stamp.at, stamp.by, space.fence(known.provider)
    provider = space.get(Provider, ids.provider_id(known.provider))
    told: RecordJoin | Instance.CheckStarted | None = known.report
    if isinstance(command, RecordJoin):
        told = command
        checked = provider.description.checks(known.template)
        if checked and not command.busy and known.state is InstanceState.STARTING:
            known.start_check(
                host=told.host,
                booted_at=told.booted_at,
                attributes=told.attributes,
                total=told.total,
                at=at,
                by=by,
                epoch=epoch,
            )
            return
    if told is None:
        raise RejectedError(f"instance {known.name} has not reported: there is nothing to check")
    known.join(
        host=told.host,
        booted_at=told.booted_at,
        attributes=told.attributes,
        total=told.total,
        at=at,
        by=by,
        epoch=epoch,
    )
    provider.learn(template=known.template, total=told.total, host=told.host, at=at, by=by)


def _return(
    space: Workspace, command: StartReturn | AcceptReturn, known: Instance, stamp: Stamp
) -> None:
    epoch = space.fence(known.provider)
    match command:
        case StartReturn():
            known.intend_return(
                return_id=command.return_id, why=command.why, at=stamp.at, by=stamp.by, epoch=epoch
            )
        case AcceptReturn():
            known.accept_return(
                return_id=command.return_id,
                provider_return_id=command.provider_return_id,
                at=stamp.at,
                by=stamp.by,
                epoch=epoch,
            )


# -------------------------------------------------------------------- grants
def grant(space: Workspace, command: GrantCommand, stamp: Stamp, occupied: int | None) -> None:
    """An amount that goes back; ``occupied`` is what is in use of its resource, None: unknown."""
    known = space.get(Grant, ids.grant_id(command.grant))
    resource = space.get(ElasticResource, ids.shared_id(known.resource))
    at, by, epoch = stamp.at, stamp.by, space.fence(known.provider)
    match command:
        case StartGrantReturn():
            if occupied is None:
                raise RejectedError(
                    f"what is occupied of {known.resource} is unknown: nothing of it goes back"
                )
            known.start_return(
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
        case AcceptGrantReturn():
            known.accept_return(
                return_id=command.return_id,
                provider_return_id=command.provider_return_id,
                at=at,
                by=by,
                epoch=epoch,
            )
        case ExtendGrant():
            known.extend(expires_at=command.expires_at, at=at, by=by, epoch=epoch)
        case LosePart():
            known.lose_part(amount=command.amount, why=command.why, at=at, by=by, epoch=epoch)
            resource.lose_part(grant_id=command.grant, amount=command.amount, at=at, by=by)
        case LoseGrant():
            was_lent = known.state in LIVE
            known.lose(why=command.why, at=at, by=by, epoch=epoch)
            if was_lent:  # also where all of it is on its way back: these returns are over
                resource.lose_grant(grant_id=command.grant, at=at, by=by)
        case ConfirmGrantReturn():
            known.confirm_return(return_id=command.return_id, at=at, by=by, epoch=epoch)
        case RefuseGrantReturn():
            known.refuse_return(
                return_id=command.return_id, why=command.why, at=at, by=by, epoch=epoch
            )
            resource.put_back(return_id=command.return_id, why=command.why, at=at, by=by)


def resource_of(space: Workspace, command: GrantCommand) -> str:
    """Return the resource that a command's grant is of.

    Raises:
        NotFoundError: there is no such grant.
    """
    return space.get(Grant, ids.grant_id(command.grant)).resource


# ----------------------------------------------------------------- decisions
def decision(space: Workspace, command: RecordDecision, stamp: Stamp) -> None:
    """Why something is done."""
    epoch = space.fence(command.provider)
    new = Decision.make(
        decision=command.decision,
        provider=command.provider,
        deed=command.deed,
        item=command.item,
        amount=command.amount,
        reason=command.reason,
        jobs=command.jobs,
        demand_position=command.demand_position,
        demand_digest=command.demand_digest,
        cost_per_hour=command.cost_per_hour,
        led_to=command.led_to,
        at=stamp.at,
        by=stamp.by,
        epoch=epoch,
    )
    known = space.find(Decision, new.id)
    if known is None:
        space.add(new)
    elif known.content() != new.content():
        raise RejectedError(f"decision {command.decision} was recorded before, as another one")


def evidence(space: Workspace, command: RecordEvidence, stamp: Stamp) -> None:
    """What was said; kept only beside something that it changed."""
    if not space.has_changed():
        return
    space.add(
        Evidence.keep(
            evidence=command.evidence,
            provider=command.provider,
            call=command.call,
            subject=command.subject,
            arguments=command.arguments,
            exit_code=command.exit_code,
            milliseconds=command.milliseconds,
            digest=command.digest,
            output=command.output,
            log=command.log,
            step=command.step,
            killed=command.killed,
            at=stamp.at,
            by=stamp.by,
            epoch=space.fence(command.provider),
        )
    )


def _description(space: Workspace, name: str) -> ProviderDescription:
    return space.get(Provider, ids.provider_id(name)).description
