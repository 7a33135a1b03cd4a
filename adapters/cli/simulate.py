"""What `xce sim swf` and `xce demo` share: run a world over a log, with a progress bar, and sum it up."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from xce.adapters.cli import terminal
from xce.adapters.store.open import MEMORY, open_log
from xce.domain.errors import InputError
from xce.domain.formats.config import SimulationConfig
from xce.domain.formats.simulation import SimulationReport
from xce.domain.ports import EventLog
from xce.replay.history import History
from xce.replay.providers import SimulatedProvider
from xce.replay.statistics import Statistics
from xce.replay.workloads.workload import Workload, WorkloadJob
from xce.replay.world import World


@dataclass(frozen=True, slots=True)
class Run:
    """A simulation that is over."""

    report: SimulationReport
    history: History
    statistics: Statistics
    starts: tuple[tuple[str, datetime], ...]
    end: datetime


class Starts:
    """Remembers when each job started."""

    def __init__(self) -> None:
        self.of: list[tuple[str, datetime]] = []

    def started(self, job: WorkloadJob, at: datetime) -> None:
        """See ``Watcher.started``."""
        self.of.append((job.id, at))

    def ended(self, job: WorkloadJob, at: datetime) -> None:
        """See ``Watcher.ended``."""

    def session(self, snapshot: object, result: object) -> None:
        """See ``Watcher.session``."""


def simulate(
    config: SimulationConfig, workload: Workload, log: EventLog, *, quiet: bool = False
) -> Run:
    """Run a workload to the end, every fact in ``log``; show a progress bar on a terminal."""
    statistics, starts = Statistics(config, workload), Starts()
    providers = {
        provider.name: SimulatedProvider(provider, config.driver.seed)
        for provider in config.providers
    }
    world = World(config, workload, log, providers, watchers=(statistics, starts))
    with terminal.progress_bar(quiet=quiet) as bar:
        task = bar.add_task("simulating", total=len(workload.jobs), note="")

        def show(ended: int) -> None:
            note = f"{world.now:%Y-%m-%d %H:%M} UTC, {world.cluster.pending_count} waiting"
            bar.update(task, completed=ended, note=note)

        world.run(show if not bar.disable else lambda ended: None)
    history = History.of(entry.event for entry in log.read())
    report = statistics.summary(history, end=world.now, log=log.head())
    return Run(report, history, statistics, tuple(starts.of), world.now)


@contextmanager
def new_log(path: Path | None) -> Iterator[EventLog]:
    """Open a log that does not exist yet, or one in memory for None.

    Raises:
        InputError: the file exists.
    """
    if path is not None and path.exists():
        raise InputError.of(str(path), "exists already; wanted the name of a new log")
    with open_log(MEMORY if path is None else path) as log:
        yield log


def render(report: SimulationReport, console: Console) -> None:
    """Show a run as tables."""
    jobs, waiting = report.jobs, report.waiting
    console.print(f"[bold]{report.source}[/bold], seed {report.seed}")
    console.print(
        f"{report.started:%Y-%m-%d %H:%M} to {report.ended:%Y-%m-%d %H:%M} UTC, {report.sessions} sessions,"
        f" {report.log.position} events, log digest {report.log.digest[:16]}"
    )
    console.print(
        f"jobs: {jobs.read} read, {jobs.submitted} submitted, {jobs.started} started, {jobs.ended} ended"
    )
    for group in (*jobs.left_out, *jobs.not_ended):
        console.print(f"  {len(group.jobs)} not run: {group.why} ({_some(group.jobs)})")
    if waiting.jobs:
        console.print(
            f"waiting: mean {waiting.mean} s, median {waiting.median} s, p95 {waiting.p95} s,"
            f" longest {waiting.max} s"
        )
    console.print(_hosts_table(report))
    if report.shared:
        console.print(_shared_table(report))
    requests, returns = report.requests, report.returns
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in requests.by_outcome.items())
    console.print(
        f"requests: {requests.requests} ({outcomes or 'none'}):"
        f" {requests.hosts_granted} of {requests.hosts_asked} hosts,"
        f" {requests.units_granted} of {requests.units_asked} units"
    )
    console.print(
        f"returns: {returns.hosts_returned} hosts, {returns.units_returned} units;"
        f" {returns.refused} refused, {returns.open} open"
    )
    for use in report.shared:
        for why in use.why_held:
            console.print(f"  {use.name} held: {why}")
    console.print(f"cost: {'unknown' if report.cost is None else report.cost}")


def _hosts_table(report: SimulationReport) -> Table:
    table = Table(
        "hosts", "used", "host hours", "slot use", "price/h", "cost", title_justify="left"
    )
    own = report.own
    hours = own.slot_seconds * own.hosts // max(1, own.slots)
    table.add_row(
        "own partition", str(own.hosts), _hours(hours), _percent(own.utilisation), "-", "-"
    )
    for use in report.templates:
        table.add_row(
            f"{use.provider} {use.template}", str(use.hosts), _hours(use.host_seconds),
            _percent(use.utilisation), _text(use.price_per_hour), _text(use.cost),
        )  # fmt: skip
    return table


def _shared_table(report: SimulationReport) -> Table:
    table = Table(
        "tokens",
        "owned",
        "peak in use",
        "borrowed",
        "returned",
        "peak borrowed",
        "held at end",
        "cost",
    )
    for use in report.shared:
        table.add_row(
            use.name, str(use.owned), str(use.peak_in_use), str(use.borrowed), str(use.returned),
            str(use.peak_borrowed), str(use.held_at_end), _text(use.cost),
        )  # fmt: skip
    return table


def _some(names: tuple[str, ...], most: int = 5) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def _text(value: object) -> str:
    return "-" if value is None else str(value)


def _hours(seconds: int) -> str:
    return f"{seconds / 3600:,.1f}"


def _percent(value: object) -> str:
    return "-" if value is None else f"{float(str(value)):.0%}"
