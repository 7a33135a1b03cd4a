"""Lists of ``xcecli`` that are more than a table: demand, costs, decisions, the log. The others: ``tables.py``."""

import json
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Final
from zoneinfo import ZoneInfo

import typer
from rich.table import Table

from xce.adapters.cli import terminal
from xce.adapters.cli.operators import attribution
from xce.adapters.cli.operators.connection import connection_of
from xce.adapters.cli.operators.showing import (
    Column,
    Times,
    WatchOption,
    again,
    print_entries,
    show,
    shown,
)
from xce.adapters.cli.operators.tables import BUDGETS, DECISIONS, HOLDS, UNACCOUNTED, write
from xce.adapters.client import Client
from xce.domain.events.ids import name_of
from xce.domain.formats.periods import Period
from xce.domain.formats.policy import Decision
from xce.domain.formats.rest import CostLine, DecisionEntry, EventEntry, SpentPeriods

#: Events that ``audit`` looks through for those that fit.
LOOKED_AT_MAX = 100_000


class By(StrEnum):
    """What costs are put down to: whose jobs use what costs now, or when it was spent."""

    PROJECT = "project"
    USER = "user"
    QUEUE = "queue"
    DAY = "day"
    MONTH = "month"


# ----------------------------------------------------------------------- demand
def demand(
    context: typer.Context, as_json: terminal.JsonOption = False, watch: WatchOption = None
) -> None:
    """What jobs wait for: hosts by template, tokens by resource, who cannot be helped, and what could go back."""
    with connection_of(context).client() as client:

        def once() -> None:
            message = client.session()
            if as_json:
                terminal.write_json(message.to_json())
                return
            if message.result is None:
                show(
                    "demand is unknown: no session result since the controller started, or too old; the log of xce scheduler says why"
                )
                return
            result = message.result
            show(
                f"session {message.number} of {message.by}, {message.age_s:.0f} s ago, at position {result.position}"
            )
            table = Table(box=None, pad_edge=False, header_style="bold")
            for title in ("wanted", "of", "jobs"):
                table.add_column(title, justify="right" if title == "wanted" else "left")
            for host in result.demand.hosts:
                jobs = shown([one.job for one in host.jobs])
                table.add_row(str(host.count), f"hosts {host.template}", jobs)
            for line in result.demand.countable:
                text = f"{line.name} (of {line.wanted}, the others are on their way)"
                name = line.name if line.amount == line.wanted else text
                table.add_row(str(line.amount), name, shown([one.job for one in line.jobs]))
            if table.row_count:
                terminal.print_table(table)
            else:
                show("nothing is wanted")
            for one in result.demand.impossible[:20]:
                show(f"job {one.job} can never run: {one.why}")
            if len(result.demand.impossible) > 20:
                show(f"and {len(result.demand.impossible) - 20} more that can never run")
            for idle in result.idle.hosts:
                show(f"idle: host {idle.host} ({idle.instance})")
            for count in result.idle.counts:
                show(f"idle: {count.amount} of {count.name}")

        again(once, watch, as_json=as_json)


# ------------------------------------------------------------------------ money
def _spent(found: SpentPeriods, zone: str, *, as_json: bool) -> None:
    """Show what was spent in each day or month."""
    if as_json:
        terminal.write_json(found.to_json())
        return
    if not found.items:
        show("nothing was spent")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in (found.items[0].period.value, "provider", "item", "project", "cost", "no price"):
        table.add_column(title, justify="right" if title in ("cost", "no price") else "left")
    for spent in found.items:
        local = spent.since.astimezone(ZoneInfo(zone))
        began = f"{local:%Y-%m}" if spent.period is Period.MONTH else f"{local:%Y-%m-%d}"
        for line in spent.lines:
            cells = (line.provider, line.item, line.project, line.cost, line.unpriced or None)
            table.add_row(began, *map(shown, cells))
    terminal.print_table(table)


