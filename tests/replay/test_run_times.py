"""The core is never handed how long a job will run (SPEC R3): until the first job ends, nobody can tell two days apart that differ in nothing
else, by anything that sessions, the policy, the log or providers were given or said.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.replay.rich import recorded, rich_config, rich_day
from xce.adapters.schedulers import fake_state
from xce.adapters.schedulers.fake_state import FakeState, view_of
from xce.domain.formats.snapshot import Host, PendingJob
from xce.replay.workloads.workload import Workload, WorkloadJob

NOW = datetime(2026, 3, 2, 8, tzinfo=UTC)
JOBS = 40


def day(*, longer_by: int) -> Workload:
    """The rich day: no job runs shorter than two and a half hours, and each longer by so many seconds, so that many come before one ends."""
    made = rich_day(jobs=JOBS)
    jobs = tuple(replace(job, run_time=9000 + job.run_time + longer_by) for job in made.jobs)
    return Workload(made.source, made.start, jobs, len(jobs))


def before_the_first_end(workload: Workload, first_end: datetime) -> list[str]:
    """Return the lines of a recording up to the time at which a job could have ended."""
    return list(_until(recorded(rich_config(), workload), first_end))


def _until(lines: Iterable[str], end: datetime) -> Iterable[str]:
    for line in lines:
        document = json.loads(line)
        now = document.get("input", {}).get("now") or document.get("delta", {}).get("now")
        if now is not None and datetime.fromisoformat(now) >= end:
            return
        yield line


def first_end_of(workload: Workload) -> datetime:
    return workload.start + timedelta(
        seconds=min(job.submit + job.run_time for job in workload.jobs)
    )


def test_until_a_job_ends_days_that_differ_in_run_times_are_recorded_alike() -> None:
    end = first_end_of(day(longer_by=0))

    one, other = (before_the_first_end(day(longer_by=more), end) for more in (0, 977))

    assert one == other
    kinds = {json.loads(line)["kind"] for line in one}
    assert kinds == {"start", "session", "round", "event", "answer"}
    assert sum('"kind":"session"' in line for line in one) > 20
    assert any('"allocations":[{' in line for line in one)


@pytest.mark.parametrize("leak", ["run_limit", "user", "priority"])
def test_a_run_time_that_leaks_anywhere_into_what_is_shown_is_noticed(
    leak: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test above can fail."""
    right = WorkloadJob.pending

    def leaking(job: WorkloadJob, start: datetime) -> PendingJob:
        value = {
            "run_limit": timedelta(seconds=job.run_time),
            "user": f"user-{job.run_time}",
            "priority": job.run_time,
        }[leak]
        return right(job, start).model_copy(update={leak: value})

    monkeypatch.setattr(WorkloadJob, "pending", leaking)
    end = first_end_of(day(longer_by=0))

    one, other = (before_the_first_end(day(longer_by=more), end) for more in (0, 977))

    assert one != other


@given(
    st.lists(st.integers(1, 10_000), min_size=1, max_size=5),
    st.lists(st.integers(1, 10_000), min_size=1, max_size=5),
)
def test_the_fake_batch_system_shows_the_same_whatever_it_knows_of_run_times(
    some: list[int], others: list[int]
) -> None:
    views: list[str] = []
    count = min(len(some), len(others))
    for lengths in (some[:count], others[:count]):
        state = fake_state.with_host(FakeState(), Host(name="h", total={"slots": 2}))
        for seconds in lengths:
            job = PendingJob(id="new", resreq="")
            state = fake_state.submitted(state, [job], timedelta(seconds=seconds), NOW)
        views.append(view_of(state, NOW).to_json())

    assert views[0] == views[1]
