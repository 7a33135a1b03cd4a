"""What a comparison of policies says: one document for each run, ``xce.comparison-run/1``, and one for all, ``xce.comparison/1``.

Money and ratios are decimal strings, rounded once, half to even, from exact fractions.
"""

from typing import Literal

from pydantic import Field

from xce.domain.formats.base import Count, Format, Money, Name, Time
from xce.domain.formats.scenario import Verdict
from xce.domain.formats.simulation import Exact, SimulationReport


class Figures(Format):
    """What a run is judged by. A null is something that there was none of, or, of money, a price that is unknown."""

    jobs: Count = Field(description="submitted")
    jobs_not_ended: Count
    cost: Money | None
    cost_hosts: Money | None
    cost_tokens: Money | None
    wait_mean: Exact | None = Field(description="seconds, as all waits")
    wait_median: Exact | None
    wait_p95: Count | None
    wait_max: Count | None
    own_use: Exact | None = Field(description="of the slots of own hosts, the share that jobs held")
    obtained_use: Exact | None = Field(
        description="of the paid slot time of obtained hosts, the share that jobs held"
    )
    borrowed_use: Exact | None = Field(
        description="of the paid time of borrowed tokens, the share in which jobs held them"
    )
    waste: Money | None = Field(
        description="what was paid for slots and borrowed tokens while no job held them"
    )
    waste_share: Exact | None = Field(description="of the cost")
    hosts: Count = Field(description="obtained in all")
    host_seconds_billed: Count
    tokens: Count = Field(description="borrowed in all")
    requests: Count
    requests_failed: Count = Field(description="failed or timed out: nothing came of them")
    violations: Count = Field(description="promises and budgets that were not kept")
    not_as_expected: Count | None = Field(
        default=None, description="expectations of the scenario that are not met; null: it has none"
    )


class Curves(Format):
    """A run over time, for pictures. Thinned: in each span the largest value that held in it."""

    times: tuple[Time, ...] = ()
    series: dict[Name, tuple[Count, ...]] = Field(
        default_factory=dict, description="slots, jobs and tokens, as many as there are times"
    )
    spent_times: tuple[Time, ...] = ()
    spent: tuple[Exact, ...] = Field(default=(), description="paid for until then, by use")
    waits: tuple[Count, ...] = Field(
        default=(),
        description="seconds that 0, 1, ..., 100 of 100 jobs did not wait longer than",
    )


class Setting(Format):
    """A key of the configuration that the policies differ in, and its value here."""

    key: str
    value: str


class RunOutcome(Format):
    """One policy over one workload."""

    format: Literal["xce.comparison-run/1"] = "xce.comparison-run/1"
    key: str = Field(description="a digest of configuration, workload and release")
    policy: Name
    workload: Name
    settings: tuple[Setting, ...] = ()
    figures: Figures
    violations: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = Field(
        default=(), description="what became of the expectations of the scenario"
    )
    report: SimulationReport
    curves: Curves


class Best(Format):
    """The policies that are best over a workload by one figure; none where all are alike."""

    workload: Name
    figure: str
    policies: tuple[Name, ...]


class Comparison(Format):
    """All runs, policy by policy in the order in which they were named, workload by workload."""

    format: Literal["xce.comparison/1"] = "xce.comparison/1"
    release: str
    policies: tuple[Name, ...]
    workloads: tuple[Name, ...]
    best: tuple[Best, ...]
    runs: tuple[RunOutcome, ...]
