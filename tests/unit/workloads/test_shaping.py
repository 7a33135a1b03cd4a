"""What a configuration changes of a workload: a part of it, licences on top, denser, longer."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xce.domain.formats.config import WorkloadConfig
from xce.domain.formats.simulated_provider import Day
from xce.domain.formats.workload_rules import CutRule, LicencePeak, LicenceRule, ScaleRule
from xce.replay.workloads.shaping import shaped
from xce.replay.workloads.workload import LeftOut, Shape, Workload, WorkloadJob

#: A Monday.
START = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = 3600


def work(*submits: int, run_time: int = 100, resreq: str = "") -> Workload:
    jobs = tuple(
        WorkloadJob(f"j{i}", submit, run_time, Shape(1, resreq), run_limit=timedelta(hours=1))
        for i, submit in enumerate(submits)
    )
    return Workload("made", START, jobs, len(jobs) + 1, (LeftOut("broken", ("x",)),))


def submits(workload: Workload) -> list[int]:
    return [job.submit for job in workload.jobs]


def test_an_empty_configuration_changes_nothing() -> None:
    workload = work(0, 10, 20)

    assert shaped(workload, WorkloadConfig(), 1) is workload


def test_a_cut_counts_from_the_first_submission_and_keeps_the_times() -> None:
    rule = CutRule(skip=timedelta(seconds=10), length=timedelta(seconds=20))

    cut = shaped(work(100, 109, 110, 129, 130), WorkloadConfig(cut=rule), 1)

    assert submits(cut) == [110, 129]
    assert cut.records == 3  # with the one that was left out before
    assert cut.start == START


def test_denser_arrivals_leave_the_first_where_it_was_and_run_times_alone() -> None:
    rule = ScaleRule(arrivals=Decimal(2))

    dense = shaped(work(100, 101, 103, 200), WorkloadConfig(scale=rule), 1)

    assert submits(dense) == [100, 100, 102, 150]  # halves to even
    assert {job.run_time for job in dense.jobs} == {100}


def test_longer_runs_have_longer_limits() -> None:
    rule = ScaleRule(run_times=Decimal("2.5"))

    (job,) = shaped(work(0), WorkloadConfig(scale=rule), 1).jobs

    assert job.run_time == 250
    assert job.run_limit == timedelta(hours=2.5)


def test_what_took_time_takes_at_least_a_second_and_what_took_none_takes_none() -> None:
    config = WorkloadConfig(scale=ScaleRule(run_times=Decimal("0.001")))

    assert shaped(work(0, run_time=1), config, 1).jobs[0].run_time == 1
    assert shaped(work(0, run_time=0), config, 1).jobs[0].run_time == 0


@given(
    st.lists(st.integers(0, 10**6), min_size=1).map(sorted),
    st.decimals("0.01", "100", places=2),
    st.decimals("0.01", "100", places=2),
)
def test_scaling_keeps_every_job_in_its_order(
    times: list[int], arrivals: Decimal, run_times: Decimal
) -> None:
    config = WorkloadConfig(scale=ScaleRule(arrivals=arrivals, run_times=run_times))

    scaled = shaped(work(*times), config, 1)

    assert [job.id for job in scaled.jobs] == [job.id for job in work(*times).jobs]
    assert submits(scaled) == sorted(submits(scaled))
    assert submits(scaled)[0] == times[0]


def licensed(workload: Workload) -> set[str]:
    return {job.id for job in workload.jobs if "lic" in job.shape.resreq}


def test_a_peak_has_its_own_share_on_its_days_and_hours() -> None:
    peak = LicencePeak(share=Decimal(1), start="14:00", end="16:00", days=(Day.TUE,))
    rule = LicenceRule(feature="lic", share=Decimal(0), peaks=(peak,))
    hours = (14, 24 + 13, 24 + 14, 24 + 15, 24 + 16, 48 + 14)

    found = licensed(shaped(work(*(h * HOUR for h in hours)), WorkloadConfig(licences=(rule,)), 1))

    assert found == {"j2", "j3"}


def test_a_peak_that_passes_midnight_belongs_to_the_day_it_starts_on() -> None:
    peak = LicencePeak(share=Decimal(1), start="23:00", end="01:00", days=(Day.MON,))
    rule = LicenceRule(feature="lic", share=Decimal(0), peaks=(peak,))
    hours = (0, 23, 24, 25, 47)

    found = licensed(shaped(work(*(h * HOUR for h in hours)), WorkloadConfig(licences=(rule,)), 1))

    assert found == {"j1", "j2"}


def test_the_time_of_a_peak_is_that_of_the_source_also_when_arrivals_are_denser() -> None:
    peak = LicencePeak(share=Decimal(1), start="14:00", end="16:00")
    rule = LicenceRule(feature="lic", share=Decimal(0), peaks=(peak,))
    config = WorkloadConfig(licences=(rule,), scale=ScaleRule(arrivals=Decimal(2)))

    dense = shaped(work(0, 15 * HOUR), config, 1)

    assert licensed(dense) == {"j1"}
    assert submits(dense) == [0, 15 * HOUR // 2]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "rusage[lic=2/job]"),
        ("select[a] rusage[mem=5]", "select[a] rusage[mem=5,lic=2/job]"),
        (
            "1*{select[a]} + 2*{rusage[mem=5]}",
            "1*{select[a] rusage[lic=2/job]} + 2*{rusage[mem=5]}",
        ),
        (
            "{select[a]} || {select[b]}",
            "{select[a] rusage[lic=2/job]} || {select[b] rusage[lic=2/job]}",
        ),
    ],
)
def test_a_licence_is_taken_once_in_every_alternative(before: str, after: str) -> None:
    rule = LicenceRule(feature="lic", share=Decimal(1), tokens=2)

    (job,) = shaped(work(0, resreq=before), WorkloadConfig(licences=(rule,)), 1).jobs

    assert job.shape.resreq == after
