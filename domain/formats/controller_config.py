"""The configuration of the controller service; written by people in YAML, field by field in ``docs/reference/controller.md``."""

from datetime import timedelta
from typing import Annotated, Final

from pydantic import Field, StrictBool, StrictInt

from xce.domain.engine.messages import Role
from xce.domain.formats.alert_settings import AlertSettings
from xce.domain.formats.alert_settings import problems as alert_problems
from xce.domain.formats.base import Duration, Format, Name
from xce.domain.formats.config import SharedPool
from xce.domain.formats.snapshot import Template

#: Addresses that only this machine reaches.
LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})

Port = Annotated[StrictInt, Field(ge=0, le=65535)]
Positive = Annotated[StrictInt, Field(ge=1, le=1_000_000)]


class Listen(Format):
    """Where the service listens."""

    host: Name = Field(default="127.0.0.1", description="address; others than loopback need tls")
    port: Port = Field(default=8470, description="0: any free one; the log says which")
    insecure: StrictBool = Field(
        default=False,
        description="true: listen on other addresses without TLS all the same; tokens can be read on the way",
    )


class Client(Format):
    """A client certificate that stands for a caller."""

    common_name: Name = Field(description="of the certificate's subject")
    role: Role = Field(description="what its owner may do")
    name: Name = Field(description="of the caller; events name it")


class Tls(Format):
    """Files in PEM form; a relative name starts at the configuration's folder."""

    certificate: Name = Field(description="of the controller, with its chain")
    key: Name = Field(description="of the certificate")
    client_ca: Name | None = Field(
        default=None, description="who signs client certificates; null: none are asked for"
    )
    clients: tuple[Client, ...] = ()


class Limits(Format):
    """Bounds on what callers may do."""

    body_kib: Positive = Field(default=1024, description="largest body of a command")
    session_mib: Annotated[StrictInt, Field(ge=1, le=1024)] = Field(
        default=64, description="largest session result or snapshot"
    )
    calls_per_second: Positive = Field(default=200, description="of one caller")
    calls_burst: Positive = Field(default=400, description="of one caller, at once")
    failures_per_second: Positive = Field(
        default=5, description="calls without a known token, of one address"
    )
    streams: Positive = Field(default=100, description="that are followed at once")
    stream_stall: Duration = Field(
        default=timedelta(seconds=30),
        description="a stream whose reader takes nothing for so long is ended",
    )


class LeaseTerms(Format):
    """Bounds on the terms of leases."""

    minimum: Duration = Field(default=timedelta(seconds=3), description="shortest term")
    maximum: Duration = Field(default=timedelta(hours=1), description="longest term")


class ControllerConfig(Format):
    """Everything ``xce controller`` needs to know."""

    log: Name = Field(
        description="the log: an SQLite file, a relative name starting at the configuration's folder; or an address of PostgreSQL"
    )
    name: Name | None = Field(
        default=None, description="of this controller, for people; null: its host and process"
    )
    url: Name | None = Field(
        default=None, description="where others reach it; its standbys name it to callers"
    )
    detection: Duration = Field(
        default=timedelta(seconds=3),
        description="a primary that shows no sign of life for so long is dead, and a standby takes its place",
    )
    listen: Listen = Listen()
    tokens: Name = Field(
        description="file with the digests of tokens, made by xce controller token"
    )
    tls: Tls | None = Field(default=None, description="null: plain HTTP, on loopback only")
    limits: Limits = Limits()
    leases: LeaseTerms = LeaseTerms()
    demand_time_to_live: Duration = Field(
        default=timedelta(minutes=5), description="demand older than this is unknown"
    )
    stop_within: Duration = Field(
        default=timedelta(seconds=10), description="open calls are ended after this when it stops"
    )
    shared: tuple[SharedPool, ...] = Field(
        default=(), description="shared resources, declared at the start"
    )
    templates: tuple[Template, ...] = Field(
        default=(),
        description="static parts of the catalog; they win over a provider's description",
    )
    alerts: AlertSettings = AlertSettings()
    request_log: StrictBool = Field(
        default=False,
        description="true: one line for each call in the log; else only for what people changed and what went wrong",
    )


def problems(config: ControllerConfig) -> list[tuple[tuple[str | int, ...], str]]:
    """Return what contradicts itself: place and message."""
    found: list[tuple[tuple[str | int, ...], str]] = []
    if config.listen.host not in LOOPBACK and config.tls is None and not config.listen.insecure:
        found.append(
            (
                ("listen", "host"),
                f"{config.listen.host} is not loopback: configure tls, or set listen.insecure: true",
            )
        )
    if config.tls is not None and config.tls.clients and config.tls.client_ca is None:
        found.append((("tls", "clients"), "client certificates need tls.client_ca"))
    if config.leases.minimum > config.leases.maximum:
        found.append((("leases", "minimum"), "is longer than leases.maximum"))
    found += alert_problems(config.alerts)
    for length, place in (
        (config.leases.minimum, ("leases", "minimum")),
        (config.limits.stream_stall, ("limits", "stream_stall")),
        (config.demand_time_to_live, ("demand_time_to_live",)),
        (config.detection, ("detection",)),
    ):
        if length <= timedelta(0):
            found.append((place, "must be above 0"))
    for kind, names in (
        ("shared", [pool.name for pool in config.shared]),
        ("templates", [template.id for template in config.templates]),
    ):
        found += [
            ((kind, i), f"{name} is there twice")
            for i, name in enumerate(names)
            if name in names[:i]
        ]
    return found
