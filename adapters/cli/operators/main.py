"""The entry point ``xcecli``: lists and actions of operators."""

from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from xce.adapters.cli import terminal
from xce.adapters.cli.lazy import plain
from xce.adapters.cli.main import carry_out
from xce.adapters.cli.operators import actions, lists, tables
from xce.adapters.cli.operators.alerts import alerts
from xce.adapters.cli.operators.connection import Connection, connection_of
from xce.adapters.cli.operators.shared import shared
from xce.adapters.cli.operators.showing import Times, show
from xce.adapters.cli.operators.why import why

app = typer.Typer(
    name="xcecli",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: xcecli --token-file alice.token providers",
)
provider = typer.Typer(help="Pause and resume providers.", no_args_is_help=True)
orphan = typer.Typer(help="Settle what nobody owns.", no_args_is_help=True)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"xcecli {version('xce')}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    address: Annotated[
        list[str] | None,
        typer.Option(
            "--address",
            metavar="URL",
            help="Of a controller; may be repeated. Else XCE_ADDRESS, the configuration, http://127.0.0.1:8470.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="Who asks. Else XCE_TOKEN, XCE_TOKEN_FILE, the configuration.",
        ),
    ] = None,
    ca: Annotated[
        Path | None,
        typer.Option("--ca", metavar="FILE", help="Who signed the controller's certificate."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="YAML with addresses, token_file, ca... Else XCECLI_CONFIG, ~/.config/xce/xcecli.yaml.",
        ),
    ] = None,
    local: Annotated[
        bool, typer.Option("--local", help="Times of this machine's zone; else UTC.")
    ] = False,
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and stop."
        ),
    ] = False,
) -> None:
    """Look at, and steer, what xce does for a cluster: everything that the controller knows."""
    context.obj = Connection(tuple(address or ()), token_file, ca, config, local)


def status(context: typer.Context, as_json: terminal.JsonOption = False) -> None:
    """Where the controller is: position, session, and whether the site is frozen."""
    connection = connection_of(context)
    with connection.client() as client:
        found, site = client.status(), client.site()
    if as_json:
        terminal.write_json(found.to_json())
        return
    age = "unknown" if found.session_age_s is None else f"{found.session_age_s:.0f} s ago"
    show(f"xce {found.release}, position {found.position}, epoch {found.epoch}")
    show(f"last session: {age}")
    if found.no_session is not None:
        show(f"no session now: {found.no_session}")
    if site.frozen:
        show(f"frozen since {Times(connection.local).of(site.since)} by {site.by}: {site.why}")


def _add(command: object, name: str, example: str, group: typer.Typer = app) -> None:
    group.command(name, epilog=f"Example: xcecli {example}")(command)  # type: ignore[type-var]  # pyright: ignore[reportArgumentType, reportCallIssue]


_add(status, "status", "status")
_add(lists.demand, "demand", "demand --watch 5")
_add(tables.PROVIDERS.command(), "providers", "providers --json")
_add(tables.REQUESTS.command(), "requests", "requests --watch 5")
_add(tables.INSTANCES.command(), "instances", "instances")
_add(tables.GRANTS.command(), "grants", "grants")
_add(shared, "shared", "shared wavesim")
_add(tables.LEASES.command(), "leases", "leases")
_add(lists.costs, "costs", "costs --by project")
_add(lists.decisions, "decisions", "decisions --job 4711")
_add(tables.ORPHANS.command(), "orphans", "orphans")
_add(tables.DRAINS.command(), "drains", "drains")
_add(alerts, "alerts", "alerts --all")
_add(lists.audit, "audit", "audit --kind request --limit 10")
_add(why, "why", "why 4711")
_add(actions.drain, "drain", "drain node-7 --why disk --deadline 2h --at-deadline requeue")
_add(actions.open_host, "open", "open node-7")
_add(actions.give_back, "return", "return aws/i-0abc")
_add(actions.cancel, "cancel", "cancel R17")
_add(actions.freeze, "freeze", "freeze --why 'budget talks'")
_add(actions.unfreeze, "unfreeze", "unfreeze")
_add(actions.pause, "pause", "provider pause aws --item c4 --for 2h", provider)
_add(actions.resume, "resume", "provider resume aws --item c4", provider)
_add(actions.dismiss, "dismiss", "orphan dismiss aws/i-0abc --why 'the test team has it'", orphan)
app.add_typer(provider, name="provider")
app.add_typer(orphan, name="orphan")


def main() -> None:
    """Run the command line ``xcecli``."""
    carry_out(plain(app), "xcecli")
