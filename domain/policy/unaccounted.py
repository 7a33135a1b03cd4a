"""What may exist at providers and is not counted on: open orphans, and asks that were given up and are not known to be over.

It may cost money, so it counts against capacities and budgets until it is owned, gone or settled, or a person says that it is none
of ours. Nothing else counts it: it serves no job.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from xce.domain.formats.inventory import Inventory, RequestEntry, UnownedEntry
from xce.domain.formats.provider import Kind, ProviderDescription
from xce.domain.provisioning.request import GIVEN_UP
from xce.domain.values import natural_key


@dataclass(frozen=True, slots=True)
class Unaccounted:
    """Something that may exist, as what it counts.

    Attributes:
        what: its name, for people.
        item: template or resource; None: its provider offers none.
        price: of one, as agreed, else as its provider states it; None: unknown.
        project: whose budgets pay for it; None: several projects, none, or unknown.
        since: since when it costs and is counted as spent; None: it may not exist.
    """

    what: str
    provider: str
    kind: Kind
    item: str | None
    amount: int
    price: Decimal | None
    project: str | None
    since: datetime | None = None


def unaccounted(
    inventory: Inventory, providers: Iterable[ProviderDescription]
) -> tuple[Unaccounted, ...]:
    """Return what may exist and is not counted on, each once.

    What nobody knows the template or resource of counts as the dearest of its provider: of all that it may be, that is never less.
    """
    asks = {one.request for one in inventory.unowned if one.is_ask}
    found = [
        *(_given_up(one, amount) for one, amount in _asks(inventory) if one.id not in asks),
        *(_unowned(one) for one in inventory.unowned if one.amount),
    ]
    if not found:
        return ()
    described = {one.name: one for one in providers}
    return tuple(_known(one, described.get(one.provider)) for one in found)


def _asks(inventory: Inventory) -> Iterator[tuple[RequestEntry, int]]:
    """Yield the asks that were given up before their providers had ended them, with what may still come of each."""
    for one in inventory.requests:
        rest = one.amount - one.granted - one.failed
        if one.state in GIVEN_UP and not one.settled and rest > 0:
            yield one, rest


def _given_up(one: RequestEntry, rest: int) -> Unaccounted:
    return Unaccounted(
        f"request {one.id}",
        one.provider,
        one.kind,
        one.template if one.kind is Kind.HOST else one.resource,
        rest,
        one.price_per_hour,
        one.project,
    )


def _unowned(one: UnownedEntry) -> Unaccounted:
    return Unaccounted(
        f"orphan {one.id}",
        one.provider,
        one.kind,
        one.template if one.kind is Kind.HOST else one.resource,
        one.amount,
        one.price_per_hour,
        one.project,
        one.since,
    )


def _known(one: Unaccounted, provider: ProviderDescription | None) -> Unaccounted:
    """Return it with the item and price that it counts as."""
    stated = {} if provider is None else stated_prices(provider, one.kind)
    item, price = counts_as(one.item, one.price, stated)
    return replace(one, item=item, price=price)


def counts_as(
    item: str | None, price: Decimal | None, stated: Mapping[str, Decimal | None]
) -> tuple[str | None, Decimal | None]:
    """Return the item, and the price of one, that a thing counts as whose item or price may be unknown.

    ``stated``: what its provider offers of its kind, with the price of each.
    """
    if item is None and stated:
        item = max(stated, key=lambda name: (stated[name] or -1, natural_key(name)))
    if price is None and item is not None:
        price = stated.get(item)
    return item, price


def stated_prices(provider: ProviderDescription, kind: Kind) -> dict[str, Decimal | None]:
    """Return what a provider offers of a kind, with the price of each."""
    if kind is Kind.HOST:
        return {offer.template_id: provider.price_of(offer) for offer in provider.templates}
    return {offer.name: provider.price_of(offer) for offer in provider.resources}
