"""Both allocators, through the framework, against the plain reference: result, debits, shared amounts and reasons (AR 7.2)."""

from collections.abc import Iterator

from hypothesis import given

from tests.reference.placing import place as place_plainly
from tests.reference.plain import stage_one
from tests.reference.reasons import failure_of as plain_failure
from tests.reference.reasons import joined, measured
from tests.reference.snapshots import EVERYTHING, GANGS, snapshots
from tests.reference.test_session_against_reference import at_least
from tests.reference.world import PlainJob, World, world_of
from xce.domain.cluster.state import State
from xce.domain.formats.snapshot import Snapshot
from xce.domain.scheduling.classes import JobClass
from xce.domain.scheduling.compile import Compiled, waiting_classes
from xce.domain.scheduling.explain import PendRecord, Publisher, failure_of
from xce.domain.scheduling.placement import place, undo_placed


def differences(snapshot: Snapshot) -> Iterator[str]:
    """Yield how trying each pending job alone, on the state at the start, differs from the reference."""
    compiled, world = Compiled(snapshot), world_of(snapshot)
    core = compiled.core
    by_id = {job.id: job for job in world.waiting}
    classes = compiled.queue
    free_to_start = {job.id for job in world.waiting if not stage_one(world, job)}
    if core.ground.guarantees:
        core.waiting = waiting_classes(
            core, [pair for pair in classes if pair[0].id in free_to_start]
        )
    for job, job_class in classes:
        if job.id in free_to_start:
            for text in _of_job(core, job_class, world, by_id[job.id]):
                yield f"job {job.id}: {text}"


def _of_job(core: State, job_class: JobClass, world: World, job: PlainJob) -> Iterator[str]:
    before = {name: column[:] for name, column in core.free.items()}
    records: list[PendRecord] = []
    placed = place(core, job_class, job_class.least, records)
    holding = place_plainly(world, job, job.least)
    if (placed is None) != (holding is None):
        yield f"placed is {placed}, wanted {holding}"
        return
    debits = {
        (core.names[place_], name): was - now
        for name, column in before.items()
        for place_, (was, now) in enumerate(zip(column, core.free[name], strict=True))
        if was != now
    }
    if placed is None or holding is None:
        if debits:
            yield f"pending, and took {debits}"
        failure = failure_of(core, job_class, records)
        publisher = Publisher(core)
        publisher.publish(failure, job_class)
        (found,) = publisher.sets()
        said = [(one.kind, one.limit or one.resource, one.hosts) for one in found.reasons]
        plain = joined(world, measured(world, job, plain_failure(world, job)))
        wanted = [(one.kind, one.name, one.hosts) for one in plain]
        if said != wanted:
            yield f"reasons are {said}, wanted {wanted}"
        return
    names = {name for part in holding.parts for name in part.uses}
    wanted_debits = {
        (on, name): holding.on(on, name)
        for on in holding.hosts()
        for name in names
        if holding.on(on, name)
    }
    if debits != wanted_debits:
        yield f"took {debits}, wanted {wanted_debits}"
    tasks = [(core.names[on.place], on.tasks) for on in placed.hosts()]
    wanted_tasks = [
        (on, sum(part.tasks for part in holding.parts if part.host == on)) for on in holding.hosts()
    ]
    if tasks != wanted_tasks:
        yield f"tasks are {tasks}, wanted {wanted_tasks}"
    shared = {name: amount for name, amount in holding.shared.items() if amount}
    if placed.shared(core) != shared:
        yield f"shared is {placed.shared(core)}, wanted {shared}"
    undo_placed(core, placed)


@at_least(300)
@given(snapshots(EVERYTHING))
def test_ar_4_5_and_7_2_one_job_alone_on_a_random_cluster(snapshot: Snapshot) -> None:
    assert list(differences(snapshot)) == []


@at_least(150)
@given(snapshots(GANGS))
def test_ar_7_2_one_wide_job_alone_on_a_random_cluster(snapshot: Snapshot) -> None:
    assert list(differences(snapshot)) == []
