"""Made-up chip-design work."""

from collections import Counter
from datetime import timedelta
from decimal import Decimal

import pytest
from pydantic import ValidationError

from xce.domain.cluster.resreq import parse
from xce.domain.formats.eda import EdaFreeze, EdaNights, EdaParameters
from xce.replay.workloads.eda import eda
from xce.replay.workloads.summary import summary
from xce.replay.workloads.workload import WorkloadJob
from xce.replay.workloads.workload_file import digest_of

DAY = 86_400
#: A week, small.
PARAMETERS = EdaParameters(days=7, jobs_per_day=200)


def by_day(jobs: tuple[WorkloadJob, ...]) -> Counter[int]:
    return Counter(job.submit // DAY for job in jobs)


def test_one_seed_makes_one_workload_and_another_seed_another() -> None:
    assert digest_of(eda(PARAMETERS, 3)) == digest_of(eda(PARAMETERS, 3))
    assert digest_of(eda(PARAMETERS, 3)) != digest_of(eda(PARAMETERS, 4))


def test_one_more_day_leaves_the_days_before_as_they_were() -> None:
    shorter = eda(PARAMETERS.model_copy(update={"days": 3}), 3).jobs
    longer = eda(PARAMETERS, 3).jobs

    known = {job.id for job in shorter}
    assert [job for job in longer if job.id in known] == list(shorter)


def test_a_working_day_has_as_many_jobs_as_was_said_and_a_weekend_few() -> None:
    quiet = PARAMETERS.model_copy(update={"nights": EdaNights(arrays=0)})

    days = by_day(eda(quiet, 3).jobs)

    assert [days[day] for day in range(7)] == [200] * 5 + [30, 30]


def test_most_jobs_of_people_come_in_working_hours() -> None:
    jobs = [job for job in eda(PARAMETERS, 3).jobs if job.array is None]

    inside = sum(8 * 3600 <= job.submit % DAY < 19 * 3600 for job in jobs)

    assert 0.85 < inside / len(jobs) < 0.97


def test_regressions_are_arrays_of_the_evening_and_more_on_fridays() -> None:
    arrays: dict[str, list[WorkloadJob]] = {}
    for job in eda(PARAMETERS.model_copy(update={"freeze": None}), 3).jobs:
        if job.array is not None:
            arrays.setdefault(job.array.id, []).append(job)

    assert Counter(group[0].submit // DAY for group in arrays.values()) == {
        0: 3, 1: 3, 2: 3, 3: 3, 4: 6
    }  # fmt: skip
    for group in arrays.values():
        assert len({(job.submit, job.shape) for job in group}) == 1
        assert 18 * 3600 <= group[0].submit % DAY < 22 * 3600
        assert 40 <= len(group) <= 400


def test_regressions_grow_toward_the_freeze_and_are_few_afterwards() -> None:
    nights = EdaNights(smallest=100, largest=100, friday=Decimal(1))
    freeze = EdaFreeze(day=2, ramp=timedelta(days=2), factor=Decimal(3), after=Decimal("0.1"))
    parameters = PARAMETERS.model_copy(update={"nights": nights, "freeze": freeze, "days": 4})

    jobs = tuple(job for job in eda(parameters, 3).jobs if job.array is not None)

    assert by_day(jobs) == {0: 300, 1: 600, 2: 900, 3: 30}


def test_every_requirement_can_be_read_and_subfeatures_come_with_their_feature() -> None:
    for job in eda(PARAMETERS, 3).jobs:
        parse(job.shape.resreq)
        if "lic_syn_" in job.shape.resreq:
            assert "lic_syn=1/job" in job.shape.resreq
            assert 3 <= job.shape.resreq.count("lic_syn_") <= 6


def test_no_job_runs_longer_than_it_asked_and_some_are_killed_early() -> None:
    jobs = eda(PARAMETERS, 3).jobs
    spared = eda(PARAMETERS.model_copy(update={"killed": Decimal(0)}), 3).jobs

    assert all(
        job.run_limit is not None and 1 <= job.run_time <= job.run_limit.total_seconds()
        for job in jobs
    )
    shorter = sum(a.run_time < b.run_time for a, b in zip(jobs, spared, strict=True))
    assert 0.015 < shorter / len(jobs) < 0.05


def test_the_summary_counts_what_there_is() -> None:
    workload = eda(PARAMETERS, 3)

    found = summary(workload)

    assert found.jobs == len(workload.jobs) == sum(found.by_hour)
    assert sum(queue.jobs for queue in found.queues) == found.jobs
    (simulator,) = [one for one in found.shared if one.name == "lic_sim"]
    assert simulator.jobs == sum("lic_sim=1/job" in job.shape.resreq for job in workload.jobs)
    assert 0 < simulator.peak <= simulator.jobs


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"first_hour": 20, "last_hour": 8}, "first_hour below last_hour"),
        ({"nights": {"tool": "nothing"}}, "no tool is called 'nothing'"),
        ({"nights": {"smallest": 9, "largest": 8}}, "smallest is above largest"),
        ({"tools": EdaParameters().model_dump()["tools"][1:]}, "do not add up to 1"),
    ],
)
def test_parameters_that_contradict_themselves_are_refused(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        EdaParameters.model_validate(changes)
