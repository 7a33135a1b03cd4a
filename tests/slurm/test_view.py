"""What a Slurm shows, as our snapshot: who is demand, what jobs ask for, what is where."""

from datetime import timedelta
from typing import Any

import pytest

from tests.slurm.made import NOW, SECONDS, Slurm, job, node, running
from xce.adapters.schedulers.slurm.build import View
from xce.domain.cluster.resreq.reading import parse
from xce.domain.formats.session_result import ReasonKind
from xce.domain.formats.snapshot import Catalog, HostState, PendingJob, Template
from xce.domain.formats.snapshot_check import contradictions
from xce.domain.scheduling.session import run_session


def one(**changes: Any) -> PendingJob:
    """Return the one waiting job of a cluster, read."""
    view = Slurm([job(7, **changes)]).view()
    assert view.troubles == ()
    (found,) = view.snapshot.pending
    parse(found.resreq)
    return found


def demand_of(view: View, **template: Any) -> int:
    """Return how many hosts of one template are wanted."""
    provides = {"slots": 4, "mem": 4000} | template.pop("provides", {})
    made = Template(id="t", provides=provides, allowed=20, **template)
    snapshot = view.snapshot.model_copy(update={"catalog": Catalog(templates=(made,))})
    assert list(contradictions(snapshot)) == []
    return sum(line.count for line in run_session(snapshot).demand.hosts)


def reasons_of(view: View) -> dict[str, ReasonKind]:
    return {each.job: each.reason for each in run_session(view.snapshot).pending}


# ------------------------------------------------------------------ what jobs ask for
@pytest.mark.parametrize(
    ("changes", "resreq", "tasks"),
    [
        ({}, "rusage[mem=100MiB]", 1),
        ({"cpus": 8}, "rusage[slots=8, mem=800MiB]", 1),
        ({"cpus": 8, "memory_per_cpu": None, "memory_per_node": 2048}, "rusage[slots=8, mem=2048MiB]", 1),
        ({"cpus": 8, "tasks": 4, "cpus_per_task": None}, "rusage[slots=2, mem=200MiB]", 4),
        ({"cpus": 16, "tasks": 2, "node_count": 2, "max_nodes": 2, "tres_req_str": "cpu=16,node=2"}, "rusage[slots=8, mem=800MiB] span[hosts=-1]", 2),
        ({"cpus": 4, "tasks": 4, "node_count": 2, "max_nodes": 2, "tres_req_str": "node=2"}, "rusage[mem=100MiB] span[ptile=2]", 4),
        ({"cpus": 6, "tasks": 6, "node_count": 2, "tres_req_str": "cpu=6,node=1"}, "rusage[mem=100MiB]", 6),
        ({"cpus": 8, "tasks": 4, "node_count": 2, "tasks_per_node": 2, "minimum_cpus_per_node": 4, "tres_req_str": "node=1"}, "rusage[slots=2, mem=200MiB] span[ptile=2]", 4),
        ({"cpus": 4, "tasks": 4, "node_count": 1, "max_nodes": 1}, "rusage[mem=100MiB] span[hosts=1]", 4),
        ({"cpus": 4, "tasks": 4, "memory_per_cpu": None, "memory_per_node": 500}, "rusage[mem=500MiB/host]", 4),
        ({"minimum_cpus_per_node": 8}, "select[slots>=8] rusage[mem=100MiB]", 1),
        ({"features": "a&b"}, "select[a && b] rusage[mem=100MiB]", 1),
        ({"features": "a|(b&c)"}, "select[(a || ( b && c ))] rusage[mem=100MiB]", 1),
        ({"features": "[rack1|rack-2]"}, "{select[rack1] rusage[mem=100MiB]} || {select[rack-2] rusage[mem=100MiB]}", 1),
        ({"licenses": "sim:2"}, "rusage[mem=100MiB, sim=2/job]", 1),
        ({"tres_per_node": "gres:gpu:a100:2"}, 'rusage[mem=100MiB, gpu=2, "gpu:a100"=2]', 1),
        ({"tres_per_task": "gres/gpu=1", "cpus": 2, "tasks": 2}, "rusage[mem=100MiB, gpu=1]", 2),
        ({"required_nodes": "n1"}, 'select[(hostname=="n1")] rusage[mem=100MiB]', 1),
        ({"excluded_nodes": "n[1-2]"}, 'select[!(hostname=="n1") && !(hostname=="n2")] rusage[mem=100MiB]', 1),
    ],
)  # fmt: skip
def test_a_job_is_said_in_our_language(changes: dict[str, Any], resreq: str, tasks: int) -> None:
    found = one(**changes)

    assert (found.resreq, found.tasks.min) == (resreq, tasks)
    assert not found.exclusive
    assert not found.held


