"""From what ``sacct --json`` prints to a workload."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from xce.adapters.workloads import Kind, kind_of, load_workload
from xce.domain.errors import InputError
from xce.domain.formats.config import MemoryRule, WorkloadConfig
from xce.replay.workloads.from_slurm import from_slurm
from xce.replay.workloads.workload import Workload

SUBMITTED = 1_772_438_400


def entry(number: int = 7, **changes: Any) -> dict[str, Any]:
    """Return an entry of a job that has ended, as Slurm 22.05 writes it."""
    time = {"submission": SUBMITTED, "start": SUBMITTED + 60, "end": SUBMITTED + 360, "elapsed": 300, "limit": 10}  # fmt: skip
    tres = [
        {"type": "cpu", "name": None, "count": 4},
        {"type": "mem", "name": None, "count": 1001},
        {"type": "node", "name": None, "count": 1},
    ]
    known: dict[str, Any] = {
        "job_id": number, "user": "ana", "account": "chip1", "partition": "day", "constraints": "",
        "array": {"job_id": 0, "task_id": None}, "state": {"current": "COMPLETED"}, "flags": [],
        "required": {"CPUs": 4}, "time": time, "tres": {"requested": tres},
    }  # fmt: skip
    for name, value in changes.items():
        known[name] = {**known[name], **value} if name == "time" else value
    return known


def read(*entries: dict[str, Any], config: WorkloadConfig | None = None) -> Workload:
    return from_slurm({"jobs": list(entries)}, config or WorkloadConfig(), "a/sacct.json")


def test_a_job_asks_for_what_it_asked_slurm_for() -> None:
    workload = read(entry())

    (job,) = workload.jobs
    assert (job.id, job.user, job.project, job.queue) == ("7", "ana", "chip1", "day")
    assert (job.submit, job.run_time, job.run_limit) == (0, 300, timedelta(minutes=10))
    assert job.shape.tasks == 4
    assert job.shape.resreq == "rusage[mem=251] span[hosts=1]"
    assert workload.start == datetime.fromtimestamp(SUBMITTED, UTC)
    assert workload.source == "sacct.json"


def test_licences_and_constraints_are_taken_over() -> None:
    tres = [
        {"type": "cpu", "name": None, "count": 1},
        {"type": "license", "name": "lic_sim@flexnet", "count": 2},
    ]

    (job,) = read(entry(tres={"requested": tres}, constraints="x86&avx")).jobs

    assert job.shape.resreq == "select[x86 && avx] rusage[lic_sim=2/job]"


def test_constraints_that_are_more_than_names_are_noted() -> None:
    workload = read(entry(constraints="[rack1*2]"))

    assert "select" not in workload.jobs[0].shape.resreq
    assert any("[rack1*2]" in note.what for note in workload.notes)


def test_a_number_may_say_whether_it_is_set() -> None:
    limit = {"set": True, "infinite": False, "number": 30}
    memory = {"type": "mem", "name": "", "count": 400}
    cpu = {"type": "cpu", "name": "", "count": 4}

    (job,) = read(
        entry(
            time={"limit": limit},
            state={"current": ["COMPLETED"]},
            tres={"requested": [cpu, memory]},
        )
    ).jobs

    assert job.run_limit == timedelta(minutes=30)
    assert job.shape.resreq.startswith("rusage[mem=100]")


@pytest.mark.parametrize(
    "limit", [{"set": False, "infinite": True, "number": 0}, 0, None, "UNLIMITED", 2**50]
)
def test_no_limit_is_no_limit(limit: object) -> None:
    (job,) = read(entry(time={"limit": limit})).jobs

    assert job.run_limit is None


def test_what_slurm_complained_of_beside_the_jobs_is_noted() -> None:
    document = {"jobs": [entry(1), entry(2)], "errors": [{"error": "one cluster is away"}]}

    workload = from_slurm(document, WorkloadConfig(), "s.json")

    assert [note.what for note in workload.notes] == ["sacct said: one cluster is away"]


def test_elements_of_an_array_have_names_of_their_own() -> None:
    entries = [entry(7 + i, array={"job_id": 7, "task_id": i}) for i in range(3)]

    assert [job.id for job in read(*entries).jobs] == ["7_0", "7_1", "7_2"]


def test_jobs_that_never_started_or_have_not_ended_are_named() -> None:
    workload = read(
        entry(1),
        entry(2, time={"start": 0, "end": 0, "elapsed": 0}, state={"current": "PENDING"}),
        entry(3, time={"end": 0, "elapsed": 3}, state={"current": "RUNNING"}),
    )

    assert [job.id for job in workload.jobs] == ["1"]
    assert {group.why: group.jobs for group in workload.left_out} == {
        "never started": ("2",),
        "run time unknown: has not ended": ("3",),
    }
    assert workload.records == 3


def test_what_still_runs_can_run_as_long_as_it_asked() -> None:
    running = entry(time={"end": 0, "elapsed": 3}, state={"current": "RUNNING"})

    (job,) = read(running, config=WorkloadConfig(run_time_unknown="as_asked")).jobs

    assert job.run_time == 600


def test_jobs_are_in_the_order_of_their_submission() -> None:
    workload = read(entry(1, time={"submission": SUBMITTED + 50}), entry(2))

    assert [(job.id, job.submit) for job in workload.jobs] == [("2", 0), ("1", 50)]


def test_memory_can_be_left_away() -> None:
    (job,) = read(entry(), config=WorkloadConfig(memory=MemoryRule(use=False))).jobs

    assert job.shape.resreq == "span[hosts=1]"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "no list of jobs"),
        ({"jobs": []}, "has no jobs"),
        ({"jobs": [{"job_id": 1}]}, "jobs[0].time.submission: is missing"),
        ({"jobs": [entry(1), entry(1)]}, "job 1 is there twice"),
        ({"jobs": [entry(1), None]}, "jobs[1]: is None; wanted an object"),
        ({"jobs": [7]}, "jobs[0]: is 7; wanted an object"),
        ({"jobs": [], "errors": [{"description": "no connection"}]}, "sacct said: no connection"),
        ({"errors": ["no connection"]}, "sacct said: no connection"),
        ({"jobs": [entry(user=12)]}, "jobs[0].user: is 12; wanted a name"),
        ({"jobs": [entry(user="a\nb")]}, "jobs[0].user: is 'a\\nb'; wanted a name"),
        ({"jobs": [entry(user="\ud800")]}, "jobs[0].user: is '\\ud800'; wanted a name"),
        ({"jobs": [entry(partition="p" * 257)]}, "jobs[0].partition: is 'ppp"),
        ({"jobs": [entry(job_id=-4)]}, "jobs[0].job_id: is -4; wanted the number of a job"),
        ({"jobs": [entry(state={"current": []})]}, "jobs[0].state.current: is []"),
        ({"jobs": [entry(state=None)]}, "jobs[0].state.current: is missing"),
        ({"jobs": [entry(time={"elapsed": float("inf")})]}, "jobs[0].time.elapsed: is inf"),
        ({"jobs": [entry(time={"elapsed": "3"})]}, "jobs[0].time.elapsed: is '3'"),
        ({"jobs": [entry(time={"elapsed": 2**52})]}, "jobs[0].time.elapsed: is 4503599627370496, which is absurd"),
        ({"jobs": [entry(time={"submission": 2**52})]}, "jobs[0].time.submission: is 4503599627370496"),
        ({"jobs": [entry(constraints=["a"])]}, "jobs[0].constraints: is ['a']; wanted a text"),
        ({"jobs": [entry(constraints="&".join(f"f{i}" for i in range(20_000)))]}, "jobs[0]: asks for what cannot be said"),
        ({"jobs": [entry(tres={"requested": None})]}, "jobs[0].tres.requested: is None; wanted a list"),
        ({"jobs": [entry(tres={"requested": [5]})]}, "jobs[0].tres.requested[0]: is 5; wanted an object"),
        ({"jobs": [entry(tres={"requested": [{"type": "cpu", "count": "4"}]})]}, "jobs[0].tres.requested[0].count: is '4'"),
    ],
)  # fmt: skip
def test_what_is_no_accounting_is_refused(document: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        from_slurm(document, WorkloadConfig(), "s.json")

    assert message in str(caught.value)


def test_the_sample_of_a_real_slurm_is_read(shared: Path, tmp_path: Path) -> None:
    sample = shared / "samples" / "slurm" / "sacct.json"

    workload = load_workload(sample, WorkloadConfig(run_time_unknown="as_asked"), seed=1)

    assert kind_of(sample) is Kind.SLURM
    (job,) = workload.jobs  # the one that runs; the other waits for a licence
    assert (job.id, job.shape.tasks, job.run_time) == ("1", 2, 600)
    assert job.shape.resreq == "rusage[mem=100] span[hosts=1]"
    one_line = tmp_path / "one-line.json"
    one_line.write_text(
        json.dumps(json.loads(sample.read_text(encoding="utf-8"))), encoding="utf-8"
    )
    assert load_workload(one_line, WorkloadConfig(), seed=1).records == workload.records
