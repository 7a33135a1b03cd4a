"""Versions from 23.02 to 26.05: what they print makes the same view as the same cluster printed by 22.05."""

from dataclasses import replace
from typing import Any

import pytest

from tests.slurm.made import NOW, SECONDS, Slurm, job, node, running
from tests.slurm.newer import Newer, job_of, node_of, wrapped
from xce.adapters.schedulers.slurm import read_jobs, read_nodes, read_rules
from xce.adapters.schedulers.slurm.build import view_of
from xce.adapters.schedulers.slurm.facts import JobFact, PartitionFact, Readings
from xce.adapters.schedulers.slurm.reasons import Waits, waits_for
from xce.domain.errors import InputError
from xce.domain.formats.snapshot import HostState

VERSIONS = [(23, 2), (23, 11), (24, 5), (25, 5)]
JOBS = [
    running(1, "n1", 3, licenses="sim:1"),
    job(2, cpus=6, tasks=3, cpus_per_task=2, node_count=2),
    job(3, cpus=4, tasks=4, node_count=2, max_nodes=2, memory_per_cpu=None, memory_per_node=1024, tres_req_str="cpu=4,node=2"),
    job(4, shared="none"),
    job(5, shared="user"),
    job(6, memory_per_cpu=None, memory_per_node=0),
    job(7, array_job_id=7, array_task_string="1-4%2", array_max_tasks=2),
    job(8, state_reason="JobHeldUser", priority=0),
    job(9, state_reason="BeginTime", eligible_time=SECONDS + 3600),
    job(10, state_reason="Dependency", dependency="afterok:1(unfulfilled)"),
    job(11, licenses="sim:3", state_reason="Licenses"),
    job(12, cpus=8, tasks=8, node_count=2, max_nodes=4, tasks_per_node=4, time_limit=None),
    job(13, het_job_id=13, het_job_offset=0, features="base"),
    job(14, het_job_id=13, het_job_offset=1, features="base"),
    job(15, cpus=2, tres_per_task="cpu=2", tres_per_node="gres/gpu:a100:1"),
]  # fmt: skip
NODES = [
    node("n1", state="mixed", alloc_cpus=3, alloc_memory=300),
    node("n2", state_flags=["DRAIN"], reason="xce: closed"),
    node("n3", state_flags=["DYNAMIC_NORM", "PLANNED"], active_features="base,fast", comment="xce:i-1 and more"),
    node("n4", state="down", state_flags=["NOT_RESPONDING"]),
    node("n5", state="future"),
]  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_a_cluster_of_a_newer_version_is_seen_as_it_is(version: tuple[int, int]) -> None:
    newer = Newer(version, JOBS, NODES)
    view = newer.view()

    assert view.snapshot == Slurm(JOBS, NODES).view().snapshot
    assert view.troubles == ()
    assert ("sinfo", "--json") not in newer.called


def test_a_version_that_does_not_say_its_number_is_found_out() -> None:
    newer = Newer((24, 5), JOBS, NODES)
    newer.text["config"] = "ClusterName = ca\n"

    assert newer.view().snapshot.hosts == Slurm(JOBS, NODES).view().snapshot.hosts


# ---------------------------------------------------------------------- single fields
def read_job(version: tuple[int, int], **changes: Any) -> JobFact:
    (found,), problems = read_jobs.jobs_of_json(
        {"jobs": [job_of(running(1, "n1"), version) | changes]}, "squeue --json"
    )
    assert not problems
    return found


@pytest.mark.parametrize(
    ("said", "shared"),
    [
        ({"shared": ["none"]}, "none"),
        ({"shared": ["topo"]}, "none"),
        ({"shared": ["mcs"]}, "user"),
        ({"shared": ["oversubscribe"]}, ""),
        ({"shared": [], "exclusive": ["true"]}, "none"),
        ({"shared": [], "exclusive": ["false"]}, ""),
        ({"shared": [], "exclusive": ["user"]}, "user"),
    ],
)
def test_words_for_exclusive(said: dict[str, Any], shared: str) -> None:
    assert read_job((23, 11), **said).shared == shared


def test_a_running_job_has_the_licences_that_it_got() -> None:
    asked: dict[str, Any] = {"licenses": "a:1|b:2", "licenses_allocated": "b:2"}

    assert read_job((25, 11), **asked).licences == "b:2"
    waiting = {**asked, "job_state": ["PENDING"], "licenses_allocated": ""}
    assert read_job((25, 11), **waiting).licences == "a:1|b:2"


