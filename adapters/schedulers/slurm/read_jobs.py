"""Job records, from ``squeue --json``, ``/jobs`` of slurmrestd, or ``scontrol -d -o show job``."""

import re
from collections.abc import Callable
from typing import Final

from xce.adapters.schedulers.slurm import text
from xce.adapters.schedulers.slurm.facts import RUNS, WAITS, JobFact, Placed
from xce.adapters.schedulers.slurm.fields import (
    Fields,
    Path,
    WrongFieldError,
    listed,
)
from xce.adapters.schedulers.slurm.lists import amounts, array_tasks, host_names
from xce.domain.errors import InputError, Problem
from xce.domain.formats.base import path_of

JOBS_TEXT: Final = "scontrol -d -o show job"
_ENDED: Final = frozenset({"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY", "REVOKED"})  # fmt: skip
_KNOWN: Final = _ENDED | RUNS | WAITS
_BIG: Final = 2**31


def jobs_of_json(document: object, command: str) -> tuple[tuple[JobFact, ...], list[Problem]]:
    """Return the jobs that wait or run, and what is wrong with jobs that wait: those are left out.

    Raises:
        InputError: no list of jobs, or a job that may run cannot be read: what it holds would seem free.
    """
    try:
        jobs = listed(document, "jobs")
    except WrongFieldError as error:
        raise InputError(command, [error.problem]) from None
    return _all(jobs, command)


def jobs_of_text(output: str) -> tuple[tuple[JobFact, ...], list[Problem]]:
    """Return the jobs of ``scontrol -d -o show job``, as ``jobs_of_json`` does.

    Raises:
        InputError: a job that may run cannot be read.
    """
    found: list[Fields] = []
    broken: list[Problem] = []
    for place, record in enumerate(text.records(output, "JobId", has="JobState=")):
        path: Path = ("jobs", place)
        if not record.get("JobState"):  # never so; whatever it is, a node with it counts as busy
            broken.append(Problem(f"job {record['JobId']} has no JobState", path_of(path)))
            continue
        try:
            found.append(Fields(_document(record), path))
        except ValueError as error:
            problem = Problem(f"job {record['JobId']}: {error}", path_of(path))
            if record.get("JobState") != "PENDING":
                raise InputError(JOBS_TEXT, [problem]) from None
            broken.append(problem)
    jobs, problems = _all(found, JOBS_TEXT)
    return jobs, broken + problems


def _all(jobs: list[Fields], command: str) -> tuple[tuple[JobFact, ...], list[Problem]]:
    found: list[JobFact] = []
    problems: list[Problem] = []
    for fields in jobs:
        try:
            states = frozenset(word.upper() for word in fields.words("job_state"))
            if not states:  # one that has nodes may run
                states = frozenset({"RUNNING" if fields.text("nodes") else "PENDING"})
            if states <= _ENDED:
                continue
            if states.isdisjoint(
                _KNOWN
            ):  # a state of a version to come: one that has nodes may run
                problems.append(_unknown_state(fields))
                if not fields.text("nodes"):
                    continue
                states |= {"RUNNING"}
            try:
                found.append(_job(fields, states))
            except WrongFieldError as error:
                if "PENDING" not in states:
                    raise
                problems.append(error.problem)
        except WrongFieldError as error:
            raise InputError(command, [error.problem]) from None
    return tuple(found), problems


def _unknown_state(fields: Fields) -> Problem:
    state = "+".join(fields.words("job_state"))
    return Problem(f"the state {state!r} is not known", path_of((*fields.path, "job_state")))


