"""What limits and quotas count and refuse: the paragraph on limits of docs/reference/session.md, section 4."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import product

from tests.reference.needs import Needs, is_exclusive, needs_of, parts_of, unreadable_units
from tests.reference.world import Holding, PlainHost, PlainJob, World, added
from xce.domain.cluster.requirement import Per, Primary
from xce.domain.formats.snapshot import Limit, LimitScope, Quota

#: A value of each scope of ``per``; the host last where it is one of them.
Key = tuple[str, ...]


@dataclass(frozen=True)
class Refusal:
    """A limit or quota that a claim would pass."""

    name: str
    about_a_host: bool


def scopes_of(limit: Limit) -> tuple[LimitScope, ...]:
    """Return what the limit counts separately for, the host last."""
    if limit.per is None:
        return ()
    scopes = limit.per if isinstance(limit.per, tuple) else (limit.per,)
    return tuple(sorted(set(scopes), key=lambda scope: (scope is LimitScope.HOST, scope)))


def is_about_hosts(limit: Limit) -> bool:
    """Return whether it has a list of hosts or counts each host for itself."""
    return limit.hosts is not None or LimitScope.HOST in scopes_of(limit)


def counted(world: World, limit: Limit, holding: Holding) -> dict[Key, frozenset[str] | int]:
    """Return what the limit counts of a job, for each value of ``per``; hosts as a set of hosts."""
    groups = groups_of(world, holding.user)
    if not _applies(limit, holding, groups):
        return {}
    values: list[Iterable[str]] = []
    for scope in scopes_of(limit):
        match scope:
            case LimitScope.USER:
                values.append([holding.user])
            case LimitScope.PROJECT:
                values.append([holding.project])
            case LimitScope.QUEUE:
                values.append([holding.queue])
            case LimitScope.ARRAY:
                values.append([] if holding.array is None else [holding.array])
            case LimitScope.GROUP:
                values.append([g for g in groups if limit.groups is None or g in limit.groups])
            case LimitScope.HOST:
                pass
    named = [
        host
        for host in map(world.host, holding.hosts())
        if limit.hosts is None or host.named in limit.hosts
    ]
    table: dict[Key, frozenset[str] | int] = {}
    for key in product(*values):
        if LimitScope.HOST in scopes_of(limit):
            for host in named:
                table[(*key, host.key)] = _amount(world, limit, holding, [host])
        elif limit.hosts is not None:
            table[key] = _amount(world, limit, holding, named) if named else 0
        else:
            table[key] = _amount(world, limit, holding, named)
    return table


def _amount(
    world: World, limit: Limit, holding: Holding, hosts: list[PlainHost]
) -> frozenset[str] | int:
    if limit.resource == "jobs":
        return 1
    if limit.resource == "hosts":
        return frozenset(host.key for host in hosts)
    if limit.resource in world.pools:
        return holding.shared.get(limit.resource, 0)
    return sum(holding.on(host.key, limit.resource) for host in hosts)


def _applies(limit: Limit, holding: Holding, groups: list[str]) -> bool:
    return (
        (limit.users is None or holding.user in limit.users)
        and (limit.projects is None or holding.project in limit.projects)
        and (limit.queues is None or holding.queue in limit.queues)
        and (limit.arrays is None or holding.array in limit.arrays)
        and (limit.groups is None or any(group in limit.groups for group in groups))
    )


def groups_of(world: World, user: str) -> list[str]:
    """Return the groups that a user is in."""
    return [name for name, users in world.groups.items() if user in users]


def used(world: World, limit: Limit, key: Key) -> frozenset[str] | int:
    """Return what the limit counts of all jobs that hold something, for one value of ``per``."""
    amounts = [counted(world, limit, holding).get(key, 0) for holding in world.holdings]
    if limit.resource == "hosts":
        return frozenset(
            host for amount in amounts if isinstance(amount, frozenset) for host in amount
        )
    return sum(amount for amount in amounts if isinstance(amount, int))


def refuses(world: World, limit: Limit, trial: Holding) -> list[Key]:
    """Return the values of ``per`` for which the job, as far as it is placed, passes the limit."""
    passed: list[Key] = []
    for key, amount in counted(world, limit, trial).items():
        before = used(world, limit, key)
        if isinstance(amount, frozenset):
            assert isinstance(before, frozenset) or before == 0
            known = before if isinstance(before, frozenset) else frozenset[str]()
            added_amount, start = len(amount - known), len(known)
        else:
            added_amount, start = amount, len(before) if isinstance(before, frozenset) else before
        if added_amount > 0 and start + added_amount > limit.amount:
            passed.append(key)
    return passed


# Guaranteed quotas: amounts kept from jobs outside a group.


def kept_from(world: World, user: str, resource: str) -> dict[str, int]:
    """Return, by quota, what is kept of a resource from a user's jobs."""
    kept: dict[str, int] = {}
    for quota in world.guarantees:
        members = world.groups[quota.group]
        if quota.resource != resource or user in members:
            continue
        if any(job.pending.user in members and could_start(world, job) for job in world.waiting):
            amount = max(0, quota.guaranteed - used_by_group(world, quota))
            if amount > 0:
                kept[quota.name] = amount
    return kept


