"""The session against the plain reference on random small clusters, and D6 judged by the reference allocator.

``HYPOTHESIS_PROFILE=acceptance`` runs 2,000 clusters with each, always the same; ``soak`` as many, others each time.
"""

import json
from random import Random
from typing import cast
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.comparison import differences
from tests.reference.crowds import crowds
from tests.reference.snapshots import EVERYTHING, GANGS, WITHOUT_SPANS, snapshots
from xce.domain.formats.snapshot import Catalog, Snapshot
from xce.domain.scheduling.session import run_session


def at_least(examples: int) -> settings:
    """Return settings for so many examples, or as many as the profile says."""
    return settings(max_examples=max(examples, settings().max_examples))


bursts = settings(max_examples=max(30, settings().max_examples // 10))


@at_least(300)
@given(snapshots(WITHOUT_SPANS))
def test_small_random_snapshots_without_spans(snapshot: Snapshot) -> None:
    assert differences(snapshot, run_session(snapshot)) == []


@at_least(500)
@given(snapshots(EVERYTHING))
def test_small_random_snapshots_with_everything(snapshot: Snapshot) -> None:
    assert differences(snapshot, run_session(snapshot)) == []


@at_least(300)
@given(snapshots(GANGS))
def test_small_random_snapshots_with_wide_jobs(snapshot: Snapshot) -> None:
    assert differences(snapshot, run_session(snapshot)) == []


@settings(max_examples=max(60, settings().max_examples // 10))
@given(snapshots(EVERYTHING))
def test_hosts_passed_over_in_stretches_change_nothing(snapshot: Snapshot) -> None:
    # Given stretches of two hosts, so that small clusters have some,
    with (
        patch.multiple("xce.domain.cluster.stretches", _SHIFT=1, _SIZE=2, _LONG=2),
        patch("xce.domain.cluster.state._FEW", 0),
    ):
        result = run_session(snapshot)

    assert differences(snapshot, result) == []


@bursts
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


@given(snapshots(EVERYTHING), st.randoms(use_true_random=False))
def test_the_same_snapshot_gives_the_same_bytes_whatever_the_order_of_its_lists(
    snapshot: Snapshot, chance: Random
) -> None:
    document = json.loads(snapshot.to_json())
    shuffled = json.dumps(_shuffled(document, chance))

    first = run_session(snapshot, trace=True).to_json()

    assert run_session(Snapshot.from_json(json.dumps(document)), trace=True).to_json() == first
    assert run_session(Snapshot.from_json(shuffled), trace=True).to_json() == first


def _shuffled(value: object, chance: Random) -> object:
    """Return a document with every list and every object in another order; pairs of numbers stay pairs, and draws have an order."""
    if isinstance(value, dict):
        entries = list(cast(dict[str, object], value).items())
        chance.shuffle(entries)
        return {
            name: entry if name == "draws" else _shuffled(entry, chance) for name, entry in entries
        }
    if isinstance(value, list):
        items = [_shuffled(entry, chance) for entry in cast(list[object], value)]
        if not all(isinstance(entry, int) for entry in items):
            chance.shuffle(items)
        return items
    return value
