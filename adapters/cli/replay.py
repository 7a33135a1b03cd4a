"""``xce replay at|diff|verify``: what a log amounted to at a moment, what changed between two, and a recording run again."""

import json
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from xce.adapters.allocators import allocators_for
from xce.adapters.cli import exit_codes, terminal
from xce.adapters.cli.visible import cell
from xce.adapters.recordings import read_lines
from xce.adapters.store.checkpoints import CheckpointFile, checkpoints_of
from xce.adapters.store.open import open_log
from xce.domain.errors import InputError, NotFoundError
from xce.domain.events.stored import AGGREGATES
from xce.replay.differences import ABSENT, Change, Difference, difference
from xce.replay.time_travel import Moment, TimeTravel
from xce.replay.verification import Verdict
from xce.replay.verification import verify as verify_recording

app = typer.Typer(
    name="replay",
    help="Travel in time: what a log says of any moment, and whether a recording says the same again.",
    no_args_is_help=True,
    add_completion=False,
)

#: Rows of a table for people; ``--json`` has all.
ROWS_MAX = 100
#: Characters of a cell for people.
CELL_MAX = 100

LogArgument = Annotated[
    str,
    typer.Argument(
        metavar="LOG",
        help="The SQLite file of a log, such as xce-demo/events.db, or its address on PostgreSQL.",
    ),
]
CheckpointsOption = Annotated[
    bool,
    typer.Option(
        "--checkpoints/--no-checkpoints",
        help="Use and make LOG.checkpoints, which shortens the way in a long log and can be thrown away.",
    ),
]
_AT_EPILOG = (
    "Without --position or --time: the end of the log. A time is RFC 3339, such as 2026-03-01T10:00:00Z; the state is that after the"
    " last event that is not later.\n\nExample: xce replay at xce-demo/events.db --position 120"
)
_DIFF_EPILOG = "Each end is a position or a time.\n\nExample: xce replay diff xce-demo/events.db --from 120 --to 180"


@app.command(epilog="Example: xce replay verify evening.rec.gz")
def verify(
    recording: Annotated[
        Path,
        typer.Argument(
            metavar="RECORDING",
            help="Made by xce scheduler, xce provisioner or xce sim with --record.",
        ),
    ],
    as_json: terminal.JsonOption = False,
) -> None:
    """Run every session and every round of the policy again; exit 3 and name the first difference, if there is one."""
    allocators = allocators_for
    verdict = verify_recording(read_lines(recording), str(recording), allocators=allocators)
    if as_json:
        terminal.write_json(json.dumps(_verdict(verdict)))
    else:
        _show_verdict(verdict)
    if verdict.mismatch is not None:
        raise typer.Exit(exit_codes.NO)


def _verdict(verdict: Verdict) -> dict[str, Any]:
    found = verdict.mismatch
    return {
        "verified": found is None,
        "whole": verdict.whole,
        **verdict.counts.document(),
        "mismatch": None if found is None else {**asdict(found), "now": found.now.isoformat()},
    }


def _show_verdict(verdict: Verdict) -> None:
    def say(text: str) -> None:
        terminal.out.print(text, soft_wrap=True)

    counts, found = verdict.counts, verdict.mismatch
    if found is not None:
        job = "" if found.job is None else f", job {found.job}"
        where = f"session {found.session}"
        if found.round is not None:
            where = f"round {found.round} of the policy, after session {found.session}, at"
        else:
            where += " of"
        say(f"{where} {found.now:%Y-%m-%d %H:%M:%S} UTC{job}: {found.path}")
        say(f"  recorded  {_cut(found.recorded)}")
        say(f"  now       {_cut(found.found)}")
        return
    say(
        f"{counts.sessions} sessions say the same again, {counts.rounds} rounds of the policy decide the same"
    )
    say(f"{counts.events} events, {counts.answers} answers of providers")
    if not verdict.whole:
        say("the recording was cut off; all before that is fine")


def _cut(text: str | None) -> str:
    if text is None:
        return "nothing"
    return text if len(text) <= 10 * CELL_MAX else f"{text[: 10 * CELL_MAX]} ..."


