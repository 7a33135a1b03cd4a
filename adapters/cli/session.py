"""``xce session FILE``: one scheduling session over a snapshot."""

from collections.abc import Iterable, Iterator
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from xce.adapters.cli import terminal
from xce.domain.errors import InputError
from xce.domain.formats.session_result import (
    Demand,
    Idle,
    Pending,
    Provisioning,
    Reason,
    SessionResult,
)
from xce.domain.formats.snapshot import Snapshot
from xce.domain.scheduling.session import run_session

NAMES_SHOWN = 6


def command(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A snapshot (xce.snapshot/1); - is stdin.")
    ],
    as_json: terminal.JsonOption = False,
    trace: Annotated[
        bool, typer.Option("--trace", help="Say what was tried for each job, and what was short.")
    ] = False,
    expand: Annotated[
        bool, typer.Option("--expand", help="Write every reason at its job, not only its set.")
    ] = False,
) -> None:
    """Run one scheduling session: what starts, why the rest waits, what is missing, what could go back."""
    source = terminal.source_name(file)
    snapshot = Snapshot.from_json(terminal.read_input(file), source)
    try:
        result = run_session(snapshot, trace=trace)
    except InputError as error:
        raise InputError(source, error.problems) from None
    if expand:
        result = expanded(result)
    if as_json:
        terminal.write_json(result.to_json())
    else:
        render(result, terminal.out)


def expanded(result: SessionResult) -> SessionResult:
    """Return the result with every reason at its job instead of the id of its set."""
    sets = {entry.id: entry.reasons for entry in result.reason_sets}
    pending = tuple(
        entry
        if entry.reasons is None
        else entry.model_copy(update={"expanded": sets[entry.reasons], "reasons": None})
        for entry in result.pending
    )
    return result.model_copy(update={"pending": pending, "reason_sets": ()})


def render(result: SessionResult, console: Console) -> None:
    """Show a result as tables."""
    console.print(
        f"{len(result.allocations)} jobs start, {len(result.pending)} wait"
        f" (log position {result.position})",
        highlight=False,
    )
    if result.allocations:
        console.print(_allocations(result))
    if result.pending:
        console.print(_pending(result))
    for line in (*_demand(result.demand), *_idle(result.idle)):
        console.print(line, highlight=False, markup=False)
    for warning in result.warnings:
        console.print(f"warning: {warning}", style="yellow", highlight=False, markup=False)
    for line in result.trace or ():
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _allocations(result: SessionResult) -> Table:
    table = Table("starts", "on", "takes", "tokens")
    for entry in result.allocations:
        table.add_row(
            entry.job,
            _some(f"{place.name} x{place.tasks}" for place in entry.hosts),
            _some(_amounts(place.uses) for place in entry.hosts[:1]),
            _some(f"{shared.amount} {shared.name}" for shared in entry.shared),
        )
    return table


def _pending(result: SessionResult) -> Table:
    sets = {entry.id: entry.reasons for entry in result.reason_sets}
    table = Table("waits", "because of", "reasons", "waits for")
    for entry in result.pending:
        reasons = sets.get(entry.reasons or 0, ()) if entry.expanded is None else entry.expanded
        table.add_row(entry.job, entry.reason.value, _reasons(reasons), _waits_for(entry))
    return table


def _reasons(reasons: Iterable[Reason]) -> str:
    return _some(_reason(reason) for reason in reasons)


def _reason(reason: Reason) -> str:
    what = reason.limit or reason.resource or reason.kind.value
    where = "" if not reason.hosts else f" on {_some(reason.hosts, 3)}"
    return f"{what}{where}"


def _waits_for(entry: Pending) -> str:
    return "-" if entry.provisioning is None else _some(_parts(entry.provisioning))


def _parts(provisioning: Provisioning) -> Iterator[str]:
    for template, count in provisioning.templates.items():
        yield f"{count} x {template}"
    for name, amount in provisioning.countable.items():
        yield f"{amount} {name}"
    for name in provisioning.in_flight:
        yield f"{name} (in flight)"


def _demand(demand: Demand) -> Iterator[str]:
    for host in demand.hosts:
        yield f"demand: {host.count} x {host.template} for {_some(job.job for job in host.jobs)}"
    for count in demand.countable:
        yield (
            f"demand: {count.amount} {count.name} ({count.wanted} wanted, the rest is in flight)"
            f" for {_some(job.job for job in count.jobs)}"
            if count.amount != count.wanted
            else f"demand: {count.amount} {count.name} for {_some(job.job for job in count.jobs)}"
        )
    if demand.order and demand.tight.value != "proved":
        yield "demand: that no host of it is spare was not proved within the budget of placements"
    for entry in demand.impossible:
        yield f"impossible: job {entry.job}: {entry.why}"
    if demand.not_examined:
        yield f"not examined: {_some(demand.not_examined)}"


def _idle(idle: Idle) -> Iterator[str]:
    for host in idle.hosts:
        yield f"idle: {host.host} ({host.instance}) since {host.idle_since:%Y-%m-%d %H:%M:%S} UTC"
    for count in idle.counts:
        yield f"idle: {count.amount} {count.name}"


def _amounts(uses: dict[str, int]) -> str:
    return ", ".join(f"{amount} {name}" for name, amount in uses.items())


def _some(parts: Iterable[str], most: int = NAMES_SHOWN) -> str:
    names = list(parts)
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(names[:most]) + more
