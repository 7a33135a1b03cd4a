"""The provisioner as a state machine: messages in; commands to make durable, then calls to make, out.

It keeps nothing that matters. What is open is read from the inventory, so that a provisioner killed at any
moment and started elsewhere goes on from the log alone. The driver (a daemon, or the simulator) carries an
``Step`` out in this order: all its commands are durable first, then its looks and calls happen, and each answer
comes back as a message. What is due is in ``polling``, what a listing means in ``reconciliation``.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from xce.domain.engine.accounting import is_name
from xce.domain.engine.calls import (
    Answer,
    AskCall,
    Call,
    CheckCall,
    GiveBackCall,
    Look,
    RenewCall,
    ReturnStatusCall,
    StatusCall,
    Step,
    Steps,
)
from xce.domain.engine.commands import (
    AcceptGrantReturn,
    AcceptRequest,
    AcceptReturn,
    Command,
    ConfirmGrantReturn,
    ConfirmReturn,
    ExtendGrant,
    GiveUpRequest,
    LoseTrack,
    MissJoin,
    OpenRequest,
    PassCheck,
    PauseProvider,
    RecordDecision,
    RefuseGrantReturn,
    RefuseOrphanReturn,
    RefuseRequest,
    RefuseReturn,
    Reopen,
    ReportOrphan,
    StartDrain,
    StartGrantReturn,
)
from xce.domain.engine.polling import (
    DEFAULTS,
    NOTHING,
    Underway,
    give_back,
    is_unknown,
    own_part,
    poll,
    record_status,
)
from xce.domain.events import ids as aggregate_ids
from xce.domain.events.base import cut
from xce.domain.formats.inventory import GrantEntry, InstanceEntry, Inventory, RequestEntry
from xce.domain.formats.lifecycle import LifecycleSettings
from xce.domain.formats.policy import Decision, DecisionKind, PolicyInput, PolicySettings
from xce.domain.formats.provider import Capabilities, Kind
from xce.domain.policy.backoff import pause_for
from xce.domain.policy.decide import decide, renewals
from xce.domain.policy.times import later
from xce.domain.ports import (
    Accepted,
    Ask,
    Checked,
    GrantBack,
    IdSource,
    MachineResult,
    Refused,
    Renewed,
    RequestStatus,
    ReturnStatus,
    StatusAnswer,
)
from xce.domain.provisioning.decision import Deed
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.orphan import OrphanKind

__all__ = [
    "Answer",
    "AskCall",
    "Call",
    "GiveBackCall",
    "Look",
    "Provisioner",
    "ReturnStatusCall",
    "StatusCall",
    "Step",
    "Steps",
]

#: A provider that names a time further away than a year is tried again after a year.
_RETRY_MAX_S: Final = 365 * 86400
_DEEDS: Final = {
    DecisionKind.REQUEST: Deed.REQUEST,
    DecisionKind.RETURN: Deed.RETURN,
    DecisionKind.CANCEL: Deed.CANCEL,
}


class Provisioner:
    """One provisioner instance."""

    def __init__(self, ids: IdSource) -> None:
        self._ids = ids

    # ------------------------------------------------------------ a policy round
    def round(
        self,
        inputs: PolicyInput,
        digest: str | None = None,
        asking: Collection[str] = frozenset(),
    ) -> tuple[tuple[Decision, ...], Steps]:
        """Decide, and return the decisions with what they lead to: nothing where the settings say to observe only.

        Args:
            inputs: what is known.
            digest: of the session result that the demand is of.
            asking: tags of the asks that this process is at.
        """
        decisions = decide(inputs).decisions
        if inputs.settings.observe_only:
            return decisions, ()
        view = _View.of(inputs.inventory)
        steps = tuple(
            step
            for decision in decisions
            for step in self._carry_out(decision, inputs, view, digest, asking)
        )
        return decisions, (*steps, *_renew(renewals(inputs)))

    def _carry_out(
        self,
        decision: Decision,
        inputs: PolicyInput,
        view: "_View",
        digest: str | None,
        asking: Collection[str],
    ) -> Steps:
        def because(provider: str, *aims: str, amount: int | None = None) -> Command:
            return RecordDecision(
                decision=self._ids.next_id("D"),
                provider=provider,
                deed=_DEEDS[decision.kind],
                item=decision.template if decision.template is not None else decision.resource,
                amount=len(aims) if amount is None else amount,
                reason=cut(decision.reason),
                jobs=decision.jobs,
                demand_position=inputs.position,
                demand_digest=digest,
                cost_per_hour=decision.cost_per_hour,
                led_to=aims,
            )

        match decision.kind:
            case DecisionKind.REQUEST:
                return (self._open(decision, inputs, because),)
            case DecisionKind.RETURN:
                return (
                    *self._drain(decision, view, because),
                    *self._lend_back(decision, view, because),
                )
            case DecisionKind.CANCEL:
                return tuple(
                    _give_up(view.requests[request], decision.reason, because, asking)
                    for request in decision.requests
                    if request in view.requests
                )
            case DecisionKind.PAUSE:
                return (_pause(decision),)
            case DecisionKind.HOLD:
                return ()

    def _open(self, decision: Decision, inputs: PolicyInput, because: "_Because") -> Step:
        assert decision.provider is not None
        kind = Kind.HOST if decision.template is not None else Kind.COUNTABLE
        item = decision.template if kind is Kind.HOST else decision.resource
        amount = decision.count if kind is Kind.HOST else decision.amount
        assert item is not None
        assert amount is not None
        request = self._ids.next_id("R")
        price = None if decision.cost_per_hour is None else decision.cost_per_hour / amount
        intent = OpenRequest(
            request=request,
            provider=decision.provider,
            kind=kind,
            item=item,
            amount=amount,
            price_per_hour=price,
            deadline=inputs.now + inputs.settings.request_deadline,
            reason=decision.reason,
            jobs=decision.jobs,
            demand_position=inputs.position,
            project=decision.project,
        )
        decided = because(decision.provider, aggregate_ids.request_id(request), amount=amount)
        return Step(
            (intent, decided), calls=(AskCall(decision.provider, Ask(request, kind, item, amount)),)
        )

    def _drain(self, decision: Decision, view: "_View", because: "_Because") -> Steps:
        joined = (view.instances[instance] for instance in decision.instances)
        return tuple(
            Step(
                (
                    StartDrain(entry.id, decision.reason),
                    because(entry.provider, aggregate_ids.instance_id(entry.id)),
                ),
                looks=(Look((entry.id,)),),
            )
            for entry in joined
            if entry.state is InstanceState.JOINED
        )

    def _lend_back(self, decision: Decision, view: "_View", because: "_Because") -> Steps:
        steps: list[Step] = []
        for part in decision.grants:
            return_id = self._ids.next_id("B")
            lender = view.grants[part.grant].provider
            back = (part.grant, GrantBack(own_part(part.grant, lender), part.amount))
            call = GiveBackCall(lender, return_id, grants=(back,))
            intent = StartGrantReturn(return_id, part.grant, part.amount)
            decided = because(lender, aggregate_ids.grant_id(part.grant), amount=part.amount)
            steps.append(Step((intent, decided), calls=(call,)))
        return tuple(steps)

    # ----------------------------------------------------------------- messages
    def looked(
        self,
        busy: Mapping[str, bool],
        inventory: Inventory,
    ) -> Steps:
        """Go on after a look: hosts with a job open again, the others go back."""
        view = _View.of(inventory)
        reopened = tuple(
            Step((Reopen(instance, "a job had started on it"),))
            for instance, has_job in busy.items()
            if has_job
        )
        free = [view.instances[instance] for instance, has_job in busy.items() if not has_job]
        return (*reopened, *give_back(free, "drained", self._ids))

    def answered(
        self,
        call: Call,
        answer: Answer,
        now: datetime,
        settings: PolicySettings,
        failures: int = 0,
    ) -> Steps:
        """Go on after a provider's answer; ``failures``: of what is asked, in a row, before this answer."""
        match call, answer:
            case AskCall(), Accepted(provider_request_id=theirs):
                if not is_name(theirs):
                    why = f"accepted under an id that cannot be recorded: {theirs[:80]!r}"
                    return (Step((LoseTrack(call.ask.tag, why),)),)
                return (Step((AcceptRequest(call.ask.tag, theirs),)),)
            case AskCall(), Refused():
                return _after_refusal(call, answer, now, settings, failures)
            case StatusCall(), StatusAnswer():
                return record_status(call.request, answer)
            case GiveBackCall(), Accepted(provider_request_id=theirs):
                return _after_acceptance(call, theirs)
            case GiveBackCall(), Refused():
                return _after_refused_return(call, cut(answer.why))
            case ReturnStatusCall(), ReturnStatus():
                return _after_return_status(call, answer)
            case RenewCall(), Renewed():
                return _after_renewal(call, answer)
            case CheckCall(), Checked():
                return _after_check(call, answer)
            case _:
                raise AssertionError(
                    f"{type(answer).__name__} is no answer to {type(call).__name__}"
                )

    def failed(self, call: Call, why: str, suspect: str | None = None) -> Steps:
        """Go on after a call without an answer: whether an ask had an effect is unknown; the rest is polled again.

        ``suspect``: a request id that came with the failure; it is asked after (field case F19).
        """
        if not isinstance(call, AskCall):
            return ()
        ask, lost = call.ask, LoseTrack(call.ask.tag, cut(why))
        # Of a request that was given up meanwhile, people are told.
        late = _never_found_out(call.provider, ask.tag, f"{ask.amount} of {ask.item}")
        if suspect is not None and is_name(suspect):
            found = AcceptRequest(ask.tag, suspect)
            return (Step((lost, found), otherwise=(found,)),)
        return (Step((lost,), otherwise=(late,)),)

    # -------------------------------------------------------------------- polls
    def poll(
        self,
        inventory: Inventory,
        now: datetime,
        settings: PolicySettings,
        *,
        looked_at: datetime | None,
        lifecycle: LifecycleSettings = DEFAULTS,
        capabilities: Mapping[str, Capabilities] | None = None,
        underway: Underway = NOTHING,
    ) -> Steps:
        """Return what is due: see ``polling.poll``."""
        return poll(
            inventory,
            now,
            settings,
            self._ids,
            looked_at=looked_at,
            lifecycle=lifecycle,
            capabilities=capabilities,
            underway=underway,
        )


