"""The output of a scheduling session: one JSON document, ``xce.session/1``.

Lists are in job order, else by name; the same snapshot gives the same bytes.
"""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from xce.domain.formats.base import Count, Format, Name, Time


class ReasonKind(StrEnum):
    """Why a job pends; the first that holds, in this order, is its main reason."""

    HELD = "held"
    DEPENDENCY = "dependency"
    UNIT_UNKNOWN = "unit_unknown"
    LIMIT = "limit"
    HOST_SELECTION = "host_selection"
    NO_RESOURCE = "no_resource"
    PRIORITY = "priority"


class Reason(Format):
    """One pend reason.

    ``hosts`` are the hosts it holds on; null where it holds for the cluster (shared resources, limits, holds).
    """

    kind: ReasonKind
    resource: Name | None = Field(
        default=None, description="what is short, or whose unit is unknown"
    )
    hosts: tuple[Name, ...] | None = None
    limit: Name | None = Field(default=None, description="the limit or quota that stops the job")
    detail: str | None = Field(default=None, description="for people: amounts, what was wanted")


class ReasonSet(Format):
    """The complete reasons of all jobs that refer to ``id``."""

    id: Count
    reasons: tuple[Reason, ...]


class PlacedOn(Format):
    """Tasks of a job on one host, and what they take of it."""

    name: Name
    tasks: Count
    uses: dict[Name, Count]


class SharedAmount(Format):
    """An amount of a shared resource that a job takes."""

    name: Name
    amount: Count


class Allocation(Format):
    """A job that starts."""

    job: Name
    hosts: tuple[PlacedOn, ...]
    shared: tuple[SharedAmount, ...] = ()


class Provisioning(Format):
    """What a counted job waits for: new hosts by template, new counts by resource, supply in flight by id."""

    templates: dict[Name, Count] = Field(default_factory=dict)
    countable: dict[Name, Count] = Field(default_factory=dict)
    in_flight: tuple[Name, ...] = Field(default=(), description="ids of hosts, names of counts")


class Pending(Format):
    """A job that waits."""

    job: Name
    reason: ReasonKind
    reasons: Count | None = Field(
        default=None, description="id of its reason set; null when expanded"
    )
    provisioning: Provisioning | None = None
    expanded: tuple[Reason, ...] | None = Field(
        default=None, description="every reason, with --expand"
    )


class JobHosts(Format):
    """A job's part in the demand for a template. ``order``: its place among the counted jobs, from 1."""

    job: Name
    order: Count
    hosts: Count


class JobAmount(Format):
    """A job's part in the demand for a countable resource."""

    job: Name
    order: Count
    amount: Count


class HostDemand(Format):
    """Hosts wanted of one template."""

    template: Name
    count: Count
    jobs: tuple[JobHosts, ...]


class CountDemand(Format):
    """An amount wanted: ``wanted`` is gross, ``amount`` is net of what is in flight."""

    name: Name
    amount: Count
    wanted: Count
    jobs: tuple[JobAmount, ...]


class JobWhy(Format):
    """A job and why it is listed."""

    job: Name
    why: str


class Tightness(StrEnum):
    """Whether it was proved that no host and no unit of the demand is spare."""

    PROVED = "proved"
    BUDGET = "budget"


class Demand(Format):
    """What the counted jobs need beyond what exists and is in flight."""

    hosts: tuple[HostDemand, ...] = ()
    order: tuple[tuple[Name, Count], ...] = Field(
        default=(), description="runs of hosts, in the order they were opened"
    )
    tight: Tightness = Tightness.PROVED
    countable: tuple[CountDemand, ...] = ()
    impossible: tuple[JobWhy, ...] = ()
    not_counted: tuple[JobWhy, ...] = ()
    not_examined: tuple[Name, ...] = Field(default=(), description="jobs past the cap")
    projects: dict[Name, tuple[Name, ...]] = Field(
        default_factory=dict,
        description="by project, the counted jobs, in job order; jobs of the project `default` are not listed",
    )


class IdleHost(Format):
    """A provisioned host without a job for the idle time."""

    instance: Name
    host: Name
    idle_since: Time


class IdleCount(Format):
    """A borrowed amount unused for the whole idle window."""

    name: Name
    amount: Count


class Idle(Format):
    """What was obtained and could go back."""

    hosts: tuple[IdleHost, ...] = ()
    counts: tuple[IdleCount, ...] = ()
    unused: tuple[Name, ...] | None = Field(
        default=None,
        description="instances of all open hosts without a job, for however short a time; null: unknown",
    )


class SessionResult(Format):
    """Everything a session says."""

    format: Literal["xce.session/1"] = "xce.session/1"
    position: Count
    allocations: tuple[Allocation, ...] = ()
    reason_sets: tuple[ReasonSet, ...] = ()
    pending: tuple[Pending, ...] = ()
    demand: Demand = Demand()
    idle: Idle = Idle()
    warnings: tuple[str, ...] = ()
    trace: tuple[str, ...] | None = Field(default=None, description="with --trace: one line a step")
