"""What ``xcecli`` lists: supply, asks, money, reasons; all of one list at one moment of the controller."""

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated
from zoneinfo import ZoneInfo

import typer
from rich.table import Table

from xce.adapters.cli import terminal
from xce.adapters.cli.operators import attribution
from xce.adapters.cli.operators.connection import connection_of
from xce.adapters.cli.operators.showing import (
    Column,
    F,
    Times,
    WatchOption,
    again,
    brief,
    by_state,
    page_json,
    show,
    shown,
    table_of,
)
from xce.adapters.client import Client
from xce.domain.formats.periods import Period
from xce.domain.formats.policy import GrantEntry, InstanceEntry, Pause, RequestEntry
from xce.domain.formats.rest import (
    CostLine,
    DecisionEntry,
    DrainEntry,
    EventEntry,
    LeaseEntry,
    OrphanEntry,
    ProviderEntry,
    SpentPeriods,
)

#: Events that ``audit`` looks through for those that fit.
LOOKED_AT_MAX = 100_000


class By(StrEnum):
    """What costs are put down to: whose jobs use what costs now, or when it was spent."""

    PROJECT = "project"
    USER = "user"
    QUEUE = "queue"
    DAY = "day"
    MONTH = "month"


def _list(entries: Iterable[F], columns: list[Column[F]], what: str, *, as_json: bool) -> None:
    found = list(entries)
    if as_json:
        terminal.write_json(page_json(found))
    elif found:
        terminal.print_table(table_of(found, columns))
    else:
        show(f"no {what}")


class _Listing:
    """One list, as it was asked for: of which controller, with times of which zone, in which form, how often."""

    def __init__(self, context: typer.Context, watch: float | None, *, as_json: bool) -> None:
        self._connection = connection_of(context)
        self._watch = watch
        self._as_json = as_json
        self.times = Times(self._connection.local)

    def show(
        self, entries: Callable[[Client], Iterable[F]], columns: list[Column[F]], what: str
    ) -> None:
        with self._connection.client() as client:
            again(
                lambda: _list(entries(client), columns, what, as_json=self._as_json),
                self._watch,
                as_json=self._as_json,
            )


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
                    "demand is unknown: no session result since the controller started, or too old"
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


# ----------------------------------------------------------------------- supply
def providers(
    context: typer.Context, as_json: terminal.JsonOption = False, watch: WatchOption = None
) -> None:
    """Providers: what they offer, how much of it is used, what is paused, until when and why."""
    listing = _Listing(context, watch, as_json=as_json)

    def offers(entry: ProviderEntry) -> list[str]:
        description = entry.description
        hosts = [
            f"{offer.template_id} (up to {offer.max_number})"
            if offer.max_number >= 0
            else offer.template_id
            for offer in description.templates
        ]
        counts = [
            f"{offer.name} ({'unknown' if offer.capacity is None else offer.capacity})"
            for offer in description.resources
        ]
        return hosts + counts

    def paused(pauses: Sequence[Pause]) -> str | None:
        if not pauses:
            return None
        first = min(pauses, key=lambda pause: pause.item or "")
        text = brief(
            f"{first.item or 'all of it'} until {listing.times.of(first.until)}: {first.why}"
        )
        return text if len(pauses) == 1 else f"{text} and {len(pauses) - 1} more"

    columns: list[Column[ProviderEntry]] = [
        Column("provider", lambda entry: entry.name),
        Column("offers", offers),
        Column("hosts", lambda entry: entry.hosts, right=True),
        Column("capacity", lambda entry: entry.description.capacity, right=True),
        Column("priority", lambda entry: entry.description.priority, right=True),
        Column(
            "paused",
            lambda entry: paused(entry.pauses),
            lambda text: "" if text == "-" else "yellow",
        ),
    ]
    listing.show(Client.providers, columns, "providers")


def requests(
    context: typer.Context, as_json: terminal.JsonOption = False, watch: WatchOption = None
) -> None:
    """Asks that are open, or of which something lives."""
    listing = _Listing(context, watch, as_json=as_json)
    columns: list[Column[RequestEntry]] = [
        Column("request", lambda entry: entry.id),
        Column("provider", lambda entry: entry.provider),
        Column("item", lambda entry: entry.template or entry.resource),
        Column("asked", lambda entry: entry.amount, right=True),
        Column("granted", lambda entry: entry.granted, right=True),
        Column("failed", lambda entry: entry.failed, right=True),
        Column("state", lambda entry: entry.state.value, by_state),
        Column("since", lambda entry: listing.times.of(entry.asked_at)),
        Column("deadline", lambda entry: listing.times.of(entry.deadline)),
        Column("theirs", lambda entry: entry.provider_request_id),
    ]
    listing.show(Client.requests, columns, "requests")


def instances(
    context: typer.Context, as_json: terminal.JsonOption = False, watch: WatchOption = None
) -> None:
    """Hosts that exist: what a request brought, where it is in its life, what it costs."""
    listing = _Listing(context, watch, as_json=as_json)
    columns: list[Column[InstanceEntry]] = [
        Column("instance", lambda entry: entry.id),
        Column("template", lambda entry: entry.template),
        Column("host", lambda entry: entry.host),
        Column("state", lambda entry: entry.state.value, by_state),
        Column("granted", lambda entry: listing.times.of(entry.granted_at)),
        Column("joined", lambda entry: listing.times.of(entry.joined_at)),
        Column("held until", lambda entry: listing.times.of(entry.hold_until)),
        Column("per hour", lambda entry: entry.price_per_hour, right=True),
        Column("request", lambda entry: entry.request),
    ]
    listing.show(Client.instances, columns, "instances")


