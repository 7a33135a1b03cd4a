"""What a Slurm job asks for, in our requirement language."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from xce.adapters.schedulers.slurm.facts import JobFact
from xce.adapters.schedulers.slurm.lists import generic_resources, host_names, licences
from xce.domain.cluster.resreq.words import BARE_NAME, RESERVED, quote

#: The attribute of hosts that some job names or excludes.
HOST_NAME: Final = "hostname"
#: The attribute of hosts that a reservation keeps now.
RESERVATION: Final = "reservation"
_FEATURE: Final = re.compile(r"\s*([&|(),]|[^&|(),\[\]*!\s]+)", re.ASCII)


class CannotTellError(Exception):
    """A job asks for something that our language does not say: it takes no part in the demand."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What of the cluster the texts depend on.

    Attributes:
        threads: of a core, the same on all nodes; a job takes whole cores.
        memory_counts: memory is given to jobs, and not only looked at.
        everywhere: partitions that have all nodes: their jobs need no condition.
        reserved: some nodes are kept by a reservation now.
        shared: names of licences that this cluster has.
    """

    threads: int
    memory_counts: bool
    everywhere: frozenset[str]
    reserved: bool
    shared: frozenset[str]


@dataclass(frozen=True, slots=True)
class Asked:
    """A requirement, and what stands beside it."""

    resreq: str
    tasks: int
    exclusive: bool
    unit_unknown: bool = False


def partition_flag(name: str) -> str:
    """Return the attribute that hosts of a partition have."""
    return f"partition.{name}"


def named(name: str) -> str:
    """Return a name as the language writes it."""
    return name if BARE_NAME.fullmatch(name) and name not in RESERVED else quote(name)


def shape_of(job: JobFact) -> tuple[object, ...]:
    """Return all that a requirement depends on: jobs of one shape ask for the same."""
    return (
        job.partitions, job.tasks, job.cpus, job.cpus_per_task, job.min_nodes, job.max_nodes, job.tasks_per_node,
        job.min_cpus_node, job.memory_node, job.memory_cpu, job.memory_unknown, job.features, job.required, job.excluded,
        job.shared, job.licences, job.per_node, job.per_task, job.per_job, job.reservation,
    )  # fmt: skip


def asked_of(job: JobFact, ground: Ground, *, exclusive: bool = False) -> Asked:
    """Return what a job asks for; ``exclusive``: its partition gives whole nodes only.

    Raises:
        CannotTellError: the language has no words for it.
    """
    tasks, each, span, per_host = _layout(job, ground.threads)
    used: dict[str, str] = {}
    if each != 1:
        used["slots"] = str(each)
    whole = exclusive or bool(job.shared)
    conditions: list[str] = []
    memory, all_of_it = _memory(job, each, tasks, span)
    if memory and ground.memory_counts:
        used["mem"] = memory
    elif memory:
        conditions.append(f"mem>={memory.split('/')[0]}")
    whole = whole or (all_of_it and ground.memory_counts)
    _add_resources(job, used, single=tasks == 1 or span == "span[hosts=-1]")
    _add_licences(job, used, ground.shared)
    if job.min_cpus_node > each * per_host:
        conditions.append(f"slots>={job.min_cpus_node}")
    conditions += _places(job, ground)
    choices = _features(job.features)
    texts = [
        _text([choice, *conditions] if choice else conditions, used, span) for choice in choices
    ]
    resreq = texts[0] if len(texts) == 1 else " || ".join(f"{{{one}}}" for one in texts)
    return Asked(resreq, tasks, whole, bool(job.memory_unknown))


def together(parts: Iterable[Asked]) -> Asked:
    """Return the components of a heterogeneous job as one requirement: all of them, or none.

    Raises:
        CannotTellError: one of them has alternatives.
    """
    found = list(parts)
    if any(" || {" in part.resreq for part in found):
        raise CannotTellError("a component of a heterogeneous job has alternatives")
    texts = [
        f"{part.tasks}*{{{'exclusive ' if part.exclusive else ''}{part.resreq}}}" for part in found
    ]
    return Asked(
        " + ".join(texts),
        sum(part.tasks for part in found),
        exclusive=False,
        unit_unknown=any(part.unit_unknown for part in found),
    )


# ------------------------------------------------------------------------- layout
def _layout(job: JobFact, threads: int) -> tuple[int, int, str, int]:
    """Return tasks, slots of each, span, and tasks of one host as far as that is known (1 otherwise)."""
    nodes = job.min_nodes
    tasks = max(job.tasks, nodes * job.tasks_per_node, nodes if job.max_nodes else 1)
    each = job.cpus_per_task or -(-job.cpus // tasks)
    if tasks == 1:
        each = -(-max(each, 1) // threads) * threads  # whole cores
        return tasks, each, "", 1
    if nodes == 1 and job.max_nodes == 1:
        return tasks, each, "span[hosts=1]", tasks
    if job.tasks_per_node:
        return tasks, each, _tiles(job.tasks_per_node), job.tasks_per_node
    if nodes > 1 and job.max_nodes:
        on_one = -(-tasks // nodes)
        if on_one * (nodes - 1) >= tasks:
            raise CannotTellError(f"{tasks} tasks do not spread over {nodes} nodes in equal parts")
        return tasks, each, _tiles(on_one), on_one
    if (
        job.max_nodes and tasks > job.max_nodes
    ):  # at most so many nodes: so many tasks on each will do
        on_one = -(-tasks // job.max_nodes)
        return tasks, each, _tiles(on_one), on_one
    return tasks, each, "", 1


def _tiles(on_one: int) -> str:
    return "span[hosts=-1]" if on_one == 1 else f"span[ptile={on_one}]"


def _memory(job: JobFact, each: int, tasks: int, span: str) -> tuple[str, bool]:
    """Return the amount as ``rusage`` writes it, and whether it is all that a node has."""
    alone = tasks == 1 or span == "span[hosts=-1]"
    if job.memory_unknown:
        number = re.match(r"\d+", job.memory_unknown)
        return (number[0] if number else "1"), False
    if job.memory_node is not None:
        if job.memory_node == 0:
            return "", True
        return f"{job.memory_node}MiB" + ("" if alone else "/host"), False
    return (f"{job.memory_cpu * each}MiB", False) if job.memory_cpu else ("", False)


def _add_resources(job: JobFact, used: dict[str, str], *, single: bool) -> None:
    for text, per in (
        (job.per_task, ""),
        (job.per_node, "" if single else "/host"),
        (job.per_job, "/job"),
    ):
        try:
            found = generic_resources(_without_licences(text))
        except ValueError as error:
            raise CannotTellError(str(error)) from None
        for name, amount in found.items():
            used[named(name)] = f"{amount}{per}"


def _without_licences(text: str) -> str:
    """Return only the generic resources of ``gres/gpu:2,license/x=1``."""
    kept = [p for p in text.split(",") if not p.startswith(("license/", "cpu", "mem", "node", "billing"))]  # fmt: skip
    return ",".join(kept)


def _add_licences(job: JobFact, used: dict[str, str], known: frozenset[str]) -> None:
    try:
        wanted = licences(job.licences)
    except ValueError as error:
        raise CannotTellError(str(error)) from None
    for name, amount in wanted.items():
        if name not in known:
            raise CannotTellError(f"licence {name!r} is not one of this cluster")
        if amount:
            used[named(name)] = f"{amount}/job"


# ----------------------------------------------------------------------- which hosts
def _places(job: JobFact, ground: Ground) -> list[str]:
    found: list[str] = []
    if job.partitions and ground.everywhere.isdisjoint(job.partitions):
        flags = [named(partition_flag(name)) for name in job.partitions]
        found.append(flags[0] if len(flags) == 1 else f"({' || '.join(flags)})")
    try:
        required, excluded = host_names(job.required), host_names(job.excluded)
    except ValueError as error:
        raise CannotTellError(str(error)) from None
    if len(required) > max(job.min_nodes, 1):
        raise CannotTellError(f"more nodes are named than asked for: {job.required}")
    if required:
        if len(required) < job.min_nodes:
            raise CannotTellError(f"some nodes are named, and others are any: {job.required}")
        found.append(f"({' || '.join(_is_host(name) for name in required)})")
    found += [f"!({_is_host(name)})" for name in excluded]
    if job.reservation:
        names = [f"{RESERVATION}=={quote(name)}" for name in job.reservation.split(",")]
        found.append(names[0] if len(names) == 1 else f"({' || '.join(names)})")
    elif ground.reserved:
        found.append(f"!defined({RESERVATION})")
    return found


def _is_host(name: str) -> str:
    return f"{HOST_NAME}=={quote(name)}"


def _features(text: str) -> list[str]:
    """Return the selections of an expression, one for each alternative of ``[a|b]``; [""]: none.

    Raises:
        CannotTellError: counts of nodes by feature, or no expression.
    """
    if not text or text == "(null)":
        return [""]
    if "*" in text:
        raise CannotTellError(f"features {text!r}: so many nodes of each is not understood")
    if text.startswith("[") and text.endswith("]") and text.count("[") == 1:
        return [_selection(one) for one in text[1:-1].split("|")]
    if "[" in text:
        raise CannotTellError(
            f"features {text!r}: brackets within an expression are not understood"
        )
    return [_selection(text)]


def _selection(text: str) -> str:
    words: list[str] = []
    place = 0
    while place < len(text):
        found = _FEATURE.match(text, place)
        if found is None:
            raise CannotTellError(f"features {text!r}: column {place + 1} is not understood")
        word = found[1]
        words.append(
            {"&": "&&", ",": "&&", "|": "||"}.get(word) or (word if word in "()" else named(word))
        )
        place = found.end()
    joined = " ".join(words)
    return f"({joined})" if "||" in words else joined


def _text(conditions: list[str], used: Mapping[str, str], span: str) -> str:
    parts: list[str] = []
    if conditions:
        parts.append(f"select[{' && '.join(conditions)}]")
    if used:
        parts.append(f"rusage[{', '.join(f'{name}={amount}' for name, amount in used.items())}]")
    if span:
        parts.append(span)
    return " ".join(parts)
