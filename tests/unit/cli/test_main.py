"""The entry point: how whatever goes wrong becomes one message and an exit code."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.testing import CliRunner

from tests.conftest import ROOT
from xce.adapters.cli import compare, faults, sim, terminal
from xce.adapters.cli import main as entry
from xce.adapters.cli.entry import main as program
from xce.adapters.cli.main import app
from xce.adapters.files import require_place, write_file
from xce.domain.errors import InputError, Problem, TransientError

FULL = Path("/dev/full")


def run(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["xce", *arguments])
    with pytest.raises(SystemExit) as end:
        entry.main()
    code = end.value.code
    assert isinstance(code, int)
    return code, capsys.readouterr().err


def test_wrong_input_is_one_line_with_the_program_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["session", "nowhere.json"], monkeypatch, capsys) == (
        2,
        "xce: nowhere.json: cannot be read: No such file or directory\n",
    )


def test_a_key_press_in_the_middle_is_said_and_exit_code_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(name: str) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(terminal, "read_input", interrupted)

    assert run(["session", "-"], monkeypatch, capsys) == (130, "xce: interrupted\n")


def test_an_input_that_is_closed_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)

    assert run(["session", "-"], monkeypatch, capsys) == (
        2,
        "xce: <stdin>: is closed; wanted a document\n",
    )


DAY = str(ROOT / "examples" / "scenarios" / "f16-an-impossible-job-stops-nobody.yaml")


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_reader_that_went_away_before_all_was_said_is_no_failure(more: list[str]) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    with os.fdopen(theirs, "wb") as output:
        done = subprocess.run(
            [sys.executable, "-m", "xce.adapters.cli.main", "sim", "run", DAY, *more],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert (done.returncode, done.stderr) == (0, "")


def test_a_document_that_nobody_wants_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)

    terminal.write_json("{}")


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_an_output_on_a_full_disk_is_one_line_and_exit_code_75() -> None:
    with FULL.open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "xce.adapters.cli.main", "--version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert done.returncode == os.EX_TEMPFAIL
    assert done.stderr == "xce: standard output: cannot be written: No space left on device\n"


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_a_file_on_a_full_disk_may_be_tried_again() -> None:
    with pytest.raises(TransientError, match=r"/dev/full: cannot be written: No space left"):
        write_file(FULL, "text")


def test_where_no_file_can_be_is_found_before_a_long_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder; wanted the name of a file"):
        require_place(None, tmp_path)
    with pytest.raises(InputError, match="there is no folder"):
        require_place(tmp_path / "new.html", tmp_path / "nowhere" / "new.html")


def test_a_simulation_looks_at_its_targets_before_its_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        sim.swf(tmp_path / "no.swf", tmp_path / "no.yaml", report=tmp_path / "nowhere" / "r.html")


def test_made_up_work_is_simulated_as_a_trace_is(tmp_path: Path) -> None:
    work, site = tmp_path / "work.jsonl.gz", tmp_path / "site.yaml"
    site.write_text(
        "cluster:\n  hosts:\n    - {name: h1, total: {slots: 400, mem: 1TiB}}\n", "utf-8"
    )
    made = CliRunner().invoke(app, ["workload", "make", str(work), "--days", "1", "--seed", "3"])
    assert made.exit_code == 0, made.output

    told = CliRunner().invoke(
        app, ["sim", "swf", str(work), "--config", str(site), "--jobs", "20", "--json"]
    )

    assert told.exit_code == 0, told.output
    report = json.loads(told.stdout)
    assert (report["source"], report["jobs"]["submitted"]) == ("eda, seed 3", 20)


def test_a_column_within_a_text_of_a_document_is_not_taken_for_a_line() -> None:
    error = InputError("a.json", [Problem("expected x", "pending[4].resreq", column=12)])

    assert str(error) == "a.json: pending[4].resreq: column 12: expected x"


def test_a_table_is_as_wide_as_its_cells_where_a_program_reads_it() -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("A")
    table.add_row("word " * 60)
    out = Console(file=io.StringIO(), width=40)

    terminal.print_table(table, out)

    assert isinstance(out.file, io.StringIO)
    assert ("word " * 60).strip() in out.file.getvalue()


def test_titles_of_tables_are_in_capitals_and_names_over_columns_are_not() -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("per hour")
    table.add_column(Text("from_a_file"))
    table.add_row("1", "2")
    out = Console(file=io.StringIO(), width=40)

    terminal.print_table(table, out)

    assert isinstance(out.file, io.StringIO)
    assert out.file.getvalue() == "PER HOUR  from_a_file\n1         2\n"


def test_a_document_of_another_format_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "result.json"
    file.write_text('{"format": "xce.session/1", "position": 1, "demand": {}}', encoding="utf-8")

    assert run(["session", str(file)], monkeypatch, capsys) == (
        2,
        (
            f"xce: {file}: format: Input should be 'xce.snapshot/1', found 'xce.session/1':"
            " it is the result of a session; see: xce policy needs it as a part of its input\n"
        ),
    )


def test_a_key_press_while_commands_are_imported_is_said_and_exit_code_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted:
        def find_spec(self, name: str, path: object, target: object = None) -> None:
            if name == "xce.adapters.cli.main":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "xce.adapters.cli.main")
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])

    with pytest.raises(SystemExit) as end:
        program()

    assert end.value.code == 130
    assert capsys.readouterr().err == "xce: interrupted\n"


def test_commands_that_run_in_processes_share_one_option() -> None:
    options = [
        get_type_hints(command, include_extras=True)["processes"]
        for command in (compare.command, faults.command)
    ]

    assert all(option is terminal.ProcessesOption for option in options)
