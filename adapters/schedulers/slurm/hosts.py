"""Nodes as hosts: which of them are hosts now, what they have, who may use them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from xce.adapters.schedulers.slurm.facts import NodeFact, Readings, ReservationFact
from xce.adapters.schedulers.slurm.lists import host_names
from xce.adapters.schedulers.slurm.requirement import HOST_NAME, RESERVATION, partition_flag
from xce.domain.errors import Problem
from xce.domain.formats.building import built
from xce.domain.formats.snapshot import Host, HostState

#: Begins the reason of every drain of ours: only those are ours to end.
OURS: Final = "xce:"
#: Begins the comment of a node that says which instance it is.
INSTANCE: Final = "xce:"
#: Attributes and totals that have a meaning of their own.
_TAKEN: Final = frozenset({"slots", "mem", HOST_NAME, RESERVATION})
#: A record, and no machine: what could be a host one day.
_ABSENT: Final = frozenset({"FUTURE", "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN"})
_DOWN: Final = frozenset({"DOWN", "FAIL", "FAILING", "ERROR", "UNKNOWN", "INVALID_REG", "INVALID"})
_IN_USE: Final = frozenset({"MIXED", "ALLOCATED", "COMPLETING"})
_CLOSED: Final = frozenset(
    {"MAINTENANCE", "MAINT", "REBOOT", "REBOOT_ISSUED", "REBOOT_REQUESTED", "NOT_RESPONDING", "NO_RESPOND", "BLOCKED", "DRAIN"}
)  # fmt: skip


class Hosts:
    """The hosts of one view."""

    def __init__(self, readings: Readings) -> None:
        self._readings = readings
        self.troubles: list[tuple[str, Problem]] = []
        self._busy = {one.node for job in readings.jobs for one in job.placed}
        self.nodes = {
            node.name: node
            for node in readings.nodes
            if node.states.isdisjoint(_ABSENT) or node.name in self._busy
        }
        self._reserved = self._reservations()
        self.everywhere = self._everywhere()
        self._named = self._named_nodes()
        self._only = {
            one.node: job.user
            for job in readings.jobs
            if job.shared == "user"
            for one in job.placed
        }

    @property
    def are_reserved(self) -> bool:
        """Return whether a reservation keeps some of them now."""
        return bool(self._reserved)

    def threads(self) -> int:
        """Return the threads of a core: those of all nodes if they are the same, else 1."""
        if not self._readings.settings.cores_count:
            return 1
        found = {node.threads for node in self.nodes.values()}
        return found.pop() if len(found) == 1 else 1

    def all(self) -> tuple[Host, ...]:
        """Return them."""
        until = self._until()
        busy = self._busy
        return tuple(self._host(node, until.get(node.name), busy) for node in self.nodes.values())

    def unseen(self) -> list[str]:
        """Return the nodes that are busy by their own counts, or their state, and have no job that is shown."""
        return [
            node.name
            for node in self.nodes.values()
            if node.name not in self._busy
            and (node.cpus_used or not node.states.isdisjoint(_IN_USE))
        ]

    # ---------------------------------------------------------------------- one
    def _host(self, node: NodeFact, until: datetime | None, busy: set[str]) -> Host:
        attributes: dict[str, bool | str] = {
            feature: True for feature in node.features if feature not in _TAKEN
        }
        for partition in node.partitions:
            if partition not in self.everywhere:
                attributes[partition_flag(partition)] = True
        if node.name in self._named:
            attributes[HOST_NAME] = node.name
        if node.name in self._reserved:
            attributes[RESERVATION] = self._reserved[node.name]
        total = {"slots": node.cpus, "mem": node.memory}
        total.update({name: n for name, n in node.gres.items() if name not in _TAKEN})
        instance = node.comment.split(" ")[0] if node.comment.startswith(INSTANCE) else ""
        return built(
            Host,
            {
                "name": node.name,
                "state": state_of(node),
                "attributes": attributes,
                "total": total,
                "instance": instance.removeprefix(INSTANCE) or None,
                "idle_since": None if node.name in busy else _idle_since(node),
                "available_until": until,
                "rank": node.weight,
                "booted_at": node.booted,
                "exclusive_to": self._only.get(node.name),
            },
        )

    # ------------------------------------------------------------- who may use them
    def _everywhere(self) -> frozenset[str]:
        """Return the partitions that have every node: no condition is needed for their jobs."""
        names = {one.name for one in self._readings.partitions}
        for node in self.nodes.values():
            names.intersection_update(node.partitions)
        return frozenset(names)

    def _named_nodes(self) -> set[str]:
        """Return the nodes that some waiting job names: an attribute on all would make every host one of its own kind."""
        texts = {text for job in self._readings.jobs for text in (job.required, job.excluded)}
        return {name for text in texts for name in self._list(text, "job")}

    def _reservations(self) -> dict[str, str]:
        return {
            name: one.name
            for one in self._readings.reservations
            if one.is_active
            for name in self._of(one)
            if name in self.nodes
        }

    def _until(self) -> dict[str, datetime]:
        """Return when a reservation of tomorrow takes a node."""
        found: dict[str, datetime] = {}
        for one in self._readings.reservations:
            if not one.is_active and one.start > self._readings.at:
                for name in self._of(one):
                    found[name] = min(one.start, found.get(name, one.start))
        return found

    def _of(self, reservation: ReservationFact) -> Iterable[str]:
        return self._list(reservation.nodes, f"reservation {reservation.name}")

    def _list(self, text: str, what: str) -> list[str]:
        try:
            return host_names(text)
        except ValueError as error:
            self.troubles.append((what, Problem(str(error))))
            return []


def state_of(node: NodeFact) -> HostState:
    """Return whether a node takes work; one that an admin drains is closed, only ours is draining."""
    if not node.states.isdisjoint(_DOWN) and "DRAIN" not in node.states:
        return HostState.DOWN
    if "DRAIN" in node.states:
        if node.reason.startswith(OURS):
            return HostState.DRAINING
        return HostState.CLOSED if node.states.isdisjoint(_DOWN) else HostState.DOWN
    if not node.states.isdisjoint(_CLOSED) or not node.states.isdisjoint(_ABSENT):
        return HostState.CLOSED
    return HostState.OPEN


def _idle_since(node: NodeFact) -> datetime | None:
    """Return since when it has had no job; a record that is used again keeps the time of its last machine, so later of all counts."""
    if node.last_busy is None or node.cpus_used:
        return None
    times = (node.last_busy, node.booted, node.daemon_started)
    return max(time for time in times if time is not None)
