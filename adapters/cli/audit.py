"""``xce audit verify|query|rebuild|backup``: is a log what was written, what does it say, and a copy of it."""

import json
import math
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from xce.adapters.cli import exit_codes, terminal
from xce.adapters.cli.visible import cell
from xce.adapters.settings.kinds import kind_of
from xce.adapters.settings.yaml_tree import read_tree
from xce.adapters.store import audit as read_models
from xce.adapters.store.audit_tables import TABLES
from xce.adapters.store.backup import backup as copy_log
from xce.adapters.store.open import MEMORY, open_log
from xce.adapters.store.verify import verify as verify_log
from xce.domain.errors import InputError
from xce.domain.events.digest import GENESIS
from xce.domain.events.recorded import Head
from xce.domain.formats.config import SimulationConfig
from xce.domain.formats.policy import Budget
from xce.domain.formats.provisioner_config import ProvisionerConfig
from xce.domain.formats.scenario import Scenario
from xce.projections.invariants.report import Report

app = typer.Typer(
    name="audit", help="Verify a log and question it.", no_args_is_help=True, add_completion=False
)

LogArgument = Annotated[
    str,
    typer.Argument(
        metavar="LOG",
        help="The SQLite file of a log, such as xce-demo/events.db, or its address on PostgreSQL.",
    ),
]
_QUERY_EPILOG = (
    f"Tables: {', '.join(table.name for table in TABLES)}; docs/reference/audit.md has their columns.\n\n"
    'Example: xce audit query xce-demo/events.db "SELECT id, item, amount, reason FROM requests"'
)
DatabaseOption = Annotated[
    str | None,
    typer.Option("--database", metavar="FILE", help="Where the read models lie; LOG.audit.db."),
]


@app.command(epilog="Example: xce audit verify xce-demo/events.db")
def verify(
    log: LogArgument,
    anchor: Annotated[
        str | None,
        typer.Option(
            metavar="POSITION:DIGEST",
            help="An earlier head, as printed by this command, that the log must still contain.",
        ),
    ] = None,
    budgets: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The configuration of the provisioner, or of a simulation: its budgets are not in the log.",
        ),
    ] = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Check the digest chain and the invariants of a log, each by name; exit 3 if one does not hold."""
    expected = None if anchor is None else _head(anchor)
    bounds = () if budgets is None else _budgets_of(budgets)
    with open_log(_file(log), read_only=True) as opened:
        report = verify_log(opened, anchor=expected, budgets=bounds)
    if as_json:
        terminal.write_json(json.dumps(document_of(report), indent=2))
    else:
        _show(report)
        if budgets is None:
            terminal.err.print(
                "invariant-5 is about budgets, which --budgets names: none was looked at",
                soft_wrap=True,
            )
    if not report.passed:
        raise typer.Exit(exit_codes.NO)


@app.command(epilog=_QUERY_EPILOG)
def query(
    log: LogArgument,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT; it can only read.")],
    database: DatabaseOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Question the read models of a log; they are made when there are none, and brought up to its end when it has grown."""
    target = database or read_models.database_of(log)
    with open_log(_file(log), read_only=True) as opened:
        read_models.catch_up(opened, target)
    answer = read_models.query(target, sql)
    if as_json:
        _require_distinct(answer.columns)
        rows = [dict(zip(answer.columns, map(_json, row), strict=True)) for row in answer.rows]
        terminal.write_json(json.dumps(rows, indent=2))
    else:
        table = Table(box=None, pad_edge=False)
        for column in answer.columns:
            table.add_column(cell(column))
        for row in answer.rows:
            table.add_row(*(cell("" if value is None else str(_json(value))) for value in row))
        terminal.print_table(table)
    if answer.cut:
        terminal.err.print(f"only the first {len(answer.rows)} rows are shown")


