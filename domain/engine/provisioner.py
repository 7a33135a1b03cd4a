"""The provisioner as a state machine: messages in; commands to make durable, then calls to make, out.

It keeps nothing that matters. What is open is read from the inventory, so that a provisioner killed at any
moment and started elsewhere goes on from the log alone. The driver (a daemon, or the simulator) carries an
``Effects`` out in this order: all commands are durable first, then looks and calls happen, and each answer
comes back as a message.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

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
from xce.domain.formats.policy import (
    Decision,
    DecisionKind,
    GrantEntry,
    InstanceEntry,
    InstanceState,
    Inventory,
    PolicyInput,
    PolicySettings,
    RequestEntry,
    RequestState,
)
from xce.domain.formats.provider import Kind
from xce.domain.policy.decide import decide
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
class Effects:
    """What is to happen: commands, all durable, before looks and calls."""

    commands: tuple[Command, ...] = ()
    looks: tuple[Look, ...] = ()
    calls: tuple[Call, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.commands or self.looks or self.calls)

    @classmethod
    def gather(cls, parts: Iterable["Effects"]) -> "Effects":
        """Return all parts as one, in order."""
        parts = list(parts)
        return cls(
            tuple(command for part in parts for command in part.commands),
            tuple(look for part in parts for look in part.looks),
            tuple(call for part in parts for call in part.calls),
        )


NOTHING = Effects()


class Provisioner:
    """One provisioner instance."""

    def __init__(self, ids: IdSource) -> None:
        self._ids = ids

    # ------------------------------------------------------------ a policy round
    def round(self, inputs: PolicyInput) -> tuple[tuple[Decision, ...], Effects]:
        """Decide, and return the decisions with what they lead to."""
        decisions = decide(inputs).decisions
        view = _View.of(inputs.inventory)
        effects = Effects.gather(self._carry_out(decision, inputs, view) for decision in decisions)
        return decisions, effects

    def _carry_out(self, decision: Decision, inputs: PolicyInput, view: "_View") -> Effects:
        match decision.kind:
            case DecisionKind.REQUEST:
                return self._open(decision, inputs)
            case DecisionKind.RETURN:
                return Effects.gather(
                    [self._drain(decision, view), self._lend_back(decision, view)]
                )
            case DecisionKind.CANCEL:
                return Effects(
                    tuple(GiveUpRequest(request, decision.reason) for request in decision.requests)
                )
            case DecisionKind.PAUSE | DecisionKind.HOLD:
                return NOTHING

    def _open(self, decision: Decision, inputs: PolicyInput) -> Effects:
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
        return Effects(
            (intent,), calls=(AskCall(decision.provider, Ask(request, kind, item, amount)),)
        )

    def _drain(self, decision: Decision, view: "_View") -> Effects:
        joined = tuple(
            instance
            for instance in decision.instances
            if view.instances[instance].state is InstanceState.JOINED
        )
        if not joined:
            return NOTHING
        return Effects(
            tuple(StartDrain(instance, decision.reason) for instance in joined),
            looks=(Look(joined),),
        )

    def _lend_back(self, decision: Decision, view: "_View") -> Effects:
        parts: list[Effects] = []
        for part in decision.grants:
            entry = view.grants[part.grant]
            return_id = self._ids.next_id("B")
            parts.append(
                Effects(
                    (StartGrantReturn(return_id, part.grant, part.amount),),
                    calls=(
                        GiveBackCall(
                            entry.provider,
                            return_id,
                            grants=((part.grant, GrantBack(_own_part(part.grant), part.amount)),),
                        ),
                    ),
                )
            )
        return Effects.gather(parts)

    # ----------------------------------------------------------------- messages
    def looked(self, busy: Mapping[str, bool], inventory: Inventory) -> Effects:
        """Go on after a look: hosts with a job open again, the others go back."""
        view = _View.of(inventory)
        reopened = tuple(
            Reopen(instance, "a job had started on it")
            for instance, has_job in busy.items()
            if has_job
        )
        free = [view.instances[instance] for instance, has_job in busy.items() if not has_job]
        return Effects.gather([Effects(reopened), self._give_back(free, "drained")])

    def answered(
        self, call: Call, answer: Answer, now: datetime, settings: PolicySettings
    ) -> Effects:
        """Go on after a provider's answer."""
        match call, answer:
            case AskCall(), Accepted(provider_request_id=theirs):
                return Effects((AcceptRequest(call.ask.tag, theirs),))
            case AskCall(), Refused():
                return _after_refusal(call, answer, now, settings)
            case StatusCall(), StatusAnswer():
                return Effects((RecordStatus(call.request, answer),))
            case GiveBackCall(), Accepted(provider_request_id=theirs):
                ids = tuple(ours for ours, _ in call.instances)
                return Effects((AcceptReturn(call.return_id, ids, theirs),)) if ids else NOTHING
            case GiveBackCall(), Refused():
                return Effects(
                    (
                        *(
                            RefuseReturn(call.return_id, ours, answer.why)
                            for ours, _ in call.instances
                        ),
                        *(
                            RefuseGrantReturn(call.return_id, ours, answer.why)
                            for ours, _ in call.grants
                        ),
                    )
                )
            case ReturnStatusCall(), ReturnStatus():
                return _after_return_status(call, answer)
            case _:
                raise AssertionError(
                    f"{type(answer).__name__} is no answer to {type(call).__name__}"
                )

    def failed(self, call: Call, why: str) -> Effects:
        """Go on after a call without an answer: whether an ask had an effect is unknown; the rest is polled again."""
        if isinstance(call, AskCall):
            return Effects((LoseTrack(call.ask.tag, why),))
        return NOTHING

    # -------------------------------------------------------------------- polls
    def poll(self, inventory: Inventory, now: datetime, settings: PolicySettings) -> Effects:
        """Return what is due for all that is open: status, late joins, returns under way."""
        missed = [
            entry for entry in inventory.instances
            if entry.state is InstanceState.STARTING and now - entry.granted_at >= settings.join_limit
        ]  # fmt: skip
        lost = [entry for entry in inventory.instances if entry.state is InstanceState.NEVER_JOINED]
        why = f"did not join within {_minutes(settings.join_limit)}"
        return Effects.gather(
            [
                Effects(calls=tuple(_status_calls(inventory.requests))),
                Effects(tuple(MissJoin(entry.id, why) for entry in missed)),
                self._give_back([*missed, *lost], "never joined"),
                Effects(calls=tuple(_return_calls(inventory.instances, inventory.grants))),
            ]
        )

    def _give_back(self, entries: Iterable[InstanceEntry], why: str) -> Effects:
        parts: list[Effects] = []
        by_provider = sorted(entries, key=lambda entry: entry.provider)
        for provider, group in groupby(by_provider, key=lambda entry: entry.provider):
            pairs = tuple((entry.id, entry.machine or _own_part(entry.id)) for entry in group)
            return_id = self._ids.next_id("B")
            parts.append(
                Effects(
                    (StartReturn(return_id, tuple(ours for ours, _ in pairs), why),),
                    calls=(GiveBackCall(provider, return_id, instances=pairs),),
                )
            )
        return Effects.gather(parts)


