"""Snapshots of the projections: the state is equal with and without them, and nothing is trusted that does not fit."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.test_event_log import PLACES, place_of, request_of
from tests.stories import Story
from xce.adapters.store import snapshots
from xce.adapters.store.follower import Follower
from xce.adapters.store.log import StoredLog
from xce.adapters.store.open import MEMORY, open_log
from xce.adapters.store.recorder import NO_FENCING, NewRow, SnapshotRow
from xce.adapters.store.side_files import code_digest
from xce.adapters.store.snapshots import Snapshot, SnapshotKeeper, open_follower
from xce.domain.errors import TransientError, XceError
from xce.projections.all import Projections

STORIES = 6


@cache
def story() -> list[NewRow]:
    """Several stories, one after the other."""
    with open_log(MEMORY) as log:
        for number in range(STORIES):
            Story(log, f"-{number}").tell()
        return [NewRow(*row[1:5]) for row in log.recorder.rows()]


@pytest.fixture(params=[backend for backend in PLACES if backend != "memory"])
def place(request: pytest.FixtureRequest) -> str:
    return place_of(request.param, request)


@pytest.fixture
def log(place: str) -> Iterator[StoredLog]:
    with open_log(place) as opened:
        yield opened


def tell(log: StoredLog, upto: int) -> None:
    log.recorder.append(story()[log.head().position : upto], NO_FENCING)


def require_equal(follower: Follower, log: StoredLog) -> None:
    rebuilt = Projections.rebuild(log)
    assert follower.head == log.head()
    assert follower.projections.difference(rebuilt) is None
    assert follower.projections.keep() == rebuilt.keep()


def keep(log: StoredLog) -> XceError | None:
    """Keep a snapshot of the whole log; return why it could not be kept."""
    with SnapshotKeeper(log, follower := Follower(log)) as keeper:
        follower.catch_up()
    return keeper.problem


def kept(log: StoredLog) -> list[int]:
    return sorted({row.position for row in log.recorder.snapshot_rows(code_digest())})


@pytest.mark.parametrize("backend", [backend for backend in PLACES if backend != "memory"])
@settings(
    max_examples=6,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    steps=st.lists(st.tuples(st.integers(1, len(story())), st.booleans()), min_size=1, max_size=6)
)
def test_the_state_is_equal_with_and_without_snapshots(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, backend: str,
    steps: list[tuple[int, bool]],
) -> None:  # fmt: skip
    place = PLACES[backend](request, tmp_path_factory.mktemp("snapshots"))
    for upto, keeps in sorted(steps):
        with open_log(place) as log:
            if upto > log.head().position:
                tell(log, upto)
            follower = open_follower(log)
            require_equal(follower, log)
            if keeps:
                log.recorder.keep_snapshot(
                    Snapshot(follower.head, follower.projections.keep()).rows(code_digest())
                )
            require_equal(open_follower(log), log)


def test_only_what_is_behind_the_snapshot_is_read(
    log: StoredLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(log, 100)
    keep(log)
    tell(log, 120)
    read: list[int] = []
    rows = log.recorder.rows

    def watched(after: int = 0, upto: int | None = None) -> Iterator[object]:
        read.append(after)
        return rows(after, upto)

    monkeypatch.setattr(log.recorder, "rows", watched)

    follower = open_follower(log)

    assert (follower.position, read) == (120, [100])


def test_snapshots_are_kept_now_and_then_and_at_the_end(log: StoredLog) -> None:
    follower = open_follower(log)
    with SnapshotKeeper(log, follower, every=50) as keeper:
        for upto in range(10, 171, 10):
            tell(log, upto)
            follower.catch_up()
            keeper.see()
            keeper.close(keep=False)
        assert kept(log) == [100, 150]
    assert keeper.problem is None
    assert kept(log) == [150, 170]
    keeper.close()
    require_equal(open_follower(log), log)


def test_a_reader_uses_them_and_keeps_none(place: str) -> None:
    with open_log(place) as log:
        tell(log, 60)
        keep(log)
        tell(log, 70)
    with open_log(place, read_only=True) as log:
        follower = open_follower(log)
        require_equal(follower, log)
        assert keep(log) is not None
        assert kept(log) == [60]


def test_a_log_without_snapshots_is_folded_from_its_beginning(place: str) -> None:
    with open_log(place) as log:
        tell(log, 40)
    with open_log(place, read_only=True) as log:
        require_equal(open_follower(log), log)


Spoil = Callable[[SnapshotRow], SnapshotRow]
SPOILED: dict[str, Spoil] = {
    "state": lambda row: row._replace(kept=row.kept.replace(b"aws", b"awt")),
    "sum": lambda row: row._replace(sum=bytes(32)),
    "digest": lambda row: row._replace(digest=bytes(32)),
    "position": lambda row: row._replace(position=row.position - 1),
    "name": lambda row: row._replace(name=row.name + "x"),
    "code": lambda row: row._replace(code="of another release"),
}


@pytest.mark.parametrize("what", SPOILED)
def test_what_does_not_fit_is_not_used(log: StoredLog, what: str) -> None:
    tell(log, 60)
    follower = open_follower(log)
    rows = Snapshot(follower.head, follower.projections.keep()).rows(code_digest())
    log.recorder.keep_snapshot([SPOILED[what](row) for row in rows])
    tell(log, 70)

    require_equal(open_follower(log), log)


def test_a_snapshot_of_another_past_is_not_used(log: StoredLog) -> None:
    """A log set back to a backup, and gone on otherwise: the same position, another event."""
    tell(log, 59)
    log.append([request_of("another")])
    with open_log(MEMORY) as other:
        tell(other, 60)
        elsewhere = open_follower(other)
    rows = Snapshot(elsewhere.head, elsewhere.projections.keep()).rows(code_digest())
    log.recorder.keep_snapshot(rows)

    require_equal(open_follower(log), log)


def test_a_snapshot_with_a_part_too_few_is_not_used(log: StoredLog) -> None:
    tell(log, 60)
    follower = open_follower(log)
    snapshot = Snapshot(follower.head, follower.projections.keep())
    less = replace(snapshot, parts={k: v for k, v in snapshot.parts.items() if k != "totals"})
    log.recorder.keep_snapshot(less.rows(code_digest()))

    require_equal(open_follower(log), log)


def test_code_that_changed_folds_anew(log: StoredLog, monkeypatch: pytest.MonkeyPatch) -> None:
    tell(log, 60)
    keep(log)
    assert kept(log) == [60]
    monkeypatch.setattr(snapshots, "code_digest", lambda: "another")

    assert log.recorder.snapshot_rows("another") == []
    require_equal(open_follower(log), log)


def test_what_cannot_be_kept_is_said_and_harms_nobody(
    log: StoredLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object) -> None:
        raise TransientError("the disk is full")

    tell(log, 60)
    monkeypatch.setattr(log.recorder, "keep_snapshot", full)
    follower = Follower(log)
    with SnapshotKeeper(log, follower, every=10) as keeper:
        follower.catch_up()
        keeper.see()
    assert str(keeper.problem) == "the disk is full"
    require_equal(open_follower(log), log)


def test_a_log_in_memory_keeps_none() -> None:
    with open_log(MEMORY) as log:
        tell(log, 40)
        with SnapshotKeeper(log, follower := Follower(log)):
            follower.catch_up()
        require_equal(open_follower(log), log)


def test_snapshots_change_nothing_about_the_log(place: str, tmp_path: Path) -> None:
    with open_log(place) as log, open_log(MEMORY) as without:
        for upto in (30, 60):
            tell(log, upto)
            assert keep(log) is None
        tell(without, 60)
        assert log.head() == without.head()