# -------------------------------------------------------------------- helpers
@dataclass(frozen=True, slots=True)
class _View:
    """The inventory by id."""

    requests: dict[str, RequestEntry]
    instances: dict[str, InstanceEntry]
    grants: dict[str, GrantEntry]

    @classmethod
    def of(cls, inventory: Inventory) -> "_View":
        return cls(
            {e.id: e for e in inventory.requests},
            {e.id: e for e in inventory.instances},
            {e.id: e for e in inventory.grants},
        )


class _Because(Protocol):
    """Makes the record of a decision for what it leads to."""

    def __call__(self, provider: str, *aims: str, amount: int | None = None) -> Command: ...


def _pause(decision: Decision) -> Step:
    assert decision.provider is not None
    assert decision.until is not None
    item = decision.template if decision.template is not None else decision.resource
    return Step((PauseProvider(decision.provider, item, decision.until, cut(decision.reason)),))


def _give_up(entry: RequestEntry, why: str, because: _Because, asking: Collection[str]) -> Step:
    """Count on nothing more; what may have been made without our knowing is a thing for people to look at.

    An ask that this process is at is not lost: it is not made any more, or its answer is recorded late.
    """
    commands: list[Command] = [
        GiveUpRequest(entry.id, why),
        because(entry.provider, aggregate_ids.request_id(entry.id), amount=entry.amount),
    ]
    if is_unknown(entry) and entry.id not in asking:
        item = entry.template if entry.template is not None else entry.resource
        commands.append(_never_found_out(entry.provider, entry.id, f"{entry.amount} of {item}"))
    return Step(tuple(commands))


