"""Questions of every kind: nulls, bytes, very much, and what wants to do harm."""

import contextlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.stories import Story
from xce.adapters.cli import audit as cli
from xce.adapters.store import audit
from xce.adapters.store.audit_query import VALUE_BYTES_MAX, query
from xce.adapters.store.open import open_log
from xce.domain.errors import InputError, PermanentError, TransientError


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("query") / "log.db"
    with open_log(path) as log:
        Story(log).tell()
        audit.catch_up(log, audit.database_of(str(path)))
    return path


@pytest.fixture(scope="module")
def database(path: Path) -> str:
    return audit.database_of(str(path))


def files(database: str) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in Path(database).parent.iterdir()}


# ------------------------------------------------------------------------- values
def test_values_come_as_they_are(database: str) -> None:
    answer = query(
        database, "SELECT NULL, x'00ff', 9223372036854775807, 1.5, 9e999, '', 'é', char(0) || 'a'"
    )

    assert answer.rows == ((None, b"\x00\xff", 2**63 - 1, 1.5, float("inf"), "", "é", "\0a"),)


def test_text_that_is_no_utf_8_is_shown_all_the_same(database: str) -> None:
    assert query(database, "SELECT CAST(x'61ff62' AS TEXT)").rows == (("a\ufffdb",),)


def test_the_digest_of_an_event_is_what_an_anchor_has(path: Path, database: str) -> None:
    with open_log(path, read_only=True) as log:
        head = log.head()

    assert query(database, "SELECT lower(hex(digest)) FROM events WHERE position = 33").rows == (
        (head.digest.hex(),),
    )


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("SELECT NULL AS a, x'00ff' AS b, 9e999 AS c, -9e999 AS d", [None, "00ff", "inf", "-inf"]),
        ("SELECT char(27) || '[2J' AS a, '[red]x' AS b", ["\x1b[2J", "[red]x"]),
    ],
)
def test_programs_get_json_that_every_reader_takes(
    path: Path, sql: str, values: list[object]
) -> None:
    text = CliRunner().invoke(cli.app, ["query", str(path), sql, "--json"]).stdout

    def refuse(name: str) -> None:
        raise AssertionError(name)

    (row,) = json.loads(text, parse_constant=refuse)
    assert list(row.values()) == values


def test_people_get_nothing_that_commands_their_terminal(path: Path) -> None:
    sql = "SELECT char(27) || '[2J' AS a, x'00ff' AS b, NULL AS c"

    text = CliRunner().invoke(cli.app, ["query", str(path), sql]).stdout

    assert "\x1b" not in text
    assert "00ff" in text


# ------------------------------------------------------------------------- limits
def test_an_answer_is_cut_at_its_rows_and_at_its_size(database: str) -> None:
    sql = "SELECT position, payload FROM events ORDER BY position"

    by_rows = query(database, sql, rows_max=5)
    assert (len(by_rows.rows), by_rows.cut) == (5, True)
    by_size = query(database, sql, bytes_max=2000)
    assert by_size.cut
    assert 0 < sum(len(row[1]) for row in by_size.rows) <= 2000
    whole = query(database, sql, rows_max=33)
    assert (len(whole.rows), whole.cut) == (33, False)


def test_a_cut_answer_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xce.adapters.store.audit_query.ROWS_MAX", 2)

    result = CliRunner().invoke(cli.app, ["query", str(path), "SELECT position FROM events"])

    assert "only the first 2 rows are shown" in result.stderr


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT zeroblob({VALUE_BYTES_MAX + 1})",
        "SELECT group_concat(payload || hex(zeroblob(1000000))) FROM events",
        "SELECT '" + "x" * 200_000 + "'",
    ],
)
def test_no_value_and_no_question_is_too_large_for_memory(database: str, sql: str) -> None:
    with pytest.raises(InputError, match=r"too big|too large|string or blob"):
        query(database, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM events a, events b, events c, events d, events e",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0",
        "SELECT a.position FROM events a, events b, events c, events d ORDER BY random()",
    ],
)
def test_what_takes_for_ever_is_stopped(database: str, sql: str) -> None:
    with pytest.raises(InputError, match=r"takes longer than 0\.2 s"):
        query(database, sql, time_limit_s=0.2)


