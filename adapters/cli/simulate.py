"""What `xce sim swf` and `xce demo` share: run a world over a log, with a progress bar, and sum it up."""

import gc
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from xce.adapters.cli import terminal
from xce.adapters.cli.visible import cell, visible
from xce.adapters.files import gone_after_error, require_place
from xce.adapters.recordings import RecordingFile
from xce.adapters.store.open import MEMORY, open_log
from xce.domain.errors import InputError
from xce.domain.formats.config import SimulationConfig
from xce.domain.formats.simulation import SimulationReport
from xce.domain.ports import EventLog
from xce.domain.values import write_duration
from xce.replay.history import History
from xce.replay.providers import SimulatedProvider
from xce.replay.recorded import RecordedProvider, RecordedSessions
from xce.replay.recording import RecordingWriter
from xce.replay.statistics import Statistics
from xce.replay.workloads.workload import Workload, WorkloadJob
from xce.replay.world import Watcher, World

#: Reasons of one round that are shown; `--json` has all.
_HOLDS_SHOWN: Final = 5


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

    def outcome(self, snapshot: object, outcome: object) -> None:
        """See ``OutcomeWatcher.outcome``."""


@contextmanager
def _rarer_collection() -> Generator[None]:
    """Let Python look for cycles less often: a run makes many values that live for one session, and next to no cycles."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def simulate(
    config: SimulationConfig,
    workload: Workload,
    log: EventLog,
    *,
    quiet: bool = False,
    record: RecordingWriter | None = None,
    trace: bool = False,
) -> Run:
    """Run a workload to the end, every fact in ``log``; show a progress bar on a terminal; ``record`` keeps what was seen and said.

    ``trace``: whether sessions say everything that they tried; nobody reads it, it is for measuring what it costs.
    """
    statistics, starts = Statistics(config, workload), Starts()
    seed = config.driver.seed
    providers = {
        provider.name: SimulatedProvider(provider, seed)
        if record is None
        else RecordedProvider(provider, seed, record)
        for provider in config.providers
    }
    recorded = None if record is None else RecordedSessions(record, log)
    watchers: tuple[Watcher, ...] = (*statistics.watchers(), starts)
    if recorded is not None:
        watchers = (*watchers, recorded)
    world = World(config, workload, log, providers, watchers=watchers, trace=trace)
    with terminal.progress_bar(quiet=quiet) as bar:
        task = bar.add_task("simulating", total=len(workload.jobs), note="")

        def show(ended: int) -> None:
            note = f"{world.now:%Y-%m-%d %H:%M} UTC, {world.cluster.pending_count} waiting"
            bar.update(task, completed=ended, note=note)

        with _rarer_collection():
            world.run(show if not bar.disable else lambda ended: None)
    if recorded is not None:
        recorded.finish()
    history = History.of(entry.event for entry in log.read())
    report = statistics.summary(history, end=world.now, log=log.head())
    return Run(report, history, statistics, tuple(starts.of), world.now)


@contextmanager
def new_recording(
    path: Path | None, config: SimulationConfig, at: datetime
) -> Generator[RecordingWriter | None]:
    """Open a recording that does not exist yet; none for None. One that cannot be written to its end is not left behind.

    Raises:
        InputError: the file exists, or its folder does not.
    """
    if path is None:
        yield None
        return
    document = config.model_dump(mode="json")
    file = RecordingFile(path, by="xce sim", at=at, config=document)
    with gone_after_error(path), file:
        yield file.writer


@contextmanager
def new_log(path: Path | None) -> Generator[EventLog]:
    """Open a log that does not exist yet, or one in memory for None. One that cannot be written to its end is not left behind.

    Raises:
        InputError: the file exists, or its folder does not.
    """
    if path is not None and path.exists():
        raise InputError.of(str(path), "exists already; wanted the name of a new log")
    require_place(path)
    if path is None:
        with open_log(MEMORY) as log:
            yield log
        return
    with gone_after_error(path, "-wal", "-shm", "-journal"), open_log(path) as log:
        yield log


def render(report: SimulationReport, console: Console) -> None:
    """Show a run as tables."""
    say = partial(console.print, soft_wrap=True, highlight=False)
    jobs, waiting = report.jobs, report.waiting
    say(Text(visible(report.source), "bold") + Text(f", seed {report.seed}"))
    say(
        f"{report.started:%Y-%m-%d %H:%M} to {report.ended:%Y-%m-%d %H:%M} UTC: {report.sessions} sessions,"
        f" {report.log.position} events"
    )
    say(f"log digest {report.log.digest}")
    say(
        f"jobs: {jobs.read} read, {jobs.submitted} submitted, {jobs.started} started, {jobs.ended} ended"
    )
    for group in (*jobs.left_out, *jobs.not_ended):
        say(f"  {len(group.jobs)} not run: {group.why} ({_some(group.jobs)})")
    if waiting.jobs:
        say(
            f"waiting: mean {_length(waiting.mean)}, median {_length(waiting.median)},"
            f" 95 % within {_length(waiting.p95)}, longest {_length(waiting.max)}"
        )
    terminal.print_table(_hosts_table(report), console)
    if report.shared:
        terminal.print_table(_shared_table(report), console)
    for line in _exchanges(report):
        say(line)
    for line in _held_back(report):
        say(Text(visible(line)))
    for left in report.templates:
        if left.still_there:
            say(f"  still there and paid at the end: {_hosts(left.still_there)} of {left.template}")
    for use in report.shared:
        for why in use.why_held:
            say(f"  {use.name} held: {why}")
    say(f"cost: {_money(report.cost)}")


def _exchanges(report: SimulationReport) -> list[str]:
    """Return what was asked and what went back; tokens only where the cluster has any."""
    requests, returns = report.requests, report.returns
    if not requests.requests:
        rounds = report.rounds
        if rounds is None or rounds.wanting:
            return ["requests: none"]
        return ["requests: none; no job waited for anything that a provider offers"]
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in requests.by_outcome.items())
    asked = f"{requests.hosts_granted} of {_hosts(requests.hosts_asked)}"
    back = _hosts(returns.hosts_returned)
    if report.shared:
        asked += f", {requests.units_granted} of {requests.units_asked} tokens"
        back += f", {returns.units_returned} tokens"
    return [
        f"requests: {requests.requests} ({outcomes}): {asked}",
        f"returns: {back}; {returns.refused} refused, {returns.open} open",
    ]


def _held_back(report: SimulationReport) -> list[str]:
    """Return why something was not asked for: where nothing was, jobs were left without it, or most of the time they waited for it."""
    rounds = report.rounds
    if rounds is None or rounds.held_at is None:
        return []
    rarely = 2 * rounds.holding <= rounds.wanting
    if report.requests.requests and not report.jobs.not_ended and rarely:
        return []
    return [
        f"asks held back in {rounds.holding} of {rounds.rounds} rounds, at last {rounds.held_at:%Y-%m-%d %H:%M:%S} UTC:",
        *(f"  {group.why} ({_some(group.jobs)})" for group in rounds.held[:_HOLDS_SHOWN]),
        *(
            [f"  and {len(rounds.held) - _HOLDS_SHOWN} more"]
            if len(rounds.held) > _HOLDS_SHOWN
            else []
        ),
    ]


def _hosts(number: int) -> str:
    return "1 host" if number == 1 else f"{number} hosts"


def _hosts_table(report: SimulationReport) -> Table:
    table = _table("hosts", "number", "host hours", "slots used", "price/h", "cost")
    own = report.own
    hours = own.slot_seconds * own.hosts // max(1, own.slots)
    table.add_row("own", str(own.hosts), _hours(hours), _percent(own.utilisation), "-", "-")
    for use in report.templates:
        table.add_row(
            cell(f"{use.provider} {use.template}"), str(use.hosts), _hours(use.host_seconds),
            _percent(use.utilisation), _money(use.price_per_hour), _money(use.cost),
        )  # fmt: skip
    return table


def _shared_table(report: SimulationReport) -> Table:
    table = _table("tokens", "owned", "peak use", "borrowed", "returned", "at once", "held", "cost")
    for use in report.shared:
        table.add_row(
            cell(use.name), str(use.owned), str(use.peak_in_use), str(use.borrowed), str(use.returned),
            str(use.peak_borrowed), str(use.held_at_end), _money(use.cost),
        )  # fmt: skip
    return table


def _table(first: str, *numbers: str) -> Table:
    table = Table(first, box=SIMPLE_HEAD, pad_edge=False)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _some(names: tuple[str, ...], most: int = 5) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def _money(value: Decimal | None) -> str:
    return "unknown" if value is None else f"{value:,.2f}"


def _length(seconds: Decimal | int | None) -> str:
    assert seconds is not None, "somebody waited"
    return write_duration(timedelta(seconds=round(seconds)))


def _hours(seconds: int) -> str:
    return f"{seconds / 3600:,.1f}"


def _percent(value: Decimal | None) -> str:
    return "-" if value is None else f"{value:.0%}"
