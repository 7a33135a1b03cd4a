"""Invariant 1: what a provider has created or lent for us is owned by exactly one live record."""

from dataclasses import dataclass
from typing import ClassVar

from xce.domain.events import ids
from xce.domain.events.recorded import Recorded
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.request import Request
from xce.domain.sharing.elastic_resource import ElasticResource
from xce.projections.invariants.report import Check, Invariant


@dataclass(slots=True)
class _Parts:
    """The events that are saved together for one thing, and what each says it is."""

    first: Recorded
    wanted: frozenset[str]
    said: dict[str, str]


class Ownership(Invariant):
    """Each machine has one live instance; each instance and grant has its request, and a grant its place in a total."""

    NAME: ClassVar[str] = "invariant-1"
    TITLE: ClassVar[str] = "everything created or lent for us is owned by exactly one live record"

    def __init__(self) -> None:
        super().__init__()
        self._owner: dict[tuple[str, str], str] = {}
        self._machine_of: dict[str, tuple[str, str]] = {}
        self._open: dict[str, _Parts] = {}

    def _see(self, recorded: Recorded) -> None:
        event = recorded.event
        match event:
            case Request.InstanceGranted() | Request.MachineFailed():
                request = ids.name_of(event.originator_id)
                self._part(
                    ids.instance_id(event.instance_id),
                    "request",
                    f"machine {event.machine} of request {request}",
                    recorded,
                )
            case Instance.Granted():
                self._part(
                    event.originator_id,
                    "instance",
                    f"machine {event.machine} of request {event.request_id}",
                    recorded,
                )
                self._own(event)
            case Instance.Returned() | Instance.Lost():
                key = self._machine_of.pop(event.originator_id, None)
                if key is not None and self._owner.get(key) == event.originator_id:
                    del self._owner[key]
            case Request.AmountGranted():
                self._part(
                    ids.grant_id(event.grant_id), "request", f"{event.amount} units", recorded
                )
            case Grant.Granted():
                self._part(event.originator_id, "grant", f"{event.amount} units", recorded)
            case ElasticResource.Borrowed():
                self._part(ids.grant_id(event.grant_id), "total", f"{event.amount} units", recorded)
            case _:
                pass

    def _own(self, event: Instance.Granted) -> None:
        key = (event.provider, event.machine)
        owner = self._owner.get(key)
        self._require(
            owner is None,
            f"machine {event.machine} of provider {event.provider} is owned by {owner} already",
        )
        if owner is None:
            self._owner[key] = event.originator_id
        self._machine_of[event.originator_id] = key

    def _part(self, thing: str, part: str, says: str, recorded: Recorded) -> None:
        parts = self._open.get(thing)
        if parts is None:
            wanted = (
                frozenset({"request", "instance"})
                if ids.kind_of(thing) == ids.INSTANCE
                else frozenset({"request", "grant", "total"})
            )
            parts = self._open[thing] = _Parts(recorded, wanted, {})
        if part in parts.said:
            self._find(f"{thing} is named a second time by its {part}")
        parts.said[part] = says
        if parts.said.keys() == parts.wanted:
            said = sorted(set(parts.said.values()))
            self._require(len(said) == 1, f"{thing} is said to be {' and '.join(said)}")
            del self._open[thing]

    def end(self) -> Check:
        """Name what is left open, and return the outcome."""
        for thing, parts in self._open.items():
            missing = ", ".join(sorted(parts.wanted - parts.said.keys()))
            self._find(f"{thing} has no record in its {missing}", parts.first)
        return super().end()
