"""Runs on a Dask cluster: one in this process stands for any."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from xce.adapters.comparison import on_dask as module
from xce.adapters.comparison.on_dask import on_dask
from xce.adapters.comparison.processes import Failed
from xce.adapters.comparison.runs import Run, carry_out
from xce.adapters.settings import load_config
from xce.domain.errors import InputError
from xce.domain.formats.comparison import RunOutcome
from xce.replay.workloads.from_swf import load_swf
from xce.replay.workloads.workload import Workload

#: What the library itself leaves open is not ours.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


def work() -> tuple[list[Run], dict[str, Workload]]:
    config = load_config(ROOT / "examples" / "small.yaml")
    workload = load_swf(Path(ROOT / "examples" / "small.swf"), config.workload, seed=1, jobs_max=10)
    runs = [Run.of(name, "small", (), config, "d", len(workload.jobs)) for name in ("a", "b")]
    return runs, {"d": workload}


@pytest.mark.slow
def test_a_cluster_gives_the_outcomes_that_this_process_gives() -> None:
    distributed: Any = import_module("distributed")
    runs, workloads = work()
    told: dict[str, int] = {}

    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        results = list(on_dask(cluster.scheduler_address, runs, workloads, told.__setitem__))

    outcomes = {one.key: one for one in results if isinstance(one, RunOutcome)}
    assert outcomes == {run.key: carry_out(run, workloads["d"]) for run in runs}
    assert told == {run.key: 10 for run in runs}


@pytest.mark.slow
def test_a_run_that_fails_on_a_worker_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed: Any = import_module("distributed")
    runs, workloads = work()

    def broken(run: Run, workload: Workload) -> str:
        raise InputError.of(run.policy, "is not to be had")

    monkeypatch.setattr(module, "_carry_out", broken)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        results = list(on_dask(cluster.scheduler_address, runs[:1], workloads, lambda key, jobs: None))  # fmt: skip

    (failed,) = results
    assert isinstance(failed, Failed)
    assert "a: is not to be had" in failed.why


@pytest.mark.parametrize("address", ["nonsense::", "nonsense", "http://a b", "tcp://host", ""])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="is no address"):
        list(on_dask(address, [], {}, lambda key, jobs: None))


def test_without_the_library_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        return None

    monkeypatch.setattr(module, "find_spec", nothing)

    with pytest.raises(InputError, match=r"xce\[dask\]"):
        list(on_dask("tcp://127.0.0.1:8786", [], {}, lambda key, jobs: None))
