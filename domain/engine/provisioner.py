"""The provisioner as a state machine: messages in; commands to make durable, then calls to make, out.

It keeps nothing that matters. What is open is read from the inventory, so that a provisioner killed at any
moment and started elsewhere goes on from the log alone. The driver (a daemon, or the simulator) carries an
``Step`` out in this order: all its commands are durable first, then its looks and calls happen, and each answer
comes back as a message.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final

from xce.domain.engine.accounting import is_name
from xce.domain.engine.commands import (
    AcceptRequest,
    AcceptReturn,
    Command,
    ConfirmGrantReturn,
    ConfirmReturn,
    GiveUpRequest,
    LoseTrack,
    MissJoin,
    OpenRequest,
    PauseProvider,
    RecordStatus,
    RefuseGrantReturn,
    RefuseRequest,
    RefuseReturn,
    Reopen,
    StartDrain,
    StartGrantReturn,
    StartReturn,
)
from xce.domain.events.base import cut
from xce.domain.formats.policy import (
    Decision,
    DecisionKind,
    GrantEntry,
    InstanceEntry,
    Inventory,
    PolicyInput,
    PolicySettings,
    RequestEntry,
)
from xce.domain.formats.provider import Kind
from xce.domain.policy.decide import decide
from xce.domain.policy.times import later
from xce.domain.ports import (
    Accepted,
    Ask,
    GrantBack,
    IdSource,
    Refused,
    RequestStatus,
    ReturnStatus,
    StatusAnswer,
)
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.request import RequestState

#: A provider that names a time further away than a year is tried again after a year.
_RETRY_MAX_S: Final = 365 * 86400


# ------------------------------------------------------------------------ calls
@dataclass(frozen=True, slots=True)
class AskCall:
    """Ask a provider; its intent is durable. ``request`` is the tag."""

    provider: str
    ask: Ask


@dataclass(frozen=True, slots=True)
class StatusCall:
    """Ask a provider where a request is."""

    provider: str
    request: str
    provider_request_id: str


@dataclass(frozen=True, slots=True)
class GiveBackCall:
    """Give machines, or an amount of a grant, back; the intent is durable.

    ``instances`` are pairs of our id and the provider's machine id, ``grants`` of our id and the provider's grant and amount.
    """

    provider: str
    return_id: str
    instances: tuple[tuple[str, str], ...] = ()
    grants: tuple[tuple[str, GrantBack], ...] = ()


@dataclass(frozen=True, slots=True)
class ReturnStatusCall:
    """Ask a provider what became of a return; pairs of our id and the provider's id."""

    provider: str
    return_id: str
    instances: tuple[tuple[str, str], ...] = ()
    grants: tuple[tuple[str, str], ...] = ()


Call = AskCall | StatusCall | GiveBackCall | ReturnStatusCall
Answer = Accepted | Refused | StatusAnswer | ReturnStatus


@dataclass(frozen=True, slots=True)
class Look:
    """Look at hosts again, now that they are closed to new work: do they have a job?"""

    instances: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """Commands, and what follows once all of them are durable. If one is refused, the whole step is dropped."""

    commands: tuple[Command, ...] = ()
    looks: tuple[Look, ...] = ()
    calls: tuple[Call, ...] = ()


Steps = tuple[Step, ...]


