"""``xce demo``: the main job, from an empty folder to a report."""

import shlex
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final

import typer

from xce.adapters.cli import exit_codes, terminal
from xce.adapters.cli.simulate import new_log, render, simulate
from xce.adapters.files import write_file
from xce.adapters.report.page import write_report
from xce.adapters.settings.load import read_config
from xce.adapters.store.open import open_log
from xce.adapters.store.verify import verify
from xce.domain.errors import InputError
from xce.replay.workloads.eda_day import eda_day

LOG: Final = "events.db"
REPORT: Final = "report.html"
SUMMARY: Final = "summary.json"
CONFIG: Final = "demo.yaml"
#: What a folder of an earlier demo holds; nothing else is ever removed.
OURS: Final = (LOG, f"{LOG}-wal", f"{LOG}-shm", REPORT, SUMMARY, CONFIG)


def command(
    out: Annotated[
        Path,
        typer.Option("--out", help="Folder for the log and the report; made if it is not there."),
    ] = Path("xce-demo"),
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, help="Another day of jobs, other luck with the providers."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace what an earlier demo left in the folder.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
    as_json: terminal.JsonOption = False,
) -> None:
    """A small chip-design cluster gets hosts from a cloud and licence tokens from a pool, and gives them back."""
    text = files("xce.adapters.cli").joinpath(CONFIG).read_text(encoding="utf-8")
    config = read_config(text.encode(), CONFIG)
    if seed is not None:
        driver = config.driver.model_copy(update={"seed": seed})
        config = config.model_copy(update={"driver": driver})
    prepare(out, force=force)
    write_file(out / CONFIG, text)
    with new_log(out / LOG) as log:
        run = simulate(config, eda_day(config.driver.seed), log, quiet=quiet)
    write_report(out / REPORT, run.report, run.statistics, run.history)
    write_file(out / SUMMARY, run.report.to_json(indent=1) + "\n")
    with open_log(out / LOG, read_only=True) as log:
        verdict = verify(log)
    if as_json:
        terminal.write_json(run.report.to_json())
    else:
        render(run.report, terminal.out)
        log_name = shlex.quote(str(out / LOG))
        state = "verified; again" if verdict.passed else "DOES NOT VERIFY; see"
        terminal.out.print(
            f"\nlog     {out / LOG}   ({state}: xce audit verify {log_name})\n"
            f"report  {out / REPORT}   (open it in a browser)\n"
            f"site    {out / CONFIG}   (what was simulated)",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
    if not verdict.passed:
        raise typer.Exit(exit_codes.NO)


def prepare(out: Path, *, force: bool) -> None:
    """Make the folder, empty of an earlier demo.

    Raises:
        InputError: the folder cannot be made, or holds an earlier demo and ``force`` is not given.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        left = [out / name for name in OURS if (out / name).exists()]
        if left and not force:
            raise InputError.of(
                str(out),
                f"holds an earlier demo ({left[0].name}); use --force to replace it, or another --out",
            )
        for path in left:
            path.unlink()
    except OSError as error:
        raise InputError.of(str(out), f"cannot be used: {error.strerror or error}") from None
