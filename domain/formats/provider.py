"""How a provider describes itself (provider contract, version 2), and what it answers.

The keys in JSON are those of the contract (``leadTime``, ``minimumHold``); fields of unknown name inside ``attributes`` are kept.
"""

from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StrictBool, StrictInt
from pydantic.alias_generators import to_camel

from xce.domain.formats.base import Count, Duration, Format, Money, Name, Total
from xce.domain.formats.snapshot import Attribute

#: A provider's name stands before the ids of its machines and grants (``aws/i-0a1b``), a template's in names of hosts and of
#: catalog lines (``c4@0.17``): both leave room for what follows.
ProviderName = Annotated[Name, Field(max_length=64)]
ItemName = Annotated[Name, Field(max_length=128)]


class Kind(StrEnum):
    """What a provider brings."""

    HOST = "host"
    COUNTABLE = "countable"


class ContractFormat(Format):
    """Base of the contract's messages: camelCase in JSON, also read by the Python name."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )


class BillingUnit(StrEnum):
    """What is paid for: each second, or each started hour."""

    SECOND = "second"
    HOUR = "hour"


class Billing(ContractFormat):
    """How use turns into cost: whole units from launch to confirmed return, at least ``minimum``."""

    unit: BillingUnit = BillingUnit.SECOND
    minimum: Duration = timedelta(0)


class Granularity(ContractFormat):
    """Sizes of one ask: at least ``minimum``, in multiples of ``step``."""

    minimum: Annotated[StrictInt, Field(ge=1)] = 1
    step: Annotated[StrictInt, Field(ge=1)] = 1


class LeadTime(ContractFormat):
    """How long from asking to usable: median and 95th percentile."""

    p50: Duration = timedelta(0)
    p95: Duration = timedelta(0)


class Capabilities(ContractFormat):
    """What a provider can do beyond version 1 of the contract."""

    request_tag: StrictBool = Field(
        default=False, description="repeating a tag returns the same request"
    )
    listing: StrictBool = Field(default=False, description="can list everything it has for us")
    partial_returns: StrictBool = Field(default=False, description="takes back a part of a grant")
    cancel: StrictBool = False
    health_check: StrictBool = Field(
        default=False,
        description="checks hosts that have reported to the cluster, before they take work",
    )


class TemplateOffer(ContractFormat):
    """A kind of host that this provider creates."""

    template_id: ItemName
    max_number: Annotated[StrictInt, Field(ge=-1)] = Field(
        default=-1, description="most that may exist at once; -1: no limit of its own"
    )
    priority: StrictInt = Field(default=0, description="higher first")
    price_per_hour: Money | None = Field(
        default=None, description="null: unknown, used after all priced ones"
    )
    attributes: dict[Name, Attribute] = Field(default_factory=dict)
    provides: dict[Name, Total] = Field(default_factory=dict)
    health_check: StrictBool = Field(
        default=True,
        description="false: hosts of it open unchecked, though the provider checks others",
    )


class ResourceOffer(ContractFormat):
    """A countable resource that this provider lends."""

    name: ItemName
    capacity: Count | None = Field(
        default=None, description="most it lends us; null: unknown, nothing is asked"
    )
    price_per_hour: Money | None = Field(default=None, description="of one unit")
    step: Annotated[StrictInt, Field(ge=1)] = 1
    minimum_hold: Duration = timedelta(0)
    recalled_to: Count | None = Field(
        default=None,
        description="it wants what it lends us to fall to this amount; null: it wants nothing back",
    )


class ProviderDescription(ContractFormat):
    """Everything the policy knows of a provider."""

    name: ProviderName
    contract: Literal[1, 2] = 2
    kinds: tuple[str, ...] = Field(
        default=(Kind.HOST.value,), description="kinds unknown to this release are kept and ignored"
    )
    capabilities: Capabilities = Capabilities()
    capacity: Count | None = Field(
        default=None,
        description="most hosts at once, over all templates; null: no limit of its own",
    )
    cost: Money | None = Field(
        default=None, description="price per hour of a template or unit that names none"
    )
    priority: StrictInt = Field(
        default=0, description="higher first, between providers that offer the same"
    )
    lead_time: LeadTime = LeadTime()
    granularity: Granularity = Granularity()
    minimum_hold: Duration = timedelta(0)
    billing: Billing = Billing()
    region: str | None = None
    zone: str | None = None
    attributes: dict[str, Attribute] = Field(default_factory=dict)
    templates: tuple[TemplateOffer, ...] = ()
    resources: tuple[ResourceOffer, ...] = ()

    def price_of(self, offer: TemplateOffer | ResourceOffer) -> Decimal | None:
        """Return the price per hour of one host or unit of an offer; None where nobody states one."""
        return offer.price_per_hour if offer.price_per_hour is not None else self.cost

    def checks(self, template: str) -> bool:
        """Return whether a host of a template is checked before it takes work."""
        return self.capabilities.health_check and all(
            offer.health_check for offer in self.templates if offer.template_id == template
        )
