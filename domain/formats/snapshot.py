"""The input of a scheduling session: one JSON document, ``xce.snapshot/1``.

What is in use on hosts, of shared resources and of limits follows from ``running``; nobody writes it twice.
Unknown is null, and neither zero nor free: see ``Shared.used_elsewhere`` and ``Template.price_per_hour``.
"""

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Final, Literal, Self, cast

from pydantic import Field, PlainSerializer, PlainValidator, StrictBool, WithJsonSchema

from xce.domain.errors import InputError
from xce.domain.formats.base import (
    Count,
    Duration,
    Format,
    Money,
    Name,
    Need,
    Time,
    Total,
    Whole,
)
from xce.domain.formats.snapshot_check import contradictions
from xce.domain.values import AMOUNT_MAX


def _attribute(value: object) -> bool | int | Decimal | str:
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int | float | Decimal):
        number = Decimal(str(value))
        if not number.is_finite() or abs(number) > AMOUNT_MAX:
            raise ValueError(f"{value!r} is out of range; wanted a number of at most {AMOUNT_MAX}")
        if number == int(number):
            return int(number)
        if Decimal(str(float(number))) != number:
            raise ValueError(f"{value!r} has more digits than a JSON number keeps")
        return number
    raise ValueError(f"{value!r} is not an attribute; wanted a text, a number, true or false")


def _attribute_json(value: bool | int | Decimal | str) -> bool | int | float | str:
    return float(value) if isinstance(value, Decimal) else value


#: The value of a host attribute: a text, a flag, or an exact number (whole ones are integers).
Attribute = Annotated[
    bool | int | Decimal | str,
    PlainValidator(_attribute),
    PlainSerializer(_attribute_json, when_used="json"),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "boolean"}, {"type": "number"}]}),
]

#: The project of a job that names none.
DEFAULT_PROJECT: Final = "default"


class HostState(StrEnum):
    """Whether a host takes work: only an open one does; its running jobs go on in any state but down."""

    OPEN = "open"
    CLOSED = "closed"
    DRAINING = "draining"
    DOWN = "down"


class OrderMode(StrEnum):
    """What a job that cannot start does to the jobs behind it."""

    SKIP = "skip"
    STRICT = "strict"


class Host(Format):
    """A machine of the cluster."""

    name: Name
    state: HostState = HostState.OPEN
    attributes: dict[Name, Attribute] = Field(default_factory=dict)
    total: dict[Name, Total] = Field(default_factory=dict)
    instance: Name | None = Field(
        default=None, description="id of the instance, for a host that a provider created"
    )
    idle_since: Time | None = Field(
        default=None, description="since when it has had no job; null: not known or not idle"
    )
    available_until: Time | None = Field(
        default=None, description="when it must go; jobs that may run longer cannot use it"
    )
    rank: Whole = Field(default=0, description="place in the host order, lower first; then by name")
    booted_at: Time | None = None
    exclusive_to: Name | None = Field(
        default=None, description="the only user whose jobs may use this host"
    )


class Shared(Format):
    """A cluster-wide countable resource, such as the tokens of a licence feature."""

    name: Name
    total: Count
    used_elsewhere: Count | None = Field(
        default=0, description="used by no job of ours; null: unknown"
    )
    owned: Count | None = Field(
        default=None, description="our own part of the total; null: all of it"
    )
    borrowed: Count = Field(default=0, description="the lent part of the total")
    peak_need: Count | None = Field(
        default=None, description="largest need within the idle window; null: unknown"
    )


class Queue(Format):
    """A queue: its priority, and how long jobs must wait before their need counts as demand."""

    name: Name
    priority: Whole = 0
    demand_threshold: tuple[tuple[Count, Count], ...] = Field(
        default=(),
        description="pairs [jobs, minutes]: any pair that holds raises demand; none: at once",
    )


class LimitScope(StrEnum):
    """What a limit counts separately for each value of."""

    USER = "user"
    PROJECT = "project"
    QUEUE = "queue"
    HOST = "host"
    ARRAY = "array"
    GROUP = "group"


