"""Guaranteed amounts of groups: what is kept from jobs outside a group while it has a job that could start."""

from collections.abc import Sequence

from xce.domain.cluster.state import State
from xce.domain.scheduling.classes import JobClass


def kept_from(core: State, job: JobClass, resource: str) -> list[tuple[str, int]]:
    """Return the quotas that keep some of a resource from a job, with the amount."""
    kept: list[tuple[str, int]] = []
    for number, guarantee in enumerate(core.ground.guarantees):
        if guarantee.resource != resource or job.user in guarantee.members:
            continue
        amount = guarantee.amount - core.granted[number]
        if amount > 0 and _is_claimed(core, number):
            kept.append((guarantee.name, amount))
    return kept


def broken(free: int, amount: int, kept: Sequence[tuple[str, int]]) -> list[str]:
    """Return the quotas of which an amount, taken from what is free in all, would take a part."""
    if amount > 0 and kept and free - amount < sum(part for _, part in kept):
        return [name for name, _ in kept]
    return []


def _is_claimed(core: State, number: int) -> bool:
    """Return whether a job of the group waits that could start."""
    return any(
        could_start(core, waiting)
        for waiting, count in core.waiting[number].items()
        if count > 0 and isinstance(waiting, JobClass)
    )


def could_start(core: State, job: JobClass) -> bool:
    """Return whether no limit stops a job before any host is looked at, guarantees aside."""
    return any(
        not limits_before_hosts(core, job, number, guarantees=False)
        for number in range(len(job.alternatives))
    )


def limits_before_hosts(core: State, job: JobClass, number: int, *, guarantees: bool) -> list[str]:
    """Return the limits that stop an alternative at ``tasks.min``, the amounts of its parts added up."""
    meters = core.ground.meters.all
    taken: dict[int, int] = {}
    asked: dict[str, int] = {}
    names: list[str] = []
    for part in job.alternatives[number].parts:
        tasks = part.tasks or job.least
        for meter, a_task, once in part.fixed:
            amount = tasks * a_task + once
            if meters[meter].rule is None or amount <= 0:
                continue
            taken[meter] = taken.get(meter, 0) + amount
            if taken[meter] > core.left[meter]:
                names.append(meters[meter].name)
        if guarantees and job.outside:
            for resource, amount in part.fixed_amounts(tasks).items():
                asked[resource] = asked.get(resource, 0) + amount
                kept = kept_from(core, job, resource)
                names += broken(core.total_free(resource), asked[resource], kept)
    return list(dict.fromkeys(names))