def _never_found_out(provider: str, request: str, what: str) -> ReportOrphan:
    why = f"what the ask for {what} has done was never found out: look for it at the provider"
    return ReportOrphan(provider, request, OrphanKind.UNKNOWN_TO_US, request, why)


def _renew(grants: Iterable[GrantEntry]) -> Steps:
    by_provider: dict[str, list[tuple[str, str]]] = {}
    for grant in grants:
        pair = grant.id, own_part(grant.id, grant.provider)
        by_provider.setdefault(grant.provider, []).append(pair)
    return tuple(
        Step(calls=(RenewCall(provider, tuple(pairs)),)) for provider, pairs in by_provider.items()
    )


def _after_renewal(call: RenewCall, answer: Renewed) -> Steps:
    ends = dict(answer.ends)
    return tuple(
        Step((ExtendGrant(ours, ends[theirs]),)) for ours, theirs in call.grants if theirs in ends
    )


def _after_check(call: CheckCall, answer: Checked) -> Steps:
    """Open what is in order, and count what is not as failed; what is not known yet is looked at again."""
    said = {machine: (result, why) for machine, result, why in answer.results}
    steps: list[Step] = []
    for ours, machine in call.instances:
        result, why = said.get(machine.machine, (MachineResult.EXECUTING, ""))
        if result is MachineResult.SUCCEED:
            steps.append(Step((PassCheck(ours),)))
        elif result is MachineResult.FAIL:
            steps.append(Step((MissJoin(ours, cut(f"its health check failed: {why}")),)))
    return tuple(steps)


