"""A provider that exists only in virtual time: it fulfils the port, and knows the truth that tests compare the log with.

What happens to an ask is drawn from the seed and the request's tag, never from the order of calls; only what is a matter of
order, such as who takes the last machine, depends on it. Time must not go back between calls.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from xce.domain.errors import AdapterError, TransientError
from xce.domain.formats.config import ProviderConfig
from xce.domain.formats.provider import Kind, ProviderDescription
from xce.domain.formats.simulated_provider import (
    Behaviour,
    CallKind,
    Refusal,
)
from xce.domain.ports import (
    Accepted,
    Ask,
    Checked,
    GrantBack,
    GrantReport,
    Holding,
    MachineReport,
    MachineResult,
    Refused,
    Renewed,
    ReportedMachine,
    RequestStatus,
    ReturnStatus,
    StatusAnswer,
    TakeBack,
)
from xce.replay.draws import Luck
from xce.replay.provider_calls import Line
from xce.replay.provider_stock import Stock
from xce.replay.provider_truth import Grant, Join, Machine

UNKNOWN_ITEM: Final = "UnknownItem"


@dataclass(slots=True)
class _Request:
    ask: Ask
    machines: tuple[Machine, ...] = ()
    grants: tuple[Grant, ...] = ()
    ready_at: datetime | None = None
    message: str = ""
    told_later: timedelta = timedelta(0)


@dataclass(slots=True)
class _Return:
    answer: Accepted
    gone: dict[str, datetime] = field(default_factory=dict[str, datetime])
    refused: dict[str, str] = field(default_factory=dict[str, str])

    def note(self, item: str, outcome: datetime | str) -> None:
        """Note when an item is gone, or why it is not taken back."""
        if isinstance(outcome, str):
            self.refused[item] = outcome
        else:
            self.gone[item] = outcome


class SimulatedProvider:
    """One simulated provider. All times are UTC."""

    def __init__(self, config: ProviderConfig, seed: int) -> None:
        self.name = config.name
        self._luck = Luck(seed, self.name)
        self._line = Line(self.name)
        self._stock = Stock(config.description(), config.simulation, self._luck)
        self._answers: dict[str, Accepted | Refused] = {}
        self._requests: dict[str, _Request] = {}
        self._returns: dict[str, _Return] = {}

    @property
    def description(self) -> ProviderDescription:
        """What it says of itself."""
        return self._stock.description

    # ------------------------------------------------------------------ the port
    def ask(self, ask: Ask, now: datetime) -> Accepted | Refused:
        """Answer an ask; the same tag gets the same answer and has no further effect.

        Raises:
            TransientError: it did not answer; whether it did something is not known.
        """
        self._line.require(CallKind.ASK, now, self._stock.does.throttle)
        known = self._answers.get(ask.tag)
        if known is not None:
            return known
        answer = self._refusal(ask, now) or self._make(ask, now)
        self._answers[ask.tag] = answer
        if isinstance(answer, Accepted):
            self._tell_later(self._requests[answer.provider_request_id])
        if isinstance(answer, Accepted) and self._luck.chance(
            self._stock.does.lost_answers, "lost answer", ask.tag
        ):
            raise TransientError(f"{self.name}: the answer was lost")
        return answer

    def status(self, provider_request_id: str, now: datetime) -> StatusAnswer:
        """Return where a request is; an id that was never given out is complete with an error.

        Raises:
            TransientError: it did not answer.
        """
        self._line.require(CallKind.STATUS, now, self._stock.does.throttle)
        request = self._requests.get(provider_request_id)
        if request is None:
            return StatusAnswer(
                RequestStatus.COMPLETE_WITH_ERROR, message=f"no request {provider_request_id}"
            )
        now -= request.told_later
        machines = tuple(
            _report(machine, now) for machine in request.machines if machine.launched_at <= now
        )
        grants = tuple(
            GrantReport(
                grant.grant, grant.resource, grant.amount, grant.hold_until, grant.expires_at
            )
            for grant in request.grants
            if grant.granted_at <= now
        )
        waits = request.ready_at is not None and now < request.ready_at
        if waits or any(machine.result is MachineResult.EXECUTING for machine in machines):
            return StatusAnswer(RequestStatus.RUNNING, machines, grants)
        failed = any(machine.result is MachineResult.FAIL for machine in machines)
        return StatusAnswer(
            RequestStatus.COMPLETE_WITH_ERROR
            if failed or request.message
            else RequestStatus.COMPLETE,
            machines,
            grants,
            request.message,
        )

    def give_back(
        self,
        return_id: str,
        machines: tuple[str, ...],
        grants: tuple[GrantBack, ...],
        now: datetime,
        *,
        names: Mapping[str, str] | None = None,
    ) -> Accepted | Refused:
        """Take machines and amounts back; what it will not take back, ``return_status`` says.

        Raises:
            TransientError: it did not answer.
        """
        self._line.require(CallKind.RETURN, now, self._stock.does.throttle)
        known = self._returns.get(return_id)
        if known is not None:
            return known.answer
        made = self._returns[return_id] = _Return(Accepted(f"{self.name}-back-{return_id}"))
        for machine in machines:
            made.note(machine, self._stock.give_back_machine(machine, return_id, now))
        for part in grants:
            made.note(part.grant, self._stock.give_back_grant(part, return_id, now))
        return made.answer

    def return_status(
        self, return_id: str, now: datetime, *, theirs: str | None = None
    ) -> ReturnStatus:
        """Return what became of a return; one that was never made is complete with an error.

        Raises:
            TransientError: it did not answer.
        """
        self._line.require(CallKind.STATUS, now, self._stock.does.throttle)
        made = self._returns.get(return_id)
        if made is None:
            return ReturnStatus(RequestStatus.COMPLETE_WITH_ERROR)
        gone = frozenset(item for item, at in made.gone.items() if at <= now)
        if len(gone) < len(made.gone):
            status = RequestStatus.RUNNING
        else:
            status = RequestStatus.COMPLETE_WITH_ERROR if made.refused else RequestStatus.COMPLETE
        return ReturnStatus(status, gone, tuple(sorted(made.refused.items())))

    def recall(self, tag: str, kind: Kind) -> Accepted | Refused | None:
        """It keeps no record on this side."""
        return None

    def statuses(
        self, ids: Iterable[str], now: datetime
    ) -> Mapping[str, StatusAnswer | AdapterError]:
        """Return where requests are."""
        return {one: self._status_or_error(one, now) for one in ids}

    def _status_or_error(self, one: str, now: datetime) -> StatusAnswer | AdapterError:
        try:
            return self.status(one, now)
        except AdapterError as error:
            return error

    def describe(self, now: datetime) -> ProviderDescription | None:
        """Return the description, with what it wants back now."""
        return self._stock.described(now)

    def renew(self, grants: tuple[str, ...], now: datetime) -> Renewed:
        """Put the ends of grants off, where it does so at all.

        Raises:
            TransientError: it did not answer.
        """
        self._line.require(CallKind.RETURN, now, self._stock.does.throttle)
        return Renewed(tuple(self._stock.renew(grants, now).items()))

    def check(self, machines: tuple[ReportedMachine, ...], now: datetime) -> Checked:
        """Look whether machines are in order."""
        found: list[tuple[str, MachineResult, str]] = []
        for one in machines:
            if self._stock.is_healthy(one.machine):
                found.append((one.machine, MachineResult.SUCCEED, ""))
            else:
                found.append((one.machine, MachineResult.FAIL, "it is not in order"))
        return Checked(tuple(found))

    @property
    def recalls(self) -> bool:
        """Whether it may want back what it has lent."""
        return self._stock.does.recalls

    def holdings(self, now: datetime) -> tuple[Holding, ...] | None:
        """Return what exists and is lent; None without the capability ``listing``.

        Raises:
            TransientError: it did not answer.
        """
        self._line.require(CallKind.LIST, now, self._stock.does.throttle)
        if not self.description.capabilities.listing:
            return None
        return self._stock.holdings(now)

    def take_backs(self, machines: Mapping[str, str], now: datetime) -> tuple[TakeBack, ...]:
        """Return the machines that it has said it takes back, with the time left; and those that are gone without our doing."""
        return self._stock.take_backs(machines, now)

    # ------------------------------------------------------- for the driver alone
    def redescribe(self, description: ProviderDescription) -> None:
        """Be another from now on: prices, templates, numbers."""
        self._stock.redescribe(description)

    @property
    def behaviour(self) -> Behaviour:
        """How it behaves now."""
        return self._stock.does

    def behave(self, behaviour: Behaviour) -> None:
        """Do otherwise from now on."""
        self._stock.does = behaviour

    def cut_off(self, until: datetime, calls: Iterable[CallKind]) -> None:
        """Answer no call of these kinds until then."""
        self._line.cut(until, calls)

    def take(self, machine: str, at: datetime, told_at: datetime | None = None) -> None:
        """End a machine at a time without our return: it dies, or, where it is told before, is taken back."""
        self._stock.take(machine, at, told_at)

    @property
    def takes_back(self) -> bool:
        """Whether some machine ends, or ended, without our return."""
        return self._stock.takes_back

    def ended(self, now: datetime) -> tuple[str, ...]:
        """Return the machines that have ended without our return, in order; each is told once."""
        return self._stock.ended(now)

    def joins(self, now: datetime) -> tuple[Join, ...]:
        """Return the machines that have joined and are still there, in order of joining; each is told once."""
        return self._stock.joins(now)

    def next_change(self, now: datetime) -> datetime | None:
        """Return the first time after ``now`` at which an answer may differ by itself, None if none is known."""
        return self._stock.next_change(now)

    # -------------------------------------------------------- the truth, for tests
    def machines(self) -> tuple[Machine, ...]:
        """Return every machine that was ever made, in the order of the asks."""
        return self._stock.machines()

    def grants(self) -> tuple[Grant, ...]:
        """Return every amount that was ever lent, in the order of the asks."""
        return self._stock.grants()

    def answers(self) -> Mapping[str, Accepted | Refused]:
        """Return what was answered to each tag."""
        return dict(self._answers)

    # ----------------------------------------------------------------- asks inside
    def _refusal(self, ask: Ask, now: datetime) -> Accepted | Refused | None:
        if not self._stock.offers(ask.kind, ask.item):
            return Refused(UNKNOWN_ITEM, f"no {ask.kind} {ask.item!r} here")
        if ask.amount < 1:
            return Refused("InvalidAmount", f"asked for {ask.amount}")
        for i, rule in enumerate(self._stock.does.refusals):
            if rule.covers(ask.item, now) and self._luck.chance(
                rule.share, f"refusal {i}", ask.tag
            ):
                if rule.late is not None:
                    return self._fail_late(ask, rule, now)
                retry = (
                    None if rule.retry_after is None else round(rule.retry_after.total_seconds())
                )
                return Refused(rule.code, rule.why, retry)
        return None

    def _fail_late(self, ask: Ask, rule: Refusal, now: datetime) -> Accepted:
        assert rule.late is not None, "a rule that refuses late"
        request, accepted = self._open(ask, 0)
        request.ready_at = now + rule.late
        request.message = f"{rule.code}: {rule.why}"
        self._stock.change_at(request.ready_at)
        return accepted

    def _make(self, ask: Ask, now: datetime) -> Accepted | Refused:
        made = self._stock.make(ask, now)
        if isinstance(made, Refused):
            return made
        request, accepted = self._open(ask, made.count)
        request.ready_at, request.machines, request.grants = (
            made.ready_at,
            made.machines,
            made.grants,
        )
        return accepted

    def _open(self, ask: Ask, count: int) -> tuple[_Request, Accepted]:
        later = self._luck.delay(self._stock.does.answer_delay, "answer delay", ask.tag)
        request = _Request(ask, told_later=later)
        if count < ask.amount:
            request.message = f"{ask.amount - count} of {ask.amount} failed, no capacity"
        accepted = Accepted(f"{self.name}-req-{ask.tag}")
        self._requests[accepted.provider_request_id] = request
        return request, accepted

    def _tell_later(self, request: _Request) -> None:
        """Note the times at which what has happened is told."""
        if not request.told_later:
            return
        times = {one.booted_at for one in request.machines} | {request.ready_at}
        for at in sorted(at for at in times if at is not None):
            self._stock.change_at(at + request.told_later)


def _report(machine: Machine, now: datetime) -> MachineReport:
    if now < machine.booted_at:
        result, message = MachineResult.EXECUTING, ""
    elif machine.fails:
        result, message = MachineResult.FAIL, "boot failed"
    else:
        result, message = MachineResult.SUCCEED, ""
    return MachineReport(machine.machine, machine.name, result, machine.launched_at, message)