def test_a_state_that_no_version_has_yet_is_told_and_keeps_its_nodes() -> None:
    jobs = [running(1, "n1", 4) | {"job_state": "HIBERNATING"}, job(2, job_state="THINKING")]
    view = Slurm(jobs, [node("n1")]).view()

    assert [one.id for one in view.snapshot.running] == ["1"]
    assert view.snapshot.pending == ()
    assert [str(problem) for _, problem in view.troubles] == [
        "jobs[0].job_state: the state 'HIBERNATING' is not known",
        "jobs[1].job_state: the state 'THINKING' is not known",
    ]


@pytest.mark.parametrize("state", ["COMPLETED", "PREEMPTED", "OUT_OF_MEMORY", "DEADLINE"])
def test_jobs_that_have_ended_are_none(state: str) -> None:
    ended = [running(1, "n1") | {"job_state": state}]

    assert Slurm(ended).view().snapshot.running == ()


@pytest.mark.parametrize(
    ("states", "state"),
    [
        (["IDLE"], HostState.OPEN),
        (["MIXED", "PLANNED"], HostState.OPEN),
        (["IDLE", "DYNAMIC_NORM", "CLOUD"], HostState.OPEN),
        (["IDLE", "BLOCKED"], HostState.CLOSED),
        (["IDLE", "MAINTENANCE", "RESERVED"], HostState.CLOSED),
        (["IDLE", "REBOOT_REQUESTED"], HostState.CLOSED),
        (["DOWN", "INVALID_REG"], HostState.DOWN),
        (["UNKNOWN", "NOT_RESPONDING"], HostState.DOWN),
    ],
)
def test_lists_of_states(states: list[str], state: HostState) -> None:
    record = node_of(node("n1"), (24, 11)) | {"state": states}
    nodes = read_nodes.nodes_of_json({"nodes": [record]}, "scontrol show node --json")

    assert [host.state for host in view_of(Readings(NOW, nodes, ())).snapshot.hosts] == [state]


@pytest.mark.parametrize(
    ("reason", "waits"),
    [
        ("MpiPortsBusy", Waits.SITE),
        ("NvidiaImexChannels", Waits.SITE),
        ("MaxPoweredUpNodes", Waits.SITE),
        ("ReservationInvalid", Waits.RESERVATION),
        ("QOSMaxBillingPerUser", Waits.LIMIT),
        ("Resources", Waits.RESOURCES),
    ],
)
def test_reasons_of_newer_versions(reason: str, waits: Waits) -> None:
    assert waits_for(reason) is waits


@pytest.mark.parametrize(
    ("enforced", "held"),
    [("none", False), ("(null)", False), ("associations", True), ("associations,limits", True)],
)
def test_without_associations_no_account_is_invalid(enforced: str, held: bool) -> None:
    slurm = Slurm([job(1, state_reason="InvalidAccount")])
    slurm.text["config"] = f"ClusterName = ca\nAccountingStorageEnforce = {enforced}\n"

    assert [one.held for one in slurm.view().snapshot.pending] == [held]


# --------------------------------------------------------------- partitions and the like
def partition(**changes: Any) -> PartitionFact:
    record: dict[str, Any] = {
        "name": "main", "nodes": {"configured": "n[1-2]", "total": 2}, "priority": {"job_factor": 1, "tier": 7},
        "qos": {"allowed": "", "deny": "", "assigned": "small"}, "cpus": {"task_binding": 0, "total": 8},
        "defaults": {"time": wrapped(None), "memory_per_cpu": 0}, "partition": {"state": ["UP"]},
        "maximums": {"time": wrapped(60), "nodes": wrapped(None, infinite=True), "shares": 1, "oversubscribe": {"jobs": 1, "flags": []}},
    }  # fmt: skip
    (found,) = read_rules.partitions_of_json({"partitions": [record | changes]}, "slurmrestd")
    return found


def test_a_partition_of_slurmrestd() -> None:
    fact = PartitionFact("main", "n[1-2]", True, 7, False, 60, None, "small")

    assert partition() == fact
    assert partition(partition={"state": ["DOWN"]}) == replace(fact, is_up=False)
    assert partition(maximums={"shares": 0}) == replace(fact, is_exclusive=True, max_time=None)
    assert partition(maximums={"shares": 4, "time": wrapped(None, infinite=True)}) == replace(fact, max_time=None)  # fmt: skip
    of_26_05 = {"state": ["UP"], "exclusive": "NODE", "oversubscribe": "NO"}
    assert partition(partition=of_26_05).is_exclusive
    assert not partition(partition={**of_26_05, "exclusive": "NO"}).is_exclusive
    assert partition(partition={**of_26_05, "exclusive": "USER"}).is_for_one_user


