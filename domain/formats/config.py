"""The configuration of a simulation, and later of the daemons: cluster, providers, workload, policy, driver.

Written by people in YAML (``adapters/settings``); field by field in ``docs/reference/configuration.md``.
"""

from collections.abc import Iterator
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictBool, StrictInt

from xce.domain.cluster.host_names import expand
from xce.domain.formats.base import Count, Duration, Format, Name, Need, Time, Total
from xce.domain.formats.lifecycle import LifecycleSettings
from xce.domain.formats.observation import Scope
from xce.domain.formats.policy import Budget, PolicySettings
from xce.domain.formats.provider import ProviderDescription
from xce.domain.formats.simulated_provider import Behaviour
from xce.domain.formats.snapshot import (
    Attribute,
    Group,
    Host,
    HostState,
    Limit,
    MemoryUnit,
    Queue,
    Quota,
    Settings,
)
from xce.domain.formats.workload_rules import CutRule, LicenceRule, ScaleRule


def _pattern(value: str) -> str:
    expand(value)
    return value


class HostGroup(Format):
    """Hosts of the own partition that differ only in their names."""

    name: Annotated[Name, AfterValidator(_pattern)] = Field(
        description="one name, or many: node[1-20], node[2,8-20], n[001-128]"
    )
    attributes: dict[Name, Attribute] = Field(
        default_factory=dict, description='"{name}" in a text stands for the name of the host'
    )
    total: dict[Name, Total] = Field(default_factory=dict)
    rank: StrictInt = Field(
        default=-1,
        description="place in the host order, lower first; then by name. Provisioned hosts have rank 0: "
        "own ones are filled before them",
    )
    state: HostState = HostState.OPEN
    exclusive_to: Name | None = None

    def hosts(self) -> Iterator[Host]:
        """Yield each host of the group."""
        for name in expand(self.name):
            yield Host(
                name=name,
                instance=None,
                idle_since=None,
                available_until=None,
                state=self.state,
                attributes={
                    key: value.replace("{name}", name) if isinstance(value, str) else value
                    for key, value in self.attributes.items()
                },
                total=self.total,
                rank=self.rank,
                exclusive_to=self.exclusive_to,
            )


class SharedPool(Format):
    """A cluster-wide countable resource; elastic if a provider lends more of it."""

    name: Name
    owned: Count
    provider: Name | None = Field(default=None, description="who lends more; null: nobody")
    max_borrow: Count = Field(default=0, description="most that may be borrowed at once")
    step: Annotated[StrictInt, Field(ge=1)] = Field(
        default=1, description="borrowed and returned in multiples of this"
    )
    idle_return_after: Duration = Field(
        default=timedelta(minutes=30), description="what was not needed for so long goes back"
    )
    min_hold: Duration = Field(
        default=timedelta(0),
        description="a grant is kept at least so long; the lender may set a longer time",
    )
    borrow_after: Duration = Field(
        default=timedelta(0), description="demand must last so long before more is borrowed"
    )
    headroom: Count = Field(default=0, description="kept free beyond what is needed")
    settle_time: Duration = Field(
        default=timedelta(minutes=5),
        description="how long after its start a job may check its licences out",
    )
    linger_guard: Duration = Field(
        default=timedelta(0),
        description="without an observer: how long after its end a job may still hold them",
    )
    observer: Name | None = Field(default=None, description="who sees what is really in use")
    observation_ttl: Duration | None = Field(
        default=None, description="an older observation is stale; null: 3min"
    )
    observation_scope: Scope = Field(
        default=Scope.OURS,
        description="ours: the observed number is of our allotment alone; pool: of everybody at the server",
    )
    pool_size: Count | None = Field(
        default=None, description="with observation_scope pool: what everybody together has"
    )
    return_when_blind: StrictBool = Field(
        default=False, description="true: an amount also goes back while the observer does not see"
    )
    drift_alert: Count = Field(
        default=0, description="a difference of booked and observed that is reported; 0: none is"
    )
    drift_alert_after: Duration = Field(
        default=timedelta(minutes=15), description="once it has lasted so long"
    )

    @property
    def time_to_live(self) -> timedelta:
        """Return how old an observation may be: three times the usual interval, where nothing is set."""
        return timedelta(minutes=3) if self.observation_ttl is None else self.observation_ttl

    @property
    def issues_ours(self) -> bool:
        """Return whether what the server issues can be compared with the total."""
        return self.observation_scope is Scope.OURS

    @property
    def elastic(self) -> bool:
        """Return whether more can be borrowed."""
        return self.provider is not None