@pytest.mark.parametrize("shared", ["none", "user", ["none"], ["user"]])
def test_exclusive_jobs_take_whole_hosts(shared: object) -> None:
    assert one(shared=shared).exclusive


def test_all_memory_of_a_node_is_the_whole_host() -> None:
    assert one(memory_per_cpu=None, memory_per_node=None).exclusive
    assert one(memory_per_cpu=None, memory_per_node={"set": True, "number": 0}).exclusive


def test_a_partition_that_gives_whole_nodes_makes_its_jobs_exclusive() -> None:
    slurm = Slurm([job(1)])
    slurm.text["partition"] = (
        "PartitionName=main OverSubscribe=EXCLUSIVE State=UP MaxTime=1:00:00\n"
    )

    (found,) = slurm.view().snapshot.pending

    assert found.exclusive


@pytest.mark.parametrize(
    "changes",
    [
        {"features": "[a*1&b*1]"},
        {"features": "a&[b|c]"},
        {"licenses": "sim:1|other:1"},
        {"licenses": "nobody-has-it:1"},
        {"tasks": 5, "cpus": 5, "node_count": 4, "max_nodes": 4, "tres_req_str": "node=4"},
    ],
)
def test_what_our_language_cannot_say_is_told_and_no_demand(changes: dict[str, Any]) -> None:
    view = Slurm([job(7, state_reason="Resources", **changes)], [node("n1", state="down")]).view()

    assert [problem.path for _, problem in view.troubles] == ["7"]
    assert reasons_of(view) == {"7": ReasonKind.HELD}
    assert demand_of(view, attributes={"a": True, "b": True}) == 0


def test_memory_that_is_only_looked_at_is_a_condition() -> None:
    slurm = Slurm([job(1, memory_per_cpu=None, memory_per_node=2000)])
    slurm.text["config"] = "SelectTypeParameters = CR_CPU\nAccountingStorageEnforce = none\n"

    (found,) = slurm.view().snapshot.pending

    assert found.resreq == "select[mem>=2000MiB]"
    assert ("sacctmgr",) not in [call[:1] for call in slurm.called]


def test_a_job_takes_whole_cores() -> None:
    view = Slurm([job(1, cpus=3)], [node("n1", cpus=8, threads=2)]).view()

    assert view.snapshot.pending[0].resreq == "rusage[slots=4, mem=400MiB]"


def test_a_memory_unit_that_is_not_known_is_told_and_never_guessed() -> None:
    lines = [
        f"JobId={number} JobName=x UserId=ann(1) GroupId=g(1) MCS_label=N/A Priority=9 Account=chip QOS=normal JobState=PENDING "
        f"Reason=Resources SubmitTime=2026-11-29T16:00:00 Partition=main NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1 "
        f"TRES=cpu=1,node=1 MinCPUsNode=1 MinMemoryNode={memory} Features=(null) Command=(null)"
        for number, memory in ((1, "80Q"), (2, "80M"))
    ]
    slurm = Slurm(nodes=[node("n1", state="down")])
    slurm.text["job"] = "\n".join(lines)
    slurm.fails["--json"] = _no_json()
    slurm.text["node"] = "NodeName=n1 CPUTot=4 RealMemory=4000 State=DOWN Partitions=main\n"

    view = slurm.view()

    assert reasons_of(view)["1"] is ReasonKind.UNIT_UNKNOWN
    assert demand_of(view) == 1  # of job 2


def _no_json() -> Exception:
    from xce.domain.errors import TransientError

    return TransientError("squeue --json: squeue: unrecognized option '--json'")