@pytest.mark.parametrize(
    ("words", "is_exclusive", "is_for_one_user"),
    [
        ("ExclusiveUser=NO ExclusiveTopo=NO OverSubscribe=NO", False, False),
        ("ExclusiveUser=NO ExclusiveTopo=NO OverSubscribe=EXCLUSIVE", True, False),
        ("ExclusiveUser=NO ExclusiveTopo=YES OverSubscribe=FORCE:4", True, False),
        ("ExclusiveUser=YES OverSubscribe=NO", False, True),
        ("Exclusive=NODE OverSubscribe=NO", True, False),
        ("Exclusive=USER OverSubscribe=YES:2", False, True),
    ],
)
def test_a_partition_of_scontrol(words: str, is_exclusive: bool, is_for_one_user: bool) -> None:
    text = f"PartitionName=main AllowGroups=ALL {words} MaxTime=UNLIMITED State=UP\n"
    (found,) = read_rules.partitions_of_text(text)

    assert (found.is_exclusive, found.is_for_one_user) == (is_exclusive, is_for_one_user)


def test_jobs_of_a_partition_for_one_user_ask_for_hosts_of_their_own() -> None:
    slurm = Slurm([running(1, "n1"), job(2)])
    slurm.text["partition"] = "PartitionName=main ExclusiveUser=YES State=UP\n"
    snapshot = slurm.view().snapshot

    assert snapshot.hosts[0].exclusive_to == "ann"
    assert snapshot.pending[0].exclusive


def test_a_licence_for_some_nodes_only_is_not_counted() -> None:
    text = (
        "LicenseName=a Total=3 Used=0 Free=3 Reserved=0 Remote=no\n"
        "LicenseName=flat Total=8 Used=0 Free=8 Reserved=0 Remote=no Nodes=n[1-4] Mode=1\n"
        "LicenseName=b@srv Total=5 Used=1 Free=4 Reserved=0 Remote=yes LastConsumed=2 LastDeficit=1 LastUpdate=2026-11-29T17:00:31\n"
    )
    broken = text.replace(" Total", "\n    Total").replace(" LastConsumed", "\n    LastConsumed")

    for said in (text, broken):
        found = read_rules.licences_of_text(said)
        assert [(one.name, one.total, one.reserved) for one in found] == [("a", 3, 0), ("b@srv", 5, 1)]  # fmt: skip
    records = [{"LicenseName": "flat", "Total": 8, "Used": 0, "Nodes": "n[1-4]"}, {"LicenseName": "a", "Total": 3, "Used": 0, "Nodes": ""}]  # fmt: skip
    assert [one.name for one in read_rules.licences_of_json({"licenses": records}, "rest")] == ["a"]


def test_a_reservation_of_slurmrestd() -> None:
    record = {
        "name": "r1", "node_list": "n1", "start_time": wrapped(SECONDS - 10), "end_time": wrapped(SECONDS + 10), "flags": ["SPEC_NODES"],
        "purge_completed": {"time": wrapped(300)}, "core_specializations": [],
    }  # fmt: skip
    (found,) = read_rules.reservations_of_json({"reservations": [record]}, "rest", NOW)

    assert (found.name, found.nodes, found.is_active) == ("r1", "n1", True)


