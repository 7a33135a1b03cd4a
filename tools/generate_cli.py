"""The command line reference, from the commands themselves."""

from collections.abc import Iterator

import click
import typer

from xce.adapters.cli import exit_codes
from xce.adapters.cli.main import app

HEAD = """# Command line

Made from the code by `tools/generate.py`; do not edit. Data goes to stdout, everything else to stderr.

## Exit codes

| code | meaning |
|---|---|
"""


def pages() -> Iterator[tuple[str, str]]:
    """Yield the one page."""
    text = HEAD + "".join(f"| {code} | {meaning} |\n" for code, meaning in exit_codes.MEANING.items())
    root = typer.main.get_command(app)
    text += "".join(_command(root, "xce"))
    yield "docs/reference/cli.md", text


def _command(command: click.Command, path: str) -> Iterator[str]:
    context = click.Context(command, info_name=path)
    if not (isinstance(command, click.Group) and path == "xce"):
        yield f"\n## {path}\n\n{(command.help or '').strip()}\n"
        rows = [_row(parameter, context) for parameter in command.params if parameter.name != "help"]
        if rows:
            yield "\n| argument or option | meaning |\n|---|---|\n"
            yield from rows
        if command.epilog:
            yield f"\n{command.epilog.strip()}\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from _command(child, f"{path} {name}")


def _row(parameter: click.Parameter, context: click.Context) -> str:
    record = parameter.get_help_record(context)
    if record is None:
        name, meaning = parameter.make_metavar(context), getattr(parameter, "help", None) or ""
    else:
        name, meaning = record
    return f"| `{name.replace('|', chr(92) + '|')}` | {meaning.strip().replace('|', chr(92) + '|')} |\n"
