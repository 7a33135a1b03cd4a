"""The configuration of the provider: ``ec2.json``."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, JsonValue, StrictInt, model_validator

from xce.domain.errors import InputError
from xce.domain.formats.base import Money, Name
from xce.domain.formats.provider import ContractFormat, ItemName
from xce.domain.formats.snapshot import Attribute

FILE: Final = "ec2.json"
#: What is said of each launch by us, and so not by the configuration.
OURS: Final = frozenset(
    {
        "ClientToken",
        "DryRun",
        "InstanceMarketOptions",
        "MaxCount",
        "MinCount",
        "TagSpecifications",
        "UserData",
    }
)
#: Tags of EC2 have at most so many characters of key and value, and a machine has at most 50, of which five are ours.
_KEY_MAX: Final = 128
_VALUE_MAX: Final = 256
_TAGS_MAX: Final = 45


class Market(StrEnum):
    """How a machine is paid for."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"


class Names(StrEnum):
    """What the host of a machine is called."""

    PRIVATE_DNS = "private-dns"
    PRIVATE_IP = "private-ip"
    INSTANCE_ID = "instance-id"


def _tags(value: dict[str, str]) -> dict[str, str]:
    if len(value) > _TAGS_MAX:
        raise ValueError(f"{len(value)} tags; wanted at most {_TAGS_MAX}")
    for key, text in value.items():
        if key.startswith(("aws:", "xce:")):
            raise ValueError(f"{key!r}: tags that begin with aws: or xce: are not for sites")
        if not 0 < len(key) <= _KEY_MAX or len(text) > _VALUE_MAX:
            raise ValueError(
                f"{key[:_KEY_MAX]!r} is too long; wanted {_KEY_MAX} characters, and {_VALUE_MAX} of its value"
            )
    return value


def _launch(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    for name in value:
        if name in OURS:
            raise ValueError(f"{name} is set by the provider; leave it out")
    if "InstanceType" not in value and "LaunchTemplate" not in value:
        raise ValueError("wanted InstanceType or LaunchTemplate")
    return value


def _endpoint(value: str) -> str:
    if not value.startswith(("http://", "https://")) or "@" in value:
        raise ValueError("wanted http://... or https://... without user and password")
    return value


Tags = Annotated[dict[str, str], AfterValidator(_tags)]


class Ec2Template(ContractFormat):
    """A kind of machine on offer."""

    template_id: ItemName
    max_number: Annotated[StrictInt, Field(ge=-1)] = -1
    priority: StrictInt = 0
    price_per_hour: Money | None = Field(
        default=None, description="what a machine costs; EC2 is not asked for prices"
    )
    attributes: dict[Name, Attribute] = Field(
        default_factory=dict,
        description="of its hosts; type, ncpus, ncores, nthreads and mem are asked of EC2 where ncores or mem is missing",
    )
    market: Market = Market.ON_DEMAND
    max_price: Money | None = Field(
        default=None, description="of spot machines; null: up to the on-demand price"
    )
    user_data_file: str | None = Field(
        default=None, description="beside this file; what cloud-init runs on the machine"
    )
    tags: Tags = Field(default_factory=dict)
    launch: Annotated[dict[str, JsonValue], AfterValidator(_launch)] = Field(
        description="parameters of RunInstances, in its own words"
    )

    @model_validator(mode="after")
    def _max_price_is_of_spot(self) -> "Ec2Template":
        if self.max_price is not None and self.market is not Market.SPOT:
            raise ValueError("maxPrice: only spot machines have one")
        return self


class Ec2Settings(ContractFormat):
    """All that the provider is told."""

    owner: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:/=+@-]{1,128}$")] = Field(
        description="the tag xce:owner of all machines; of no other cluster in the same account and region"
    )
    region: Annotated[str, Field(min_length=1)]
    endpoint_url: Annotated[str, AfterValidator(_endpoint)] | None = Field(
        default=None, description="of an EC2-compatible API; null: that of the region"
    )
    profile: str | None = Field(default=None, description="of the credentials file")
    names: Names = Names.PRIVATE_DNS
    tags: Tags = Field(default_factory=dict, description="of all machines")
    attempts: Annotated[StrictInt, Field(ge=1, le=10)] = Field(
        default=4, description="calls of one thing, where EC2 is throttled, in trouble, or silent"
    )
    connect_timeout_seconds: Annotated[StrictInt, Field(ge=1, le=120)] = 10
    read_timeout_seconds: Annotated[StrictInt, Field(ge=1, le=120)] = 30
    visible_within_seconds: Annotated[StrictInt, Field(ge=0, le=120)] = Field(
        default=30, description="EC2 shows new machines with a delay; so long it is waited for"
    )
    description: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="what getProviderDescription adds: capacity, leadTime, billing...",
    )
    templates: Annotated[tuple[Ec2Template, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _templates_are_one_each(self) -> "Ec2Settings":
        ids = [one.template_id for one in self.templates]
        if twice := sorted({one for one in ids if ids.count(one) > 1}):
            raise ValueError(f"templates: {', '.join(twice)} is there twice")
        return self

    def template(self, template_id: str) -> Ec2Template | None:
        """Return a template; None: there is none of that id."""
        return next((one for one in self.templates if one.template_id == template_id), None)


def read_settings(conf: Path) -> tuple[Ec2Settings, Path]:
    """Return the configuration of a folder or of the ``conf`` below it, and the folder it was in.

    Raises:
        InputError: it is not there, or wrong.
    """
    for folder in (conf / "conf", conf):
        path = folder / FILE
        if path.is_file():
            return Ec2Settings.from_json(path.read_bytes(), FILE), folder
    raise InputError.of(FILE, f"is neither in {conf} nor in {conf / 'conf'}")


#: What is offered unless the configuration is changed.
CONF: Final[dict[str, Any]] = {
    "owner": "change-me",
    "region": "us-east-1",
    "tags": {},
    "templates": [
        {
            "templateId": "c7i-xlarge",
            "maxNumber": 2,
            "pricePerHour": "0.1785",
            "userDataFile": "cloud-init.sh",
            "launch": {
                "InstanceType": "c7i.xlarge",
                "ImageId": "ami-change-me",
                "SubnetId": "subnet-change-me",
                "SecurityGroupIds": ["sg-change-me"],
            },
        }
    ],
}
#: What cloud-init runs on a machine, to begin with.
CLOUD_INIT: Final = """#!/bin/sh
# Runs once, as root, when the machine has booted: what makes a machine of the image a host of the cluster.
set -eu
# systemctl enable --now YOUR-SCHEDULERS-HOST-DAEMON
"""