# ------------------------------------------------------------------------------ texts
JOB_25_11 = """\
JobId=3 ArrayJobId=3 ArrayTaskId=1-4%2 ArrayTaskThrottle=2 JobName=wrap
   SLUID=sJ5QMNGYZW2A00
   UserId=ann(1000) GroupId=users(100) MCS_label=N/A
   Priority=4294901757 Nice=0 Account=chip QOS=normal
   JobState=PENDING Reason=Priority Dependency=(null)
   RunTime=00:00:00 TimeLimit=UNLIMITED TimeMin=N/A
   SubmitTime=2026-11-29T16:59:00 EligibleTime=2026-11-29T16:59:00
   StartTime=Unknown EndTime=Unknown Deadline=N/A
   CrontabSpec="0 * * * *"
   SuspendTime=None SecsPreSuspend=0 LastSchedEval=2026-11-29T16:59:58 Scheduler=Backfill:*
   Partition=main AllocNode:Sid=login:3328
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList= SchedNodeList=n1
   StepMgrEnabled=Yes
   NumNodes=2-4 NumCPUs=16 NumTasks=8 CPUs/Task=2 ReqB:S:C:T=0:0:*:*
   ReqTRES=cpu=16,mem=800M,node=2,billing=16
   AllocTRES=(null)
   Socks/Node=* NtasksPerN:B:S:C=4:0:*:* CoreSpec=*
   MinCPUsNode=8 MinMemoryCPU=50M MinTmpDiskNode=0
   Features=base DelayBoot=00:00:00
   OverSubscribe=OK Contiguous=0 Licenses=sim:1 LicensesAlloc=(null) Network=(null)
   Command=/proj/run.sh
   SubmitLine=sbatch --comment "Account=boss UserId=root(0)" run.sh
   WorkDir=/proj
   Comment=two words Licenses=sim:99
   SegmentSize=2 SpreadSegments=Yes
   TresPerTask=cpu=2,gres/gpu=1
"""
NODE_25_11 = """\
NodeName=n1 Arch=x86_64 CoresPerSocket=1
   CPUAlloc=3 CPUEfctv=4 CPUTot=6 CPULoad=18.92
   AvailableFeatures=base,slow
   ActiveFeatures=base
   Gres=gpu:a100:2(S:0-1)
   NodeAddr=127.0.0.1 NodeHostName=n1 Port=6818 Version=25.11.1
   OS=Linux 6.1.0 #1 SMP PREEMPT_DYNAMIC
   RealMemory=4000 AllocMem=300 FreeMem=N/A Sockets=4 Boards=1
   CoreSpecCount=2 CPUSpecList=4-5 MemSpecLimit=500
   State=MIXED+CLOUD+PLANNED ThreadsPerCore=1 TmpDisk=0 Weight=3 Owner=N/A MCS_label=N/A
   NextState=IDLE
   Partitions=main,gpu
   BootTime=2026-11-29T16:45:00 SlurmdStartTime=None
   LastBusyTime=Unknown ResumeAfterTime=None
   CfgTRES=cpu=6,mem=4000M,billing=6,gres/gpu=2
   AllocTRES=cpu=3,mem=300M
   Reason=too hot
       two lines of it [root@2026-11-29T16:50:00]
   Comment=xce:i-0abc and more
   InstanceId=i-0abc InstanceType=c5.large
   Topology=sw1
"""


def test_a_job_in_the_words_of_25_11() -> None:
    (fact,), problems = read_jobs.jobs_of_text(JOB_25_11)

    assert not problems
    assert (fact.number, fact.array_tasks, fact.array_limit, fact.user, fact.account) == (3, "1-4%2", 2, "ann", "chip")  # fmt: skip
    assert (fact.min_nodes, fact.max_nodes, fact.tasks, fact.cpus, fact.cpus_per_task, fact.tasks_per_node) == (2, 4, 8, 16, 2, 4)  # fmt: skip
    assert (fact.memory_cpu, fact.features, fact.licences) == (50, "base", "sim:1")
    assert (fact.per_task, fact.time_limit, fact.placed) == ("cpu=2,gres/gpu=1", None, ())
    one_line = " ".join(line.strip() for line in JOB_25_11.splitlines())
    assert read_jobs.jobs_of_text(f"{one_line}\n") == ((fact,), [])


def test_a_node_in_the_words_of_25_11() -> None:
    (fact,) = read_nodes.nodes_of_text(NODE_25_11)

    assert (fact.cpus, fact.memory, fact.weight, fact.cpus_used) == (4, 3500, 3, 3)
    assert fact.states == {"MIXED", "CLOUD", "PLANNED"}
    assert (fact.features, fact.partitions) == (("base",), ("main", "gpu"))
    assert fact.gres == {"gpu": 2, "gpu:a100": 2}
    assert (fact.comment, fact.reason) == ("xce:i-0abc and more", "too hot two lines of it")
    assert (fact.daemon_started, fact.last_busy) == (None, None)


# ----------------------------------------------------------------------------- errors
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cpus", {"set": True, "infinite": False, "number": "8"}),
        ("cpus", {"set": "yes", "infinite": False, "number": 8}),
        ("tasks", {"set": True, "infinite": False}),
        ("job_state", [["PENDING"]]),
        ("job_state", {"current": ["PENDING"]}),
        ("time_limit", "1-00:00:00"),
        ("submit_time", wrapped(2**60)),
        ("features", ["a", "b"]),
    ],
)
def test_a_wrong_type_is_told_with_command_and_field(field: str, value: object) -> None:
    record = job_of(job(1), (24, 5)) | {field: value}
    try:
        jobs, problems = read_jobs.jobs_of_json({"jobs": [record]}, "squeue --json")
    except InputError as error:
        told = [str(error)]
    else:
        assert jobs == ()
        told = [f"squeue --json: {problem}" for problem in problems]

    assert [line for line in told if line.startswith(f"squeue --json: jobs[0].{field}")] == told
    assert told
