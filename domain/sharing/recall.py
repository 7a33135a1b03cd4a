"""What lenders want back: of each resource the amount above what they would go on lending."""

from collections.abc import Iterable, Mapping

from xce.domain.formats.inventory import GrantEntry
from xce.domain.formats.provider import ProviderDescription
from xce.domain.provisioning.grant import LIVE


def recalled_by(
    providers: Iterable[ProviderDescription], grants: Iterable[GrantEntry]
) -> Mapping[tuple[str, str], int]:
    """Return how much of what may be used a lender wants back, by lender and resource; nothing is left out as 0.

    A lender says down to which amount it wants what it lends to fall, and not by how much: so what goes back makes the recall
    smaller at once, however old its word is.
    """
    bounds = {
        (one.name, offer.name): offer.recalled_to
        for one in providers
        for offer in one.resources
        if offer.recalled_to is not None
    }
    if not bounds:
        return {}
    held: dict[tuple[str, str], int] = {}
    for grant in grants:
        key = grant.provider, grant.resource
        if key in bounds and grant.state in LIVE:
            usable = grant.amount - grant.returned - grant.returning
            held[key] = held.get(key, 0) + usable
    return {key: amount - bounds[key] for key, amount in held.items() if amount > bounds[key]}


def recalled_of(recalls: Mapping[tuple[str, str], int], resource: str) -> int:
    """Return how much of a resource all its lenders together want back."""
    return sum(amount for (_, name), amount in recalls.items() if name == resource)
