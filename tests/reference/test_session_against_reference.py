"""The session against the plain reference on random small clusters, and D6 judged by the reference allocator.

``HYPOTHESIS_PROFILE=soak`` runs thousands of clusters.
"""

from hypothesis import given, settings

from tests.reference.comparison import differences
from tests.reference.crowds import crowds
from tests.reference.snapshots import EVERYTHING, GANGS, WITHOUT_SPANS, snapshots
from xce.domain.formats.snapshot import Catalog, Snapshot
from xce.domain.scheduling.session import run_session

a_tenth = settings(max_examples=settings().max_examples // 10)
twice_as_many = settings(max_examples=2 * settings().max_examples)


@twice_as_many
@given(snapshots(WITHOUT_SPANS))
def test_small_random_snapshots_without_spans(snapshot: Snapshot) -> None:
    assert differences(snapshot, run_session(snapshot)) == []


@twice_as_many
@given(snapshots(EVERYTHING))
def test_small_random_snapshots_with_everything(snapshot: Snapshot) -> None:
    assert differences(snapshot, run_session(snapshot)) == []


@twice_as_many
@given(snapshots(GANGS))
def test_small_random_snapshots_with_wide_jobs(snapshot: Snapshot) -> None:
    assert differences(snapshot, run_session(snapshot)) == []


@a_tenth
@given(crowds())
def test_bursts_of_many_jobs(snapshot: Snapshot) -> None:
    assert differences(snapshot, run_session(snapshot)) == []


@given(snapshots(EVERYTHING))
def test_the_catalog_changes_no_allocation_and_no_main_reason(snapshot: Snapshot) -> None:
    with_catalog = run_session(snapshot)

    without = run_session(snapshot.model_copy(update={"catalog": Catalog()}))

    assert without.allocations == with_catalog.allocations
    assert [(p.job, p.reason) for p in without.pending] == [
        (p.job, p.reason) for p in with_catalog.pending
    ]
    assert without.reason_sets == with_catalog.reason_sets
    assert without.demand.hosts == ()


@given(snapshots(EVERYTHING))
def test_the_same_snapshot_gives_the_same_bytes_whatever_the_order_of_its_lists(
    snapshot: Snapshot,
) -> None:
    read_back = Snapshot.from_json(snapshot.to_json())
    turned = snapshot.model_copy(
        update={
            "hosts": snapshot.hosts[::-1],
            "pending": snapshot.pending[::-1],
            "running": snapshot.running[::-1],
            "shared": snapshot.shared[::-1],
            "queues": snapshot.queues[::-1],
            "catalog": snapshot.catalog.model_copy(
                update={"templates": snapshot.catalog.templates[::-1]}
            ),
        }
    )

    first = run_session(snapshot).to_json()

    assert run_session(read_back).to_json() == first
    assert run_session(turned).to_json() == first
