"""Totals of shared resources: what is owned, what is borrowed, what was asked and what is on its way back."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from xce.domain.events.ids import name_of
from xce.domain.formats.provider import Kind
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.request import Request
from xce.domain.sharing.elastic_resource import ElasticResource
from xce.projections.kept import Keeper
from xce.projections.projection import Projection, State


@dataclass(frozen=True, slots=True)
class SharedTotal:
    """One shared resource at one position.

    Attributes:
        owned: units that are always there.
        borrowed: units of grants that may be used.
        in_flight: units asked for and not yet granted.
        returning: units that left the total and that the lender has not confirmed.
        provider: who can lend more; None: nobody.
        max_borrow: most that may be borrowed, returning and in flight together.
        step: it is borrowed and given back in multiples of it.
        idle_return_after: how long an amount must be unused before it goes back.
        min_hold: how long a grant is kept at least.
    """

    name: str
    owned: int
    borrowed: int = 0
    in_flight: int = 0
    returning: int = 0
    provider: str | None = None
    max_borrow: int = 0
    step: int = 1
    idle_return_after: timedelta = timedelta(0)
    min_hold: timedelta = timedelta(0)

    @property
    def total(self) -> int:
        """What may be booked against: owned and borrowed."""
        return self.owned + self.borrowed

    @property
    def headroom(self) -> int:
        """What may still be asked under ``max_borrow``; what the lender has is another matter."""
        return max(0, self.max_borrow - self.borrowed - self.returning - self.in_flight)


@dataclass(slots=True)
class _Ask:
    """A request for units; ``left`` is below 0 where more came than was asked."""

    resource: str
    left: int

    @property
    def open(self) -> int:
        return max(0, self.left)


@dataclass(slots=True)
class _Kept:
    declared: dict[str, ElasticResource.Declared | ElasticResource.SettingsChanged]
    owned: dict[str, int]
    borrowed: dict[str, int]
    in_flight: dict[str, int]
    parts: dict[str, dict[str, tuple[str, int]]]
    returning: dict[str, int]
    asks: dict[str, _Ask]


_KEEPER: Final = Keeper(_Kept)


class SharedTotals(Projection):
    """The totals of all declared resources."""

    def __init__(self) -> None:
        super().__init__()
        #: Counts the changes; whoever keeps something made from this view compares it.
        self.version = 0
        self._declared: dict[str, ElasticResource.Declared | ElasticResource.SettingsChanged] = {}
        self._owned: dict[str, int] = {}
        self._borrowed: dict[str, int] = {}
        self._in_flight: dict[str, int] = {}
        #: Units of returns under way, by grant and return id, with their resource.
        self._parts: dict[str, dict[str, tuple[str, int]]] = {}
        self._returning: dict[str, int] = {}
        self._asks: dict[str, _Ask] = {}
        self._made: dict[str, SharedTotal] = {}
        self._on(ElasticResource.Declared, self._fold_declared)
        self._on(ElasticResource.SettingsChanged, self._fold_settings_changed)
        self._on(ElasticResource.OwnedSet, self._fold_owned_set)
        self._on(ElasticResource.Borrowed, self._fold_borrowed)
        self._on(ElasticResource.GivenBack, self._fold_given_back)
        self._on(ElasticResource.PutBack, self._fold_put_back)
        self._on(ElasticResource.PartLost, self._fold_part_lost)
        self._on(ElasticResource.GrantLost, self._fold_grant_lost)
        self._on(Grant.ReturnConfirmed, self._fold_return_confirmed)
        self._on(Grant.Lost, self._fold_lost)
        self._on(Request.Intended, self._fold_intended)
        self._on(Request.AmountGranted, self._fold_amount_granted)
        self._on(Request.FellShort, self._fold_fell_short)
        self._on(Request.Closed, self._fold_closed)

    # -------------------------------------------------------------------- views
    def of(self, resource: str) -> SharedTotal:
        """Return the totals of a declared resource.

        Raises:
            KeyError: it was never declared.
        """
        made = self._made.get(resource)
        if made is None:
            declared = self._declared[resource]
            made = self._made[resource] = SharedTotal(
                name=resource,
                owned=self._owned[resource],
                borrowed=self._borrowed[resource],
                in_flight=self._in_flight.get(resource, 0),
                returning=self._returning.get(resource, 0),
                provider=declared.provider,
                max_borrow=declared.max_borrow,
                step=declared.step,
                idle_return_after=declared.idle_return_after,
                min_hold=declared.min_hold,
            )
        return made

    def get(self, resource: str) -> SharedTotal | None:
        """Return the totals of a resource; None: it was never declared."""
        return self.of(resource) if resource in self._declared else None

    def all(self) -> tuple[SharedTotal, ...]:
        """Return all declared resources, in the order they were declared."""
        return tuple(self.of(name) for name in self._declared)

    def state(self) -> State:
        """Return all that was folded as a comparable value."""
        return {
            "totals": {total.name: total for total in self.all()},
            "in flight": dict(self._in_flight),
            "returning": {grant: dict(parts) for grant, parts in self._parts.items()},
            "asks": {request: (ask.resource, ask.left) for request, ask in self._asks.items()},
        }

    def keep(self) -> bytes:
        """Return all that was folded as JSON, for ``resume``."""
        return _KEEPER.dump(
            _Kept(
                declared=self._declared,
                owned=self._owned,
                borrowed=self._borrowed,
                in_flight=self._in_flight,
                parts=self._parts,
                returning=self._returning,
                asks=self._asks,
            )
        )

    def resume(self, kept: bytes) -> None:
        """Stand where ``keep`` was called."""
        parts = _KEEPER.load(kept)
        self._declared = parts.declared
        self._owned = parts.owned
        self._borrowed = parts.borrowed
        self._in_flight = parts.in_flight
        self._parts = parts.parts
        self._returning = parts.returning
        self._asks = parts.asks
        self._made.clear()
        self.version += 1

    # ---------------------------------------------------------------- resources
    def _fold_declared(self, event: ElasticResource.Declared, position: int) -> None:
        name = name_of(event.originator_id)
        self._declared[name] = event
        self._owned[name] = event.owned
        self._borrowed[name] = 0
        self._touch(name)

    def _fold_settings_changed(self, event: ElasticResource.SettingsChanged, position: int) -> None:
        name = name_of(event.originator_id)
        self._declared[name] = event
        self._touch(name)

    def _fold_owned_set(self, event: ElasticResource.OwnedSet, position: int) -> None:
        name = name_of(event.originator_id)
        self._owned[name] = event.owned
        self._touch(name)

    def _fold_borrowed(self, event: ElasticResource.Borrowed, position: int) -> None:
        name = name_of(event.originator_id)
        self._borrowed[name] += event.amount
        self._touch(name)

    def _fold_given_back(self, event: ElasticResource.GivenBack, position: int) -> None:
        name = name_of(event.originator_id)
        self._borrowed[name] -= event.amount
        self._parts.setdefault(event.grant_id, {})[event.return_id] = (name, event.amount)
        self._returning[name] = self._returning.get(name, 0) + event.amount
        self._touch(name)

    def _fold_put_back(self, event: ElasticResource.PutBack, position: int) -> None:
        name = name_of(event.originator_id)
        self._borrowed[name] += event.amount
        self._end_return(event.grant_id, event.return_id)
        self._touch(name)

    def _fold_part_lost(self, event: ElasticResource.PartLost, position: int) -> None:
        name = name_of(event.originator_id)
        self._borrowed[name] -= event.amount
        self._touch(name)

    def _fold_grant_lost(self, event: ElasticResource.GrantLost, position: int) -> None:
        name = name_of(event.originator_id)
        self._borrowed[name] -= event.amount
        self._end_returns(event.grant_id)
        self._touch(name)

    def _fold_lost(self, event: Grant.Lost, position: int) -> None:
        """Logs of before have a lost grant alone where all of it was going back."""
        self._end_returns(name_of(event.originator_id))

    def _end_returns(self, grant: str) -> None:
        for return_id in tuple(self._parts.get(grant, ())):
            self._end_return(grant, return_id)

    def _fold_return_confirmed(self, event: Grant.ReturnConfirmed, position: int) -> None:
        self._end_return(name_of(event.originator_id), event.return_id)

    def _end_return(self, grant: str, return_id: str) -> None:
        parts = self._parts.get(grant)
        if parts is None or return_id not in parts:
            return
        name, amount = parts.pop(return_id)
        if not parts:
            del self._parts[grant]
        self._returning[name] -= amount
        self._touch(name)

    # ----------------------------------------------------------------- requests
    def _fold_intended(self, event: Request.Intended, position: int) -> None:
        if event.kind is Kind.COUNTABLE:
            self._asks[event.originator_id] = ask = _Ask(event.item, 0)
            self._count(ask, event.amount)

    def _fold_amount_granted(self, event: Request.AmountGranted, position: int) -> None:
        if (ask := self._asks.get(event.originator_id)) is not None:
            self._count(ask, -event.amount)

    def _fold_fell_short(self, event: Request.FellShort, position: int) -> None:
        if (ask := self._asks.get(event.originator_id)) is not None:
            self._count(ask, -event.amount)

    def _fold_closed(self, event: Request.Closed, position: int) -> None:
        if (ask := self._asks.pop(event.originator_id, None)) is not None:
            self._count(ask, -ask.open)

    def _count(self, ask: _Ask, change: int) -> None:
        before = ask.open
        ask.left += change
        name = ask.resource
        self._in_flight[name] = self._in_flight.get(name, 0) + ask.open - before
        self._touch(name)

    def _touch(self, resource: str) -> None:
        self.version += 1
        self._made.pop(resource, None)