class Provisioner:
    """One provisioner instance."""

    def __init__(self, ids: IdSource) -> None:
        self._ids = ids

    # ------------------------------------------------------------ a policy round
    def round(self, inputs: PolicyInput) -> tuple[tuple[Decision, ...], Steps]:
        """Decide, and return the decisions with what they lead to."""
        decisions = decide(inputs).decisions
        view = _View.of(inputs.inventory)
        steps = tuple(
            step for decision in decisions for step in self._carry_out(decision, inputs, view)
        )
        return decisions, steps

    def _carry_out(self, decision: Decision, inputs: PolicyInput, view: "_View") -> Steps:
        match decision.kind:
            case DecisionKind.REQUEST:
                return (self._open(decision, inputs),)
            case DecisionKind.RETURN:
                return (*self._drain(decision, view), *self._lend_back(decision, view))
            case DecisionKind.CANCEL:
                return tuple(
                    Step((GiveUpRequest(request, decision.reason),))
                    for request in decision.requests
                )
            case DecisionKind.PAUSE | DecisionKind.HOLD:
                return ()

    def _open(self, decision: Decision, inputs: PolicyInput) -> Step:
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
        )
        return Step(
            (intent,), calls=(AskCall(decision.provider, Ask(request, kind, item, amount)),)
        )

    def _drain(self, decision: Decision, view: "_View") -> Steps:
        joined = tuple(
            instance
            for instance in decision.instances
            if view.instances[instance].state is InstanceState.JOINED
        )
        return tuple(
            Step((StartDrain(instance, decision.reason),), looks=(Look((instance,)),))
            for instance in joined
        )

    def _lend_back(self, decision: Decision, view: "_View") -> Steps:
        steps: list[Step] = []
        for part in decision.grants:
            return_id = self._ids.next_id("B")
            lender = view.grants[part.grant].provider
            back = (part.grant, GrantBack(_own_part(part.grant, lender), part.amount))
            call = GiveBackCall(lender, return_id, grants=(back,))
            steps.append(
                Step((StartGrantReturn(return_id, part.grant, part.amount),), calls=(call,))
            )
        return tuple(steps)

    # ----------------------------------------------------------------- messages
    def looked(self, busy: Mapping[str, bool], inventory: Inventory) -> Steps:
        """Go on after a look: hosts with a job open again, the others go back."""
        view = _View.of(inventory)
        reopened = tuple(
            Step((Reopen(instance, "a job had started on it"),))
            for instance, has_job in busy.items()
            if has_job
        )
        free = [view.instances[instance] for instance, has_job in busy.items() if not has_job]
        return (*reopened, *self._give_back(free, "drained"))

    def answered(
        self, call: Call, answer: Answer, now: datetime, settings: PolicySettings
    ) -> Steps:
        """Go on after a provider's answer."""
        match call, answer:
            case AskCall(), Accepted(provider_request_id=theirs):
                if not is_name(theirs):
                    why = f"accepted under an id that cannot be recorded: {theirs[:80]!r}"
                    return (Step((LoseTrack(call.ask.tag, why),)),)
                return (Step((AcceptRequest(call.ask.tag, theirs),)),)
            case AskCall(), Refused():
                return _after_refusal(call, answer, now, settings)
            case StatusCall(), StatusAnswer():
                return (Step((RecordStatus(call.request, answer),)),)
            case GiveBackCall(), Accepted(provider_request_id=theirs):
                ids = tuple(ours for ours, _ in call.instances)
                return (Step((AcceptReturn(call.return_id, ids, theirs),)),) if ids else ()
            case GiveBackCall(), Refused():
                return (
                    *(
                        Step((RefuseReturn(call.return_id, ours, cut(answer.why)),))
                        for ours, _ in call.instances
                    ),
                    *(
                        Step((RefuseGrantReturn(call.return_id, ours, cut(answer.why)),))
                        for ours, _ in call.grants
                    ),
                )
            case ReturnStatusCall(), ReturnStatus():
                return _after_return_status(call, answer)
            case _:
                raise AssertionError(
                    f"{type(answer).__name__} is no answer to {type(call).__name__}"
                )

    def failed(self, call: Call, why: str) -> Steps:
        """Go on after a call without an answer: whether an ask had an effect is unknown; the rest is polled again."""
        if isinstance(call, AskCall):
            return (Step((LoseTrack(call.ask.tag, cut(why)),)),)
        return ()

    # -------------------------------------------------------------------- polls
    def poll(self, inventory: Inventory, now: datetime, settings: PolicySettings) -> Steps:
        """Return what is due for all that is open: status, late joins, drains that nobody ended, returns under way.

        A host is left draining where its provider did not take it back, or where we died between its drain and the look.
        """
        missed = [
            entry for entry in inventory.instances
            if entry.state is InstanceState.STARTING and now - entry.granted_at >= settings.join_limit
        ]  # fmt: skip
        useless = [
            entry for entry in inventory.instances
            if entry.state is InstanceState.NEVER_JOINED
            and (entry.hold_until is None or entry.hold_until <= now)
        ]  # fmt: skip
        draining = tuple(
            entry.id for entry in inventory.instances if entry.state is InstanceState.DRAINING
        )
        why = f"did not join within {_minutes(settings.join_limit)}"
        return (
            Step(calls=tuple(_status_calls(inventory.requests))),
            *((Step(looks=(Look(draining),)),) if draining else ()),
            *(Step((MissJoin(entry.id, why),)) for entry in missed),
            *self._give_back(useless, "never joined"),
            Step(calls=tuple(_return_calls(inventory.instances, inventory.grants))),
        )

    def _give_back(self, entries: Iterable[InstanceEntry], why: str) -> Steps:
        steps: list[Step] = []
        by_provider = sorted(entries, key=lambda entry: entry.provider)
        for provider, group in groupby(by_provider, key=lambda entry: entry.provider):
            pairs = tuple(
                (entry.id, entry.machine or _own_part(entry.id, provider)) for entry in group
            )
            return_id = self._ids.next_id("B")
            intent = StartReturn(return_id, tuple(ours for ours, _ in pairs), why)
            steps.append(
                Step((intent,), calls=(GiveBackCall(provider, return_id, instances=pairs),))
            )
        return tuple(steps)


