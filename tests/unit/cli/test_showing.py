"""Lists on a terminal: what must be kept whole is, what does not fit is left out and named."""

import io
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from rich.text import Text

from xce.adapters.cli import terminal
from xce.adapters.cli.operators import tables
from xce.adapters.cli.operators.alerts import ALERTS
from xce.adapters.cli.operators.showing import (
    WRAPPED,
    Column,
    Parts,
    Times,
    fitted,
    print_entries,
    shown,
)
from xce.adapters.cli.visible import PlainConsole
from xce.domain.formats.base import Format


class Entry(Format):
    id: str
    note: str = ""
    more: str = ""


COLUMNS: tuple[Column[Entry], ...] = (
    Column("id", lambda one: one.id),
    Column("more", lambda one: one.more, extra=True),
    Column("note", lambda one: one.note, wraps=True),
)
LONG = "i-0123456789abcdef0123456789abcdef"


def on_terminal(monkeypatch: pytest.MonkeyPatch, width: int, *entries: Entry) -> tuple[str, str]:
    """Return what a terminal of a width gets, and what goes to stderr."""
    out, err = io.StringIO(), io.StringIO()
    console = PlainConsole(file=out, width=width, force_terminal=True, no_color=True)
    monkeypatch.setattr(terminal, "out", console)
    monkeypatch.setattr(terminal, "err", PlainConsole(file=err, width=width))
    print_entries(entries, COLUMNS, Times(local=False))
    return Text.from_ansi(out.getvalue()).plain, err.getvalue()


def test_a_wide_terminal_gets_all_of_it_on_one_line_an_entry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = Entry(id=LONG, more="m" * 30, note="a few words")
    text, left_out = on_terminal(monkeypatch, 200, entry)

    assert left_out == ""
    (_, row) = text.splitlines()
    assert row.split() == [LONG, "m" * 30, "a", "few", "words"]


def test_a_narrow_terminal_gets_names_whole_texts_wrapped_and_is_told_what_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = Entry(id=LONG, more="m" * 30, note="words " * 20)
    text, left_out = on_terminal(monkeypatch, 80, entry)

    assert LONG in text
    assert "mmm" not in text
    assert len(text.splitlines()) > 2
    assert max(map(len, text.splitlines())) <= 80
    assert left_out == "left out, for want of room: more; --json has all\n"


def test_what_is_still_too_wide_runs_over_rather_than_being_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text, _ = on_terminal(monkeypatch, 20, Entry(id=LONG, note="words behind it"))

    (_, row) = text.splitlines()
    assert row.split() == [LONG, "words", "behind", "it"]


@for_all(st.integers(1, 120), st.integers(0, 60), st.integers(0, 200), st.integers(1, 250))
def test_a_table_fits_where_it_can_and_never_breaks_a_name(
    name: int, more: int, note: int, width: int
) -> None:
    entry = Entry(id="n" * name, more="m" * more, note="t " * note)
    table, left_out, least = fitted([entry], COLUMNS, None, width)
    console = PlainConsole(file=io.StringIO(), width=max(width, least), no_color=True)
    with console.capture() as captured:
        console.print(table, width=max(width, least), crop=False)
    lines = captured.get().splitlines()

    assert any("n" * name in line for line in lines)
    assert max(map(len, lines)) <= max(width, least)
    assert (left_out == []) or name + more + min(WRAPPED, 2 * note) + 4 > width


def test_times_in_cells_have_their_zone() -> None:
    at = datetime(2026, 3, 1, 10, tzinfo=UTC)

    assert shown(at) == "2026-03-01 10:00:00 UTC"
    assert shown(Parts(("until ", at, ", then wait"))) == "until 2026-03-01 10:00:00 UTC, then wait"
    assert shown(None) == "-"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("0.200000", "0.20"),
        ("30.000000", "30.00"),
        ("0.000611", "0.000611"),
        ("0.125", "0.125"),
        ("2", "2"),
        ("0.5", "0.5"),
    ],
)
def test_money_has_no_zeros_that_say_nothing(number: str, text: str) -> None:
    assert shown(Decimal(number)) == text


LISTINGS: tuple[tables.Listing[Any], ...] = (
    tables.PROVIDERS, tables.REQUESTS, tables.INSTANCES, tables.GRANTS, tables.LEASES, tables.DECISIONS, tables.ORPHANS,
    tables.DRAINS, ALERTS,
)  # fmt: skip


@pytest.mark.parametrize("listing", LISTINGS, ids=lambda listing: listing.what)
def test_every_list_begins_with_what_is_never_left_out(listing: tables.Listing[Any]) -> None:
    first, *others = listing.columns

    assert not first.extra
    assert not first.wraps
    assert len({column.title for column in listing.columns}) == len(listing.columns)
    assert any(column.extra for column in others) or len(listing.columns) <= 6
