"""``xcecli shared [NAME]``: elastic resources with what is booked, seen and free; of one, its grants and why they stay."""

import json
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.table import Table

from xce.adapters.cli import terminal
from xce.adapters.cli.operators import completion
from xce.adapters.cli.operators.connection import connection_of
from xce.adapters.cli.operators.showing import Times, WatchOption, again, page_json, show
from xce.adapters.cli.visible import cell
from xce.adapters.client import Client
from xce.domain.errors import NotFoundError
from xce.domain.formats.observation import Observation
from xce.domain.formats.rest import SharedEntry, Supply
from xce.domain.sharing.display import HEADINGS, SharedRow, shared_rows, why_it_stays
from xce.domain.sharing.recall import recalled_by, recalled_of


def shared(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            autocompletion=completion.SHARED,
            help="One resource, with all that is lent.",
        ),
    ] = None,
    as_json: terminal.JsonOption = False,
    watch: WatchOption = None,
) -> None:
    """Shared resources: what is owned, borrowed, booked, seen by the licence server, and free."""
    connection = connection_of(context)
    with connection.client() as client:
        if name is None:
            again(lambda: _list(client, as_json=as_json), watch, as_json=as_json)
        else:
            times = Times(connection.local)
            again(lambda: _one(client, name, times, as_json=as_json), watch, as_json=as_json)


def shared_table(rows: list[SharedRow]) -> Table:
    """Return rows as the table for people."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in ("RESOURCE", "NOTE") else "right")
    for row in rows:
        table.add_row(*map(cell, row.cells()))
    return table


def _list(client: Client, *, as_json: bool) -> None:
    if as_json:
        terminal.write_json(page_json(client.shared()))
        return
    rows = _rows(client, client.supply())
    if rows:
        terminal.print_table(shared_table(rows))
    else:
        show("no shared resources")


def _one(client: Client, name: str, times: Times, *, as_json: bool) -> None:
    supply = client.supply()
    found = [
        (row, entry)
        for row, entry in zip(_rows(client, supply), supply.shared, strict=True)
        if entry.name == name
    ]
    if not found:
        raise NotFoundError(f"no shared resource {name}")
    ((row, entry),) = found
    grants = _grants(row, entry, supply)
    looks = [one for one in client.observations().observations if one.resource == name]
    if as_json:
        document = {
            **_document(row, entry),
            "grants": grants,
            "observations": [json.loads(one.to_json()) for one in looks],
        }
        terminal.write_json(json.dumps(document))
        return
    terminal.print_table(shared_table([row]))
    show("")
    if grants:
        terminal.print_table(_grant_table(grants, times))
    else:
        show("nothing is borrowed")
    for look in looks:
        show(_look(look, times))


def _grant_table(grants: list[dict[str, Any]], times: Times) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("GRANT", "AMOUNT", "SINCE", "HOLD UNTIL", "ENDS", "GOES BACK NOW"):
        table.add_column(heading, justify="right" if heading == "AMOUNT" else "left")
    for grant in grants:
        held, ends = grant["hold_until"], grant["expires_at"]
        table.add_row(
            cell(grant["id"]),
            cell(str(grant["left"])),
            cell(times.of(datetime.fromisoformat(grant["granted_at"])) or "-"),
            cell((None if held is None else times.of(datetime.fromisoformat(held))) or "-"),
            cell((None if ends is None else times.of(datetime.fromisoformat(ends))) or "-"),
            cell(f"no: {grant['stays']}" if grant["stays"] else "once it was idle long enough"),
        )
    return table


def _look(look: Observation, times: Times) -> str:
    numbers = ", ".join(
        f"{number} {what}"
        for what, number in (
            ("issued", look.issued),
            ("in use", look.in_use),
            ("reserved", look.reserved),
            ("lingering", look.lingering),
            ("queued", look.queued),
        )
        if number is not None
    )
    note = f" ({look.note})" if look.note else ""
    at = times.of(look.observed_at)
    return f"{look.source} at {at}: {look.quality.value}, {numbers or 'nothing known'}{note}"


def _rows(client: Client, supply: Supply) -> list[SharedRow]:
    recalls = recalled_by((one.description for one in supply.providers), supply.inventory.grants)
    return shared_rows(
        supply.shared,
        client.observations(),
        supply.now,
        booked=_booked(client),
        recalled={entry.name: recalled_of(recalls, entry.name) for entry in supply.shared},
    )


def _booked(client: Client) -> dict[str, int] | None:
    """Return what jobs hold, by the newest snapshot; None: none was posted."""
    try:
        running = client.snapshot().running
    except NotFoundError:
        return None
    booked: dict[str, int] = {}
    for job in running:
        for name, amount in job.shared.items():
            booked[name] = booked.get(name, 0) + amount
    return booked


def _grants(row: SharedRow, entry: SharedEntry, supply: Supply) -> list[dict[str, Any]]:
    return [
        {
            **json.loads(grant.to_json()),
            "left": grant.amount - grant.returned - grant.returning,
            "stays": why_it_stays(grant, row, entry, supply.inventory.requests, supply.now),
        }
        for grant in supply.inventory.grants
        if grant.resource == entry.name
    ]


def _document(row: SharedRow, entry: SharedEntry) -> dict[str, Any]:
    return {
        **json.loads(entry.to_json()),
        "in_use": row.in_use,
        "booked": row.booked,
        "observed": row.observed,
        "observed_age_s": row.age_s,
        "observation": row.sight.value,
        "unbooked": row.unbooked,
        "free": row.free,
        "over": row.over,
        "notes": list(row.notes),
    }
