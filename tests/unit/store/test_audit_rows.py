"""The audit tables say what the aggregates and the projections say; folded in bit by bit they are what they are from nothing."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from tests.stories import Story
from tests.unit.projections.moves import Move, all_of, moves, played
from tests.unit.projections.run import Run
from xce.adapters.store import audit
from xce.adapters.store.audit import CaughtUp
from xce.adapters.store.audit_tables import TABLES
from xce.adapters.store.log import StoredLog
from xce.adapters.store.open import open_log
from xce.adapters.store.recorder import Row
from xce.domain.errors import BrokenLogError
from xce.domain.events.digest import GENESIS, link
from xce.domain.events.recorded import Head
from xce.domain.provisioning.lease import ProviderLease
from xce.domain.provisioning.provider import Provider


def content(database: Path) -> dict[str, list[tuple[Any, ...]]]:
    with closing(sqlite3.connect(database)) as connection:
        return {
            table.name: connection.execute(
                f'SELECT * FROM "{table.name}" ORDER BY {", ".join(table.key)}'
            ).fetchall()
            for table in TABLES
        }


def ask(database: Path, sql: str) -> list[tuple[Any, ...]]:
    return list(audit.query(str(database), sql).rows)


def unordered_answer(database: Path, sql: str) -> list[tuple[Any, ...]]:
    return unordered(ask(database, sql))


def upto(log: StoredLog, position: int) -> StoredLog:
    """Return a log of the first events of another: the same rows, the same chain."""
    part = open_log(":memory:")
    recorder: Any = part.recorder
    for row in log.recorder.rows(0, position):
        recorder._rows.append(row)
        recorder._rows_of.setdefault(row.originator_id, []).append(row)
    return part


# ------------------------------------------------------------- against the aggregates
@given(moves)
@settings(max_examples=25)
def test_they_say_what_the_aggregates_say(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Move]
) -> None:
    run = played(steps)
    database = tmp_path_factory.mktemp("audit") / "a.db"
    audit.rebuild(run.log, str(database))
    requests, instances, grants = all_of(run)

    assert unordered_answer(
        database, "SELECT id, state, amount, granted, failed, provider_request_id FROM requests"
    ) == unordered(
        (r.name, r.state.value, r.amount, r.granted, r.failed, r.provider_request_id)
        for r in requests
    )
    assert unordered_answer(
        database, "SELECT id, state, host, return_id, provider FROM instances"
    ) == unordered((i.name, i.state.value, i.host, i.return_id, i.provider) for i in instances)
    assert unordered_answer(
        database, "SELECT id, state, amount, returned, CASE state WHEN 'lost' THEN 0 ELSE going_back END FROM grants"
    ) == unordered(
        (g.name, g.state.value, g.amount, g.returned, 0 if g.state == "lost" else g.returning)
        for g in grants
    )  # fmt: skip
    resource = run.resource()
    assert ask(
        database, "SELECT owned, borrowed, total FROM shared_totals ORDER BY position DESC LIMIT 1"
    ) == [(resource.owned, resource.borrowed, resource.total)]
    for name in ("aws", "gcp", "pool"):
        provider = run.provider(name)
        (found,) = ask(
            database, f"SELECT description FROM providers WHERE provider = '{name}' AND until IS NULL"
        )  # fmt: skip
        assert found == (provider.description.to_json(),)
        assert_pauses(database, provider, run.now)
    assert_spending(database, run)
    assert_returns(database)
    jobs = ask(database, "SELECT request, job FROM request_jobs ORDER BY request, number")
    assert jobs == [(r.name, job) for r in sorted(requests, key=lambda r: r.name) for job in r.jobs]


def unordered(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=repr)


def assert_pauses(database: Path, provider: Provider, now: datetime) -> None:
    holding = {(item, pause.why) for item, pause in provider.pauses.items() if pause.until > now}
    rows = ask(
        database,
        "SELECT item, why, until FROM pauses WHERE ended_at IS NULL AND"
        f" provider = '{provider.name}'",
    )
    assert {(i, why) for i, why, until in rows if datetime.fromisoformat(until) > now} == holding


def assert_spending(database: Path, run: Run) -> None:
    """The sums are those of the projection; each row is rounded for itself."""
    (last,) = [r.event.timestamp for r in run.log.read(run.log.head().position - 1)]
    lines = run.projections.spending.lines(last)
    found: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    for row in ask(
        database,
        "SELECT provider, kind, item, of LIKE 'orphan:%', amount, until, used_s, billed_s, cost_millionths"
        " FROM spending WHERE amount > 0",
    ):
        found[row[:4]].append(row[4:])
    assert found.keys() == {
        (line.provider, line.kind.value, line.item, not line.owned) for line in lines
    }
    for line in lines:
        rows = found[line.provider, line.kind.value, line.item, not line.owned]
        assert sum(row[0] for row in rows if row[1] is None) == line.live
        assert sum(row[0] for row in rows if row[1] is not None) == line.ended
        assert sum(row[2] for row in rows) == line.used // timedelta(seconds=1)
        assert sum(row[3] for row in rows) == line.billed // timedelta(seconds=1)
        cost = Decimal(sum(row[4] or 0 for row in rows)).scaleb(-6)
        assert abs(cost - line.cost) <= Decimal(len(rows)).scaleb(-6)
        assert sum(row[0] for row in rows if row[4] is None) == line.unpriced


def assert_returns(database: Path) -> None:
    """A return is open exactly where an instance or a grant says that something goes back."""
    going = ask(
        database,
        "SELECT 'instance:' || id, 1 FROM instances WHERE state = 'returning'"
        " UNION ALL SELECT 'grant:' || id, going_back FROM grants WHERE state <> 'lost' AND going_back > 0",
    )
    open_ones = ask(
        database, "SELECT of, sum(amount) FROM returns WHERE outcome IS NULL GROUP BY of"
    )
    assert sorted(open_ones) == sorted(going)


# --------------------------------------------------------------------------- bit by bit
@given(moves)
@settings(max_examples=25)
def test_folded_in_bit_by_bit_they_are_what_they_are_from_nothing(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Move]
) -> None:
    log = played(steps).log
    folder = tmp_path_factory.mktemp("audit")
    end = log.head().position
    step = 1 + len(steps) % 17
    for position in [*range(0, end, step), end]:
        caught = audit.catch_up(upto(log, position), str(folder / "bits.db"))
        assert not caught.rebuilt or position == 0
    audit.rebuild(log, str(folder / "whole.db"))

    assert content(folder / "bits.db") == content(folder / "whole.db")


def test_written_often_they_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_log(":memory:") as log:
        Story(log).tell()
        audit.rebuild(log, str(tmp_path / "a.db"))
        monkeypatch.setattr("xce.adapters.store.audit_rows.WRITE_EVERY", 1)
        monkeypatch.setattr("xce.adapters.store.audit_cache.ROWS_KEPT", 0)
        audit.rebuild(log, str(tmp_path / "b.db"))

    assert content(tmp_path / "a.db") == content(tmp_path / "b.db")


def test_a_catch_up_says_what_it_did(tmp_path: Path) -> None:
    database = str(tmp_path / "a.db")
    with open_log(":memory:") as log:
        Story(log).tell()
        assert audit.catch_up(log, database) == CaughtUp(33, 33, rebuilt=True)
        assert audit.catch_up(log, database) == CaughtUp(33, 0, rebuilt=False)
        Story(log, "-b").describe()
        assert audit.catch_up(log, database) == CaughtUp(36, 3, rebuilt=False)
        assert audit.is_current(log, database)


def test_of_another_log_they_are_made_from_nothing(tmp_path: Path) -> None:
    database = str(tmp_path / "a.db")
    with open_log(":memory:") as log:
        Story(log).tell()
        audit.catch_up(log, database)
    with open_log(":memory:") as log:
        Story(log, "-b").tell()
        Story(log, "-c").describe()
        assert audit.catch_up(log, database) == CaughtUp(36, 36, rebuilt=True)
    with open_log(":memory:") as log:
        Story(log, "-b").describe()
        assert audit.catch_up(log, database) == CaughtUp(3, 3, rebuilt=True)


def test_other_code_makes_them_from_nothing(tmp_path: Path) -> None:
    database = tmp_path / "a.db"
    with open_log(":memory:") as log:
        Story(log).tell()
        audit.catch_up(log, str(database))
        before = content(database)
        with closing(sqlite3.connect(database, isolation_level=None)) as connection:
            connection.execute("UPDATE log SET made_by = 'older'")
            connection.execute("DELETE FROM requests")
        assert audit.catch_up(log, str(database)).rebuilt
    assert content(database) == before


def test_an_event_that_does_not_follow_leaves_them_where_they_were(tmp_path: Path) -> None:
    database = tmp_path / "a.db"
    with open_log(":memory:") as log:
        Story(log).tell()
        audit.catch_up(upto(log, 20), str(database))
        before = content(database)
        rows: Any = log.recorder
        rows._rows[29] = rows._rows[29]._replace(state=rows._rows[29].state.replace(b"X3", b"X4"))

        with pytest.raises(BrokenLogError, match="event 30 does not follow event 29") as raised:
            audit.catch_up(log, str(database))

    assert raised.value.position == 30
    assert content(database) == before


def renumbered(log: StoredLog, positions: list[int]) -> list[Row]:
    """Return the rows of a log under other numbers, in a chain of their own."""
    digest, rows = GENESIS, list[Row]()
    for position, row in zip(positions, log.recorder.rows(), strict=False):
        digest = link(digest, position, *row[1:-1])
        rows.append(Row(position, *row[1:-1], digest))
    return rows


def test_f28_a_number_that_is_missing_in_the_middle_is_not_passed_over() -> None:
    with open_log(":memory:") as log:
        Story(log).tell()
        rows = renumbered(log, list(range(1, 13)))
    after = Head(8, rows[7].digest)
    taken: list[int] = []

    # Writer 1 has reserved 9 and is slow; 10, 11 and 12 are there.
    with pytest.raises(BrokenLogError, match="event 10 does not follow event 8"):
        taken += [row.position for row in audit.chained(iter(rows[9:]), after)]
    assert taken == []

    # One second later 9 is there.
    assert [r.position for r in audit.chained(iter(rows[8:]), after)] == [9, 10, 11, 12]


def test_f28b_a_number_that_never_comes_is_no_gap() -> None:
    with open_log(":memory:") as log:
        Story(log).tell()
        rows = renumbered(log, [*range(1, 9), 10, 11, 12])

    found = audit.chained(iter(rows[8:]), Head(8, rows[7].digest))

    assert [row.position for row in found] == [10, 11, 12]


def test_leases_that_lapse_and_are_granted_again(tmp_path: Path) -> None:
    database = tmp_path / "a.db"
    with open_log(":memory:") as log:
        story = Story(log)
        story.describe()
        story.lease()
        lease = log.get(ProviderLease, "lease:aws")
        stamp: Any = {"at": story.now, "by": "controller"}
        lease.lapse(epoch=1, **stamp)
        lease.regrant(holder="p2", epoch=2, term=timedelta(seconds=30), **stamp)
        log.append([lease])
        audit.rebuild(log, str(database))

    assert ask(
        database, "SELECT epoch, holder, ended_by FROM leases WHERE provider = 'aws' ORDER BY epoch"
    ) == [(1, "p1", "lapsed"), (2, "p2", None)]


def test_no_column_has_to_be_quoted(tmp_path: Path) -> None:
    database = tmp_path / "a.db"
    with open_log(":memory:") as log:
        audit.rebuild(log, str(database))

    for table in TABLES:
        names = ", ".join(f"{table.name}.{column.name}" for column in table.columns)
        plain = ", ".join(column.name for column in table.columns)
        assert ask(database, f"SELECT {names} FROM {table.name} WHERE 0") == []
        assert ask(database, f"SELECT {plain} FROM {table.name} WHERE 0") == []
