"""How a provisioner follows what it asked for: looking up, listing, giving up, and what it does with what nobody owns."""

from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StrictInt

from xce.domain.formats.base import Duration, Format
from xce.domain.formats.simulated_provider import Share


class OrphanRule(StrEnum):
    """What is done with a machine that no record of ours owns and that carries no tag of ours."""

    REPORT = "report"
    RETURN = "return"


class LifecycleSettings(Format):
    """What the site has set for requests, instances and orphans."""

    lookup_settle: Duration = Field(
        default=timedelta(minutes=2),
        description="a listing shows all that an ask made, so long after it; only then nothing found means nothing made",
    )
    clocks_apart: Duration = Field(
        default=timedelta(minutes=1),
        description="a machine without a tag that was launched so long before an ask, by the provider's clock, may be of it",
    )
    orphans: OrphanRule = Field(
        default=OrphanRule.REPORT,
        description="report: a person decides; return: what is found twice is given back by itself",
    )
    mass_loss_share: Share = Field(
        default=Decimal("0.2"),
        description="a listing that lacks more than this share of a provider's machines is asked again before it is believed",
    )
    mass_loss_least: Annotated[StrictInt, Field(ge=1)] = Field(
        default=3, description="fewer missing machines than this are no mass loss"
    )
    mass_loss_listings: Annotated[StrictInt, Field(ge=2)] = Field(
        default=4, description="listings one after the other that must lack them"
    )
    host_age_limit: Duration | None = Field(
        default=None, description="an older host is drained and goes back; null: no limit"
    )
    late_answers_for: Duration = Field(
        default=timedelta(days=1),
        description="a request that was given up is asked about for so long after its deadline",
    )
