"""What is wrong with a snapshot whose fields are right one by one: it contradicts itself."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from xce.domain.errors import Problem
from xce.domain.formats.base import path_of

if TYPE_CHECKING:
    from xce.domain.formats.snapshot import Snapshot


def contradictions(snapshot: "Snapshot") -> Iterator[Problem]:
    """Yield every contradiction: names twice, names of nothing, numbers that do not add up."""
    yield from _names_twice(snapshot)
    yield from _hosts_and_templates(snapshot)
    yield from _shared(snapshot)
    yield from _jobs(snapshot)
    yield from _limits_and_quotas(snapshot)
    yield from _catalog(snapshot)


def _names_twice(snapshot: "Snapshot") -> Iterator[Problem]:
    catalog = snapshot.catalog
    yield from _repeats("hosts", "name", (host.name for host in snapshot.hosts))
    yield from _repeats("shared", "name", (shared.name for shared in snapshot.shared))
    yield from _repeats("queues", "name", (queue.name for queue in snapshot.queues))
    yield from _repeats("limits", "name", (limit.name for limit in snapshot.limits))
    yield from _repeats("quotas", "name", (quota.name for quota in snapshot.quotas))
    yield from _repeats("groups", "name", (group.name for group in snapshot.groups))
    yield from _repeats("running", "id", (job.id for job in snapshot.running))
    yield from _repeats("pending", "id", (job.id for job in snapshot.pending))
    yield from _repeats("catalog.templates", "id", (one.id for one in catalog.templates))
    yield from _repeats("catalog.countable", "name", (one.name for one in catalog.countable))
    yield from _repeats("catalog.capacities", "name", (one.name for one in catalog.capacities))
    yield from _repeats(
        "catalog.in_flight.hosts", "id", (one.id for one in catalog.in_flight.hosts)
    )


def _hosts_and_templates(snapshot: "Snapshot") -> Iterator[Problem]:
    shared = {shared.name for shared in snapshot.shared}
    owners: list[tuple[tuple[int | str, ...], Iterable[str]]] = [
        (("hosts", i, "total"), host.total) for i, host in enumerate(snapshot.hosts)
    ]
    owners += [
        (("catalog", "templates", i, "provides"), template.provides)
        for i, template in enumerate(snapshot.catalog.templates)
    ]
    for loc, resources in owners:
        for resource in resources:
            if resource in shared:
                yield Problem(
                    f"{resource!r} is a shared resource, not one of a host",
                    path_of((*loc, resource)),
                )


def _shared(snapshot: "Snapshot") -> Iterator[Problem]:
    for i, shared in enumerate(snapshot.shared):
        if shared.owned is not None and shared.owned + shared.borrowed != shared.total:
            yield Problem(
                f"total {shared.total} is not owned {shared.owned} + borrowed {shared.borrowed}",
                f"shared[{i}].total",
            )
        elif shared.owned is None and shared.borrowed > shared.total:
            yield Problem(
                f"borrowed {shared.borrowed} is more than total {shared.total}",
                f"shared[{i}].borrowed",
            )


def _jobs(snapshot: "Snapshot") -> Iterator[Problem]:
    hosts = {host.name: host for host in snapshot.hosts}
    shared = {shared.name for shared in snapshot.shared}
    for i, job in enumerate(snapshot.running):
        yield from _repeats(f"running[{i}].hosts", "name", (use.name for use in job.hosts))
        for j, use in enumerate(job.hosts):
            if use.name not in hosts:
                yield Problem(f"no host is named {use.name!r}", f"running[{i}].hosts[{j}].name")
                continue
            for resource, amount in use.uses.items():
                if amount > 0 and resource != "slots" and resource not in hosts[use.name].total:
                    yield Problem(
                        f"host {use.name!r} has no {resource!r}",
                        path_of(("running", i, "hosts", j, "uses", resource)),
                    )
        for resource in job.shared:
            if resource not in shared:
                yield Problem(
                    f"no shared resource is named {resource!r}",
                    path_of(("running", i, "shared", resource)),
                )
    for i, waiting in enumerate(snapshot.pending):
        least, most = waiting.tasks.min, waiting.tasks.max
        if most is not None and most < least:
            yield Problem(f"max {most} is below min {least}", f"pending[{i}].tasks")


def _limits_and_quotas(snapshot: "Snapshot") -> Iterator[Problem]:
    groups = {group.name for group in snapshot.groups}
    for i, limit in enumerate(snapshot.limits):
        for group in limit.groups or ():
            if group not in groups:
                yield Problem(f"no group is named {group!r}", f"limits[{i}].groups")
    for i, quota in enumerate(snapshot.quotas):
        if quota.group not in groups:
            yield Problem(f"no group is named {quota.group!r}", f"quotas[{i}].group")
        if quota.maximum is not None and quota.maximum < quota.guaranteed:
            yield Problem(
                f"maximum {quota.maximum} is below guaranteed {quota.guaranteed}", f"quotas[{i}]"
            )
        if quota.guaranteed > 0 and quota.resource in ("jobs", "hosts"):
            yield Problem(
                f"{quota.resource!r} cannot be guaranteed; wanted a host consumable or a shared resource",
                f"quotas[{i}].resource",
            )


def _catalog(snapshot: "Snapshot") -> Iterator[Problem]:
    shared = {shared.name for shared in snapshot.shared}
    catalog = snapshot.catalog
    templates = {template.id for template in catalog.templates}
    capacities = {capacity.name for capacity in catalog.capacities}
    for i, template in enumerate(catalog.templates):
        drawn = [draw.capacity for draw in template.draws if draw.capacity is not None]
        yield from _repeats(f"catalog.templates[{i}].draws", "capacity", drawn)
        for j, draw in enumerate(template.draws):
            if draw.capacity is not None and draw.capacity not in capacities:
                yield Problem(
                    f"no capacity is named {draw.capacity!r}",
                    f"catalog.templates[{i}].draws[{j}].capacity",
                )
    for i, host in enumerate(catalog.in_flight.hosts):
        if host.template not in templates:
            yield Problem(
                f"no template is named {host.template!r}", f"catalog.in_flight.hosts[{i}].template"
            )
    for i, count in enumerate(catalog.in_flight.counts):
        if count.name not in shared:
            yield Problem(
                f"no shared resource is named {count.name!r}", f"catalog.in_flight.counts[{i}].name"
            )
    for i, countable in enumerate(catalog.countable):
        if countable.name not in shared:
            yield Problem(
                f"no shared resource is named {countable.name!r}", f"catalog.countable[{i}].name"
            )


def _repeats(path: str, field: str, names: Iterable[str]) -> Iterator[Problem]:
    seen = Counter[str]()
    for i, name in enumerate(names):
        seen[name] += 1
        if seen[name] == 2:
            yield Problem(f"{name!r} is there twice", f"{path}[{i}].{field}")
