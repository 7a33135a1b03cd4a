"""The state kept between sessions: what makes it do something again, one thing at a time."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest

from tests.reference.snapshots import NOW
from xce.domain.errors import InputError
from xce.domain.formats.delta import Delta, difference
from xce.domain.formats.snapshot import (
    ArrayElement,
    Catalog,
    Group,
    Host,
    HostUse,
    Limit,
    LimitScope,
    PendingJob,
    Queue,
    Quota,
    RunningJob,
    Settings,
    Snapshot,
    Template,
)
from xce.domain.scheduling.kept import Scheduler
from xce.domain.scheduling.session import run_session

HOUR = timedelta(hours=1)
EMPTY = Snapshot(format="xce.snapshot/1", now=NOW)
SMALL = EMPTY.model_copy(
    update={
        "hosts": (
            Host(name="h1", total={"slots": 2, "mem": 8}),
            Host(name="h2", total={"slots": 1, "mem": 4}),
        ),
        "pending": (PendingJob(id="1", resreq="rusage[mem=6]"), PendingJob(id="2", resreq="")),
    }
)


def changed(snapshot: Snapshot, **changes: object) -> Snapshot:
    """Return a snapshot with some fields changed."""
    return snapshot.model_copy(update=changes)


def require_same(*snapshots: Snapshot) -> Scheduler:
    """Go through snapshots by their differences; each session has the bytes of a fresh one."""
    scheduler = Scheduler(snapshots[0])
    for before, after in zip((None, *snapshots), snapshots, strict=False):
        if before is not None:
            scheduler.advance(difference(before, after))
        assert scheduler.run().to_json() == run_session(after).to_json()
    return scheduler


def running(job: str, *hosts: str, **more: object) -> RunningJob:
    """Return a running job with a slot on each of some hosts."""
    uses = tuple(HostUse(name=name, uses={"slots": 1}) for name in hosts)
    return RunningJob(id=job, hosts=uses).model_copy(update=more)


def test_nothing_new_gives_the_result_of_before_at_the_new_position() -> None:
    later = changed(SMALL, now=NOW + HOUR, position=9)

    scheduler = require_same(SMALL, later, changed(later, position=11))

    assert scheduler.same == 2
    assert scheduler.run().position == 11


def test_a_trace_that_was_not_asked_for_is_not_there() -> None:
    scheduler = require_same(SMALL)

    assert scheduler.run(trace=True).to_json() == run_session(SMALL, trace=True).to_json()
    assert scheduler.run().trace is None


def test_a_job_that_ends_gives_its_room_back() -> None:
    busy = changed(SMALL, running=(running("8", "h1"), running("9", "h1", "h2")))

    require_same(busy, changed(busy, running=busy.running[:1]), changed(busy, running=()))


def test_a_host_of_which_too_much_is_used_is_warned_of_as_long_as_it_is() -> None:
    over = changed(SMALL, running=(running("8", "h2"), running("9", "h2"), running("10", "h1")))

    require_same(over, changed(over, running=over.running[1:]), changed(over, running=()))


def test_an_exclusive_job_finds_a_host_once_it_is_empty() -> None:
    wants_all = changed(
        SMALL, pending=(PendingJob(id="1", resreq="", exclusive=True),), hosts=SMALL.hosts[:1]
    )
    busy = changed(wants_all, running=(running("9", "h1"),))

    require_same(busy, wants_all, busy)


def test_an_exclusive_running_job_shuts_its_host_until_it_ends() -> None:
    alone = changed(SMALL, running=(running("9", "h1", exclusive=True),))

    require_same(SMALL, alone, SMALL, alone)


@pytest.mark.parametrize(
    "limit",
    [
        Limit(name="l", resource="hosts", amount=1, per=LimitScope.USER),
        Limit(name="l", resource="slots", amount=1, hosts=("h1",)),
        Limit(name="l", resource="jobs", amount=1, per=(LimitScope.USER, LimitScope.HOST)),
        Limit(name="l", resource="slots", amount=2, per=LimitScope.USER),
        Limit(name="l", resource="jobs", amount=1, per=LimitScope.QUEUE),
    ],
    ids=lambda limit: f"{limit.resource}, {limit.hosts or limit.per}",
)
def test_limits_count_what_runs_now(limit: Limit) -> None:
    limited = changed(SMALL, limits=(limit,))
    busy = changed(limited, running=(running("8", "h1"),))
    elsewhere = changed(limited, running=(running("9", "h2"),))

    require_same(limited, busy, elsewhere, limited, elsewhere)


def test_what_is_kept_for_a_group_counts_what_it_runs_now() -> None:
    kept = changed(
        SMALL,
        groups=(Group(name="g", users=("ann",)),),
        quotas=(Quota(name="q", group="g", resource="slots", guaranteed=3),),
        pending=(PendingJob(id="1", resreq=""), PendingJob(id="2", user="ann", resreq="")),
    )
    busy = changed(kept, running=(running("8", "h1", user="ann"), running("9", "h1", user="ann")))

    require_same(kept, busy, kept, changed(busy, running=busy.running[:1]))


def test_the_limit_of_an_array_is_the_smallest_that_an_element_states_now() -> None:
    def element(job: str, limit: int) -> PendingJob:
        return PendingJob(id=job, resreq="", array=ArrayElement(id="a", index=1, limit=limit))

    loose = changed(SMALL, pending=(element("1", 3), element("2", 3)))
    tight = changed(SMALL, pending=(*loose.pending, element("3", 1)))

    require_same(loose, tight, loose)


def test_a_pause_that_ends_with_time_alone_changes_the_demand() -> None:
    template = Template(
        id="t",
        provides={"slots": 4, "mem": 64},
        allowed=3,
        price_per_hour=Decimal(1),
        paused_until=NOW + HOUR,
    )
    waits = changed(
        EMPTY, pending=(PendingJob(id="1", resreq=""),), catalog=Catalog(templates=(template,))
    )

    scheduler = require_same(
        waits, changed(waits, now=NOW + HOUR / 2), changed(waits, now=NOW + HOUR)
    )

    assert scheduler.same == 1
    assert scheduler.run().demand.hosts


def test_a_host_becomes_idle_supply_with_time_alone() -> None:
    idle = changed(
        EMPTY,
        hosts=(Host(name="h", instance="i", idle_since=NOW),),
        settings=Settings(idle_host_after=HOUR),
    )

    scheduler = require_same(idle, changed(idle, now=NOW + HOUR / 2), changed(idle, now=NOW + HOUR))

    assert scheduler.same == 1
    assert scheduler.run().idle.hosts


def test_a_job_becomes_demand_with_time_alone() -> None:
    waits = changed(
        EMPTY,
        queues=(Queue(name="normal", demand_threshold=((1, 60),)),),
        pending=(PendingJob(id="1", resreq="", submitted=NOW),),
        catalog=Catalog(templates=(Template(id="t", provides={"slots": 4}, allowed=3),)),
    )

    scheduler = require_same(
        waits, changed(waits, now=NOW + HOUR / 2), changed(waits, now=NOW + HOUR)
    )

    assert scheduler.same == 1
    assert scheduler.run().demand.hosts


def test_a_host_that_must_go_takes_no_long_job_once_it_is_too_late() -> None:
    goes = changed(
        EMPTY,
        hosts=(Host(name="h", total={"slots": 1}, available_until=NOW + 2 * HOUR),),
        pending=(PendingJob(id="1", resreq="", run_limit=HOUR),),
    )

    require_same(goes, changed(goes, now=NOW + HOUR), changed(goes, now=NOW + HOUR * 3 / 2))


def test_time_that_goes_back_is_looked_at_anew() -> None:
    scheduler = require_same(SMALL, changed(SMALL, now=NOW - HOUR))

    assert scheduler.same == 0


def wrong_on(template: Template | None, *hosts: Host) -> Snapshot:
    """Return a snapshot with a job that compares ``gen`` with a number."""
    return changed(
        EMPTY,
        hosts=hosts,
        pending=(PendingJob(id="1", resreq="select[gen > 1]"),),
        catalog=Catalog(templates=() if template is None else (template,)),
    )


@pytest.mark.parametrize(
    "wrong",
    [
        wrong_on(None, Host(name="h", attributes={"gen": "two"})),
        wrong_on(Template(id="t", attributes={"gen": "two"})),
        changed(EMPTY, pending=(PendingJob(id="1", resreq="select[gen >"),)),
        changed(EMPTY, pending=(PendingJob(id="1", resreq="2*{}+1*{}"),)),
    ],
    ids=["host", "template", "text", "counts"],
)
def test_a_requirement_that_turns_out_wrong_is_told_as_a_fresh_session_tells_it(
    wrong: Snapshot,
) -> None:
    right = wrong_on(Template(id="t", attributes={"gen": 2}), Host(name="h"))
    scheduler = Scheduler(right)
    scheduler.run()

    scheduler.advance(difference(right, wrong))

    def told(run: Callable[[], object]) -> list[str]:
        with pytest.raises(InputError) as caught:
            run()
        return caught.value.lines()

    assert told(scheduler.run) == told(lambda: run_session(wrong))
    scheduler.advance(difference(wrong, right))
    assert scheduler.run().to_json() == run_session(right).to_json()


@pytest.mark.parametrize(
    "after",
    [
        changed(SMALL, running=(running("9", "h3"),)),
        changed(SMALL, running=(running("9", "h1", "h1"),)),
        changed(SMALL, running=(running("9", shared={"lic": 1}),)),
        changed(
            SMALL,
            running=(RunningJob(id="9", hosts=(HostUse(name="h1", uses={"gpu": 1}),)),),
        ),
        changed(SMALL, hosts=SMALL.hosts[:1], running=(running("9", "h2"),)),
    ],
    ids=["no such host", "a host twice", "no such licence", "no such resource", "a host that goes"],
)
def test_a_delta_that_contradicts_itself_is_refused_and_nothing_has_changed(
    after: Snapshot,
) -> None:
    scheduler = Scheduler(SMALL)

    with pytest.raises(InputError):
        scheduler.advance(difference(SMALL, after))

    assert scheduler.snapshot == SMALL
    assert scheduler.run().to_json() == run_session(SMALL).to_json()


def test_a_host_does_not_go_while_a_job_runs_on_it() -> None:
    busy = changed(SMALL, running=(running("9", "h2"),))
    scheduler = Scheduler(busy)
    gone = changed(busy, hosts=SMALL.hosts[:1])

    with pytest.raises(InputError, match="no host is named 'h2'"):
        scheduler.advance(difference(busy, gone))

    scheduler.advance(difference(busy, changed(gone, running=())))
    assert scheduler.run().to_json() == run_session(changed(gone, running=())).to_json()


def test_a_delta_of_another_snapshot_is_refused() -> None:
    scheduler = Scheduler(SMALL)

    with pytest.raises(InputError, match="base_position"):
        scheduler.advance(Delta(format="xce.delta/1", base_now=NOW, base_position=4, now=NOW))