def grants(
    context: typer.Context, as_json: terminal.JsonOption = False, watch: WatchOption = None
) -> None:
    """Amounts that are lent: how much, until when, what goes back."""
    listing = _Listing(context, watch, as_json=as_json)
    columns: list[Column[GrantEntry]] = [
        Column("grant", lambda entry: entry.id),
        Column("resource", lambda entry: entry.resource),
        Column("amount", lambda entry: entry.amount, right=True),
        Column("returning", lambda entry: entry.returning, right=True),
        Column("returned", lambda entry: entry.returned, right=True),
        Column("state", lambda entry: entry.state.value, by_state),
        Column("granted", lambda entry: listing.times.of(entry.granted_at)),
        Column("held until", lambda entry: listing.times.of(entry.hold_until)),
        Column("ends", lambda entry: listing.times.of(entry.expires_at)),
        Column("per hour", lambda entry: entry.price_per_hour, right=True),
        Column("request", lambda entry: entry.request),
    ]
    listing.show(Client.grants, columns, "grants")


def leases(
    context: typer.Context, as_json: terminal.JsonOption = False, watch: WatchOption = None
) -> None:
    """Which provisioner may act on each provider."""
    listing = _Listing(context, watch, as_json=as_json)
    columns: list[Column[LeaseEntry]] = [
        Column("provider", lambda entry: entry.provider),
        Column("holder", lambda entry: entry.holder),
        Column("epoch", lambda entry: entry.epoch, right=True),
        Column("state", lambda entry: entry.state.value, by_state),
        Column("since", lambda entry: listing.times.of(entry.since)),
        Column("ends in", lambda entry: None if entry.left_s is None else f"{entry.left_s:.0f} s", right=True),
    ]  # fmt: skip
    listing.show(Client.leases, columns, "leases")


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
    """What everything cost so far, and costs per hour."""
    connection = connection_of(context)
    times = Times(connection.local)
    columns: list[Column[CostLine]] = [
        Column("provider", lambda line: line.provider),
        Column("item", lambda line: line.item),
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
            if by in (By.DAY, By.MONTH):
                _spent(client.spent(Period(by.value), zone), zone, as_json=as_json)
                return
            if by is not None:
                parts = attribution.attributed(
                    client.snapshot(), client.supply().inventory, attribution.KEYS[by.value]
                )
                if as_json:
                    items = [{by.value: name, "per_hour": shown(part)} for name, part in parts]
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
                terminal.print_table(table_of(found.lines, columns))
            show(
                f"cost {shown(found.cost)}, now {shown(found.per_hour)} per hour, at {times.of(found.now)}"
            )

        again(once, watch, as_json=as_json)


# ---------------------------------------------------------------------- reasons
def decisions(
    context: typer.Context,
    job: Annotated[str | None, typer.Option("--job", help="Only those for this job.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many.")] = 20,
    as_json: terminal.JsonOption = False,
    watch: WatchOption = None,
) -> None:
    """The newest decisions: what was done, for which jobs, why."""
    listing = _Listing(context, watch, as_json=as_json)
    columns: list[Column[DecisionEntry]] = [
        Column("at", lambda entry: listing.times.of(entry.at)),
        Column("deed", lambda entry: entry.deed.value),
        Column("provider", lambda entry: entry.provider),
        Column("item", lambda entry: entry.item),
        Column("amount", lambda entry: entry.amount, right=True),
        Column("jobs", lambda entry: entry.jobs),
        Column("led to", lambda entry: entry.led_to),
        Column("why", lambda entry: entry.reason),
    ]

    def newest(client: Client) -> list[DecisionEntry]:
        return [one for one in client.decisions() if job is None or job in one.jobs][:limit]

    listing.show(newest, columns, "decisions")


def orphans(
    context: typer.Context, as_json: terminal.JsonOption = False, watch: WatchOption = None
) -> None:
    """What costs money and belongs to no live record, or does not exist any more at its provider."""
    listing = _Listing(context, watch, as_json=as_json)
    columns: list[Column[OrphanEntry]] = [
        Column("orphan", lambda entry: entry.id),
        Column("kind", lambda entry: entry.kind.value),
        Column("state", lambda entry: entry.state.value, by_state),
        Column("found", lambda entry: listing.times.of(entry.found)),
        Column("request", lambda entry: entry.tag),
        Column("why", lambda entry: entry.why),
    ]
    listing.show(Client.orphans, columns, "orphans")


def drains(
    context: typer.Context, as_json: terminal.JsonOption = False, watch: WatchOption = None
) -> None:
    """Hosts that take no new work, how far they are, and what happens at their deadline."""
    listing = _Listing(context, watch, as_json=as_json)
    columns: list[Column[DrainEntry]] = [
        Column("host", lambda entry: entry.host),
        Column("instance", lambda entry: entry.instance),
        Column("state", lambda entry: entry.state.value, by_state),
        Column("since", lambda entry: listing.times.of(entry.since)),
        Column("deadline", lambda entry: _deadline(entry, listing.times)),
        Column("jobs", lambda entry: entry.jobs),
        Column("by", lambda entry: entry.by),
        Column("why", lambda entry: entry.why),
    ]
    listing.show(Client.drains, columns, "drains")


def _deadline(entry: DrainEntry, times: Times) -> str | None:
    at: datetime | None = entry.deadline
    return None if at is None else f"{times.of(at)}, then {entry.at_deadline}"


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
    columns: list[Column[EventEntry]] = [
        Column("position", lambda entry: entry.position, right=True),
        Column("at", lambda entry: times.of(entry.at)),
        Column("what", lambda entry: entry.name.removeprefix("xce.")),
        Column("of", lambda entry: entry.aggregate),
        Column("by", lambda entry: entry.by),
        Column("why", lambda entry: entry.data.get("why") or entry.data.get("reason")),
    ]
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
        _list(found[-limit:], columns, "events", as_json=as_json)
