"""``xce sim faults``: failure by the seed."""

import os
from collections.abc import Callable, Collection
from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from xce.adapters.cli import terminal
from xce.adapters.cli.exit_codes import NO
from xce.domain.errors import PermanentError

if TYPE_CHECKING:
    from xce.adapters.faults.campaign import Campaign, Progress
    from xce.replay.faults.world import Outcome

#: A year and more on many cores.
RUNS_MAX: Final = 100_000_000


def command(
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Of the run, or of the first of several.")
    ] = 0,
    runs: Annotated[
        int,
        typer.Option(
            "--runs", min=1, max=RUNS_MAX, help="Seeds one after the other, from --seed on."
        ),
    ] = 1,
    only: Annotated[
        str | None,
        typer.Option(
            "--only",
            metavar="FAULT:NUMBER,...",
            help="With these faults and no others, as a failure is told; for one run.",
            show_default=False,
        ),
    ] = None,
    processes: terminal.ProcessesOption = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", help="Keep what was done here; a campaign begun there goes on."),
    ] = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Run the daemons under seeded failures in virtual time, and look at every promise after every event."""
    if only is not None and runs > 1:
        raise typer.BadParameter("names faults of one run; --runs asks for several")
    if only is not None and file is not None:
        raise typer.BadParameter("names faults of one run; --file keeps those of a campaign")
    try:
        from xce.adapters.faults.campaign import (
            Campaign,
            Progress,
            command_of,
            faults_of,
            quiet,
            run_seed,
            shrunk,
        )
    except ImportError as error:
        raise PermanentError(
            f"the daemons are not installed: pip install 'xce[controller]' ({error})"
        ) from None
    with quiet():
        if runs == 1 and file is None:
            named = None if only is None else faults_of(only)
            outcome = run_seed(seed, named)
            _say_what_did_not_happen(named or (), outcome)
            progress = Progress(
                1,
                outcome.events,
                len(outcome.faults),
                () if outcome.promise is None else (outcome,),
            )
        else:
            progress = _campaign(Campaign(seed, runs, file), runs, processes or os.cpu_count() or 1)
        small = [one if only is not None else shrunk(one) for one in progress.failed[:3]]
    if as_json:
        terminal.write_json(_document(progress, small, command_of))
    else:
        _say(progress, small, command_of)
    if progress.failed:
        raise typer.Exit(NO)


def _say_what_did_not_happen(named: "Collection[str]", outcome: "Outcome") -> None:
    missed = [fault for fault in named if fault not in outcome.faults]
    if missed:
        terminal.err.print(
            f"did not happen in the run of seed {outcome.seed}: {', '.join(missed)}",
            highlight=False, markup=False, soft_wrap=True,
        )  # fmt: skip


def _campaign(campaign: "Campaign", runs: int, processes: int) -> "Progress":
    with terminal.progress_bar() as bar:
        task = bar.add_task("runs", total=runs, note="")

        def told(progress: "Progress") -> None:
            failed = len(progress.failed)
            note = f"{failed} broke a promise" if failed else ""
            bar.update(task, completed=progress.runs, note=note)

        return campaign.run(processes, told)


def _say(
    progress: "Progress", small: "list[Outcome]", command_of: "Callable[[Outcome], str]"
) -> None:
    print_line = terminal.out.print
    print_line(
        f"{progress.runs:,} {'run' if progress.runs == 1 else 'runs'}, {progress.events:,} events, {progress.faults:,} faults:"
        f" {len(progress.failed)} broke a promise",
        highlight=False,
    )
    for one in small:
        print_line(f"seed {one.seed}: {one.message}", highlight=False, markup=False)
        print_line(f"  {command_of(one)}", highlight=False, markup=False, soft_wrap=True)
    for one in progress.failed[len(small) :]:
        print_line(f"seed {one.seed}: {one.message}", highlight=False, markup=False)


def _document(
    progress: "Progress", small: "list[Outcome]", command_of: "Callable[[Outcome], str]"
) -> str:
    known = {one.seed: one for one in small}
    failed = [
        {**asdict(known.get(one.seed, one)), "command": command_of(known.get(one.seed, one))}
        for one in progress.failed
    ]
    return dumps(
        {
            "runs": progress.runs,
            "events": progress.events,
            "faults": progress.faults,
            "failed": failed,
        },
        indent=2,
    )