def costs(
    context: typer.Context,
    by: Annotated[
        By | None,
        typer.Option(
            "--by",
            help="Costs per hour by whose jobs use it now, as far as that is known; or what was spent by day or month.",
        ),
    ] = None,
    zone: Annotated[
        str,
        typer.Option(
            "--zone", help="Whose midnight begins a day or month, with --by day or month."
        ),
    ] = "UTC",
    as_json: terminal.JsonOption = False,
    watch: WatchOption = None,
) -> None:
    """What everything cost so far and costs per hour, and how far budgets are used."""
    connection = connection_of(context)
    times = Times(connection.local)
    columns: list[Column[CostLine]] = [
        Column("provider", lambda line: line.provider),
        Column("item", lambda line: line.item if line.owned else f"{line.item or '?'}, orphans"),
        Column("now", lambda line: line.live, right=True),
        Column("ended", lambda line: line.ended, right=True),
        Column("used", lambda line: timedelta(seconds=round(line.used.total_seconds())), right=True),
        Column("billed", lambda line: line.billed, right=True),
        Column("per hour", lambda line: line.per_hour, right=True),
        Column("cost", lambda line: line.cost, right=True),
        Column("no price", lambda line: line.unpriced or None, right=True),
    ]  # fmt: skip
    with connection.client() as client:

        def once() -> None:
            if by is By.DAY or by is By.MONTH:
                _spent(client.spent(Period(by.value), zone), zone, as_json=as_json)
                return
            if by is not None:
                parts = attribution.attributed(
                    client.snapshot(), client.supply().inventory, attribution.KEYS[by.value]
                )
                if as_json:
                    items = [
                        {by.value: name, "per_hour": format(part, "f")} for name, part in parts
                    ]
                    terminal.write_json(json.dumps({"items": items, "next": None}))
                    return
                table = Table(box=None, pad_edge=False, header_style="bold")
                table.add_column(by.value)
                table.add_column("per hour", justify="right")
                for name, part in parts:
                    table.add_row(name, shown(part))
                terminal.print_table(table)
                return
            found = client.costs()
            if as_json:
                terminal.write_json(found.to_json())
                return
            if found.lines:
                print_entries(found.lines, columns, times)
            if found.unaccounted:
                print_entries(found.unaccounted, UNACCOUNTED, times)
            standing = client.standing().reports
            uses = [use for one in standing.values() for use in one.budgets]
            if uses:
                print_entries(uses, BUDGETS, times)
            show(
                f"cost {shown(found.cost)}, now {shown(found.per_hour)} per hour, at {times.of(found.now)}"
            )

        again(once, watch, as_json=as_json)


# ---------------------------------------------------------------------- reasons
def decisions(
    context: typer.Context,
    job: Annotated[str | None, typer.Option("--job", help="Only those for this job.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many.")] = 20,
    held: Annotated[
        bool,
        typer.Option("--held", help="What the provisioners deliberately do not do now, and why."),
    ] = False,
    as_json: terminal.JsonOption = False,
    watch: WatchOption = None,
) -> None:
    """The newest decisions: what was done, for which jobs, why; or what is held now, and why."""

    def holds(client: Client) -> list[Decision]:
        reports = client.standing().reports.values()
        found = [one for report in reports for one in report.holds]
        return [one for one in found if job is None or job in one.jobs][:limit]

    if held:
        HOLDS.show(context, watch, as_json=as_json, entries=holds)
        return

    def newest(client: Client) -> list[DecisionEntry]:
        return [one for one in client.decisions() if job is None or job in one.jobs][:limit]

    DECISIONS.show(context, watch, as_json=as_json, entries=newest)


def _why(event: EventEntry) -> object:
    return event.data.get("why") or event.data.get("reason") or event.data.get("text")


#: The columns of ``audit``; the kind of what an event is of stands in its name.
EVENTS: Final[tuple[Column[EventEntry], ...]] = (
    Column("at", lambda entry: entry.at),
    Column("what", lambda entry: entry.name.removeprefix("xce.")),
    Column("of", lambda entry: name_of(entry.aggregate)),
    Column("why", _why, wraps=True, extra=True),
    Column("by", lambda entry: entry.by, extra=True),
    Column("position", lambda entry: entry.position, right=True, extra=True),
)


def _is_receipt(event: EventEntry) -> bool:
    """Return whether an event only remembers an answer."""
    return event.aggregate.startswith("receipt:")


def audit(
    context: typer.Context,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=10_000, help="How many, the newest.")
    ] = 50,
    kind: Annotated[
        str | None, typer.Option("--kind", help="Only of this kind, such as request or instance.")
    ] = None,
    of: Annotated[
        str | None, typer.Option("--of", help="Only of this aggregate, such as request:R1.")
    ] = None,
    by: Annotated[str | None, typer.Option("--by", help="Only by this caller.")] = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """The newest events of the log: who did what, when and why. xce audit query answers more."""
    connection = connection_of(context)
    times = Times(connection.local)
    with connection.client() as client:
        is_filtered = not kind == of == by is None
        end = client.status().position
        looked_at = LOOKED_AT_MAX if is_filtered else 3 * limit
        found = [
            event
            for event in client.events(after=max(0, end - looked_at))
            if (event.aggregate.partition(":")[0] == kind if kind else not _is_receipt(event))
            and (of is None or event.aggregate == of)
            and (by is None or event.by == by)
        ]
        write(found[-limit:], EVENTS, "events", times, as_json=as_json)