@app.command(epilog="Example: xce audit rebuild xce-demo/events.db")
def rebuild(log: LogArgument, database: DatabaseOption = None) -> None:
    """Throw the read models of a log away and make them again."""
    target = database or read_models.database_of(log)
    with open_log(_file(log), read_only=True) as opened:
        events = read_models.rebuild(opened, target)
    terminal.err.print(f"{target}: {events} events", highlight=False, markup=False)


@app.command(
    epilog="A copy that is put in the log's place is the log: docs/how-to/back-up-a-log.md.\n\n"
    "Example: xce audit backup xce-demo/events.db backups/events-2026-03-01.db"
)
def backup(
    log: LogArgument,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Where the copy goes; never an existing file.")
    ],
    check: Annotated[
        bool, typer.Option(help="Verify the copy as xce audit verify does, or else keep none.")
    ] = True,
    as_json: terminal.JsonOption = False,
) -> None:
    """Copy a log while others write it, check the copy, and print its head, which is an anchor for later."""
    head = copy_log(_file(log), file, check=check)
    if as_json:
        document = {"file": file, "position": head.position, "digest": head.digest.hex()}
        terminal.write_json(json.dumps(document, indent=2))
    else:
        terminal.out.print(Text(f"{file}: {head.position} events; head {head}"), soft_wrap=True)


def document_of(report: Report) -> dict[str, Any]:
    """Return the report as a JSON document."""
    head = report.head
    return {
        "source": report.source,
        "passed": report.passed,
        "events": report.events,
        "head": None if head is None else {"position": head.position, "digest": head.digest.hex()},
        "checks": [
            {
                "name": check.name,
                "title": check.title,
                "passed": check.passed,
                "counted": check.counted,
                "found": check.found,
                "findings": [asdict(finding) for finding in check.findings],
            }
            for check in report.checks
        ],
    }


def _show(report: Report) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("CHECK", "OUTCOME", "LOOKED AT", "WHAT IS PROMISED"):
        table.add_column(heading, justify="right" if heading == "LOOKED AT" else "left")
    for check in report.checks:
        outcome = Text("holds", "green") if check.passed else Text(f"broken {check.found}", "red")
        table.add_row(Text(check.name), outcome, Text(str(check.counted)), Text(check.title))
    terminal.print_table(table)
    for check in report.checks:
        for finding in check.findings:
            terminal.out.print(Text(f"{check.name}: ", "red") + Text(str(finding)), soft_wrap=True)
        if check.found > len(check.findings):
            rest = check.found - len(check.findings)
            terminal.out.print(Text(f"{check.name}: and {rest} more"))
    terminal.out.print(
        Text(f"{report.events} events; head {report.head or 'unknown'}"), soft_wrap=True
    )


def _require_distinct(columns: tuple[str, ...]) -> None:
    """Refuse names that a JSON object would hold once only, so that no value is lost without a word."""
    for name in columns:
        if columns.count(name) > 1:
            raise InputError.of("SQL", f"two columns are named {name!r}; name them apart with AS")


def _file(log: str) -> str:
    if log == MEMORY:
        raise InputError.of(log, "is not a file; wanted the file of a log")
    return log


def _budgets_of(file: str) -> tuple[Budget, ...]:
    source = terminal.source_name(file)
    kind, config = kind_of(read_tree(terminal.read_input(file), source), source)
    if isinstance(config, SimulationConfig | ProvisionerConfig | Scenario):
        return config.policy.budgets
    raise InputError.of(source, f"is a configuration of a {kind.name}, which has no budgets")


def _head(text: str) -> Head:
    position, _, digest = text.partition(":")
    try:
        head = Head(int(position), bytes.fromhex(digest))
    except ValueError:
        head = None
    if head is None or len(head.digest) != len(GENESIS):
        raise InputError.of(
            "--anchor", f"{text!r} is not a head; wanted POSITION:DIGEST as printed by verify"
        )
    return head


def _json(value: object) -> object:
    """Return a value of SQLite as JSON can have it: bytes in hexadecimal, what is no finite number as text."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
