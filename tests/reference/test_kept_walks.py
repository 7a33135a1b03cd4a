"""A cluster goes on at random, by steps of many changes at once; kept sessions have the bytes of fresh ones.

Denser than the state machine beside it: long queues of few shapes, strict order more often than not, so that lines of jobs
are kept, blocked by another job, and broken up. ``XCE_KEPT_WALKS`` says how many walks there are.
"""

import os
from datetime import timedelta
from random import Random
from typing import Final

import pytest

from tests.reference.snapshots import NOW
from tests.reference.test_kept_sessions import started
from xce.domain.formats.delta import difference
from xce.domain.formats.snapshot import (
    Capacity,
    Catalog,
    Draw,
    Host,
    HostState,
    Limit,
    OrderMode,
    PendingJob,
    Queue,
    Settings,
    Shared,
    Snapshot,
    Tasks,
    Template,
)
from xce.domain.scheduling.kept import Scheduler
from xce.domain.scheduling.session import run_session

WALKS: Final = int(os.environ.get("XCE_KEPT_WALKS", "60"))
STEPS: Final = 14
WANTED: Final = (
    "",
    "",
    "rusage[mem=2]",
    "rusage[mem=9]",
    "select[fast]",
    "rusage[lic=1]",
    "rusage[mem=99]",
)
COMPOUND: Final = "1*{} + 1*{rusage[mem=2]}"


def job(chance: Random, number: int) -> PendingJob:
    """Return a job that waits."""
    resreq = chance.choice((*WANTED, COMPOUND))
    tasks = Tasks(min=chance.choice([1, 2, 3, 5]) if resreq == "" else 1)
    return PendingJob(
        id=f"j{number}",
        user=chance.choice(["u1", "u2", "u3"]),
        queue=chance.choice(["normal", "fast"]),
        priority=chance.choice([0, 0, 0, 1, 5]),
        submitted=chance.choice([None, NOW + timedelta(seconds=number)]),
        resreq=resreq,
        tasks=Tasks(min=2, max=2) if resreq == COMPOUND else tasks,
        held=chance.random() < 0.1,
        provision=chance.random() < 0.9,
        exclusive=chance.random() < 0.05,
        waits_for=() if chance.random() < 0.9 else (f"j{chance.randint(0, number)}",),
        run_limit=chance.choice([None, timedelta(hours=1)]),
    )


def supply(chance: Random) -> Catalog:
    """Return what can be obtained: mostly nothing, else of one template, or of two that share a capacity."""
    template = Template(id="t", provides={"slots": 4, "mem": 8}, allowed=chance.choice([0, 0, 1]))
    kind = chance.random()
    if kind < 0.6:
        return Catalog()
    if kind < 0.8:
        return Catalog(templates=(template,))
    draws = (Draw(capacity="c", most=2),)
    large = Template(id="u", provides={"slots": 8, "mem": 16}, allowed=3, draws=draws)
    return Catalog(
        templates=(template.model_copy(update={"allowed": 3, "draws": draws}), large),
        capacities=(Capacity(name="c", room=chance.choice([0, 1, 2, 3])),),
    )


def beginning(chance: Random) -> Snapshot:
    """Return a small cluster with some jobs."""
    limit = Limit(name="l", resource="slots", amount=chance.choice([0, 1, 2]), users=("u1",))
    return Snapshot(
        format="xce.snapshot/1",
        now=NOW,
        hosts=tuple(
            Host(
                name=f"h{number}",
                total={"slots": chance.choice([1, 2, 4]), "mem": chance.choice([4, 8, 16])},
                attributes={"fast": chance.random() < 0.5},
            )
            for number in range(chance.randint(1, 6))
        ),
        shared=(Shared(name="lic", total=chance.choice([0, 1, 2]), used_elsewhere=0),),
        queues=(Queue(name="normal"), Queue(name="fast", priority=chance.choice([0, 1]))),
        limits=(limit,) if chance.random() < 0.3 else (),
        pending=tuple(job(chance, number) for number in range(chance.randint(0, 12))),
        catalog=supply(chance),
        settings=Settings(
            order=chance.choice([OrderMode.STRICT, OrderMode.STRICT, OrderMode.SKIP]),
            catalog_pass_cap=chance.choice([100_000, 100_000, 3]),
        ),
    )


