"""A provider that exists only in virtual time: it fulfils the port, and knows the truth that tests compare the log with.

What happens to an ask is drawn from the seed and the request's tag, never from the order of calls; only what is a matter of
order, such as who takes the last machine, depends on it. Time must not go back between calls.
"""

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Final

from xce.domain.errors import AdapterError, TransientError
from xce.domain.formats.config import ProviderConfig
from xce.domain.formats.provider import Kind, ProviderDescription, ResourceOffer, TemplateOffer
from xce.domain.formats.simulated_provider import (
    Behaviour,
    CallKind,
    Delay,
    Refusal,
    TemplateBehaviour,
)
from xce.domain.ports import (
    Accepted,
    Ask,
    GrantBack,
    GrantReport,
    Holding,
    MachineReport,
    MachineResult,
    Refused,
    RequestStatus,
    ReturnStatus,
    StatusAnswer,
    TakeBack,
)
from xce.replay.draws import chance, delay, draw
from xce.replay.provider_calls import Line
from xce.replay.provider_truth import Grant, Join, Machine

NO_CAPACITY: Final = "InsufficientInstanceCapacity"
NO_TOKENS: Final = "InsufficientCapacity"
UNKNOWN_ITEM: Final = "UnknownItem"
_NEVER: Final = Decimal(0)


@dataclass(slots=True)
class _Request:
    ask: Ask
    machines: list[Machine] = field(default_factory=list[Machine])
    grants: list[Grant] = field(default_factory=list[Grant])
    ready_at: datetime | None = None
    message: str = ""
    told_later: timedelta = timedelta(0)


@dataclass(slots=True)
class _Return:
    answer: Accepted
    gone: dict[str, datetime] = field(default_factory=dict[str, datetime])
    refused: dict[str, str] = field(default_factory=dict[str, str])


