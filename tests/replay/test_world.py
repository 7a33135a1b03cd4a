"""Whole runs: what the log says, what the providers know and what the report adds up to are the same."""

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from tests.replay.worlds import Finished, demo, demo_config, finish, the_demo, trace
from xce.adapters.store.open import open_log
from xce.adapters.store.verify import verify
from xce.domain.events.ids import name_of
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import Snapshot
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.request import Request
from xce.domain.scheduling.session import run_session
from xce.projections.all import Projections, RebuiltProjections
from xce.replay.workloads.eda_day import eda_day

SEEDS = range(1, 9)


@pytest.fixture(params=SEEDS)
def run(request: pytest.FixtureRequest) -> Finished:
    return demo(seed=request.param)


def test_every_machine_a_provider_made_has_one_record_and_is_gone_at_the_end(run: Finished) -> None:
    granted = [
        name_of(entry.event.originator_id)
        for entry in run.events
        if isinstance(entry.event, Instance.Granted)
    ]
    made = [
        f"{name}/{machine.machine}"
        for name, provider in run.providers.items()
        for machine in provider.machines()
    ]

    assert Counter(granted) == Counter(made)
    assert not [
        machine
        for provider in run.providers.values()
        for machine in provider.machines()
        if machine.exists(run.end)
    ]


def test_every_unit_a_pool_lent_is_in_the_log_and_back_at_the_end(run: Finished) -> None:
    lent = {
        f"{name}/{grant.grant}": grant.amount
        for name, provider in run.providers.items()
        for grant in provider.grants()
    }
    recorded = {
        name_of(entry.event.originator_id): entry.event.amount
        for entry in run.events
        if isinstance(entry.event, Grant.Granted)
    }

    assert recorded == lent
    assert all(
        grant.held(run.end) == 0
        for provider in run.providers.values()
        for grant in provider.grants()
    )


def test_every_call_followed_a_durable_intent(run: Finished) -> None:
    intended = {
        name_of(entry.event.originator_id)
        for entry in run.events
        if isinstance(entry.event, Request.Intended)
    }

    assert all(provider.answers().keys() <= intended for provider in run.providers.values())


def test_the_numbers_add_up(run: Finished) -> None:
    report = run.report
    jobs = report.jobs
    left_out = sum(len(group.jobs) for group in jobs.left_out)
    not_ended = sum(len(group.jobs) for group in jobs.not_ended)

    assert jobs.read == jobs.submitted + left_out
    assert jobs.submitted == jobs.ended + not_ended
    assert report.waiting.jobs == jobs.started
    for use in report.templates:
        assert use.price_per_hour is not None
        assert use.cost is not None
        exact = Fraction(use.price_per_hour) * use.billed_seconds / 3600
        assert abs(Fraction(use.cost) - exact) <= Fraction(1, 10**6)
        assert use.busy_slot_seconds <= use.slot_seconds
    for shared in report.shared:
        assert shared.borrowed == shared.returned + shared.lost + shared.held_at_end
        assert len(shared.why_held) == bool(shared.held_at_end)
    assert report.cost == sum(
        (use.cost or Decimal(0) for use in report.templates), Decimal(0)
    ) + sum((use.cost or Decimal(0) for use in report.shared), Decimal(0))


def test_the_spending_projection_and_the_report_agree(run: Finished) -> None:
    assert run.report.cost is not None
    assert abs(run.projections.spending.cost_at(run.end) - run.report.cost) < Decimal("0.001")


def test_projections_rebuilt_at_every_position_equal_those_of_the_run(run: Finished) -> None:
    rebuilt = RebuiltProjections(run.projections)
    for entry in run.events:
        rebuilt.see(entry)

    assert rebuilt.difference() is None


def test_the_log_of_the_run_verifies(tmp_path: Path) -> None:
    demo(seed=3, path=tmp_path / "events.db")

    with open_log(tmp_path / "events.db", read_only=True) as log:
        report = verify(log)

    assert report.passed, report


def test_the_same_seed_gives_the_same_run_in_memory_and_on_disk(tmp_path: Path) -> None:
    in_memory, on_disk = demo(seed=5), demo(seed=5, path=tmp_path / "events.db")

    assert in_memory.report.to_json() == on_disk.report.to_json()
    assert in_memory.head == on_disk.head


