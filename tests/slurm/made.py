"""A made-up Slurm: records as squeue and sinfo write them, with only what a test is about."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from xce.adapters.schedulers.slurm.build import View, view_of
from xce.adapters.schedulers.slurm.reader import Reader

NOW = datetime(2026, 11, 29, 17, 0, tzinfo=UTC)
SECONDS = int(NOW.timestamp())
CONFIG = (
    "ClusterName = ca\nSLURM_VERSION = 22.05.8\nSelectTypeParameters = CR_CORE_MEMORY\n"
    "AccountingStorageEnforce = associations,limits,qos\n"
)


def job(number: int, **changes: Any) -> dict[str, Any]:
    """Return a job that waits for one cpu and 100 MiB."""
    return {
        "job_id": number, "job_state": "PENDING", "state_reason": "Priority", "user_name": "ann", "account": "chip",
        "partition": "main", "qos": "normal", "priority": 1000, "submit_time": SECONDS - 100, "eligible_time": SECONDS - 100,
        "cpus": 1, "tasks": 1, "node_count": 1, "max_nodes": 0, "memory_per_cpu": 100, "memory_per_node": None,
        "minimum_cpus_per_node": 1, "time_limit": 10, "tres_req_str": "cpu=1,mem=100M,node=1,billing=1",
    } | changes  # fmt: skip


def running(number: int, node: str, cpus: int = 1, **changes: Any) -> dict[str, Any]:
    """Return a job that runs on a node."""
    place = {"nodename": node, "cpus_used": cpus, "memory_allocated": 100 * cpus}
    return job(
        number,
        job_state="RUNNING",
        state_reason="None",
        nodes=node,
        cpus=cpus,
        start_time=SECONDS - 50,
        job_resources={"nodes": node, "allocated_nodes": [place]},
        **changes,
    )


def node(name: str, cpus: int = 4, **changes: Any) -> dict[str, Any]:
    """Return an idle node."""
    return {
        "name": name, "state": "idle", "state_flags": [], "cpus": cpus, "threads": 1, "real_memory": 4000, "partitions": ["main"],
        "active_features": "base", "gres": "", "boot_time": SECONDS - 900, "slurmd_start_time": SECONDS - 890, "last_busy": SECONDS - 500,
        "alloc_cpus": 0, "alloc_memory": 0, "weight": 1, "reason": "", "comment": "",
    } | changes  # fmt: skip


class Slurm:
    """Commands that print what a test put there; what was called is kept."""

    def __init__(
        self, jobs: Sequence[dict[str, Any]] = (), nodes: Sequence[dict[str, Any]] = ()
    ) -> None:
        self.called: list[tuple[str, ...]] = []
        self.fails: dict[str, Exception] = {}
        self.text = {
            "config": CONFIG,
            "partition": "PartitionName=main QoS=N/A MaxTime=UNLIMITED PriorityTier=1 OverSubscribe=NO Nodes=ALL State=UP\n",
            "lic": "LicenseName=sim Total=4 Used=0 Free=4 Reserved=0 Remote=no\n",
            "reservation": "No reservations in the system\n",
            "qos": "Name|GrpTRES|GrpJobs|MaxTRESPU|MaxJobsPU|MaxTRESPA|MaxJobsPA\nnormal||||||\n",
            "assoc": "Cluster|Account|User|Partition|ParentName|GrpTRES|GrpJobs|MaxJobs\nca|chip||||||\n",
        }
        self.jobs = list(jobs)
        self.nodes = list(nodes) or [node("n1")]

    def __call__(self, command: Sequence[str]) -> bytes:
        self.called.append(tuple(command))
        for word, error in self.fails.items():
            if word in command:
                raise error
        if command[0] == "squeue":
            return json.dumps({"jobs": self.jobs}).encode()
        if command[0] == "sinfo":
            return json.dumps({"nodes": self.nodes}).encode()
        if command[1] in ("update", "delete", "requeue"):
            return b""
        return next(text for word, text in self.text.items() if word in command).encode()

    def view(self) -> View:
        """Return what is read of it."""
        return view_of(Reader(self).read(NOW))
