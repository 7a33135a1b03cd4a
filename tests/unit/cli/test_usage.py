"""What people meet first: usage lines, and answers to what is not there."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from xce.adapters.cli.lazy import PlainCommand, plain
from xce.adapters.cli.main import COMMANDS, app
from xce.adapters.cli.operators.main import app as operators
from xce.domain.errors import InputError


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (["audit", "query"], "Usage: xce audit query [OPTIONS] LOG SQL"),
        (["replay", "at"], "Usage: xce replay at [OPTIONS] LOG"),
        (["session"], "Usage: xce session [OPTIONS] FILE"),
        (["config", "check"], "Usage: xce config check [OPTIONS] FILE"),
    ],
)
def test_a_usage_line_has_no_braces_around_what_is_required(words: list[str], usage: str) -> None:
    result = CliRunner().invoke(app, [*words, "--help"], prog_name="xce")

    assert usage in result.output


def _arguments(command: Any, words: str) -> Iterator[tuple[str, str | None]]:
    for param in command.params:
        if param.param_type_name == "argument":
            yield words, param.metavar
    if isinstance(command, TyperGroup):
        context = typer.Context(command)
        for name in command.list_commands(context):
            yield from _arguments(command.get_command(context, name), f"{words} {name}")


def test_arguments_are_named_in_capitals() -> None:
    found = [*_arguments(get_command(app), "xce"), *_arguments(get_command(operators), "xcecli")]

    assert len(found) > 40
    assert [(words, name) for words, name in found if name is None or name != name.upper()] == []


def test_the_commands_of_operators_are_plain_too() -> None:
    command = get_command(plain(operators))
    result = CliRunner().invoke(plain(operators), ["why", "--help"], prog_name="xcecli")

    assert "Usage: xcecli why [OPTIONS] JOB" in result.output
    assert isinstance(vars(command)["commands"]["drain"], PlainCommand)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_an_example(name: str) -> None:
    result = CliRunner().invoke(app, [name, "--help"])

    assert result.exit_code == 0
    assert "Example" in result.output or "Commands" in result.output


def test_a_fake_batch_system_that_is_not_there_is_an_error_and_no_empty_table(
    tmp_path: Path,
) -> None:
    result = CliRunner().invoke(app, ["scheduler", "fake", "show", str(tmp_path / "none.json")])

    assert isinstance(result.exception, InputError)
    assert "xce scheduler fake host makes one" in str(result.exception)
    assert result.stdout == ""


#: Commands that make files, say so on stderr, and print nothing; and two that print a document, or records, of another program's form.
SILENT = {
    "xce recording anonymise", "xce recording join", "xce audit rebuild", "xce config import-lsf", "xce provider install",
    "xce scheduler fake host", "xce scheduler fake remove", "xce scheduler fake end", "xce pool apply", "xce pool scripts",
    "xce snapshot slurm", "xce provider slurm-records",
}  # fmt: skip


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(command, TyperGroup):
        context = typer.Context(command, info_name=path)
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), f"{path} {name}")
    else:
        yield path, command


def test_every_command_that_prints_has_json() -> None:
    found = dict(commands(get_command(app), "xce")) | dict(
        commands(get_command(operators), "xcecli")
    )
    without = {
        path
        for path, command in found.items()
        if not any("--json" in parameter.opts for parameter in command.params)
    }

    assert without == SILENT


def test_the_numbers_of_jobs_that_are_submitted_are_a_document_too(tmp_path: Path) -> None:
    words = ["scheduler", "fake", "submit", str(tmp_path / "batch.json"), "--count", "2", "--json"]

    assert json.loads(CliRunner().invoke(app, words).stdout) == {"jobs": ["1", "2"]}


def test_jobs_are_submitted_and_shown_with_their_project(tmp_path: Path) -> None:
    batch = str(tmp_path / "batch.json")
    run = CliRunner()
    assert run.invoke(app, ["scheduler", "fake", "host", batch, "own-1"]).exit_code == 0

    made = run.invoke(app, ["scheduler", "fake", "submit", batch, "--project", "chip1"])
    shown = run.invoke(app, ["scheduler", "fake", "show", batch])

    assert (made.exit_code, made.stdout, shown.exit_code) == (0, "1\n", 0)
    assert [line.split() for line in shown.stdout.splitlines()] == [
        ["HOST", "STATE", "SLOTS", "INSTANCE", "JOBS"],
        ["own-1", "open", "1", "-", "-"],
        [],
        ["JOB", "PROJECT", "STATE", "HOSTS", "UNTIL"],
        ["1", "chip1", "waiting", "-", "-"],
        [],
        ["0", "ended"],
    ]


def test_a_job_is_refused_whose_requirement_no_session_could_read(tmp_path: Path) -> None:
    batch = tmp_path / "batch.json"
    run = CliRunner()

    result = run.invoke(
        app, ["scheduler", "fake", "submit", str(batch), "--resreq", "rusage[mem=16GB"]
    )

    assert isinstance(result.exception, InputError)
    assert "--resreq: column 16: expected" in str(result.exception)
    assert not batch.exists()


def _examples(
    command: object, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str]]:
    epilog = getattr(command, "epilog", None)
    if epilog:
        yield words, str(epilog)
    if isinstance(command, TyperGroup):
        for name in command.list_commands(typer.Context(command)):
            yield from _examples(command.get_command(typer.Context(command), name), (*words, name))


@pytest.mark.parametrize("program", [app, plain(operators)], ids=["xce", "xcecli"])
def test_help_shows_each_example_as_it_is_to_be_typed(program: typer.Typer) -> None:
    """Square brackets in it would be taken for markup, and left out."""
    examples = list(_examples(get_command(program)))
    assert len(examples) > 15

    for words, example in examples:
        shown = CliRunner().invoke(program, [*words, "--help"]).output
        assert "".join(example.split()) in "".join(shown.split()), words
