"""What all commands share: data to stdout, everything else to stderr, one way to read a file."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from xce.domain.errors import InputError

#: For people: tables on stdout; no colour and no wrapping at 80 where it is not a terminal.
out = Console(soft_wrap=False)
err = Console(stderr=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document for programs.")]

INPUT_BYTES_MAX = 256 * 1024 * 1024


def read_input(name: str) -> bytes:
    """Return the bytes of a file, or of standard input for ``-``.

    Raises:
        InputError: the file cannot be read, or is larger than ``INPUT_BYTES_MAX``.
    """
    source = "<stdin>" if name == "-" else name
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
    """Print one JSON document to stdout."""
    sys.stdout.write(text + "\n")


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
