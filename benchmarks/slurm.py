"""What reading a large Slurm costs: ``python -m benchmarks.slurm [--jobs N] [--nodes N] [--newer] [--json]``.

The JSON that squeue and sinfo of Slurm 22.05 print, field for field, of 20,000 jobs that wait and 500 full nodes, is read and computed: decoded,
checked, made a snapshot, and put through a session with a catalog. CPU seconds of this process, the best of several; the commands themselves
run in processes of their own. ``--newer``: as 25.05 prints them, twice as long: each number in an object of its own.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

from xce.adapters.schedulers.slurm.build import view_of
from xce.adapters.schedulers.slurm.reader import Reader
from xce.domain.formats.snapshot import Catalog, Snapshot, Template
from xce.domain.scheduling.session import run_session

NOW: Final = datetime(2026, 11, 29, 17, 0, tzinfo=UTC)
ROUNDS: Final = 3
_SECONDS: Final = int(NOW.timestamp())
#: Forty shapes: cpus, MiB a cpu, feature, licence.
SHAPES: Final = tuple(
    (cpus, memory, feature, licence)
    for cpus in (1, 2, 4, 8)
    for memory in (1000, 4000)
    for feature in ("", "big")
    for licence in ("", "sim@srv:1")
) + tuple((16, 1000 + 100 * n, "big", "") for n in range(8))
_META: Final = {
    "plugin": {"type": "openapi/v0.0.38", "name": "Slurm OpenAPI v0.0.38"},
    "Slurm": {"version": {"major": 22, "micro": 8, "minor": 5}, "release": "22.05.8"},
}
#: Fields of a job record that do not differ between these jobs.
_SAME: Final[dict[str, Any]] = {
    "account": "chip", "accrue_time": _SECONDS, "admin_comment": "", "array_job_id": 0, "array_task_id": None, "array_max_tasks": 0,
    "array_task_string": "", "association_id": 2, "batch_features": "", "batch_flag": True, "batch_host": "", "flags": ["JOB_CPUS_SET"],
    "burst_buffer": "", "burst_buffer_state": "", "cluster": "ca", "cluster_features": "", "command": "/proj/run.sh", "comment": "",
    "container": "", "contiguous": False, "core_spec": None, "thread_spec": None, "cores_per_socket": None, "billable_tres": None,
    "cpus_per_task": None, "cpu_frequency_minimum": None, "cpu_frequency_maximum": None, "cpu_frequency_governor": None,
    "cpus_per_tres": "", "deadline": 0, "delay_boot": 0, "dependency": "", "derived_exit_code": 0, "eligible_time": _SECONDS,
    "end_time": 0, "excluded_nodes": "", "exit_code": 0, "federation_origin": "", "federation_siblings_active": "",
    "federation_siblings_viable": "", "gres_detail": [], "group_id": 100, "group_name": "users", "last_sched_evaluation": _SECONDS,
    "max_cpus": 0, "max_nodes": 0, "mcs_label": "", "memory_per_tres": "", "name": "regression", "nodes": "", "nice": None,
    "tasks_per_core": None, "tasks_per_node": 0, "tasks_per_socket": None, "tasks_per_board": 0, "node_count": 1, "tasks": 1,
    "het_job_id": 0, "het_job_id_set": "", "het_job_offset": 0, "partition": "main", "prefer": "", "memory_per_node": None,
    "minimum_tmp_disk_per_node": 0, "preempt_time": 0, "pre_sus_time": 0, "profile": None, "qos": "normal", "reboot": False,
    "required_nodes": "", "requeue": True, "resize_time": 0, "restart_cnt": 0, "resv_name": "", "shared": None,
    "show_flags": ["SHOW_ALL", "SHOW_DETAIL", "SHOW_LOCAL"], "sockets_per_board": 0, "sockets_per_node": None, "start_time": 0,
    "state_description": "", "standard_error": "", "standard_input": "/dev/null", "standard_output": "/proj/%j.out",
    "suspend_time": 0, "system_comment": "", "time_limit": 600, "time_minimum": 0, "threads_per_core": None, "tres_bind": "",
    "tres_freq": "", "tres_per_job": "", "tres_per_node": "", "tres_per_socket": "", "tres_per_task": "", "tres_alloc_str": "",
    "wckey": "", "current_working_directory": "/proj",
}  # fmt: skip
_NODE: Final[dict[str, Any]] = {
    "architecture": "x86_64", "burstbuffer_network_address": "", "boards": 1, "boot_time": _SECONDS - 9000, "comment": "", "cores": 8,
    "cpu_binding": 0, "cpu_load": 1600, "extra": "", "free_memory": 22464, "cpus": 16, "last_busy": _SECONDS, "gres": "",
    "gres_drained": "N/A", "gres_used": "", "mcs_label": "", "next_state_after_reboot": "invalid", "address": "127.0.0.1",
    "hostname": "ctl", "state": "allocated", "state_flags": [], "next_state_after_reboot_flags": [], "operating_system": "Linux 6.1.0",
    "owner": None, "partitions": ["main"], "port": 6818, "real_memory": 64000, "reason": "", "reason_changed_at": 0,
    "reason_set_by_user": None, "slurmd_start_time": _SECONDS - 9000, "sockets": 2, "threads": 1, "temporary_disk": 0, "weight": 1,
    "tres": "cpu=16,mem=64000M,billing=16", "slurmd_version": "22.05.8", "alloc_memory": 64000, "alloc_cpus": 16, "idle_cpus": 0,
    "tres_used": "cpu=16,mem=64000M", "tres_weighted": 16.0,
}  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """CPU seconds, and what was read."""

    jobs: int
    nodes: int
    mebibytes: float
    decode_s: float
    read_s: float
    session_s: float
    total_s: float
    hosts_wanted: int


class Printed:
    """Commands that print what was made before; JSON in the layout of squeue."""

    def __init__(self, jobs: int, nodes: int, *, newer: bool = False) -> None:
        running = [running_job(number) for number in range(nodes)]
        waiting = [waiting_job(nodes + number) for number in range(jobs)]
        made = [node(number) for number in range(nodes)]
        self._of: dict[str, bytes] = {
            "squeue": _document("jobs", running + waiting, newer=newer),
            "sinfo": _document("nodes", made, newer=False),
            "node": _document("nodes", made, newer=newer),
            "config": b"ClusterName = ca\nSLURM_VERSION = %s\nSelectTypeParameters = CR_CORE_MEMORY\n"
            b"AccountingStorageEnforce = associations,limits,qos\n"
            % (b"25.05.3" if newer else b"22.05.8"),
            "partition": b"PartitionName=main QoS=N/A DefaultTime=NONE MaxTime=UNLIMITED PriorityTier=1 OverSubscribe=NO "
            b"Nodes=n[0-499] State=UP\n",
            "lic": b"LicenseName=sim@srv Total=100 Used=0 Free=100 Reserved=0 Remote=yes\n",
            "reservation": b"No reservations in the system\n",
            "qos": b"Name|GrpTRES|MaxJobsPU\nnormal||\nsmall|cpu=8|4\n",
            "assoc": b"Cluster|Account|User|Partition|ParentName|GrpTRES|GrpJobs|MaxJobs\nca|chip||||||\n",
        }

    @property
    def size(self) -> int:
        """Return the bytes of jobs and nodes."""
        return len(self._of["squeue"]) + len(self._of["sinfo"])

    def __call__(self, command: Sequence[str]) -> bytes:
        """Return what a command prints."""
        return next(text for word, text in self._of.items() if word in command)


def _document(name: str, entries: list[dict[str, Any]], *, newer: bool) -> bytes:
    if newer:
        entries = [_as_25_05(one) for one in entries]
    return json.dumps({"meta": _META, "errors": [], name: entries}, indent=2).encode()


def _as_25_05(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record as 25.05 writes it."""
    found = {name: _wrapped(value) for name, value in record.items()}
    for name in ("job_state", "state"):
        if name in record:
            found[name] = [record[name].upper()]
    for name in ("cpus", "alloc_cpus", "alloc_memory", "real_memory", "threads", "weight"):
        if "architecture" in record:
            found[name] = record[name]
    if "architecture" in record:
        found["features"] = found["active_features"] = [record["features"]]
    elif "job_resources" in record:
        (place,) = record["job_resources"]["allocated_nodes"]
        cores = [{"index": n, "status": ["ALLOCATED"]} for n in range(8)]
        one = {
            "index": 0, "name": place["nodename"], "cpus": {"count": 16, "used": 0},
            "memory": {"used": 0, "allocated": place["memory_allocated"]},
            "sockets": [{"index": n, "cores": cores} for n in range(2)],
        }  # fmt: skip
        found["job_resources"] = {"nodes": {"count": 1, "list": place["nodename"], "allocation": [one]}}  # fmt: skip
    else:
        found["job_resources"] = {}
    found["shared"] = []
    return found


