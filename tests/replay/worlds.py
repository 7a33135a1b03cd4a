"""Whole simulated runs for tests: the demo's site and day, or the head of a trace."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from pathlib import Path

from tests.conftest import ROOT
from xce.adapters.settings import load_config
from xce.adapters.settings.load import read_config
from xce.adapters.store.open import MEMORY, open_log
from xce.domain.events.recorded import Head, Recorded
from xce.domain.formats.config import SimulationConfig
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.simulation import SimulationReport
from xce.domain.formats.snapshot import Snapshot
from xce.projections.all import Projections
from xce.replay.history import History
from xce.replay.providers import SimulatedProvider
from xce.replay.statistics import Statistics
from xce.replay.workloads.eda_day import eda_day
from xce.replay.workloads.from_swf import load_swf
from xce.replay.workloads.workload import Workload, WorkloadJob
from xce.replay.world import World


class Sessions:
    """Keeps every snapshot and result, if asked to look at them."""

    def __init__(self, look: Callable[[Snapshot, SessionResult], None]) -> None:
        self._look = look

    def started(self, job: WorkloadJob, at: datetime) -> None:
        """See ``Watcher.started``."""

    def ended(self, job: WorkloadJob, at: datetime) -> None:
        """See ``Watcher.ended``."""

    def session(self, snapshot: Snapshot, result: SessionResult) -> None:
        self._look(snapshot, result)


@dataclass(frozen=True)
class Finished:
    """A run that is over, with the truth of its providers."""

    report: SimulationReport
    events: tuple[Recorded, ...]
    head: Head
    providers: dict[str, SimulatedProvider]
    projections: Projections
    end: datetime


def demo_config() -> SimulationConfig:
    return read_config(files("xce.adapters.cli").joinpath("demo.yaml").read_bytes(), "demo.yaml")


def finish(
    config: SimulationConfig,
    workload: Workload,
    path: Path | str = MEMORY,
    look: Callable[[Snapshot, SessionResult], None] = lambda snapshot, result: None,
) -> Finished:
    """Run a workload to its end."""
    seed = config.driver.seed
    providers = {provider.name: SimulatedProvider(provider, seed) for provider in config.providers}
    statistics = Statistics(config, workload)
    with open_log(path) as log:
        world = World(config, workload, log, providers, watchers=(statistics, Sessions(look)))
        world.run()
        events = tuple(log.read())
        head = log.head()
    history = History.of(entry.event for entry in events)
    report = statistics.summary(history, end=world.now, log=head)
    return Finished(report, events, head, providers, world.projections, world.now)


def demo(seed: int = 7, path: Path | str = MEMORY) -> Finished:
    """Run the demo's day under a seed."""
    config = demo_config()
    driver = config.driver.model_copy(update={"seed": seed})
    return finish(config.model_copy(update={"driver": driver}), eda_day(seed), path)


@cache
def the_demo() -> Finished:
    """Return the demo as it ships; run once."""
    return demo()


def trace(shared: Path, name: str, example: str, jobs: int | None) -> Finished:
    """Run (the head of) a trace under an example configuration."""
    config = load_config(ROOT / "examples" / example)
    workload = load_swf(
        shared / "traces" / name,
        config.workload,
        seed=config.driver.seed,
        time_zero=config.driver.time_zero,
        jobs_max=jobs,
    )
    return finish(config, workload)
