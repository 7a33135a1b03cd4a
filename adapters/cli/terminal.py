"""What all commands share: data to stdout, everything else to stderr, one way to read a file."""

import io
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from xce.adapters.cli.visible import PlainConsole
from xce.domain.errors import InputError

#: For people: tables on stdout, without colour where it is not a terminal; ``print_table`` says how wide.
out: Console = PlainConsole(soft_wrap=False)
err: Console = PlainConsole(stderr=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document for programs.")]

PROCESSES_MAX = 1024

ProcessesOption = Annotated[
    int | None,
    typer.Option(
        "--processes",
        min=1,
        max=PROCESSES_MAX,
        help="Runs at once; by default as many as there are cores.",
        show_default=False,
    ),
]

INPUT_BYTES_MAX = 256 * 1024 * 1024


def read_input(name: str) -> bytes:
    """Return the bytes of a file, or of standard input for ``-``.

    Raises:
        InputError: the file cannot be read, or is larger than ``INPUT_BYTES_MAX``.
    """
    source = source_name(name)
    if name == "-" and sys.stdin is None:  # closed by the caller: `<&-`
        raise InputError.of(source, "is closed; wanted a document")
    try:
        if name == "-":
            data = sys.stdin.buffer.read(INPUT_BYTES_MAX + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(INPUT_BYTES_MAX + 1)
    except OSError as error:
        raise InputError.of(source, f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a NUL byte in the name
        raise InputError.of(repr(name), f"cannot be read: {error}") from None
    if len(data) > INPUT_BYTES_MAX:
        raise InputError.of(source, f"is larger than {INPUT_BYTES_MAX // 1024**2} MiB")
    return data


def source_name(name: str) -> str:
    """Return how errors name the input."""
    return "<stdin>" if name == "-" else name


def write_json(text: str) -> None:
    """Print one JSON document to stdout, if there is one: `>&-` closes it."""
    if sys.stdout is not None:
        sys.stdout.write(text + "\n")


def print_table(table: Table, console: Console = out) -> None:
    """Print a table: as wide as the terminal, or as its cells and without blanks at the end, where a program or a file reads it."""
    table = titled(table)
    if console.is_terminal:
        console.print(table)
        return
    wide = console.options.update(max_width=10**6)
    width = max(1, Measurement.get(console, wide, table).maximum)
    text = io.StringIO()
    PlainConsole(file=text, width=width, no_color=True).print(table, crop=False)
    console.file.write("".join(f"{line.rstrip(' ')}\n" for line in text.getvalue().splitlines()))


def titled(table: Table) -> Table:
    """Return a table with its titles in capitals; a name from elsewhere over a column is a ``Text`` and stays as it is."""
    for column in table.columns:
        if isinstance(column.header, str):
            column.header = column.header.upper()
    return table


def progress_bar(*, quiet: bool = False) -> Progress:
    """Return a progress bar on stderr, shown only on a terminal."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=err,
        disable=quiet or not err.is_terminal,
        transient=True,
    )
