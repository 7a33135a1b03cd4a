"""How a simulated licence server behaves: when tools take and give back tokens, who else takes them, what it shows of it."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field, StrictInt

from xce.domain.formats.base import Format, Name
from xce.domain.formats.config import Interval
from xce.domain.formats.simulated_provider import Delay, OutsideUse


class FeatureBehaviour(Format):
    """One feature at a server; its name is that of the shared resource."""

    name: Name
    checkout: Delay = Field(
        default=Delay.model_validate("0s"),
        description="from a job's start until its tool takes its tokens",
    )
    linger: Delay = Field(
        default=Delay.model_validate("0s"),
        description="from a job's end until the server has its tokens back",
    )
    outside: tuple[OutsideUse, ...] = Field(
        default=(), description="what users outside the cluster take, by time of day"
    )
    counted_twice: Annotated[StrictInt, Field(ge=-1_000_000, le=1_000_000)] = Field(
        default=0, description="by how much the number that the server shows is off"
    )


class LicenceServerConfig(Format):
    """A simulated licence server; its name is the ``observer`` of shared resources."""

    name: Name
    every: Interval = Field(default=timedelta(minutes=1), description="how often it is looked at")
    features: tuple[FeatureBehaviour, ...] = ()
