"""Field cases with a course in time, through sessions, policy, engine and a simulated provider."""

from datetime import UTC, datetime, timedelta

from tests.replay.worlds import Finished, finish
from xce.adapters.settings.load import read_config
from xce.domain.provisioning.request import Request
from xce.replay.workloads.workload import Shape, Workload, WorkloadJob

START = datetime(2026, 3, 1, 10, tzinfo=UTC)
MINUTE = 60


def job(
    number: int, submit_min: int, run_min: int, resreq: str = "", queue: str = "q"
) -> WorkloadJob:
    return WorkloadJob(
        id=str(number),
        submit=submit_min * MINUTE,
        run_time=run_min * MINUTE,
        shape=Shape(1, resreq),
        queue=queue,
    )


def run(config: str, *jobs: WorkloadJob) -> Finished:
    return finish(
        read_config(config.encode(), "case.yaml"), Workload("case", START, jobs, len(jobs))
    )


def asks(finished: Finished) -> list[tuple[int, int]]:
    """Return (minute, amount) of each ask."""
    return [
        (int((entry.event.timestamp - START) / timedelta(minutes=1)), entry.event.amount)
        for entry in finished.events
        if isinstance(entry.event, Request.Intended)
    ]


def test_f01_starting_hosts_are_supply() -> None:
    """12 one-core jobs ask 3 hosts of 4 cores once, two more at minute 3 ask one more, and nothing is asked twice."""
    config = """
cluster: {}
providers:
  - name: cloud
    kinds: [host]
    templates: [{template_id: T, max_number: 6, price_per_hour: "1.00", provides: {slots: 4}}]
    simulation: {lead_time: {lag: 0s, boot: 5min, join: 0s}}
session: {idle_host_after: 30min}
driver: {session_interval: 1min, poll_interval: 1min}
"""
    finished = run(
        config, *(job(i, 0, 60) for i in range(12)), *(job(i, 3, 60) for i in range(12, 14))
    )

    assert asks(finished) == [(0, 3), (3, 1)]
    assert len(finished.providers["cloud"].machines()) == 4


def test_f13_jobs_that_wait_for_a_licence_ask_for_the_hosts_that_the_licence_feeds() -> None:
    """10 tokens, 8 of them held until minute 12 (3 until 60): 30 jobs ask 1 host, then nothing, then 1 more."""
    config = """
cluster:
  hosts: [{name: "own1", total: {slots: 8}}]
  shared: [{name: simA, owned: 10}]
providers:
  - name: cloud
    kinds: [host]
    templates: [{template_id: T, max_number: 20, price_per_hour: "1.00", provides: {slots: 4}}]
    simulation: {lead_time: {lag: 0s, boot: 5min, join: 0s}}
session: {idle_host_after: 24h}
driver: {session_interval: 1min, poll_interval: 1min}
"""
    one_token = "rusage[simA=1]"
    on_cloud = "rusage[simA=1] select[!defined(own)]"
    config = config.replace("total: {slots: 8}", "attributes: {own: true}, total: {slots: 8}")
    holders = [job(i, 0, 3 if i < 5 else 500, one_token) for i in range(8)]
    waiting = [job(100 + i, 1, 300, on_cloud) for i in range(30)]

    finished = run(config, *holders, *waiting)

    first, second = asks(finished)[:2]
    assert first == (1, 1), "two tokens are free: two jobs, one host"
    assert second == (3, 1), "seven are free: seven jobs need two hosts, one is in flight"


def test_a_licence_bound_evening_borrows_and_returns_every_token() -> None:
    config = """
cluster:
  hosts: [{name: "own[1-4]", total: {slots: 8}}]
  shared: [{name: lic, owned: 4, provider: pool, max_borrow: 20, step: 5, idle_return_after: 20min, min_hold: 10min}]
providers:
  - name: pool
    kinds: [countable]
    capabilities: {partial_returns: true}
    resources: [{name: lic, capacity: 20, price_per_hour: "2.00", step: 5}]
    simulation: {lead_time: {lag: 0s, boot: 1min, join: 0s}}
driver: {session_interval: 1min, poll_interval: 1min}
"""
    finished = run(config, *(job(i, 0, 30, "rusage[lic=1]") for i in range(12)))

    (lic,) = finished.report.shared
    assert asks(finished) == [(0, 10)], "8 are short; the pool lends in steps of 5"
    assert (lic.peak_in_use, lic.borrowed, lic.returned, lic.held_at_end) == (12, 10, 10, 0)
