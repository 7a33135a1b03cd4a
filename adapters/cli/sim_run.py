"""``xce sim run``: a scenario, and whether what it expects came of it."""

import csv
import io
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from xce.adapters.cli import terminal
from xce.adapters.cli.exit_codes import NO
from xce.adapters.cli.simulate import new_log, render
from xce.adapters.cli.visible import visible
from xce.adapters.files import write_file
from xce.adapters.report.page import write_report
from xce.adapters.settings.load import load_scenario
from xce.adapters.workloads import load_workload
from xce.domain.errors import InputError, XceError
from xce.domain.formats.scenario import Moment, Scenario, Verdict
from xce.replay.scenario.run import Runner, ScenarioRun
from xce.replay.workloads.workload import Workload

#: What ``--out`` holds.
RESULT: Final = "result.json"
REPORT: Final = "report.html"
STARTS: Final = "starts.csv"
TIMELINE: Final = "timeline.txt"
LOG: Final = "log.db"


def command(
    file: Annotated[
        Path,
        typer.Argument(metavar="SCENARIO", help="A scenario (YAML).", show_default=False),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Keep result.json, report.html, starts.csv, timeline.txt and log.db in this new folder.",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Overrides driver.seed of the scenario.")
    ] = None,
    as_json: terminal.JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Run a scenario in virtual time; exit 3 if something is not as it expects, and show the time around it."""
    scenario = load_scenario(file)
    jobs = jobs_of(scenario, file, seed)
    with _new_folder(out) as folder:
        with new_log(None if folder is None else folder / LOG) as log:
            run = _run(Runner(scenario, log, file=jobs, seed=seed), quiet=quiet)
        if folder is not None:
            _keep(folder, run)
    if as_json:
        terminal.write_json(run.result().to_json())
    else:
        _render(scenario, run)
    if not run.passed:
        raise typer.Exit(NO)


def jobs_of(scenario: Scenario, path: Path, seed: int | None) -> Workload | None:
    """Return the jobs of the file that a scenario names, from the scenario's folder; None: it names none.

    Raises:
        InputError: it cannot be read, or is nothing of the kind.
    """
    work = scenario.workload
    if work.file is None:
        return None
    return load_workload(
        path.parent / work.file,
        work.rules,
        seed=scenario.driver.seed if seed is None else seed,
        time_zero=scenario.start,
        jobs_max=work.jobs_max,
    )


def _run(runner: Runner, *, quiet: bool) -> ScenarioRun:
    with terminal.progress_bar(quiet=quiet) as bar:
        task = bar.add_task(runner.scenario.name, total=len(runner.workload.jobs), note="")

        def show(ended: int) -> None:
            world = runner.world
            note = f"{world.now:%Y-%m-%d %H:%M} UTC, {world.cluster.pending_count} waiting"
            bar.update(task, completed=ended, note=note)

        return runner.run(show if not bar.disable else lambda ended: None)


@contextmanager
def _new_folder(path: Path | None) -> Generator[Path | None]:
    """Make a folder for what comes of a run; none for None. What cannot be kept to its end leaves none."""
    if path is None:
        yield None
        return
    try:
        path.mkdir()
    except FileExistsError:
        raise InputError.of(str(path), "exists already; wanted the name of a new folder") from None
    except OSError as error:
        raise InputError.of(str(path), f"cannot be made: {error.strerror or error}") from None
    except ValueError as error:  # a NUL byte in the name
        raise InputError.of(repr(str(path)), f"cannot be made: {error}") from None
    try:
        yield path
    except (XceError, KeyboardInterrupt):
        shutil.rmtree(path, ignore_errors=True)
        raise


def _keep(folder: Path, run: ScenarioRun) -> None:
    write_file(folder / RESULT, run.result().to_json(indent=1) + "\n")
    write_file(folder / STARTS, _starts(run.starts))
    write_file(folder / TIMELINE, "".join(f"{line}\n" for line in _lines(run.moments)))
    write_report(folder / REPORT, run.report, run.statistics, run.history)


def _starts(starts: tuple[tuple[str, datetime], ...]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["job", "start"])
    writer.writerows((job, f"{at:%Y-%m-%dT%H:%M:%SZ}") for job, at in starts)
    return text.getvalue()


# -------------------------------------------------------------------- for people
def _render(scenario: Scenario, run: ScenarioRun) -> None:
    if scenario.about:
        _say(scenario.about.strip())
    render(run.report, terminal.out)
    for verdict in run.verdicts:
        for line in _verdict(verdict):
            _say(line)
    wrong = sum(1 for verdict in run.verdicts if not verdict.passed)
    told = f"{len(run.verdicts)} expectations"
    _say(f"{told}: all hold" if not wrong else f"{told}: {wrong} not met")


def _verdict(verdict: Verdict) -> Iterator[str]:
    if verdict.passed:
        yield f"ok   {verdict.expectation}"
        return
    when = "" if verdict.failed_at is None else f" ({verdict.failed_at:%Y-%m-%d %H:%M:%S} UTC)"
    yield f"NOT  {verdict.expectation}{when}"
    yield f"     found: {verdict.found}"
    if verdict.why is not None:
        yield f"     rule: {verdict.why}"
    for line in _lines(verdict.around):
        yield f"     | {line}"


def _lines(moments: tuple[Moment, ...]) -> Iterator[str]:
    for moment in moments:
        place = "-" if moment.position is None else str(moment.position)
        yield f"{moment.at:%Y-%m-%d %H:%M:%S} {place:>6} {moment.what}"


def _say(line: str) -> None:
    terminal.out.print(Text(visible(line)), soft_wrap=True, highlight=False)
