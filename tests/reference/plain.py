"""The session, plain and slow, to be read beside docs/reference/session.md: phase 1 and idle supply.

Jobs one by one, hosts one by one, every plan in turn; no caches, no shapes. The fast session is compared with it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tests.reference.limits import is_dependent
from tests.reference.needs import unreadable_units
from tests.reference.placing import start
from tests.reference.reasons import Failure, Found, failure_of, joined, measured, stage_two
from tests.reference.world import Holding, PlainJob, World, world_of
from xce.domain.formats.session_result import (
    Allocation,
    Pending,
    PlacedOn,
    Reason,
    ReasonKind,
    SharedAmount,
)
from xce.domain.formats.snapshot import OrderMode, Snapshot


@dataclass(frozen=True)
class Outcome:
    """Phase 1 on a world: who started with what, who waits and what was found, and the world at its end."""

    started: tuple[tuple[PlainJob, Holding], ...]
    pending: tuple[tuple[PlainJob, tuple[Found, ...]], ...]
    on_resources: tuple[PlainJob, ...]
    world: World

    @property
    def started_ids(self) -> list[str]:
        return [job.id for job, _ in self.started]


def phase_one(world: World) -> Outcome:
    """Try every waiting job in job order (section 4), then say why the others wait (section 5)."""
    started: list[tuple[PlainJob, Holding]] = []
    failures: list[tuple[PlainJob, Failure]] = []
    first_of: dict[tuple[object, ...], Failure] = {}
    blocked = False
    for job in world.waiting:
        if early := stage_one(world, job):
            failures.append((job, Failure.stopped(early)))
        elif blocked:
            stopped = stage_two(world, job)
            failures.append((job, Failure.stopped(stopped) if stopped else Failure.behind()))
        elif holding := start(world, job):
            world = world.start(job, holding)
            started.append((job, holding))
        else:
            failure = first_of.setdefault(job.equality, failure_of(world, job))
            failures.append((job, failure))
            blocked = world.settings.order is OrderMode.STRICT and failure.on_resources
    return Outcome(
        started=tuple(started),
        pending=tuple(
            (job, joined(world, measured(world, job, failure))) for job, failure in failures
        ),
        on_resources=tuple(
            job for job, failure in failures if failure.on_resources or failure.is_behind
        ),
        world=world,
    )


def stage_one(world: World, job: PlainJob) -> list[Found]:
    """Return what stops a job before anything is counted: held, dependency, unit unknown."""
    found: list[Found] = []
    if job.pending.held:
        found.append(Found(ReasonKind.HELD))
    if is_dependent(world, job):
        found.append(Found(ReasonKind.DEPENDENCY))
    found += [Found(ReasonKind.UNIT_UNKNOWN, name) for name in unreadable_units(world, job)]
    return found


@dataclass(frozen=True)
class Phase1:
    """Phase 1 in the types of the session result; reasons are written at their job."""

    allocations: tuple[Allocation, ...]
    pending: tuple[Pending, ...]


def reference_phase1(snapshot: Snapshot) -> Phase1:
    """Return the allocations and, for each job that waits, the main and the complete reasons."""
    outcome = phase_one(world_of(snapshot))
    return Phase1(
        tuple(allocation_of(holding) for _, holding in outcome.started),
        tuple(
            Pending(job=job.id, reason=found[0].kind, expanded=tuple(map(reason_of, found)))
            for job, found in outcome.pending
        ),
    )


def allocation_of(holding: Holding) -> Allocation:
    """Return a holding as an allocation: one entry a host, in the order claimed, amounts of 0 left out."""
    return Allocation(
        job=holding.id,
        hosts=tuple(
            PlacedOn(
                name=host,
                tasks=sum(part.tasks for part in holding.parts if part.host == host),
                uses=_uses(holding, host),
            )
            for host in holding.hosts()
        ),
        shared=tuple(
            SharedAmount(name=name, amount=amount)
            for name, amount in sorted(holding.shared.items())
            if amount > 0
        ),
    )


def _uses(holding: Holding, host: str) -> dict[str, int]:
    names: Iterable[str] = sorted({name for part in holding.parts for name in part.uses})
    amounts = {name: holding.on(host, name) for name in names}
    return {name: amount for name, amount in amounts.items() if amount > 0}


def reason_of(found: Found) -> Reason:
    """Return a finding in the type of the session result."""
    is_limit = found.kind is ReasonKind.LIMIT
    return Reason(
        kind=found.kind,
        resource=None if is_limit else found.name,
        limit=found.name if is_limit else None,
        hosts=found.hosts,
    )