def _scopes(value: object) -> LimitScope | tuple[LimitScope, ...] | None:
    try:
        if isinstance(value, list | tuple):
            return tuple(LimitScope(scope) for scope in cast(Sequence[str], value))
        return None if value is None else LimitScope(cast(str, value))
    except ValueError:
        wanted = ", ".join(LimitScope)
        raise ValueError(f"{value!r} is not one of {wanted}, or a list of them") from None


def _scopes_json(value: LimitScope | tuple[LimitScope, ...] | None) -> list[str] | str | None:
    return [scope.value for scope in value] if isinstance(value, tuple) else value


#: What a limit counts separately for; a plain validator, so that a mistake is told once and not for each form.
Scopes = Annotated[
    LimitScope | tuple[LimitScope, ...] | None,
    PlainValidator(_scopes, json_schema_input_type=LimitScope | tuple[LimitScope, ...] | None),
    PlainSerializer(_scopes_json, when_used="json"),
]


class Limit(Format):
    """At most ``amount`` of ``resource`` for the running jobs that match; separately for each value of ``per``."""

    name: Name
    resource: Name = Field(description="jobs, hosts, slots, a host consumable or a shared resource")
    amount: Total
    users: tuple[Name, ...] | None = Field(default=None, description="null: all users")
    groups: tuple[Name, ...] | None = Field(
        default=None, description="names of entries in groups; null: no condition"
    )
    projects: tuple[Name, ...] | None = None
    queues: tuple[Name, ...] | None = None
    hosts: tuple[Name, ...] | None = Field(
        default=None, description="counts only what is used on these hosts"
    )
    arrays: tuple[Name, ...] | None = None
    per: Scopes = None


class Group(Format):
    """A named set of users."""

    name: Name
    users: tuple[Name, ...]


class Quota(Format):
    """What a group is guaranteed of a resource, and the most it may use."""

    name: Name
    group: Name
    resource: Name
    guaranteed: Total = 0
    maximum: Total | None = None


class ArrayElement(Format):
    """Membership in a job array."""

    id: Name
    index: Count
    limit: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="how many elements may run at once"
    )


class HostUse(Format):
    """What one job holds on one host."""

    name: Name
    tasks: Count = 1
    uses: dict[Name, Need] = Field(default_factory=dict)


class RunningJob(Format):
    """A job that has resources."""

    id: Name
    user: Name = "nobody"
    project: Name = DEFAULT_PROJECT
    queue: Name = "normal"
    started: Time | None = None
    hosts: tuple[HostUse, ...] = ()
    shared: dict[Name, Need] = Field(default_factory=dict)
    exclusive: StrictBool = False
    run_limit: Duration | None = None
    array: ArrayElement | None = None


class Tasks(Format):
    """How many tasks a job has: all that fit between min and max start, demand is for min."""

    min: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    max: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, description="null: the same as min"
    )


class PendingJob(Format):
    """A job that waits."""

    id: Name
    user: Name = "nobody"
    project: Name = DEFAULT_PROJECT
    queue: Name = "normal"
    priority: Whole = 0
    submitted: Time | None = Field(
        default=None, description="null: before all jobs that have a time"
    )
    tasks: Tasks = Tasks()
    resreq: str = Field("", max_length=65536)
    exclusive: StrictBool = Field(
        default=False, description="takes whole hosts, and only empty ones"
    )
    held: StrictBool = False
    waits_for: tuple[Name, ...] = Field(
        default=(), description="ids that must have ended; one that is not here has"
    )
    provision: StrictBool = Field(default=True, description="false: never counts as demand")
    run_limit: Duration | None = None
    array: ArrayElement | None = None
    allocator: Name | None = Field(
        default=None,
        description="an installed allocator that makes its plans; null: a built-in one",
    )


class Capacity(Format):
    """A bound on hosts that templates may share, such as a provider's on all its hosts."""

    name: Name
    room: Count = Field(
        description="how many more of all templates together, beyond what is in flight"
    )