@app.command(epilog=_AT_EPILOG)
def at(
    log: LogArgument,
    position: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="After the event with this number.")
    ] = None,
    time: Annotated[str | None, typer.Option(metavar="T", help="At this time.")] = None,
    of: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID|KIND",
            help="Only this aggregate, such as request:R17, or all of a kind, such as request; may be repeated.",
        ),
    ] = None,
    checkpoints: CheckpointsOption = True,
    as_json: terminal.JsonOption = False,
) -> None:
    """Print the state of everything at a position or a time: totals, inventory, catalog, spending, and each aggregate."""
    if position is not None and time is not None:
        raise InputError.of("--time", "is one of two ends with --position; wanted one of them")
    when = None if time is None else _time("--time", time)
    with _travelling(log, checkpoints=checkpoints) as travel:
        log = travel.source  # an address without its secrets
        if when is not None:
            moment = travel.at_time(when)
        else:
            moment = travel.at(travel.head().position if position is None else position)
        if as_json:
            _write_moment(log, moment, of)
        elif of:
            _show_aggregates(moment, of)
        else:
            _show_moment(log, moment, travel.head().position)


@app.command(epilog=_DIFF_EPILOG)
def diff(
    log: LogArgument,
    start: Annotated[
        str, typer.Option("--from", metavar="N|T", help="The earlier end.", show_default=False)
    ],
    end: Annotated[
        str, typer.Option("--to", metavar="N|T", help="The later end.", show_default=False)
    ],
    checkpoints: CheckpointsOption = True,
    as_json: terminal.JsonOption = False,
) -> None:
    """Print what changed between two positions or times, from what to what, and the events in between by kind."""
    ends = (_end("--from", start), _end("--to", end))
    with _travelling(log, checkpoints=checkpoints) as travel:
        log = travel.source  # an address without its secrets
        before, after = (
            travel.at(end) if isinstance(end, int) else travel.at_time(end) for end in ends
        )
        found = difference(before, after)
        if as_json:
            _write_difference(log, found)
        else:
            _show_difference(log, found)


@contextmanager
def _travelling(log: str, *, checkpoints: bool) -> Generator[TimeTravel]:
    with open_log(log, read_only=True) as opened:
        if not checkpoints:
            yield TimeTravel(opened, source=opened.source)
            return
        with CheckpointFile(opened, checkpoints_of(log)) as file:
            yield TimeTravel(opened, file, source=opened.source)
            if file.problem is not None:
                terminal.err.print(
                    f"no checkpoints are kept: {file.problem}", highlight=False, markup=False
                )


def _end(option: str, text: str) -> int | datetime:
    return int(text) if text.isascii() and text.isdigit() else _time(option, text)


def _time(option: str, text: str) -> datetime:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise InputError.of(
            option, f"{text!r} is not a time; wanted RFC 3339, such as 2026-03-01T10:00:00Z"
        ) from None
    if when.tzinfo is None:
        raise InputError.of(option, f"{text!r} says no time zone; wanted Z or +01:00 at its end")
    try:
        return when.astimezone(UTC)
    except OverflowError:
        raise InputError.of(option, f"{text!r} is out of range") from None


# ---------------------------------------------------------------------- selection
def _chosen(moment: Moment, of: list[str] | None) -> Iterator[tuple[str, bytes]]:
    """Yield the documents of what was asked for."""
    if of is None:
        yield from moment.aggregates()
        return
    kinds = {aggregate.KIND for aggregate in AGGREGATES}
    for name in of:
        if name in kinds:
            yield from moment.aggregates(name)
            continue
        document = moment.aggregate(name)
        if document is None:
            raise NotFoundError(
                f"there is no {name!r} at position {moment.head.position}; wanted an id such as request:R17, or one of"
                f" {', '.join(sorted(kinds))}"
            )
        yield name, document


# --------------------------------------------------------------------------- JSON
def _write_moment(log: str, moment: Moment, of: list[str] | None) -> None:
    """Print one document; the aggregates one by one, since there may be very many."""
    chosen = _chosen(moment, of)
    first = next(
        chosen, None
    )  # what was asked for and is not there is said before anything is printed
    head = {
        "format": "xce.moment/1",
        "log": log,
        **_place(moment),
        "digest": moment.head.digest.hex(),
        "events": dict(sorted(moment.events.items())),
        "states": dict(sorted(moment.states.items())),
        **moment.views(),
    }
    _open_document(head, "aggregates", "{")
    separator = "\n  "
    while first is not None:
        name, document = first
        sys.stdout.write(f"{separator}{json.dumps(name, ensure_ascii=False)}: {document.decode()}")
        separator = ",\n  "
        first = next(chosen, None)
    sys.stdout.write("\n }\n}\n")


def _write_difference(log: str, found: Difference) -> None:
    head = {
        "format": "xce.difference/1",
        "log": log,
        "from": _place(found.before),
        "to": _place(found.after),
        "events": dict(found.events),
    }
    _open_document(head, "changes", "[")
    separator = "\n  "
    for change in found.changes():
        sys.stdout.write(separator + json.dumps(_change(change), ensure_ascii=False))
        separator = ",\n  "
    sys.stdout.write("\n ]\n}\n")