def next_of(chance: Random, before: Snapshot, number: int) -> Snapshot:
    """Return what the cluster is like a little later; new jobs have numbers from this one on."""
    pending = {each.id: each for each in before.pending}
    running = [*before.running]
    result = run_session(before)
    may_start = chance.random() < 0.7
    for allocation in result.allocations:
        if may_start and chance.random() < 0.9:
            running.append(started(pending.pop(allocation.job), result, before.now))
    if running and chance.random() < 0.5:
        running.pop(chance.randrange(len(running)))
    waiting = [*pending.values()]
    if waiting and chance.random() < 0.25:
        waiting.pop(chance.randrange(len(waiting)))
    if waiting and chance.random() < 0.3:
        at = chance.randrange(len(waiting))
        change = {"held": not waiting[at].held} if chance.random() < 0.5 else {"priority": 7}
        waiting[at] = waiting[at].model_copy(update=change)
    waiting += [job(chance, number + more) for more in range(chance.choice([0, 0, 1, 2, 4]))]
    hosts = [*before.hosts]
    if chance.random() < 0.15:
        at = chance.randrange(len(hosts))
        hosts[at] = hosts[at].model_copy(update={"state": chance.choice([*HostState])})
    shared = before.shared
    if chance.random() < 0.1:
        shared = (shared[0].model_copy(update={"total": chance.choice([0, 1, 2, 3])}),)
    return before.model_copy(
        update={
            "now": before.now + timedelta(seconds=30),
            "position": before.position + 1,
            "hosts": tuple(hosts),
            "shared": shared,
            "running": tuple(running),
            "pending": tuple(waiting),
            "catalog": _other(chance, before.catalog),
        }
    )


def _other(chance: Random, catalog: Catalog) -> Catalog:
    """Return the catalog a little later: mostly the same."""
    if chance.random() < 0.05:
        return Catalog()
    if catalog.capacities and chance.random() < 0.2:
        room = chance.choice([0, 1, 2])
        (capacity,) = catalog.capacities
        return catalog.model_copy(
            update={"capacities": (capacity.model_copy(update={"room": room}),)}
        )
    return catalog


@pytest.mark.parametrize("seed", range(WALKS))
def test_a_cluster_that_goes_on_at_random_has_the_sessions_of_fresh_snapshots(seed: int) -> None:
    chance = Random(seed)
    snapshot = beginning(chance)
    scheduler = Scheduler(snapshot)
    traced = chance.choice([0.15, 0.15, 0.9, 1.0])
    for step in range(STEPS):
        trace = chance.random() < traced
        kept, fresh = scheduler.run(trace=trace), run_session(snapshot, trace=trace)
        assert kept.to_json() == fresh.to_json()
        after = next_of(chance, snapshot, 100 * (step + 1))
        scheduler.advance(difference(snapshot, after))
        snapshot = after


@pytest.mark.parametrize("seed", range(WALKS))
def test_results_that_nobody_reads_change_nothing_of_those_that_are_read(seed: int) -> None:
    chance = Random(seed)
    snapshot = beginning(chance)
    scheduler = Scheduler(snapshot)
    for step in range(STEPS):
        outcome, fresh = scheduler.outcome(), run_session(snapshot)
        assert outcome.allocations == fresh.allocations
        assert outcome.countable == fresh.demand.countable
        if chance.random() < 0.4:
            assert outcome.result.to_json() == fresh.to_json()
        elif chance.random() < 0.2:
            assert (
                scheduler.run(trace=True).to_json() == run_session(snapshot, trace=True).to_json()
            )
        after = next_of(chance, snapshot, 100 * (step + 1))
        scheduler.advance(difference(snapshot, after))
        snapshot = after
