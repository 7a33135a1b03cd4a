"""What one provider's driver needs of the supply that all share."""

from xce.domain.formats.inventory import Inventory, RequestEntry
from xce.domain.formats.policy import PolicySettings
from xce.domain.formats.provider import Capabilities
from xce.domain.formats.rest import Supply
from xce.domain.ports import Ask


def inventory_of(supply: Supply, provider: str) -> Inventory:
    """Return what is asked of, and held from, one provider."""
    inventory = supply.inventory
    return Inventory(
        requests=tuple(one for one in inventory.requests if one.provider == provider),
        instances=tuple(one for one in inventory.instances if one.provider == provider),
        grants=tuple(one for one in inventory.grants if one.provider == provider),
    )


def policy_of(settings: PolicySettings, supply: Supply) -> PolicySettings:
    """Return the settings, frozen while the site is."""
    return settings.model_copy(update={"freeze": True}) if supply.site.frozen else settings


def capabilities_of(supply: Supply, provider: str) -> Capabilities:
    """Return what a provider can do, as it last said; one that never did can do what version 1 of the contract can."""
    described = (one.description.capabilities for one in supply.providers if one.name == provider)
    return next(described, Capabilities())


def failures_of(supply: Supply, provider: str, item: str) -> int:
    """Return how often asks for an item of a provider failed since the last success."""
    known = (
        one.in_a_row for one in supply.failures if (one.provider, one.item) == (provider, item)
    )
    return next(known, 0)


def ask_of(entry: RequestEntry) -> Ask:
    """Return the ask that a request was made with."""
    item = entry.template if entry.template is not None else entry.resource
    assert item is not None, "a request is for a template or a resource"
    return Ask(entry.id, entry.kind, item, entry.amount)