# ------------------------------------------------------------------------ who is demand
@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({"state_reason": "Resources"}, True),
        ({"state_reason": "Priority"}, True),
        ({"state_reason": "None"}, True),
        ({"state_reason": ""}, True),
        ({"state_reason": "ReqNodeNotAvail", "state_description": "ReqNodeNotAvail, May be reserved"}, True),
        ({"state_reason": "PartitionConfig"}, True),
        ({"state_reason": "PartitionNodeLimit"}, True),
        ({"state_reason": "BadConstraints"}, True),
        ({"state_reason": "Licenses", "licenses": "sim:1"}, True),
        ({"state_reason": "JobHeldUser", "priority": 0}, False),
        ({"state_reason": "JobHeldAdmin", "priority": 0}, False),
        ({"state_reason": "Priority", "priority": 0}, False),
        ({"state_reason": "BeginTime", "eligible_time": SECONDS + 60}, False),
        ({"state_reason": "None", "eligible_time": SECONDS + 60}, False),
        ({"state_reason": "Dependency", "dependency": "afterok:3(unfulfilled)"}, False),
        ({"state_reason": "None", "dependency": "afterok:3(unfulfilled)"}, False),
        ({"state_reason": "DependencyNeverSatisfied"}, False),
        ({"state_reason": "QOSGrpCpuLimit"}, False),
        ({"state_reason": "AssocMaxJobsLimit"}, False),
        ({"state_reason": "MaxCpuPerAccount"}, False),
        ({"state_reason": "Reservation", "resv_name": "r"}, False),
        ({"state_reason": "Priority", "resv_name": "r"}, False),
        ({"state_reason": "PartitionDown"}, False),
        ({"state_reason": "PartitionTimeLimit"}, False),
        ({"job_state": "REQUEUE_HOLD", "state_reason": "JobHoldMaxRequeue"}, False),
        ({"job_state": ["PENDING"], "state_reason": "Resources"}, True),
    ],
)  # fmt: skip
def test_slurms_words_decide_who_is_demand(changes: dict[str, Any], counts: bool) -> None:
    view = Slurm([job(7, **changes)], [node("n1", state="down")]).view()

    assert demand_of(view) == (1 if counts else 0)


def test_a_word_that_nobody_knows_is_told_once_and_no_demand() -> None:
    jobs = [job(number, state_reason="MoonPhase") for number in (1, 2)]
    view = Slurm(jobs, [node("n1", state="down")]).view()

    assert [str(problem) for _, problem in view.troubles] == [
        "1: the reason 'MoonPhase' is not known: such jobs are no demand"
    ]
    assert demand_of(view) == 0


def test_jobs_wait_for_licences_and_not_for_hosts() -> None:
    jobs = [running(1, "n1", licenses="sim:4")]
    jobs += [job(n, state_reason="Licenses", licenses="sim:1") for n in range(2, 9)]
    slurm = Slurm(jobs)
    slurm.text["lic"] = "LicenseName=sim Total=4 Used=4 Free=0 Reserved=0 Remote=no\n"
    view = slurm.view()

    assert demand_of(view) == 0
    assert set(reasons_of(view).values()) == {ReasonKind.NO_RESOURCE}


def test_jobs_in_a_partition_that_is_down_are_no_demand() -> None:
    slurm = Slurm([job(1, state_reason="Resources")], [node("n1", state="down")])
    slurm.text["partition"] = "PartitionName=main State=DOWN\n"

    assert demand_of(slurm.view()) == 0


# ------------------------------------------------------------------------------ limits
QOS = "Name|GrpTRES|GrpJobs|MaxTRESPU|MaxJobsPU|MaxTRESPA|MaxJobsPA\n"
ASSOC = "Cluster|Account|User|Partition|ParentName|GrpTRES|GrpJobs|MaxJobs\n"


def test_jobs_over_a_limit_of_their_quality_of_service_are_no_demand() -> None:
    """Field case F14: one of the first user, one of the second."""
    jobs = [job(n, user_name="u1", qos="q") for n in range(1, 16)]
    jobs += [job(n, user_name="u2", qos="q") for n in range(16, 21)]
    slurm = Slurm(jobs, [node("n1", state="down")])
    slurm.text["qos"] = f"{QOS}normal||||||\nq||||1||\n"

    assert demand_of(slurm.view(), provides={"slots": 1}) == 2


def test_a_limit_that_slurm_names_and_we_know_is_the_reason() -> None:
    jobs = [running(1, "n1", qos="q"), job(2, qos="q", state_reason="QOSGrpCpuLimit")]
    slurm = Slurm(jobs)
    slurm.text["qos"] = f"{QOS}q|cpu=1|||||\n"

    view = slurm.view()

    assert reasons_of(view) == {"2": ReasonKind.LIMIT}
    assert view.snapshot.pending[0].queue == "main:q"


