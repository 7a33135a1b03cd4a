"""Waiting jobs in groups: what goes with the number of groups only, and what parts groups and classes."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.snapshots import NOW
from xce.domain.formats.delta import Changes, Delta, difference
from xce.domain.formats.snapshot import (
    Catalog,
    Host,
    HostUse,
    Limit,
    OrderMode,
    PendingJob,
    RunningJob,
    Settings,
    Shared,
    Snapshot,
    Tasks,
    Template,
)
from xce.domain.scheduling import groups, placement
from xce.domain.scheduling.compile import Compiled
from xce.domain.scheduling.groups import Place
from xce.domain.scheduling.in_order import InOrder
from xce.domain.scheduling.kept import Scheduler
from xce.domain.scheduling.session import run_session

SHAPES = ("", "rusage[mem=2]", "rusage[mem=8]", "rusage[slots=2]")


def waiting(number: int, **more: Any) -> PendingJob:
    """Return a job that waits; jobs of four shapes and three users take turns."""
    job = PendingJob(
        id=f"j{number}",
        user=f"u{number % 3}",
        submitted=NOW + timedelta(seconds=number),
        resreq=SHAPES[number % len(SHAPES)],
    )
    return job.model_copy(update=more)


def full(jobs: int, **more: Any) -> Snapshot:
    """Return a cluster without a free slot."""
    return Snapshot(
        format="xce.snapshot/1",
        now=NOW,
        hosts=(
            Host(name="h1", total={"slots": 1, "mem": 9}),
            Host(name="h2", total={"slots": 3, "mem": 9}),
        ),
        running=(
            RunningJob(id="r1", hosts=(HostUse(name="h1", uses={"slots": 1}),)),
            RunningJob(id="r2", hosts=(HostUse(name="h2", uses={"slots": 3}),)),
        ),
        pending=tuple(waiting(number) for number in range(jobs)),
    ).model_copy(update=more)


def gone_on(scheduler: Scheduler, **changes: object) -> Snapshot:
    """Go on to a snapshot with these changes, and return it."""
    after = scheduler.snapshot.model_copy(update=changes)
    scheduler.advance(difference(scheduler.snapshot, after))
    return after


def tries_of(monkeypatch: pytest.MonkeyPatch, jobs: int) -> int:
    """Return how many jobs are tried when a slot of the larger host is free and so many wait."""
    tried: list[object] = []
    start: Callable[..., object] = placement.start

    def counted(core: Any, job: Any) -> object:
        tried.append(job)
        return start(core, job)

    scheduler = Scheduler(full(jobs))
    scheduler.run()
    monkeypatch.setattr(groups, "start", counted)
    use = HostUse(name="h2", uses={"slots": 2})
    after = gone_on(
        scheduler,
        running=(*scheduler.snapshot.running[:1], RunningJob(id="r2", hosts=(use,))),
    )
    assert scheduler.run().to_json() == run_session(after).to_json()
    monkeypatch.undo()
    return len(tried)


def test_how_many_jobs_are_tried_goes_with_the_shapes_and_not_with_the_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few, many = tries_of(monkeypatch, 20), tries_of(monkeypatch, 200)

    assert few == many <= len(SHAPES)


def test_nobody_is_tried_where_all_hosts_together_have_too_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(core: object, job: object) -> object:
        raise AssertionError("it was tried")

    scheduler = Scheduler(full(20))
    monkeypatch.setattr(groups, "start", never)

    assert scheduler.run().to_json() == run_session(full(20)).to_json()


@pytest.mark.parametrize("order", OrderMode)
def test_what_is_written_of_a_job_is_kept_until_something_else_is_said(order: OrderMode) -> None:
    scheduler = Scheduler(full(20, settings=Settings(order=order)))
    before = scheduler.run()

    after = gone_on(scheduler, pending=(*scheduler.snapshot.pending, waiting(20)))
    result = scheduler.run()

    assert result.to_json() == run_session(after).to_json()
    for old, new in zip(before.pending, result.pending, strict=False):
        assert new is old
    for told, still in zip(before.demand.not_counted, result.demand.not_counted, strict=False):
        assert still is told


def test_a_job_that_was_to_start_and_did_not_is_written_when_it_waits_again() -> None:
    snapshot = full(8, running=())
    scheduler = Scheduler(snapshot)
    started = {allocation.job for allocation in scheduler.run().allocations}

    after = gone_on(scheduler, running=full(0).running)

    assert started
    assert scheduler.run().to_json() == run_session(after).to_json()
    assert started <= {entry.job for entry in scheduler.run().pending}


def test_in_strict_order_a_group_says_different_things_before_and_behind_the_blocked_job() -> None:
    limit = Limit(name="two", resource="slots", amount=0, users=("u1",))
    snapshot = full(24, limits=(limit,), settings=Settings(order=OrderMode.STRICT))
    more = tuple(waiting(number, priority=2, user="u1") for number in range(100, 103))
    snapshot = snapshot.model_copy(update={"pending": (*snapshot.pending, *more)})
    scheduler = Scheduler(snapshot)
    assert scheduler.run().to_json() == run_session(snapshot).to_json()

    after = gone_on(scheduler, pending=scheduler.snapshot.pending[2:])

    assert scheduler.run().to_json() == run_session(after).to_json()


def test_jobs_that_nothing_can_come_for_and_jobs_that_can_never_run_are_told_apart() -> None:
    never = waiting(50, resreq="rusage[mem=99]")
    opted_out = waiting(51, provision=False)
    held = waiting(52, held=True)
    snapshot = full(6, catalog=Catalog(templates=(Template(id="t", provides={"slots": 4}),)))
    snapshot = snapshot.model_copy(update={"pending": (never, *snapshot.pending, opted_out, held)})
    scheduler = Scheduler(snapshot)

    result = scheduler.run()

    assert result.to_json() == run_session(snapshot).to_json()
    assert [entry.job for entry in result.demand.impossible] == ["j50"]
    whys = {entry.job: entry.why for entry in result.demand.not_counted}
    assert (whys["j51"], whys["j52"]) == ("opted out", "held")


def classes(*jobs: PendingJob, **more: Any) -> list[object]:
    """Return the class of each job."""
    return [job_class for _, job_class in Compiled(full(0, pending=jobs, **more)).queue]


def test_whose_a_job_is_parts_no_classes_where_nobody_asks() -> None:
    one = waiting(0)
    other = waiting(4, project="p", queue="q", run_limit=timedelta(hours=1))

    first, second = classes(one, other)

    assert first is second


@pytest.mark.parametrize(
    "more",
    [
        {"limits": (Limit(name="l", resource="slots", amount=9, users=("u0",)),)},
        {"hosts": (Host(name="h1", total={"slots": 1}, exclusive_to="u0"),), "running": ()},
    ],
    ids=["limits", "somebody's host"],
)
def test_whose_a_job_is_parts_classes_where_somebody_asks(more: dict[str, Any]) -> None:
    first, second = classes(waiting(0), waiting(4), **more)

    assert first is not second


def test_jobs_that_take_shared_resources_stay_apart() -> None:
    shared = (Shared(name="lic", total=1, used_elsewhere=0),)
    jobs = [waiting(number, resreq="rusage[lic=1]") for number in range(2)]

    first, second = classes(*jobs, shared=shared)

    assert first is not second


def test_tasks_part_classes() -> None:
    first, second = classes(waiting(0), waiting(4, tasks=Tasks(min=2)))

    assert first is not second


STRICT = Settings(order=OrderMode.STRICT)
in_both_orders = pytest.mark.parametrize("settings", [STRICT, Settings()], ids=["strict", "skip"])


@in_both_orders
def test_what_waits_for_hosts_is_written_when_somebody_reads_it(settings: Settings) -> None:
    snapshot = full(20, settings=settings)
    outcome = Scheduler(snapshot).outcome()
    assert not outcome.is_written

    result = outcome.result

    assert outcome.is_written
    assert outcome.result is result
    assert result.to_json() == run_session(snapshot).to_json()


@in_both_orders
def test_a_result_that_was_not_read_before_the_next_delta_cannot_be_read_any_more(
    settings: Settings,
) -> None:
    scheduler = Scheduler(full(20, settings=settings))
    outcome = scheduler.outcome()

    gone_on(scheduler, pending=scheduler.snapshot.pending[1:])

    with pytest.raises(AssertionError, match="before the next delta"):
        _ = outcome.result


@in_both_orders
def test_a_result_that_was_read_stays(
    settings: Settings,
) -> None:
    scheduler = Scheduler(full(20, settings=settings))
    outcome = scheduler.outcome()
    written = outcome.result.to_json()

    gone_on(scheduler, pending=scheduler.snapshot.pending[1:])

    assert outcome.result.to_json() == written


@in_both_orders
def test_a_result_may_be_read_first_when_only_the_position_has_gone_on(
    settings: Settings,
) -> None:
    scheduler = Scheduler(full(20, settings=settings))
    first = scheduler.outcome()

    after = gone_on(scheduler, position=scheduler.snapshot.position + 3)
    second = scheduler.outcome()

    assert not first.is_written
    assert second.result.to_json() == run_session(after).to_json()
    assert scheduler.outcome() is second


@in_both_orders
def test_jobs_that_come_and_go_while_nobody_reads_are_not_remembered(settings: Settings) -> None:
    after = full(4, settings=settings)
    scheduler = Scheduler(after)
    scheduler.run()
    for number in range(100, 2_700):
        kept = scheduler.snapshot.pending[:4]
        after = gone_on(scheduler, pending=(*kept, waiting(4 * number)))
        scheduler.outcome()

    queue = scheduler._queue  # pyright: ignore[reportPrivateUsage]
    assert len(queue.joined) < 1_100
    assert max(len(group.unsaid) for group in queue.groups) < 1_100
    assert max(len(group.untold) for group in queue.groups) < 1_100
    assert scheduler.run().to_json() == run_session(after).to_json()


@pytest.mark.parametrize(("settings", "looks"), [(STRICT, 2), (Settings(), 0)])
def test_a_session_that_nobody_reads_looks_at_no_job_behind_those_that_wait_in_front(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, looks: int
) -> None:
    scheduler = Scheduler(full(100, settings=settings))
    scheduler.run()
    seen: list[Place] = []
    places: Callable[[InOrder], Iterator[Place]] = InOrder.__iter__

    def counted(queue: InOrder) -> Iterator[Place]:
        for place in places(queue):
            seen.append(place)
            yield place

    monkeypatch.setattr(InOrder, "__iter__", counted)
    scheduler.advance(
        Delta(
            format="xce.delta/1",
            base_now=NOW,
            now=NOW,
            running=Changes[RunningJob](removed=("r1",)),
            pending=Changes[PendingJob](removed=("j9",), put=(waiting(100),)),
        )
    )

    outcome = scheduler.outcome()

    assert [each.job for each in outcome.allocations] == ["j0"]
    assert len(seen) == looks
    assert len(outcome.result.pending) == 99
    assert len(seen) > 99


def test_a_job_is_written_again_that_would_have_started_when_nobody_read() -> None:
    scheduler = Scheduler(full(8))
    scheduler.run()
    gone_on(scheduler, running=scheduler.snapshot.running[1:])
    assert scheduler.outcome().allocations

    after = gone_on(scheduler, running=full(8).running)

    assert scheduler.run().to_json() == run_session(after).to_json()


@given(st.lists(st.integers(0, 5_000), unique=True, max_size=400), st.integers(0, 3_000))
def test_jobs_stay_in_order_as_they_come_and_go(numbers: list[int], more: int) -> None:
    job = waiting(0)
    places = {number: Place(job, (0, number, NOW, ()), None) for number in {*numbers, *range(more)}}
    first, later = numbers[::2], numbers[1::2]
    queue = InOrder(places[number] for number in first)

    for number in later:
        queue.put(places[number])
    for number in range(more):
        if number not in numbers:
            queue.put(places[number])
    for number in first:
        queue.remove(places[number])

    left = sorted({*range(more), *later} - {*first})
    assert [place.order[1] for place in queue] == left
    assert len(queue) == len(left)


def test_a_held_job_that_comes_to_others_is_not_said_to_stand_in_the_line() -> None:
    line = (waiting(0), waiting(4, held=True), waiting(8))
    scheduler = Scheduler(full(4, settings=STRICT, pending=line))
    scheduler.run()

    after = gone_on(scheduler, pending=(*line, waiting(12, held=True)))

    assert scheduler.run().to_json() == run_session(after).to_json()


def test_a_trace_names_the_limits_that_stop_a_job_in_the_order_of_their_names() -> None:
    limits = tuple(Limit(name=f"limit {n}", resource="slots", amount=0) for n in (10, 2, 1))

    traces = [
        run_session(full(1, running=(), limits=order), trace=True).trace or ()
        for order in (limits, limits[::-1])
    ]

    assert traces[0] == traces[1]
    assert [line.split(" (")[0] for line in traces[0][:3]] == [
        f"job j0: limit limit {number}" for number in (1, 2, 10)
    ]
