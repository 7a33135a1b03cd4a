"""A scenario: a site, its work, what is done to it while it runs, and what must come of it. Written by people in YAML."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictBool, StrictInt

from xce.domain.cluster.host_names import expand
from xce.domain.formats.base import Count, Duration, Format, Name, Time
from xce.domain.formats.config import (
    ClusterConfig,
    DriverConfig,
    Interval,
    PolicyConfig,
    ProviderConfig,
    SimulationConfig,
    WorkloadConfig,
)
from xce.domain.formats.expectations import Expectation
from xce.domain.formats.interventions import Intervention
from xce.domain.formats.licence_server import LicenceServerConfig
from xce.domain.formats.lifecycle import LifecycleSettings
from xce.domain.formats.simulated_provider import Delay, Share
from xce.domain.formats.simulation import SimulationReport
from xce.domain.formats.snapshot import Settings


def _pattern(value: str) -> str:
    expand(value)
    return value


class ScenarioJobs(Format):
    """Jobs that differ only in their ids and in when they are submitted."""

    id: Annotated[Name, AfterValidator(_pattern)] = Field(
        description="one id, or many: j[1-12], in this order"
    )
    submit: Duration = Field(default=timedelta(0), description="of the first, after the start")
    every: Duration = Field(
        default=timedelta(0), description="how much later each of the others is submitted"
    )
    run_time: Delay = Field(description="how long it runs in truth; no session is told")
    tasks: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = 1
    resreq: str = Field("", max_length=65536)
    exclusive: StrictBool = False
    user: Name = "nobody"
    project: Name = "default"
    queue: Name = "normal"
    priority: StrictInt = 0
    run_limit: Duration | None = Field(default=None, description="what the user asked for")
    held: StrictBool = False
    waits_for: tuple[Name, ...] = Field(default=(), description="ids that must have ended")

    def ids(self) -> Iterator[str]:
        """Yield the ids."""
        return iter(expand(self.id))


class JobFailures(Format):
    """A share of the attempts of all jobs fails on the way."""

    share: Share = Field(description="of the attempts")
    tries: Annotated[StrictInt, Field(ge=1, le=100)] = Field(
        default=3, description="attempts of a job; when the last of them fails, it is given up"
    )


class ScenarioWorkload(Format):
    """The work: any of inline jobs, a file, and a generator; their jobs come together."""

    jobs: tuple[ScenarioJobs, ...] = ()
    file: str | None = Field(
        default=None,
        description="a trace (SWF, plain or gzip) or xce.workload/1, from the scenario's folder",
    )
    jobs_max: Annotated[StrictInt, Field(ge=1)] | None = Field(
        default=None, description="only the first so many records of the file"
    )
    generator: Literal["eda-day"] | None = Field(
        default=None, description="made from the seed: a day of a small chip-design site"
    )
    rules: WorkloadConfig = Field(
        default=WorkloadConfig(), description="how the file becomes jobs, as in a configuration"
    )
    failures: JobFailures | None = Field(
        default=None, description="null: every job runs to its end"
    )


class Provisioners(Format):
    """Several provisioners, of which one leads; when its lease has run out another one does."""

    names: Annotated[tuple[Name, ...], Field(min_length=2, max_length=16)] = Field(
        description="at least two; the first one begins"
    )
    lease_term: Interval = Field(
        default=timedelta(seconds=30),
        description="how long a lease lasts without a renewal; it is renewed three times as often",
    )


class Scenario(Format):
    """A scenario file."""

    name: Name
    about: str = Field(default="", description="for people: what it shows")
    start: Time = Field(default=datetime(2026, 3, 1, 10, tzinfo=UTC), description="of the time 0")
    until: Duration | None = Field(
        default=None, description="when the run ends; null: when nothing is left to do"
    )
    cluster: ClusterConfig = ClusterConfig()
    providers: tuple[ProviderConfig, ...] = ()
    servers: tuple[LicenceServerConfig, ...] = ()
    workload: ScenarioWorkload = ScenarioWorkload()
    session: Settings = Settings()
    policy: PolicyConfig = PolicyConfig()
    lifecycle: LifecycleSettings = LifecycleSettings()
    driver: DriverConfig = DriverConfig()
    provisioners: Provisioners | None = Field(
        default=None, description="null: there is one, and it always leads"
    )
    timeline: tuple[Intervention, ...] = Field(
        default=(), description="what is done to the site, in any order"
    )
    expect: tuple[Expectation, ...] = ()
    truths_checked: StrictBool = Field(
        default=True, description="the invariants of the log, and that the provider's truth is ours"
    )

    @property
    def end(self) -> datetime | None:
        """When the run ends; None: when nothing is left to do."""
        return None if self.until is None else self.start + self.until

    def config(self, seed: int | None = None) -> SimulationConfig:
        """Return the configuration of the simulation; ``seed`` replaces that of the file."""
        driver = self.driver
        if seed is not None:
            driver = driver.model_copy(update={"seed": seed})
        return SimulationConfig(
            cluster=self.cluster,
            providers=self.providers,
            workload=self.workload.rules,
            session=self.session,
            policy=self.policy,
            lifecycle=self.lifecycle,
            driver=driver,
        )


class Moment(Format):
    """One thing that happened, in words."""

    at: Time
    position: Count | None = Field(default=None, description="of an event of the log")
    what: str


class Verdict(Format):
    """What became of one expectation."""

    expectation: str
    why: str | None = None
    passed: StrictBool
    found: str = ""
    failed_at: Time | None = None
    around: tuple[Moment, ...] = Field(
        default=(), description="of one that failed: what happened before and after"
    )


class ScenarioResult(Format):
    """What became of a scenario."""

    format: Literal["xce.scenario-result/1"] = "xce.scenario-result/1"
    name: Name
    passed: StrictBool
    verdicts: tuple[Verdict, ...]
    report: SimulationReport
