"""The command line reference, from the commands themselves."""

from collections.abc import Iterator

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from xce.adapters.cli import exit_codes
from xce.adapters.cli.main import app
from xce.adapters.cli.operators.main import app as operators

HEAD = """# Command line

Made from the code by `tools/generate.py`; do not edit. Data goes to stdout, everything else to stderr.

## Exit codes

| code | meaning |
|---|---|
"""


OPERATORS = """# xcecli

Made from the code by `tools/generate.py`; do not edit. What operators type: every list and action that the controller knows, over
[its REST interface](rest.md). [How to operate](../how-to/operate.md) shows it at work. Exit codes are those of [xce](cli.md).

`--json` prints the document that the interface gives, a list as one page. Flags come first: `xcecli --address URL requests`.
"""


def pages() -> Iterator[tuple[str, str]]:
    """Yield the page of each program."""
    text = HEAD + "".join(
        f"| {code} | {meaning} |\n" for code, meaning in exit_codes.MEANING.items()
    )
    root = typer.main.get_command(app)
    text += "".join(_command(root, "xce"))
    yield "docs/reference/cli.md", text
    operators_root = typer.main.get_command(operators)
    yield "docs/reference/xcecli.md", OPERATORS + "".join(_command(operators_root, "xcecli"))


def _command(command: object, path: str) -> Iterator[str]:
    assert isinstance(command, (TyperCommand, TyperGroup))
    context = typer.Context(command, info_name=path)
    if path not in ("xce", "xcecli"):
        yield f"\n## {path}\n\n{(command.help or '').strip()}\n"
        rows = [_row(parameter, context) for parameter in command.params]
        if rows:
            yield "\n| argument or option | meaning |\n|---|---|\n"
            yield from rows
        if command.epilog:
            yield f"\n{command.epilog.strip()}\n"
    if isinstance(command, TyperGroup):
        for name in command.list_commands(context):
            yield from _command(command.get_command(context, name), f"{path} {name}")


def _row(parameter: object, context: typer.Context) -> str:
    assert isinstance(parameter, (TyperArgument, TyperOption))
    record = parameter.get_help_record(context)
    name, meaning = record if record is not None else (str(parameter.name), "")
    return f"| `{_escaped(name)}` | {_escaped(meaning.strip())} |\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
