"""What there is by the events alone, counted apart from the views, and held against what controllers answer and providers really have."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from xce.domain.events import ids
from xce.domain.events.base import DomainEvent
from xce.domain.formats.provider import Kind
from xce.domain.formats.rest import Supply
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.request import OPEN, Request
from xce.domain.sharing.elastic_resource import ElasticResource
from xce.replay.faults.broken import BrokenPromiseError
from xce.replay.faults.cloud import HOLD, Cloud


@dataclass(slots=True)
class _Ask:
    kind: Kind
    item: str
    rest: int


@dataclass(slots=True)
class _Lent:
    resource: str
    active: int
    #: What is not confirmed to be gone.
    left: int
    returns: dict[str, int]


class Ledger:
    """Requests, instances, grants and totals, by the events."""

    def __init__(self, clouds: Mapping[str, Cloud]) -> None:
        self._clouds = clouds
        self._since: dict[str, datetime] = {}
        self._instances: set[str] = set()
        self._lent: dict[str, _Lent] = {}
        self._asks: dict[str, _Ask] = {}
        self._owned: dict[str, int] = {}

    def see(self, event: DomainEvent) -> None:
        """Count an event."""
        match event:
            case Request.Event():
                self._request(event)
            case Instance.Event():
                self._instance(event)
            case Grant.Event():
                self._grant(event)
            case ElasticResource.Declared() | ElasticResource.OwnedSet():
                self._owned[ids.name_of(event.originator_id)] = event.owned
            case _:
                pass

    def _request(self, event: Request.Event) -> None:
        name = ids.name_of(event.originator_id)
        match event:
            case Request.Intended():
                self._asks[name] = _Ask(event.kind, event.item, event.amount)
            case Request.InstanceGranted() | Request.MachineFailed():
                self._asks[name].rest -= 1
            case Request.AmountGranted() | Request.FellShort():
                self._asks[name].rest -= event.amount
            case Request.Closed():
                self._asks[name].rest = 0
            case _:
                pass

    def _instance(self, event: Instance.Event) -> None:
        name = ids.name_of(event.originator_id)
        match event:
            case Instance.Granted():
                self._instances.add(name)
                self._since[event.originator_id] = event.timestamp
            case Instance.ReturnIntended():
                self._require_held(event.originator_id, event.timestamp)
            case Instance.Returned() | Instance.Lost():
                self._instances.discard(name)
                provider, _, machine = name.partition("/")
                if self._clouds[provider].keeps(machine):
                    raise BrokenPromiseError("invariant-1", f"{name} is there, and is given up")
            case _:
                pass

    def _grant(self, event: Grant.Event) -> None:
        name = ids.name_of(event.originator_id)
        if isinstance(event, Grant.Granted):
            self._lent[name] = _Lent(event.resource, event.amount, event.amount, {})
            self._since[event.originator_id] = event.timestamp
            return
        lent = self._lent[name]
        match event:
            case Grant.ReturnStarted():
                self._require_held(event.originator_id, event.timestamp)
                lent.active -= event.amount
                lent.returns[event.return_id] = event.amount
            case Grant.ReturnRefused():
                lent.active += lent.returns.pop(event.return_id)
            case Grant.ReturnConfirmed():
                lent.left -= lent.returns.pop(event.return_id)
                self._require_gone(name, lent)
            case Grant.PartLost():
                lent.active -= event.amount
                lent.left -= event.amount
            case Grant.Lost():
                lent.active = lent.left = 0
                self._require_gone(name, lent)
            case _:
                pass
        if not lent.left:
            del self._lent[name]

    def _require_held(self, aggregate_id: str, at: datetime) -> None:
        since = self._since[aggregate_id]
        if at < since + HOLD:
            raise BrokenPromiseError(
                "invariant-3",
                f"{ids.name_of(aggregate_id)} came at {since} and goes back at {at}, before its hold",
            )

    def _require_gone(self, name: str, lent: _Lent) -> None:
        provider, _, theirs = name.partition("/")
        there = self._clouds[provider].lends(theirs)
        if there > lent.left:
            raise BrokenPromiseError(
                "invariant-1", f"{there} of grant {name} are lent, and {lent.left} are known of"
            )

    # ------------------------------------------------------------------- answers
    def compare(self, supply: Supply) -> None:
        """Hold what a controller answers, of the position reached, against the events."""
        inventory = supply.inventory
        self._same("instances", {one.id for one in inventory.instances}, self._instances)
        self._same(
            "grants",
            {one.id: one.amount - one.returned - one.returning for one in inventory.grants},
            {name: lent.active for name, lent in self._lent.items()},
        )
        self._same(
            "requests",
            {
                one.id: rest
                for one in inventory.requests
                if one.state in OPEN and (rest := one.amount - one.granted - one.failed) > 0
            },
            self.coming(),
        )
        self._same(
            "totals",
            {one.name: (one.total, one.in_flight) for one in supply.shared},
            {name: (self._total(name), self._asked(name)) for name in self._owned},
        )

    def _total(self, resource: str) -> int:
        lent = (one.active for one in self._lent.values() if one.resource == resource)
        return self._owned[resource] + sum(lent)

    def rest(self, request: str) -> int:
        """Return what has not come of a request and is waited for; less than nothing where more came."""
        ask = self._asks.get(request)
        return 0 if ask is None else ask.rest

    def coming(self) -> dict[str, int]:
        """Return what is waited for, by request."""
        return {name: ask.rest for name, ask in self._asks.items() if ask.rest > 0}

    def hosts_coming(self) -> int:
        """Return how many hosts are waited for."""
        asks = (one for one in self._asks.values() if one.kind is Kind.HOST)
        return sum(max(0, one.rest) for one in asks)

    def expected(self, resource: str) -> int:
        """Return what can be used of a resource, and what is asked."""
        return self._total(resource) + self._asked(resource)

    def _asked(self, resource: str) -> int:
        asks = (one for one in self._asks.values() if one.kind is Kind.COUNTABLE)
        return sum(max(0, one.rest) for one in asks if one.item == resource)

    @staticmethod
    def _same(what: str, answered: object, counted: object) -> None:
        if answered != counted:
            raise BrokenPromiseError(
                "invariant-8", f"{what} are answered as {answered}; the log has {counted}"
            )
