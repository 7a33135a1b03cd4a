"""How a provider that is a folder of scripts is run: its part of a configuration."""

from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field, StrictBool, StrictInt

from xce.domain.formats.base import Duration, Format, Name
from xce.domain.formats.provider import ProviderDescription, ProviderName

#: Where programs are found when nothing else is said.
PATH_DEFAULT = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MIB = 1024 * 1024


class SlotsFrom(StrEnum):
    """What a template's slots are counted by."""

    PROCS = "procs"
    CORES = "cores"
    THREADS = "threads"


def _environment(value: dict[str, str]) -> dict[str, str]:
    for name, text in value.items():
        if "=" in name or "\0" in name + text:
            raise ValueError(f"{name!r} is not the name of a variable")
    return value


def _some_time(value: timedelta) -> timedelta:
    if value < timedelta(seconds=1):
        raise ValueError("wanted at least 1s")
    return value


class ScriptSettings(Format):
    """A folder of scripts, and how they are called."""

    name: ProviderName
    folder: str = Field(
        description="the folder with the scripts, or the one above its scripts/; LSF's scriptPath"
    )
    conf: str | None = Field(
        default=None,
        description="the folder above its conf/; LSF's confPath; null: the same folder",
    )
    health_check: str | None = Field(
        default=None,
        description="program that checks hosts before they take work, as checkMachines of the contract; null: that of the folder, if it has one",
    )
    options: str = Field(default="", description="SCRIPT_OPTIONS; LSF's scriptOption")
    account: str = Field(default="default", description="rc_account of requests")
    lsf_top: str = Field(default="", description="PRO_LSF_TOP")
    lsf_envdir: str = Field(default="", description="LSF_ENVDIR")
    path: str = Field(default=PATH_DEFAULT, description="PATH of the scripts")
    environment: Annotated[dict[Name, str], AfterValidator(_environment)] = Field(
        default_factory=dict, description="what else the scripts find in their environment"
    )
    secrets: tuple[Name, ...] = Field(
        default=(),
        description="names of variables of the daemon that the scripts are given; their values are cut out of what is kept",
    )
    call_limit: Annotated[Duration, AfterValidator(_some_time)] = Field(
        default=timedelta(seconds=300), description="a call that takes longer is killed"
    )
    output_limit: Annotated[StrictInt, Field(ge=1024, le=1024 * MIB)] = Field(
        default=16 * MIB, description="bytes; a script that prints more is killed"
    )
    evidence_limit: Annotated[StrictInt, Field(ge=0, le=MIB)] = Field(
        default=4096, description="characters of an output that are kept with its outcome"
    )
    keep_calls: Annotated[StrictInt, Field(ge=100, le=1_000_000)] = Field(
        default=10_000, description="calls whose outcome is kept on disk, the newest"
    )
    slots_from: SlotsFrom = Field(
        default=SlotsFrom.CORES, description="what a template's slots are counted by"
    )
    prefer_configured: StrictBool = Field(
        default=True,
        description="where both the description below and the scripts say something: true: the description wins",
    )
    description: ProviderDescription | None = Field(
        default=None, description="what the scripts do not say: prices, capabilities, capacity"
    )
