"""The configuration of the live driver, ``xce scheduler``; written by people in YAML, field by field in ``docs/reference/scheduler.md``."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field, StrictBool

from xce.domain.formats.base import Duration, Format, Name
from xce.domain.formats.controller_config import Listen


class ControllerAccess(Format):
    """How to reach the controller."""

    addresses: Annotated[tuple[Name, ...], Field(min_length=1, max_length=16)] = Field(
        description="of all controllers on one log; whichever is the primary answers"
    )
    token_file: Name | None = Field(
        default=None,
        description="file with the token; null: the environment variable XCE_TOKEN, or the certificate",
    )
    ca: Name | None = Field(default=None, description="who signed the controllers' certificates")
    certificate: Name | None = Field(default=None, description="of this daemon")
    key: Name | None = Field(default=None, description="of the certificate")


class WatchedSource(Format):
    """Snapshot files that another scheduler writes, best under another name and then renamed."""

    path: Name = Field(
        description="a file, or a folder whose newest .json file counts; relative names start at the configuration's folder"
    )
    orders: Name | None = Field(
        default=None,
        description="file that says what the scheduler is to do (xce.scheduler-orders/1); null: none is written",
    )
    poll: Duration = Field(default=timedelta(seconds=1), description="how often to look")


class PostedSource(Format):
    """Snapshots that another scheduler posts to ``PUT /v1/snapshot``; what to do it reads from ``GET /v1/orders``."""

    listen: Listen = Listen(port=8471)
    tokens: Name = Field(
        description="file with the digests of tokens, made by xce controller token; the role scheduler posts, every role reads"
    )
    size_mib: Annotated[int, Field(ge=1, le=1024)] = Field(
        default=64, description="largest snapshot"
    )


class FakeSource(Format):
    """The small batch system that comes along, for trying out: its whole state is one file."""

    path: Name = Field(description="the file; made if it does not exist")
    joins: StrictBool = Field(
        default=True, description="true: hosts that are expected boot by themselves"
    )
    boot_time: Duration = Field(
        default=timedelta(seconds=5), description="from the grant to the join"
    )


class SlurmSource(Format):
    """A Slurm, 22.05 or newer, read by its commands, or by slurmrestd where that is named."""

    conf: Name | None = Field(
        default=None, description="slurm.conf of the cluster; null: as the commands find it"
    )
    commands: Name | None = Field(
        default=None, description="folder of squeue, sinfo, scontrol, sacctmgr; null: as PATH says"
    )
    rest: Name | None = Field(
        default=None,
        description="slurmrestd: unix:/path/of/socket or http://host:port; null: the commands are used",
    )
    rest_token_file: Name | None = Field(
        default=None, description="file with the JWT for slurmrestd; read at each call"
    )
    json_output: StrictBool = Field(
        default=True, description="false: only the text forms of the commands are read"
    )
    timeout: Duration = Field(default=timedelta(seconds=30), description="of one command")
    limits_every: Duration = Field(
        default=timedelta(minutes=1),
        description="how often limits of slurmdbd are read anew; while it is away they stay as they were",
    )
    observe_only: StrictBool = Field(
        default=False,
        description="true: nothing is written to Slurm; the log says what would have been",
    )
    idle_host_after: Duration = Field(
        default=timedelta(hours=1),
        description="a provisioned host without a job for so long may go back",
    )
    differences_after: Duration = Field(
        default=timedelta(minutes=1),
        description="a job that our model would have started for so long, and Slurm does not, is reported",
    )


class PluggedSource(Format):
    """A source of another package, by its entry point in the group xce.sources."""

    name: Name
    options: dict[Name, str] = Field(default_factory=dict)


class SourceChoice(Format):
    """Where views come from: exactly one of these."""

    watched: WatchedSource | None = None
    posted: PostedSource | None = None
    fake: FakeSource | None = None
    slurm: SlurmSource | None = None
    plugged: PluggedSource | None = None


class SchedulerConfig(Format):
    """Everything ``xce scheduler`` needs to know."""

    controller: ControllerAccess
    source: SourceChoice
    session_interval: Duration = Field(
        default=timedelta(seconds=10), description="between sessions, when nothing new comes"
    )
    session_spacing: Duration = Field(
        default=timedelta(seconds=1), description="least time between sessions"
    )
    view_time_to_live: Duration = Field(
        default=timedelta(minutes=5),
        description="on an older view no session is run: demand becomes unknown",
    )
    record: Name | None = Field(
        default=None, description="file of a recording; null: nothing is recorded"
    )
    trace: StrictBool = Field(default=False, description="true: sessions say each of their steps")


def problems(config: SchedulerConfig) -> list[tuple[tuple[str | int, ...], str]]:
    """Return what contradicts itself: place and message."""
    found: list[tuple[tuple[str | int, ...], str]] = []
    chosen = [
        name for name in SourceChoice.model_fields if getattr(config.source, name) is not None
    ]
    if len(chosen) != 1:
        wanted = ", ".join(SourceChoice.model_fields)
        found.append((("source",), f"wanted exactly one of {wanted}, found {len(chosen)}"))
    if (config.controller.certificate is None) != (config.controller.key is None):
        found.append((("controller",), "certificate and key go together"))
    for name in ("session_interval", "session_spacing", "view_time_to_live"):
        if getattr(config, name) <= timedelta(0):
            found.append(((name,), "must be above 0"))
    if config.source.watched is not None and config.source.watched.poll <= timedelta(0):
        found.append((("source", "watched", "poll"), "must be above 0"))
    slurm = config.source.slurm
    if slurm is not None and slurm.timeout <= timedelta(0):
        found.append((("source", "slurm", "timeout"), "must be above 0"))
    return found
