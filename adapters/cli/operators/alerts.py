"""``xcecli alerts``: what is not as it should be, since when, and who does not know of it yet."""

from typing import Annotated, Final

import typer

from xce.adapters.cli import terminal
from xce.adapters.cli.operators.showing import Column, WatchOption, by_state
from xce.adapters.cli.operators.tables import Listing
from xce.adapters.client import Client
from xce.domain.alerts.alert import AlertState
from xce.domain.formats.rest import AlertEntry

ALERTS: Final[Listing[AlertEntry]] = Listing(
    "alerts",
    "What is not as it should be, since when, and which webhooks do not know of it yet.",
    Client.alerts,
    (
        Column("kind", lambda entry: entry.kind.value),
        Column("state", lambda entry: entry.state.value, by_state),
        Column("since", lambda entry: entry.raised_at),
        Column("not told", lambda entry: entry.not_told, wraps=True, extra=True),
        Column("until", lambda entry: entry.cleared_at, extra=True),
        Column("what", lambda entry: entry.text, wraps=True),
    ),
)


def alerts(
    context: typer.Context,
    every: Annotated[
        bool, typer.Option("--all", help="Those that are over, too; the log has older ones.")
    ] = False,
    as_json: terminal.JsonOption = False,
    watch: WatchOption = None,
) -> None:
    """What is not as it should be, since when, and which webhooks do not know of it yet."""

    def wanted(client: Client) -> list[AlertEntry]:
        return [one for one in client.alerts() if every or one.state is AlertState.RAISED]

    ALERTS.show(context, watch, as_json=as_json, entries=wanted)
