"""The table of a comparison on a terminal: one line a policy; on a narrow one the figures below each other, so that nothing is cut."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from xce.adapters.cli import terminal
from xce.adapters.cli.visible import cell, visible
from xce.adapters.report.comparison import Column, columns_of
from xce.adapters.report.comparison_pictures import letter
from xce.domain.formats.comparison import Comparison, RunOutcome


def print_comparison(comparison: Comparison, workload: str, console: Console) -> None:
    """Print the figures of one workload; the best of each has a star."""
    runs = [run for run in comparison.runs if run.workload == workload]
    columns = columns_of(comparison)
    best = {one.figure: one.policies for one in comparison.best if one.workload == workload}
    figures = [
        [_figure(column, run, run.policy in best.get(column.figure, ())) for column in columns]
        for run in runs
    ]
    wide = _table(workload)
    for column in columns:
        wide.add_column(column.title, justify="right", no_wrap=True)
    for run, row in zip(runs, figures, strict=True):
        wide.add_row(cell(run.policy), *row)
    if not console.is_terminal or _width(wide, console) <= console.width:
        terminal.print_table(wide, console)
        return
    for place, run in enumerate(runs):
        console.print(f"{letter(place)}  {visible(run.policy)}", soft_wrap=True, highlight=False)
    place = 0
    while place < len(runs):
        end = place + 1
        tall = _tall(workload, columns, figures, place, end)
        while end < len(runs):
            more = _tall(workload, columns, figures, place, end + 1)
            if _width(more, console) > console.width:
                break
            tall, end = more, end + 1
        terminal.print_table(tall, console)
        place = end


def _tall(
    workload: str,
    columns: Sequence[Column],
    figures: Sequence[Sequence[Text]],
    begin: int,
    end: int,
) -> Table:
    """Return a table with a line for each figure, of some of the runs."""
    table = _table(workload)
    for place in range(begin, end):
        table.add_column(cell(letter(place)), justify="right", no_wrap=True)
    for number, column in enumerate(columns):
        table.add_row(column.title, *(row[number] for row in figures[begin:end]))
    return table


def _table(workload: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(cell(workload))
    return table


def _width(table: Table, console: Console) -> int:
    return Measurement.get(console, console.options.update(max_width=10**6), table).maximum


def _figure(column: Column, run: RunOutcome, is_best: bool) -> Text:
    """Return a figure of the page with commas between its thousands, as everywhere on a terminal."""
    text = column.shown(run.figures).replace("\u202f%", "%").replace("\u202f", ",")
    return Text(f"{text} *" if is_best else f"{text}  ", "bold" if is_best else "")
