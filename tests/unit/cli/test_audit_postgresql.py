"""``xce audit`` on an address of PostgreSQL."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.postgresql import PASSWORD, Server
from tests.stories import Story
from xce.adapters.cli.audit import app
from xce.adapters.store.open import open_log


def test_a_log_on_postgresql_is_verified_and_questioned(
    postgresql: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = postgresql.address()
    with open_log(place) as log:
        Story(log).tell()
        head = log.head()
    run = CliRunner().invoke

    verified = run(app, ["verify", place, "--json"])
    asked = run(app, ["query", place, "SELECT count(*) AS n FROM events", "--json"])
    rebuilt = run(app, ["rebuild", place])

    report = json.loads(verified.stdout)
    assert (report["passed"], report["head"]["digest"]) == (True, head.digest.hex())
    assert json.loads(asked.stdout) == [{"n": 33}]
    assert [verified.exit_code, asked.exit_code, rebuilt.exit_code] == [0, 0, 0]
    assert PASSWORD not in verified.output + asked.output + rebuilt.output
    assert all("/" not in path.name and PASSWORD not in path.name for path in tmp_path.iterdir())
