"""Somebody changes a log by hand: verification names the event, for each way of doing it."""

import json
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.stories import Story
from xce.adapters.cli import exit_codes
from xce.adapters.cli.audit import app
from xce.adapters.store.open import open_log
from xce.adapters.store.recorder import NewRow, Row, chain
from xce.adapters.store.verify import verify
from xce.domain.events.digest import GENESIS
from xce.domain.events.recorded import Head
from xce.projections.invariants.report import Report

#: Positions of the story's events (see tests/stories.py).
INTENDED, GRANTED, JOINED, BORROWED, LAST = 6, 11, 13, 19, 33


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("story") / "log.db"
    with open_log(path) as log:
        Story(log).tell()
        assert log.head().position == LAST
    return path.read_bytes()


@pytest.fixture
def path(story: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "log.db"
    path.write_bytes(story)
    return path


def tamper(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def report_of(path: Path, anchor: Head | None = None) -> Report:
    with open_log(path, read_only=True) as log:
        return verify(log, anchor=anchor)


@dataclass(frozen=True)
class Crime:
    """What was done, which check finds it, and where."""

    name: str
    statements: tuple[str, ...]
    check: str
    position: int | None
    message: str


def state(position: int, old: str, new: str) -> str:
    return (
        f"UPDATE stored_events SET state = CAST(replace(CAST(state AS TEXT), '{old}', '{new}') AS BLOB)"
        f" WHERE position = {position}"
    )


SWAP = "UPDATE stored_events SET position = CASE position WHEN {0} THEN -{1} ELSE -{0} END WHERE position IN ({0}, {1})"
BACK = "UPDATE stored_events SET position = -position WHERE position < 0"

CRIMES = [
    Crime("an event in the middle is deleted", (f"DELETE FROM stored_events WHERE position = {JOINED}",),
          "chain", JOINED, "event 13 missing: the next one is 14"),
    Crime("the first event is deleted", ("DELETE FROM stored_events WHERE position = 1",),
          "chain", 1, "event 1 missing"),
    Crime("several events are deleted", ("DELETE FROM stored_events WHERE position BETWEEN 10 AND 12",),
          "chain", 10, "events 10 to 12 missing"),
    Crime("the last event is deleted", (f"DELETE FROM stored_events WHERE position = {LAST}",),
          "head", LAST, "the last 1 events are missing"),
    Crime("the last events are deleted", (f"DELETE FROM stored_events WHERE position > {JOINED}",),
          "head", JOINED + 1, "the last 20 events are missing"),
    Crime("all events are deleted", ("DELETE FROM stored_events",), "head", 1, "the last 33 events are missing"),
    Crime("the head is deleted", ("DELETE FROM log_head",), "head", None, "the row of the head is missing"),
    Crime("the head's position is lowered", ("UPDATE log_head SET position = 30",),
          "head", 31, "there are events behind the head 30"),
    Crime("the head's position is raised", ("UPDATE log_head SET position = 40",),
          "head", LAST + 1, "the last 7 events are missing"),
    Crime("the head's digest is changed", ("UPDATE log_head SET digest = zeroblob(32)",),
          "head", LAST, "its digest is not that of the last event"),
    Crime("an amount is changed", (state(BORROWED, '"amount":6', '"amount":9'),), "chain", BORROWED, "was changed"),
    Crime("an amount of the first event is changed", (state(1, '"capacity":5', '"capacity":9'),),
          "chain", 1, "was changed"),
    Crime("an amount of the last event is changed", (state(LAST, "timeout", "nothing"),), "chain", LAST, "was changed"),
    Crime("a time is changed", (state(JOINED, "T10:", "T11:"),), "chain", JOINED, "was changed"),
    Crime("a name is changed", (f"UPDATE stored_events SET topic = 'xce.instance.lost' WHERE position = {JOINED}",),
          "chain", JOINED, "was changed"),
    Crime("an event is given to another aggregate",
          (f"UPDATE stored_events SET originator_id = 'instance:I9' WHERE position = {JOINED}",),
          "chain", JOINED, "was changed"),
    Crime("a version is changed",
          (f"UPDATE stored_events SET originator_version = 9 WHERE position = {JOINED}",),
          "chain", JOINED, "was changed"),
    Crime("two neighbours are swapped", (SWAP.format(13, 14), BACK), "chain", 13, "was changed"),
    Crime("two far events are swapped", (SWAP.format(6, 31), BACK), "chain", 6, "was changed"),
    Crime("an event is added at the end",
          ("INSERT INTO stored_events SELECT 34, 'request:R4', 1, topic, state, digest FROM stored_events WHERE position = 6",),
          "chain", 34, "was changed"),
    Crime("an event is put in between",
          (f"UPDATE stored_events SET position = -(position + 1) WHERE position > {JOINED}", BACK,
           "INSERT INTO stored_events SELECT 14, 'instance:I7', 1, topic, state, digest FROM stored_events WHERE position = 13",
           "UPDATE log_head SET position = 34"),
          "chain", 14, "was changed"),
    Crime("a digest is changed", (f"UPDATE stored_events SET digest = zeroblob(32) WHERE position = {JOINED}",),
          "chain", JOINED, "was changed"),
    Crime("a fence is lowered", ("UPDATE fences SET epoch = 1 WHERE name = 'lease:aws'",),
          "fences", None, "the fence is 1, wanted 2"),
    Crime("a fence is deleted", ("DELETE FROM fences WHERE name = 'lease:pool'",),
          "fences", None, "the fence is 0, wanted 1"),
    Crime("a fence is added", ("INSERT INTO fences VALUES ('lease:gcp', 4)",),
          "fences", None, "the fence is 4, wanted 0"),
]  # fmt: skip


@pytest.mark.parametrize("crime", CRIMES, ids=lambda crime: crime.name)
def test_what_was_done_is_named(path: Path, crime: Crime) -> None:
    tamper(path, *crime.statements)

    report = report_of(path)

    assert not report.passed
    findings = report.check(crime.check).findings
    assert findings[0].position == crime.position, findings
    assert crime.message in findings[0].message


@pytest.mark.parametrize("crime", CRIMES, ids=lambda crime: crime.name)
def test_the_command_line_says_no_and_names_the_event(path: Path, crime: Crime) -> None:
    tamper(path, *crime.statements)

    result = CliRunner().invoke(app, ["verify", str(path), "--json"])

    assert result.exit_code == exit_codes.NO
    document = json.loads(result.stdout)
    assert document["passed"] is False
    (check,) = [c for c in document["checks"] if c["name"] == crime.check]
    assert check["findings"][0]["position"] == crime.position


def test_a_log_that_nobody_changed_passes_every_check(path: Path) -> None:
    report = report_of(path)

    assert report.passed
    assert [check.name for check in report.checks] == [
        "storage", "chain", "head", "fences", "readable",
        "invariant-1", "invariant-2", "invariant-3", "invariant-5", "invariant-6", "invariant-7",
        "invariant-8",
    ]  # fmt: skip
    idle = [check.name for check in report.checks if check.counted == 0]
    assert idle == ["invariant-5"], "it is about budgets, and none was given"


# ------------------------------------------------------------------ a careful criminal
Change = Callable[[list[Row]], Iterable[Row]]


def forge(path: Path, change: Change) -> None:
    """Change rows and make the whole chain anew, the head too: the digests are as they should be."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        rows = [
            Row._make(row)
            for row in connection.execute("SELECT * FROM stored_events ORDER BY position")
        ]
        connection.execute("DELETE FROM stored_events")
        new = chain(Head(0, GENESIS), [NewRow(*row[1:-1]) for row in change(rows)])
        connection.executemany("INSERT INTO stored_events VALUES (?, ?, ?, ?, ?, ?)", new)
        connection.execute(
            "UPDATE log_head SET position = ?, digest = ?", (new[-1].position, new[-1].digest)
        )


def rewrite(position: int, old: bytes, new: bytes) -> Change:
    def change(rows: list[Row]) -> Iterable[Row]:
        for row in rows:
            if row.position == position:
                assert old in row.state
            yield (
                row._replace(state=row.state.replace(old, new)) if row.position == position else row
            )

    return change


def without(position: int) -> Change:
    return lambda rows: [row for row in rows if row.position != position]


FORGERIES: dict[str, tuple[Change, str, int]] = {
    "borrowed more than granted": (rewrite(BORROWED, b'"amount":6', b'"amount":9'), "invariant-3", BORROWED),
    "one machine twice": (rewrite(GRANTED, b'"machine":"m1"', b'"machine":"m2"'), "invariant-1", GRANTED),
    "of another request": (rewrite(GRANTED, b'"request_id":"R1"', b'"request_id":"R9"'), "invariant-2", GRANTED),
    "an epoch to come": (rewrite(JOINED, b'"epoch":1', b'"epoch":2'), "invariant-6", JOINED),
    "asked more than there is": (rewrite(INTENDED, b'"amount":2', b'"amount":5'), "invariant-7", INTENDED),
    "an unknown field": (rewrite(JOINED, b'"host":"h-m1"', b'"hostess":"h-m1"'), "readable", JOINED),
    "no intent": (without(INTENDED), "invariant-2", 6),
    "no instance": (without(GRANTED), "invariant-1", 8),
    "no place in the total": (without(BORROWED), "invariant-1", 16),
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "check", "position"), list(FORGERIES.values()), ids=list(FORGERIES)
)
def test_what_does_not_add_up_is_named_although_the_digests_fit(
    path: Path, change: Change, check: str, position: int
) -> None:
    forge(path, change)

    report = report_of(path)

    assert report.check("chain").passed
    assert report.check("head").passed
    assert report.check(check).findings[0].position == position, report.check(check).findings


def test_only_a_head_that_was_written_down_finds_a_log_made_anew(path: Path) -> None:
    """A log without its last events, its head and chain made anew, is an earlier state of itself."""
    with open_log(path, read_only=True) as log:
        anchor = log.head()
    forge(path, lambda rows: rows[:5])
    tamper(path, "UPDATE fences SET epoch = 1")

    assert report_of(path).passed
    found = report_of(path, anchor)
    assert [check.name for check in found.checks if not check.passed] == ["anchor"]
    assert found.check("anchor").findings[0].position == LAST


def test_an_anchor_from_earlier_holds(path: Path) -> None:
    with open_log(path, read_only=True) as log:
        middle = [Head(r.position, r.digest) for r in log.read(upto=17)][-1]

    assert report_of(path, middle).passed
    assert report_of(path, Head(0, GENESIS)).passed
    assert not report_of(path, Head(17, GENESIS)).passed
