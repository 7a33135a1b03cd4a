"""``xce provider``: check a folder of scripts against the contract, and install those that come with the package."""

import json
import secrets
import signal
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.table import Table

from xce.adapters.cli import exit_codes, terminal
from xce.adapters.cli.visible import cell
from xce.adapters.providers.check import check_provider
from xce.adapters.providers.check.findings import CheckReport, Outcome
from xce.adapters.providers.install import Comes, Knows, configuration_of, install
from xce.adapters.providers.slurm_local.settings import records
from xce.domain.errors import InputError
from xce.domain.formats.script_provider import ScriptSettings

app = typer.Typer(no_args_is_help=True, help="Providers that are folders of scripts.")

#: The check waits so many call limits for a request to end, within these bounds.
_WAIT_CALLS = 6
_WAIT_S = (30.0, 900.0)


@app.callback()
def root() -> None:
    """Providers that are folders of scripts."""


@app.command(epilog="Example: xce provider check /opt/providers/aws --call-limit 60")
def check(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="The folder with the scripts, or the one above its scripts/.",
            show_default=False,
        ),
    ],
    call_limit: Annotated[
        float,
        typer.Option(
            "--call-limit",
            metavar="SECONDS",
            min=1,
            max=3600,
            help="A call that takes longer is killed.",
        ),
    ] = 300,
    wait: Annotated[
        float | None,
        typer.Option(
            "--wait",
            metavar="SECONDS",
            min=1,
            max=86400,
            help="How long a request or return may take; default: 6 call limits, 30 to 900 s.",
        ),
    ] = None,
    conf: Annotated[
        Path | None,
        typer.Option("--conf", help="The folder above the provider's conf/; default: FOLDER."),
    ] = None,
    options: Annotated[str, typer.Option("--options", help="SCRIPT_OPTIONS of the scripts.")] = "",
    pass_variable: Annotated[
        list[str] | None,
        typer.Option(
            "--pass",
            metavar="NAME",
            help="A variable of the environment that the scripts get; may be repeated.",
        ),
    ] = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Run a provider through the contract, with and without faults: what it supports, and what it breaks.

    It asks for machines, of the cheapest template, and gives them back. The exit code is 0 where it is fit, 3 where it is not.
    """
    if not folder.is_dir():
        raise InputError.of(str(folder), "is no folder; wanted one with the scripts of a provider")
    settings = ScriptSettings(
        name=_name_of(folder),
        folder=str(folder.absolute()),
        conf=str(conf.absolute()) if conf else None,
        options=options,
        secrets=tuple(pass_variable or ()),
        call_limit=timedelta(seconds=call_limit),
    )
    wait_s = wait or min(max(_WAIT_CALLS * call_limit, _WAIT_S[0]), _WAIT_S[1])
    with (
        _ended_in_order(),
        tempfile.TemporaryDirectory(prefix="xce-check-", ignore_cleanup_errors=True) as kept,
    ):
        report = check_provider(
            settings, Path(kept), wait_s=wait_s, tag=f"check-{secrets.token_hex(6)}"
        )
    if as_json:
        terminal.write_json(report.to_json())
    else:
        terminal.print_table(table_of(report))
        for line in _summary(report):
            terminal.out.print(line, soft_wrap=True)
    if not report.fit:
        raise typer.Exit(exit_codes.NO)


@app.command("install", epilog="Example: xce provider install simulated ./burst --knows listing")
def install_command(
    what: Annotated[
        Comes,
        typer.Argument(metavar="WHAT", help="Which one.", show_default=False),
    ],
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Where; made if it is not there.", show_default=False),
    ],
    knows: Annotated[
        Knows,
        typer.Option(
            "--knows",
            help="Of the simulated one: it recognises tags, only lists what it has, or does neither (version 1).",
        ),
    ] = Knows.TAGS,
) -> None:
    """Write a provider that comes with the package as a folder of scripts, with a configuration to begin with; one that is there stays."""
    place = configuration_of(what, folder)
    kept = ": kept as it was; move it away for a new one" if place.exists() else ""
    names = install(what, folder, knows=knows)
    terminal.out.print(f"{len(names)} scripts in {folder / 'scripts'}", soft_wrap=True)
    terminal.out.print(f"configuration in {place}{kept}", soft_wrap=True)


@app.command("slurm-records", epilog="Example: xce provider slurm-records ./slurm")
def slurm_records(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Where the provider slurm-local was installed.",
            show_default=False,
        ),
    ],
) -> None:
    """Print what slurm.conf needs for the templates of a provider slurm-local: hidden records, so that jobs for them may wait."""
    place = configuration_of(Comes.SLURM_LOCAL, folder)
    try:
        lines = list(records(json.loads(place.read_text(encoding="utf-8"))))
    except OSError as error:
        raise InputError.of(str(place), f"cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError.of(str(place), f"is not understood: {error!r}") from None
    for line in lines:
        terminal.out.print(line, soft_wrap=True, markup=False, highlight=False)


def table_of(report: CheckReport) -> Table:
    """Return the findings as a table for people."""
    table = Table(box=None, pad_edge=False)
    for heading in ("WHAT", "OUTCOME", "DETAIL"):
        table.add_column(heading, overflow="fold")
    for finding in report.findings:
        style = "red" if finding.outcome is Outcome.BROKEN else ""
        table.add_row(*map(cell, (finding.what, finding.outcome, finding.detail)), style=style)
    return table


def _summary(report: CheckReport) -> Iterator[str]:
    yield ""
    yield f"supports: {', '.join(report.supports) or 'nothing that works'}"
    broken = sum(finding.outcome is Outcome.BROKEN for finding in report.findings)
    yield "fit for use" if report.fit else f"not fit for use: {broken} broken"
    if report.left:
        yield "left at the provider; see to it by hand:"
        yield from (f"  {one}" for one in report.left)


@contextmanager
def _ended_in_order() -> Generator[None, None, None]:
    """Take a request to end for one from the keyboard: what was made is given back, and no script is left running."""

    def end(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _name_of(folder: Path) -> str:
    name = "".join(c for c in folder.resolve().name if c.isprintable())[:64]
    return name or "provider"
