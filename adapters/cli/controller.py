"""``xce controller``: the daemon that owns the log, and the tokens for those who call it."""

from pathlib import Path
from typing import Annotated

import typer
from pydantic import StrictBool

from xce.adapters.cli import exit_codes, terminal
from xce.domain.engine.messages import Caller, Role
from xce.domain.errors import InputError, PermanentError, XceError
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


class TriedWebhook(Format):
    """What became of a trial notice."""

    webhook: str
    delivered: StrictBool
    why: str


class TriedWebhooks(Format):
    """The answer of ``xce controller try-webhook --json``."""

    items: tuple[TriedWebhook, ...]


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


@app.command(
    "try-webhook",
    epilog="Example: xce controller try-webhook --config controller.yaml --webhook pager",
)
def try_webhook(
    config: Annotated[
        Path, typer.Option("--config", metavar="FILE", help="The controller's configuration.")
    ],
    webhook: Annotated[
        str | None, typer.Option("--webhook", metavar="NAME", help="Only this one; else all.")
    ] = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Send a notice that says that it is a trial to the webhooks of a configuration, once; nothing of it is recorded."""
    import asyncio
    from datetime import UTC, datetime

    from xce.adapters.controller.alerts import posters_of, trial_notice
    from xce.adapters.controller.service import read_controller_config
    from xce.adapters.controller.turn import name_of

    read = read_controller_config(config)
    posters = posters_of(read.alerts)
    wanted = [one for one in read.alerts.webhooks if webhook in (None, one.name)]
    if not wanted:
        names = ", ".join(posters) or "none"
        raise InputError.of(str(config), f"has no webhook {webhook or 'at all'}; there are {names}")
    failure: XceError | None = None
    results: list[TriedWebhook] = []
    for one in wanted:
        notice = trial_notice(one, name_of(read), datetime.now(UTC))
        why = ""
        try:
            asyncio.run(posters[one.name].post(notice))
        except XceError as error:
            failure, why = error, str(error)
        results.append(TriedWebhook(webhook=one.name, delivered=not why, why=why))
    if as_json:
        terminal.write_json(TriedWebhooks(items=tuple(results)).to_json())
    else:
        for result in results:
            said = "delivered" if result.delivered else f"not delivered: {result.why}"
            terminal.out.print(f"{result.webhook}: {said}", soft_wrap=True)
    if failure is not None:
        raise typer.Exit(exit_codes.exit_code_of(failure))