class Draw(Format):
    """One place that hosts of a template come from."""

    capacity: Name | None = Field(
        default=None, description="name of the capacity it takes from; null: none"
    )
    most: Count = Field(description="how many more of this template, the capacity aside")


class Template(Format):
    """A kind of host that can be created."""

    id: Name
    attributes: dict[Name, Attribute] = Field(default_factory=dict)
    provides: dict[Name, Total] = Field(default_factory=dict)
    allowed: Count = Field(default=0, description="how many more, beyond what is in flight")
    priority: Whole = Field(default=0, description="higher first")
    price_per_hour: Money | None = Field(
        default=None, description="null: unknown, placed after all priced templates"
    )
    paused_until: Time | None = None
    paused_why: str | None = None
    lead_time: Duration | None = Field(default=None, description="from asking to joined, typically")
    draws: tuple[Draw, ...] = Field(
        default=(),
        description="where its hosts come from, the first with room first; none: no capacity bounds it",
    )


class Countable(Format):
    """A shared resource of which more can be obtained."""

    name: Name
    headroom: Count | None = Field(
        description="how much more, beyond what is in flight; null: unknown"
    )
    price_per_hour: Money | None = None


class InFlightHost(Format):
    """A host that was asked for and has not joined."""

    id: Name
    template: Name
    expected_name: Name | None = None
    ready_at: Time | None = None


class InFlightCount(Format):
    """An amount that was asked for and not yet granted."""

    name: Name
    amount: Count


class InFlight(Format):
    """Supply on its way, counted before any new one is asked for."""

    hosts: tuple[InFlightHost, ...] = ()
    counts: tuple[InFlightCount, ...] = ()


class Catalog(Format):
    """What could be obtained, and what is on its way."""

    templates: tuple[Template, ...] = ()
    countable: tuple[Countable, ...] = ()
    in_flight: InFlight = InFlight()
    capacities: tuple[Capacity, ...] = Field(
        default=(), description="what templates draw on, several of them perhaps on the same"
    )


class MemoryUnit(StrEnum):
    """Unit of a bare number in a resource requirement."""

    B = "B"
    KIB = "KiB"
    MIB = "MiB"
    GIB = "GiB"
    TIB = "TiB"


class Settings(Format):
    """What the site has set for its sessions."""

    order: OrderMode = OrderMode.SKIP
    idle_host_after: Duration = timedelta(hours=1)
    catalog_pass_cap: Count = Field(
        default=100_000, description="jobs that the catalog pass examines; those past it are named"
    )
    tightness_budget: Count = Field(
        default=200_000, description="placements spent to prove that no host of the demand is spare"
    )
    units: dict[Name, MemoryUnit | None] = Field(
        default_factory=dict,
        description="unit of a bare number of a resource in resreq, by resource; null: it could not be read. "
        "Default: mem is MiB, all others have none",
    )


class Snapshot(Format):
    """The immutable input of a session, taken at one log position."""

    format: Literal["xce.snapshot/1"]
    now: Time
    position: Count = 0
    hosts: tuple[Host, ...] = ()
    shared: tuple[Shared, ...] = ()
    queues: tuple[Queue, ...] = ()
    limits: tuple[Limit, ...] = ()
    quotas: tuple[Quota, ...] = ()
    groups: tuple[Group, ...] = ()
    running: tuple[RunningJob, ...] = ()
    pending: tuple[PendingJob, ...] = ()
    catalog: Catalog = Catalog()
    settings: Settings = Settings()

    @classmethod
    def from_json(cls, text: str | bytes, source: str = "<text>") -> Self:
        """Return the snapshot of a JSON document, checked as a whole.

        Raises:
            InputError: not JSON, not this format, or it contradicts itself; every problem with its path.
        """
        snapshot = super().from_json(text, source)
        if problems := list(contradictions(snapshot)):
            raise InputError(source, problems)
        return snapshot
