"""The page: what goes into the template, and the file it becomes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from xce.adapters.files import write_file
from xce.adapters.report import pictures, wording
from xce.adapters.report.templates import fill
from xce.domain.formats.simulation import JobsWhy, SimulationReport
from xce.replay.curves import cost_timeline, hosts_timeline
from xce.replay.history import History
from xce.replay.statistics import Statistics

TEMPLATE: Final = "page.html.j2"
#: Rows of the long tables; of more, the first and last halves are shown, and the page says so.
ROWS_MAX: Final = 400
NAMES_MAX: Final = 40


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure at the top of the page."""

    label: str
    value: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table: names of the columns, which of them are numbers, the rows, and how many rows were left out."""

    columns: tuple[str, ...]
    numbers: frozenset[int]
    rows: tuple[tuple[str, ...], ...]
    left_out: int = 0
    #: The row after which rows were left out.
    gap_after: int = 0

    @classmethod
    def of(cls, columns: str, rows: Iterable[tuple[str, ...]]) -> "Table":
        """Return a table; a column whose name ends with ``#`` holds numbers."""
        names = tuple(name.strip() for name in columns.split("|"))
        numbers = frozenset(i for i, name in enumerate(names) if name.endswith("#"))
        every = tuple(rows)
        half = ROWS_MAX // 2
        kept = every if len(every) <= ROWS_MAX else every[:half] + every[-half:]
        return cls(
            tuple(name.removesuffix("#").strip() for name in names),
            numbers,
            kept,
            len(every) - len(kept),
            half,
        )


def write_report(
    path: Path, report: SimulationReport, statistics: Statistics, history: History
) -> None:
    """Write the page of a run into one file.

    Raises:
        InputError: the file cannot be written.
        TransientError: the disk is full.
    """
    write_file(path, render(report, statistics, history))


def render(report: SimulationReport, statistics: Statistics, history: History) -> str:
    """Return the page; equal runs give equal texts. Without matplotlib it has no pictures and says how to get them."""
    drawn: tuple[pictures.Picture, ...] = ()
    if pictures.available():
        drawn = pictures.draw(
            pictures.Material(
                demand=statistics.timeline(),
                hosts=hosts_timeline(history, report.ended),
                spent=cost_timeline(history, report.ended),
                waits=statistics.waits(),
                shared=tuple(use.name for use in report.shared),
                start=report.started,
                end=report.ended,
            )
        )
    return fill(
        TEMPLATE,
        report=report,
        facts=_facts(report),
        tiles=_tiles(report),
        pictures=drawn,
        pictures_missing=not pictures.available(),
        hosts=_hosts(report),
        shared=_shared(report),
        held=tuple(f"{use.name}: {why}" for use in report.shared for why in use.why_held),
        jobs=_jobs(report),
        requests=_requests(history),
        returns=_returns(history),
    )


def _facts(report: SimulationReport) -> str:
    length = wording.length(round((report.ended - report.started).total_seconds()))
    return (
        f"{wording.time(report.started)} to {wording.time(report.ended)} UTC ({length}), "
        f"{wording.count(report.sessions)} sessions, seed {report.seed}"
    )


def _tiles(report: SimulationReport) -> tuple[Tile, ...]:
    jobs, waiting = report.jobs, report.waiting
    tiles = [
        Tile(
            "jobs ended", wording.count(jobs.ended), f"of {wording.count(jobs.submitted)} submitted"
        ),
        Tile("median wait", wording.span(waiting.median), f"95 %: {wording.span(waiting.p95)}"),
        Tile("mean wait", wording.span(waiting.mean), f"longest: {wording.span(waiting.max)}"),
        Tile(
            "own slots used",
            wording.percent(report.own.utilisation),
            f"of {wording.count(report.own.slots)}",
        ),
        Tile(
            "hosts obtained",
            wording.count(report.requests.hosts_granted),
            f"of {wording.count(report.requests.hosts_asked)} asked",
        ),
    ]
    if report.shared:
        tiles.append(
            Tile(
                "tokens borrowed",
                wording.count(sum(use.borrowed for use in report.shared)),
                f"{wording.count(sum(use.returned for use in report.shared))} returned",
            )
        )
    tiles.append(Tile("cost", wording.money(report.cost), "hosts and tokens"))
    return tuple(tiles)


def _hosts(report: SimulationReport) -> Table:
    own = report.own
    span = int((report.ended - report.started).total_seconds())
    rows = [
        (
            "own partition", "", wording.count(own.hosts), "", wording.hours(own.hosts * span), "",
            wording.percent(own.utilisation), "", "",
        )
    ]  # fmt: skip
    rows += [
        (
            use.template, use.provider, wording.count(use.hosts), wording.count(use.hosts - use.joined),
            wording.hours(use.host_seconds), wording.hours(use.billed_seconds), wording.percent(use.utilisation),
            wording.price(use.price_per_hour), wording.money(use.cost),
        )
        for use in report.templates
    ]  # fmt: skip
    return Table.of(
        "hosts | provider | number # | never joined # | host hours # | billed hours # | slots used # | price per hour # | cost #",
        rows,
    )


def _shared(report: SimulationReport) -> Table:
    return Table.of(
        "resource | owned # | most in use # | most borrowed # | borrowed in all # | returned # | lost # | held at the end # "
        "| token hours # | cost #",
        (
            (
                use.name, wording.count(use.owned), wording.count(use.peak_in_use), wording.count(use.peak_borrowed),
                wording.count(use.borrowed), wording.count(use.returned), wording.count(use.lost),
                wording.count(use.held_at_end), wording.hours(use.unit_seconds), wording.money(use.cost),
            )
            for use in report.shared
        ),
    )  # fmt: skip


def _jobs(report: SimulationReport) -> Table:
    def rows(what: str, groups: Sequence[JobsWhy]) -> Iterable[tuple[str, ...]]:
        for group in groups:
            yield (
                what,
                group.why,
                wording.count(len(group.jobs)),
                wording.some(group.jobs, NAMES_MAX),
            )

    noted = (
        (("noted"), note.what, wording.count(note.jobs), f"{note.first} first")
        for note in report.jobs.notes
    )
    return Table.of(
        "what | why | jobs # | which",
        (
            *rows("not ended", report.jobs.not_ended),
            *rows("left out", report.jobs.left_out),
            *noted,
        ),
    )


def _requests(history: History) -> Table:
    return Table.of(
        "asked at (UTC) | request | provider | what | asked # | came # | outcome | why it was asked | jobs",
        (
            (
                wording.time(use.asked_at), use.request, use.provider, use.item, wording.count(use.amount),
                wording.count(use.granted), f"{use.outcome}: {use.why}" if use.why else use.outcome, use.reason,
                wording.some(use.jobs),
            )
            for use in history.requests.values()
        ),
    )  # fmt: skip


def _returns(history: History) -> Table:
    return Table.of(
        "started (UTC) | return | provider | what | of | amount # | outcome | ended (UTC) | reason",
        (
            (
                wording.time(use.started_at), use.return_id, use.provider, use.what, use.item, wording.count(use.amount),
                use.outcome, wording.time(use.ended_at), use.reason,
            )
            for use in history.returns.values()
        ),
    )  # fmt: skip
