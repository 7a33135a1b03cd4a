"""What a record of a trace becomes for the scheduler, and what only the driver knows."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.workloads.records import EXTENDED, RECORD, changed, numbered, written
from xce.domain.cluster.requirement import Primary
from xce.domain.cluster.resreq import parse
from xce.domain.errors import InputError
from xce.domain.formats.config import MemoryRule, MemoryScope, WorkloadConfig
from xce.domain.formats.snapshot import MemoryUnit, Tasks
from xce.domain.formats.workload_rules import LicenceRule
from xce.replay.workloads.from_swf import load_swf
from xce.replay.workloads.workload import Shape, Workload, WorkloadJob

STANDARD = WorkloadConfig()
WHOLE_JOB = WorkloadConfig(memory=MemoryRule(unit=MemoryUnit.B, scope=MemoryScope.JOB))


def load(
    folder: Path,
    *lines: str,
    config: WorkloadConfig = STANDARD,
    seed: int = 1,
    jobs_max: int | None = None,
) -> Workload:
    return load_swf(written(folder, "\n".join(lines)), config, seed=seed, jobs_max=jobs_max)


def shape_of(folder: Path, line: str, config: WorkloadConfig = STANDARD) -> Shape:
    (job,) = load(folder, line, config=config).jobs
    return job.shape


def request(text: str, processors: int, memory: int = 8 << 30) -> str:
    """Return a record with a request, for this many processors and bytes of memory."""
    return changed(21, text, changed(8, str(processors), changed(10, str(memory), EXTENDED)))


def test_a_job_has_the_names_and_numbers_of_its_record(tmp_path: Path) -> None:
    (job,) = load(tmp_path, RECORD).jobs

    assert job == WorkloadJob(
        id="7", submit=30, run_time=600, shape=Shape(4, "rusage[mem=1024]"), user="u62", project="g1", queue="q2",
        run_limit=timedelta(hours=1),
    )  # fmt: skip


def test_the_scheduler_sees_the_job_as_a_pending_one(tmp_path: Path) -> None:
    workload = load(tmp_path, "; UnixStartTime: 0", RECORD)

    pending = workload.jobs[0].pending(workload.start)

    assert pending.submitted == datetime(1970, 1, 1, 0, 0, 30, tzinfo=UTC)
    assert (pending.id, pending.user, pending.project, pending.queue) == ("7", "u62", "g1", "q2")
    assert (pending.tasks, pending.run_limit) == (Tasks(min=4, max=None), timedelta(hours=1))


@given(run_times=st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)))
def test_what_the_scheduler_sees_does_not_depend_on_the_true_run_time(
    run_times: tuple[int, int],
) -> None:
    job = WorkloadJob("7", 30, run_times[0], Shape(4), run_limit=timedelta(hours=1))
    start = datetime(2026, 1, 1, tzinfo=UTC)

    assert job.pending(start) == replace(job, run_time=run_times[1]).pending(start)


def test_a_queue_name_wins_over_its_number_and_unknown_names_have_a_default(tmp_path: Path) -> None:
    unknown = changed(12, "-1", changed(13, "-1", changed(15, "-1")))

    (named,) = load(tmp_path, EXTENDED).jobs
    (nameless,) = load(tmp_path, unknown).jobs

    assert named.queue == "q_1d"
    assert (nameless.user, nameless.project, nameless.queue) == ("nobody", "default", "normal")


def test_processors_used_stand_in_for_processors_asked(tmp_path: Path) -> None:
    assert shape_of(tmp_path, changed(8, "-1")).tasks == 4
    assert shape_of(tmp_path, changed(8, "0")).tasks == 4


def test_a_job_without_processors_is_left_out_and_named(tmp_path: Path) -> None:
    workload = load(tmp_path, changed(5, "-1", changed(8, "-1")))

    assert workload.jobs == ()
    assert [(entry.why, entry.jobs) for entry in workload.left_out] == [
        ("number of processors unknown", ("7",))
    ]


# ------------------------------------------------------------------------ memory
def test_memory_is_kib_for_each_processor_unless_said_otherwise(tmp_path: Path) -> None:
    assert shape_of(tmp_path, changed(10, "1025")).resreq == "rusage[mem=2]"
    assert shape_of(tmp_path, changed(10, str(4 << 30)), WHOLE_JOB).resreq == "rusage[mem=1024]"


def test_memory_that_is_not_known_is_none_or_the_default_and_is_counted(tmp_path: Path) -> None:
    none = load(tmp_path, changed(10, "-1"))
    default = load(
        tmp_path, changed(10, "-1"), config=WorkloadConfig(memory=MemoryRule(default=512))
    )

    assert (none.jobs[0].shape.resreq, none.notes[0].what) == ("", "memory unknown: none is asked")
    assert default.jobs[0].shape.resreq == "rusage[mem=512]"


def test_memory_can_be_left_out_of_account(tmp_path: Path) -> None:
    workload = load(tmp_path, RECORD, config=WorkloadConfig(memory=MemoryRule(use=False)))

    assert (workload.jobs[0].shape.resreq, workload.notes) == ("", ())


@given(memory=st.integers(1, 1 << 45), processors=st.integers(1, 300))
def test_memory_of_the_whole_job_is_never_less_than_asked_and_at_most_a_mib_a_task_more(
    tmp_path_factory: pytest.TempPathFactory, memory: int, processors: int
) -> None:
    folder = tmp_path_factory.mktemp("memory")
    shape = shape_of(folder, changed(8, str(processors), changed(10, str(memory))), WHOLE_JOB)

    (alternative,) = parse(shape.resreq).alternatives
    assert isinstance(alternative, Primary)
    (usage,) = alternative.rusage

    assert memory <= usage.amount.value * processors * (1 << 20) < memory + processors * (1 << 20)


# ---------------------------------------------------------------------- requests
@pytest.mark.parametrize(
    ("line", "shape"),
    [
        (request("1:ppn=1", 1), Shape(1, "rusage[mem=8192]")),
        (request("1:ppn=12", 12), Shape(12, "rusage[mem=8192/host] span[hosts=1]")),
        (request("8:ppn=8:x86_64:cl_zegox", 64), Shape(64, "select[x86_64 && cl_zegox] rusage[mem=1024/host] span[ptile=8]")),
        (request("4:ppn=1", 4), Shape(4, "rusage[mem=2048] span[ptile=1]")),
        (request("1:ppn=64:cl_zewura#excl", 64), Shape(64, "select[cl_zewura] rusage[mem=8192/host] span[hosts=1]", True)),
        (request("1:ppn=2:mem=3gb", 2), Shape(2, "rusage[mem=3072/host] span[hosts=1]")),
        (request("1:ppn=1:^cl_zewura", 1), Shape(1, "select[!cl_zewura] rusage[mem=8192]")),
        (request("1:ppn=1:zegox20.cerit-sc.cz", 1), Shape(1, "select[hostname==zegox20] rusage[mem=8192]")),
        (request("1:ppn=1+2:ppn=2", 5, 5 << 30), Shape(5, "1*{rusage[mem=1024]} + 4*{rusage[mem=2048/host] span[ptile=2]}")),
    ],
)  # fmt: skip
def test_a_request_becomes_a_requirement(tmp_path: Path, line: str, shape: Shape) -> None:
    assert shape_of(tmp_path, line, WHOLE_JOB) == shape


def test_a_host_that_is_not_wanted_is_excluded_so_that_nameless_hosts_remain(
    tmp_path: Path,
) -> None:
    shape = shape_of(tmp_path, request("1:ppn=1:^zewura12.cerit-sc.cz", 1), WHOLE_JOB)

    # "hostname!=zewura12" would be false on a host without that attribute.
    assert shape.resreq == "select[!hostname==zewura12] rusage[mem=8192]"


def test_what_is_not_understood_of_a_request_is_counted_with_the_first_job(tmp_path: Path) -> None:
    lines = [changed(1, str(n), request("1:ppn=1:scratch=9gb#shared", 1)) for n in (3, 4)]

    notes = {note.what: (note.jobs, note.first) for note in load(tmp_path, *lines).notes}

    assert notes == {
        "request: #shared is not known and was ignored": (2, "3"),
        "request: scratch=9gb is not known and was ignored": (2, "3"),
    }


def test_configured_properties_are_dropped_and_counted(tmp_path: Path) -> None:
    config = WorkloadConfig(memory=MemoryRule(use=False), ignored_properties=("nfs4",))

    workload = load(tmp_path, request("1:ppn=1:nfs4:brno", 1), config=config)

    assert workload.jobs[0].shape.resreq == "select[brno]"
    assert [note.what for note in workload.notes] == [
        "request: property nfs4 is ignored, as configured"
    ]


def test_a_request_wins_over_the_processor_column_and_the_difference_is_noted(
    tmp_path: Path,
) -> None:
    workload = load(tmp_path, request("1:ppn=8", 4))

    assert workload.jobs[0].shape.tasks == 8
    assert any("differ" in note.what for note in workload.notes)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("1:ppn=x", "ppn=x: wanted a number of processors"),
        ("1:ppn=1:mem=3xb", "unknown unit 'xb'"),
        ("1:ppn=1:a=b=c:%", "'%' is not a property"),
        ("1000:ppn=10000", "is for 10000000 processors"),
        (":".join(["1:ppn=1", *(f"p{i}" for i in range(20_000))]), "asks for what cannot be said"),
    ],
)
def test_a_wrong_request_is_an_error_with_line_and_column(
    tmp_path: Path, text: str, part: str
) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, RECORD, changed(1, "8", changed(21, text, EXTENDED)))

    (problem,) = caught.value.problems
    assert part in problem.message
    assert problem.line == 2
    assert problem.column is not None
    assert problem.column > len(RECORD)


# ------------------------------------------------------------------------- times
def test_a_job_of_unknown_run_time_is_left_out_or_runs_as_long_as_it_asked(tmp_path: Path) -> None:
    out = load(tmp_path, changed(4, "-1"))
    as_asked = load(tmp_path, changed(4, "-1"), config=WorkloadConfig(run_time_unknown="as_asked"))

    assert [(entry.why, entry.jobs) for entry in out.left_out] == [("run time unknown", ("7",))]
    assert as_asked.jobs[0].run_time == 3600
    assert as_asked.notes[0].what == "run time unknown: taken as the time asked"


def test_a_job_of_no_time_runs_for_none_or_is_left_out(tmp_path: Path) -> None:
    runs = load(tmp_path, changed(4, "0"))
    out = load(tmp_path, changed(4, "0"), config=WorkloadConfig(run_time_zero="leave_out"))

    assert (runs.jobs[0].run_time, runs.notes[0].jobs) == (0, 1)
    assert out.left_out[0].why == "run time 0"


def test_a_job_that_ran_past_what_it_asked_is_noted_and_keeps_its_run_time(tmp_path: Path) -> None:
    workload = load(tmp_path, changed(4, "3601"))

    assert workload.jobs[0].run_time == 3601
    assert workload.notes[0].what == "ran past the time asked: runs as long here"


@pytest.mark.parametrize("asked", ["-1", "0", "738738720"])
def test_a_time_asked_that_says_nothing_is_no_run_limit(tmp_path: Path, asked: str) -> None:
    workload = load(tmp_path, changed(9, asked))

    assert workload.jobs[0].run_limit is None
    assert "no run limit" in workload.notes[0].what


def test_second_0_is_what_the_header_says_or_the_first_submission_or_as_configured(
    tmp_path: Path,
) -> None:
    absolute = changed(2, "1356996147")

    header = load(tmp_path, "; UnixStartTime: 843480031", RECORD)
    unix = load(tmp_path, absolute)
    nowhere = load(tmp_path, RECORD)
    zero = datetime(2013, 1, 1, tzinfo=UTC)
    given_start = load_swf(written(tmp_path, absolute), WorkloadConfig(), seed=1, time_zero=zero)

    assert (header.start.timestamp(), header.jobs[0].submit) == (843480031, 30)
    assert (unix.start.timestamp(), unix.jobs[0].submit) == (1356996147, 0)
    assert (nowhere.start, nowhere.jobs[0].submit) == (datetime(2000, 1, 1, tzinfo=UTC), 30)
    assert (given_start.start, given_start.jobs[0].submit) == (zero, 0)


def test_jobs_are_by_submission_and_then_in_the_order_of_the_file(tmp_path: Path) -> None:
    lines = [
        changed(1, str(n), changed(2, str(at))) for n, at in ((1, 50), (2, 10), (3, 50), (4, 10))
    ]

    assert [job.id for job in load(tmp_path, *lines).jobs] == ["2", "4", "1", "3"]


# --------------------------------------------------------------- the whole trace
def test_a_cut_takes_the_first_records_and_counts_those_left_out(tmp_path: Path) -> None:
    workload = load(
        tmp_path, numbered(3), changed(1, "9", changed(4, "-1")), "not read any more", jobs_max=4
    )

    assert (workload.records, [job.id for job in workload.jobs]) == (4, ["1", "2", "3"])
    assert workload.left_out[0].jobs == ("9",)


def test_a_job_number_twice_is_an_error_that_names_both_lines(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"trace\.swf:2: job 7 is also in line 1"):
        load(tmp_path, RECORD, RECORD)


def test_a_trace_without_jobs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no jobs"):
        load(tmp_path, "; Version: 2.2")


def test_progress_counts_the_records(tmp_path: Path) -> None:
    told: list[int] = []

    load_swf(written(tmp_path, numbered(3)), WorkloadConfig(), seed=1, progress=told.append)

    assert told == [1, 2, 3]


# ---------------------------------------------------------------------- licences
def with_licence(share: str) -> WorkloadConfig:
    return WorkloadConfig(
        memory=MemoryRule(use=False),
        licences=(LicenceRule(feature="lic", share=Decimal(share), tokens=2),),
    )


def holders(workload: Workload) -> set[str]:
    return {job.id for job in workload.jobs if job.shape.resreq == "rusage[lic=2/job]"}


def test_the_share_of_jobs_that_need_a_licence_is_about_as_configured(tmp_path: Path) -> None:
    workload = load(tmp_path, numbered(4000), config=with_licence("0.25"))

    assert 900 < len(holders(workload)) < 1100
    assert holders(load(tmp_path, numbered(50), config=with_licence("0"))) == set()
    assert len(holders(load(tmp_path, numbered(50), config=with_licence("1")))) == 50


def test_which_jobs_need_a_licence_depends_on_seed_and_job_and_on_nothing_else(
    tmp_path: Path,
) -> None:
    config = with_licence("0.5")
    whole = holders(load(tmp_path, numbered(200), config=config))
    backwards = "\n".join(reversed(numbered(200).splitlines()))

    assert holders(load(tmp_path, backwards, config=config)) == whole
    assert holders(load(tmp_path, numbered(200), config=config, jobs_max=80)) == {
        n for n in whole if int(n) <= 80
    }
    assert holders(load(tmp_path, numbered(200), config=config, seed=2)) != whole


def test_a_licence_is_taken_once_by_a_job_of_several_chunks(tmp_path: Path) -> None:
    shape = shape_of(tmp_path, request("1:ppn=1+2:ppn=2", 5), with_licence("1"))

    assert shape.resreq == "1*{rusage[lic=2/job]} + 4*{span[ptile=2]}"


# ------------------------------------------------------------------- real traces
def test_every_record_of_the_metacentrum_trace_is_a_job_or_is_named(shared: Path) -> None:
    trace = shared / "traces" / "METACENTRUM-wagap-2013-q1.swf.gz"

    workload = load_swf(trace, WHOLE_JOB, seed=1)

    assert workload.records == 17_900
    assert len(workload.jobs) + sum(len(entry.jobs) for entry in workload.left_out) == 17_900
    assert [(entry.why, entry.jobs) for entry in workload.left_out] == [
        ("run time unknown", ("4185", "4199"))
    ]
    assert not any("not known" in note.what for note in workload.notes)
    shapes = {job.shape for job in workload.jobs}
    assert all(parse(shape.resreq).alternatives for shape in shapes)
    assert sum(shape.exclusive for shape in shapes) > 0


def test_the_kth_trace_has_every_job(shared: Path) -> None:
    workload = load_swf(shared / "traces" / "KTH-SP2-1996-2.swf.gz", WorkloadConfig(), seed=1)

    assert (workload.records, len(workload.jobs), workload.left_out) == (28_489, 28_489, ())
    assert sum(job.run_time == 0 for job in workload.jobs) == 8
