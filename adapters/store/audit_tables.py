"""The tables of the audit read models, documented: the reference page is made from this."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, the Python type of its values, and what it means."""

    name: str
    type: type[str] | type[int]
    meaning: str


@dataclass(frozen=True, slots=True)
class AuditTable:
    """One table: one row for each ``row``, known by ``key``."""

    name: str
    row: str
    key: str | tuple[str, ...]
    columns: tuple[Column, ...]
    indexes: tuple[str, ...] = ()


def _text(name: str, meaning: str) -> Column:
    return Column(name, str, meaning)


def _number(name: str, meaning: str) -> Column:
    return Column(name, int, meaning)


_POSITION: Final = _number("position", "of the last event that changed the row")

TABLES: Final = (
    AuditTable(
        "log",
        "the log the tables were made from",
        "source",
        (
            _text("source", "path of the log"),
            _number("position", "of the last event in the tables"),
            _text("digest", "of that event, hexadecimal"),
        ),
    ),
    AuditTable(
        "events",
        "each event",
        "position",
        (
            _number("position", "its number in the log, from 1"),
            _text("at", "when, RFC 3339 UTC"),
            _text("by", "who"),
            _text("aggregate", "id with its kind, such as request:R17"),
            _text("kind", "of the aggregate: provider, lease, request, instance, grant, shared"),
            _text("name", "id without its kind, such as R17"),
            _number("version", "its number within the aggregate, from 1"),
            _text("event", "stored name, such as xce.request.intended"),
            _text("payload", "the whole event as JSON"),
        ),
        ("aggregate", "event", "at"),
    ),
    AuditTable(
        "requests",
        "each request",
        "id",
        (
            _text("id", "also the tag the provider knows it by"),
            _text("provider", "whom it was asked of"),
            _text("kind", "host or countable"),
            _text("item", "template or resource"),
            _number("amount", "hosts or units asked for"),
            _number("granted", "hosts or units that came"),
            _number("failed", "part of the amount known not to come"),
            _text("state", "see the lifecycles"),
            _text("price_per_hour", "of one, decimal text; null: unknown"),
            _text("asked_at", "when it was intended"),
            _text("asked_by", "who intended it"),
            _number("epoch", "lease epoch it was intended under"),
            _text("deadline", "when it is given up"),
            _text("reason", "why it was asked"),
            _text("jobs", "JSON list of the jobs it serves"),
            _number("demand_position", "log position of the demand it follows from"),
            _text("provider_request_id", "the provider's id; null: not accepted"),
            _text("closed_at", "null: open"),
            _text("outcome_why", "why it was closed so; null: open"),
            _POSITION,
        ),
        ("provider", "item", "asked_at"),
    ),
    AuditTable(
        "instances",
        "each instance",
        "id",
        (
            _text("id", "our name for it"),
            _text("request", "that brought it"),
            _text("provider", "whose it is"),
            _text("template", "what kind it is"),
            _text("machine", "the provider's id"),
            _text("name", "the provider's name; null: none"),
            _text("host", "name in the cluster; null: never joined"),
            _text("state", "see the lifecycles"),
            _text("price_per_hour", "decimal text; null: unknown"),
            _text("granted_at", "when the provider's answer was recorded"),
            _text("joined_at", "null: never joined"),
            _text("hold_until", "it does not go back before; null: at any time"),
            _text("return_id", "our id of the return; null: none"),
            _text("returning_at", "when the last return was intended; null: none"),
            _text("ended_at", "when it was returned or lost; null: it exists"),
            _text("why", "the last reason given for a change; null: none"),
            _POSITION,
        ),
        ("request", "provider", "host"),
    ),
    AuditTable(
        "grants",
        "each grant",
        "id",
        (
            _text("id", "our name for it"),
            _text("request", "that brought it"),
            _text("provider", "who lends it"),
            _text("resource", "of which shared resource"),
            _number("amount", "units"),
            _number("returned", "units the provider has back"),
            _number("returning", "units that go back and are not confirmed"),
            _text("state", "see the lifecycles"),
            _text("price_per_hour", "of one unit, decimal text; null: unknown"),
            _text("granted_at", "when the provider's answer was recorded"),
            _text("hold_until", "nothing of it goes back before; null: at any time"),
            _text("expires_at", "when the lender ends it; null: never"),
            _text("ended_at", "when it was closed or lost; null: it is lent"),
            _POSITION,
        ),
        ("request", "resource"),
    ),
    AuditTable(
        "leases",
        "each epoch of each provider's lease",
        ("provider", "epoch"),
        (
            _text("provider", "on whom"),
            _number("epoch", "from 1"),
            _text("holder", "which provisioner"),
            _text("since", "when it began"),
            _text("until", "when it ended; null: it is held"),
            _text("ended_by", "taken over, released or lapsed; null: it is held"),
            _number("term_s", "how long it is held without a renewal, seconds"),
            _text("by", "who granted it"),
            _POSITION,
        ),
    ),
    AuditTable(
        "shared_totals",
        "each change of a shared resource's total",
        "position",
        (
            _number("position", "of the event"),
            _text("at", "when"),
            _text("by", "who"),
            _text("resource", "which"),
            _text("event", "stored name"),
            _text("grant", "of which grant; null: the owned base"),
            _number("change", "of the total"),
            _number("owned", "after it"),
            _number("borrowed", "after it"),
            _number("total", "after it"),
        ),
        ("resource",),
    ),
)
