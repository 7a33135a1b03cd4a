"""The configuration of a provisioner; written by people in YAML, field by field in ``docs/reference/provisioner.md``."""

from datetime import timedelta
from typing import Annotated, Final

from pydantic import AfterValidator, Field, StrictInt

from xce.domain.formats.base import Duration, Format, Name
from xce.domain.formats.config import PolicyConfig, ProviderConfig
from xce.domain.formats.lifecycle import LifecycleSettings
from xce.domain.formats.observers import ObserverConfig
from xce.domain.formats.script_provider import ScriptSettings

_SHORTEST: Final = timedelta(seconds=1)


def _some_time(value: timedelta) -> timedelta:
    if value < _SHORTEST:
        raise ValueError("wanted at least 1s")
    return value


Period = Annotated[Duration, AfterValidator(_some_time)]


class ControllerLink(Format):
    """How the controller is reached."""

    addresses: tuple[Name, ...] = Field(
        default=("http://127.0.0.1:8470",),
        description="of the controller, and of those that stand by for it",
    )
    token_file: Name | None = Field(
        default=None,
        description="file with the token of the role provisioner; null: the variable XCE_TOKEN, or the certificate",
    )
    ca: Name | None = Field(default=None, description="certificates of the controller's authority")
    certificate: Name | None = Field(default=None, description="our own; in PEM form")
    key: Name | None = Field(default=None, description="of the certificate")
    timeout: Period = Field(default=timedelta(seconds=10), description="of one try of a call")


class Rhythm(Format):
    """How often things are done."""

    lease_term: Period = Field(
        default=timedelta(seconds=30),
        description="without a word of us for so long, another one may take our providers over",
    )
    poll: Period = Field(
        default=timedelta(seconds=30),
        description="how often a provider is asked what became of requests and returns",
    )
    reconcile: Period = Field(
        default=timedelta(minutes=10), description="how often a provider is asked for all it has"
    )
    describe: Period = Field(
        default=timedelta(minutes=30), description="how often a provider is asked what it offers"
    )
    round: Period = Field(
        default=timedelta(seconds=10), description="rounds of the policy are at least so far apart"
    )
    review: Period = Field(
        default=timedelta(seconds=30), description="a round is repeated after this without news"
    )


class Monitor(Format):
    """Where metrics and health are read."""

    host: Name = Field(default="127.0.0.1", description="address to listen on")
    port: Annotated[StrictInt, Field(ge=0, le=65535)] = Field(
        default=8472, description="0: any free one; the log says which"
    )


class ProvisionerConfig(Format):
    """Everything ``xce provisioner`` needs to know."""

    name: Name = Field(description="of this instance: leases and events name it")
    controller: ControllerLink = ControllerLink()
    state: Name = Field(
        default="provisioner-state",
        description="folder for what providers said; one for each machine, kept over restarts; "
        "a relative name starts at the configuration's folder",
    )
    scripts: tuple[ScriptSettings, ...] = Field(
        default=(), description="providers that are folders of scripts"
    )
    simulated: tuple[ProviderConfig, ...] = Field(
        default=(),
        description="providers that exist in this process only, for trying out; they forget all when it ends",
    )
    seed: Annotated[StrictInt, Field(ge=0, le=2**53 - 1)] = Field(
        default=1, description="of the simulated ones"
    )
    observers: tuple[ObserverConfig, ...] = Field(
        default=(), description="who sees what is really in use of licences"
    )
    policy: PolicyConfig = PolicyConfig()
    lifecycle: LifecycleSettings = LifecycleSettings()
    rhythm: Rhythm = Rhythm()
    record: Name | None = Field(
        default=None,
        description="file of a recording of rounds of the policy and of providers' answers; null: nothing is recorded",
    )
    monitor: Monitor | None = Field(default=None, description="null: no metrics are served")

    def provider_names(self) -> tuple[str, ...]:
        """Return the names of the providers that this instance declares."""
        return (*(one.name for one in self.scripts), *(one.name for one in self.simulated))


def problems(config: ProvisionerConfig) -> list[tuple[tuple[str | int, ...], str]]:
    """Return what contradicts itself: place and message."""
    found: list[tuple[tuple[str | int, ...], str]] = []
    names = config.provider_names()
    if not names:
        found.append((("scripts",), "no provider is declared: wanted scripts or simulated"))
    for kind, own in (
        ("scripts", [one.name for one in config.scripts]),
        ("simulated", [one.name for one in config.simulated]),
    ):
        found += [
            ((kind, i, "name"), f"{name} is there twice")
            for i, name in enumerate(own)
            if names.count(name) > 1
        ]
    observers = [one.name for one in config.observers]
    found += [
        (("observers", i, "name"), f"{name} is there twice")
        for i, name in enumerate(observers)
        if observers.count(name) > 1
    ]
    link = config.controller
    if not link.addresses:
        found.append((("controller", "addresses"), "wanted at least one address"))
    if (link.certificate is None) != (link.key is None):
        found.append((("controller", "certificate"), "certificate and key belong together"))
    if config.rhythm.lease_term < timedelta(seconds=3):
        found.append((("rhythm", "lease_term"), "wanted at least 3 s"))
    for i, one in enumerate(config.scripts):
        if one.description is not None and one.description.name != one.name:
            found.append(
                (("scripts", i, "description", "name"), f"wanted {one.name}, the provider's name")
            )
    return found