def test_limits_of_an_account_hold_for_those_below_it_and_of_a_user_for_the_user() -> None:
    jobs = [job(n, account="sub", user_name="ann") for n in range(1, 5)]
    jobs += [job(n, account="other", user_name="bob") for n in range(5, 9)]
    slurm = Slurm(jobs, [node("n1", state="down")])
    slurm.text["assoc"] = (
        f"{ASSOC}ca|root||||||\nca|top|||root|cpu=2||9\nca|sub|||top|||\nca|sub|ann||||9|9\nca|other|bob|||||3\n"
        "cb|other|bob|||||1\n"
    )

    view = slurm.view()

    assert demand_of(view, provides={"slots": 1}) == 2 + 3
    assert {limit.name for limit in view.snapshot.limits} == {
        "account top GrpTRES cpu", "account sub user ann GrpJobs", "account sub user ann MaxJobs", "account other user bob MaxJobs",
    }  # fmt: skip


def test_limits_are_not_read_where_slurm_does_not_hold_them() -> None:
    slurm = Slurm([job(1)])
    slurm.text["config"] = "AccountingStorageEnforce = associations\n"

    assert slurm.view().snapshot.limits == ()
    assert "sacctmgr" not in {call[0] for call in slurm.called}


# ------------------------------------------------------------------------------ arrays
def test_elements_of_an_array_are_jobs_and_those_that_run_are_counted_once() -> None:
    jobs = [
        job(11, array_job_id=11, array_task_string="1-6%3", array_max_tasks=3),
        running(12, "n1") | {"array_job_id": 11, "array_task_id": 2},
        job(13, array_job_id=11, array_task_id=9, array_max_tasks=3),
    ]
    view = Slurm(jobs).view()

    assert [one.id for one in view.snapshot.running] == ["11_2"]
    assert [one.id for one in view.snapshot.pending] == [
        "11_1",
        "11_3",
        "11_4",
        "11_5",
        "11_6",
        "11_9",
    ]
    assert {one.array.limit for one in view.snapshot.pending if one.array} == {3}
    started = run_session(view.snapshot).allocations
    assert [one.job for one in started] == ["11_1", "11_3"]  # and no third: 2 runs


def test_an_array_that_slurm_cut_short_is_told() -> None:
    view = Slurm([job(11, array_job_id=11, array_task_string="1-6,8,...")]).view()

    assert view.snapshot.pending == ()
    assert "'...' is no array index" in str(view.troubles[0][1])


def test_who_depends_on_an_array_waits_for_its_elements() -> None:
    jobs = [
        job(11, array_job_id=11, array_task_string="1-2"),
        job(20, state_reason="Dependency", dependency="afterany:11_*(unfulfilled)"),
        job(
            21,
            state_reason="Dependency",
            dependency="afterok:11_2(unfulfilled)?afterok:3(unfulfilled)",
        ),
        job(22, state_reason="Dependency", dependency="singleton(unfulfilled)"),
    ]
    pending = {one.id: one for one in Slurm(jobs).view().snapshot.pending}

    assert pending["20"].waits_for == ("11_1",)
    assert pending["21"].waits_for == ("11_2",)
    assert (pending["22"].waits_for, pending["22"].held) == ((), True)


def test_components_of_a_heterogeneous_job_start_together_or_not_at_all() -> None:
    jobs = [
        job(13, het_job_id=13, het_job_offset=0, cpus=2),
        job(14, het_job_id=13, het_job_offset=1, cpus=6, tasks=2, features="big", node_count=2, max_nodes=2, tres_req_str="node=2"),
    ]  # fmt: skip
    view = Slurm(jobs).view()
    (found,) = view.snapshot.pending

    assert found.id == "13+0"
    assert found.tasks.min == 3
    assert run_session(view.snapshot).allocations == ()
    assert demand_of(view, attributes={"big": True}) == 2


