"""The entry point ``xce``: all commands by name, and how an error becomes an exit code."""

import os
import sys
from importlib.metadata import version
from typing import Annotated, Final, NoReturn

import typer

from xce.adapters.cli import exit_codes
from xce.adapters.cli.lazy import Lazy, LazyGroup
from xce.adapters.cli.visible import visible
from xce.adapters.files import cannot_write
from xce.domain.errors import XceError

#: An input of which every line is wrong is not answered with as many lines.
LINES_MAX: Final = 100

#: Every command; one more is one row.
COMMANDS: Final = {
    "demo": Lazy("demo", "command", "Example: xce demo --out /tmp/demo --seed 8"),
    "session": Lazy("session", "command", "Example: xce session examples/evening.json"),
    "policy": Lazy("policy", "policy", "Example: xce policy examples/round.json"),
    "sim": Lazy("sim"),
    "workload": Lazy("workload"),
    "replay": Lazy("replay"),
    "recording": Lazy("recording"),
    "audit": Lazy("audit"),
    "config": Lazy("config"),
    "controller": Lazy("controller"),
    "provider": Lazy("provider"),
    "provisioner": Lazy("provisioner"),
    "scheduler": Lazy("scheduler"),
    "snapshot": Lazy("snapshot"),
    "licence": Lazy("licence"),
    "pool": Lazy("pool"),
}


class _Commands(LazyGroup):
    table = COMMANDS


app = typer.Typer(
    name="xce",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: xce demo",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"xce {version('xce')}")
        raise typer.Exit


@app.callback()
def root(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and stop."
        ),
    ] = False,
) -> None:
    """Automatic resource provisioning for batch clusters: hosts and licence tokens follow the queue."""


def main() -> None:
    """Run the command line ``xce``."""
    carry_out(app, "xce")


def carry_out(program: typer.Typer, name: str) -> None:
    """Run a command line; every error made on purpose is one message on stderr and an exit code."""
    try:
        try:
            program()
        finally:
            if sys.stdout is not None:  # closed by the caller: `>&-`
                sys.stdout.flush()
    except XceError as error:
        end(str(error), exit_codes.exit_code_of(error), name)
    except BrokenPipeError:
        # The reader of a pipe went away; what it wanted was written.
        leave_stdout()
        raise SystemExit(exit_codes.DONE) from None
    except OSError as error:
        if error.filename is not None:
            raise  # of a file: a command should have said which, so this is a defect
        leave_stdout()
        failure = cannot_write("standard output", error)
        end(str(failure), exit_codes.exit_code_of(failure), name)
    except SystemExit as status:
        if status.code == exit_codes.INTERRUPTED:
            end("interrupted", exit_codes.INTERRUPTED, name)
        if status.code == exit_codes.UNEXPECTED and isinstance(status.__context__, BrokenPipeError):
            # As above; libraries take it for a failure.
            leave_stdout()
            raise SystemExit(exit_codes.DONE) from None
        raise


def end(message: str, code: int, name: str = "xce") -> NoReturn:
    """Say on stderr why it ends, every line with the name of the program, and end."""
    lines = message.splitlines()
    for line in lines[:LINES_MAX]:
        print(f"{name}: {visible(line)}", file=sys.stderr)
    if len(lines) > LINES_MAX:
        print(f"{name}: and {len(lines) - LINES_MAX} more", file=sys.stderr)
    raise SystemExit(code) from None


def leave_stdout() -> None:
    """Let what is still to be written go nowhere, so that the interpreter does not complain as it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
