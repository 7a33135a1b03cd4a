"""The lists of ``xcecli`` as data: what each asks the controller for, and the columns that people see."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic

import typer

from xce.adapters.cli import terminal
from xce.adapters.cli.operators.connection import connection_of
from xce.adapters.cli.operators.showing import (
    Column,
    F,
    Parts,
    Times,
    WatchOption,
    again,
    brief,
    by_state,
    page_json,
    print_entries,
    show,
)
from xce.adapters.client import Client
from xce.domain.formats.inventory import GrantEntry, InstanceEntry, RequestEntry
from xce.domain.formats.policy import Decision
from xce.domain.formats.rest import (
    DecisionEntry,
    DrainEntry,
    LeaseEntry,
    OrphanEntry,
    ProviderEntry,
    UnaccountedLine,
)
from xce.domain.formats.standing import BudgetUse
from xce.domain.provisioning.instance import InstanceState

#: What a command is for typer.
ListCommand = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Listing(Generic[F]):
    """One list.

    Attributes:
        what: it lists, and the name of its command.
        help: of the command.
        entries: asks the controller.
    """

    what: str
    help: str
    entries: Callable[[Client], Iterable[F]]
    columns: tuple[Column[F], ...]

    def show(
        self,
        context: typer.Context,
        watch: float | None,
        *,
        as_json: bool,
        entries: Callable[[Client], Iterable[F]] | None = None,
    ) -> None:
        """Show it, once or again and again; ``entries``: not all of it."""
        connection = connection_of(context)
        times, ask = Times(connection.local), entries or self.entries
        with connection.client() as client:
            again(
                lambda: write(list(ask(client)), self.columns, self.what, times, as_json=as_json),
                watch,
                as_json=as_json,
            )

    def command(self) -> ListCommand:
        """Return the command of it."""

        def listed(
            context: typer.Context, as_json: terminal.JsonOption = False, watch: WatchOption = None
        ) -> None:
            self.show(context, watch, as_json=as_json)

        listed.__doc__ = self.help
        return listed


def write(
    entries: Sequence[F],
    columns: Sequence[Column[F]],
    what: str,
    times: Times,
    *,
    as_json: bool,
) -> None:
    """Write entries for people or programs."""
    if as_json:
        terminal.write_json(page_json(entries))
    elif entries:
        print_entries(entries, columns, times)
    else:
        show(f"no {what}")


# ----------------------------------------------------------------------- supply
def _offers(entry: ProviderEntry) -> list[str]:
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


def _paused(entry: ProviderEntry) -> Parts | None:
    if not entry.pauses:
        return None
    first = min(entry.pauses, key=lambda pause: pause.item or "")
    more = f" and {len(entry.pauses) - 1} more" if len(entry.pauses) > 1 else ""
    return Parts(
        (f"{first.item or 'all of it'} until ", first.until, f": {brief(first.why)}{more}")
    )


def _yellow_if_any(text: str) -> str:
    return "" if text == "-" else "yellow"


PROVIDERS: Final[Listing[ProviderEntry]] = Listing(
    "providers",
    "Providers: what they offer, how much of it is used, what is paused, until when and why.",
    Client.providers,
    (
        Column("provider", lambda entry: entry.name),
        Column("offers", _offers, wraps=True),
        Column("hosts", lambda entry: entry.hosts, right=True),
        Column("capacity", lambda entry: entry.description.capacity, right=True),
        Column("priority", lambda entry: entry.description.priority, right=True, extra=True),
        Column("paused", _paused, _yellow_if_any, wraps=True),
    ),
)

#: The columns of what may cost beside what is known to.
UNACCOUNTED: Final[tuple[Column[UnaccountedLine], ...]] = (
    Column("unaccounted for", lambda line: line.what, wraps=True),
    Column("provider", lambda line: line.provider),
    Column("counts as", lambda line: line.item),
    Column("amount", lambda line: line.amount, right=True),
    Column("each per hour", lambda line: line.price_per_hour, right=True),
    Column("project", lambda line: line.project),
    Column("costs since", lambda line: line.since),
)

REQUESTS: Final[Listing[RequestEntry]] = Listing(
    "requests",
    "Asks that are open, or of which something lives.",
    Client.requests,
    (
        Column("request", lambda entry: entry.id),
        Column("provider", lambda entry: entry.provider),
        Column("item", lambda entry: entry.template or entry.resource),
        Column("asked", lambda entry: entry.amount, right=True),
        Column("granted", lambda entry: entry.granted, right=True),
        Column("failed", lambda entry: entry.failed, right=True),
        Column("state", lambda entry: entry.state.value, by_state),
        Column("since", lambda entry: entry.asked_at),
        Column("deadline", lambda entry: entry.deadline, extra=True),
        Column("theirs", lambda entry: entry.provider_request_id, extra=True),
    ),
)


def _state_of_instance(entry: InstanceEntry) -> str:
    return entry.state.value if _checked_since(entry) is None else "checked"


def _checked_since(entry: InstanceEntry) -> datetime | None:
    """Return since when a host that reported is checked; None: it is not, or not any more."""
    return entry.reported_at if entry.state is InstanceState.STARTING else None


INSTANCES: Final[Listing[InstanceEntry]] = Listing(
    "instances",
    "Hosts that exist: what a request brought, where it is in its life, what it costs.",
    Client.instances,
    (
        Column("instance", lambda entry: entry.id),
        Column("template", lambda entry: entry.template),
        Column("host", lambda entry: entry.host or entry.reported_as),
        Column("state", _state_of_instance, by_state),
        Column("granted", lambda entry: entry.granted_at),
        Column("checked since", _checked_since, extra=True),
        Column("joined", lambda entry: entry.joined_at, extra=True),
        Column("held until", lambda entry: entry.hold_until, extra=True),
        Column("per hour", lambda entry: entry.price_per_hour, right=True, extra=True),
        Column("request", lambda entry: entry.request, extra=True),
    ),
)

GRANTS: Final[Listing[GrantEntry]] = Listing(
    "grants",
    "Amounts that are lent: how much, until when, what goes back.",
    Client.grants,
    (
        Column("grant", lambda entry: entry.id),
        Column("resource", lambda entry: entry.resource),
        Column("amount", lambda entry: entry.amount, right=True),
        Column("returning", lambda entry: entry.returning, right=True),
        Column("returned", lambda entry: entry.returned, right=True),
        Column("state", lambda entry: entry.state.value, by_state),
        Column("granted", lambda entry: entry.granted_at, extra=True),
        Column("held until", lambda entry: entry.hold_until, extra=True),
        Column("ends", lambda entry: entry.expires_at),
        Column("per hour", lambda entry: entry.price_per_hour, right=True, extra=True),
        Column("request", lambda entry: entry.request, extra=True),
    ),
)

LEASES: Final[Listing[LeaseEntry]] = Listing(
    "leases",
    "Which provisioner may act on each provider.",
    Client.leases,
    (
        Column("provider", lambda entry: entry.provider),
        Column("holder", lambda entry: entry.holder),
        Column("epoch", lambda entry: entry.epoch, right=True),
        Column("state", lambda entry: entry.state.value, by_state),
        Column("since", lambda entry: entry.since),
        Column(
            "ends in",
            lambda entry: None if entry.left_s is None else f"{entry.left_s:.0f} s",
            right=True,
        ),
    ),
)

# ---------------------------------------------------------------------- reasons
#: How far budgets are used.
BUDGETS: Final[tuple[Column[BudgetUse], ...]] = (
    Column("budget", lambda use: use.budget),
    Column("bound", lambda use: use.bound),
    Column("used", lambda use: use.used, right=True),
    Column("counted on", lambda use: use.counted_on or None, right=True),
    Column("limit", lambda use: use.limit, right=True),
)

HOLDS: Final[Listing[Decision]] = Listing(
    "holds",
    "What the provisioners deliberately do not do now, and why.",
    lambda client: [hold for one in client.standing().reports.values() for hold in one.holds],
    (
        Column("item", lambda hold: hold.template or hold.resource),
        Column(
            "amount", lambda hold: hold.amount if hold.count is None else hold.count, right=True
        ),
        Column("project", lambda hold: hold.project, extra=True),
        Column("jobs", lambda hold: hold.jobs, extra=True),
        Column("why", lambda hold: hold.reason, wraps=True),
    ),
)

DECISIONS: Final[Listing[DecisionEntry]] = Listing(
    "decisions",
    "The newest decisions: what was done, for which jobs, why.",
    Client.decisions,
    (
        Column("at", lambda entry: entry.at),
        Column("deed", lambda entry: entry.deed.value),
        Column("provider", lambda entry: entry.provider),
        Column("item", lambda entry: entry.item),
        Column("amount", lambda entry: entry.amount, right=True),
        Column("jobs", lambda entry: entry.jobs, wraps=True, extra=True),
        Column("led to", lambda entry: entry.led_to, wraps=True, extra=True),
        Column("why", lambda entry: entry.reason, wraps=True),
    ),
)

ORPHANS: Final[Listing[OrphanEntry]] = Listing(
    "orphans",
    "What costs money and belongs to no live record, or does not exist any more at its provider.",
    Client.orphans,
    (
        Column("orphan", lambda entry: entry.id),
        Column("kind", lambda entry: entry.kind.value),
        Column("state", lambda entry: entry.state.value, by_state),
        Column("found", lambda entry: entry.found, extra=True),
        Column("request", lambda entry: entry.tag, extra=True),
        Column("why", lambda entry: entry.why, wraps=True),
    ),
)


def _deadline(entry: DrainEntry) -> Parts | None:
    return (
        None if entry.deadline is None else Parts((entry.deadline, f", then {entry.at_deadline}"))
    )


DRAINS: Final[Listing[DrainEntry]] = Listing(
    "drains",
    "Hosts that take no new work, how far they are, and what happens at their deadline.",
    Client.drains,
    (
        Column("host", lambda entry: entry.host),
        Column("instance", lambda entry: entry.instance, extra=True),
        Column("state", lambda entry: entry.state.value, by_state),
        Column("since", lambda entry: entry.since),
        Column("deadline", _deadline, extra=True),
        Column("jobs", lambda entry: entry.jobs, wraps=True),
        Column("by", lambda entry: entry.by, extra=True),
        Column("why", lambda entry: entry.why, wraps=True),
    ),
)
