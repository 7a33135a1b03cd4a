"""How one job is placed: every plan is tried in turn, every host in turn (docs/reference/session.md, section 4)."""

from collections.abc import Iterator
from math import ceil

from tests.reference.limits import claim_refusals, fixed_amounts, part_limits
from tests.reference.needs import Needs, is_exclusive, matching_hosts, needs_of, parts_of, value_of
from tests.reference.world import Holding, Part, PlainHost, PlainJob, World, added
from xce.domain.cluster.requirement import Alternative, Per, Primary, Span


def start(world: World, job: PlainJob) -> Holding | None:
    """Return what the job is given if it can start now: the most tasks that work, the first alternative."""
    for tasks in range(job.most, job.least - 1, -1):
        holding = place(world, job, tasks)
        if holding is not None:
            return holding
    return None


def place(world: World, job: PlainJob, tasks: int) -> Holding | None:
    """Return what the job is given with so many tasks, or None."""
    for alternative in job.requirement.alternatives:
        holding = place_alternative(world, job, alternative, tasks)
        if holding is not None:
            return holding
    return None


def place_alternative(
    world: World, job: PlainJob, alternative: Alternative, tasks: int
) -> Holding | None:
    """Place all parts one after the other, or nothing."""
    trial = job.nothing_yet(exclusive=is_exclusive(job, alternative))
    before: dict[str, int] = {}
    for primary in parts_of(alternative):
        count = primary.tasks or tasks
        if part_limits(world, trial, before, primary, count):
            return None
        if short_shared(world, trial, primary, count):
            return None
        placed = search(world, job, primary, count, trial)
        if placed is None:
            return None
        trial = placed
        before = added(before, fixed_amounts(world, primary, count))
    return trial


def short_shared(world: World, trial: Holding, primary: Primary, tasks: int) -> list[str]:
    """Return the shared resources that are short before any host is looked at."""
    wanted = needs_of(world, primary).shared_before_hosts(tasks)
    return [
        name
        for name, amount in wanted.items()
        if amount > 0 and world.free_shared(name) < trial.shared.get(name, 0) + amount
    ]


def plans(tasks: int, span: Span) -> Iterator[list[int]]:
    """Yield the ways in which tasks split into buckets, in the order in which they are tried."""
    if span.one_host:
        yield [tasks]
    elif span.one_task_a_host:
        yield [1] * tasks
    elif span.ptile is not None:
        full, rest = divmod(tasks, span.ptile)
        yield [span.ptile] * full + ([rest] if rest else [])
    else:
        yield from partitions(tasks, tasks)


def partitions(tasks: int, largest: int) -> Iterator[list[int]]:
    """Yield the partitions of a number in descending lexicographic order."""
    if tasks == 0:
        yield []
        return
    for first in range(min(tasks, largest), 0, -1):
        for rest in partitions(tasks - first, first):
            yield [first, *rest]


def fewest_hosts(tasks: int, span: Span) -> int:
    """Return the fewest buckets that a plan can have."""
    if span.one_task_a_host:
        return tasks
    return ceil(tasks / span.ptile) if span.ptile is not None else 1


def largest_bucket(tasks: int, span: Span) -> int:
    """Return the size of the largest bucket that a plan can have."""
    if span.one_task_a_host:
        return 1
    return min(tasks, span.ptile) if span.ptile is not None else tasks


def search(
    world: World, job: PlainJob, primary: Primary, tasks: int, trial: Holding
) -> Holding | None:
    """Return the job with the claims of the first plan that works, or None."""
    needs = needs_of(world, primary)
    hosts = matching_hosts(world, job, primary)
    before = trial.with_shared(needs.shared_before_hosts(tasks))
    for plan in plans(tasks, primary.span):
        for group in same_groups(hosts, primary.same):
            claimed = claim_all(world, needs, group, plan, before)
            if claimed is not None:
                return claimed
    return None


def same_groups(hosts: list[PlainHost], names: tuple[str, ...]) -> list[list[PlainHost]]:
    """Return the sets of hosts that a plan may use, each with one value of every name, by their first host."""
    if not names:
        return [hosts]
    groups: dict[tuple[object, ...], list[PlainHost]] = {}
    for host in hosts:
        values = [value_of(host, name) for name in names]
        if all(value is not None for value in values):
            key = tuple(
                (isinstance(value, str), isinstance(value, bool), value) for value in values
            )
            groups.setdefault(key, []).append(host)
    return list(groups.values())


def claim_all(
    world: World, needs: Needs, hosts: list[PlainHost], plan: list[int], trial: Holding
) -> Holding | None:
    """Claim a host for each bucket, the first that takes it, or nothing at all."""
    in_plan: set[str] = set()
    for number, tasks in enumerate(plan):
        for host in hosts:
            if host.key in in_plan:
                continue
            claimed = claim(world, needs, host, tasks, trial, first=number == 0)
            if claimed is not None:
                trial = claimed
                in_plan.add(host.key)
                break
        else:
            return None
    return trial


def claim(
    world: World, needs: Needs, host: PlainHost, tasks: int, trial: Holding, *, first: bool
) -> Holding | None:
    """Return the job with a bucket on this host, or None where there is no room or a limit refuses."""
    if short_on(world, needs, host, tasks, trial, first=first):
        return None
    claimed = trial.claim(
        Part(host.key, tasks, needs.bucket(tasks, first=first)), needs.shared[Per.HOST]
    )
    for name, amount in needs.shared[Per.HOST].items():
        if amount > 0 and world.free_shared(name) < claimed.shared[name]:
            return None
    return None if claim_refusals(world, claimed) else claimed


def short_on(
    world: World, needs: Needs, host: PlainHost, tasks: int, trial: Holding, *, first: bool
) -> list[str]:
    """Return the resources of which a host has too little for a bucket; ``host`` where jobs exclude one another."""
    short = [
        name
        for name, amount in needs.bucket(tasks, first=first).items()
        if world.free(host, name) - trial.on(host.key, name) < amount
    ]
    others = world.jobs_on(host)
    if others and (trial.exclusive or any(other.exclusive for other in others)):
        short.append("host")
    return short
