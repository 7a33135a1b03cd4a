"""The real session and the reference, side by side: what differs in phase 1, and what is wrong with the demand."""

from collections.abc import Iterable, Iterator

from tests.reference.exactness import violations
from tests.reference.plain import Phase1, reference_phase1
from xce.domain.formats.session_result import (
    Allocation,
    Pending,
    PlacedOn,
    Reason,
    ReasonKind,
    SessionResult,
    SharedAmount,
)
from xce.domain.formats.snapshot import Snapshot

#: Kind, resource or limit, hosts.
Said = tuple[ReasonKind, str | None, tuple[str, ...] | None]


def differences(snapshot: Snapshot, result: SessionResult) -> list[str]:
    """Return how a result differs from what the page says, or nothing."""
    found = [*_phase1_differs(reference_phase1(snapshot), result), *_form(snapshot, result)]
    return found or violations(snapshot, result)


def _phase1_differs(wanted: Phase1, result: SessionResult) -> Iterator[str]:
    got = [merged(allocation) for allocation in result.allocations]
    if got != list(wanted.allocations):
        yield f"allocations are {got}, wanted {list(wanted.allocations)}"
        return
    said = {
        pending.job: (pending.reason, reasons_of(result, pending)) for pending in result.pending
    }
    want = {
        pending.job: (pending.reason, _said(pending.expanded or ())) for pending in wanted.pending
    }
    if list(said) != list(want):
        yield f"pending are {list(said)}, wanted {list(want)}"
    for job in said.keys() & want.keys():
        if said[job] != want[job]:
            yield f"reasons of job {job} are {said[job]}, wanted {want[job]}"


def reasons_of(result: SessionResult, pending: Pending) -> list[Said]:
    """Return the complete reasons of a job, from its set or written at it."""
    if pending.expanded is not None:
        return _said(pending.expanded)
    sets = {one.id: one.reasons for one in result.reason_sets}
    return _said(sets[pending.reasons]) if pending.reasons is not None else []


def _said(reasons: Iterable[Reason]) -> list[Said]:
    return [
        (one.kind, one.limit if one.kind is ReasonKind.LIMIT else one.resource, one.hosts)
        for one in reasons
    ]


def merged(allocation: Allocation) -> Allocation:
    """Return an allocation with one entry a host, and without amounts of 0."""
    hosts: dict[str, PlacedOn] = {}
    for placed in allocation.hosts:
        before = hosts.get(placed.name, PlacedOn(name=placed.name, tasks=0, uses={}))
        names = sorted({*before.uses, *placed.uses})
        uses = {name: before.uses.get(name, 0) + placed.uses.get(name, 0) for name in names}
        hosts[placed.name] = PlacedOn(
            name=placed.name,
            tasks=before.tasks + placed.tasks,
            uses={name: amount for name, amount in uses.items() if amount > 0},
        )
    shared = {one.name: one.amount for one in allocation.shared if one.amount > 0}
    return Allocation(
        job=allocation.job,
        hosts=tuple(hosts.values()),
        shared=tuple(SharedAmount(name=name, amount=shared[name]) for name in sorted(shared)),
    )


def _form(snapshot: Snapshot, result: SessionResult) -> Iterator[str]:
    """Position, ids of reason sets in job order and each once, warnings that name what they are about."""
    if result.position != snapshot.position:
        yield f"position is {result.position}"
    ids = [one.id for one in result.reason_sets]
    used = list(dict.fromkeys(p.reasons for p in result.pending if p.reasons is not None))
    if ids != list(range(1, len(ids) + 1)) or used != ids:
        yield f"reason sets are {ids}, used in the order {used}"
    if len({one.reasons for one in result.reason_sets}) != len(ids):
        yield "two reason sets are equal"
    warnings = "\n".join(result.warnings)
    for name in _worth_a_warning(snapshot):
        if name not in warnings:
            yield f"no warning names {name!r}: {warnings!r}"


def _worth_a_warning(snapshot: Snapshot) -> list[str]:
    running = {job.id for job in snapshot.running}
    declared = {queue.name for queue in snapshot.queues}
    instances = {host.instance for host in snapshot.hosts}
    names = [job.id for job in snapshot.pending if job.id in running]
    names += [job.queue for job in snapshot.pending if job.queue not in declared]
    names += [host.id for host in snapshot.catalog.in_flight.hosts if host.id in instances]
    for host in snapshot.hosts:
        used: dict[str, int] = {}
        for job in snapshot.running:
            for use in job.hosts:
                for resource, amount in use.uses.items():
                    if use.name == host.name:
                        used[resource] = used.get(resource, 0) + amount
        if any(amount > host.total.get(resource, 0) for resource, amount in used.items()):
            names.append(host.name)
    return list(dict.fromkeys(names))
