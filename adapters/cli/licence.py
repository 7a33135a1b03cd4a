"""``xce licence parse FILE``: what a text of a licence server says."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from xce.adapters.cli import terminal
from xce.adapters.cli.visible import cell
from xce.adapters.observers.flexnet.parser import parse_file
from xce.adapters.observers.flexnet.report import Feature, FeatureKind, Report, document_of
from xce.domain.errors import InputError

app = typer.Typer(
    name="licence",
    help="Read what licence servers say.",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def licence() -> None:
    """Read what licence servers say."""


@app.command(epilog="Example: lmutil lmstat -a | xce licence parse -")
def parse(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The text of lmutil lmstat -a; - is stdin.")
    ],
    as_json: terminal.JsonOption = False,
) -> None:
    """Show what a text of FlexNet's lmstat says of each feature; what it does not say is unknown, never 0."""
    report = _read(file)
    if as_json:
        terminal.write_json(json.dumps(document_of(report), indent=1))
    else:
        _show(report)
    if report.cut is not None:
        terminal.err.print(f"the text is cut: {report.cut}")


def _read(name: str) -> Report:
    source = terminal.source_name(name)
    try:
        if name != "-":
            with Path(name).open("rb") as file:
                return parse_file(file)
        if sys.stdin is None:  # closed by the caller: `<&-`
            raise InputError.of(source, "is closed; wanted the text of lmstat")
        return parse_file(sys.stdin.buffer)
    except OSError as error:
        raise InputError.of(source, f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a NUL byte in the name
        raise InputError.of(repr(name), f"cannot be read: {error}") from None


def _show(report: Report) -> None:
    when = "" if report.reported_at is None else f", {report.reported_at:%Y-%m-%d %H:%M}"
    terminal.out.print(f"{report.state.value}{when}")
    for server in report.servers:
        master = " (master)" if server.master else ""
        terminal.out.print(f"server {server.host}: {'up' if server.up else 'down'}{master}")
    for vendor in report.vendors:
        terminal.out.print(f"vendor {vendor.name}: {'up' if vendor.up else 'down'}")
    if not report.features:
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("FEATURE", "VENDOR", "SERVER"):
        table.add_column(heading)
    for heading in ("ISSUED", "IN-USE", "FREE", "RESERVED", "BORROWED", "QUEUED"):
        table.add_column(heading, justify="right")
    table.add_column("NOTE")
    for feature in report.features:
        table.add_row(*map(cell, _row(feature)))
    terminal.print_table(table)


def _row(feature: Feature) -> tuple[str, ...]:
    note = feature.error or ""
    if feature.kind is FeatureKind.UNCOUNTED:
        note = "no limit"
    return (
        feature.name,
        feature.vendor or "-",
        feature.server,
        _known(feature.issued),
        _known(feature.in_use),
        _known(feature.free),
        str(feature.reserved),
        str(feature.borrowed),
        str(feature.queued),
        note,
    )


def _known(amount: int | None) -> str:
    return "-" if amount is None else str(amount)
