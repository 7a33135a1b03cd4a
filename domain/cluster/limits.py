"""Limits, quotas and shared resources as meters: what each counts, and what is left of it.

A *rule* is a limit of the snapshot, the limit of a job array, or the maximum of a quota. A *meter* is what a
rule counts for one value of its ``per``, or the free amount of a shared resource. Most meters count amounts
that do not depend on where a job is placed: what is left of them is one number. The others are *placed*:
their rule has a list of hosts, counts each host for itself, or counts hosts.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Final

from xce.domain.formats.snapshot import Group, LimitScope, PendingJob, Quota, RunningJob, Snapshot

JOBS: Final = "jobs"
HOSTS: Final = "hosts"

#: In place of a host, for what a placed meter counts on all its hosts together.
TOGETHER: Final = -1

#: What a job takes on a host: place of the host, amounts by resource.
Share = tuple[int, Mapping[str, int]]

_NO_HOSTS: Final[frozenset[int]] = frozenset()


class Rule:
    """A limit, compiled: whom it counts, what, and separately for what."""

    __slots__ = (
        "amount", "arrays", "groups", "hosts", "name", "per_host", "placed", "projects", "queues", "resource",
        "scopes", "users",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        resource: str,
        amount: int,
        *,
        users: Iterable[str] | None = None,
        groups: Iterable[str] | None = None,
        projects: Iterable[str] | None = None,
        queues: Iterable[str] | None = None,
        arrays: Iterable[str] | None = None,
        hosts: Iterable[str] | None = None,
        per: LimitScope | tuple[LimitScope, ...] | None = None,
    ) -> None:
        scopes = () if per is None else per if isinstance(per, tuple) else (per,)
        self.name = name
        self.resource = resource
        self.amount = amount
        self.users = None if users is None else frozenset(users)
        self.groups = None if groups is None else frozenset(groups)
        self.projects = None if projects is None else frozenset(projects)
        self.queues = None if queues is None else frozenset(queues)
        self.arrays = None if arrays is None else frozenset(arrays)
        self.hosts = None if hosts is None else frozenset(hosts)
        self.scopes = tuple(
            scope for scope in LimitScope if scope in scopes and scope is not LimitScope.HOST
        )
        self.per_host = LimitScope.HOST in scopes
        self.placed = self.per_host or self.hosts is not None or resource == HOSTS

    def keys(
        self, user: str, project: str, queue: str, array: str | None, groups: tuple[str, ...]
    ) -> list[tuple[str, ...]]:
        """Return the values of ``per`` under which a job counts; none if the rule does not apply to it."""
        if (
            (self.users is not None and user not in self.users)
            or (self.projects is not None and project not in self.projects)
            or (self.queues is not None and queue not in self.queues)
            or (self.arrays is not None and array not in self.arrays)
            or (self.groups is not None and self.groups.isdisjoint(groups))
        ):
            return []
        values: list[tuple[str, ...]] = []
        for scope in self.scopes:
            match scope:
                case LimitScope.USER:
                    values.append((user,))
                case LimitScope.PROJECT:
                    values.append((project,))
                case LimitScope.QUEUE:
                    values.append((queue,))
                case LimitScope.ARRAY:
                    values.append(() if array is None else (array,))
                case _:
                    named = self.groups
                    values.append(tuple(g for g in groups if named is None or g in named))
        return list(product(*values))


class Meter:
    """What one rule counts for one value of its ``per``, or the free amount of a shared resource.

    Attributes:
        number: place in the lists of meters.
        rule: None for a shared resource.
        start: what is left at the start of the session; below 0 where more is used than allowed.
    """

    __slots__ = ("name", "number", "resource", "rule", "start")

    def __init__(
        self, number: int, name: str, resource: str, start: int, rule: Rule | None
    ) -> None:
        self.number = number
        self.name = name
        self.resource = resource
        self.start = start
        self.rule = rule


class PlacedUse:
    """What placed meters count so far."""

    __slots__ = ("amounts", "hosts")

    def __init__(self) -> None:
        self.amounts: dict[tuple[int, int], int] = {}
        self.hosts: dict[int, frozenset[int]] = {}

    def copy(self) -> "PlacedUse":
        """Return a copy that changes for itself."""
        made = PlacedUse()
        made.amounts = self.amounts.copy()
        made.hosts = self.hosts.copy()
        return made

    def counted_hosts(self, meter: Meter) -> frozenset[int]:
        """Return the hosts that a meter of hosts counts already."""
        return self.hosts.get(meter.number, _NO_HOSTS)

    def add(
        self,
        meters: Iterable[Meter],
        shares: Sequence[Share],
        shared: Mapping[str, int],
        names: Sequence[str | None],
    ) -> None:
        """Count a job that has started."""
        for meter in meters:
            if meter.resource == HOSTS:
                more = frozenset(place for place, _ in _counted(meter, shares, names))
                self.hosts[meter.number] = self.counted_hosts(meter) | more
                continue
            for place, amount in _amounts(meter, shares, shared, names).items():
                key = (meter.number, place)
                self.amounts[key] = self.amounts.get(key, 0) + amount

    def refusing(
        self,
        meters: Iterable[Meter],
        shares: Sequence[Share],
        shared: Mapping[str, int],
        names: Sequence[str | None],
    ) -> list[Meter]:
        """Return the meters that a job passes, as far as it is placed."""
        return [meter for meter in meters if self._refuses(meter, shares, shared, names)]

    def _refuses(
        self,
        meter: Meter,
        shares: Sequence[Share],
        shared: Mapping[str, int],
        names: Sequence[str | None],
    ) -> bool:
        rule = meter.rule
        assert rule is not None, "a shared resource is never placed"
        if meter.resource == HOSTS:
            known = self.counted_hosts(meter)
            more = {place for place, _ in _counted(meter, shares, names)} - known
            if rule.per_host:
                return bool(more) and rule.amount < 1
            return bool(more) and len(known) + len(more) > rule.amount
        for place, amount in _amounts(meter, shares, shared, names).items():
            if amount > 0 and self.amounts.get((meter.number, place), 0) + amount > rule.amount:
                return True
        return False


def _counted(meter: Meter, shares: Sequence[Share], names: Sequence[str | None]) -> Sequence[Share]:
    rule = meter.rule
    if rule is None or rule.hosts is None:
        return shares
    return [share for share in shares if names[share[0]] in rule.hosts]


def _amounts(
    meter: Meter, shares: Sequence[Share], shared: Mapping[str, int], names: Sequence[str | None]
) -> dict[int, int]:
    rule, resource = meter.rule, meter.resource
    assert rule is not None, "a shared resource is never placed"
    amounts: dict[int, int] = {}
    whole = 1 if resource == JOBS else shared.get(resource)
    for place, uses in _counted(meter, shares, names):
        where = place if rule.per_host else TOGETHER
        if whole is not None:
            amounts[where] = whole
        else:
            amounts[where] = amounts.get(where, 0) + uses.get(resource, 0)
    return amounts


class Meters:
    """All meters of a session: those of shared resources first, the others as jobs need them."""

    def __init__(
        self,
        shared: Mapping[str, int | None],
        rules: Iterable[Rule] = (),
        groups: Iterable[Group] = (),
    ) -> None:
        """Make the meters of shared resources by what is left of each; None: it is not known."""
        self.all: list[Meter] = []
        self.shared: dict[str, Meter] = {}
        self.rules = [*rules]
        self.placed_use = PlacedUse()
        #: Shared resources of which it is not known what is free.
        self.unknown = frozenset(name for name, left in shared.items() if left is None)
        self._groups: dict[str, tuple[str, ...]] = {}
        for group in groups:
            for user in dict.fromkeys(group.users):
                self._groups[user] = (*self._groups.get(user, ()), group.name)
        self._by_rule: dict[tuple[int, tuple[str, ...]], Meter] = {}
        self._of_job: dict[tuple[str, str, str, str | None], tuple[Meter, ...]] = {}
        for name, left in shared.items():
            meter = self.shared[name] = Meter(len(self.all), name, name, left or 0, None)
            self.all.append(meter)

    def of_job(self, user: str, project: str, queue: str, array: str | None) -> tuple[Meter, ...]:
        """Return the meters of all limits that count a job, in the order of the limits."""
        if not self.rules:
            return ()
        job = (user, project, queue, array)
        known = self._of_job.get(job)
        if known is None:
            groups = self._groups.get(user, ())
            known = self._of_job[job] = tuple(
                self._meter(number, rule, key)
                for number, rule in enumerate(self.rules)
                for key in rule.keys(user, project, queue, array, groups)
            )
        return known

    def _meter(self, number: int, rule: Rule, key: tuple[str, ...]) -> Meter:
        meter = self._by_rule.get((number, key))
        if meter is None:
            meter = Meter(len(self.all), rule.name, rule.resource, rule.amount, rule)
            self._by_rule[number, key] = meter
            self.all.append(meter)
        return meter

    def count_running(
        self,
        meters: Iterable[Meter],
        shares: Sequence[Share],
        shared: Mapping[str, int],
        names: Sequence[str | None],
    ) -> None:
        """Take what a running job uses from what is left at the start."""
        self.count_fixed(meters, shares, shared)
        placed = placed_of(meters)
        if placed:
            self.placed_use.add(placed, shares, shared, names)

    def count_fixed(
        self,
        meters: Iterable[Meter],
        shares: Sequence[Share],
        shared: Mapping[str, int],
        *,
        times: int = 1,
    ) -> None:
        """Take what a running job uses from the meters that are not placed; give it back with ``times=-1``."""
        for name, amount in shared.items():
            if name not in self.unknown:
                self.shared[name].start -= times * amount
        for meter in meters:
            rule, resource = meter.rule, meter.resource
            if rule is not None and rule.placed:
                continue
            if resource == JOBS:
                meter.start -= times
            elif resource in self.shared:
                meter.start -= times * shared.get(resource, 0)
            else:
                meter.start -= times * sum(uses.get(resource, 0) for _, uses in shares)


def placed_of(meters: Iterable[Meter]) -> list[Meter]:
    """Return the placed ones of some meters."""
    return [meter for meter in meters if meter.rule is not None and meter.rule.placed]


def meters_of(snapshot: Snapshot) -> Meters:
    """Return the meters of a snapshot, before anything that runs is counted."""
    shared = {
        pool.name: None if pool.used_elsewhere is None else pool.total - pool.used_elsewhere
        for pool in snapshot.shared
    }
    return Meters(shared, _rules(snapshot), snapshot.groups)


def _rules(snapshot: Snapshot) -> Iterable[Rule]:
    for limit in snapshot.limits:
        yield Rule(
            limit.name,
            limit.resource,
            limit.amount,
            users=limit.users,
            groups=limit.groups,
            projects=limit.projects,
            queues=limit.queues,
            arrays=limit.arrays,
            hosts=limit.hosts,
            per=limit.per,
        )
    for array, amount in sorted(array_limits((*snapshot.running, *snapshot.pending)).items()):
        yield Rule(f"array {array}", JOBS, amount, arrays=(array,))
    for quota in snapshot.quotas:
        if quota.maximum is not None:
            yield Rule(quota.name, quota.resource, quota.maximum, groups=(quota.group,))


def array_limits(jobs: Iterable[RunningJob | PendingJob]) -> dict[str, int]:
    """Return how many elements of each array may run, the smallest number that an element states."""
    limits: dict[str, int] = {}
    for job in jobs:
        array = job.array
        if array is not None and array.limit is not None:
            limits[array.id] = min(limits.get(array.id, array.limit), array.limit)
    return limits


class Guarantee:
    """The guaranteed part of a quota: a group, a resource, an amount."""

    __slots__ = ("amount", "members", "name", "resource")

    def __init__(self, quota: Quota, members: Iterable[str]) -> None:
        self.name = quota.name
        self.resource = quota.resource
        self.amount = quota.guaranteed
        self.members = frozenset(members)


def guarantees_of(snapshot: Snapshot) -> tuple[Guarantee, ...]:
    """Return the guarantees of a snapshot that keep anything."""
    members = {group.name: group.users for group in snapshot.groups}
    return tuple(
        Guarantee(quota, members[quota.group]) for quota in snapshot.quotas if quota.guaranteed > 0
    )
