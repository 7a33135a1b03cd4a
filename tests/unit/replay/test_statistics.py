"""What a run amounts to: the numbers add up, and each can be counted by hand."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.made_up.run import START, MadeUp, made_up_run
from xce.domain.formats.simulation import SimulationReport
from xce.replay.curves import cost_timeline, hosts_timeline
from xce.replay.rounding import money, ratio, rounded
from xce.replay.statistics import NEEDED, OWN, PROVISIONED, RUNNING, token_series, waiting_times


@pytest.fixture(scope="module")
def run() -> MadeUp:
    return made_up_run()


@pytest.fixture(scope="module")
def report(run: MadeUp) -> SimulationReport:
    return run.statistics.summary(run.history, end=run.end, log=run.head)


def test_every_job_read_is_submitted_or_left_out_and_every_submitted_one_ended_or_named(
    report: SimulationReport,
) -> None:
    jobs = report.jobs

    assert jobs.read == jobs.submitted + sum(len(group.jobs) for group in jobs.left_out)
    assert jobs.submitted == jobs.ended + sum(len(group.jobs) for group in jobs.not_ended)
    assert jobs.started >= jobs.ended > 0
    assert [(note.what, note.jobs, note.first) for note in jobs.notes] == [
        ("ran past the time asked: runs as long here", 7, "3")
    ]


def test_cost_is_billed_time_times_price(report: SimulationReport) -> None:
    for use in report.templates:
        assert use.price_per_hour is not None
        exact = Fraction(use.billed_seconds, 3600) * Fraction(use.price_per_hour)
        assert use.cost == rounded(exact, 6)
        assert use.billed_seconds >= use.host_seconds
    parts = [use.cost for use in report.templates] + [use.cost for use in report.shared]
    assert report.cost == sum(part for part in parts if part is not None)
    assert len(report.templates) == 2


def test_what_was_borrowed_is_returned_or_lost_or_held_for_a_reason(
    report: SimulationReport,
) -> None:
    for use in report.shared:
        assert use.borrowed == use.returned + use.lost + use.held_at_end > 0
        assert bool(use.held_at_end) == bool(use.why_held)
        assert use.peak_in_use <= use.owned + use.peak_borrowed


def test_busy_slots_are_what_jobs_took_for_as_long_as_they_ran(
    run: MadeUp, report: SimulationReport
) -> None:
    busy = report.own.busy_slot_seconds + sum(use.busy_slot_seconds for use in report.templates)

    assert busy == sum(job.shape.tasks * job.run_time for job in run.workload.jobs)
    assert report.own.busy_slot_seconds <= report.own.slot_seconds
    for use in report.templates:
        assert use.busy_slot_seconds <= use.slot_seconds


def test_requests_and_returns_are_counted_from_the_log(
    run: MadeUp, report: SimulationReport
) -> None:
    assert (
        report.requests.requests
        == sum(report.requests.by_outcome.values())
        == len(run.history.requests)
    )
    assert report.requests.hosts_granted == sum(use.hosts for use in report.templates)
    assert report.requests.units_granted == sum(use.borrowed for use in report.shared)
    assert report.returns.hosts_returned == len(run.history.hosts)
    assert report.returns.open == 0


def test_equal_runs_have_equal_reports(report: SimulationReport) -> None:
    again = made_up_run()

    same = again.statistics.summary(again.history, end=again.end, log=again.head)

    assert same.to_json() == report.to_json()


def test_a_report_is_read_back_from_its_json(report: SimulationReport) -> None:
    assert SimulationReport.from_json(report.to_json()) == report


def test_the_timeline_shows_need_use_and_supply_at_every_session(
    run: MadeUp, report: SimulationReport
) -> None:
    timeline = run.statistics.timeline()

    assert len(timeline.times) == report.sessions
    assert set(timeline.values[OWN]) == {64}
    assert timeline.largest(PROVISIONED) > 0
    for needed, used in zip(timeline.values[NEEDED], timeline.values[RUNNING], strict=True):
        assert needed >= used >= 0
    assert timeline.largest(token_series("lic_sim", "borrowed")) == report.shared[0].peak_borrowed


def test_waits_are_listed_by_submission(run: MadeUp, report: SimulationReport) -> None:
    waits = run.statistics.waits()

    assert [at for at, _ in waits] == sorted(at for at, _ in waits)
    assert waits[0][0] >= START
    assert report.waiting == waiting_times(wait for _, wait in waits)


def test_a_job_that_never_ends_is_named_with_what_the_last_session_said() -> None:
    run = made_up_run(1)
    statistics = type(run.statistics)(run.config, run.workload)

    report = statistics.summary(run.history, end=run.end, log=run.head)

    (group,) = report.jobs.not_ended
    assert (group.why, len(group.jobs)) == ("not submitted", len(run.workload.jobs))
    assert report.waiting.jobs == 0
    assert report.waiting.mean is None


@pytest.mark.parametrize(
    ("waits", "mean", "median", "p95", "longest"),
    [
        ([7], "7.000", "7.0", 7, 7),
        ([1, 2], "1.500", "1.5", 2, 2),
        ([0, 0, 10], "3.333", "0.0", 10, 10),
        (list(range(1, 101)), "50.500", "50.5", 95, 100),
        (list(range(1, 21)), "10.500", "10.5", 19, 20),
    ],
)
def test_waiting_times_are_as_counted_by_hand(
    waits: list[int], mean: str, median: str, p95: int, longest: int
) -> None:
    found = waiting_times(reversed(waits))

    assert (str(found.mean), str(found.median), found.p95, found.max) == (
        mean,
        median,
        p95,
        longest,
    )


@given(st.lists(st.integers(0, 10**6), min_size=1))
def test_ninety_five_of_a_hundred_jobs_waited_no_longer_than_p95(waits: list[int]) -> None:
    found = waiting_times(waits)

    assert found.p95 is not None
    assert found.max is not None
    assert sum(wait <= found.p95 for wait in waits) * 100 >= 95 * len(waits)
    assert sum(wait < found.p95 for wait in waits) * 100 < 95 * len(waits)
    assert min(waits) <= found.p95 <= found.max == max(waits)


def test_rounding_is_once_and_to_even() -> None:
    assert rounded(Fraction(5, 2), 0) == Decimal(2)
    assert rounded(Fraction(1, 3), 4) == Decimal("0.3333")
    assert str(rounded(Fraction(2), 3)) == "2.000"
    assert money([Fraction(1, 3)] * 3) == Decimal(1)
    assert money([Fraction(1), None]) is None
    assert money([]) == Decimal(0)
    assert ratio(1, 3) == Decimal("0.3333")
    assert ratio(0, 0) is None


def test_the_cost_curve_never_falls_and_ends_at_the_bill(
    run: MadeUp, report: SimulationReport
) -> None:
    curve = cost_timeline(run.history, run.end)

    for series in curve.values.values():
        assert list(series) == sorted(series)
    ends = sum((Decimal(series[-1]) for series in curve.values.values()), Decimal(0))
    assert report.cost is not None
    assert abs(ends - report.cost) < Decimal("0.001")
    assert curve.times[-1] == run.end


def test_the_host_curve_ends_with_none_when_all_went_back(run: MadeUp) -> None:
    curve = hosts_timeline(run.history, run.end)

    assert set(curve.values) == {"c8", "c32"}
    assert all(series[-1] == 0 and max(series) > 0 for series in curve.values.values())
    assert all(value >= 0 for series in curve.values.values() for value in series)


def test_an_empty_history_costs_nothing(run: MadeUp) -> None:
    empty = type(run.history).of(())

    assert cost_timeline(empty, run.end).values == {}
    assert hosts_timeline(empty, run.end).times == ()
    assert run.statistics.summary(empty, end=run.end, log=run.head).cost == Decimal(0)