def _wrapped(value: object) -> object:
    """Return a number, or that there is none, in its object; anything else as it is."""
    if value is None or type(value) is int:
        return {"set": value is not None, "infinite": False, "number": value or 0}
    return value


def waiting_job(number: int) -> dict[str, Any]:
    """Return the record of a job that waits."""
    cpus, memory, feature, licence = SHAPES[number % len(SHAPES)]
    return _SAME | {
        "job_id": number + 1,
        "job_state": "PENDING",
        "state_reason": "Resources" if number % 500 == 0 else "Priority",
        "cpus": cpus,
        "minimum_cpus_per_node": cpus,
        "memory_per_cpu": memory,
        "features": feature,
        "licenses": licence,
        "priority": 4294901759 - number,
        "submit_time": _SECONDS - 30000 + number,
        "tres_req_str": f"cpu={cpus},mem={cpus * memory}M,node=1,billing={cpus}",
        "user_id": 1000 + number % 50,
        "user_name": f"u{number % 50}",
    }


def running_job(number: int) -> dict[str, Any]:
    """Return the record of a job that fills a node."""
    name = f"n{number}"
    cores = {str(n): "allocated" for n in range(8)}
    place = {
        "sockets": {"0": {"cores": cores}, "1": {"cores": cores}},
        "nodename": name,
        "cpus_used": 0,
        "memory_used": 0,
        "memory_allocated": 64000,
    }
    return waiting_job(number) | {
        "job_state": "RUNNING",
        "state_reason": "None",
        "nodes": name,
        "batch_host": name,
        "cpus": 16,
        "licenses": "",
        "start_time": _SECONDS - 600,
        "tres_alloc_str": "cpu=16,mem=64000M,node=1,billing=16",
        "job_resources": {
            "nodes": name,
            "allocated_cores": 16,
            "allocated_hosts": 1,
            "allocated_nodes": [place],
        },
    }


