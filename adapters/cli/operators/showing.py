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
from xce.adapters.cli.visible import PlainConsole, cell
from xce.domain.formats.base import Format
from xce.domain.values import write_duration

F = TypeVar("F", bound=Format)

#: Characters of a text that a table cuts.
BRIEF: Final = 60
#: A text that wraps gets at least so much of a line.
WRAPPED: Final = 24
#: Between two columns.
GAP: Final = 2

WatchOption = Annotated[
    float | None,
    typer.Option(
        "--watch", metavar="SECONDS", min=0.5, max=3600, help="Show it again and again, so often."
    ),
]


@dataclass(frozen=True, slots=True)
class Parts:
    """A cell that is made of texts and times."""

    parts: tuple[str | datetime, ...]


@dataclass(frozen=True, slots=True)
class Column(Generic[F]):
    """A column of a table.

    Attributes:
        value: of one entry; None is shown as "-", a time with its zone.
        style: of the text, by its value.
        right: numbers stand at the right.
        wraps: a text for people, which may take several lines; anything else is kept whole.
        extra: left out where the terminal is too narrow for all.
    """

    title: str
    value: Callable[[F], object]
    style: Callable[[str], str] = lambda _: ""
    right: bool = False
    wraps: bool = False
    extra: bool = False


_STYLES = {
    "failed": "red", "lost": "red", "never_joined": "red", "timed_out": "red", "overdue": "red", "paused": "yellow",
    "unknown": "yellow", "checked": "yellow", "reported": "red", "draining": "yellow", "returning": "yellow", "joined": "green", "held": "green",
    "raised": "red", "cleared": "green", "lapsed": "red", "complete": "green", "active": "green", "empty": "green",
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


def shown(value: object, times: Times | None = None) -> str:
    """Return one value as people read it; ``times``: in which zone, UTC where nobody says."""
    match value:
        case None | "" | () | []:
            return "-"
        case bool():
            return "yes" if value else "no"
        case timedelta():
            return write_duration(value)
        case datetime():
            return (times or Times(local=False)).of(value) or "-"
        case Parts():
            return "".join(
                part if isinstance(part, str) else shown(part, times) for part in value.parts
            )
        case Decimal():
            return _short_decimal(value)
        case list() | tuple():
            parts = cast("Sequence[object]", value)
            few = ", ".join(str(part) for part in parts[:4])
            return few if len(parts) <= 4 else f"{few} and {len(parts) - 4} more"
        case _:
            return str(value)


def _short_decimal(value: Decimal) -> str:
    """Return a number as it is, without the zeros behind its second decimal that say nothing."""
    text = format(value, "f")
    whole, point, decimals = text.partition(".")
    return f"{whole}{point}{decimals.rstrip('0').ljust(2, '0')}" if len(decimals) > 2 else text


def brief(text: str) -> str:
    """Return a text of others, such as a traceback, as one short line for a table."""
    line = " ".join(text.split())
    return line if len(line) <= BRIEF else f"{line[: BRIEF - 1].rstrip()}…"


def _cells(entries: Sequence[F], column: Column[F], times: Times | None) -> list[Text]:
    cells: list[Text] = []
    for entry in entries:
        text = shown(column.value(entry), times)
        made = cell(text)
        made.stylize(column.style(text))
        cells.append(made)
    return cells


def table_of(
    entries: Iterable[F], columns: Sequence[Column[F]], times: Times | None = None
) -> Table:
    """Return entries as a table."""
    return fitted(list(entries), columns, times, None)[0]


def fitted(
    entries: Sequence[F], columns: Sequence[Column[F]], times: Times | None, width: int | None
) -> tuple[Table, list[str], int]:
    """Return entries as a table that fits a width, if it can; the titles of columns that were left out; and how wide it is.

    Names and numbers are never cut or broken, so that they can be copied: columns that are ``extra`` are left out from the right, texts that
    wrap become narrower, and what is still too wide runs over.
    """
    cells = {column.title: _cells(entries, column, times) for column in columns}

    def least(column: Column[F]) -> int:
        widest = max([len(column.title), *(one.cell_len for one in cells[column.title])])
        return min(widest, max(WRAPPED, len(column.title))) if column.wraps else widest

    chosen, left_out = list(columns), list[str]()
    while width is not None and _wide(map(least, chosen)) > width:
        last = next((one for one in reversed(chosen) if one.extra), None)
        if last is None:
            break
        chosen.remove(last)
        left_out.insert(0, last.title)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in chosen:
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            no_wrap=not column.wraps,
            min_width=least(column),
        )
    for number in range(len(entries)):
        table.add_row(*(cells[column.title][number] for column in chosen))
    return table, left_out, _wide(map(least, chosen))


def _wide(widths: Iterable[int]) -> int:
    """Return how wide a table with columns of these widths is."""
    all_of_them = list(widths)
    return sum(all_of_them) + GAP * (len(all_of_them) - 1)


def print_entries(
    entries: Sequence[F], columns: Sequence[Column[F]], times: Times | None = None
) -> None:
    """Print entries as a table that fits the terminal; whole where a program or a file reads it."""
    console = terminal.out
    if not console.is_terminal:
        terminal.print_table(table_of(entries, columns, times))
        return
    table, left_out, wide = fitted(entries, columns, times, console.width)
    table = terminal.titled(table)
    if wide <= console.width:
        console.print(table)
    else:  # a console makes nothing wider than itself
        PlainConsole(
            file=console.file, width=wide, force_terminal=True, no_color=console.no_color
        ).print(table, crop=False)
    if left_out:
        terminal.err.print(
            f"left out, for want of room: {', '.join(left_out)}; --json has all", soft_wrap=True
        )


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
