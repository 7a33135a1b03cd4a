"""What a command answers: a document for programs, and the same as lines and tables for people."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, cast

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings; ``numbers`` are the columns that stand at the right."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command answers.

    Attributes:
        document: for programs; JSON.
        parts: for people: lines and tables, in this order.
        over: nothing more will be answered.
    """

    document: Mapping[str, Any]
    parts: tuple[str | Table, ...] = ()
    over: bool = field(default=False, kw_only=True)


def table(
    headings: str | tuple[str, ...],
    rows: Iterable[Iterable[object]],
    numbers: Iterable[int] = (),
) -> Table:
    """Return a table; values are written as people read them.

    Args:
        headings: one text, with a blank between two headings and "-" for a blank in one; or all headings as they are.
        rows: the values.
        numbers: columns that stand at the right.
    """
    if isinstance(headings, str):
        headings = tuple(heading.replace("-", " ") for heading in headings.split())
    return Table(
        headings,
        tuple(tuple(text(value) for value in row) for row in rows),
        frozenset(numbers),
    )


def text(value: object) -> str:
    """Return a value as people read it; nothing is "-"."""
    match value:
        case None | "" | () | []:
            return "-"
        case bool():
            return "yes" if value else "no"
        case datetime():
            return clock(value)
        case Decimal():
            return format(value, "f")
        case list() | tuple():
            return "; ".join(text(one) for one in cast("Iterable[object]", value))
        case dict():
            fields = cast("dict[str, object]", value).items()
            return " ".join(
                f"{key}={text(one)}" for key, one in fields if one not in (None, "", [], {})
            )
        case _:
            return str(value)


def clock(at: datetime) -> str:
    """Return a time to the second, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def stamp(at: datetime | None) -> str | None:
    """Return a time as JSON has it."""
    return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def number(value: Decimal | None) -> str:
    """Return a number as short as it is exact; an unknown one in words."""
    if value is None:
        return "unknown"
    plain = format(value, "f")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def counted(count: int, one: str) -> str:
    """Return a number of things: ``1 session``, ``2 sessions``."""
    return f"{count} {one}" if count == 1 else f"{count} {one}s"