def _open_document(head: Mapping[str, Any], last: str, bracket: str) -> None:
    """Print a document up to its last part, whose items follow one by one."""
    text = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
    sys.stdout.write(f'{text},\n "{last}": {bracket}')


def _place(moment: Moment) -> dict[str, Any]:
    return {"position": moment.head.position, "at": _shown_time(moment.now)}


def _change(change: Change) -> dict[str, Any]:
    ends = {"from": change.before, "to": change.after}
    return {
        "path": change.path,
        "what": change.what,
        **{name: value for name, value in ends.items() if value is not ABSENT},
    }


# ------------------------------------------------------------------------- people
def _show_moment(log: str, moment: Moment, end: int) -> None:
    views = moment.views()
    terminal.out.print(
        Text(f"{log}: position {moment.head.position} of {end}, {_shown_time(moment.now) or '-'}"),
        soft_wrap=True,
    )
    _show("SHARED OWNED BORROWED TOTAL IN-FLIGHT RETURNING", _totals(views["totals"]))
    _show("AGGREGATES STATE NUMBER", _states(moment.states))
    _show("HELD OR ASKED|ID|PROVIDER|OF|STATE|PER HOUR", _held(views["inventory"]))
    _show("SPENDING KIND OF LIVE ENDED COST PER-HOUR", _costs(views["spending"]))
    _show("ORPHANS KIND OF LIVE ENDED COST PER-HOUR", _costs(views["spending_on_orphans"]))


def _show(headings: str, rows: Sequence[tuple[str, ...]]) -> None:
    """Print one table, or nothing where it has no rows."""
    if not rows:
        return
    table = Table(box=None, pad_edge=False)
    for heading in headings.split("|" if "|" in headings else " "):
        table.add_column(heading.replace("-", " "))
    for row in rows[:ROWS_MAX]:
        table.add_row(*(cell(text) for text in row))
    terminal.out.print()
    terminal.print_table(table)
    if len(rows) > ROWS_MAX:
        terminal.out.print(Text(f"and {len(rows) - ROWS_MAX} more; --json has all"))


def _totals(totals: Mapping[str, Any]) -> list[tuple[str, ...]]:
    fields = ("owned", "borrowed", "total", "in_flight", "returning")
    return [(name, *(str(total[field]) for field in fields)) for name, total in totals.items()]


def _states(states: Mapping[str, int]) -> list[tuple[str, ...]]:
    return [(*name.split(" ", 1), str(count)) for name, count in sorted(states.items())]


def _held(inventory: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        (
            kind,
            name,
            entry["provider"],
            entry.get("template") or entry.get("resource") or "",
            entry["state"],
            entry["price_per_hour"] or "",
        )
        for kind, part in (("request", "requests"), ("instance", "instances"), ("grant", "grants"))
        for name, entry in inventory[part].items()
    ]


def _costs(spending: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        (
            provider,
            kind,
            item,
            str(line["live"]),
            str(line["ended"]),
            line["cost"],
            line["per_hour"],
        )
        for provider, kinds in spending.items()
        for kind, items in kinds.items()
        for item, line in items.items()
    ]


def _show_aggregates(moment: Moment, of: list[str]) -> None:
    for number, (_, document) in enumerate(_chosen(moment, of)):
        table = Table(box=None, pad_edge=False, show_header=False)
        for field, value in json.loads(document).items():
            table.add_row(cell(field), cell(_cell(value)))
        if number:
            terminal.out.print()
        terminal.print_table(table)


def _show_difference(log: str, found: Difference) -> None:
    ends = " to ".join(
        f"position {moment.head.position} ({_shown_time(moment.now) or '-'})"
        for moment in (found.before, found.after)
    )
    terminal.out.print(Text(f"{log}: {ends}"), soft_wrap=True)
    _show("EVENTS NUMBER", [(name, str(count)) for name, count in found.events.items()])
    rows = [(c.what, _cell(c.before), _cell(c.after)) for c in found.changes()]
    _show("WHAT FROM TO", rows)
    if not rows:
        terminal.out.print("nothing changed")


def _cell(value: object) -> str:
    if value is ABSENT:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= CELL_MAX else text[: CELL_MAX - 3] + "..."


def _shown_time(when: datetime | None) -> str | None:
    return None if when is None else when.astimezone(UTC).isoformat().replace("+00:00", "Z")
