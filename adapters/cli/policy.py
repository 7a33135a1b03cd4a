"""``xce policy FILE``: one round of the provisioning policy over a file."""

from typing import Annotated

import typer
from rich.table import Table

from xce.adapters.cli import terminal
from xce.adapters.cli.visible import cell
from xce.adapters.settings.documents import with_what_reads_it
from xce.domain.errors import InputError
from xce.domain.formats.policy import Decision, Decisions
from xce.domain.policy import money
from xce.domain.policy.checks import read_policy_input
from xce.domain.policy.decide import decide
from xce.domain.policy.times import clock


def policy(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A round's input (xce.policy/1); - is stdin.")
    ],
    as_json: terminal.JsonOption = False,
) -> None:
    """Decide what to ask, to give back and to give up, over a file with demand, idle supply and inventory."""
    try:
        inputs = read_policy_input(terminal.read_input(file), terminal.source_name(file))
    except InputError as error:
        raise with_what_reads_it(error) from None
    decisions = decide(inputs)
    if as_json:
        terminal.write_json(decisions.to_json())
    elif decisions.decisions:
        terminal.print_table(table_of(decisions))
    else:
        terminal.out.print("nothing to do")


def table_of(decisions: Decisions) -> Table:
    """Return the decisions as a table for people."""
    table = Table(box=None, pad_edge=False)
    for heading in ("DECISION", "PROVIDER", "OF", "AMOUNT", "PER HOUR", "REASON"):
        table.add_column(heading, justify="right" if heading in ("AMOUNT", "PER HOUR") else "left")
    for decision in decisions.decisions:
        table.add_row(*map(cell, _row(decision)))
    return table


def _row(decision: Decision) -> tuple[str, ...]:
    amount = decision.count if decision.count is not None else decision.amount
    jobs = f" (for {_few(decision.jobs)})" if decision.jobs else ""
    which = (
        *decision.requests,
        *decision.instances,
        *(f"{part.grant} ({part.amount})" for part in decision.grants),
    )
    return (
        decision.kind.value,
        decision.provider or "",
        decision.template or decision.resource or "",
        "" if amount is None else str(amount),
        "" if decision.cost_per_hour is None else money.plain(decision.cost_per_hour),
        ("" if decision.until is None else f"until {clock(decision.until)}: ")
        + decision.reason
        + (f" [{_few(which)}]" if which else "")
        + jobs,
    )


def _few(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
