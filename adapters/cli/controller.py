"""``xce controller``: the daemon that owns the log, and the tokens for those who call it."""

from pathlib import Path
from typing import Annotated

import typer

from xce.adapters.cli import terminal
from xce.domain.engine.messages import Caller, Role
from xce.domain.errors import InputError, PermanentError
from xce.domain.formats.base import Format

app = typer.Typer(
    help="Run the controller: it owns the log, answers over REST, pushes demand and grants leases.",
    invoke_without_command=True,
    epilog="Example: xce controller --config controller.yaml",
)


class NewToken(Format):
    """The answer of ``xce controller token --json``."""

    token: str
    line: str


@app.callback()
def run(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="The configuration, in YAML.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Read the configuration and its files, and stop.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Say more in the log: one line for each call.")
    ] = False,
) -> None:
    """Serve until SIGTERM; what was acknowledged is on disk."""
    if context.invoked_subcommand is not None:
        return
    if config is None:
        raise InputError.of("xce controller", "wanted --config FILE")
    try:
        from xce.adapters.controller.service import (
            ControllerService,
            read_controller_config,
            set_up_logging,
        )
    except ModuleNotFoundError as error:
        raise PermanentError(
            f"{error.name} is not installed; install xce with its extra: pip install 'xce[controller]'"
        ) from None
    service = ControllerService(read_controller_config(config), config)
    if check:
        terminal.out.print(f"{config} is fit for use", markup=False, highlight=False)
        return
    set_up_logging(debug=debug)
    service.run()


@app.command(
    epilog="Example: xce controller token --role viewer --name alice >> tokens.txt  (the token itself goes to stderr)"
)
def token(
    role: Annotated[Role, typer.Option("--role", help="What its owner may do.")],
    name: Annotated[str, typer.Option("--name", help="Whose it is; events name it.")],
    as_json: terminal.JsonOption = False,
) -> None:
    """Make a token: its line for the token file on stdout, itself, once, on stderr."""
    from xce.adapters.controller.access import new_token, require_name, token_line

    made = new_token()
    line = token_line(Caller(role, require_name(name, "--name")), made)
    if as_json:
        terminal.write_json(NewToken(token=made, line=line).to_json())
        return
    terminal.err.print(f"token (shown once): {made}", markup=False, highlight=False, soft_wrap=True)
    terminal.out.print(line, markup=False, highlight=False, soft_wrap=True)
