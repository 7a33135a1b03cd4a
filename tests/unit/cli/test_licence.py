"""``xce licence parse``: the document of a text, from a file or from standard input, and what is said of a cut one."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.unit.observers.lmstat_text import HEAD, pool, server, session, users
from tests.unit.observers.test_lmstat_samples import SAMPLES, expected
from xce.adapters.cli.licence import app
from xce.domain.errors import InputError

TEXT = HEAD + server() + users("F", 9, 2) + pool("F") + session(end=", 2 licenses") + "\n"


@pytest.mark.parametrize("name", SAMPLES)
def test_the_document_of_a_sample_is_the_expected_one(shared: Path, name: str) -> None:
    file = shared / "samples" / "lmstat" / name
    done = CliRunner().invoke(app, ["parse", str(file), "--json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout) == expected(shared, name)


def test_standard_input_is_read_for_a_dash() -> None:
    done = CliRunner().invoke(app, ["parse", "-", "--json"], input=TEXT)
    assert json.loads(done.stdout)["features"][0]["in_use"] == 2


def test_people_see_a_table_and_dashes_for_what_is_unknown() -> None:
    text = TEXT + "Users of G:  (Error: 4 licenses, unsupported by licensed server)\n\n"
    done = CliRunner().invoke(app, ["parse", "-"], input=text)
    rows = [line.split() for line in done.stdout.splitlines()[-2:]]
    assert rows[0][:6] == ["F", "northlm", "27020@keys", "9", "2", "7"]
    assert rows[1][:6] == ["G", "-", "27020@keys", "4", "-", "-"]


def test_a_cut_text_is_said_on_stderr_and_in_the_state() -> None:
    done = CliRunner().invoke(app, ["parse", "-", "--json"], input=TEXT[:-30])
    assert json.loads(done.stdout)["state"] == "partial"
    assert "the text is cut" in done.stderr


def test_a_file_that_is_not_there_is_an_error_of_the_input(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["parse", str(tmp_path / "no.txt")])
    assert isinstance(done.exception, InputError)
