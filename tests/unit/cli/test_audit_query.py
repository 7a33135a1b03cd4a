"""``xce audit query``: nothing is lost on the way to a program, and the help names the tables."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.stories import Story
from xce.adapters.cli.audit import app, query
from xce.adapters.store.audit_tables import TABLES
from xce.adapters.store.open import open_log
from xce.domain.errors import InputError


def test_two_columns_of_one_name_are_refused_as_json(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with open_log(path) as log:
        Story(log).tell()
    sql = "SELECT a.event, b.event FROM events a, events b LIMIT 1"

    query(str(path), sql)
    with pytest.raises(InputError, match="two columns are named 'event'; name them apart with AS"):
        query(str(path), sql, as_json=True)


def test_the_help_names_the_tables() -> None:
    text = CliRunner().invoke(app, ["query", "--help"], env={"COLUMNS": "200"}).output

    assert [table.name for table in TABLES if table.name not in text] == []