class ClusterConfig(Format):
    """The own partition, and the rules of the cluster."""

    hosts: tuple[HostGroup, ...] = ()
    shared: tuple[SharedPool, ...] = ()
    queues: tuple[Queue, ...] = ()
    limits: tuple[Limit, ...] = ()
    quotas: tuple[Quota, ...] = ()
    groups: tuple[Group, ...] = ()

    def all_hosts(self) -> tuple[Host, ...]:
        """Return every host of the own partition, group by group."""
        return tuple(host for group in self.hosts for host in group.hosts())


class ProviderConfig(ProviderDescription):
    """A provider: what it says of itself, and for a simulated one what it does."""

    simulation: Behaviour = Behaviour()

    def description(self) -> ProviderDescription:
        """Return what the policy and the log are told: the description without the behaviour."""
        fields: dict[str, Any] = {
            name: getattr(self, name) for name in ProviderDescription.model_fields
        }
        return ProviderDescription(**fields)


class MemoryScope(StrEnum):
    """What the memory column of a trace is the memory of."""

    PROCESSOR = "processor"
    JOB = "job"


class MemoryRule(Format):
    """How the memory asked in a trace is read."""

    use: StrictBool = Field(default=True, description="false: jobs ask for no memory")
    unit: MemoryUnit = MemoryUnit.KIB
    scope: MemoryScope = MemoryScope.PROCESSOR
    default: Need | None = Field(
        default=None, description="per processor, where the trace does not say; null: none is asked"
    )


class WorkloadConfig(Format):
    """How a trace becomes jobs; ``licences``, ``cut`` and ``scale`` hold for every kind of workload."""

    memory: MemoryRule = MemoryRule()
    run_time_unknown: Literal["leave_out", "as_asked"] = Field(
        default="leave_out",
        description="jobs without a run time are left out, or run for the time they asked",
    )
    run_time_zero: Literal["run", "leave_out"] = Field(
        default="run", description="jobs of 0 seconds end in the second they start, or are left out"
    )
    ignored_properties: tuple[Name, ...] = Field(
        default=(), description="properties of requests that are dropped; each is counted"
    )
    host_attribute: Name = Field(
        default="hostname",
        description="attribute that a request for a host by name is compared with",
    )
    licences: tuple[LicenceRule, ...] = ()
    cut: CutRule = CutRule()
    scale: ScaleRule = ScaleRule()


class PolicyConfig(PolicySettings):
    """What the site has set for its policy, and its budgets."""

    budgets: tuple[Budget, ...] = ()

    def zones(self) -> tuple[str, ...]:
        """Return the time zones in which what was spent today and this month has to be known."""
        bound = (
            budget.zone
            for budget in self.budgets
            if budget.max_cost_per_day is not None or budget.max_cost_per_month is not None
        )
        return tuple(sorted(set(bound)))

    def settings(self) -> PolicySettings:
        """Return the settings without the budgets."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in PolicySettings.model_fields}
        return PolicySettings(**fields)


def _some_time(value: timedelta) -> timedelta:
    if value < timedelta(seconds=1):
        raise ValueError(
            "wanted at least 1s: with 0 a simulation would stay at one moment for ever"
        )
    return value


#: How far apart things are that repeat.
Interval = Annotated[Duration, AfterValidator(_some_time)]


class DriverConfig(Format):
    """How virtual time passes."""

    seed: Annotated[StrictInt, Field(ge=0, le=2**53 - 1)] = Field(
        default=1, description="the same seed and input give the same run"
    )
    session_interval: Interval = Field(
        default=timedelta(seconds=30), description="sessions are at least so far apart"
    )
    poll_interval: Interval = Field(
        default=timedelta(seconds=30),
        description="how often providers are asked what became of requests",
    )
    review_interval: Interval = Field(
        default=timedelta(minutes=5),
        description="how soon a round that held something back is repeated",
    )
    stall_limit: Duration = Field(
        default=timedelta(days=7),
        description="when nothing at all has changed for so long, the jobs that still wait are named and the run ends",
    )
    list_interval: Interval | None = Field(
        default=None,
        description="how often providers that can are asked for everything they have; null: only where an outcome is unknown",
    )
    time_zero: Time | None = Field(
        default=None,
        description="time of the trace's second 0; null: the trace's own, else 2000-01-01",
    )


class SimulationConfig(Format):
    """Everything ``xce sim swf`` needs besides the trace."""

    cluster: ClusterConfig
    providers: tuple[ProviderConfig, ...] = ()
    workload: WorkloadConfig = WorkloadConfig()
    session: Settings = Settings()
    policy: PolicyConfig = PolicyConfig()
    lifecycle: LifecycleSettings = LifecycleSettings()
    driver: DriverConfig = DriverConfig()
