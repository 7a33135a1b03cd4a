"""How lists are shown: tables for people, documents for programs, and both again and again with ``--watch``."""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Final, Generic, TypeVar, cast

import typer
from rich.table import Table
from rich.text import Text

from xce.adapters.cli import terminal
from xce.adapters.cli.visible import cell
from xce.domain.formats.base import Format
from xce.domain.values import write_duration

F = TypeVar("F", bound=Format)

#: Characters of a text that a table cuts.
BRIEF: Final = 60

WatchOption = Annotated[
    float | None,
    typer.Option(
        "--watch", metavar="SECONDS", min=0.5, max=3600, help="Show it again and again, so often."
    ),
]


@dataclass(frozen=True, slots=True)
class Column(Generic[F]):
    """A column of a table.

    Attributes:
        value: of one entry; None is shown as "-".
        style: of the text, by its value.
    """

    title: str
    value: Callable[[F], object]
    style: Callable[[str], str] = lambda _: ""
    right: bool = False


_STYLES = {
    "failed": "red", "lost": "red", "never_joined": "red", "timed_out": "red", "overdue": "red", "paused": "yellow",
    "unknown": "yellow", "reported": "red", "draining": "yellow", "returning": "yellow", "joined": "green", "held": "green",
    "lapsed": "red", "complete": "green", "active": "green", "empty": "green",
}  # fmt: skip


def by_state(state: str) -> str:
    """Return the colour of a state."""
    return _STYLES.get(state, "")


class Times:
    """Writes times with their zone: UTC, or that of this machine."""

    def __init__(self, local: bool) -> None:
        self._local = local

    def of(self, at: datetime | None) -> str | None:
        """Return a time to the second, with its zone."""
        if at is None:
            return None
        shown = at.astimezone() if self._local else at.astimezone(UTC)
        return f"{shown:%Y-%m-%d %H:%M:%S %Z}"


def shown(value: object) -> str:
    """Return one value as people read it."""
    match value:
        case None | "" | () | []:
            return "-"
        case bool():
            return "yes" if value else "no"
        case timedelta():
            return write_duration(value)
        case Decimal():
            return format(value, "f")
        case list() | tuple():
            parts = cast("Sequence[object]", value)
            few = ", ".join(str(part) for part in parts[:4])
            return few if len(parts) <= 4 else f"{few} and {len(parts) - 4} more"
        case _:
            return str(value)


def brief(text: str) -> str:
    """Return a text of others, such as a traceback, as one short line for a table."""
    line = " ".join(text.split())
    return line if len(line) <= BRIEF else f"{line[: BRIEF - 1].rstrip()}…"


def table_of(entries: Iterable[F], columns: Sequence[Column[F]]) -> Table:
    """Return entries as a table."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.title, justify="right" if column.right else "left")
    for entry in entries:
        cells: list[Text] = []
        for column in columns:
            text = shown(column.value(entry))
            made = cell(text)
            made.stylize(column.style(text))
            cells.append(made)
        table.add_row(*cells)
    return table


def page_json(entries: Iterable[Format]) -> str:
    """Return entries as one document: the page that the REST interface would give, whole."""
    items = [json.loads(entry.to_json()) for entry in entries]
    return json.dumps({"items": items, "next": None})


def show(text: str) -> None:
    """Print a line for people."""
    terminal.out.print(text, soft_wrap=True)


def again(
    once: Callable[[], None],
    every_s: float | None,
    *,
    as_json: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Show something once; or again and again until it is interrupted, on a cleared terminal."""
    if every_s is None:
        once()
        return
    try:
        while True:
            if not as_json and terminal.out.is_terminal:
                terminal.out.clear()
            once()
            sleep(every_s)
    except KeyboardInterrupt:
        return
