"""The made-up Slurm as newer versions print it: wrapped numbers, lists of states, resources node by node, nodes by scontrol.

After the data_parser plugins v0.0.39 (23.02), v0.0.40 (23.11) and v0.0.43 (25.05), and what a 23.11 and a 25.05 printed.
"""

import json
from collections.abc import Sequence
from typing import Any

from tests.slurm.made import Slurm
from xce.adapters.schedulers.slurm.lists import host_names
from xce.domain.errors import TransientError

#: Fields of a job that are a number with "set" and "infinite" around it, in all of these versions.
_WRAPPED = (
    "array_job_id", "array_task_id", "array_max_tasks", "cpus", "cpus_per_task", "het_job_id", "het_job_offset", "max_nodes",
    "memory_per_cpu", "memory_per_node", "minimum_cpus_per_node", "node_count", "priority", "tasks", "tasks_per_node", "time_limit",
)  # fmt: skip
#: These as well from 23.11 on.
_TIMES = ("submit_time", "eligible_time", "start_time")
_NODE_TIMES = ("boot_time", "slurmd_start_time", "last_busy")


def wrapped(number: int | None, *, infinite: bool = False) -> dict[str, Any]:
    return {"set": number is not None, "infinite": infinite, "number": number or 0}


def job_of(record: dict[str, Any], version: tuple[int, int]) -> dict[str, Any]:
    """Return a job of ``made`` as a version prints it."""
    found = {"cron": "", "hold": False, "oversubscribe": False, **record}
    for name in _WRAPPED:
        found[name] = wrapped(record.get(name))
    if record.get("time_limit") is None:
        found["time_limit"] = wrapped(None, infinite=True)
    if version >= (23, 11):
        for name in _TIMES:
            found[name] = wrapped(record.get(name, 0))
    else:
        found |= {name: record.get(name, 0) for name in _TIMES}
    found["job_state"] = record["job_state"].split("+")
    if version < (23, 11):
        found["job_state"] = record["job_state"].split("+")[0]
    shared = record.get("shared")
    found["shared"] = [shared] if shared else []
    found["exclusive"] = [{"none": "true"}.get(shared, shared)] if shared else []
    if "job_resources" in record:
        found["job_resources"] = _resources(record["job_resources"], version)
    if version >= (25, 5):
        found["licenses_allocated"] = record.get("licenses", "")
        del found["exclusive"], found["oversubscribe"]
    return found


def _resources(record: dict[str, Any], version: tuple[int, int]) -> dict[str, Any]:
    places = record["allocated_nodes"]
    if version < (24, 5):
        cores = [
            {"0": {"cores": {str(n): "allocated" for n in range(one["cpus_used"])}}}
            for one in places
        ]
        return {
            "nodes": record["nodes"], "allocated_cores": 0, "allocated_cpus": 0, "allocated_hosts": len(places),
            "allocated_nodes": [
                {"sockets": core, "nodename": one["nodename"], "cpus_used": 0, "memory_used": 0, "memory_allocated": one["memory_allocated"]}
                for one, core in zip(places, cores, strict=True)
            ],
        }  # fmt: skip
    return {
        "select_type": ["CORE", "MEMORY"],
        "nodes": {
            "count": len(places), "select_type": ["ONE_ROW"], "list": record["nodes"], "whole": False,
            "allocation": [
                {
                    "index": index, "name": one["nodename"], "cpus": {"count": one["cpus_used"], "used": 0},
                    "memory": {"used": 0, "allocated": one["memory_allocated"]},
                    "sockets": [{"index": n, "cores": [{"index": 0, "status": ["ALLOCATED"]}]} for n in range(one["cpus_used"])],
                }
                for index, one in enumerate(places)
            ],
        },
        "cpus": sum(one["cpus_used"] for one in places),
        "threads_per_core": wrapped(None),
    }  # fmt: skip


def node_of(record: dict[str, Any], version: tuple[int, int]) -> dict[str, Any]:
    """Return a node of ``made`` as a version prints it."""
    found: dict[str, Any] = {
        **record,
        "state": [record["state"].upper(), *record["state_flags"]],
        "features": [name for name in record["active_features"].split(",") if name],
        "active_features": [name for name in record["active_features"].split(",") if name],
        "effective_cpus": record["cpus"],
        "next_state_after_reboot": ["INVALID"],
        "owner": "",
        "free_mem": wrapped(1000),
        "external_sensors": {},
        "reservation": "",
    }
    del found["state_flags"]
    if version >= (23, 11):
        found |= {name: wrapped(record[name]) for name in _NODE_TIMES}
    return found


class Newer(Slurm):
    """Prints as a newer version does; jobs and nodes are given as those of 22.05."""

    def __init__(
        self,
        version: tuple[int, int],
        jobs: Sequence[dict[str, Any]] = (),
        nodes: Sequence[dict[str, Any]] = (),
    ) -> None:
        super().__init__(jobs, nodes)
        self.version = version
        release = f"{version[0]}.{version[1]:02}.4"
        self.text["config"] = self.text["config"].replace("22.05.8", release)
        self._around: dict[str, Any] = {
            "meta": {
                "plugin": {"data_parser": "data_parser/v0.0.4x"},
                "slurm": {"version": {"major": str(version[0])}, "release": release},
            },
            "last_update": wrapped(1796003217),
            "errors": [],
            "warnings": [{"description": "accounting storage is disabled", "source": ""}],
        }

    def __call__(self, command: Sequence[str]) -> bytes:
        words = tuple(command)
        if words == ("squeue", "--json"):
            self.called.append(words)
            jobs = [job_of(one, self.version) for one in self.jobs]
            return json.dumps({"jobs": jobs, **self._around}).encode()
        if words == ("scontrol", "show", "node", "--json"):
            self.called.append(words)
            nodes = [node_of(one, self.version) for one in self.nodes]
            return json.dumps({"nodes": nodes, **self._around}).encode()
        if words == ("sinfo", "--json"):
            self.called.append(words)
            names = sorted({name for one in self.nodes for name in host_names(one["name"])})
            return json.dumps({"sinfo": [{"nodes": {"nodes": names}}], **self._around}).encode()
        if "--json" in words:
            raise TransientError(f"{words[0]}: unrecognized option '--json'")
        return super().__call__(command)