def test_another_seed_gives_another_run() -> None:
    assert demo(seed=5).head != demo(seed=6).head


def test_a_session_sees_totals_and_supply_of_one_position() -> None:
    """S2, D12: at each session the totals and the catalog are those of the log at the snapshot's position."""
    config = demo_config()
    seen: list[tuple[int, Snapshot]] = []

    def look(snapshot: Snapshot, result: SessionResult) -> None:
        seen.append((snapshot.position, snapshot))

    run = finish(config, eda_day(7), look=look)

    projections = Projections()
    events = iter(run.events)
    for position, snapshot in seen:
        while projections.position < position:
            projections.apply([next(events)])
        assert snapshot.catalog == projections.catalog.view(snapshot.now)
        for shared in snapshot.shared:
            totals = projections.totals.of(shared.name)
            assert (shared.total, shared.owned, shared.borrowed) == (
                totals.total,
                totals.owned,
                totals.borrowed,
            )


def test_no_snapshot_counts_a_host_as_joined_and_in_flight() -> None:
    def look(snapshot: Snapshot, result: SessionResult) -> None:
        joined = {host.instance for host in snapshot.hosts if host.instance is not None}
        assert joined.isdisjoint(host.id for host in snapshot.catalog.in_flight.hosts)

    finish(demo_config(), eda_day(7), look=look)


def test_every_session_has_the_bytes_of_a_fresh_one_though_the_driver_goes_by_deltas() -> None:
    """M6: what is kept from one session to the next changes no byte."""
    differ: list[str] = []

    def look(snapshot: Snapshot, result: SessionResult) -> None:
        if run_session(snapshot).to_json() != result.to_json():
            differ.append(str(snapshot.now))

    finish(demo_config(), eda_day(7), look=look)

    assert differ == []


def test_a_session_is_never_handed_a_true_run_time() -> None:
    """Two days that differ only in run times give the same first snapshots, until something ends."""
    config, workload = demo_config(), eda_day(7)
    first_end = min(job.submit + job.run_time for job in workload.jobs)
    before: list[list[str]] = [[], []]
    for lines, factor in zip(before, (1, 2), strict=True):

        def look(snapshot: Snapshot, result: SessionResult, lines: list[str] = lines) -> None:
            if (snapshot.now - workload.start).total_seconds() < first_end:
                lines.append(snapshot.to_json())

        jobs = tuple(
            type(job)(
                **{
                    name: getattr(job, name)
                    for name in job.__dataclass_fields__
                    if name != "run_time"
                },
                run_time=job.run_time * factor,
            )
            for job in workload.jobs
        )
        finish(config, type(workload)(workload.source, workload.start, jobs, len(jobs)), look=look)

    assert before[0] == before[1]
    assert before[0]


def test_the_demo_uses_every_kind_of_supply() -> None:
    report = the_demo().report

    assert report.jobs.ended == report.jobs.submitted
    assert len(report.templates) >= 2
    assert {use.name for use in report.shared if use.borrowed} == {"lic_sim", "lic_syn"}
    assert report.requests.by_outcome.keys() >= {"complete", "partial", "failed"}


TRACES = {
    "metacentrum": ("METACENTRUM-wagap-2013-q1.swf.gz", "metacentrum.yaml"),
    "kth": ("KTH-SP2-1996-2.swf.gz", "kth.yaml"),
}


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_runs_to_the_end_and_every_job_ended_or_is_named(shared: Path, name: str) -> None:
    run = trace(shared, *TRACES[name], jobs=1500)

    test_the_numbers_add_up(run)
    test_every_machine_a_provider_made_has_one_record_and_is_gone_at_the_end(run)
    test_every_unit_a_pool_lent_is_in_the_log_and_back_at_the_end(run)


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_twice_gives_the_same_bytes(shared: Path, name: str) -> None:
    first, second = (trace(shared, *TRACES[name], jobs=800) for _ in range(2))

    assert first.report.to_json() == second.report.to_json()
    assert first.head == second.head
