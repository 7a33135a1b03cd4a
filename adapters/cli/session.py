"""``xce session FILE``: one scheduling session over a snapshot file."""

from collections.abc import Iterable, Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from xce.adapters import collector
from xce.adapters.allocators import allocators_for
from xce.adapters.cli import terminal
from xce.adapters.cli.visible import cell
from xce.adapters.settings.documents import with_what_reads_it
from xce.domain.errors import InputError
from xce.domain.formats.session_result import (
    Pending,
    Provisioning,
    Reason,
    ReasonKind,
    SessionResult,
    Tightness,
)
from xce.domain.formats.snapshot import Snapshot
from xce.domain.scheduling.session import run_session

#: Names shown in one cell before the others are only counted.
_NAMES_SHOWN = 4


def command(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A snapshot (xce.snapshot/1); - is stdin.")
    ],
    as_json: terminal.JsonOption = False,
    trace: Annotated[
        bool, typer.Option("--trace", help="Say step by step what was tried for every job.")
    ] = False,
    expand: Annotated[
        bool, typer.Option("--expand", help="Write every reason at its job, not in sets.")
    ] = False,
) -> None:
    """Run one scheduling session: what starts, why the rest waits, what is missing, what is idle."""
    result = session(terminal.read_input(file), terminal.source_name(file), trace=trace)
    if expand:
        result = expanded(result)
    if as_json:
        terminal.write_json(result.to_json())
    else:
        render(result, terminal.out)


def session(text: str | bytes, source: str, *, trace: bool = False) -> SessionResult:
    """Return the result of a session over the JSON text of a snapshot.

    Raises:
        AllocatorError: an allocator that a job names cannot be used.
        InputError: the text is no snapshot, or a requirement in it cannot be read; the source is ``source``.
    """
    with collector.paused():
        try:
            snapshot = Snapshot.from_json(text, source)
        except InputError as error:
            raise with_what_reads_it(error) from None
        try:
            return run_session(snapshot, trace=trace, allocators=allocators_for(snapshot))
        except InputError as error:
            raise InputError(source, error.problems) from None


def expanded(result: SessionResult) -> SessionResult:
    """Return the result with every reason written at its job, and no sets."""
    sets = {each.id: each.reasons for each in result.reason_sets}
    pending = tuple(
        job
        if job.reasons is None
        else job.model_copy(update={"reasons": None, "expanded": sets[job.reasons]})
        for job in result.pending
    )
    return result.model_copy(update={"pending": pending, "reason_sets": ()})


def render(result: SessionResult, console: Console) -> None:
    """Print a result for people."""
    tables = {
        "Starting": _allocations(result),
        "Waiting": _pending(result),
        "Demand": _demand(result),
        "Not in the demand": _left_out(result),
        "Idle": _idle(result),
    }
    shown = {title: table for title, table in tables.items() if table.row_count}
    for number, (title, table) in enumerate(shown.items()):
        if number:
            console.print()
        console.print(Text(title, style="bold"))
        terminal.print_table(table, console)
    if not shown:
        console.print("nothing to do")
    if result.demand.tight is Tightness.BUDGET:
        console.print(
            "\nThe budget of placements ran out before every host was shown to be needed."
        )
    for line in result.trace or ():
        console.print(cell(line), soft_wrap=True)
    for warning in result.warnings:
        terminal.err.print(cell(f"warning: {warning}"))


def _table(*headings: str, numbers: Iterable[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="right" if heading in numbers else "left")
    return table


def _row(table: Table, *cells: str) -> None:
    table.add_row(*map(cell, cells))


def _allocations(result: SessionResult) -> Table:
    table = _table("JOB", "HOSTS", "SHARED")
    for job in result.allocations:
        hosts = [f"{on.name} ({on.tasks})" if on.tasks > 1 else on.name for on in job.hosts]
        shared = ", ".join(f"{each.amount} {each.name}" for each in job.shared)
        _row(table, job.job, _few(hosts), shared)
    return table


def _pending(result: SessionResult) -> Table:
    table = _table("JOBS", "REASON", "WHAT", "WAIT FOR")
    sets = {each.id: each.reasons for each in result.reason_sets}
    alike: dict[tuple[str, str, str], list[str]] = {}
    for job in result.pending:
        reasons = _reasons(job, sets)
        what = "; ".join(dict.fromkeys(_what(reason) for reason in reasons if _what(reason)))
        row = (job.reason.value, what, _waits_for(job.provisioning))
        alike.setdefault(row, []).append(job.job)
    for row, jobs in alike.items():
        _row(table, _few(jobs), *row)
    return table


def _reasons(job: Pending, sets: dict[int, tuple[Reason, ...]]) -> tuple[Reason, ...]:
    if job.expanded is not None:
        return job.expanded
    return sets[job.reasons] if job.reasons is not None else ()


def _what(reason: Reason) -> str:
    where = "" if reason.hosts is None else f" on {_few(reason.hosts)}"
    detail = "" if reason.detail is None else f" ({reason.detail})"
    match reason.kind:
        case ReasonKind.LIMIT:
            return f"limit {reason.limit}{where}{detail}"
        case ReasonKind.UNIT_UNKNOWN:
            return f"unit of {reason.resource}"
        case _:
            return f"{reason.resource}{where}{detail}" if reason.resource else reason.detail or ""


def _waits_for(given: Provisioning | None) -> str:
    if given is None:
        return ""
    parts = [f"{count} new {name}" for name, count in given.templates.items()]
    parts += [f"{amount} more {name}" for name, amount in given.countable.items()]
    parts += [f"{name} in flight" for name in given.in_flight]
    return ", ".join(parts) or "its turn"


def _demand(result: SessionResult) -> Table:
    demand = result.demand
    table = _table("WHAT", "NEW", "WANTED", "FOR JOBS", numbers=("NEW", "WANTED"))
    for hosts in demand.hosts:
        jobs = [each.job for each in hosts.jobs]
        _row(table, f"hosts of {hosts.template}", str(hosts.count), str(hosts.count), _few(jobs))
    for count in demand.countable:
        jobs = [each.job for each in count.jobs]
        _row(table, count.name, str(count.amount), str(count.wanted), _few(jobs))
    return table


def _left_out(result: SessionResult) -> Table:
    demand = result.demand
    table = _table("JOBS", "WHY")
    alike: dict[str, list[str]] = {}
    for each in demand.impossible:
        alike.setdefault(f"can never run: {each.why}", []).append(each.job)
    for each in demand.not_counted:
        alike.setdefault(each.why, []).append(each.job)
    for name in demand.not_examined:
        alike.setdefault("not examined: past the cap", []).append(name)
    for why, jobs in alike.items():
        _row(table, _few(jobs), why)
    return table


def _idle(result: SessionResult) -> Table:
    table = _table("WHAT", "AMOUNT", "SINCE", numbers=("AMOUNT",))
    for host in result.idle.hosts:
        since = host.idle_since.isoformat().replace("+00:00", "Z")
        _row(table, f"host {host.host} ({host.instance})", "1", since)
    for count in result.idle.counts:
        _row(table, count.name, str(count.amount), "")
    return table


def _few(names: Sequence[str]) -> str:
    if len(names) <= _NAMES_SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMES_SHOWN])} and {len(names) - _NAMES_SHOWN} more"