# ------------------------------------------------------------------------------- hosts
@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, HostState.OPEN),
        ({"state": "mixed", "state_flags": ["PLANNED"]}, HostState.OPEN),
        ({"state": ["MIXED", "CLOUD"]}, HostState.OPEN),
        ({"state_flags": ["DRAIN"], "reason": "disk"}, HostState.CLOSED),
        ({"state_flags": ["DRAIN"], "reason": "xce: closed"}, HostState.DRAINING),
        ({"state": ["ALLOCATED", "DRAIN"], "reason": "xce: closed"}, HostState.DRAINING),
        ({"state": "idle", "state_flags": ["MAINTENANCE"]}, HostState.CLOSED),
        ({"state": "idle*"}, HostState.CLOSED),
        ({"state": "down"}, HostState.DOWN),
        ({"state": "down*", "state_flags": ["DRAIN"], "reason": "gone"}, HostState.DOWN),
        ({"state": None}, HostState.DOWN),
    ],
)  # fmt: skip
def test_states_of_nodes(changes: dict[str, Any], state: HostState) -> None:
    (host,) = Slurm(nodes=[node("n1", **changes)]).view().snapshot.hosts

    assert host.state is state


@pytest.mark.parametrize("flag", ["FUTURE", "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP"])
def test_records_without_a_machine_are_no_hosts_unless_a_job_is_there(flag: str) -> None:
    nodes = [node("n1"), node("c1", state_flags=["CLOUD", flag])]

    assert [one.name for one in Slurm(nodes=nodes).view().snapshot.hosts] == ["n1"]
    (_, host) = Slurm([running(1, "c1")], nodes).view().snapshot.hosts
    assert (host.name, host.state) == ("c1", HostState.CLOSED)


def test_what_a_host_has_and_since_when_it_is_idle() -> None:
    nodes = [
        node("n1", gres="gpu:a100:4(S:0-1)", active_features="big,fast", last_busy=SECONDS - 500),
        node("n2", last_busy=SECONDS - 5000),
    ]
    first, second = Slurm(nodes=nodes).view().snapshot.hosts

    assert first.total == {"slots": 4, "mem": 4000, "gpu": 4, "gpu:a100": 4}
    assert first.attributes == {"big": True, "fast": True}
    assert first.idle_since == NOW - timedelta(seconds=500)
    assert second.idle_since == NOW - timedelta(seconds=890)  # its daemon started after that
    assert first.booted_at == NOW - timedelta(seconds=900)


def test_a_node_that_is_marked_names_its_instance() -> None:
    (host,) = Slurm(nodes=[node("n1", comment="xce:cloud/i-1 and more")]).view().snapshot.hosts

    assert host.instance == "cloud/i-1"


def test_partitions_that_do_not_have_all_nodes_are_conditions() -> None:
    slurm = Slurm(
        [job(1, partition="gpu"), job(2), job(3, partition="gpu,main")],
        [node("n1"), node("n2", partitions=["main", "gpu"])],
    )
    slurm.text["partition"] += "PartitionName=gpu PriorityTier=5 State=UP\n"
    view = slurm.view()

    assert [one.resreq for one in view.snapshot.pending] == [
        "select[partition.gpu] rusage[mem=100MiB]", "rusage[mem=100MiB]", "rusage[mem=100MiB]",
    ]  # fmt: skip
    assert {one.name: one.priority for one in view.snapshot.queues} == {"main": 1, "gpu": 5}
    assert view.snapshot.hosts[1].attributes == {"base": True, "partition.gpu": True}


def test_reservations_keep_their_hosts_for_their_jobs() -> None:
    slurm = Slurm(
        [job(1), job(2, resv_name="now"), job(3, resv_name="later")],
        [node("n1", cpus=1), node("n2", cpus=1), node("n3")],
    )
    slurm.text["reservation"] = (
        "ReservationName=now StartTime=2026-11-29T16:00:00 EndTime=2026-11-29T18:00:00 Nodes=n[1-2] State=ACTIVE\n"
        "ReservationName=later StartTime=2026-11-29T17:05:00 EndTime=2026-11-29T18:00:00 Nodes=n3 State=INACTIVE\n"
    )
    view = slurm.view()

    started = {one.job: one.hosts[0].name for one in run_session(view.snapshot).allocations}
    assert started == {"2": "n1"}  # 1 would be on n3 when "later" begins; 3 is not yet for now
    assert [one.held for one in view.snapshot.pending] == [False, False, True]
    assert demand_of(view) == 1  # for 1


def test_a_job_on_a_node_that_nobody_lists_is_told() -> None:
    view = Slurm([running(1, "ghost")]).view()

    assert view.snapshot.running[0].hosts == ()
    assert "ghost" in str(view.troubles[0][1])


def test_a_host_of_one_users_exclusive_job_is_for_that_user() -> None:
    (host,) = Slurm([running(1, "n1", shared="user")]).view().snapshot.hosts

    assert host.exclusive_to == "ann"
