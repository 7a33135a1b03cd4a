"""A log that cannot be read stops the journey at the event, with its number (F26)."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.stories import START, Story
from xce.adapters.store.open import open_log
from xce.domain.errors import BrokenLogError
from xce.replay.time_travel import TimeTravel

DAYS_LATER = START.replace(day=9)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "log.db"
    with open_log(path) as log:
        Story(log).tell()
    return path


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount != 0


def test_f26_an_unknown_event_stops_with_its_name_and_position(path: Path) -> None:
    change(path, "UPDATE stored_events SET topic = 'xce.host.launched/2' WHERE position = 20")

    with open_log(path, read_only=True) as log:
        travel = TimeTravel(log)
        for position in (33, 20):
            with pytest.raises(
                BrokenLogError, match=r"event 20 .*'xce\.host\.launched/2'"
            ) as raised:
                travel.at(position)
            assert raised.value.position == 20
        assert travel.at(19).head.position == 19  # what was before it can be said


@pytest.mark.parametrize(
    ("statements", "position"),
    [
        (["UPDATE stored_events SET state = CAST('{' AS BLOB) WHERE position = 12"], 12),
        (["UPDATE stored_events SET state = CAST(replace(state, 'node-1', '') AS BLOB) WHERE position = 11"], 11),
        # One that others follow is missing: the first that does not fit is named.
        (["DELETE FROM stored_events WHERE position = 6"], 7),
        (["DELETE FROM stored_events WHERE topic = 'xce.instance.granted'"], 13),
        (["DELETE FROM stored_events WHERE topic = 'xce.shared.declared'"], 19),
        (["DELETE FROM stored_events WHERE position > 30"], 31),
        (["UPDATE stored_events SET digest = zeroblob(32) WHERE position = 33"], 33),
    ],
)  # fmt: skip
def test_damage_is_named_by_its_position(path: Path, statements: list[str], position: int) -> None:
    change(path, *statements)

    with open_log(path, read_only=True) as log, pytest.raises(BrokenLogError) as raised:
        TimeTravel(log).at(33)

    assert raised.value.position == position
    assert str(position) in str(raised.value)


def at_32(travel: TimeTravel) -> object:
    return travel.at(32)


def days_later(travel: TimeTravel) -> object:
    return travel.at_time(DAYS_LATER)


@pytest.mark.parametrize("ask", [at_32, days_later])
def test_a_log_that_lost_its_end_does_not_pass_for_a_shorter_one(
    path: Path, ask: Callable[[TimeTravel], object]
) -> None:
    change(path, "DELETE FROM stored_events WHERE position > 30")

    with open_log(path, read_only=True) as log, pytest.raises(BrokenLogError) as raised:
        ask(TimeTravel(log))

    assert raised.value.position is not None
    assert raised.value.position > 30


def test_a_hole_that_the_store_left_is_no_damage(path: Path) -> None:
    """Positions may have holes (PostgreSQL: a failed append burns numbers); the state there is that of the event before."""
    change(
        path,
        "UPDATE stored_events SET position = position + 100 WHERE position > 32",
        "UPDATE log_head SET position = 133",
    )

    with open_log(path, read_only=True) as log:
        travel = TimeTravel(log)

        assert travel.at(60).head.position == 32
        assert travel.at(60).document() == travel.at(32).document()
        assert travel.at(133).head.position == 133
        (event,) = [r.event for r in log.read(132)]
        assert travel.position_of(event.timestamp) == 133
        assert (
            travel.at_time(
                event.timestamp.replace(second=0, minute=event.timestamp.minute - 1)
            ).head.position
            <= 32
        )