# --------------------------------------------------------------------------- harm
@pytest.mark.parametrize(
    "sql",
    [
        "ATTACH DATABASE 'FOLDER/stolen.db' AS s",
        "VACUUM INTO 'FOLDER/stolen.db'",
        "SELECT load_extension('libc.so.6')",
        "SELECT writefile('FOLDER/stolen', 'x')",
        "SELECT readfile('/etc/passwd')",
        "SELECT edit('x')",
        "SELECT fts3_tokenizer('simple')",
        "CREATE TEMP TABLE t AS SELECT * FROM events",
        "CREATE VIRTUAL TABLE temp.t USING fts5(x)",
        "CREATE TRIGGER t AFTER INSERT ON events BEGIN SELECT 1; END",
        "WITH x AS (SELECT 1) DELETE FROM events",
        "INSERT INTO events(position) SELECT 99 RETURNING position",
        "UPDATE sqlite_schema SET sql = 'x'",
        "REINDEX",
        "ANALYZE",
        "PRAGMA writable_schema = ON",
        "PRAGMA trusted_schema = ON",
        "PRAGMA temp_store_directory = 'FOLDER'",
        "PRAGMA wal_checkpoint",
        "PRAGMA user_version = 7",
        "SAVEPOINT s",
        "EXPLAIN DELETE FROM events",
        "SELECT 1; ATTACH 'FOLDER/stolen.db' AS s",
        "DETACH main",
        "\ud800",
    ],
)
def test_no_question_does_harm(database: str, sql: str) -> None:
    before = files(database)

    with pytest.raises(InputError):
        query(database, sql.replace("FOLDER", str(Path(database).parent)))

    assert files(database) == before


@given(st.text(max_size=40) | st.text(alphabet="SELECT *FROM()';-\"/,%\x00 eventsw=1", max_size=60))
def test_any_text_is_a_question_or_is_refused(database: str, sql: str) -> None:
    with contextlib.suppress(InputError):  # nothing else is raised
        query(database, sql, time_limit_s=2)


def test_the_schema_can_be_looked_at(database: str) -> None:
    tables = [row[0] for row in query(database, "SELECT name FROM sqlite_schema ORDER BY 1").rows]

    assert "requests" in tables
    assert query(database, "PRAGMA table_info(leases)").rows[0][1] == "provider"


# ----------------------------------------------------------------------- the file
def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        query(str(tmp_path / "missing.db"), "SELECT 1")


def test_while_somebody_writes_the_answer_is_to_come_again(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xce.adapters.store.audit_query.LOCK_TIMEOUT_S", 0)
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(TransientError, match="being written"):
            query(database, "SELECT * FROM log")


@pytest.mark.parametrize("what", ["log", "other", "text", "folder"])
def test_a_file_that_is_something_else_is_not_replaced(
    path: Path, tmp_path: Path, what: str
) -> None:
    target = tmp_path / "precious"
    if what == "log":
        target.symlink_to(path)
    elif what == "other":
        with closing(sqlite3.connect(target)) as connection:
            connection.execute("CREATE TABLE t (x)")
    elif what == "text":
        target.write_text("precious")
    else:
        target.mkdir()
    before = path.read_bytes()

    for command in (["rebuild", str(path)], ["query", str(path), "SELECT 1"]):
        result: Any = CliRunner().invoke(cli.app, [*command, "--database", str(target)])
        assert isinstance(result.exception, InputError | PermanentError)

    assert target.exists()
    assert path.read_bytes() == before
    assert what != "text" or target.read_text() == "precious"


def test_who_may_not_read_the_log_may_not_read_the_tables(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with open_log(path) as log:
        Story(log).tell()
        path.chmod(0o600)
        audit.rebuild(log, audit.database_of(str(path)))

    assert Path(audit.database_of(str(path))).stat().st_mode & 0o777 == 0o600


def test_a_table_that_is_not_there_is_answered_with_those_that_are(database: str) -> None:
    with pytest.raises(
        InputError, match=r"no such table: request; there are .*requests, request_jobs"
    ):
        query(database, "SELECT * FROM request")
    with pytest.raises(InputError, match=r"no such column: owner; .*PRAGMA table_info\(TABLE\)"):
        query(database, "SELECT owner FROM requests")