def _job(fields: Fields, states: frozenset[str]) -> JobFact:
    number = fields.whole("job_id")
    if not number:
        if "PENDING" in states:
            raise WrongFieldError((*fields.path, "job_id"), number, "a job number")
        number = -1 - int(fields.path[-1])  # what runs holds nodes, whatever it is called
    asked = amounts(fields.text("tres_req_str"))
    node_count = fields.whole("node_count") or 1
    max_nodes = fields.whole("max_nodes") or None
    wanted = asked.get("node", "")
    if wanted.isdigit() and int(
        wanted
    ):  # the count alone may be Slurm's own guess of how many it takes
        node_count = int(wanted)
    told = asked.get("cpu", "")
    cpus = fields.whole("cpus") or (int(told) if told.isdigit() else 1)
    tasks = fields.whole("tasks") or 1
    for name, amount in (("cpus", cpus), ("tasks", tasks), ("node_count", node_count)):
        if amount >= _BIG:
            raise WrongFieldError((*fields.path, name), amount, "a count")
    index = fields.whole("array_task_id")
    array_id = fields.whole("array_job_id") or 0
    indexes = fields.text("array_task_string")
    per_node = fields.text("tres_per_node")
    return JobFact(
        number=number,
        array_id=array_id,
        array_index=index if array_id else None,
        array_tasks=indexes if array_id and index is None else "",
        array_limit=fields.whole("array_max_tasks") or None,
        het_id=fields.whole("het_job_id") or 0,
        het_offset=fields.whole("het_job_offset") or 0,
        user=fields.text("user_name") or str(fields.whole("user_id") or 0),
        account=fields.text("account"),
        partitions=tuple(name for name in fields.text("partition").split(",") if name),
        qos=fields.text("qos"),
        states=states,
        reason=fields.text("state_reason"),
        words=fields.text("state_description"),
        dependency=fields.text("dependency"),
        priority=fields.whole("priority"),
        submitted=fields.time("submit_time"),
        eligible=fields.time("eligible_time"),
        started=fields.time("start_time"),
        time_limit=fields.whole("time_limit"),
        nodes=fields.text("nodes"),
        tasks=tasks,
        cpus=cpus,
        cpus_per_task=fields.whole("cpus_per_task"),
        min_nodes=node_count,
        max_nodes=max_nodes,
        tasks_per_node=fields.whole("tasks_per_node") or 0,
        min_cpus_node=fields.whole("minimum_cpus_per_node") or 1,
        memory_node=_memory_node(fields, asked, node_count),
        memory_cpu=fields.whole("memory_per_cpu"),
        memory_unknown=fields.text("(memory unknown)"),
        features=fields.text("features"),
        required=_names(fields, "required_nodes"),
        excluded=_names(fields, "excluded_nodes"),
        shared=_shared(fields),
        contiguous=fields.yes("contiguous"),
        licences=_licences(fields, states),
        per_node=per_node,
        per_task=fields.text("tres_per_task"),
        per_job=fields.text("tres_per_job"),
        allocated=fields.text("tres_alloc_str"),
        reservation=fields.text("resv_name"),
        placed=() if "PENDING" in states else _placed(fields),
    )


