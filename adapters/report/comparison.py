"""The page of a comparison: a table with the best marked, and pictures of all policies side by side."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from xce.adapters.report import comparison_pictures, pictures, wording
from xce.adapters.report.templates import fill
from xce.domain.formats.comparison import Comparison, Figures, RunOutcome

TEMPLATE: Final = "comparison.html.j2"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table.

    Attributes:
        figure: the field of ``Figures`` that it is of, by which the best is marked.
        title: its head.
        shown: the figure as people read it.
    """

    figure: str
    title: str
    shown: Callable[[Figures], str]


COLUMNS: Final = (
    Column("cost", "cost", lambda one: wording.money(one.cost)),
    Column("wait_mean", "mean wait", lambda one: wording.span(one.wait_mean)),
    Column("wait_p95", "95 % within", lambda one: wording.span(one.wait_p95)),
    Column("wait_max", "longest", lambda one: wording.span(one.wait_max)),
    Column("obtained_use", "paid slots used", lambda one: wording.percent(one.obtained_use)),
    Column("borrowed_use", "paid tokens used", lambda one: wording.percent(one.borrowed_use)),
    Column("waste", "waste", lambda one: wording.money(one.waste)),
    Column("violations", "violations", lambda one: wording.count(one.violations)),
    Column("jobs_not_ended", "not ended", lambda one: wording.count(one.jobs_not_ended)),
)
#: Where a scenario expects something.
NOT_AS_EXPECTED: Final = Column(
    "not_as_expected",
    "not as expected",
    lambda one: (
        wording.NOTHING if one.not_as_expected is None else wording.count(one.not_as_expected)
    ),
)
#: Figures of which any is one too many.
WANTED_NONE: Final = frozenset(("violations", "jobs_not_ended", "not_as_expected"))
#: What the page says of the best, in this order.
SENTENCES: Final = (
    ("cost", "cheapest"),
    ("wait_mean", "shortest mean wait"),
    ("wait_p95", "shortest wait of 95 %"),
    ("waste", "least waste"),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure of one policy."""

    text: str
    best: bool
    bad: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One policy."""

    policy: str
    letter: str
    colour: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Leader:
    """The best by one figure."""

    what: str
    policy: str
    value: str
    against: str


@dataclass(frozen=True, slots=True)
class Section:
    """One workload."""

    workload: str
    facts: str
    leaders: tuple[Leader, ...]
    rows: tuple[Row, ...]
    pictures: tuple[pictures.Picture, ...]
    violations: tuple[tuple[str, str], ...]
    unexpected: tuple[tuple[str, str], ...]
    left_behind: tuple[tuple[str, str], ...]


def columns_of(comparison: Comparison) -> tuple[Column, ...]:
    """Return the columns that there is something for."""
    expects = any(run.figures.not_as_expected is not None for run in comparison.runs)
    return (*COLUMNS, NOT_AS_EXPECTED) if expects else COLUMNS


def render_comparison(comparison: Comparison) -> str:
    """Return the page; equal comparisons give equal texts. Without matplotlib it has no pictures and says how to get them."""
    return fill(
        TEMPLATE,
        comparison=comparison,
        columns=columns_of(comparison),
        sections=tuple(_section(comparison, name) for name in comparison.workloads),
        axes=_axes(comparison),
        pictures_missing=not pictures.available(),
    )


def _axes(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    """Return the keys that policies differ in, with all their values."""
    values: dict[str, dict[str, None]] = {}
    for run in comparison.runs:
        for one in run.settings:
            values.setdefault(one.key, {})[one.value] = None
    return tuple((key, ", ".join(found)) for key, found in values.items())


def _section(comparison: Comparison, workload: str) -> Section:
    runs = [run for run in comparison.runs if run.workload == workload]
    best = {one.figure: one.policies for one in comparison.best if one.workload == workload}
    return Section(
        workload=workload,
        facts=_facts(runs),
        leaders=tuple(_leaders(runs, best)),
        rows=tuple(
            Row(
                run.policy,
                comparison_pictures.letter(place),
                comparison_pictures.colour(place),
                tuple(
                    Cell(
                        column.shown(run.figures),
                        run.policy in best.get(column.figure, ()),
                        column.figure in WANTED_NONE and bool(getattr(run.figures, column.figure)),
                    )
                    for column in columns_of(comparison)
                ),
            )
            for place, run in enumerate(runs)
        ),
        pictures=comparison_pictures.draw(runs) if pictures.available() else (),
        violations=tuple((run.policy, text) for run in runs for text in run.violations),
        unexpected=tuple(
            (run.policy, f"{one.expectation}; found: {one.found}")
            for run in runs
            for one in run.verdicts
            if not one.passed
        ),
        left_behind=tuple(
            (
                run.policy,
                f"{wording.count(len(group.jobs))} jobs: {group.why} ({wording.some(group.jobs)})",
            )
            for run in runs
            for group in run.report.jobs.not_ended
        ),
    )


def _facts(runs: Sequence[RunOutcome]) -> str:
    first = runs[0]
    start = min(run.report.started for run in runs)
    end = max(run.report.ended for run in runs)
    long = wording.length(round((end - start).total_seconds()))
    policies = "1 policy" if len(runs) == 1 else f"{len(runs)} policies"
    return (
        f"{wording.count(first.figures.jobs)} jobs, {wording.time(start)} to {wording.time(end)} UTC"
        f" ({long}), {policies}"
    )


def _leaders(runs: Sequence[RunOutcome], best: dict[str, tuple[str, ...]]) -> list[Leader]:
    leaders: list[Leader] = []
    shown = {column.figure: column.shown for column in COLUMNS}
    for figure, what in SENTENCES:
        policies = best.get(figure, ())
        if not policies:
            continue
        chosen = next(run for run in runs if run.policy == policies[0])
        others = [run for run in runs if run.policy not in policies]
        worst = max(others, key=lambda run: getattr(run.figures, figure) or 0)
        leaders.append(
            Leader(
                what,
                wording.some(policies, 2),
                shown[figure](chosen.figures),
                f"{shown[figure](worst.figures)} under {worst.policy}",
            )
        )
    return leaders
