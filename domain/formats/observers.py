"""How licence servers are looked at: part of a configuration."""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictBool

from xce.domain.formats.base import Duration, Format, Name


def _not_too_often(value: timedelta) -> timedelta:
    if value < timedelta(seconds=30):
        raise ValueError("wanted at least 30s: a licence server has other things to do")
    return value


def _some_time(value: timedelta) -> timedelta:
    if not timedelta(seconds=1) <= value <= timedelta(minutes=10):
        raise ValueError("wanted a time from 1s to 10min")
    return value


Interval = Annotated[Duration, AfterValidator(_not_too_often)]
Limit = Annotated[Duration, AfterValidator(_some_time)]


class FeatureMapping(Format):
    """Which features of which servers are a resource; all that match are added up."""

    resource: Name
    feature: Name = Field(description="as the server spells it")
    any_case: StrictBool = Field(default=False, description="true: however it is spelt")
    server: Name | None = Field(
        default=None, description="port@host, or host, of the server; null: any"
    )
    vendor: Name | None = Field(default=None, description="the vendor daemon; null: any")


class FlexNetObserver(Format):
    """``lmutil lmstat -a`` of some servers."""

    kind: Literal["flexnet"]
    name: Name
    lmutil: Name = Field(default="lmutil", description="the program")
    servers: Annotated[tuple[Name, ...], Field(min_length=1)] = Field(
        description="port@host, or files of licences; one call for each"
    )
    features: Annotated[tuple[FeatureMapping, ...], Field(min_length=1)]
    interval: Interval = timedelta(seconds=60)
    time_limit: Limit = timedelta(seconds=20)


class CommandObserver(Format):
    """A command that prints JSON numbers, for any other licence manager."""

    kind: Literal["command"]
    name: Name
    command: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="program and arguments; no shell"
    )
    resources: Annotated[tuple[Name, ...], Field(min_length=1)] = Field(
        description="what it says something about; what it leaves out is unknown"
    )
    interval: Interval = timedelta(seconds=60)
    time_limit: Limit = timedelta(seconds=20)


class RecordedObserver(Format):
    """Observations of a file (JSON lines of xce.observation/1), each from its time on."""

    kind: Literal["recorded"]
    name: Name
    file: Name
    interval: Interval = timedelta(seconds=60)


ObserverConfig = Annotated[
    FlexNetObserver | CommandObserver | RecordedObserver, Field(discriminator="kind")
]
