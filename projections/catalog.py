"""The catalog: what could be obtained, and what is on its way; and the providers as the policy sees them.

One line for each template and price, its room summed over the providers (see ``domain/policy/lines``). Room is what the limits leave
beyond everything that exists or is asked, in a size that can be asked. What a line promises is what each of its providers promises.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from math import lcm
from typing import Any, Final

from xce.domain.events.ids import name_of
from xce.domain.formats.policy import Pause
from xce.domain.formats.provider import Kind, ProviderDescription, ResourceOffer, TemplateOffer
from xce.domain.formats.snapshot import (
    Attribute,
    Catalog,
    Countable,
    Draw,
    InFlight,
    InFlightCount,
    InFlightHost,
    Template,
)
from xce.domain.policy.lines import line_ids
from xce.domain.policy.times import later
from xce.domain.policy.unaccounted import Unaccounted, unaccounted
from xce.domain.provisioning.provider import Provider, changed_promises
from xce.domain.values import natural_key
from xce.projections.inventory import LiveInventory
from xce.projections.kept import Keeper, Pairs
from xce.projections.projection import Projection, State
from xce.projections.room import Room
from xce.projections.rows import InstanceRow, RequestRow
from xce.projections.totals import SharedTotals
from xce.projections.turns import in_turn, same

#: Whose pauses are no failures.
_BY_HAND: Final = "admin/"


@dataclass(frozen=True, slots=True)
class _Offer:
    """One provider's offer of one template."""

    provider: ProviderDescription
    template: TemplateOffer
    price: Decimal | None


@dataclass(frozen=True, slots=True)
class _Line:
    """The offers of one template at one price, the preferred one first; ``past``: nobody offers it any more."""

    id: str
    offers: tuple[_Offer, ...]
    past: bool


#: The lines of one template, by price.
_Lines = dict[Decimal | None, _Line]


@dataclass(slots=True)
class _Kept:
    providers: dict[str, ProviderDescription]
    offered: Pairs[tuple[str, str], TemplateOffer]
    pauses: Pairs[tuple[str, str | None], Pause]
    learned: Pairs[tuple[str, str], dict[str, int]] = field(
        default_factory=dict[tuple[str, str], dict[str, int]]
    )
    turns: Pairs[tuple[str, str], datetime] = field(default_factory=dict[tuple[str, str], datetime])


_KEEPER: Final = Keeper(_Kept)


