"""The tables of the audit read models, documented: the reference page is made from this."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, the Python type of its values, and what it means."""

    name: str
    type: type[str] | type[int] | type[bytes]
    meaning: str


@dataclass(frozen=True, slots=True)
class AuditTable:
    """One table: one row for each ``row``, known by ``key``; ``indexes`` are lists of columns."""

    name: str
    row: str
    key: tuple[str] | tuple[str, str]
    columns: tuple[Column, ...]
    indexes: tuple[tuple[str, ...], ...] = ()


def _text(name: str, meaning: str) -> Column:
    return Column(name, str, meaning)


def _number(name: str, meaning: str) -> Column:
    return Column(name, int, meaning)


_POSITION: Final = _number("position", "of the last event that changed the row")

TABLES: Final = (
    AuditTable(
        "log",
        "the log the tables were made from",
        ("source",),
        (
            _text("source", "path of the log"),
            _number("position", "of the last event in the tables"),
            _text("digest", "of that event, hexadecimal"),
            _text("at", "time of that event: up to then what lives has cost; null: there is none"),
            _text("made_by", "digest of the code that made the tables"),
        ),
    ),
    AuditTable(
        "events",
        "each event",
        ("position",),
        (
            _number("position", "its number in the log, from 1"),
            _text("at", "when, RFC 3339 UTC"),
            _text("by", "who"),
            _text("aggregate", "id with its kind, such as request:R17"),
            _text("kind", "of the aggregate: provider, lease, request, instance, grant, shared"),
            _text("name", "id without its kind, such as R17"),
            _number("version", "its number within the aggregate, from 1"),
            _text("event", "stored name, such as xce.request.intended"),
            _number("epoch", "lease epoch it was written under; null: it is no provider's fact"),
            _text("why", "the reason it gives; null: none"),
            _text("payload", "the whole event as JSON"),
            Column(
                "digest", bytes, "of the chain up to it; lower(hex(digest)) is what an anchor has"
            ),
        ),
        (("aggregate", "version"), ("event", "position"), ("at",), ("by", "position")),
    ),
    AuditTable(
        "requests",
        "each request",
        ("id",),
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
        (("provider", "asked_at"), ("item", "asked_at"), ("asked_at",), ("state",)),
    ),
    AuditTable(
        "request_jobs",
        "each job that a request serves",
        ("request", "number"),
        (
            _text("request", "id of the request"),
            _number("number", "of the job within it, from 1, in job order"),
            _text("job", "id of the job"),
        ),
        (("job",),),
    ),
    AuditTable(
        "instances",
        "each instance",
        ("id",),
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
        (("request",), ("provider", "template"), ("host",), ("state",)),
    ),
    AuditTable(
        "grants",
        "each grant",
        ("id",),
        (
            _text("id", "our name for it"),
            _text("request", "that brought it"),
            _text("provider", "who lends it"),
            _text("resource", "of which shared resource"),
            _number("amount", "units"),
            _number("returned", "units the provider has back"),
            _number("going_back", "units that go back and are not confirmed"),
            _text("state", "see the lifecycles"),
            _text("price_per_hour", "of one unit, decimal text; null: unknown"),
            _text("granted_at", "when the provider's answer was recorded"),
            _text("hold_until", "nothing of it goes back before; null: at any time"),
            _text("expires_at", "when the lender ends it; null: never"),
            _text("ended_at", "when it was closed or lost; null: it is lent"),
            _POSITION,
        ),
        (("request",), ("resource",), ("state",)),
    ),
    AuditTable(
        "returns",
        "each instance, or part of a grant, that was to go back",
        ("return_id", "of"),
        (
            _text("return_id", "our id of the return; one return may be of several instances"),
            _text("of", "instance:ID or grant:ID"),
            _text("provider", "to whom"),
            _number("amount", "hosts (1) or units"),
            _text("intended_at", "when; the provider was told after that"),
            _text("by", "who"),
            _number("epoch", "lease epoch it was intended under"),
            _text("why", "the reason; null: none was given"),
            _text("accepted_at", "when the provider took it on; null: it did not say"),
            _text("provider_return_id", "the provider's id; null: none"),
            _text("ended_at", "null: it is under way"),
            _text("outcome", "confirmed, refused, or lost: it was gone otherwise; null: under way"),
            _text("outcome_why", "what the provider says of a refusal, or how a loss is known"),
            _POSITION,
        ),
        (("of",), ("provider", "intended_at")),
    ),
    AuditTable(
        "spending",
        "each host, each part of a grant and each orphan that costs or has cost",
        ("of", "part"),
        (
            _text("of", "instance:ID, grant:ID or orphan:ID"),
            _number(
                "part",
                "0: the whole, or what is left; else the position of the event that ended this part of a grant, or that found an orphan again",
            ),
            _text("request", "that brought it; null: unknown, of an orphan"),
            _text("provider", "who is paid"),
            _text("kind", "host or countable"),
            _text("item", "template or resource; null: unknown, of an orphan"),
            _number("amount", "hosts (1) or units; 0: an orphan that is none of ours"),
            _text("price_per_hour", "of one, decimal text; null: unknown"),
            _text("billing_unit", "second or hour"),
            _number("billing_minimum_s", "what is paid at least, seconds"),
            _text("since", "when it began to cost"),
            _text("until", "when it ended, or a record owned the orphan; null: it costs still"),
            _number("used_s", "seconds of all of it, up to its end or log.at, whole ones"),
            _number("billed_s", "seconds of all of it that are paid for"),
            _number(
                "cost_millionths",
                "of the currency; null: the price is unknown; sum(cost_millionths) / 1e6 is money",
            ),
            _POSITION,
        ),
        (("provider", "item"), ("request",), ("since",), ("until",)),
    ),
    AuditTable(
        "decisions",
        "each decision that changed something",
        ("id",),
        (
            _text("id", "its name"),
            _text("at", "when"),
            _text("by", "who decided"),
            _number("epoch", "lease epoch it was decided under"),
            _text("provider", "whom it concerns"),
            _text("deed", "request, return, cancel or pause"),
            _text("item", "template or resource; null: the whole provider"),
            _number("amount", "hosts or units"),
            _text("reason", "why"),
            _text("jobs", "JSON list of the jobs it serves"),
            _number("demand_position", "log position of the demand it follows from"),
            _text(
                "demand_digest",
                "of the session result with that demand; null: it was not decided on demand",
            ),
            _text("cost_per_hour", "what it adds, or ends, decimal text; null: unknown"),
            _number("position", "of the event"),
        ),
        (("provider", "at"), ("by", "at"), ("at",)),
    ),
    AuditTable(
        "decision_effects",
        "each aggregate that a decision led to",
        ("decision", "number"),
        (
            _text("decision", "id of the decision"),
            _number("number", "of the aggregate within it, from 1"),
            _text("aggregate", "such as request:R17"),
        ),
        (("aggregate",),),
    ),
    AuditTable(
        "orphans",
        "each thing at a provider that no live record of ours owns, or that it does not know",
        ("id",),
        (
            _text("id", "provider and its id of the thing"),
            _text("provider", "where"),
            _text("theirs", "the provider's id"),
            _text("kind", "unknown_to_us, unknown_to_provider or never_joined"),
            _text("tag", "the request it says it belongs to; null: it carries none"),
            _text("state", "see the lifecycles"),
            _text("found_at", "when it was found first"),
            _text("reported_at", "when it was reported last"),
            _text("owner", "the record that owns it since, such as instance:aws/i-7; null: none"),
            _text("return_id", "our id of its return; null: none"),
            _text("ended_at", "when it was adopted, dismissed or gone; null: somebody has to act"),
            _text("by", "who changed it last"),
            _text("why", "the last reason given"),
            _POSITION,
        ),
        (("provider", "state"), ("state",)),
    ),
    AuditTable(
        "providers",
        "each description that a provider gave of itself",
        ("position",),
        (
            _number("position", "of the event"),
            _text("provider", "which"),
            _text("since", "when it was recorded"),
            _text("until", "when the next one was; null: it holds"),
            _text("by", "who recorded it"),
            _text("kinds", "host, countable or both, with a comma"),
            _number("capacity", "hosts it has room for; null: it sets no limit"),
            _text("billing_unit", "second or hour"),
            _number("billing_minimum_s", "what is paid at least, seconds"),
            _text("region", "null: it did not say"),
            _text("zone", "null: it did not say"),
            _text("description", "all of it, as JSON"),
        ),
        (("provider", "position"),),
    ),
    AuditTable(
        "pauses",
        "each time that nothing was to be asked of a provider or of one item",
        ("position",),
        (
            _number("position", "of the event"),
            _text("provider", "which"),
            _text("item", "template or resource; null: the whole provider"),
            _text("since", "when it began"),
            _text("until", "when it would end by itself"),
            _text("why", "the reason"),
            _text("by", "who"),
            _text("ended_at", "when it was ended or replaced; null: it was not, see until"),
            _text("ended_by", "resumed or replaced; null: neither"),
        ),
        (("provider", "position"),),
    ),
    AuditTable(
        "refusals",
        "each note of what somebody tried and may not do",
        ("position",),
        (
            _number("position", "of the event"),
            _text("at", "when it was noted"),
            _text("by", "who tried"),
            _text("action", "what"),
            _number("count", "equal attempts since the last note"),
            _text("why", "the answer"),
        ),
        (("by", "at"), ("action",)),
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
        ("position",),
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
        (("resource", "position"), ("at",)),
    ),
)
