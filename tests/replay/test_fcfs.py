"""First come, first served: a strict order without anything to obtain, against twenty lines that know processors only."""

import heapq
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.conftest import ROOT
from xce.adapters.cli.main import app
from xce.adapters.settings import load_config
from xce.adapters.store.open import MEMORY, open_log
from xce.domain.formats.config import ClusterConfig, DriverConfig, HostGroup, SimulationConfig
from xce.domain.formats.snapshot import OrderMode, Settings
from xce.replay.workloads.from_swf import load_swf
from xce.replay.workloads.swf import open_swf
from xce.replay.workloads.workload import Shape, Workload, WorkloadJob
from xce.replay.world import World

START = datetime(2026, 3, 2, tzinfo=UTC)

#: Name, second of submission, processors, seconds of run time.
Simple = tuple[str, int, int, int]


class Starts:
    """Remembers when each job started, in seconds after the workload's start."""

    def __init__(self, start: datetime) -> None:
        self.of: dict[str, int] = {}
        self._start = start

    def started(self, job: WorkloadJob, at: datetime) -> None:
        self.of[job.id] = (at - self._start) // timedelta(seconds=1)

    def ended(self, job: WorkloadJob, at: datetime) -> None:
        """See ``Watcher.ended``."""

    def session(self, snapshot: object, result: object) -> None:
        """See ``Watcher.session``."""


def first_come_first_served(jobs: Iterable[Simple], processors: int) -> dict[str, int]:
    """Return when each job starts, if none overtakes another: the reference."""
    starts: dict[str, int] = {}
    running: list[tuple[int, int]] = []
    free, now = processors, 0
    for name, submit, width, run_time in jobs:
        now = max(now, submit)
        while running and (running[0][0] <= now or free < width):
            end, released = heapq.heappop(running)
            now = max(now, end)
            free += released
        starts[name] = now
        free -= width
        heapq.heappush(running, (now + run_time, width))
    return starts


def simulated(config: SimulationConfig, workload: Workload) -> dict[str, int]:
    starts = Starts(workload.start)
    with open_log(MEMORY) as log:
        World(config, workload, log, {}, watchers=(starts,)).run()
    return starts.of


def strict(config: SimulationConfig) -> SimulationConfig:
    session = config.session.model_copy(update={"order": OrderMode.STRICT})
    return config.model_copy(update={"session": session})


@pytest.mark.slow
def test_the_head_of_the_kth_trace_starts_as_the_reference_says(shared: Path) -> None:
    trace = shared / "traces" / "KTH-SP2-1996-2.swf.gz"
    config = strict(load_config(ROOT / "examples" / "kth-fcfs.yaml"))
    workload = load_swf(trace, config.workload, seed=1, jobs_max=5000)
    with open_swf(trace) as log:
        records = [record for record, _ in zip(log.jobs(), range(5000), strict=False)]

    starts = simulated(config, workload)

    jobs = [
        (str(r.number), r.submit, r.processors_asked or r.processors_used or 0, r.run_time or 0)
        for r in records
    ]
    assert len(starts) == 5000
    assert starts == first_come_first_served(jobs, 100)


def test_the_command_writes_those_starts(shared: Path, tmp_path: Path) -> None:
    """``xce sim swf --starts``, as in the head of ``examples/kth-fcfs.yaml``."""
    trace, out = shared / "traces" / "KTH-SP2-1996-2.swf.gz", tmp_path / "starts.csv"
    words = ["sim", "swf", str(trace), "--config", str(ROOT / "examples" / "kth-fcfs.yaml")]
    words += ["--jobs", "400", "--order", "strict", "--starts", str(out), "--quiet"]

    done = CliRunner().invoke(app, words)

    assert done.exit_code == 0, done.output
    with open_swf(trace) as log:
        records = [record for record, _ in zip(log.jobs(), range(400), strict=False)]
    jobs = [(str(r.number), r.submit, r.processors_asked or 0, r.run_time or 0) for r in records]
    expected = first_come_first_served(jobs, 100)
    head, *lines = out.read_text(encoding="utf-8").splitlines()
    found = {name: datetime.fromisoformat(at) for name, at in (line.split(",") for line in lines)}
    assert head == "job,start"
    first = found[jobs[0][0]] - timedelta(seconds=expected[jobs[0][0]])
    assert {name: (at - first) // timedelta(seconds=1) for name, at in found.items()} == expected


@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(1, 4), st.integers(0, 30)),
        min_size=1,
        max_size=30,
    )
)
def test_any_jobs_start_as_the_reference_says(drawn: list[tuple[int, int, int]]) -> None:
    jobs = [(f"j{i:02}", *job) for i, job in enumerate(sorted(drawn, key=lambda job: job[0]))]
    config = SimulationConfig(
        cluster=ClusterConfig(hosts=(HostGroup(name="h[1-4]", total={"slots": 1}),)),
        session=Settings(order=OrderMode.STRICT),
        driver=DriverConfig(session_interval=timedelta(seconds=1)),
    )
    workload = Workload(
        "made",
        START,
        tuple(WorkloadJob(name, submit, run, Shape(width)) for name, submit, width, run in jobs),
        len(jobs),
    )

    assert simulated(config, workload) == first_come_first_served(jobs, 4)