def _after_refusal(
    call: AskCall, answer: Refused, now: datetime, settings: PolicySettings, failures: int
) -> Steps:
    pause = (
        pause_for(failures + 1, settings)
        if answer.retry_after_s is None
        else timedelta(seconds=min(max(0, answer.retry_after_s), _RETRY_MAX_S))
    )
    why = cut(f"{answer.code}: {answer.why}")
    refused = RefuseRequest(call.ask.tag, why)
    if not pause:
        return (Step((refused,)),)
    until = later(now, pause)
    return (Step((refused, PauseProvider(call.provider, call.ask.item, until, why))),)


def _after_acceptance(call: GiveBackCall, theirs: str) -> Steps:
    if not is_name(theirs):
        return ()
    ids = tuple(ours for ours, _ in call.instances)
    hosts = (Step((AcceptReturn(call.return_id, ids, theirs),)),) if ids else ()
    lent = tuple(
        Step((AcceptGrantReturn(call.return_id, ours, theirs),)) for ours, _ in call.grants
    )
    return (*hosts, *lent)


def _after_refused_return(call: GiveBackCall, why: str) -> Steps:
    return (
        *(Step((RefuseReturn(call.return_id, ours, why),)) for ours, _ in call.instances),
        *(Step((RefuseGrantReturn(call.return_id, ours, why),)) for ours, _ in call.grants),
        *(
            Step((RefuseOrphanReturn(call.provider, theirs, call.return_id, why),))
            for theirs in call.orphans
        ),
    )


def _after_return_status(call: ReturnStatusCall, answer: ReturnStatus) -> Steps:
    commands: list[Command] = []
    for ours, theirs in call.instances:
        match _fate(theirs, answer):
            case None:
                pass
            case "":
                commands.append(ConfirmReturn(call.return_id, ours))
            case why:
                commands.append(RefuseReturn(call.return_id, ours, why))
    for ours, theirs in call.grants:
        match _fate(theirs, answer):
            case None:
                pass
            case "":
                commands.append(ConfirmGrantReturn(call.return_id, ours))
            case why:
                commands.append(RefuseGrantReturn(call.return_id, ours, why))
    return tuple(Step((command,)) for command in commands)


def _fate(theirs: str, answer: ReturnStatus) -> str | None:
    """Return None while it is open, "" when it is gone, else why it was refused."""
    refused = dict(answer.refused)
    if theirs in refused:
        return cut(refused[theirs]) or "the provider did not say why"
    if theirs in answer.gone or answer.status is RequestStatus.COMPLETE:
        return ""
    if answer.status is RequestStatus.COMPLETE_WITH_ERROR:
        return "the return ended with an error that does not name it"
    return None
