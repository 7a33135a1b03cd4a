"""Invariant 7: what exists at a provider, and what is asked and unanswered, never passes a capacity.

It is judged whenever something is asked, by the description at that position. What nobody owns, and what was given up while its provider
was at it, takes room like everything else: an ask is decided on what its decider knew, and whoever acts on a provider has reported of it
what is known (``adapters/provisioner/orders.py`` decides again where something was found meanwhile). More than was asked, a late answer or a description that
shrinks can pass a capacity without us asking; then nothing more may be asked.
"""

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from xce.domain.events import ids
from xce.domain.events.recorded import Recorded
from xce.domain.formats.provider import Kind, ProviderDescription
from xce.domain.policy.purses import in_it
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.provider import Provider
from xce.domain.provisioning.request import Request
from xce.domain.sharing.elastic_resource import ElasticResource
from xce.projections.invariants.report import Invariant
from xce.projections.invariants.unaccounted import Unaccounted

#: Provider, kind, template or resource.
_Item = tuple[str, Kind, str]


@dataclass(slots=True)
class _Asked:
    """One request; ``counted`` is what of it is in the sums now."""

    item: _Item
    rest: int
    open: bool = True
    counted: int = 0


@dataclass(slots=True)
class _Lent:
    item: _Item
    left: int
    returns: dict[str, int]


class Capacity(Invariant):
    """Counts hosts and units from grant to confirmed return, requests until they are closed, and what is unaccounted for."""

    NAME: ClassVar[str] = "invariant-7"
    TITLE: ClassVar[str] = (
        "what exists at a provider and what is asked and unanswered never passes a capacity"
    )

    def __init__(self) -> None:
        super().__init__()
        self._descriptions: dict[str, ProviderDescription] = {}
        self._max_borrow: dict[str, int] = {}
        self._sums: Counter[_Item] = Counter()
        self._asked: dict[str, _Asked] = {}
        self._instances: dict[str, _Item] = {}
        self._lent: dict[str, _Lent] = {}
        self._unaccounted = Unaccounted()

    def _see(self, recorded: Recorded) -> None:
        event = recorded.event
        self._unaccounted.see(event)
        match event:
            case Request.Event():
                self._see_request(event)
            case Instance.Event():
                self._see_instance(event)
            case Grant.Event():
                self._see_grant(event)
            case Provider.Described():
                self._descriptions[event.description.name] = event.description
            case ElasticResource.Declared() | ElasticResource.SettingsChanged():
                self._max_borrow[ids.name_of(event.originator_id)] = event.max_borrow
            case _:
                pass

    def _see_request(self, event: Request.Event) -> None:
        if isinstance(event, Request.Intended):
            item = (event.provider, event.kind, event.item)
            asked = self._asked[event.originator_id] = _Asked(item, event.amount)
            self._recount(asked)
            self._judge(item)
            return
        known = self._asked.get(event.originator_id)
        if known is None:
            return
        match event:
            case Request.InstanceGranted() | Request.MachineFailed():
                known.rest -= 1
            case Request.AmountGranted() | Request.FellShort():
                known.rest -= event.amount
            case Request.Closed():
                known.open = False
            case _:
                pass
        self._recount(known)
        if not known.open:
            del self._asked[event.originator_id]

    def _see_instance(self, event: Instance.Event) -> None:
        match event:
            case Instance.Granted():
                item = (event.provider, Kind.HOST, event.template)
                self._instances[event.originator_id] = item
                self._sums[item] += 1
            case Instance.Returned() | Instance.Lost():
                gone = self._instances.pop(event.originator_id, None)
                if gone is not None:
                    self._sums[gone] -= 1
            case _:
                pass

    def _see_grant(self, event: Grant.Event) -> None:
        if isinstance(event, Grant.Granted):
            item = (event.provider, Kind.COUNTABLE, event.resource)
            self._lent[event.originator_id] = _Lent(item, event.amount, {})
            self._sums[item] += event.amount
            return
        lent = self._lent.get(event.originator_id)
        if lent is None:
            return
        gone = 0
        match event:
            case Grant.ReturnStarted():
                lent.returns[event.return_id] = event.amount
            case Grant.ReturnRefused():
                lent.returns.pop(event.return_id, None)
            case Grant.ReturnConfirmed():
                gone = lent.returns.pop(event.return_id, 0)
            case Grant.PartLost():
                gone = event.amount
            case Grant.Lost():
                gone = lent.left
            case _:
                pass
        lent.left -= gone
        self._sums[lent.item] -= gone
        if lent.left <= 0:
            del self._lent[event.originator_id]

    def _recount(self, asked: _Asked) -> None:
        wanted = max(0, asked.rest) if asked.open else 0
        self._sums[asked.item] += wanted - asked.counted
        asked.counted = wanted

    def _judge(self, item: _Item) -> None:
        provider, kind, name = item
        description = self._descriptions.get(provider)
        if description is None:
            self._find(f"asked of provider {provider}, which has not described itself")
        elif kind is Kind.HOST:
            self._judge_hosts(description, name)
        else:
            self._judge_units(description, name)

    def _judge_hosts(self, description: ProviderDescription, template: str) -> None:
        provider = description.name
        offer = next((t for t in description.templates if t.template_id == template), None)
        if offer is None:
            self._find(f"asked for template {template}, which provider {provider} does not offer")
            return
        lost, all_lost = self._lost(description, Kind.HOST, template)
        exists = self._sums[provider, Kind.HOST, template] + lost
        self._require(
            offer.max_number < 0 or exists <= offer.max_number,
            f"{exists} of template {template} exist or are asked{in_it(lost)}; {offer.max_number} are possible",
        )
        if description.capacity is not None:
            hosts = sum(
                count
                for (owner, kind, _), count in self._sums.items()
                if owner == provider and kind is Kind.HOST
            )
            hosts += all_lost
            self._require(
                hosts <= description.capacity,
                f"{hosts} hosts of provider {provider} exist or are asked{in_it(all_lost)};"
                f" {description.capacity} are possible",
            )

    def _judge_units(self, description: ProviderDescription, resource: str) -> None:
        provider = description.name
        offer = next((r for r in description.resources if r.name == resource), None)
        if offer is None or offer.capacity is None:
            self._find(f"asked for {resource}, of which provider {provider} states no capacity")
            return
        lost, _ = self._lost(description, Kind.COUNTABLE, resource)
        lent = self._sums[provider, Kind.COUNTABLE, resource] + lost
        self._require(
            lent <= offer.capacity,
            f"{lent} of {resource} are lent or asked{in_it(lost)}; provider {provider} has {offer.capacity}",
        )
        most = self._max_borrow.get(resource)
        if most is not None:
            borrowed = sum(
                count
                for (_, kind, name), count in self._sums.items()
                if name == resource and kind is Kind.COUNTABLE
            )
            borrowed += lost
            self._require(
                borrowed <= most,
                f"{borrowed} of {resource} are lent or asked{in_it(lost)}; at most {most} may be borrowed",
            )

    def _lost(self, description: ProviderDescription, kind: Kind, name: str) -> tuple[int, int]:
        """Return how much may exist of one item of a provider, and of all of a kind, that no live record counts."""
        lost = Counter[str | None]()
        for item, amount in self._unaccounted.of(description, kind):
            lost[item] += amount
        return lost[name], lost.total()