# -------------------------------------------------------------------- helpers
@dataclass(frozen=True, slots=True)
class _View:
    """The inventory by id."""

    instances: dict[str, InstanceEntry]
    grants: dict[str, GrantEntry]

    @classmethod
    def of(cls, inventory: Inventory) -> "_View":
        return cls({e.id: e for e in inventory.instances}, {e.id: e for e in inventory.grants})


def _own_part(our_id: str) -> str:
    """Return the provider's id inside ours: ``aws/m-1`` is machine ``m-1`` of ``aws``."""
    return our_id.partition("/")[2]


def _minutes(length: timedelta) -> str:
    return f"{length.total_seconds() / 60:g} min"


def _after_refusal(
    call: AskCall, answer: Refused, now: datetime, settings: PolicySettings
) -> Effects:
    pause = (
        settings.pause_after_refusal
        if answer.retry_after_s is None
        else timedelta(seconds=answer.retry_after_s)
    )
    why = f"{answer.code}: {answer.why}"
    refused = RefuseRequest(call.ask.tag, why)
    if not pause:
        return Effects((refused,))
    return Effects((refused, PauseProvider(call.provider, call.ask.item, now + pause, why)))


def _after_return_status(call: ReturnStatusCall, answer: ReturnStatus) -> Effects:
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
    return Effects(tuple(commands))


def _fate(theirs: str, answer: ReturnStatus) -> str | None:
    """Return None while it is open, "" when it is gone, else why it was refused."""
    if why := dict(answer.refused).get(theirs):
        return why
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
            pair = (instance.id, instance.machine or _own_part(instance.id))
            machines.setdefault((instance.provider, instance.return_id), []).append(pair)
    for grant in grants:
        if grant.returning and grant.return_id is not None:
            pair = (grant.id, _own_part(grant.id))
            amounts.setdefault((grant.provider, grant.return_id), []).append(pair)
    for key in [*machines, *(key for key in amounts if key not in machines)]:
        yield ReturnStatusCall(*key, tuple(machines.get(key, ())), tuple(amounts.get(key, ())))