def used_by_group(world: World, quota: Quota) -> int:
    members = world.groups[quota.group]
    return sum(
        taken(world, holding, quota.resource)
        for holding in world.holdings
        if holding.user in members
    )


def taken(world: World, holding: Holding, resource: str) -> int:
    """Return what a job takes of a resource, wherever it is."""
    if resource in world.pools:
        return holding.shared.get(resource, 0)
    return sum(part.uses.get(resource, 0) for part in holding.parts)


def free_in_all(world: World, resource: str) -> int:
    """Return what is free of a resource, on open hosts together or of the shared resource."""
    if resource in world.pools:
        return world.free_shared(resource)
    return sum(world.free(host, resource) for host in world.hosts if host.is_open)


def breaks_guarantee(world: World, user: str, amounts: Mapping[str, int]) -> list[str]:
    """Return the quotas of which these amounts, taken by a job of the user, would take a part."""
    broken: list[str] = []
    for resource, amount in amounts.items():
        kept = kept_from(world, user, resource)
        if amount > 0 and free_in_all(world, resource) - amount < sum(kept.values()):
            broken.extend(kept)
    return broken


def could_start(world: World, job: PlainJob) -> bool:
    """Return whether a group's job keeps the guarantee: not held, not dependent, unit known, not limited."""
    if job.pending.held or is_dependent(world, job) or unreadable_units(world, job):
        return False
    return any(
        all(
            not refusals
            for refusals in limits_before_hosts(world, job, alternative, guarantees=False)
        )
        for alternative in range(len(job.requirement.alternatives))
    )


def is_dependent(world: World, job: PlainJob) -> bool:
    """Return whether an id that it waits for is still here."""
    here = {holding.id for holding in world.holdings} | {other.id for other in world.waiting}
    return any(name in here for name in job.pending.waits_for)


# What is checked before any host, and what with each claim.


def limits_before_hosts(
    world: World, job: PlainJob, alternative: int, *, guarantees: bool = True
) -> list[list[str]]:
    """Return, for each part of an alternative at ``tasks.min``, the limits that stop it before any host.

    The amounts of earlier parts are added; nothing is placed.
    """
    chosen = job.requirement.alternatives[alternative]
    trial = job.nothing_yet(exclusive=is_exclusive(job, chosen))
    before: dict[str, int] = {}
    found: list[list[str]] = []
    for primary in parts_of(chosen):
        tasks = primary.tasks or job.least
        found.append(part_limits(world, trial, before, primary, tasks, guarantees=guarantees))
        before = added(before, fixed_amounts(world, primary, tasks))
    return found


def fixed_amounts(world: World, primary: Primary, tasks: int) -> dict[str, int]:
    """Return the amounts of a primary that do not depend on the plan, of hosts and shared alike."""
    needs = needs_of(world, primary)
    amounts = added(needs.bucket(tasks, first=True), needs.shared_before_hosts(tasks))
    dependent = taken_per_host(needs)
    return {name: amount for name, amount in amounts.items() if name not in dependent}


def taken_per_host(needs: Needs) -> set[str]:
    """Return the resources whose amount depends on the plan."""
    return set(needs.on_host[Per.HOST]) | set(needs.shared[Per.HOST])


def part_limits(
    world: World,
    trial: Holding,
    before: Mapping[str, int],
    primary: Primary,
    tasks: int,
    *,
    guarantees: bool = True,
) -> list[str]:
    """Return the limits and quotas that a part passes before any host, ``before`` being taken already."""
    amounts = fixed_amounts(world, primary, tasks)
    whole = added(before, amounts)
    stopped: list[str] = []
    for limit in world.limits:
        if depends_on_plan(limit, ()) or (
            limit.resource != "jobs" and limit.resource not in amounts
        ):
            continue
        size = 1 if limit.resource == "jobs" else whole[limit.resource]
        for key in counted(world, limit, trial):
            start = used(world, limit, key)
            assert isinstance(start, int)
            if size > 0 and start + size > limit.amount and limit.name not in stopped:
                stopped.append(limit.name)
    if guarantees:
        asked = {name: whole[name] for name in amounts}
        stopped += [
            name for name in breaks_guarantee(world, trial.user, asked) if name not in stopped
        ]
    return stopped


def depends_on_plan(limit: Limit, dependent: Collection[str]) -> bool:
    """Return whether a limit is checked with each plan; ``dependent``: resources taken once per host."""
    return is_about_hosts(limit) or limit.resource == "hosts" or limit.resource in dependent


def claim_refusals(
    world: World, trial: Holding, dependent: Collection[str] | None = None
) -> list[Refusal]:
    """Return every limit and quota that the job, as far as it is placed, passes.

    With ``dependent`` only those that depend on the plan, these resources being taken once per host.
    """
    found = [
        Refusal(limit.name, is_about_hosts(limit))
        for limit in world.limits
        if (dependent is None or depends_on_plan(limit, dependent)) and refuses(world, limit, trial)
    ]
    resources = dict.fromkeys(quota.resource for quota in world.guarantees)
    amounts = {
        resource: taken(world, trial, resource)
        for resource in resources
        if dependent is None or resource in dependent
    }
    broken = breaks_guarantee(world, trial.user, amounts)
    return found + [Refusal(name, about_a_host=False) for name in broken]
