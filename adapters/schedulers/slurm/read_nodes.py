"""Node records, from ``sinfo --json``, ``/nodes`` of slurmrestd, or ``scontrol -o show node``."""

from typing import Final

from xce.adapters.schedulers.slurm import text
from xce.adapters.schedulers.slurm.facts import NodeFact
from xce.adapters.schedulers.slurm.fields import Fields, WrongFieldError, listed
from xce.adapters.schedulers.slurm.lists import amounts, generic_resources
from xce.domain.errors import InputError, Problem
from xce.domain.formats.base import path_of

NODES_TEXT: Final = "scontrol -o show node"
#: What stands behind a state in the text forms.
_MARKS: Final = {
    "*": "NOT_RESPONDING", "~": "POWERED_DOWN", "#": "POWERING_UP", "%": "POWERING_DOWN", "$": "MAINTENANCE", "@": "REBOOT_ISSUED",
    "^": "REBOOT_REQUESTED", "!": "POWER_DOWN", "-": "PLANNED",
}  # fmt: skip


def nodes_of_json(document: object, command: str) -> tuple[NodeFact, ...]:
    """Return the nodes.

    Raises:
        InputError: no list of nodes, or one of them cannot be read.
    """
    try:
        return tuple(_node(fields) for fields in listed(document, "nodes") if fields.has("name"))
    except WrongFieldError as error:
        raise InputError(command, [error.problem]) from None


def nodes_of_text(output: str) -> tuple[NodeFact, ...]:
    """Return the nodes of ``scontrol -o show node``.

    Raises:
        InputError: one of them cannot be read.
    """
    found: list[NodeFact] = []
    for place, record in enumerate(text.records(output, "NodeName")):
        path = ("nodes", place)
        try:
            found.append(_node(Fields(_document(record), path)))
        except WrongFieldError as error:
            raise InputError(NODES_TEXT, [error.problem]) from None
        except ValueError as error:
            problem = Problem(f"node {record['NodeName']}: {error}", path_of(path))
            raise InputError(NODES_TEXT, [problem]) from None
    return tuple(found)


def is_summary(document: object) -> bool:
    """Return whether a document is what sinfo says from 23.02 on: groups of nodes, and none of their own counts."""
    return isinstance(document, dict) and "sinfo" in document and "nodes" not in document


def states_of(words: tuple[str, ...]) -> frozenset[str]:
    """Return state and flags of ``IDLE+DRAIN``, ``mixed*`` or lists of them, in upper case."""
    found: set[str] = set()
    for word in words:
        for part in word.upper().split("+"):
            state = part
            while state and state[-1] in _MARKS:
                found.add(_MARKS[state[-1]])
                state = state[:-1]
            found.add({"DRAINED": "DRAIN", "DRAINING": "DRAIN"}.get(state, state))
    return frozenset(found - {""})


def _node(fields: Fields) -> NodeFact:
    cpus = fields.whole("cpus")
    if cpus is None:
        cpus = _configured_cpus(fields)
    effective = fields.whole("effective_cpus")
    features = fields.words("active_features") or fields.words("features")
    try:
        gres = generic_resources(",".join(fields.words("gres")))
    except ValueError as error:
        raise WrongFieldError((*fields.path, "gres"), str(error), "generic resources") from None
    reserved = fields.whole("specialized_memory") or 0
    return NodeFact(
        name=fields.text("name"),
        states=states_of((*fields.words("state"), *fields.words("state_flags")))
        or frozenset({"UNKNOWN"}),
        features=tuple(one for text in features for one in text.split(",") if one),
        partitions=tuple(one for text in fields.words("partitions") for one in text.split(",")),
        cpus=cpus if effective is None else min(cpus, effective),
        threads=fields.whole("threads") or 1,
        memory=max(0, (fields.whole("real_memory") or 0) - reserved),
        cpus_used=fields.whole("alloc_cpus") or 0,
        memory_used=fields.whole("alloc_memory") or 0,
        gres=gres,
        weight=fields.whole("weight") or 0,
        reason=fields.text("reason"),
        comment=fields.text("comment"),
        booted=fields.time("boot_time"),
        daemon_started=fields.time("slurmd_start_time"),
        last_busy=fields.time("last_busy"),
    )


def _configured_cpus(fields: Fields) -> int:
    """Return the cpus of a node that does not say them in their own field; 0 where nothing says them."""
    told = amounts(fields.text("tres")).get("cpu", "")
    return int(told) if told.isdigit() else 0


def _document(record: dict[str, str]) -> dict[str, object]:
    """Return a line of ``scontrol -o show node`` as the JSON record that says the same."""
    get = record.get

    def number(name: str) -> int | None:
        try:
            return text.number(text.value(get(name)))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    def time(name: str) -> int | None:
        try:
            return text.seconds_of(get(name))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    reason = text.value(get("Reason"))
    return {
        "name": get("NodeName"),
        "state": get("State"),
        "active_features": text.value(get("ActiveFeatures")),
        "features": text.value(get("AvailableFeatures")),
        "partitions": text.value(get("Partitions")),
        "cpus": number("CPUTot"),
        "effective_cpus": number("CPUEfctv"),
        "threads": number("ThreadsPerCore"),
        "real_memory": number("RealMemory"),
        "specialized_memory": number("MemSpecLimit"),
        "alloc_cpus": number("CPUAlloc"),
        "alloc_memory": number("AllocMem"),
        "gres": text.value(get("Gres")),
        "weight": number("Weight"),
        "reason": reason.rpartition(" [")[0] or reason,
        "comment": text.value(get("Comment")),
        "boot_time": time("BootTime"),
        "slurmd_start_time": time("SlurmdStartTime"),
        "last_busy": time("LastBusyTime"),
    }