class LiveCatalog(Projection):
    """The catalog at the position reached.

    It folds what providers say of themselves; what exists and is asked it reads from the inventory and the totals, which must be at
    the same position (``Projections`` sees to that).
    """

    def __init__(
        self, inventory: LiveInventory, totals: SharedTotals, templates: Iterable[Template] = ()
    ) -> None:
        """Make it.

        Args:
            inventory: what exists and is asked.
            totals: the declared resources.
            templates: static parts from the cluster's configuration; a field that is set there wins over the description.
        """
        super().__init__()
        self._inventory = inventory
        self._totals = totals
        self._static = {template.id: template for template in templates}
        self._providers: dict[str, ProviderDescription] = {}
        #: Every template a provider ever offered, as it last did: what is in flight of it keeps its promise.
        self._offered: dict[tuple[str, str], TemplateOffer] = {}
        self._pauses: dict[tuple[str, str | None], Pause] = {}
        #: Measured totals, where they are not as promised, by provider and template.
        self._learned: dict[tuple[str, str], dict[str, int]] = {}
        #: Until when what failed comes after what has not (F06), by provider and template.
        self._turns: dict[tuple[str, str], datetime] = {}
        self._version = 0
        self._made_of: tuple[int, int, int] | None = None
        self._good_from: datetime | None = None
        self._good_until: datetime | None = None
        self._view = Catalog()
        self._described_of: tuple[int, int] | None = None
        self._descriptions: tuple[ProviderDescription, ...] = ()
        self._unaccounted_of: tuple[int, int] | None = None
        self._unaccounted: tuple[Unaccounted, ...] = ()
        self._on(Provider.Described, self._fold_described)
        self._on(Provider.Paused, self._fold_paused)
        self._on(Provider.Resumed, self._fold_resumed)
        self._on(Provider.Learned, self._fold_learned)

    # -------------------------------------------------------------------- views
    def view(self, now: datetime) -> Catalog:
        """Return the catalog; ``now`` says which pauses hold."""
        made_of = (self._version, self._inventory.version, self._totals.version)
        if made_of != self._made_of or not self._is_good(now):
            self._view = self._make(now)
            self._made_of = made_of
            times = (*(pause.until for pause in self._pauses.values()), *self._turns.values())
            ends = [until for until in times if until > now]
            self._good_from, self._good_until = now, min(ends, default=None)
        return self._view

    def descriptions(self) -> tuple[ProviderDescription, ...]:
        """Return the providers as the policy sees them: resources only as far as the cluster's configuration lets them lend."""
        made_of = (self._version, self._totals.version)
        if made_of != self._described_of:
            self._descriptions = tuple(self._within_totals(p) for p in self._providers.values())
            self._described_of = made_of
        return self._descriptions

    def pauses(self, now: datetime) -> tuple[Pause, ...]:
        """Return the pauses that hold."""
        return tuple(pause for pause in self._pauses.values() if pause.until > now)

    def unaccounted(self) -> tuple[Unaccounted, ...]:
        """Return what may exist and is not counted on: it leaves less room."""
        made_of = (self._version, self._inventory.version)
        if made_of != self._unaccounted_of:
            self._unaccounted = unaccounted(self._inventory.view(), self._providers.values())
            self._unaccounted_of = made_of
        return self._unaccounted

    def _used(self) -> Counter[tuple[str, str]]:
        """Return the hosts that exist, may exist or are asked, by provider and template."""
        used = self._inventory.hosts_of
        lost = [one for one in self.unaccounted() if one.kind is Kind.HOST]
        if lost:
            used = used.copy()
            for one in lost:
                used[one.provider, one.item or ""] += one.amount
        return used

    def state(self) -> State:
        """Return all that was folded as a comparable value."""
        return {
            "providers": dict(self._providers),
            "offered": dict(self._offered),
            "pauses": dict(self._pauses),
            "learned": dict(self._learned),
            "turns": dict(self._turns),
        }

    def keep(self) -> bytes:
        """Return all that was folded as JSON, for ``resume``."""
        return _KEEPER.dump(
            _Kept(self._providers, self._offered, self._pauses, self._learned, self._turns)
        )

    def resume(self, kept: bytes) -> None:
        """Stand where ``keep`` was called."""
        parts = _KEEPER.load(kept)
        self._providers = parts.providers
        self._offered = parts.offered
        self._pauses = parts.pauses
        self._learned = parts.learned
        self._turns = parts.turns
        self._version += 1

    # ---------------------------------------------------------------- providers
    def _fold_described(self, event: Provider.Described, position: int) -> None:
        self._version += 1
        before = self._providers.get(event.description.name)
        if before is not None:
            for template_id in changed_promises(before, event.description):
                self._learned.pop((before.name, template_id), None)
        self._providers[event.description.name] = event.description
        for template in event.description.templates:
            self._offered[event.description.name, template.template_id] = template

    def _fold_paused(self, event: Provider.Paused, position: int) -> None:
        self._version += 1
        provider = name_of(event.originator_id)
        self._pauses[provider, event.item] = Pause(
            provider=provider, item=event.item, until=event.until, why=event.why
        )
        if event.item is not None and not event.by.startswith(_BY_HAND):
            # For as long again as the pause, whatever else fits the work is tried before it.
            length = max(timedelta(0), event.until - event.timestamp)
            self._turns[provider, event.item] = later(event.until, length)

    def _fold_resumed(self, event: Provider.Resumed, position: int) -> None:
        self._version += 1
        provider = name_of(event.originator_id)
        self._pauses.pop((provider, event.item), None)
        for key in [key for key in self._turns if key[0] == provider]:
            if event.item in (None, key[1]):
                del self._turns[key]

    def _fold_learned(self, event: Provider.Learned, position: int) -> None:
        self._version += 1
        self._learned[name_of(event.originator_id), event.template] = event.total

    def _is_good(self, now: datetime) -> bool:
        return (
            self._good_from is not None
            and now >= self._good_from
            and (self._good_until is None or now < self._good_until)
        )

    def _make(self, now: datetime) -> Catalog:
        lines = self._lines()
        starting, asked = self._inventory.in_flight()
        hosts = [
            *(self._starting(row, lines) for row in starting),
            *(host for row in asked if row.kind is Kind.HOST for host in self._asked(row, lines)),
        ]
        hosts.sort(key=lambda host: natural_key(host.id))
        wanted = {host.template for host in hosts}
        shown = [
            line
            for of_template in lines.values()
            for line in of_template.values()
            if not line.past or line.id in wanted
        ]
        shown.sort(key=_order)
        room = Room(self._used())
        templates = [self._template(line, room, now) for line in shown]
        return Catalog.model_construct(
            templates=in_turn(
                [
                    (template, self._turn_ends(line, now))
                    for template, line in zip(templates, shown, strict=True)
                ]
            ),
            countable=tuple(self._countables(now)),
            in_flight=InFlight.model_construct(
                hosts=tuple(hosts),
                counts=tuple(
                    InFlightCount.model_construct(name=total.name, amount=total.in_flight)
                    for total in self._totals.all()
                    if total.in_flight
                ),
            ),
            capacities=room.capacities(templates, self._providers),
        )

    # ---------------------------------------------------------------- templates
    def _lines(self) -> dict[str, _Lines]:
        """Return the lines of each template: of those who offer it now, else of those who did."""
        now: dict[str, list[_Offer]] = {}
        past: dict[str, list[_Offer]] = {}
        by_id = {name: _by_id(provider) for name, provider in self._providers.items()}
        for (name, template), offer in self._offered.items():
            provider = self._providers[name]
            found = now if offer in by_id[name].get(offer.template_id, ()) else past
            found.setdefault(template, []).append(
                _Offer(provider, offer, self._price(provider, offer))
            )
        return {
            template: _lines_of(
                template, now.get(template, []) or past[template], template not in now
            )
            for template in now | past
        }

    def _price(self, provider: ProviderDescription, offer: TemplateOffer) -> Decimal | None:
        static = self._static.get(offer.template_id)
        if static is not None and "price_per_hour" in static.model_fields_set:
            return static.price_per_hour
        return provider.price_of(offer)

    def _template(self, line: _Line, room: Room, now: datetime) -> Template:
        first = line.offers[0]
        paused = {offer.provider.name: self._paused(offer, now) for offer in line.offers}
        usable = [offer for offer in line.offers if paused[offer.provider.name] is None]
        ends = [pause for pause in paused.values() if pause is not None]
        pause = min(ends, key=lambda end: (end.until, end.why)) if not usable else None
        open_now = [] if line.past else usable or line.offers
        fields: dict[str, Any] = {
            "priority": first.template.priority,
            "attributes": _common(offer.template.attributes for offer in line.offers),
            "provides": _least(self._provides(offer) for offer in line.offers),
            "price_per_hour": first.price,
            "lead_time": first.provider.lead_time.p50 or None,
        }
        static = self._static.get(first.template.template_id)
        if static is not None:
            fields |= {
                name: getattr(static, name) for name in fields if name in static.model_fields_set
            }
            measured = _least(self._measured(offer) for offer in line.offers)
            fields["provides"] = {
                name: min(amount, measured.get(name, amount))
                for name, amount in fields["provides"].items()
            }
        return Template.model_construct(
            id=line.id,
            allowed=sum(room.of(offer.provider, offer.template) for offer in open_now),
            draws=self._draws(open_now, room, now),
            paused_until=None if pause is None else pause.until,
            paused_why=None if pause is None else pause.why,
            **fields,
        )

    def _turn_ends(self, line: _Line, now: datetime) -> tuple[datetime, str] | None:
        """Return until when a line has had its turn, and why it failed; None: not each of its offers has failed of late."""
        usable = [offer for offer in line.offers if self._paused(offer, now) is None]
        keys = [
            (offer.provider.name, offer.template.template_id) for offer in usable or line.offers
        ]
        ends = [(self._turns.get(key, now), self._pauses.get(key)) for key in keys]
        first, pause = min(ends, key=lambda end: end[0])
        return None if first <= now else (first, "" if pause is None else pause.why)

    def _provides(self, offer: _Offer) -> Mapping[str, int]:
        """Return what a host of an offer has: as measured, else as promised."""
        return {**offer.template.provides, **self._measured(offer)}

    def _measured(self, offer: _Offer) -> Mapping[str, int]:
        return self._learned.get((offer.provider.name, offer.template.template_id), {})

    def _draws(self, offers: Iterable[_Offer], room: Room, now: datetime) -> tuple[Draw, ...]:
        """Return where the hosts of a line come from, in the order in which the policy asks: what failed of late is asked last."""

        def had_its_turn(offer: _Offer) -> bool:
            return self._turns.get((offer.provider.name, offer.template.template_id), now) > now

        return room.draws(
            (offer.provider, offer.template) for offer in sorted(offers, key=had_its_turn)
        )

    def _paused(self, offer: _Offer, now: datetime) -> Pause | None:
        return self._pause_of(offer.provider.name, offer.template.template_id, now)

    def _pause_of(self, provider: str, item: str, now: datetime) -> Pause | None:
        """Return the pause of an item, or of its whole provider, that lasts longest."""
        found = [self._pauses.get((provider, item)), self._pauses.get((provider, None))]
        holding = [pause for pause in found if pause is not None and pause.until > now]
        return max(holding, key=lambda pause: (pause.until, pause.why), default=None)

    # ---------------------------------------------------------------- in flight
    def _starting(self, row: InstanceRow, lines: Mapping[str, _Lines]) -> InFlightHost:
        """A host that was granted and has not joined goes by the instance's id."""
        line = _line_of(lines, row.template, row.price)
        request = self._inventory.request(row.request)
        since = row.granted_at if request is None else request.asked_at
        return InFlightHost.model_construct(
            id=row.id,
            template=line.id,
            expected_name=row.expected_name,
            ready_at=_ready_at(line, row.provider, since),
        )

    def _asked(self, row: RequestRow, lines: Mapping[str, _Lines]) -> list[InFlightHost]:
        """A host that was asked and not answered is supply already (F01); it goes by its number in the request."""
        line = _line_of(lines, row.item, row.price)
        ready_at = _ready_at(line, row.provider, row.asked_at)
        return [
            InFlightHost.model_construct(
                id=f"{row.id}/{number}", template=line.id, expected_name=None, ready_at=ready_at
            )
            for number in range(row.amount - row.open + 1, row.amount + 1)
        ]

    # ---------------------------------------------------------------- countable
    def _countables(self, now: datetime) -> Iterable[Countable]:
        for total in sorted(self._totals.all(), key=lambda total: natural_key(total.name)):
            provider = self._providers.get(total.provider or "")
            offer = None if provider is None else _resource(provider, total.name)
            if provider is None or offer is None:
                continue
            headroom = None
            if self._pause_of(provider.name, total.name, now) is not None:
                headroom = 0
            elif offer.capacity is not None:
                used = self._inventory.units_of[provider.name, total.name] + sum(
                    one.amount
                    for one in self.unaccounted()
                    if (one.kind, one.provider, one.item)
                    == (Kind.COUNTABLE, provider.name, total.name)
                )
                left = offer.capacity - used
                step = lcm(offer.step, total.step)
                headroom = max(0, min(left, total.headroom)) // step * step
            yield Countable.model_construct(
                name=total.name, headroom=headroom, price_per_hour=provider.price_of(offer)
            )

    def _within_totals(self, provider: ProviderDescription) -> ProviderDescription:
        """Return a description whose resources lend what the cluster's configuration allows (``max_borrow``, step, hold)."""
        resources = tuple(self._within_total(provider, offer) for offer in provider.resources)
        if resources == provider.resources:
            return provider
        return provider.model_copy(update={"resources": resources})

    def _within_total(self, provider: ProviderDescription, offer: ResourceOffer) -> ResourceOffer:
        total = self._totals.get(offer.name)
        if total is None:
            return offer
        lends = total.max_borrow if total.provider == provider.name else 0
        return offer.model_copy(
            update={
                "capacity": None if offer.capacity is None else min(offer.capacity, lends),
                "step": lcm(offer.step, total.step),
                "minimum_hold": max(offer.minimum_hold, total.min_hold),
            }
        )


