"""What a provisioner tells the controller now and then, for people and alerts: how far budgets are used, and what it does not believe."""

from decimal import Decimal
from typing import Annotated

from pydantic import Field

from xce.domain.formats.base import Format, Money, Name
from xce.domain.formats.policy import Decision


class BudgetUse(Format):
    """How far one bound of a budget is used."""

    budget: Name
    bound: Name = Field(description="which of its bounds, such as max_hosts")
    used: Money = Field(description="hosts, or money")
    counted_on: Money = Field(
        default=Decimal(0),
        description="of a day or month: what all that exists and is asked is counted on to cost further in it",
    )
    limit: Money


class HeldBack(Format):
    """Losses at a provider that are not believed yet."""

    provider: Name
    why: str


class StandingReport(Format):
    """How one provisioner stands. Kept in memory until its next report; never a part of the log."""

    budgets: Annotated[tuple[BudgetUse, ...], Field(max_length=10_000)] = ()
    held_back: Annotated[tuple[HeldBack, ...], Field(max_length=10_000)] = ()
    holds: Annotated[tuple[Decision, ...], Field(max_length=10_000)] = Field(
        default=(), description="what the newest round did deliberately not do, and why"
    )


class Standing(Format):
    """The newest report of each provisioner."""

    reports: dict[Name, StandingReport]