class SimulatedProvider:
    """One simulated provider. All times are UTC."""

    def __init__(self, config: ProviderConfig, seed: int) -> None:
        self.name = config.name
        self.description = config.description()
        self._does = config.simulation
        self._seed = seed
        self._line = Line(self.name)
        self._templates: dict[str, TemplateOffer] = {}
        self._resources: dict[str, ResourceOffer] = {}
        self._answers: dict[str, Accepted | Refused] = {}
        self._requests: dict[str, _Request] = {}
        self._returns: dict[str, _Return] = {}
        self._machines: dict[str, Machine] = {}
        self._grants: dict[str, Grant] = {}
        self._present: dict[str, dict[str, Machine]] = {}
        self._lent: dict[str, dict[str, Grant]] = {}
        self._changes: list[datetime] = []
        self._joins: list[tuple[datetime, str]] = []
        self._taken: list[str] = []
        self._mourned: set[str] = set()
        self.redescribe(self.description)

    # ------------------------------------------------------------------ the port
    def ask(self, ask: Ask, now: datetime) -> Accepted | Refused:
        """Answer an ask; the same tag gets the same answer and has no further effect.

        Raises:
            TransientError: it did not answer; whether it did something is not known.
        """
        self._line.require(CallKind.ASK, now, self._does.throttle)
        known = self._answers.get(ask.tag)
        if known is not None:
            return known
        answer = self._refusal(ask, now) or self._make(ask, now)
        self._answers[ask.tag] = answer
        if isinstance(answer, Accepted):
            self._tell_later(self._requests[answer.provider_request_id])
        if isinstance(answer, Accepted) and self._chance(
            self._does.lost_answers, "lost answer", ask.tag
        ):
            raise TransientError(f"{self.name}: the answer was lost")
        return answer

    def status(self, provider_request_id: str, now: datetime) -> StatusAnswer:
        """Return where a request is; an id that was never given out is complete with an error.

        Raises:
            TransientError: it did not answer.
        """
        self._line.require(CallKind.STATUS, now, self._does.throttle)
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
        self._line.require(CallKind.RETURN, now, self._does.throttle)
        known = self._returns.get(return_id)
        if known is not None:
            return known.answer
        made = self._returns[return_id] = _Return(Accepted(f"{self.name}-back-{return_id}"))
        for machine in machines:
            self._take_machine(made, return_id, machine, now)
        for part in grants:
            self._take_grant(made, return_id, part, now)
        return made.answer

    def return_status(
        self, return_id: str, now: datetime, *, theirs: str | None = None
    ) -> ReturnStatus:
        """Return what became of a return; one that was never made is complete with an error.

        Raises:
            TransientError: it did not answer.
        """
        self._line.require(CallKind.STATUS, now, self._does.throttle)
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
        """Return the description."""
        return self.description

    def holdings(self, now: datetime) -> tuple[Holding, ...] | None:
        """Return what exists and is lent; None without the capability ``listing``.

        Raises:
            TransientError: it did not answer.
        """
        self._line.require(CallKind.LIST, now, self._does.throttle)
        if not self.description.capabilities.listing:
            return None
        machines = tuple(
            Holding(
                one.machine,
                Kind.HOST,
                one.template,
                one.tag,
                one.name,
                launched_at=one.launched_at,
            )
            for one in self._machines.values()
            if one.launched_at <= now and one.exists(now)
        )
        grants = tuple(
            Holding(
                one.grant,
                Kind.COUNTABLE,
                one.resource,
                one.tag,
                amount=one.held(now),
                launched_at=one.granted_at,
            )
            for one in self._grants.values()
            if one.granted_at <= now and one.held(now)
        )
        return (*machines, *grants)

    def take_backs(self, machines: Mapping[str, str], now: datetime) -> tuple[TakeBack, ...]:
        """Return the machines that it has said it takes back, with the time left; and those that are gone without our doing."""
        known = (self._machines[machine] for machine in machines if machine in self._machines)
        return tuple(
            TakeBack(one.machine, max(0, round((one.taken_at - now).total_seconds())))
            for one in known
            if one.told_at is not None and one.told_at <= now and one.taken_at is not None
        )

    # ------------------------------------------------------- for the driver alone
    def redescribe(self, description: ProviderDescription) -> None:
        """Be another from now on: prices, templates, numbers."""
        self.description = description
        self._templates = {offer.template_id: offer for offer in description.templates}
        self._resources = {offer.name: offer for offer in description.resources}
        for template in self._templates:
            self._present.setdefault(template, {})
        for resource in self._resources:
            self._lent.setdefault(resource, {})

    def behave(self, behaviour: Behaviour) -> None:
        """Do otherwise from now on."""
        self._does = behaviour

    def cut_off(self, until: datetime, calls: Iterable[CallKind]) -> None:
        """Answer no call of these kinds until then."""
        self._line.cut(until, calls)

    def take(self, machine: str, at: datetime, told_at: datetime | None = None) -> None:
        """End a machine at a time without our return: it dies, or, where it is told before, is taken back."""
        one = self._machines[machine]
        if one.taken_at is None or at < one.taken_at:
            one.taken_at, one.told_at = at, told_at
            self._taken.append(machine)
            self._change_at(at)
            if told_at is not None:
                self._change_at(told_at)

    @property
    def takes_back(self) -> bool:
        """Whether some machine ends, or ended, without our return."""
        return bool(self._taken)

    def ended(self, now: datetime) -> tuple[str, ...]:
        """Return the machines that have ended without our return, in order; each is told once."""
        due = sorted(
            (one.taken_at, one.machine)
            for one in (self._machines[machine] for machine in self._taken)
            if one.taken_at is not None and one.taken_at <= now and one.machine not in self._mourned
        )
        names = [machine for _, machine in due]
        self._mourned.update(names)
        return tuple(
            name for name in names if self._machines[name].ends_at == self._machines[name].taken_at
        )

    def joins(self, now: datetime) -> tuple[Join, ...]:
        """Return the machines that have joined and are still there, in order of joining; each is told once."""
        count = bisect_right(self._joins, (now, "\U0010ffff"))
        found = [self._machines[machine] for _, machine in self._joins[:count]]
        del self._joins[:count]
        return tuple(self._join(machine) for machine in found if machine.exists(now))

    def next_change(self, now: datetime) -> datetime | None:
        """Return the first time after ``now`` at which an answer may differ by itself, None if none is known."""
        index = bisect_right(self._changes, now)
        return self._changes[index] if index < len(self._changes) else None

    # -------------------------------------------------------- the truth, for tests
    def machines(self) -> tuple[Machine, ...]:
        """Return every machine that was ever made, in the order of the asks."""
        return tuple(self._machines.values())

    def grants(self) -> tuple[Grant, ...]:
        """Return every amount that was ever lent, in the order of the asks."""
        return tuple(self._grants.values())

    def answers(self) -> Mapping[str, Accepted | Refused]:
        """Return what was answered to each tag."""
        return dict(self._answers)

    # ----------------------------------------------------------------- asks inside
    def _refusal(self, ask: Ask, now: datetime) -> Accepted | Refused | None:
        known = self._resources if ask.kind is Kind.COUNTABLE else self._templates
        if ask.item not in known:
            return Refused(UNKNOWN_ITEM, f"no {ask.kind} {ask.item!r} here")
        if ask.amount < 1:
            return Refused("InvalidAmount", f"asked for {ask.amount}")
        for i, rule in enumerate(self._does.refusals):
            if rule.covers(ask.item, now) and self._chance(rule.share, f"refusal {i}", ask.tag):
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
        self._change_at(request.ready_at)
        return accepted

    def _make(self, ask: Ask, now: datetime) -> Accepted | Refused:
        if ask.kind is Kind.COUNTABLE:
            return self._lend(ask, now)
        return self._create(ask, self._does.of(ask.item), now)

    def _create(self, ask: Ask, does: TemplateBehaviour, now: datetime) -> Accepted | Refused:
        room = self._room(ask.item, now)
        if room == 0:
            return Refused(NO_CAPACITY, f"no more {ask.item} are to be had")
        wanted = ask.amount
        if self._chance(self._does.surplus, "surplus", ask.tag):
            wanted += 1
        elif self._chance(self._does.partial, "partial", ask.tag):
            wanted = int(self._draw("part", ask.tag) * ask.amount)
        count = wanted if room is None else min(wanted, room)
        assert does.lead_time is not None, "each part is filled in"
        request, accepted = self._open(ask, count)
        launched = now + self._delay(does.lead_time.lag, "lag", ask.tag)
        request.ready_at = launched
        for number in range(1, count + 1):
            request.machines.append(self._machine(ask, number, launched, does, now))
        self._change_at(launched)
        return accepted

    def _machine(
        self, ask: Ask, number: int, launched: datetime, does: TemplateBehaviour, now: datetime
    ) -> Machine:
        key = f"{ask.tag}-{number}"
        lead = does.lead_time
        assert lead is not None, "each part is filled in"
        booted = launched + self._delay(lead.boot, "boot", key)
        fails = self._chance(does.boot_failure or _NEVER, "boot failure", key)
        joins = None
        if not fails and not self._chance(does.never_join or _NEVER, "never join", key):
            joins = booted + self._delay(lead.join, "join", key)
        machine = Machine(
            machine=f"vm-{key}",
            name=self._name(ask.item, key, now),
            template=ask.item,
            tag=ask.tag,
            launched_at=launched,
            booted_at=booted,
            joins_at=joins,
            fails=fails,
            gone_at=booted if fails and not self._does.failed_stay else None,
        )
        self._machines[machine.machine] = machine
        self._present[ask.item][machine.machine] = machine
        self._change_at(booted)
        if joins is not None:
            self._change_at(joins)
            insort(self._joins, (joins, machine.machine))
        rule = does.take_backs
        if rule is not None and self._chance(rule.share, "take back", key):
            told = launched + self._delay(rule.after, "take back after", key)
            self.take(machine.machine, told + rule.notice, told)
        return machine

    def _name(self, template: str, key: str, now: datetime) -> str:
        """Return the name of a new machine: that of one that is gone, where names are used again."""
        if self._does.reused_names:
            taken = {one.name for one in self._machines.values() if one.exists(now)}
            for one in self._machines.values():
                if one.template == template and one.name not in taken:
                    return one.name
        return f"{template}-{key}".lower()

    def _lend(self, ask: Ask, now: datetime) -> Accepted | Refused:
        offer = self._resources[ask.item]
        free = self._free(offer, now)
        amount = min(ask.amount, free)
        if self._chance(self._does.partial, "partial", ask.tag):
            amount = min(amount, int(self._draw("part", ask.tag) * ask.amount))
        amount -= amount % offer.step
        if amount < max(1, ask.least_useful):
            return Refused(NO_TOKENS, f"{amount} of {ask.amount} {ask.item} are free")
        request, accepted = self._open(ask, amount)
        granted = now + self._delay(self._does.lead_time.lag, "lag", ask.tag)
        request.ready_at = granted
        hold = max(offer.minimum_hold, self.description.minimum_hold)
        grant = Grant(
            grant=f"lent-{ask.tag}",
            resource=ask.item,
            tag=ask.tag,
            amount=amount,
            granted_at=granted,
            hold_until=granted + hold if hold else None,
            expires_at=None if self._does.term is None else granted + self._does.term,
        )
        request.grants.append(grant)
        self._grants[grant.grant] = grant
        self._lent[ask.item][grant.grant] = grant
        self._change_at(granted)
        if grant.expires_at is not None:
            self._change_at(grant.expires_at)
        return accepted

    def _open(self, ask: Ask, count: int) -> tuple[_Request, Accepted]:
        later = self._delay(self._does.answer_delay, "answer delay", ask.tag)
        request = _Request(ask, told_later=later)
        if count < ask.amount:
            request.message = f"{ask.amount - count} of {ask.amount} failed, no capacity"
        accepted = Accepted(f"{self.name}-req-{ask.tag}")
        self._requests[accepted.provider_request_id] = request
        return request, accepted

    def _room(self, template: str, now: datetime) -> int | None:
        """Return how many more machines of a template there can be; None: no limit."""
        limits = [self._does.capacity.get(template)]
        offer = self._templates[template]
        if self._does.enforce_max_number and offer.max_number >= 0:
            limits.append(offer.max_number)
        known = [limit for limit in limits if limit is not None]
        if not known:
            return None
        present = self._present[template]
        for machine in [machine for machine in present.values() if not machine.exists(now)]:
            del present[machine.machine]
        return max(0, min(known) - len(present))

    def _free(self, offer: ResourceOffer, now: datetime) -> int:
        """Return what of a pool nobody has: neither we nor others."""
        capacity = self._does.capacity.get(offer.name, offer.capacity)
        if capacity is None:
            return 0
        lent = self._lent[offer.name]
        for grant in [grant for grant in lent.values() if grant.held(now) == 0]:
            del lent[grant.grant]
        ours = sum(grant.held(now) for grant in lent.values())
        return max(0, capacity - ours - self._does.used_outside(offer.name, now))

    # -------------------------------------------------------------- returns inside
    def _take_machine(self, made: _Return, return_id: str, name: str, now: datetime) -> None:
        machine = self._machines.get(name)
        if machine is None:
            made.gone[name] = now
            return
        if machine.ends_at is not None and (machine.gone_at is not None or not machine.exists(now)):
            made.gone[name] = max(machine.ends_at, now)
            return
        if self._chance(self._does.return_refusal, "return refusal", f"{return_id} {name}"):
            made.refused[name] = "not now"
        else:
            length = self._does.of(machine.template).return_time
            assert length is not None, "each part is filled in"
            at = now + self._delay(length, "return", f"{return_id} {name}")
            machine.gone_at = made.gone[name] = at
            self._change_at(at)

    def _take_grant(self, made: _Return, return_id: str, part: GrantBack, now: datetime) -> None:
        grant = self._grants.get(part.grant)
        if grant is None or grant.held(now) == 0:
            made.gone[part.grant] = now
            return
        keeps = grant.keeps()
        if part.amount > keeps:
            made.refused[part.grant] = f"holds {keeps}, not {part.amount}"
        elif part.amount < keeps and not self.description.capabilities.partial_returns:
            made.refused[part.grant] = "takes back whole grants only"
        elif grant.hold_until is not None and now < grant.hold_until:
            made.refused[part.grant] = f"must be held until {grant.hold_until:%Y-%m-%dT%H:%M:%SZ}"
        elif self._chance(self._does.return_refusal, "return refusal", f"{return_id} {part.grant}"):
            made.refused[part.grant] = "not now"
        else:
            at = now + self._delay(self._does.return_time, "return", f"{return_id} {part.grant}")
            grant.returns.append((at, part.amount))
            made.gone[part.grant] = at
            self._change_at(at)

    # --------------------------------------------------------------------- helpers
    def _tell_later(self, request: _Request) -> None:
        """Note the times at which what has happened is told."""
        if not request.told_later:
            return
        times = {one.booted_at for one in request.machines} | {request.ready_at}
        for at in sorted(at for at in times if at is not None):
            self._change_at(at + request.told_later)

    def _join(self, machine: Machine) -> Join:
        offer = self._templates[machine.template]
        assert machine.joins_at is not None, "listed among the joins"
        return Join(
            machine.machine,
            machine.name,
            machine.template,
            machine.joins_at,
            machine.booted_at,
            offer.attributes,
            {**offer.provides, **self._does.of(machine.template).measured},
        )

    def _change_at(self, at: datetime) -> None:
        """Note a time at which an answer may differ."""
        index = bisect_right(self._changes, at)
        if index == 0 or self._changes[index - 1] != at:
            self._changes.insert(index, at)

    def _draw(self, purpose: str, key: str) -> Fraction:
        return draw(self._seed, self.name, purpose, key)

    def _chance(self, share: Decimal, purpose: str, key: str) -> bool:
        return chance(share, self._seed, self.name, purpose, key)

    def _delay(self, spread: Delay, purpose: str, key: str) -> timedelta:
        return delay(spread, self._seed, self.name, purpose, key)


def _report(machine: Machine, now: datetime) -> MachineReport:
    if now < machine.booted_at:
        result, message = MachineResult.EXECUTING, ""
    elif machine.fails:
        result, message = MachineResult.FAIL, "boot failed"
    else:
        result, message = MachineResult.SUCCEED, ""
    return MachineReport(machine.machine, machine.name, result, machine.launched_at, message)
