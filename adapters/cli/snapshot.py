"""``xce snapshot``: what a batch system shows, as the snapshot that a session would see."""

from pathlib import Path
from typing import Annotated

import typer

from xce.adapters.cli import terminal
from xce.domain.errors import InputError, PermanentError

app = typer.Typer(help="Show a batch system as a snapshot.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Show a batch system as a snapshot."""


@app.command(epilog="Example: xce snapshot slurm --out now.json && xce session now.json")
def slurm(
    conf: Annotated[
        Path | None, typer.Option("--conf", metavar="FILE", help="The slurm.conf of the cluster.")
    ] = None,
    commands: Annotated[
        Path | None,
        typer.Option("--commands", metavar="FOLDER", help="Where squeue and the others are."),
    ] = None,
    rest: Annotated[
        str | None,
        typer.Option(
            "--rest", metavar="ADDRESS", help="slurmrestd: unix:/path or http://host:port."
        ),
    ] = None,
    rest_token: Annotated[
        Path | None,
        typer.Option("--rest-token", metavar="FILE", help="File with the JWT for slurmrestd."),
    ] = None,
    text: Annotated[
        bool, typer.Option("--text", help="Read the text forms of the commands, not their JSON.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write there, not to stdout.")
    ] = None,
    differences: Annotated[
        bool,
        typer.Option(
            "--differences", help="Show jobs that a session would start and Slurm does not."
        ),
    ] = False,
) -> None:
    """Read a Slurm once, write nothing to it, and print the snapshot; what could not be used is named on stderr."""
    from xce.adapters.clock import SystemClock
    from xce.adapters.schedulers.slurm.build import view_of
    from xce.adapters.schedulers.slurm.source import reader_of
    from xce.domain.formats.scheduler_config import SlurmSource
    from xce.domain.formats.snapshot_check import contradictions

    config = SlurmSource(
        conf=None if conf is None else str(conf.absolute()),
        commands=None if commands is None else str(commands.absolute()),
        rest=rest,
        rest_token_file=None if rest_token is None else str(rest_token),
        json_output=not text,
        observe_only=True,
    )
    try:
        reader, _, _ = reader_of(config)
    except ModuleNotFoundError as error:
        raise PermanentError(
            f"{error.name} is not installed; install xce with its extra: pip install 'xce[controller]'"
        ) from None
    readings = reader.read(SystemClock().now())
    view = view_of(readings)
    for source, problem in view.troubles:
        terminal.err.print(f"not used: {source} {problem}", markup=False, highlight=False)
    if problems := list(contradictions(view.snapshot)):
        raise InputError("what Slurm shows", problems)
    if differences:
        from xce.adapters.schedulers.slurm.differences import differences as found
        from xce.domain.scheduling.session import run_session

        result = run_session(view.snapshot)
        for one in found(view, readings.nodes, result.allocations):
            terminal.out.print(str(one), markup=False, highlight=False, soft_wrap=True)
        return
    document = view.snapshot.to_json()
    if out is None:
        terminal.write_json(document)
        return
    try:
        out.write_text(document + "\n", "utf-8")
    except OSError as error:
        raise PermanentError(f"{out} cannot be written: {error.strerror}") from None