# --------------------------------------------------------------------- helpers
def _by_id(provider: ProviderDescription) -> dict[str, list[TemplateOffer]]:
    """Return what a provider offers now, so that an offer is not looked for among hundreds."""
    found: dict[str, list[TemplateOffer]] = {}
    for offer in provider.templates:
        found.setdefault(offer.template_id, []).append(offer)
    return found


def _lines_of(template: str, offers: list[_Offer], past: bool) -> _Lines:
    offers = sorted(
        offers, key=lambda offer: (-offer.provider.priority, natural_key(offer.provider.name))
    )
    names = line_ids(template, (offer.price for offer in offers))
    return {
        price: _Line(name, tuple(offer for offer in offers if offer.price == price), past)
        for price, name in names.items()
    }


def _order(line: _Line) -> tuple[object, ...]:
    """Lines by template, then price, unpriced last."""
    first = line.offers[0]
    return (natural_key(first.template.template_id), first.price is None, first.price or 0)


def _line_of(lines: Mapping[str, _Lines], template: str, price: Decimal | None) -> _Line:
    """Return the line of what was bought at a price; one of another price where nobody asks that price any more."""
    of_template = lines[template]
    if price in of_template:
        return of_template[price]
    return min(of_template.values(), key=_order)


def _ready_at(line: _Line, provider: str, since: datetime) -> datetime | None:
    for offer in line.offers:
        if offer.provider.name == provider and offer.provider.lead_time.p50:
            return later(since, offer.provider.lead_time.p50)
    return None


def _resource(provider: ProviderDescription, name: str) -> ResourceOffer | None:
    return next((offer for offer in provider.resources if offer.name == name), None)


def _common(promises: Iterable[Mapping[str, Attribute]]) -> dict[str, Attribute]:
    """Return the attributes that all promise alike."""
    first, *others = promises
    return {
        name: value
        for name, value in first.items()
        if all(name in other and same(other[name], value) for other in others)
    }


def _least(promises: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the amounts that all promise at least."""
    first, *others = promises
    return {
        name: min(amount, *(other[name] for other in others)) if others else amount
        for name, amount in first.items()
        if all(name in other for other in others)
    }