def node(number: int) -> dict[str, Any]:
    """Return the record of a node that is full."""
    feature = "big" if number % 2 else "base"
    return _NODE | {"name": f"n{number}", "features": feature, "active_features": feature}


def with_catalog(snapshot: Snapshot) -> Snapshot:
    """Return a view with two templates to obtain."""
    templates = tuple(
        Template.model_validate(
            {
                "id": name,
                "attributes": {name: True},
                "provides": {"slots": 16, "mem": 64000},
                "allowed": 300,
                "price_per_hour": price,
            }
        )
        for name, price in (("base", "0.40"), ("big", "0.50"))
    )
    return snapshot.model_copy(update={"catalog": Catalog(templates=templates)})


def measure(jobs: int, nodes: int, *, newer: bool = False) -> Measured:
    """Measure one size; the best of several rounds."""
    printed = Printed(jobs, nodes, newer=newer)
    best: Measured | None = None
    for _ in range(ROUNDS):
        reader = Reader(printed)
        begun = time.process_time()
        readings = reader.read(NOW)
        decoded = time.process_time()
        view = view_of(readings)
        made = time.process_time()
        result = run_session(with_catalog(view.snapshot))
        ended = time.process_time()
        assert len(view.snapshot.pending) == jobs, "every job is read"
        assert not view.troubles, view.troubles
        found = Measured(
            jobs=jobs,
            nodes=nodes,
            mebibytes=round(printed.size / 1024**2, 1),
            decode_s=round(decoded - begun, 3),
            read_s=round(made - decoded, 3),
            session_s=round(ended - made, 3),
            total_s=round(ended - begun, 3),
            hosts_wanted=sum(line.count for line in result.demand.hosts),
        )
        if best is None or found.total_s < best.total_s:
            best = found
    assert best is not None
    return best


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000, help="that wait")
    parser.add_argument("--nodes", type=int, default=500, help="all full")
    parser.add_argument("--newer", action="store_true", help="as 25.05 prints them")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    chosen = parser.parse_args()
    found = measure(chosen.jobs, chosen.nodes, newer=chosen.newer)
    if chosen.json:
        print(json.dumps(asdict(found), indent=1))
        return
    print(f"{found.jobs} waiting jobs, {found.nodes} nodes: {found.mebibytes} MiB of JSON")
    print(f"decoded and checked   {found.decode_s:.3f} s")
    print(f"made a snapshot       {found.read_s:.3f} s")
    print(f"session with catalog  {found.session_s:.3f} s, {found.hosts_wanted} hosts wanted")
    print(f"together              {found.total_s:.3f} s of CPU; wanted: under 3")


if __name__ == "__main__":
    main()
