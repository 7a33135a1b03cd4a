"""The state of one session as plain lists: what the rules of docs/reference/session.md speak of.

Nothing here is fast. What is free is added up anew each time from the jobs that hold something, so that no
two places can disagree.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from xce.domain.cluster.requirement import Requirement
from xce.domain.cluster.resreq import parse
from xce.domain.formats.snapshot import (
    Attribute,
    HostState,
    Limit,
    PendingJob,
    Quota,
    RunningJob,
    Settings,
    Shared,
    Snapshot,
    Template,
)
from xce.domain.values import natural_key

#: Before all times that a job can have.
LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class PlainHost:
    """A host of the host order. ``key`` is unique; ``named`` is the name that a list of a limit can mean."""

    key: str
    named: str | None
    attributes: Mapping[str, Attribute]
    totals: Mapping[str, int]
    is_open: bool = True
    exclusive_to: str | None = None
    available_until: datetime | None = None
    kind: Literal["real", "in_flight", "new"] = "real"
    template: str | None = None


@dataclass(frozen=True)
class Part:
    """What a job holds on one host."""

    host: str
    tasks: int
    uses: Mapping[str, int]


@dataclass(frozen=True)
class Holding:
    """A job that holds resources: running, started by this session, or being tried."""

    id: str
    user: str
    project: str
    queue: str
    array: str | None
    parts: tuple[Part, ...] = ()
    shared: Mapping[str, int] = field(default_factory=dict[str, int])
    exclusive: bool = False

    def on(self, host: str, resource: str) -> int:
        """Return what the job takes of a consumable on one host."""
        return sum(part.uses.get(resource, 0) for part in self.parts if part.host == host)

    def hosts(self) -> list[str]:
        """Return the hosts it is on, each once, in the order they were claimed."""
        return list(dict.fromkeys(part.host for part in self.parts))

    def with_shared(self, more: Mapping[str, int]) -> "Holding":
        """Return the job with more of shared resources."""
        return replace(self, shared=added(self.shared, more))

    def claim(self, part: Part, shared: Mapping[str, int]) -> "Holding":
        """Return the job with one more claim."""
        return replace(self, parts=(*self.parts, part), shared=added(self.shared, shared))


@dataclass(frozen=True)
class PlainJob:
    """A pending job with its requirement read."""

    pending: PendingJob
    requirement: Requirement

    @property
    def id(self) -> str:
        return self.pending.id

    @property
    def least(self) -> int:
        return self.pending.tasks.min

    @property
    def most(self) -> int:
        return self.pending.tasks.max or self.pending.tasks.min

    @property
    def array(self) -> str | None:
        return self.pending.array.id if self.pending.array else None

    @property
    def equality(self) -> tuple[object, ...]:
        """Return what must be the same in two jobs for them to be equal (section 4)."""
        job = self.pending
        return (
            job.user, job.project, job.queue, self.array, self.least, self.most,
            self.requirement, job.exclusive, job.run_limit, job.allocator,
        )  # fmt: skip

    def nothing_yet(self, *, exclusive: bool) -> Holding:
        """Return the job as it is tried, before its first claim."""
        job = self.pending
        return Holding(job.id, job.user, job.project, job.queue, self.array, exclusive=exclusive)


@dataclass(frozen=True)
class Pool:
    """A shared resource: ``elsewhere`` None is unknown."""

    total: int
    elsewhere: int | None


@dataclass(frozen=True)
class World:
    """All that a decision depends on, at one moment of the session."""

    now: datetime
    hosts: tuple[PlainHost, ...]
    pools: Mapping[str, Pool]
    limits: tuple[Limit, ...]
    guarantees: tuple[Quota, ...]
    groups: Mapping[str, tuple[str, ...]]
    holdings: tuple[Holding, ...]
    waiting: tuple[PlainJob, ...]
    settings: Settings

    def host(self, key: str) -> PlainHost:
        return next(host for host in self.hosts if host.key == key)

    def free(self, host: PlainHost, resource: str) -> int:
        """Return what is free of a consumable on a host; a resource that it does not list is 0 there."""
        used = sum(holding.on(host.key, resource) for holding in self.holdings)
        return max(0, host.totals.get(resource, 0) - used)

    def jobs_on(self, host: PlainHost) -> list[Holding]:
        return [h for h in self.holdings if any(part.host == host.key for part in h.parts)]

    def free_shared(self, name: str) -> int:
        """Return what is free of a shared resource; unknown is enough for nothing but 0."""
        return max(0, self.balance(name))

    def balance(self, name: str) -> int:
        """Return what is left of a shared resource, below 0 where more is used than there is."""
        pool = self.pools[name]
        if pool.elsewhere is None:
            return 0
        return pool.total - pool.elsewhere - sum(h.shared.get(name, 0) for h in self.holdings)

    def start(self, job: PlainJob, holding: Holding) -> "World":
        """Return the world in which the job holds what it was given and waits no longer."""
        return replace(
            self,
            holdings=(*self.holdings, holding),
            waiting=tuple(other for other in self.waiting if other.id != job.id),
        )

    def with_hosts(self, hosts: Iterable[PlainHost]) -> "World":
        """Return the world with hosts added at the end of the host order."""
        return replace(self, hosts=(*self.hosts, *hosts))

    def with_shared(self, more: Mapping[str, int]) -> "World":
        """Return the world with totals of shared resources raised (or, below 0, lowered)."""
        pools = {
            name: replace(pool, total=pool.total + more.get(name, 0))
            for name, pool in self.pools.items()
        }
        return replace(self, pools=pools)


def added(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """Return the sum of two amounts by name."""
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def world_of(snapshot: Snapshot) -> World:
    """Return the world at the start of the session, all lists in the orders of section 1."""
    running_ids = {job.id for job in snapshot.running}
    hosts = sorted(snapshot.hosts, key=lambda host: (host.rank, natural_key(host.name)))
    return World(
        now=snapshot.now,
        hosts=tuple(
            PlainHost(
                key=host.name,
                named=host.name,
                attributes=host.attributes,
                totals=host.total,
                is_open=host.state is HostState.OPEN,
                exclusive_to=host.exclusive_to,
                available_until=host.available_until,
            )
            for host in hosts
        ),
        pools={shared.name: _pool(shared) for shared in snapshot.shared},
        limits=(*snapshot.limits, *_array_limits(snapshot), *_maximums(snapshot)),
        guarantees=tuple(quota for quota in snapshot.quotas if quota.guaranteed > 0),
        groups={group.name: group.users for group in snapshot.groups},
        holdings=tuple(_running(job) for job in snapshot.running),
        waiting=tuple(
            PlainJob(job, parse(job.resreq))
            for job in in_job_order(snapshot)
            if job.id not in running_ids  # one id in running and pending: running wins (F02)
        ),
        settings=snapshot.settings,
    )


def in_job_order(snapshot: Snapshot) -> list[PendingJob]:
    """Return the pending jobs: queue priority, job priority, submit time, id."""
    priority = {queue.name: queue.priority for queue in snapshot.queues}
    return sorted(
        snapshot.pending,
        key=lambda job: (
            -priority.get(job.queue, 0),
            -job.priority,
            job.submitted or LONG_AGO,
            natural_key(job.id),
        ),
    )


def virtual_host(
    key: str, template: Template, kind: Literal["in_flight", "new"], named: str | None
) -> PlainHost:
    """Return a host that does not exist yet, as its template promises it."""
    return PlainHost(
        key=key,
        named=named,
        attributes=template.attributes,
        totals=template.provides,
        kind=kind,
        template=template.id,
    )


def waited(job: PendingJob, now: datetime) -> timedelta:
    """Return how long a job has waited; one without a time longer than any other."""
    return now - (job.submitted or LONG_AGO)


def _pool(shared: Shared) -> Pool:
    return Pool(shared.total, shared.used_elsewhere)


def _running(job: RunningJob) -> Holding:
    return Holding(
        job.id,
        job.user,
        job.project,
        job.queue,
        job.array.id if job.array else None,
        tuple(Part(use.name, use.tasks, use.uses) for use in job.hosts),
        job.shared,
        job.exclusive,
    )


def _array_limits(snapshot: Snapshot) -> list[Limit]:
    stated: dict[str, int] = {}
    elements = [job.array for job in snapshot.running] + [job.array for job in snapshot.pending]
    for element in elements:
        if element is not None and element.limit is not None:
            stated[element.id] = min(stated.get(element.id, element.limit), element.limit)
    return [
        Limit(name=f"array {name}", resource="jobs", amount=amount, arrays=(name,))
        for name, amount in sorted(stated.items())
    ]


def _maximums(snapshot: Snapshot) -> list[Limit]:
    return [
        Limit(name=quota.name, resource=quota.resource, amount=quota.maximum, groups=(quota.group,))
        for quota in snapshot.quotas
        if quota.maximum is not None
    ]
