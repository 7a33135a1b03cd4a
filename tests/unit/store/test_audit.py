"""The audit read models and ``xce audit``: what a log says, and that a question can only read."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.stories import START, Story
from tests.unit.aggregates import HOUR
from xce.adapters.cli import audit as cli
from xce.adapters.cli import exit_codes
from xce.adapters.store import audit, audit_query
from xce.adapters.store.audit_tables import TABLES
from xce.adapters.store.open import open_log
from xce.domain.errors import BrokenLogError, InputError, PermanentError
from xce.domain.events import ids
from xce.domain.provisioning.lease import ProviderLease


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("story") / "log.db"
    with open_log(path) as log:
        Story(log).tell()
        lease = log.get(ProviderLease, ids.lease_id("pool"))
        lease.release(epoch=1, at=START + HOUR, by="provisioner/p1")
        log.append([lease])
    return path.read_bytes()


@pytest.fixture
def path(story: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "log.db"
    path.write_bytes(story)
    return path


@pytest.fixture
def database(path: Path) -> str:
    target = audit.database_of(str(path))
    with open_log(path, read_only=True) as log:
        assert audit.rebuild(log, target) == 34
    return target


def ask(database: str, sql: str) -> list[tuple[Any, ...]]:
    return list(audit.query(database, sql).rows)


# ------------------------------------------------------------------ what they say
def test_who_asked_for_what_when_and_why(database: str) -> None:
    assert ask(
        database,
        "SELECT id, asked_by, asked_at, amount, item, reason, state, granted FROM requests ORDER BY id",
    ) == [
        ("R1", "provisioner/p1", "2026-03-01T10:03:00Z", 2, "c4", "jobs wait", "complete", 2),
        ("R2", "provisioner/p1", "2026-03-01T10:06:00Z", 6, "lic", "jobs wait", "complete", 6),
        ("R3", "provisioner/p2", "2026-03-01T10:17:00Z", 1, "c4", "jobs wait", "unknown", 0),
    ]


def test_what_became_of_each_host(database: str) -> None:
    assert ask(
        database,
        "SELECT id, host, state, granted_at, ended_at, return_id, why, price_per_hour FROM instances ORDER BY id",
    ) == [
        ("I1", "h-m1", "returned", "2026-03-01T10:04:00Z", "2026-03-01T10:12:00Z", "X1", "idle", "0.17"),
        ("I2", "h-m2", "joined", "2026-03-01T10:04:00Z", None, None, None, "0.17"),
    ]  # fmt: skip


def test_what_became_of_each_grant(database: str) -> None:
    assert ask(database, "SELECT id, resource, amount, returned, state, ended_at FROM grants") == [
        ("G1", "lic", 6, 6, "closed", "2026-03-01T10:16:00Z")
    ]


def test_who_could_spend_money_when(database: str) -> None:
    assert ask(
        database,
        "SELECT provider, epoch, holder, since, until, ended_by, term_s FROM leases ORDER BY 1, 2",
    ) == [
        ("aws", 1, "p1", "2026-03-01T10:02:00Z", "2026-03-01T10:08:00Z", "taken over", 30),
        ("aws", 2, "p2", "2026-03-01T10:08:00Z", None, None, 30),
        ("pool", 1, "p1", "2026-03-01T10:02:00Z", "2026-03-01T11:00:00Z", "released", 30),
    ]


def test_every_total_there_ever_was(database: str) -> None:
    assert ask(
        database, 'SELECT position, change, "grant", total FROM shared_totals ORDER BY position'
    ) == [(3, 14, None, 14), (19, 6, "G1", 20), (26, -4, "G1", 16), (28, 4, "G1", 20), (30, -6, "G1", 14)]  # fmt: skip


def test_the_payload_is_json_that_sql_reads(database: str) -> None:
    assert ask(
        database,
        "SELECT json_extract(payload, '$.machine') FROM events WHERE event = 'xce.instance.granted'",
    ) == [("m1",), ("m2",)]


def test_each_row_has_the_position_of_its_last_event(database: str) -> None:
    assert ask(database, "SELECT position FROM instances ORDER BY id") == [(24,), (14,)]
    assert ask(database, "SELECT position, source IS NOT NULL FROM log") == [(34, 1)]


def test_the_tables_are_those_that_are_documented(database: str) -> None:
    for table in TABLES:
        columns = [name for (_, name, *_) in ask(database, f"PRAGMA table_info({table.name})")]
        assert columns == [column.name for column in table.columns]
        assert all(column.meaning for column in table.columns)


# ------------------------------------------------------------------ making them
def test_made_again_they_are_the_same(path: Path, database: str) -> None:
    def content() -> list[str]:
        with closing(sqlite3.connect(database)) as connection:
            return list(connection.iterdump())

    before = content()
    Path(database).unlink()
    with open_log(path, read_only=True) as log:
        audit.rebuild(log, database)

    assert content() == before


def test_they_are_current_until_the_log_grows(path: Path, database: str) -> None:
    with open_log(path) as log:
        assert audit.is_current(log, database)
        Story(log, "-b").describe()
        assert not audit.is_current(log, database)
        audit.rebuild(log, database)
        assert audit.is_current(log, database)


@pytest.mark.parametrize("content", [b"", b"nonsense", None])
def test_what_is_no_read_model_is_not_current(
    path: Path, tmp_path: Path, content: bytes | None
) -> None:
    target = tmp_path / "other.db"
    if content is not None:
        target.write_bytes(content)

    with open_log(path, read_only=True) as log:
        assert not audit.is_current(log, str(target))


def test_a_broken_log_leaves_the_old_ones(path: Path, database: str) -> None:
    before = Path(database).read_bytes()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE stored_events SET topic = 'xce.new' WHERE position = 20")

    with open_log(path, read_only=True) as log, pytest.raises(BrokenLogError, match="event 20"):
        audit.rebuild(log, database)

    assert Path(database).read_bytes() == before
    assert sorted(p.name for p in path.parent.iterdir()) == ["log.db", "log.db.audit.db"]


def test_a_place_that_cannot_be_written_is_named(path: Path, tmp_path: Path) -> None:
    with open_log(path, read_only=True) as log, pytest.raises(PermanentError, match="no folder"):
        audit.rebuild(log, str(tmp_path / "no folder" / "audit.db"))


# ------------------------------------------------------------------ only reading
@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("DELETE FROM events", "may only read"),
        ("UPDATE requests SET amount = 0", "may only read"),
        ("INSERT INTO events (position) VALUES (99)", "may only read"),
        ("DROP TABLE events", "may only read"),
        ("CREATE TABLE t (x)", "may only read"),
        ("ATTACH DATABASE '/tmp/stolen.db' AS s", "may only read"),
        ("PRAGMA query_only = OFF", "may only read"),
        ("PRAGMA journal_mode = WAL", "may only read"),
        ("SELECT load_extension('x')", "may only read"),
        ("VACUUM INTO '/tmp/stolen.db'", "may only read"),
        ("BEGIN", "may only read"),
        ("SELECT 1; DELETE FROM events", "one statement at a time"),
        ("SELECT * FROM nowhere", "no such table: nowhere"),
        ("SELEKT 1", 'near "SELEKT"'),
        ("", "gives no columns"),
        ("SELECT 1 \x00", "null"),
    ],
)
def test_a_question_cannot_do_anything_but_read(database: str, sql: str, message: str) -> None:
    before = Path(database).read_bytes()

    with pytest.raises(InputError, match=message):
        audit.query(database, sql)

    assert Path(database).read_bytes() == before


def test_a_question_without_end_is_stopped(database: str) -> None:
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    )

    with pytest.raises(InputError, match=r"takes longer than 0\.05 s"):
        audit.query(database, endless, time_limit_s=0.05)


def test_an_answer_is_cut_at_a_bound(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_query, "ROWS_MAX", 3)

    answer = audit.query(database, "SELECT position FROM events ORDER BY 1")

    assert (answer.rows, answer.cut) == (((1,), (2,), (3,)), True)


# ------------------------------------------------------------------ command line
def run(*arguments: str) -> Any:
    return CliRunner().invoke(cli.app, list(arguments))


def test_verify_prints_each_check_by_name(path: Path) -> None:
    result = run("verify", str(path))

    assert result.exit_code == exit_codes.DONE
    for name in ("chain", "head", "invariant-1", "invariant-8"):
        assert name in result.stdout
    assert "broken" not in result.stdout


def test_verify_prints_a_document(path: Path) -> None:
    document = json.loads(run("verify", str(path), "--json").stdout)

    assert document["passed"] is True
    assert document["events"] == document["head"]["position"] == 34
    assert {"name", "title", "passed", "counted", "found", "findings"} == document["checks"][
        0
    ].keys()


def test_a_head_that_was_printed_is_an_anchor(path: Path) -> None:
    head = json.loads(run("verify", str(path), "--json").stdout)["head"]
    anchor = f"{head['position']}:{head['digest']}"

    assert run("verify", str(path), "--anchor", anchor).exit_code == exit_codes.DONE
    assert run("verify", str(path), "--anchor", "34:" + "00" * 32).exit_code == exit_codes.NO


@pytest.mark.parametrize(("most", "exit_code"), [(5, exit_codes.DONE), (1, exit_codes.NO)])
def test_budgets_of_a_configuration_are_looked_at(
    path: Path, tmp_path: Path, most: int, exit_code: int
) -> None:
    config = tmp_path / "provisioner.yaml"
    config.write_text(
        "name: p1\ncontroller: {addresses: ['http://127.0.0.1:8080'], token_file: p1.token}\n"
        "scripts: [{name: aws, folder: /srv/aws}]\nstate: state\n"
        f"policy: {{budgets: [{{name: all, max_hosts: {most}}}]}}\n"
    )

    result = run("verify", str(path), "--budgets", str(config), "--json")

    assert result.exit_code == exit_code, result.output
    checks = {one["name"]: one for one in json.loads(result.stdout)["checks"]}
    assert checks["invariant-5"]["counted"] > 0
    assert checks["invariant-5"]["passed"] is (exit_code == exit_codes.DONE)


def test_without_budgets_verify_says_that_none_was_looked_at(path: Path) -> None:
    assert "--budgets" in run("verify", str(path)).stderr


def test_what_has_no_budgets_is_refused(path: Path, tmp_path: Path) -> None:
    config = tmp_path / "pool.yaml"
    config.write_text("format: xce.pool/1\nresources: [{name: lic, size: 4, sites: [{name: a}]}]\n")

    result = run("verify", str(path), "--budgets", str(config))

    assert isinstance(result.exception, InputError)


@pytest.mark.parametrize("anchor", ["", "34", "34:", "34:00", "x:" + "00" * 32, "34:" + "zz" * 32])
def test_what_is_no_head_is_refused(path: Path, anchor: str) -> None:
    result = run("verify", str(path), "--anchor", anchor)

    assert isinstance(result.exception, InputError)
    assert "wanted POSITION:DIGEST" in str(result.exception)


@pytest.mark.parametrize("log", [":memory:", "missing.db"])
@pytest.mark.parametrize("command", ["verify", "rebuild", "query"])
def test_what_is_no_log_is_refused(tmp_path: Path, command: str, log: str) -> None:
    name = log if log == ":memory:" else str(tmp_path / log)

    result = run(command, name, *(["SELECT 1"] if command == "query" else []))

    assert isinstance(result.exception, InputError)


def test_a_question_makes_the_read_models_it_needs(path: Path) -> None:
    result = run("query", str(path), "SELECT id, granted FROM requests ORDER BY id", "--json")

    assert json.loads(result.stdout) == [
        {"id": "R1", "granted": 2}, {"id": "R2", "granted": 6}, {"id": "R3", "granted": 0},
    ]  # fmt: skip


def test_a_question_is_answered_as_a_table_that_is_not_cut(path: Path) -> None:
    result = run("query", str(path), "SELECT * FROM requests WHERE id = 'R1'")

    heading, row = result.stdout.splitlines()
    assert heading.startswith("id")
    assert "provider_request_id" in heading
    assert '["101"]' in row


def test_rebuild_says_where_they_are(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "mine.db"

    result = run("rebuild", str(path), "--database", str(target))

    assert result.exit_code == exit_codes.DONE
    assert ask(str(target), "SELECT count(*) FROM events") == [(34,)]
