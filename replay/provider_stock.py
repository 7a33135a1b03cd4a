"""What a simulated provider has: every machine and every lent amount, from their making to their end.

What is made is drawn from the seed and the request's tag; who takes the last machine is a matter of order.
"""

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from xce.domain.formats.provider import Kind, ProviderDescription, ResourceOffer, TemplateOffer
from xce.domain.formats.simulated_provider import Behaviour, TemplateBehaviour
from xce.domain.ports import Ask, GrantBack, Holding, Refused, TakeBack
from xce.replay.draws import Luck
from xce.replay.provider_truth import Grant, Join, Machine

NO_CAPACITY: Final = "InsufficientInstanceCapacity"
NO_TOKENS: Final = "InsufficientCapacity"
_NEVER: Final = Decimal(0)


@dataclass(frozen=True, slots=True)
class Made:
    """What came of an ask: how much, and when it is there."""

    count: int
    ready_at: datetime
    machines: tuple[Machine, ...] = ()
    grants: tuple[Grant, ...] = ()


class Stock:
    """The machines and grants of one provider, and the times at which they change."""

    def __init__(self, description: ProviderDescription, does: Behaviour, luck: Luck) -> None:
        self.does = does
        self._luck = luck
        self._templates: dict[str, TemplateOffer] = {}
        self._resources: dict[str, ResourceOffer] = {}
        self._machines: dict[str, Machine] = {}
        self._grants: dict[str, Grant] = {}
        self._present: dict[str, dict[str, Machine]] = {}
        self._lent: dict[str, dict[str, Grant]] = {}
        self._changes: list[datetime] = []
        self._joins: list[tuple[datetime, str]] = []
        self._taken: list[str] = []
        self._mourned: set[str] = set()
        self.redescribe(description)

    def redescribe(self, description: ProviderDescription) -> None:
        """Be another from now on: prices, templates, numbers."""
        self.description = description
        self._templates = {offer.template_id: offer for offer in description.templates}
        self._resources = {offer.name: offer for offer in description.resources}
        for template in self._templates:
            self._present.setdefault(template, {})
        for resource in self._resources:
            self._lent.setdefault(resource, {})

    def offers(self, kind: Kind, item: str) -> bool:
        """Return whether it has such an item at all."""
        return item in (self._resources if kind is Kind.COUNTABLE else self._templates)

    # -------------------------------------------------------------- what there is
    def machines(self) -> tuple[Machine, ...]:
        """Return every machine that was ever made, in the order of the asks."""
        return tuple(self._machines.values())

    def grants(self) -> tuple[Grant, ...]:
        """Return every amount that was ever lent, in the order of the asks."""
        return tuple(self._grants.values())

    def holdings(self, now: datetime) -> tuple[Holding, ...]:
        """Return what exists and is lent."""
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
                hold_until=one.hold_until,
                expires_at=one.expires_at,
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

    def change_at(self, at: datetime) -> None:
        """Note a time at which an answer may differ."""
        index = bisect_right(self._changes, at)
        if index == 0 or self._changes[index - 1] != at:
            self._changes.insert(index, at)

    def described(self, now: datetime) -> ProviderDescription:
        """Return what it says of itself now: also what it wants back, where others need more than the rest."""
        if not self.does.recalls:
            return self.description
        offers = tuple(
            offer.model_copy(update={"recalled_to": self._recalled_to(offer, now)})
            for offer in self.description.resources
        )
        return self.description.model_copy(update={"resources": offers})

    def _recalled_to(self, offer: ResourceOffer, now: datetime) -> int | None:
        capacity = self.does.capacity.get(offer.name, offer.capacity)
        if capacity is None:
            return None
        left = max(0, capacity - self.does.used_outside(offer.name, now))
        held = sum(grant.held(now) for grant in self._lent[offer.name].values())
        return left if held > left else None

    def renew(self, names: Iterable[str], now: datetime) -> dict[str, datetime]:
        """Put the ends of grants off, of what it does not want back; return the new ends."""
        term = self.does.term
        if not self.does.renews or term is None:
            return {}
        wanted = {
            offer.name for offer in self.described(now).resources if offer.recalled_to is not None
        }
        ends: dict[str, datetime] = {}
        for name in names:
            grant = self._grants.get(name)
            if grant is None or not grant.held(now) or grant.resource in wanted:
                continue
            grant.expires_at = ends[name] = now + term
            self.change_at(now + term)
        return ends

    # --------------------------------------------------------------------- ends
    def take(self, machine: str, at: datetime, told_at: datetime | None = None) -> None:
        """End a machine at a time without a return: it dies, or, where it is told before, is taken back."""
        one = self._machines[machine]
        if one.taken_at is None or at < one.taken_at:
            one.taken_at, one.told_at = at, told_at
            self._taken.append(machine)
            self.change_at(at)
            if told_at is not None:
                self.change_at(told_at)

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

    # -------------------------------------------------------------------- making
    def make(self, ask: Ask, now: datetime) -> Made | Refused:
        """Make or lend what is asked, or what can be had of it."""
        if ask.kind is Kind.COUNTABLE:
            return self._lend(ask, now)
        return self._create(ask, now)

    def _create(self, ask: Ask, now: datetime) -> Made | Refused:
        does = self.does.of(ask.item)
        room = self._room(ask.item, now)
        if room == 0:
            return Refused(NO_CAPACITY, f"no more {ask.item} are to be had")
        wanted = ask.amount
        if self._luck.chance(self.does.surplus, "surplus", ask.tag):
            wanted += 1
        elif self._luck.chance(self.does.partial, "partial", ask.tag):
            wanted = int(self._luck.draw("part", ask.tag) * ask.amount)
        count = wanted if room is None else min(wanted, room)
        assert does.lead_time is not None, "each part is filled in"
        launched = now + self._luck.delay(does.lead_time.lag, "lag", ask.tag)
        machines = [
            self._machine(ask, number, launched, does, now) for number in range(1, count + 1)
        ]
        self.change_at(launched)
        return Made(count, launched, machines=tuple(machines))

    def _machine(
        self, ask: Ask, number: int, launched: datetime, does: TemplateBehaviour, now: datetime
    ) -> Machine:
        key = f"{ask.tag}-{number}"
        lead = does.lead_time
        assert lead is not None, "each part is filled in"
        booted = launched + self._luck.delay(lead.boot, "boot", key)
        fails = self._luck.chance(does.boot_failure or _NEVER, "boot failure", key)
        joins = None
        if not fails and not self._luck.chance(does.never_join or _NEVER, "never join", key):
            joins = booted + self._luck.delay(lead.join, "join", key)
        machine = Machine(
            machine=f"vm-{key}",
            name=self._name(ask.item, key, now),
            template=ask.item,
            tag=ask.tag,
            launched_at=launched,
            booted_at=booted,
            joins_at=joins,
            fails=fails,
            gone_at=booted if fails and not self.does.failed_stay else None,
        )
        self._machines[machine.machine] = machine
        self._present[ask.item][machine.machine] = machine
        self.change_at(booted)
        if joins is not None:
            self.change_at(joins)
            insort(self._joins, (joins, machine.machine))
        rule = does.take_backs
        if rule is not None and self._luck.chance(rule.share, "take back", key):
            told = launched + self._luck.delay(rule.after, "take back after", key)
            self.take(machine.machine, told + rule.notice, told)
        return machine

    def is_healthy(self, machine: str) -> bool:
        """Return whether a machine passes a health check."""
        known = self._machines.get(machine)
        if known is None:
            return False
        share = self.does.of(known.template).unhealthy
        return not self._luck.chance(share or _NEVER, "unhealthy", machine)

    def _name(self, template: str, key: str, now: datetime) -> str:
        """Return the name of a new machine: that of one that is gone, where names are used again."""
        if self.does.reused_names:
            taken = {one.name for one in self._machines.values() if one.exists(now)}
            for one in self._machines.values():
                if one.template == template and one.name not in taken:
                    return one.name
        return f"{template}-{key}".lower()

    def _lend(self, ask: Ask, now: datetime) -> Made | Refused:
        offer = self._resources[ask.item]
        free = self._free(offer, now)
        amount = min(ask.amount, free)
        if self._luck.chance(self.does.partial, "partial", ask.tag):
            amount = min(amount, int(self._luck.draw("part", ask.tag) * ask.amount))
        amount -= amount % offer.step
        if amount < max(1, ask.least_useful):
            return Refused(NO_TOKENS, f"{amount} of {ask.amount} {ask.item} are free")
        granted = now + self._luck.delay(self.does.lead_time.lag, "lag", ask.tag)
        hold = max(offer.minimum_hold, self.description.minimum_hold)
        grant = Grant(
            grant=f"lent-{ask.tag}",
            resource=ask.item,
            tag=ask.tag,
            amount=amount,
            granted_at=granted,
            hold_until=granted + hold if hold else None,
            expires_at=None if self.does.term is None else granted + self.does.term,
        )
        self._grants[grant.grant] = grant
        self._lent[ask.item][grant.grant] = grant
        self.change_at(granted)
        if grant.expires_at is not None:
            self.change_at(grant.expires_at)
        return Made(amount, granted, grants=(grant,))

    def _room(self, template: str, now: datetime) -> int | None:
        """Return how many more machines of a template there can be; None: no limit."""
        limits = [self.does.capacity.get(template)]
        offer = self._templates[template]
        if self.does.enforce_max_number and offer.max_number >= 0:
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
        capacity = self.does.capacity.get(offer.name, offer.capacity)
        if capacity is None:
            return 0
        lent = self._lent[offer.name]
        for grant in [grant for grant in lent.values() if grant.held(now) == 0]:
            del lent[grant.grant]
        ours = sum(grant.held(now) for grant in lent.values())
        return max(0, capacity - ours - self.does.used_outside(offer.name, now))

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
            {**offer.provides, **self.does.of(machine.template).measured},
        )

    # -------------------------------------------------------------------- returns
    def give_back_machine(self, name: str, return_id: str, now: datetime) -> datetime | str:
        """Return when a machine is gone by a return, or why it is not taken back."""
        machine = self._machines.get(name)
        if machine is None:
            return now
        if machine.ends_at is not None and (machine.gone_at is not None or not machine.exists(now)):
            return max(machine.ends_at, now)
        key = f"{return_id} {name}"
        if self._luck.chance(self.does.return_refusal, "return refusal", key):
            return "not now"
        length = self.does.of(machine.template).return_time
        assert length is not None, "each part is filled in"
        machine.gone_at = now + self._luck.delay(length, "return", key)
        self.change_at(machine.gone_at)
        return machine.gone_at

    def give_back_grant(self, part: GrantBack, return_id: str, now: datetime) -> datetime | str:
        """Return when an amount is back by a return, or why it is not taken back."""
        grant = self._grants.get(part.grant)
        if grant is None or grant.held(now) == 0:
            return now
        keeps = grant.keeps()
        if part.amount > keeps:
            return f"holds {keeps}, not {part.amount}"
        if part.amount < keeps and not self.description.capabilities.partial_returns:
            return "takes back whole grants only"
        if grant.hold_until is not None and now < grant.hold_until:
            return f"must be held until {grant.hold_until:%Y-%m-%dT%H:%M:%SZ}"
        key = f"{return_id} {part.grant}"
        if self._luck.chance(self.does.return_refusal, "return refusal", key):
            return "not now"
        at = now + self._luck.delay(self.does.return_time, "return", key)
        grant.returns.append((at, part.amount))
        self.change_at(at)
        return at
