"""``xce sim compare``: several policies over the same workloads."""

import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from xce.adapters.cli import terminal
from xce.adapters.cli.compare_table import print_comparison
from xce.adapters.cli.exit_codes import NO
from xce.adapters.cli.sim_run import jobs_of
from xce.adapters.cli.visible import visible
from xce.adapters.comparison.folder import DOCUMENT, REPORT, TABLE, ResultFolder
from xce.adapters.comparison.on_dask import on_dask
from xce.adapters.comparison.policies import Policy, read_axis, read_policies
from xce.adapters.comparison.processes import Failed, in_processes
from xce.adapters.comparison.runs import Around, Run
from xce.adapters.report import wording
from xce.adapters.report.comparison import render_comparison
from xce.adapters.workloads import load_workload
from xce.domain.errors import InputError, PermanentError
from xce.domain.formats.comparison import Comparison, Figures, RunOutcome
from xce.domain.formats.scenario import Scenario
from xce.replay.compare.best import best_of
from xce.replay.scenario.work import workload_of
from xce.replay.workloads.workload import Workload
from xce.replay.workloads.workload_file import digest_of

#: Reasons why jobs of a run have not ended that a terminal shows; the page has all.
_REASONS_SHOWN: Final = 5


def command(
    configs: Annotated[
        list[Path],
        typer.Argument(
            metavar="CONFIG...",
            help="Configurations or scenarios (YAML): one to vary, or several to compare.",
            show_default=False,
        ),
    ],
    workloads: Annotated[
        list[Path] | None,
        typer.Option(
            "--workload",
            help="A workload log (SWF), sacct --json, a recording or a workload file; may be repeated."
            " Without it: the jobs of the scenarios.",
            show_default=False,
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="KEY=A,B,...",
            help="A key of the configuration and its values; may be repeated, for all combinations.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", help="Folder for the results; a comparison begun there goes on."),
    ] = Path("xce-compare"),
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Only the first N jobs of each workload.")
    ] = None,
    processes: terminal.ProcessesOption = None,
    dask: Annotated[
        str | None,
        typer.Option(
            "--dask", metavar="ADDRESS", help="Run on the Dask cluster whose scheduler is there."
        ),
    ] = None,
    expect: Annotated[
        bool,
        typer.Option("--expect", help="Exit 3 if a policy does not what its scenario expects."),
    ] = False,
    as_json: terminal.JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Run several policies over the same workloads; report which costs, waits and wastes least."""
    policies = read_policies(configs, [read_axis(text) for text in vary or ()])
    folder = ResultFolder(out)
    runs, shaped = plan(policies, workloads or (), jobs)
    outcomes = {run.key: known for run in runs if (known := folder.find(run.key)) is not None}
    missing = [run for run in runs if run.key not in outcomes]
    if outcomes and not quiet:
        _note(f"{len(outcomes)} of {len(runs)} runs are in {out} already")
    failures: list[Failed] = []
    try:
        for result in _carried_out(
            missing, shaped, processes, dask, done=len(outcomes), quiet=quiet
        ):
            if isinstance(result, Failed):
                failures.append(result)
            else:
                folder.keep(result)
                outcomes[result.key] = result
    except KeyboardInterrupt:
        _note(
            f"{len(outcomes)} of {len(runs)} runs are kept in {out}; the same command goes on from there"
        )
        raise
    if failures:
        lines = [f"{one.run.policy} on {one.run.workload}: {one.why}" for one in failures]
        raise PermanentError(
            "\n".join(
                [
                    *lines,
                    f"{len(failures)} of {len(runs)} runs came to nothing; the others are kept in {out}",
                ]
            )
        )
    comparison = compared([outcomes[run.key] for run in runs])
    folder.write(DOCUMENT, comparison.to_json(indent=1) + "\n")
    folder.write(TABLE, as_csv(comparison))
    report = folder.write(REPORT, render_comparison(comparison))
    if as_json:
        terminal.write_json(comparison.to_json())
    else:
        _render(comparison, report)
    if expect and any(run.figures.not_as_expected for run in comparison.runs):
        raise typer.Exit(NO)


def _render(comparison: Comparison, report: Path) -> None:
    for workload in comparison.workloads:
        print_comparison(comparison, workload, terminal.out)
    for run in comparison.runs:
        for line in _left_behind(run, comparison):
            _say(line)
    for run in comparison.runs:
        for one in run.verdicts:
            if not one.passed:
                _say(f"NOT  {run.policy}: {one.expectation}; found: {one.found}")
    _say(f"report  {report}   (open it in a browser)")


def _left_behind(run: RunOutcome, comparison: Comparison) -> Iterator[str]:
    """Yield why jobs of a run have not ended."""
    name = run.policy if len(comparison.workloads) == 1 else f"{run.policy}, {run.workload}"
    groups = run.report.jobs.not_ended
    for group in groups[:_REASONS_SHOWN]:
        jobs = f"{len(group.jobs):,} {'job' if len(group.jobs) == 1 else 'jobs'}"
        yield f"not ended, {name}: {jobs}: {group.why} ({wording.some(group.jobs)})"
    if len(groups) > _REASONS_SHOWN:
        yield f"not ended, {name}: {len(groups) - _REASONS_SHOWN} more reasons, which {REPORT} has"


def _note(line: str) -> None:
    terminal.err.print(Text(visible(line)), highlight=False, soft_wrap=True)


def _say(line: str) -> None:
    terminal.out.print(Text(visible(line)), highlight=False, soft_wrap=True)


def plan(
    policies: Sequence[Policy], paths: Sequence[Path], jobs: int | None
) -> tuple[list[Run], dict[str, Workload]]:
    """Return all runs, policy by policy, and the workloads by digest: policies may read the same file differently.

    Args:
        policies: configurations and scenarios.
        paths: of workloads; none: each scenario has its own jobs.
        jobs: only the first so many of each.

    Raises:
        InputError: a workload cannot be read, has no jobs, two have one name, or there is none for a configuration.
    """
    names = [path.name for path in paths]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise InputError.of("--workload", f"two are called {repeated}; wanted different names")
    read: dict[str, tuple[str, Workload]] = {}
    shaped: dict[str, Workload] = {}
    runs: list[Run] = []
    for policy in policies:
        config, around = policy.config, Around.of(policy.scenario)
        for name, reading, load in _works(policy, paths, jobs, _name_of_own(policies)):
            if reading not in read:
                workload = load()
                if not workload.jobs:
                    raise InputError.of(name, f"has no jobs to run under {policy.name}")
                read[reading] = digest_of(workload), workload
            digest, workload = read[reading]
            shaped.setdefault(digest, workload)
            settings, count = policy.settings, len(workload.jobs)
            runs.append(Run.of(policy.name, name, settings, config, digest, count, around))
    return runs, shaped


def _name_of_own(policies: Sequence[Policy]) -> str:
    """Return how the jobs of scenarios are called: as their scenario, if there is but one."""
    names = {policy.scenario.name for policy in policies if policy.scenario is not None}
    return names.pop() if len(names) == 1 else "own jobs"


def _works(
    policy: Policy, paths: Sequence[Path], jobs: int | None, own: str
) -> Iterator[tuple[str, str, Callable[[], Workload]]]:
    """Yield the works of a policy: the name, what decides how it is read, and how to."""
    config, scenario = policy.config, policy.scenario
    driver = config.driver
    if not paths:
        if scenario is None:
            raise InputError.of(
                str(policy.path),
                "is no scenario, which would have jobs of its own; wanted --workload",
            )
        parts = (policy.path.parent, scenario.start, scenario.workload.to_json(), driver.seed)
        reading = "\n".join(str(part) for part in (scenario.name, *parts))
        yield own, reading, lambda: _own_jobs(policy, scenario).head(jobs)
        return
    zero = driver.time_zero if scenario is None else scenario.start
    for path in paths:
        reading = f"{path}\n{config.workload.to_json()}\n{driver.seed}\n{zero}"
        yield path.name, reading, partial(
            load_workload, path, config.workload, seed=driver.seed, time_zero=zero, jobs_max=jobs
        )  # fmt: skip


def _own_jobs(policy: Policy, scenario: Scenario) -> Workload:
    seed = policy.config.driver.seed
    return workload_of(scenario, jobs_of(scenario, policy.path, seed), seed)


def compared(outcomes: Iterable[RunOutcome]) -> Comparison:
    """Return all outcomes together, with the best."""
    runs = tuple(outcomes)
    return Comparison(
        release=version("xce"),
        policies=tuple(dict.fromkeys(run.policy for run in runs)),
        workloads=tuple(dict.fromkeys(run.workload for run in runs)),
        best=best_of(runs),
        runs=runs,
    )


def as_csv(comparison: Comparison) -> str:
    """Return one line for each run: policy, workload, the keys that differ, and every figure."""
    keys = list(dict.fromkeys(one.key for run in comparison.runs for one in run.settings))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["policy", "workload", *keys, *Figures.model_fields])
    for run in comparison.runs:
        values = {one.key: one.value for one in run.settings}
        figures = (getattr(run.figures, name) for name in Figures.model_fields)
        writer.writerow(
            [
                run.policy,
                run.workload,
                *(values.get(key, "") for key in keys),
                *(_plain(figure) for figure in figures),
            ]
        )
    return text.getvalue()


def _plain(value: Decimal | int | None) -> str:
    return "" if value is None else format(value, "f") if isinstance(value, Decimal) else str(value)


def _carried_out(
    runs: Sequence[Run],
    workloads: dict[str, Workload],
    processes: int | None,
    dask: str | None,
    *,
    done: int,
    quiet: bool,
) -> Iterator[RunOutcome | Failed]:
    """Yield what comes of the runs, with a bar over all their jobs."""
    if not runs:
        return
    whole = done + len(runs)
    with terminal.progress_bar(quiet=quiet) as bar:
        task = bar.add_task(
            "comparing", total=sum(run.jobs for run in runs), note=f"{done} of {whole} runs"
        )
        ended: dict[str, int] = {}

        def told(key: str, jobs: int) -> None:
            ended[key] = jobs
            bar.update(task, completed=sum(ended.values()))

        carry: Callable[[], Iterator[RunOutcome | Failed]] = (
            (lambda: in_processes(runs, workloads, processes or os.cpu_count() or 1, told))
            if dask is None
            else (lambda: on_dask(dask, runs, workloads, told))
        )
        of = {run.key: run.jobs for run in runs}
        for number, result in enumerate(carry(), start=done + 1):
            key = result.run.key if isinstance(result, Failed) else result.key
            told(key, of[key])
            bar.update(task, note=f"{number} of {whole} runs")
            yield result
