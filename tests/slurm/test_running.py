"""What runs, and what of it has changed between two readings: each job is counted once, where it is."""

from typing import Any

from tests.slurm.made import CONFIG, SECONDS, Slurm, job, node, running
from tests.slurm.test_view import demand_of, one
from xce.domain.scheduling.session import run_session


def test_what_runs_where_is_said_node_by_node_in_every_version() -> None:
    cores = {"0": {"cores": {"0": "allocated", "1": "allocated"}}}
    old: dict[str, Any] = {
        "allocated_nodes": [
            {"nodename": "n1", "sockets": cores, "cpus_used": 0, "memory_allocated": 300}
        ]
    }
    new: dict[str, Any] = {
        "nodes": {
            "count": 1, "list": "n1",
            "allocation": [{"name": "n1", "cpus": {"count": 4, "used": 4}, "memory": {"used": 0, "allocated": 300}, "sockets": []}],
        }
    }  # fmt: skip
    for resources in (old, new):
        fact = running(1, "n1", 4) | {"job_resources": resources}
        (found,) = Slurm([fact]).view().snapshot.running
        assert found.hosts[0].uses == {"slots": 4, "mem": 300}  # two threads a core in the old one


def test_what_is_not_said_node_by_node_is_divided() -> None:
    fact = running(1, "n[1-2]", 5) | {
        "job_resources": None,
        "tres_alloc_str": "cpu=5,mem=1G,node=2,gres/gpu=2",
    }
    nodes = [node("n1", gres="gpu:2"), node("n2", gres="gpu:2")]
    (found,) = Slurm([fact], nodes).view().snapshot.running

    assert [use.uses for use in found.hosts] == [{"slots": 3, "mem": 512, "gpu": 1}] * 2


def test_licences_that_others_use_are_used_elsewhere() -> None:
    slurm = Slurm([running(1, "n1", licenses="sim:1")])
    slurm.text["lic"] = (
        "LicenseName=sim Total=9 Used=4 Free=3 Reserved=2 Remote=yes\nLicenseName=odd Total=3\n"
    )
    shared = {one.name: one.used_elsewhere for one in slurm.view().snapshot.shared}

    assert shared == {"sim": 3 + 2, "odd": None}


def test_numbers_of_newer_versions_are_read() -> None:
    def wrapped(number: int) -> dict[str, Any]:
        return {"set": True, "infinite": False, "number": number}

    new = {
        "job_state": ["PENDING"], "cpus": wrapped(8), "tasks": wrapped(2), "node_count": wrapped(2), "max_nodes": wrapped(2),
        "memory_per_cpu": {"set": False, "infinite": False, "number": 0}, "memory_per_node": wrapped(2048), "priority": wrapped(5),
        "submit_time": wrapped(SECONDS - 100), "time_limit": {"set": False, "infinite": True, "number": 0}, "shared": [],
        "array_task_id": {"set": False, "infinite": False, "number": 0}, "tres_req_str": "cpu=8,node=2",
    }  # fmt: skip
    found = one(**new)

    assert found.resreq == "rusage[slots=4, mem=2048MiB] span[hosts=-1]"
    assert (found.priority, found.run_limit) == (5, None)


def test_f02_jobs_that_run_by_now_are_not_pending_in_the_same_view() -> None:
    """The nodes are the older reading: two jobs have started since, and are on their hosts in the younger one."""
    jobs = [running(1, "n1", 4), running(2, "n2", 4), job(3, cpus=4), job(4, cpus=4)]
    view = Slurm(jobs, [node(f"n{number}") for number in range(1, 5)]).view()

    assert demand_of(view) == 0
    assert len(run_session(view.snapshot).allocations) == 2


def test_a_job_of_two_readings_is_counted_once_as_the_newer_one_has_it() -> None:
    jobs = [job(1, cpus=4), job(2, cpus=4), running(1, "n1", 4)]
    view = Slurm(jobs, [node("n1"), node("n2")]).view()

    assert [one.id for one in view.snapshot.running] == ["1"]
    assert [one.id for one in view.snapshot.pending] == ["2"]
    assert demand_of(view) == 0


def test_a_node_that_is_busy_with_a_job_we_are_not_shown_is_neither_idle_nor_full() -> None:
    slurm = Slurm([job(1, cpus=4)], [node("n1", state="allocated", alloc_cpus=4)])
    view = slurm.view()

    assert [(one.id, one.hosts[0].uses) for one in view.snapshot.running] == [("?n1", {})]
    assert view.snapshot.hosts[0].idle_since is None
    assert demand_of(view) == 0
    assert view.troubles == ()
    slurm.text["config"] = f"{CONFIG}PrivateData = jobs,usage\n"
    assert "PrivateData hides jobs" in str(slurm.view().troubles[0][1])


def test_a_job_without_a_priority_is_not_held() -> None:
    assert not one(priority=None).held
    assert one(priority=0).held


def test_cpus_that_are_not_in_their_field_are_taken_from_the_request() -> None:
    assert one(cpus=None, tres_req_str="cpu=6,node=1").resreq == "rusage[slots=6, mem=600MiB]"


def test_a_job_for_at_most_so_many_nodes_is_spread_no_wider() -> None:
    found = one(cpus=4, tasks=4, node_count=2, max_nodes=2, tres_req_str="cpu=4,node=1")

    assert found.resreq == "rusage[mem=100MiB] span[ptile=2]"
