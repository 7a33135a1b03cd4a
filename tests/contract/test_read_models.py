"""Audit tables, time travel and backups say the same of a log whatever it is kept in."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from typer.testing import CliRunner

from tests.contract.test_event_log import PLACES, place_of
from tests.postgresql import PASSWORD
from tests.stories import Story
from xce.adapters.cli import audit as cli
from xce.adapters.cli import replay
from xce.adapters.store import audit
from xce.adapters.store.audit_tables import TABLES
from xce.adapters.store.backup import backup
from xce.adapters.store.checkpoints import CheckpointFile, checkpoints_of
from xce.adapters.store.open import MEMORY, open_log
from xce.domain.errors import InputError
from xce.replay.time_travel import TimeTravel


@pytest.fixture(params=[backend for backend in PLACES if backend != "memory"])
def place(request: pytest.FixtureRequest) -> str:
    place = place_of(request.param, request)
    with open_log(place) as log:
        Story(log).tell()
    return place


def content(database: str) -> dict[str, list[tuple[Any, ...]]]:
    with closing(sqlite3.connect(database)) as connection:
        return {
            table.name: connection.execute(
                f'SELECT * FROM "{table.name}" ORDER BY {", ".join(table.key)}'
            ).fetchall()
            for table in TABLES
            if table.name != "log"
        }


def test_the_tables_are_those_of_the_log_in_memory(place: str, tmp_path: Path) -> None:
    with open_log(MEMORY) as log:
        Story(log).tell()
        audit.catch_up(log, str(tmp_path / "memory.db"))
        wanted = content(str(tmp_path / "memory.db"))
        Story(log, "-b").tell()
        audit.catch_up(log, str(tmp_path / "memory.db"))
        wanted_later = content(str(tmp_path / "memory.db"))
    database = str(tmp_path / "audit.db")

    with open_log(place, read_only=True) as log:
        assert audit.catch_up(log, database).rebuilt
    assert content(database) == wanted
    with open_log(place) as log:
        Story(log, "-b").tell()
        assert audit.catch_up(log, database).added == 33
    assert content(database) == wanted_later


def test_each_moment_is_that_of_the_log_in_memory(place: str, tmp_path: Path) -> None:
    with open_log(MEMORY) as memory, open_log(place, read_only=True) as log:
        Story(memory).tell()
        with CheckpointFile(log, str(tmp_path / "c")) as file:
            travel, wanted = TimeTravel(log, file, every=7), TimeTravel(memory)
            for position in (33, 20, 21, 1, 0):
                moment, other = travel.at(position), wanted.at(position)
                assert moment.document() == other.document()
                assert moment.head == other.head
            assert file.problem is None


def test_the_commands_take_it_by_its_name(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke

    asked = run(cli.app, ["query", place, "SELECT count(*) AS n FROM events"])
    assert asked.exit_code == 0, asked.exception
    assert asked.stdout.split() == ["n", "33"]
    assert run(replay.app, ["at", place, "--position", "20"]).exit_code == 0
    assert Path(audit.database_of(place)).is_file()


def test_a_name_made_of_an_address_has_no_secrets() -> None:
    place = "postgresql://ann:s3cret@db.example:5433/xce?schema=site&sslmode=require"

    assert audit.database_of(place) == "db.example-5433-xce-site.audit.db"
    assert checkpoints_of("postgresql:///../../etc") == ".._.._etc.checkpoints"
    assert audit.database_of("/var/lib/xce/log.db") == "/var/lib/xce/log.db.audit.db"


def test_what_is_printed_has_no_secrets(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    secret = quote(PASSWORD, safe="")
    place = place_of("postgresql", request).replace("@", f":{secret}@", 1)
    with open_log(place) as log:
        Story(log).tell()
        source = log.source

    for options in ([], ["--json"], ["--position", "99"]):
        result = CliRunner().invoke(replay.app, ["at", place, *options])
        assert secret not in result.output + str(result.exception)
        assert PASSWORD not in result.output + str(result.exception)
        assert source in result.output + str(result.exception)


def test_a_log_on_postgresql_is_backed_up_otherwise(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="pg_dump"):
        backup("postgresql://db.example/xce", str(tmp_path / "copy.db"))
