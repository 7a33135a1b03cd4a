"""A site at which every rule of the core has something to say within a day, and its recording."""

import random
from datetime import UTC, datetime, timedelta
from functools import cache

from xce.adapters.settings.load import read_config
from xce.adapters.store.open import MEMORY, open_log
from xce.domain.formats.config import SimulationConfig
from xce.replay.recorded import RecordedProvider, RecordedSessions
from xce.replay.recording import RecordingWriter
from xce.replay.workloads.workload import Shape, Workload, WorkloadJob
from xce.replay.world import World

START = datetime(2026, 3, 2, 8, tzinfo=UTC)

#: Two clouds with one template in common, paid hours, a budget, failures; licences with holds from a pool.
SITE = b"""
cluster:
  hosts:
    - {name: "own[1-3]", total: {slots: 4, mem: 16GiB}}
  shared:
    - {name: lic, owned: 4, provider: pool, max_borrow: 24, step: 2, idle_return_after: 5min, min_hold: 20min}
  queues:
    - {name: urgent, priority: 30}
    - {name: normal, priority: 20}
  limits:
    - {name: of-a-user, resource: slots, amount: 24, per: user}
providers:
  - name: near
    kinds: [host]
    billing: {unit: hour}
    templates:
      - {template_id: c4, max_number: 6, price_per_hour: "0.50", provides: {slots: 4, mem: 16GiB}}
      - {template_id: c16, max_number: 3, price_per_hour: "1.60", provides: {slots: 16, mem: 64GiB}}
    simulation:
      lead_time: {lag: 10s, boot: 2min, join: 10s}
      boot_failure: 0.4
      refusals:
        - {items: [c16], share: 0.7, code: InsufficientInstanceCapacity, why: no capacity}
  - name: far
    kinds: [host]
    templates:
      - {template_id: c4, max_number: 6, price_per_hour: "0.55", provides: {slots: 4, mem: 16GiB}}
    simulation:
      lead_time: {lag: 10s, boot: 4min, join: 10s}
  - name: pool
    kinds: [countable]
    capabilities: {partial_returns: true}
    resources:
      - {name: lic, capacity: 24, price_per_hour: "1.50", step: 2}
    simulation:
      lead_time: {lag: 5s, boot: 20s, join: 0s}
      return_time: 10s
  - name: dear-pool
    kinds: [countable]
    capabilities: {partial_returns: true}
    resources:
      - {name: lic, capacity: 24, price_per_hour: "2.00", step: 2}
    simulation:
      lead_time: {lag: 5s, boot: 20s, join: 0s}
session:
  idle_host_after: 5min
policy:
  max_per_request: 2
  failures_before_pause: 2
  budgets:
    - {name: rent, providers: [near, far], max_cost_per_hour: "5.00"}
    - {name: tokens, providers: [pool, dear-pool], max_cost_per_hour: "24.00"}
driver: {seed: 3, session_interval: 1min, poll_interval: 1min}
"""
NEEDS = ("", "rusage[mem=6GiB]", "rusage[lic=1]", "span[hosts=1]", "rusage[lic=2,mem=3GiB]")


def rich_config() -> SimulationConfig:
    """Return the site."""
    return read_config(SITE, "rich.yaml")


def rich_day(seed: int = 5, jobs: int = 70) -> Workload:
    """Return jobs of four users that come in three waves."""
    chance = random.Random(seed)
    made: list[WorkloadJob] = []
    for number in range(jobs):
        wave = chance.choice((0, 2 * 3600, 5 * 3600))
        made.append(
            WorkloadJob(
                id=f"j{number}",
                submit=wave + chance.randint(0, 2400),
                run_time=chance.randint(60, 2400),
                shape=Shape(chance.choice((1, 1, 1, 2, 4, 8)), chance.choice(NEEDS)),
                user=chance.choice(("ann", "bob", "cleo", "dan")),
                queue=chance.choice(("urgent", "normal", "normal")),
                run_limit=timedelta(hours=2),
            )
        )
    made.sort(key=lambda job: job.submit)
    return Workload("rich", START, tuple(made), len(made))


def recorded(config: SimulationConfig, workload: Workload) -> list[str]:
    """Return the recording of a simulation."""
    lines: list[str] = []
    writer = RecordingWriter(lines.append, by="a test", release="1", at=workload.start, config={})
    seed = config.driver.seed
    providers = {one.name: RecordedProvider(one, seed, writer) for one in config.providers}
    with open_log(MEMORY) as log:
        sessions = RecordedSessions(writer, log)
        World(config, workload, log, dict(providers), watchers=(sessions,)).run()
        sessions.finish()
    writer.end()
    return lines


@cache
def rich_recording() -> tuple[str, ...]:
    """Return the recording of the rich day; made once."""
    return tuple(recorded(rich_config(), rich_day()))