def _memory_node(fields: Fields, asked: dict[str, str], nodes: int) -> int | None:
    """Return MiB of each node; 0: all of it, which is also what Slurm means where neither amount is set."""
    values = fields.values
    if "memory_per_node" not in values and "memory_per_cpu" not in values:
        try:
            total = text.mebibytes(asked.get("mem"))
        except ValueError as error:
            raise WrongFieldError((*fields.path, "tres_req_str"), str(error), "amounts") from None
        return 0 if total is None else -(-total // nodes)
    node = fields.whole("memory_per_node")
    if node is None and fields.whole("memory_per_cpu") is None:
        return None if values.get("(memory unknown)") else 0
    return node


def _names(fields: Fields, name: str) -> str:
    return ",".join(fields.words(name)) if isinstance(fields.values.get(name), list) else fields.text(name)  # fmt: skip


def _shared(fields: Fields) -> str:
    words = {word.lower() for word in fields.words("shared")}
    if fields.has("exclusive"):  # from 24.05 on; "true", "user", "mcs", "topo"
        value = fields.values["exclusive"]
        told = {word.lower() for word in fields.words("exclusive")} if not isinstance(value, bool) else set[str]()  # fmt: skip
        if value is True or told & {"true", "exclusive", "topo"}:
            return "none"
        words |= told
    if words & {"none", "exclusive", "topo"}:
        return "none"
    return "user" if words & {"user", "mcs"} else ""


def _licences(fields: Fields, states: frozenset[str]) -> str:
    """Return what a job asks for; of one that has nodes what it got, where Slurm says so (from 25.05 on)."""
    got = "" if "PENDING" in states else fields.text("licenses_allocated")
    return got or fields.text("licenses")


# ------------------------------------------------------------- where a running job is
def _placed(fields: Fields) -> tuple[Placed, ...]:
    """Return what a job has on each node; the total divided evenly where it is not said node by node."""
    resources = fields.record("job_resources")
    nested = resources.values.get("nodes")
    found: list[Placed] = []
    if isinstance(nested, dict):  # from 24.05 on
        for one in resources.record("nodes").records("allocation"):
            cpus = one.record("cpus").whole("used") or one.record("cpus").whole("count")
            memory = one.record("memory").whole("allocated")
            found.append(Placed(_name(one, "name"), cpus or _cores(one), memory))
    else:
        for one in resources.records("allocated_nodes"):
            key = "nodename" if one.has("nodename") else "name"
            cpus = one.whole("cpus_used") or one.whole("cpus") or _cores(one)
            found.append(Placed(_name(one, key), cpus, one.whole("memory_allocated")))
    try:
        names = host_names(fields.text("nodes"))
    except ValueError as error:
        raise WrongFieldError((*fields.path, "nodes"), str(error), "a host list") from None
    if {one.node for one in found} == set(names):
        cpus = fields.whole("cpus") or 0
        told = sum(one.cpus for one in found)
        if told == cpus or (
            told and cpus % told == 0
        ):  # cores were counted: each has so many threads
            times = cpus // told if told else 1
            return tuple(Placed(one.node, one.cpus * times, one.memory) for one in found)
    return _evenly(fields, names)


def _name(one: Fields, key: str) -> str:
    name = one.text(key)
    if not name:
        raise WrongFieldError((*one.path, key), one.values.get(key), "a node name")
    return name


def _cores(node: Fields) -> int:
    """Return how many cores of a node are allocated: ``sockets.N.cores.N`` in 22.05, lists of states later."""
    sockets = node.values.get("sockets")
    count = 0
    if isinstance(sockets, dict):
        for name in node.record("sockets").values:
            count += len(node.record("sockets").record(name).record("cores").values)
    elif sockets is not None:
        for socket in node.records("sockets"):
            for core in socket.records("cores"):
                words = core.words("status") or core.words("state")
                count += any(word.upper() == "ALLOCATED" for word in words)
    return count


def _evenly(fields: Fields, names: list[str]) -> tuple[Placed, ...]:
    if not names:
        return ()
    cpus = fields.whole("cpus") or len(names)
    try:
        memory = text.mebibytes(amounts(fields.text("tres_alloc_str")).get("mem"))
    except ValueError as error:
        raise WrongFieldError((*fields.path, "tres_alloc_str"), str(error), "amounts") from None
    each = None if memory is None else -(-memory // len(names))
    return tuple(Placed(name, -(-cpus // len(names)), each) for name in names)


# ---------------------------------------------------------------------- the text form
def _document(record: dict[str, str]) -> dict[str, object]:
    """Return a line of ``scontrol -o show job`` as the JSON record that says the same."""
    get = record.get

    def number(name: str, *, first: str = "") -> int | None:
        raw = text.value(get(name))
        try:
            return text.number(re.split(r"[-:]", raw)[0] if first else raw)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    def of(name: str, read: Callable[[str | None], int | None]) -> int | None:
        try:
            return read(get(name))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    nodes = text.value(get("NumNodes"))
    low, _, high = nodes.partition("-")
    memory: dict[str, object] = {}
    for name, key in (("MinMemoryNode", "memory_per_node"), ("MinMemoryCPU", "memory_per_cpu")):
        if name in record:
            try:
                memory[key] = text.mebibytes(record[name])
            except ValueError:
                memory["(memory unknown)"] = record[name]
    indexes = text.value(get("ArrayTaskId"))
    is_one = indexes.isdigit()
    waits = get("JobState") == "PENDING"
    share = {"NO": "none", "EXCLUSIVE": "none", "TOPO": "none", "USER": "user", "MCS": "user"}
    placed = [part.split(" ") for part in get(text.PLACED, "").split(";") if part]
    return {
        "job_id": number("JobId"),
        "array_job_id": number("ArrayJobId"),
        "array_task_id": int(indexes) if is_one else None,
        "array_task_string": "" if is_one else indexes,
        "array_max_tasks": number("ArrayTaskThrottle"),
        "het_job_id": number("HetJobId"),
        "het_job_offset": number("HetJobOffset"),
        "user_name": get("UserId", "").split("(")[0],
        "account": text.value(get("Account")),
        "partition": text.value(get("Partition")),
        "qos": text.value(get("QOS")),
        "job_state": get("JobState"),
        "state_reason": get("Reason", "").split(",")[0],
        "state_description": get("Reason", "").replace("_", " "),
        "dependency": text.value(get("Dependency")),
        "priority": number("Priority"),
        "submit_time": of("SubmitTime", text.seconds_of),
        "eligible_time": of("EligibleTime", text.seconds_of),
        "start_time": of("StartTime", text.seconds_of),
        "time_limit": of("TimeLimit", text.minutes),
        "nodes": text.value(get("NodeList")),
        "node_count": text.number(low or None),
        "max_nodes": text.number(high or None),
        "cpus": number("NumCPUs", first="low"),
        "tasks": number("NumTasks", first="low"),
        "cpus_per_task": number("CPUs/Task"),
        "tasks_per_node": number("NtasksPerN:B:S:C", first="low"),
        "minimum_cpus_per_node": number("MinCPUsNode"),
        **memory,
        "features": text.value(get("Features")),
        "required_nodes": text.value(get("ReqNodeList")),
        "excluded_nodes": text.value(get("ExcNodeList")),
        "shared": share.get(get("OverSubscribe", "")),
        "contiguous": get("Contiguous") == "1",
        "licenses": text.value(get("Licenses")),
        "licenses_allocated": text.value(get("LicensesAlloc")),
        "tres_req_str": text.value(get("ReqTRES") or (get("TRES") if waits else None)),
        "tres_alloc_str": text.value(get("AllocTRES") or (None if waits else get("TRES"))),
        "tres_per_node": text.value(get("TresPerNode")),
        "tres_per_task": text.value(get("TresPerTask")),
        "tres_per_job": text.value(get("TresPerJob")),
        "resv_name": text.value(get("Reservation")),
        "job_resources": {
            "allocated_nodes": [
                {"nodename": name, "cpus_used": _ids(cpus), "memory_allocated": int(mem)}
                for names, cpus, mem in placed
                for name in host_names(names)
            ]
        },
    }  # fmt: skip


def _ids(cpus: str) -> int:
    return len(array_tasks(cpus)[0]) if cpus else 0
