"""``xce replay at`` and ``xce replay diff``: what they print, and how they end."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.stories import Story
from xce.adapters.cli import exit_codes
from xce.adapters.cli.replay import app
from xce.adapters.store.open import open_log
from xce.domain.errors import BrokenLogError, InputError, NotFoundError, XceError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "log.db"
    with open_log(path) as log:
        Story(log).tell()
    return path


def run(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, XceError):
        raise result.exception
    return result


def document(*arguments: object) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == exit_codes.DONE
    return json.loads(result.stdout)


def test_at_a_position_everything_is_one_document(path: Path) -> None:
    found = document("at", path, "--position", 19)

    assert (found["format"], found["position"], found["at"]) == (
        "xce.moment/1",
        19,
        "2026-03-01T10:07:00Z",
    )
    assert found["totals"]["lic"]["total"] == 20
    assert found["aggregates"]["request:R1"]["state"] == "complete"
    assert found["states"]["instance joined"] == 2
    assert sum(found["events"].values()) == 19
    assert len(found["digest"]) == 64
    assert {"inventory", "catalog", "spending"} <= found.keys()


def test_at_a_time_it_is_the_state_of_then(path: Path) -> None:
    found = document("at", path, "--time", "2026-03-01T11:04:30+01:00")

    assert (found["position"], found["at"]) == (12, "2026-03-01T10:04:30Z")
    assert found["aggregates"]["instance:I1"]["state"] == "starting"


def test_without_either_it_is_the_end(path: Path) -> None:
    assert document("at", path)["position"] == 33


def test_only_what_was_asked_for(path: Path) -> None:
    found = document("at", path, "--of", "lease", "--of", "request:R2")

    assert list(found["aggregates"]) == ["lease:aws", "lease:pool", "request:R2"]
    assert document("at", path, "--position", 0)["aggregates"] == {}


def test_people_get_tables(path: Path) -> None:
    text = run("at", path, "--position", 19).stdout

    assert "position 19 of 33, 2026-03-01T10:07:00Z" in text
    for line in ("SHARED", "AGGREGATES", "HELD OR ASKED", "SPENDING"):
        assert line in text
    (lic,) = [line.split() for line in text.splitlines() if line.startswith("lic ")]
    assert lic == ["lic", "14", "6", "20", "0", "0"]


def test_people_get_one_aggregate_as_a_table(path: Path) -> None:
    lines = run("at", path, "--of", "request:R1").stdout.splitlines()

    assert ["state", "complete"] in [line.split() for line in lines]
    assert ["amount", "2"] in [line.split() for line in lines]


def test_a_difference_is_one_document(path: Path) -> None:
    found = document("diff", path, "--from", 19, "--to", "2026-03-01T10:08:00Z")

    assert found["from"] == {"position": 19, "at": "2026-03-01T10:07:00Z"}
    assert found["to"] == {"position": 20, "at": "2026-03-01T10:08:00Z"}
    assert found["events"] == {"xce.lease.taken-over": 1}
    changes = {change["what"]: change for change in found["changes"]}
    assert changes["aggregates.lease:aws.epoch"] == {
        "path": ["aggregates", "lease:aws", "epoch"],
        "what": "aggregates.lease:aws.epoch",
        "from": 1,
        "to": 2,
    }


def test_what_came_has_no_from(path: Path) -> None:
    found = document("diff", path, "--from", 0, "--to", 1)

    (change,) = [c for c in found["changes"] if c["path"] == ["aggregates", "provider:aws"]]
    assert "from" not in change
    assert change["to"]["id"] == "provider:aws"


def test_people_get_what_changed_as_tables(path: Path) -> None:
    text = run("diff", path, "--from", 19, "--to", 20).stdout

    assert "xce.lease.taken-over" in text
    (row,) = [line.split() for line in text.splitlines() if "lease:aws.holder" in line]
    assert row == ["aggregates.lease:aws.holder", "p1", "p2"]


def test_nothing_changed_is_said(path: Path) -> None:
    assert "nothing changed" in run("diff", path, "--from", 7, "--to", 7).stdout
    assert document("diff", path, "--from", 7, "--to", 7)["changes"] == []


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["at", "--position", "34"], NotFoundError, "no position 34; it ends at 33"),
        (["at", "--time", "2020-01-01T00:00:00Z"], NotFoundError, "begins at 2026-03-01T10:01:00Z"),
        (["at", "--time", "yesterday"], InputError, "'yesterday' is not a time; wanted RFC 3339"),
        (["at", "--time", "2026-03-01T10:00:00"], InputError, "says no time zone"),
        (["at", "--time", "0001-01-01T00:00:00+01:00"], InputError, "out of range"),
        (["at", "--time", "2026-03-01T10:00:00Z", "--position", "3"], InputError, "wanted one of them"),
        (["at", "--of", "request:R99"], NotFoundError, "there is no 'request:R99' at position 33"),
        (["at", "--of", "request:R99", "--json"], NotFoundError, "there is no 'request:R99'"),
        (["diff", "--from", "9", "--to", "3"], NotFoundError, "position 3 is before 9"),
        (["diff", "--from", "-1", "--to", "3"], InputError, "'-1' is not a time"),
        (["diff", "--from", "1", "--to", "99"], NotFoundError, "no position 99"),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_said(
    path: Path, arguments: list[str], error: type[XceError], message: str
) -> None:
    command, *options = arguments

    with pytest.raises(error, match=message):
        run(command, path, *options)


def test_the_errors_have_their_exit_codes() -> None:
    assert exit_codes.exit_code_of(NotFoundError("x")) == exit_codes.NO
    assert exit_codes.exit_code_of(BrokenLogError("x")) == exit_codes.UNEXPECTED


@pytest.mark.parametrize("options", [["--position", "-1"], ["--position", "x"], ["--nonsense"]])
def test_wrong_usage_is_exit_2(path: Path, options: list[str]) -> None:
    assert run("at", path, *options).exit_code == exit_codes.USAGE


def test_a_difference_has_two_ends(path: Path) -> None:
    assert run("diff", path, "--from", "1").exit_code == exit_codes.USAGE


def test_an_unknown_event_is_named(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE stored_events SET topic = 'xce.new' WHERE position = 20")

    with pytest.raises(BrokenLogError, match=r"event 20 .*'xce\.new'"):
        run("at", path)
    assert document("at", path, "--position", 19)["position"] == 19


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        run("at", tmp_path / "missing.db")
    with pytest.raises(NotFoundError, match="has no events"):
        run("at", ":memory:")


def test_reading_makes_no_files_of_a_short_log(path: Path) -> None:
    document("at", path)
    document("at", path, "--no-checkpoints")

    assert [p.name for p in path.parent.iterdir()] == ["log.db"]
