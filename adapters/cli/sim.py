"""``xce sim``: the simulator."""

import csv
import io
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from xce.adapters.cli import compare, faults, repl, sim_run, terminal
from xce.adapters.cli.simulate import new_log, new_recording, render, simulate
from xce.adapters.files import require_place, write_file
from xce.adapters.report.page import write_report
from xce.adapters.settings import load_config
from xce.adapters.workloads import load_workload
from xce.domain.formats.snapshot import OrderMode
from xce.replay.workloads.from_swf import load_swf

app = typer.Typer(no_args_is_help=True, help="Simulate a cluster in virtual time.")
app.command(
    "run", epilog="Example: xce sim run examples/scenarios/f01-starting-hosts-are-supply.yaml"
)(sim_run.command)
app.command(
    "compare",
    epilog="Example: xce sim compare examples/small.yaml --workload examples/small.swf --vary policy.minimum_hold=10min,1h",
)(compare.command)
app.command("repl", epilog="Example: xce sim repl examples/scenarios/an-evening-with-trouble.yaml")(
    repl.command
)
app.command("faults", epilog="Example: xce sim faults --seed 7 --runs 100")(faults.command)


@app.callback()
def root() -> None:
    """Simulate a cluster in virtual time."""


@app.command(
    epilog="Example: xce sim swf examples/small.swf --config examples/small.yaml --report report.html"
)
def swf(
    trace: Annotated[
        Path,
        typer.Argument(
            metavar="TRACE",
            help="A log in the Standard Workload Format, or another workload: of xce workload make, sacct --json,"
            " a recording; plain or gzip.",
            show_default=False,
        ),
    ],
    config: Annotated[
        Path,
        typer.Option("--config", help="The cluster, providers, workload rules and policy (YAML)."),
    ],
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Only the first N records.")
    ] = None,
    order: Annotated[
        OrderMode | None,
        typer.Option("--order", help="Overrides session.order of the configuration."),
    ] = None,
    starts: Annotated[
        Path | None, typer.Option("--starts", help="Write job id and start time of each job (CSV).")
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", help="Keep the event log in this new file; else it is in memory."),
    ] = None,
    report: Annotated[Path | None, typer.Option("--report", help="Write an HTML report.")] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            help="Keep sessions, events and answers in this new file, for xce replay verify.",
        ),
    ] = None,
    as_json: terminal.JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Replay a workload log: sessions, policy and simulated providers in virtual time."""
    require_place(starts, log, report, record)
    settings = load_config(config)
    if order is not None:
        session = settings.session.model_copy(update={"order": order})
        settings = settings.model_copy(update={"session": session})
    load = load_swf if trace.is_fifo() else load_workload  # which reads a file twice
    workload = load(
        trace,
        settings.workload,
        seed=settings.driver.seed,
        time_zero=settings.driver.time_zero,
        jobs_max=jobs,
    )
    with new_log(log) as events, new_recording(record, settings, workload.start) as writer:
        run = simulate(settings, workload, events, quiet=quiet, record=writer)
    if starts is not None:
        write_starts(starts, run.starts)
    if report is not None:
        write_report(report, run.report, run.statistics, run.history)
    if as_json:
        terminal.write_json(run.report.to_json())
    else:
        render(run.report, terminal.out)


def write_starts(path: Path, starts: tuple[tuple[str, datetime], ...]) -> None:
    """Write job id and start time (RFC 3339, UTC), in order of starting.

    Raises:
        InputError: the file cannot be written.
        TransientError: the disk is full.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["job", "start"])
    writer.writerows((job, f"{at:%Y-%m-%dT%H:%M:%SZ}") for job, at in starts)
    write_file(path, text.getvalue())
