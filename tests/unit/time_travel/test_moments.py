"""Time travel: the state at a position or a time is the fold by hand, whatever shortens the way."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from tests.stories import START, Story
from tests.unit.aggregates import HOUR
from tests.unit.projections.moves import Move, moves, played
from xce.adapters.store.checkpoints import CheckpointFile
from xce.adapters.store.log import StoredLog
from xce.adapters.store.open import MEMORY, open_log
from xce.domain.errors import NotFoundError
from xce.domain.events import ids
from xce.domain.events.base import Aggregate
from xce.domain.events.document import document_of
from xce.domain.ports import EventLog
from xce.domain.provisioning.instance import Instance
from xce.projections.all import Projections
from xce.projections.document import document_of as views_of
from xce.replay.differences import difference, patched
from xce.replay.time_travel import Moment, TimeTravel

MINUTE = timedelta(minutes=1)


@pytest.fixture
def log() -> Iterator[StoredLog]:
    with open_log(MEMORY) as opened:
        Story(opened).tell()
        yield opened


def by_hand(log: EventLog, position: int) -> dict[str, Any]:
    aggregates: dict[str, Aggregate[Any]] = {}
    projections = Projections()
    now = None
    for recorded in log.read(0, position):
        event = recorded.event
        after = event.mutate(aggregates.get(event.originator_id))
        assert after is not None
        aggregates[event.originator_id] = after
        projections.apply([recorded])
        now = event.timestamp
    documents = {name: json.loads(document_of(a)) for name, a in aggregates.items()}
    return {**views_of(projections, now), "aggregates": documents}


def same(one: Moment, other: Moment) -> bool:
    return (
        one.document() == other.document()
        and list(one.aggregates()) == list(other.aggregates())
        and (one.head, one.now, one.events, one.states) == (other.head, other.now, other.events, other.states)
        and one.projections.difference(other.projections) is None
    )  # fmt: skip


# ---------------------------------------------------------------------- positions
def test_at_each_position_it_is_the_fold_by_hand(log: StoredLog) -> None:
    for position in range(log.head().position + 1):
        moment = TimeTravel(log).at(position)

        assert moment.document() == by_hand(log, position)
        assert moment.head.position == position
        assert sum(moment.events.values()) == position


def test_before_the_first_event_there_is_nothing(log: StoredLog) -> None:
    moment = TimeTravel(log).at(0)

    assert moment.document() == {
        "totals": {},
        "inventory": {"requests": {}, "instances": {}, "grants": {}, "ended": {}},
        "catalog": {},
        "spending": {},
        "spending_on_orphans": {},
        "leases": {},
        "drains": {},
        "orphans": {},
        "site": {},
        "aggregates": {},
    }
    assert (moment.now, moment.events, moment.states) == (None, {}, {})


def test_it_says_how_many_are_in_which_state(log: StoredLog) -> None:
    moment = TimeTravel(log).at(log.head().position)

    documents = moment.document()["aggregates"]
    assert moment.states == Counter(
        f"{ids.kind_of(name)} {document['state']}" for name, document in documents.items()
    )
    assert moment.states["instance returned"] == 1


def test_one_aggregate_or_one_kind_of_them(log: StoredLog) -> None:
    moment = TimeTravel(log).at(log.head().position)

    document = json.loads(moment.aggregate("request:R1") or b"")
    assert (document["id"], document["state"], document["provider"]) == (
        "request:R1",
        "complete",
        "aws",
    )
    assert moment.aggregate("request:R99") is None
    assert [name for name, _ in moment.aggregates("request")] == [
        "request:R1",
        "request:R2",
        "request:R3",
    ]


@pytest.mark.parametrize("position", [-1, 34, 1000])
def test_a_position_that_the_log_does_not_have_is_said(log: StoredLog, position: int) -> None:
    with pytest.raises(NotFoundError, match=f"story has no position {position}; it ends at 33"):
        TimeTravel(log, source="story").at(position)


def test_an_empty_log_has_no_moments() -> None:
    with open_log(MEMORY) as log:
        travel = TimeTravel(log, source="log.db")
        asks: tuple[Callable[[], object], ...] = (
            lambda: travel.at(0),
            lambda: travel.at_time(START),
            travel.head,
        )
        for ask in asks:
            with pytest.raises(NotFoundError, match=r"log\.db has no events"):
                ask()


# -------------------------------------------------------------------------- times
def test_at_a_time_it_is_the_state_after_the_last_event_that_is_not_later(log: StoredLog) -> None:
    travel = TimeTravel(log)
    stamps = [(r.position, r.event.timestamp) for r in log.read()]
    moments = {stamp for _, stamp in stamps}
    for when in [*moments, *(stamp + timedelta(seconds=1) for stamp in moments)]:
        wanted = max(position for position, stamp in stamps if stamp <= when)

        assert travel.position_of(when) == wanted
        moment = travel.at_time(when)
        assert (moment.head.position, moment.now) == (wanted, when)


def test_after_the_last_event_nothing_has_happened_but_costs_go_on(log: StoredLog) -> None:
    travel = TimeTravel(log)
    end = travel.at(log.head().position)
    later = travel.at_time(START + timedelta(days=2))

    assert later.head == end.head
    cost = [moment.views()["spending"]["aws"]["host"]["c4"]["cost"] for moment in (end, later)]
    assert float(cost[0]) < float(cost[1])


def test_a_time_before_the_log_is_said(log: StoredLog) -> None:
    with pytest.raises(
        NotFoundError, match=r"begins at 2026-03-01T10:01:00Z, after 2026-03-01T10:00:59Z"
    ):
        TimeTravel(log).at_time(START + timedelta(seconds=59))


def test_f27_two_replays_of_one_position_are_equal_and_know_no_other_time() -> None:
    """10:00 launched, 10:05 joined: whoever replays, and when, gets "joined", and costs up to the event."""
    with open_log(MEMORY) as log:
        Story(log).tell()
        first = TimeTravel(log).at(17)
        instance = log.get(Instance, ids.instance_id("I2"))
        instance.start_drain(why="idle", at=START + HOUR, by="provisioner/p2", epoch=2)
        log.append([instance])

        second = TimeTravel(log).at(17)

        assert same(first, second)
        (document,) = [json.loads(first.aggregate("instance:I2") or b"")]
        assert document["state"] == "joined"
        assert document["joined_at"] == "2026-03-01T10:05:00Z"
        (last,) = log.read(16, 17)
        assert first.now == last.event.timestamp < datetime(2026, 3, 1, 11, tzinfo=UTC)
        used = first.views()["spending"]["aws"]["host"]["c4"]["used_s"]
        granted = START + 4 * MINUTE
        assert used == 2 * (last.event.timestamp - granted).total_seconds()


# --------------------------------------------------------------------- properties
@given(moves)
@settings(max_examples=15)
def test_any_run_is_at_each_position_the_fold_by_hand(steps: list[Move]) -> None:
    log = played(steps).log
    travel = TimeTravel(log)
    for position in range(0, log.head().position + 1, 7):
        assert travel.at(position).document() == by_hand(log, position)


@given(moves)
@settings(max_examples=25)
def test_what_changed_applied_to_the_one_gives_the_other(steps: list[Move]) -> None:
    log = played(steps).log
    travel = TimeTravel(log)
    end = log.head().position
    for start, stop in ((0, end), (end // 3, end // 2), (end // 2, end), (end, end)):
        before, after = travel.at(start), travel.at(stop)

        found = difference(before, after)

        assert patched(before.document(), found.changes()) == after.document()
        assert sum(found.events.values()) == stop - start


@given(moves)
@settings(max_examples=25)
def test_with_checkpoints_it_is_what_it_is_without(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Move]
) -> None:
    log = played(steps).log
    path = tmp_path_factory.mktemp("run") / "log.checkpoints"
    plain = TimeTravel(log)
    end = log.head().position
    with CheckpointFile(log, str(path)) as file:
        travel = TimeTravel(log, file, every=9)
        for position in (end, end // 2, 9, 10, 8, 1, 0, end - 1, end):
            assert same(travel.at(position), plain.at(position))
        for start, stop in ((0, end), (end // 3, end // 2), (end // 2, end), (9, 18)):
            ends = travel.at(start), travel.at(stop)
            again = plain.at(start), plain.at(stop)
            assert list(difference(*ends).changes()) == list(difference(*again).changes())
        assert file.problem is None


def test_the_second_time_only_the_end_is_read(log: StoredLog, tmp_path: Path) -> None:
    class Watched:
        """The log, and where its readers began."""

        def __init__(self) -> None:
            self.begun: list[int] = []

        def __getattr__(self, name: str) -> Any:
            return getattr(log, name)

        def read(self, after: int = 0, upto: int | None = None) -> Any:
            self.begun.append(after)
            return log.read(after, upto)

    watched: Any = Watched()
    with CheckpointFile(log, str(tmp_path / "c")) as file:
        TimeTravel(watched, file, every=10).at(33)
        assert watched.begun == [0, 10, 20, 30]
        watched.begun.clear()

        TimeTravel(watched, file, every=10).at(33)
        assert watched.begun == [30]
