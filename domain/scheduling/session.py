"""One scheduling session: a pure function from a snapshot to everything a session says.

Real scheduling of the whole queue comes first. Then the catalog pass looks at the jobs that failed on
resources. Nothing of the second phase changes what the first one decided.
"""

from collections.abc import Container, Iterable, Sequence

from xce.domain.cluster.state import State
from xce.domain.demand.finalise import Finalised, finalise
from xce.domain.demand.idle import idle_supply
from xce.domain.formats.building import all_built, built
from xce.domain.formats.session_result import (
    Allocation,
    Pending,
    PlacedOn,
    ReasonKind,
    SessionResult,
    SharedAmount,
)
from xce.domain.formats.snapshot import OrderMode, PendingJob, Snapshot
from xce.domain.scheduling.allocators import by_name
from xce.domain.scheduling.classes import JobClass
from xce.domain.scheduling.compile import Compiled, waiting_classes
from xce.domain.scheduling.explain import Failure, Publisher, behind, stopped
from xce.domain.scheduling.groups import stands_behind
from xce.domain.scheduling.placement import Placed, start
from xce.domain.scheduling.plans import Allocator
from xce.domain.scheduling.trace import Trace
from xce.domain.scheduling.unsatisfiable import Unsatisfiable

#: A job that waits, its class, and why.
Waiting = tuple[PendingJob, JobClass, Failure]


def run_session(
    snapshot: Snapshot, *, trace: bool = False, allocators: Iterable[Allocator] = ()
) -> SessionResult:
    """Return the result of one session; equal snapshots and allocators give equal results.

    ``allocators`` are those beyond the built-in ones; a job names the one that it wants.

    Raises:
        AllocatorError: two allocators have one name, or one makes plans that are none.
        InputError: a requirement cannot be read or does not fit its job; every problem with its path.
    """
    return run_compiled(Compiled(snapshot, by_name(allocators)), trace=trace)


def run_compiled(compiled: Compiled, *, trace: bool = False) -> SessionResult:
    """Return the result of one session on a snapshot that is made ready; what it works on is used up."""
    started, waiting = _phase_one(compiled)
    return result_of(compiled, started, waiting, trace=trace)


def result_of(
    compiled: Compiled,
    started: Sequence[tuple[PendingJob, Placed]],
    waiting: Sequence[Waiting],
    *,
    trace: bool,
) -> SessionResult:
    """Return what follows once it is known who starts with what, and who waits and why."""
    core = compiled.core
    publisher = Publisher(core)
    published = [publisher.publish(failure, job) for _, job, failure in waiting]
    sets = publisher.sets()
    allocations = allocations_of(core, started)
    recorder = None
    if trace:
        recorder = Trace(core)
        recorder.started(allocations)
        recorder.waiting(waiting)
    final = finalise(compiled, waiting)
    if recorder is not None:
        recorder.catalog(final.demand, final.provisioning, [job for job, _, _ in waiting])
    return built(
        SessionResult,
        {
            "format": "xce.session/1",
            "position": compiled.snapshot.position,
            "allocations": allocations,
            "reason_sets": sets,
            "pending": _pending(waiting, published, final),
            "demand": final.demand,
            "idle": idle_supply(compiled, [placed for _, placed in started], final.placed),
            "warnings": tuple(compiled.warnings),
            "trace": None if recorder is None else recorder.lines,
        },
    )


def _phase_one(
    compiled: Compiled,
) -> tuple[list[tuple[PendingJob, Placed]], list[Waiting]]:
    """Try every pending job in order; return who starts with what, and who waits and why."""
    core = compiled.core
    here = compiled.ids
    is_strict = compiled.snapshot.settings.order is OrderMode.STRICT
    started: list[tuple[PendingJob, Placed]] = []
    waiting: list[Waiting] = []
    failed = Unsatisfiable()
    if core.ground.guarantees:
        could_start = [
            (job, job_class)
            for job, job_class in compiled.queue
            if _stopped_at_once(job, job_class, here) is None
        ]
        core.waiting = waiting_classes(core, could_start)
    behind_it: Failure | None = None
    for job, job_class in compiled.queue:
        failure = _stopped_at_once(job, job_class, here)
        if failure is None and behind_it is not None:
            failure = stands_behind(core, job_class, behind_it)
        if failure is None:
            failure = failed.known(job_class)
        if failure is None:
            placed = start(core, job_class)
            if isinstance(placed, Placed):
                started.append((job, placed))
                if core.ground.guarantees:
                    core.no_longer_waits(job_class)
                continue
            failure = failed.first(job_class, placed)
        waiting.append((job, job_class, failure))
        if is_strict and failure.on_resources:
            behind_it = behind(job.id)
    return started, waiting


def _stopped_at_once(job: PendingJob, job_class: JobClass, here: Container[str]) -> Failure | None:
    """Return what stops a job before anything is tried, None if nothing does."""
    if not (job.held or job.waits_for or job_class.unknown):
        return None
    waits_for = [name for name in job.waits_for if name in here]
    return stopped(held=job.held, waits_for=waits_for, unknown=job_class.unknown)


def allocations_of(
    core: State, started: Sequence[tuple[PendingJob, Placed]]
) -> tuple[Allocation, ...]:
    """Return what starting jobs are given."""
    names = core.ground.hosts.names
    return tuple(
        [
            built(
                Allocation,
                {
                    "job": job.id,
                    "hosts": tuple(
                        [
                            built(PlacedOn, {"name": names[place], "tasks": tasks, "uses": uses})
                            for place, tasks, uses in placed.hosts()
                        ]
                    ),
                    "shared": tuple(
                        [
                            built(SharedAmount, {"name": name, "amount": amount})
                            for name, amount in placed.shared(core).items()
                        ]
                    ),
                },
            )
            for job, placed in started
        ]
    )


def _pending(
    waiting: Sequence[Waiting], published: Sequence[tuple[ReasonKind, int]], final: Finalised
) -> tuple[Pending, ...]:
    provisioning = final.provisioning
    rows = [
        {
            "job": job.id,
            "reason": reason,
            "reasons": number,
            "provisioning": provisioning.get(job.id),
            "expanded": None,
        }
        for (job, _, _), (reason, number) in zip(waiting, published, strict=True)
    ]
    return tuple(all_built(Pending, rows))
