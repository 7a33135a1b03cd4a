"""Lifecycles, events and audit tables: reference pages made from the transition tables, the event classes and the column lists."""

import re
from collections.abc import Iterator
from inspect import cleandoc
from typing import Any

from xce.adapters.store.audit_query import BYTES_MAX, ROWS_MAX, TIME_LIMIT_S
from xce.adapters.store.audit_tables import TABLES
from xce.domain.events.base import Aggregate, DomainEvent, ProviderFact
from xce.domain.events.stored import AGGREGATES, stored_name
from xce.domain.events.transitions import Transition

MADE = "Made from the code by `tools/generate.py`; do not edit."

_FIELD = re.compile(r"^    (\w+): (.*(?:\n        .*)*)", re.MULTILINE)


def pages() -> Iterator[tuple[str, str]]:
    """Yield the three pages."""
    yield "docs/reference/lifecycles.md", _lifecycles()
    yield "docs/reference/events.md", _events()
    yield "docs/reference/audit.md", _audit()


# -------------------------------------------------------------------- lifecycles
def _lifecycles() -> str:
    text = f"""# Lifecycles

{MADE} Each aggregate has one table: in which states an event is allowed, and where it leads. A command whose event is not allowed is
refused with an error that names the aggregate, the event and the state. An event that leaves the state as it is stands in the table
only, not in the picture.
"""
    for aggregate in AGGREGATES:
        text += f"\n## {aggregate.__name__}\n\n{_summary(aggregate)}\n\n{_diagram(aggregate)}\n"
        text += "\n| event | allowed in | leads to |\n|---|---|---|\n"
        for event_class in aggregate.event_classes():
            text += _row(event_class.__name__, aggregate.row_of(event_class))
    return text


def _row(name: str, row: Transition[Any]) -> str:
    states = list(dict.fromkeys(source for source, _ in row.arrows()))
    allowed = ["a new stream"] if row.creates else []
    allowed += [state.value for state in states if state not in row.keeps]
    target = " or ".join(state.value for state in row.targets) or "the same state"
    text = f"| {name} | {', '.join(allowed)} | {target} |\n"
    kept = [state.value for state in states if state in row.keeps]
    return text + (f"| {name} | {', '.join(kept)} | the same state |\n" if kept else "")


def _diagram(aggregate: type[Aggregate[Any]]) -> str:
    arrows: dict[tuple[str, str], list[str]] = {}
    for event_class in aggregate.event_classes():
        row = aggregate.row_of(event_class)
        pairs = [("[*]", target.value) for target in row.targets] if row.creates else []
        pairs += [(a.value, b.value) for a, b in row.arrows() if a is not b]
        for pair in pairs:
            arrows.setdefault(pair, []).append(event_class.__name__)
    lines = [f"    {a} --> {b}: {', '.join(names)}" for (a, b), names in arrows.items()]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```"])


# ------------------------------------------------------------------------ events
def _events() -> str:
    base = _fields_table(DomainEvent, skip=frozenset())
    fact = _fields_table(ProviderFact, skip=frozenset(DomainEvent.model_fields))
    text = f"""# Events

{MADE} The stored name is a contract apart from the code: a class may move and be renamed, a name may not. A name ends in `/2` and so on
once an event's version is above 1; older versions stay readable. Stored is one JSON document an event, with the fields below; an unknown
field, a wrong type or an unknown name stops the reader with the position.

References to other aggregates (`request_id`, `instance_id`, `grant_id`) hold the bare name; `originator_id` has the kind before it.

## All events

{base}
Events of requests, instances and grants are facts of a provider, and also have:

{fact}"""
    for aggregate in AGGREGATES:
        text += f"\n## {aggregate.__name__} (`{aggregate.KIND}:NAME`)\n\n{_summary(aggregate)}\n"
        for event_class in aggregate.event_classes():
            text += _event(aggregate, event_class)
    return text


def _event(aggregate: type[Aggregate[Any]], event_class: type[DomainEvent]) -> str:
    base = frozenset(vars(aggregate)["Event"].model_fields)
    text = f"\n### {event_class.__name__}\n\n`{stored_name(event_class)}`, version {event_class.VERSION}"
    if event_class.FORMER_TOPICS:
        text += f" (before: {', '.join(f'`{name}`' for name in event_class.FORMER_TOPICS)})"
    fields = _fields_table(event_class, skip=base)
    return f"{text}. {_summary(event_class)}\n" + (f"\n{fields}" if fields else "")


def _fields_table(event_class: type[DomainEvent], skip: frozenset[str]) -> str:
    meanings = {
        name: " ".join(text.split()).replace("``", "`")
        for name, text in _FIELD.findall(_doc(event_class))
    }
    schema = event_class.model_json_schema()
    rows = [
        f"| `{name}` | {_type(property_schema, schema.get('$defs', {}))} | {meanings[name]} |\n"
        for name, property_schema in schema["properties"].items()
        if name not in skip
    ]
    return "| field | type | meaning |\n|---|---|---|\n" + "".join(rows) if rows else ""


def _type(schema: dict[str, Any], parts: dict[str, dict[str, Any]]) -> str:
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(part, parts) for part in schema["anyOf"]))
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        values: list[str] = parts[name].get("enum", [])
        return " or ".join(f"`{value}`" for value in values) or _words(name)
    kind: object = schema.get("type")
    match kind:
        case "array":
            return f"list of {_type(schema['items'], parts)}"
        case "object":
            of: dict[str, Any] = schema.get("additionalProperties") or next(
                iter(schema["patternProperties"].values())
            )
            return f"object of {_type(of, parts)}"
        case "string" if schema.get("format") == "date-time":
            return "time"
        case "string" if "decimal" in schema.get("description", ""):
            return "decimal text"
        case "integer" if "minimum" in schema:
            return f"integer >= {schema['minimum']}"
        case str():
            return {"string": "text", "boolean": "flag"}.get(kind, kind)
        case _:
            return "duration text"


def _words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


# ------------------------------------------------------------------------- audit
_COLUMN_TYPES: dict[type[object], str] = {int: "integer", str: "text", bytes: "bytes"}


def _audit() -> str:
    text = f"""# Audit read models

{MADE} `xce audit query LOG "SELECT ..."` answers from these SQLite tables. They lie beside the log, as `LOG.audit.db`; they can be thrown
away, are brought up to the log's end before a question is answered, and open in any SQLite tool. Times are RFC 3339 UTC texts, so they compare as texts; prices are
decimal texts, sums of money whole millionths. A query can only read, is stopped after {TIME_LIMIT_S:g} s and gives at most {ROWS_MAX:,} rows and {BYTES_MAX // 1024**2} MiB.
[Questions with their SQL](../how-to/question-a-log.md) are a place to begin.
"""
    for table in TABLES:
        key = ", ".join(table.key)
        text += f"\n## {table.name}\n\nOne row for {table.row}; key: {key}.\n\n| column | type | meaning |\n|---|---|---|\n"
        for column in table.columns:
            kind = _COLUMN_TYPES[column.type]
            text += f"| `{column.name}` | {kind} | {column.meaning} |\n"
        if table.indexes:
            text += f"\nIndexes: {'; '.join(', '.join(index) for index in table.indexes)}.\n"
    return text


def _doc(thing: type[object]) -> str:
    return cleandoc(thing.__doc__ or "")


def _summary(thing: type[object]) -> str:
    return " ".join(_doc(thing).split("\n\n")[0].split()).replace("``", "`")