# -------------------------------------------------------------------- helpers
@dataclass(frozen=True, slots=True)
class _View:
    """The inventory by id."""

    instances: dict[str, InstanceEntry]
    grants: dict[str, GrantEntry]

    @classmethod
    def of(cls, inventory: Inventory) -> "_View":
        return cls({e.id: e for e in inventory.instances}, {e.id: e for e in inventory.grants})


def _own_part(our_id: str, provider: str) -> str:
    """Return the provider's id inside ours: ``aws/m-1`` is machine ``m-1`` of ``aws``; a provider's name may hold a stroke."""
    return our_id.removeprefix(f"{provider}/")


def _minutes(length: timedelta) -> str:
    return f"{length.total_seconds() / 60:g} min"


def _after_refusal(
    call: AskCall, answer: Refused, now: datetime, settings: PolicySettings
) -> Steps:
    pause = (
        settings.pause_after_refusal
        if answer.retry_after_s is None
        else timedelta(seconds=min(max(0, answer.retry_after_s), _RETRY_MAX_S))
    )
    why = cut(f"{answer.code}: {answer.why}")
    refused = RefuseRequest(call.ask.tag, why)
    if not pause:
        return (Step((refused,)),)
    until = later(now, pause)
    return (Step((refused, PauseProvider(call.provider, call.ask.item, until, why))),)


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


def _status_calls(requests: Iterable[RequestEntry]) -> Iterable[StatusCall]:
    for entry in requests:
        if entry.state is RequestState.ACCEPTED and entry.provider_request_id is not None:
            yield StatusCall(entry.provider, entry.id, entry.provider_request_id)


def _return_calls(
    instances: Iterable[InstanceEntry], grants: Iterable[GrantEntry]
) -> Iterable[ReturnStatusCall]:
    machines: dict[tuple[str, str], list[tuple[str, str]]] = {}
    amounts: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for instance in instances:
        if instance.state is InstanceState.RETURNING and instance.return_id is not None:
            own = instance.machine or _own_part(instance.id, instance.provider)
            pair = (instance.id, own)
            machines.setdefault((instance.provider, instance.return_id), []).append(pair)
    for grant in grants:
        if grant.returning and grant.return_id is not None:
            pair = (grant.id, _own_part(grant.id, grant.provider))
            amounts.setdefault((grant.provider, grant.return_id), []).append(pair)
    for key in [*machines, *(key for key in amounts if key not in machines)]:
        yield ReturnStatusCall(*key, tuple(machines.get(key, ())), tuple(amounts.get(key, ())))
