"""``xce workload``: work to simulate, made up or taken from elsewhere."""

import gzip
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from xce.adapters.cli import terminal
from xce.adapters.cli.visible import cell, visible
from xce.adapters.files import cannot_write, require_place
from xce.adapters.settings.load import bytes_of, load_config, read_model
from xce.adapters.workloads import load_workload
from xce.domain.errors import InputError
from xce.domain.formats.config import SimulationConfig, WorkloadConfig
from xce.domain.formats.eda import EdaParameters
from xce.domain.values import write_duration
from xce.replay.workloads.eda import eda
from xce.replay.workloads.summary import WorkloadSummary, summary
from xce.replay.workloads.workload import Workload
from xce.replay.workloads.workload_file import to_lines

app = typer.Typer(no_args_is_help=True, help="Work to simulate, made up or taken from elsewhere.")

NewFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="The new workload file; packed if it ends with .gz.",
        show_default=False,
    ),
]
Source = Annotated[
    Path,
    typer.Argument(
        metavar="SOURCE",
        help="A workload log (SWF), sacct --json, a recording or a workload file.",
        show_default=False,
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", help="A configuration (YAML), of which the part workload counts."),
]
JobsOption = Annotated[int | None, typer.Option("--jobs", min=1, help="Only the first N jobs.")]
BAR = " ▁▂▃▄▅▆▇█"


@app.callback()
def root() -> None:
    """Work to simulate, made up or taken from elsewhere."""


@app.command(epilog="Example: xce workload make eda.jsonl.gz --seed 7 --days 14")
def make(
    file: NewFile,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Another seed, other jobs.")] = 1,
    days: Annotated[
        int | None, typer.Option("--days", min=1, help="Overrides days of the parameters.")
    ] = None,
    parameters: Annotated[
        Path | None, typer.Option("--parameters", help="What is to be different (YAML).")
    ] = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Make up the work of a chip-design site: people by day, regressions by night, more of them toward a freeze."""
    made = EdaParameters() if parameters is None else _parameters(parameters)
    if days is not None:
        made = made.model_copy(update={"days": days})
    workload = eda(made, seed)
    _write(file, workload)
    _show(workload, as_json=as_json)


@app.command(epilog="Example: xce workload convert examples/small.swf small.jsonl --jobs 50")
def convert(
    source: Source,
    file: NewFile,
    config: ConfigOption = None,
    jobs: JobsOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Read jobs from elsewhere and write them as a workload file, as a simulation would take them."""
    workload = _read(source, config, jobs)
    _write(file, workload)
    _show(workload, as_json=as_json)


@app.command(epilog="Example: xce workload show examples/small.swf")
def show(
    source: Source,
    config: ConfigOption = None,
    jobs: JobsOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Say what a workload amounts to: jobs, run times, load by hour, and what of shared resources it would take."""
    _show(_read(source, config, jobs), as_json=as_json)


def _parameters(path: Path) -> EdaParameters:
    return read_model(bytes_of(path), str(path), EdaParameters, lambda parameters: ())


def _read(source: Path, config: Path | None, jobs: int | None) -> Workload:
    settings: SimulationConfig | None = None if config is None else load_config(config)
    if settings is None:
        return load_workload(source, WorkloadConfig(), seed=1, jobs_max=jobs)
    return load_workload(
        source,
        settings.workload,
        seed=settings.driver.seed,
        time_zero=settings.driver.time_zero,
        jobs_max=jobs,
    )


def _write(path: Path, workload: Workload) -> None:
    """Write a workload file; equal workloads give equal bytes.

    Raises:
        InputError: the file exists, or cannot be written.
    """
    require_place(path)
    text = "".join(to_lines(workload)).encode()
    if path.suffix == ".gz":
        text = gzip.compress(text, compresslevel=6, mtime=0)
    try:
        with path.open("xb") as file:
            file.write(text)
    except FileExistsError:
        raise InputError.of(str(path), "exists already; wanted the name of a new file") from None
    except OSError as error:
        path.unlink(missing_ok=True)
        raise cannot_write(str(path), error) from None


def _show(workload: Workload, *, as_json: bool) -> None:
    found = summary(workload)
    if as_json:
        terminal.write_json(found.to_json())
        return
    for line in _lines(found):
        terminal.out.print(line, highlight=False, markup=False, soft_wrap=True)
    queues = Table("queue", box=SIMPLE_HEAD, pad_edge=False)
    for name in ("jobs", "task hours"):
        queues.add_column(name, justify="right", no_wrap=True)
    for queue in found.queues:
        queues.add_row(cell(queue.name), f"{queue.jobs:,}", _hours(queue.task_seconds))
    terminal.print_table(queues)
    if found.shared:
        shared = Table("taken once a job", box=SIMPLE_HEAD, pad_edge=False)
        for name in ("jobs", "at once, if nobody waits", "token hours"):
            shared.add_column(name, justify="right", no_wrap=True)
        for one in found.shared:
            shared.add_row(
                cell(one.name), f"{one.jobs:,}", f"{one.peak:,}", _hours(one.unit_seconds)
            )
        terminal.print_table(shared)


def _lines(found: WorkloadSummary) -> Iterable[str]:
    yield visible(found.source)
    if found.first is None or found.last is None:
        yield f"no jobs; {found.records} records"
    else:
        yield (
            f"{found.jobs:,} jobs of {found.users} users, {found.first:%Y-%m-%d %H:%M} to"
            f" {found.last:%Y-%m-%d %H:%M} UTC"
        )
        yield (
            f"run times: median {_length(found.run_time_median)}, 95 % within {_length(found.run_time_p95)},"
            f" longest {_length(found.run_time_max)}"
        )
        yield (
            f"tasks: at most {found.widest:,} a job; {found.peak_tasks:,} at once, if nobody waits;"
            f" {_hours(found.task_seconds)} hours"
        )
        if found.arrays:
            yield f"arrays: {found.arrays:,}"
        most = max(found.by_hour)
        bar = "".join(BAR[-(-8 * count // most)] for count in found.by_hour)
        yield f"submitted by hour (UTC): |{bar}|"
    for why, count in found.left_out.items():
        yield f"left out: {count:,} ({visible(why)})"
    for what, count in found.notes.items():
        yield f"noted: {count:,} ({visible(what)})"


def _length(seconds: int | None) -> str:
    return "-" if seconds is None else write_duration(timedelta(seconds=seconds))


def _hours(seconds: int) -> str:
    return f"{seconds / 3600:,.1f}"
