"""What is different between two snapshots, and what a delta makes of a snapshot."""

import json
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given

from tests.reference.snapshots import EVERYTHING, NOW, snapshots
from xce.domain.errors import InputError
from xce.domain.formats.delta import Changes, Delta, apply, difference
from xce.domain.formats.snapshot import (
    Catalog,
    Host,
    HostUse,
    PendingJob,
    RunningJob,
    Shared,
    Snapshot,
    Template,
)

EMPTY = Snapshot(format="xce.snapshot/1", now=NOW)
TWO_JOBS = EMPTY.model_copy(
    update={"pending": (PendingJob(id="1", resreq=""), PendingJob(id="2", resreq=""))}
)
DELTA = Delta(format="xce.delta/1", base_now=NOW, now=NOW)


@given(snapshots(EVERYTHING), snapshots(EVERYTHING))
def test_the_difference_of_two_snapshots_makes_one_of_the_other_to_the_byte(
    before: Snapshot, after: Snapshot
) -> None:
    delta = difference(before, after)

    assert apply(before, delta).to_json() == after.to_json()
    assert apply(before, Delta.from_json(delta.to_json())).to_json() == after.to_json()


@given(snapshots(EVERYTHING))
def test_lists_in_another_order_are_a_difference(snapshot: Snapshot) -> None:
    turned = snapshot.model_copy(
        update={"hosts": snapshot.hosts[::-1], "pending": snapshot.pending[::-1]}
    )

    assert apply(snapshot, difference(snapshot, turned)).to_json() == turned.to_json()


@given(snapshots(EVERYTHING))
def test_a_snapshot_and_its_copy_have_no_difference(snapshot: Snapshot) -> None:
    copy = Snapshot.from_json(snapshot.to_json())

    text = difference(snapshot, copy).to_json()

    assert set(json.loads(text)) <= {"format", "base_now", "base_position", "now", "position"}


def test_a_delta_holds_only_what_is_different_and_no_default() -> None:
    later = NOW + timedelta(seconds=30)
    after = TWO_JOBS.model_copy(
        update={
            "now": later,
            "pending": (PendingJob(id="2", resreq="", priority=5), PendingJob(id="3", resreq="")),
        }
    )

    delta = difference(TWO_JOBS, after)

    assert json.loads(delta.to_json()) == {
        "format": "xce.delta/1",
        "base_now": "2026-03-01T10:00:00Z",
        "now": "2026-03-01T10:00:30Z",
        "pending": {"removed": ["1"], "put": [{"id": "2", "priority": 5}, {"id": "3"}]},
    }


def test_values_that_are_equal_and_written_differently_are_different() -> None:
    flag = EMPTY.model_copy(update={"hosts": (Host(name="h", attributes={"gpu": True}),)})
    number = EMPTY.model_copy(update={"hosts": (Host(name="h", attributes={"gpu": 1}),)})
    dear = EMPTY.model_copy(
        update={"catalog": Catalog(templates=(Template(id="t", price_per_hour=Decimal("0.1")),))}
    )
    as_dear = EMPTY.model_copy(
        update={"catalog": Catalog(templates=(Template(id="t", price_per_hour=Decimal("0.10")),))}
    )

    assert apply(flag, difference(flag, number)).to_json() == number.to_json()
    assert apply(dear, difference(dear, as_dear)).to_json() == as_dear.to_json()


def test_an_item_that_goes_and_comes_in_one_delta_is_last() -> None:
    moved = DELTA.model_copy(
        update={
            "pending": Changes[PendingJob](removed=("1",), put=(PendingJob(id="1", resreq=""),))
        }
    )

    assert [job.id for job in apply(TWO_JOBS, moved).pending] == ["2", "1"]


def refused(snapshot: Snapshot, delta: Delta) -> list[str]:
    """Return what is said of a delta that does not fit."""
    with pytest.raises(InputError) as caught:
        apply(snapshot, delta)
    return [str(problem) for problem in caught.value.problems]


def test_a_delta_of_another_snapshot_is_refused() -> None:
    other = DELTA.model_copy(update={"base_now": NOW - timedelta(hours=1), "base_position": 3})

    assert refused(EMPTY, other) == [
        "base_now: belongs to the snapshot of 2026-03-01T09:00:00+00:00, not to that of 2026-03-01T10:00:00+00:00",
        "base_position: belongs to the snapshot at 3, not to that at 0",
    ]


def test_what_is_removed_must_be_there() -> None:
    delta = DELTA.model_copy(update={"pending": Changes[PendingJob](removed=("2", "7"))})

    assert refused(TWO_JOBS, delta) == ["pending.removed[1]: '7' is not there"]


def test_an_order_names_every_item_once() -> None:
    delta = DELTA.model_copy(update={"pending": Changes[PendingJob](order=("2", "7"))})

    assert refused(TWO_JOBS, delta) == ["pending.order: '1' is either not there or left out"]


def test_a_contradiction_has_the_path_of_the_delta_that_says_it() -> None:
    job = RunningJob(id="9", hosts=(HostUse(name="h1"),))
    delta = DELTA.model_copy(
        update={
            "shared": Changes[Shared](put=(Shared(name="lic", total=3, borrowed=4),)),
            "running": Changes[RunningJob](put=(job,)),
        }
    )

    assert refused(EMPTY, delta) == [
        "shared.put[0].borrowed: borrowed 4 is more than total 3",
        "running.put[0].hosts[0].name: no host is named 'h1'",
    ]


def test_a_contradiction_that_the_delta_brings_about_elsewhere_names_the_snapshot() -> None:
    busy = EMPTY.model_copy(
        update={
            "hosts": (Host(name="h1", total={"slots": 1}),),
            "running": (RunningJob(id="9", hosts=(HostUse(name="h1"),)),),
        }
    )
    delta = DELTA.model_copy(update={"hosts": Changes[Host](removed=("h1",))})

    assert refused(busy, delta) == [
        "running[0].hosts[0].name: of the snapshot that it makes: no host is named 'h1'"
    ]


def test_a_document_that_is_no_delta_is_refused_with_paths() -> None:
    text = json.dumps(
        {
            "format": "xce.delta/1",
            "base_now": "2026-03-01T10:00:00Z",
            "now": "2026-03-01T10:00:30Z",
            "pending": {"put": [{"id": "1", "priority": "high"}]},
            "hosts": {"gone": []},
        }
    )

    with pytest.raises(InputError) as caught:
        Delta.from_json(text, "d.json")

    assert caught.value.lines() == [
        "d.json: hosts.gone: unknown field",
        "d.json: pending.put[0].priority: Input should be a valid integer, found 'high'",
    ]


def test_a_document_that_names_an_item_twice_is_refused() -> None:
    text = json.dumps(
        {
            "format": "xce.delta/1",
            "base_now": "2026-03-01T10:00:00Z",
            "now": "2026-03-01T10:00:30Z",
            "pending": {"put": [{"id": "1"}, {"id": "1"}], "removed": ["4", "4"]},
            "catalog": {"in_flight": {"hosts": {"order": ["a", "a"]}}},
        }
    )

    with pytest.raises(InputError) as caught:
        Delta.from_json(text, "d.json")

    assert caught.value.lines() == [
        "d.json: pending.removed[1]: '4' is there twice",
        "d.json: pending.put[1]: '1' is there twice",
        "d.json: catalog.in_flight.hosts.order[1]: 'a' is there twice",
    ]
