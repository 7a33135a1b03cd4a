"""The parameters of made-up chip-design work (``replay/workloads/eda.py``): a file of its own, or all defaults.

Where a number comes from is said in docs/reference/workloads.md. There is no public record of a chip-design site's jobs with
their licences: shares and spreads are assumptions, and parameters for that reason.
"""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Final, Self

from pydantic import Field, StrictInt, model_validator

from xce.domain.formats.base import Count, Duration, Format, Name, Need, Time
from xce.domain.formats.simulated_provider import Delay, Share
from xce.domain.formats.workload_rules import Factor

Amount = Annotated[StrictInt, Field(ge=1, le=1_000_000)]
Hour = Annotated[StrictInt, Field(ge=0, le=24)]


class EdaTool(Format):
    """One kind of job."""

    name: Name
    share: Share = Field(description="of the jobs of the day")
    queue: Name = "normal"
    run_time: Delay
    run_limit: Duration = Field(description="what users ask for; no job runs longer")
    memory: tuple[Need, ...] = Field(min_length=1, description="for a task; one of these, evenly")
    slots: Amount = Field(default=1, description="for a task")
    tasks: Amount = 1
    feature: Name | None = Field(default=None, description="the tool's licence; null: it has none")
    licensed: Share = Field(default=Decimal(1), description="of its jobs that need the licence")
    subfeatures: tuple[Name, ...] = Field(
        default=(), description="options of the tool that are licensed apart"
    )
    bundle: Share = Field(
        default=Decimal(0), description="of its licensed jobs that also take subfeatures"
    )
    bundle_min: Amount = 1
    bundle_max: Amount = Field(default=1, description="so many of them, evenly")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.bundle and not self.bundle_min <= self.bundle_max <= len(self.subfeatures):
            raise ValueError("wanted bundle_min <= bundle_max <= the number of subfeatures")
        if self.bundle and self.feature is None:
            raise ValueError("subfeatures belong to a feature")
        return self


class EdaNights(Format):
    """Regressions: arrays that are dropped in the evening."""

    tool: Name = Field(default="simulate", description="whose jobs they are")
    user: Name = "nightly"
    queue: Name = "night"
    arrays: Count = Field(default=3, description="a night, from Monday to Friday")
    smallest: Amount = 40
    largest: Amount = Field(
        default=400, description="elements of an array; between the two by the logarithm"
    )
    friday: Factor = Field(default=Decimal(2), description="arrays of a Friday, for the weekend")
    first_hour: Hour = Field(default=18, description="UTC")
    last_hour: Hour = Field(default=22, description="UTC; they come between the two")


class EdaFreeze(Format):
    """The day on which nothing may change any more: before it regressions grow, after it they are few."""

    day: Count = Field(default=12, description="from the start, the first day being 0")
    ramp: Duration = Field(default=timedelta(days=10), description="so long before it they grow")
    factor: Factor = Field(default=Decimal(3), description="so many times as large on the day")
    after: Share = Field(default=Decimal("0.3"), description="of what is usual, afterwards")


def _tools() -> tuple[EdaTool, ...]:
    return tuple(EdaTool.model_validate(one) for one in _DEFAULT_TOOLS)


class EdaParameters(Format):
    """A chip-design site's work."""

    start: Time = Field(default=datetime(2026, 3, 2, tzinfo=UTC), description="best a Monday")
    days: Amount = 14
    jobs_per_day: Count = Field(default=1200, description="of a working day, without regressions")
    weekend: Share = Field(default=Decimal("0.15"), description="of that, on Saturdays and Sundays")
    first_hour: Hour = Field(default=8, description="UTC; people work between the two")
    last_hour: Hour = Field(default=19, description="UTC")
    at_night: Share = Field(
        default=Decimal("0.08"), description="of the day's jobs that come outside working hours"
    )
    burst: Amount = Field(
        default=8, description="jobs that a person submits in one go, on the average"
    )
    users: Amount = 30
    projects: Amount = 3
    killed: Share = Field(
        default=Decimal("0.03"), description="of all jobs, ended by people before their time"
    )
    tools: tuple[EdaTool, ...] = Field(default_factory=_tools, min_length=1)
    nights: EdaNights = EdaNights()
    freeze: EdaFreeze | None = EdaFreeze()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.first_hour >= self.last_hour or self.nights.first_hour >= self.nights.last_hour:
            raise ValueError("wanted first_hour below last_hour")
        if self.nights.smallest > self.nights.largest:
            raise ValueError("nights: smallest is above largest")
        names = [tool.name for tool in self.tools]
        if self.nights.arrays and self.nights.tool not in names:
            raise ValueError(f"nights: no tool is called {self.nights.tool!r}")
        if len(set(names)) < len(names):
            raise ValueError("two tools have one name")
        if sum(tool.share for tool in self.tools) != 1:
            raise ValueError("the shares of the tools do not add up to 1")
        return self


_DEFAULT_TOOLS: Final[tuple[dict[str, object], ...]] = (
    {"name": "characterise", "share": "0.40", "run_time": {"p50": "15s", "p95": "60s"}, "run_limit": "10min",
     "memory": ("1GiB", "2GiB"), "feature": "lic_char", "licensed": "0.8"},
    {"name": "lint", "share": "0.20", "run_time": {"p50": "90s", "p95": "5min"}, "run_limit": "30min",
     "memory": ("2GiB",), "feature": "lic_lint", "licensed": "0.6"},
    {"name": "simulate", "share": "0.34", "run_time": {"p50": "6min", "p95": "20min"}, "run_limit": "2h",
     "memory": ("2GiB", "4GiB", "8GiB"), "feature": "lic_sim", "licensed": "0.95",
     "subfeatures": ("lic_sim_cov", "lic_sim_dbg", "lic_sim_ams"), "bundle": "0.10", "bundle_min": 1, "bundle_max": 2},
    {"name": "synthesise", "share": "0.03", "run_time": {"p50": "90min", "p95": "6h"}, "run_limit": "24h",
     "memory": ("32GiB", "64GiB"), "slots": 4, "feature": "lic_syn",
     "subfeatures": ("lic_syn_dw", "lic_syn_power", "lic_syn_test", "lic_syn_topo", "lic_syn_opt", "lic_syn_ecc"),
     "bundle": "0.9", "bundle_min": 3, "bundle_max": 6},
    {"name": "timing", "share": "0.02", "run_time": {"p50": "1h", "p95": "4h"}, "run_limit": "12h",
     "memory": ("32GiB", "64GiB"), "slots": 2, "feature": "lic_sta"},
    {"name": "route", "share": "0.01", "run_time": {"p50": "6h", "p95": "20h"}, "run_limit": "36h",
     "memory": ("64GiB", "96GiB"), "slots": 8, "feature": "lic_pnr",
     "subfeatures": ("lic_pnr_mcpu", "lic_pnr_adv", "lic_pnr_drc"), "bundle": "0.8", "bundle_min": 1, "bundle_max": 3},
)  # fmt: skip
