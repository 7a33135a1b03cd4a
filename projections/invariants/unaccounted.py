"""What may exist at providers and no live record counts, followed event by event: open orphans, and asks that were given up.

What it counts as is said by ``domain/policy/unaccounted.py``; here is what of it is open at a position, also in a log that is not as it
should be.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from xce.domain.events.base import DomainEvent
from xce.domain.events.ids import name_of, request_id
from xce.domain.formats.provider import Kind, ProviderDescription
from xce.domain.policy.unaccounted import counts_as, stated_prices
from xce.domain.provisioning.orphan import Orphan, OrphanKind
from xce.domain.provisioning.request import GIVEN_UP, Request


@dataclass(slots=True)
class _Part:
    """A thing, an ask, or what an ask was not answered; ``amount`` is what of it may exist."""

    provider: str
    kind: Kind
    item: str | None
    amount: int


class Unaccounted:
    """Sees every event, and knows what is open."""

    def __init__(self) -> None:
        self._orphans: dict[str, _Part] = {}
        #: The orphans that are asks, by the request.
        self._asks: dict[str, str] = {}
        self._asked: dict[str, _Part] = {}
        self._given_up: dict[str, _Part] = {}

    def see(self, event: DomainEvent) -> None:
        """Take the next event into account."""
        match event:
            case Orphan.Found() if event.kind is OrphanKind.UNKNOWN_TO_US:
                name = event.originator_id
                self._orphans[name] = _Part(event.provider, event.of, event.item, event.amount)
                if event.tag is not None and event.theirs == event.tag:
                    self._asks[request_id(event.tag)] = name
            case Orphan.Adopted() | Orphan.Dismissed() | Orphan.Vanished():
                self._orphans.pop(event.originator_id, None)
                ask = request_id(name_of(event.originator_id).partition("/")[2])
                if self._asks.get(ask) == event.originator_id:
                    del self._asks[ask]
            case Request.Event():
                self._see_request(event)
            case _:
                pass

    def _see_request(self, event: Request.Event) -> None:
        name = event.originator_id
        match event:
            case Request.Intended():
                self._asked[name] = _Part(event.provider, event.kind, event.item, event.amount)
            case Request.InstanceGranted() | Request.MachineFailed():
                self._less(name, 1)
            case Request.AmountGranted() | Request.FellShort():
                self._less(name, event.amount)
            case Request.Closed():
                part = self._asked.pop(name, None)
                if part is not None and event.outcome in GIVEN_UP:
                    self._given_up[name] = part
            case Request.Settled():
                self._given_up.pop(name, None)
            case _:
                pass

    def _less(self, request: str, amount: int) -> None:
        """So much of what an ask has done is known, and counted by its record, or by nobody."""
        for part in (
            self._asked.get(request),
            self._given_up.get(request),
            self._orphans.get(self._asks.get(request, "")),
        ):
            if part is not None:
                part.amount = max(0, part.amount - amount)

    def of(self, provider: ProviderDescription, kind: Kind) -> Iterator[tuple[str | None, int]]:
        """Yield the item that each counts as (None: nobody can say), and how much it is."""
        for part in self._open():
            if part.provider == provider.name and part.kind is kind and part.amount:
                item, _ = counts_as(part.item, None, stated_prices(provider, kind))
                yield item, part.amount

    def _open(self) -> Iterator[_Part]:
        yield from self._orphans.values()
        for name, part in self._given_up.items():
            if name not in self._asks:
                yield part
