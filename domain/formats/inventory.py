"""What is asked, owned and owed, as a round of the policy sees it and REST lists it."""

from pydantic import Field, StrictBool

from xce.domain.formats.base import Amount, Count, Format, Money, Name, Time
from xce.domain.formats.provider import Kind
from xce.domain.provisioning.grant import GrantState
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.request import RequestState


class RequestEntry(Format):
    """A request as the inventory shows it."""

    id: Name
    provider: Name
    kind: Kind
    template: Name | None = None
    resource: Name | None = None
    amount: Count = Field(description="hosts or units asked for")
    granted: Count = 0
    failed: Count = Field(default=0, description="part of the amount known not to come")
    state: RequestState
    asked_at: Time
    asked_position: Count = Field(
        default=0, description="log position of the intent: demand older than it did not see it"
    )
    deadline: Time | None = None
    price_per_hour: Money | None = Field(default=None, description="of one host or unit")
    project: Name | None = Field(
        default=None, description="whose budgets pay for it; null: several projects, or none"
    )
    provider_request_id: str | None = Field(
        default=None, description="the provider's id, once it accepted"
    )
    settled: StrictBool = Field(
        default=False, description="true: it was given up, and its provider is not asked any more"
    )


class InstanceEntry(Format):
    """An instance as the inventory shows it."""

    id: Name
    provider: Name
    template: Name
    request: Name | None = None
    state: InstanceState
    machine: Name | None = Field(default=None, description="the provider's id")
    name: Name | None = Field(default=None, description="as the provider reported it")
    host: Name | None = Field(default=None, description="name in the cluster, once joined")
    granted_at: Time
    reported_as: Name | None = Field(
        default=None,
        description="name in the cluster of one that is checked before it opens; null: it is not checked, or has not reported",
    )
    booted_at: Time | None = Field(default=None, description="as it said when it reported")
    reported_at: Time | None = Field(default=None, description="since when it is checked")
    joined_at: Time | None = None
    hold_until: Time | None = None
    price_per_hour: Money | None = None
    project: Name | None = Field(
        default=None, description="whose budgets pay for it; null: several projects, or none"
    )
    return_id: str | None = Field(default=None, description="the return under way")
    provider_return_id: str | None = Field(
        default=None, description="the provider's id of that return, once it took it on"
    )


class GrantEntry(Format):
    """A grant as the inventory shows it."""

    id: Name
    provider: Name
    resource: Name
    request: Name | None = None
    amount: Count
    returning: Count = 0
    returned: Count = 0
    state: GrantState
    granted_at: Time
    hold_until: Time | None = None
    expires_at: Time | None = None
    renewed_at: Time | None = Field(
        default=None, description="when its end was last put off; null: never"
    )
    price_per_hour: Money | None = Field(default=None, description="of one unit")
    project: Name | None = Field(
        default=None, description="whose budgets pay for it; null: several projects, or none"
    )
    return_id: str | None = Field(default=None, description="the return under way")
    provider_return_id: str | None = Field(
        default=None, description="the provider's id of that return, once it took it on"
    )


class UnownedEntry(Format):
    """Something at a provider that no live record owns: a machine or grant that was found, or an ask of which nobody knows what it has done."""

    id: Name = Field(description="PROVIDER/THEIRS; THEIRS is the provider's id, or that of the ask")
    provider: Name
    kind: Kind = Kind.HOST
    template: Name | None = Field(default=None, description="null: unknown, or units")
    resource: Name | None = Field(default=None, description="null: unknown, or hosts")
    amount: Amount = Field(default=1, description="hosts or units that it may be")
    request: Name | None = Field(
        default=None, description="the ask that made it, or may have; null: unknown"
    )
    price_per_hour: Money | None = Field(default=None, description="of one; null: unknown")
    project: Name | None = Field(
        default=None, description="whose budgets pay for it; null: several projects, or none"
    )
    since: Time | None = Field(
        default=None, description="since when it costs; null: an ask, of which nothing may exist"
    )

    @property
    def is_ask(self) -> bool:
        """Whether it is an ask of which nobody knows what it has done, not a thing that was found."""
        return self.request is not None and self.id == f"{self.provider}/{self.request}"


class Inventory(Format):
    """All that is asked, owned or owed and not ended."""

    requests: tuple[RequestEntry, ...] = ()
    instances: tuple[InstanceEntry, ...] = ()
    grants: tuple[GrantEntry, ...] = ()
    unowned: tuple[UnownedEntry, ...] = Field(
        default=(), description="counts against capacities and budgets; nothing is expected of it"
    )
