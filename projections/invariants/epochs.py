"""Invariant 6: only the current lease epoch writes facts of a provider."""

from dataclasses import dataclass
from typing import ClassVar

from xce.domain.events import ids
from xce.domain.events.base import ProviderFact
from xce.domain.events.recorded import Recorded
from xce.domain.provisioning.decision import Decision
from xce.domain.provisioning.evidence import Evidence
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.lease import ProviderLease
from xce.domain.provisioning.orphan import Orphan
from xce.domain.provisioning.request import Request
from xce.projections.invariants.report import Invariant

#: How the writer of an event is named when it is a provisioner.
_PROVISIONER = "provisioner/"


@dataclass(slots=True)
class _Lease:
    epoch: int = 0
    holder: str | None = None


class Epochs(Invariant):
    """Each fact of a provider carries the epoch of the lease at that position, and its holder wrote it."""

    NAME: ClassVar[str] = "invariant-6"
    TITLE: ClassVar[str] = "only the current lease epoch writes facts of a provider"

    def __init__(self) -> None:
        super().__init__()
        self._leases: dict[str, _Lease] = {}
        self._provider_of: dict[str, str] = {}

    def fences(self) -> dict[str, int]:
        """Return where the fences of the leases must be."""
        return {
            lease_id: lease.epoch + (lease.holder is None)
            for lease_id, lease in self._leases.items()
        }

    def _see(self, recorded: Recorded) -> None:
        event = recorded.event
        match event:
            case ProviderLease.Granted() | ProviderLease.TakenOver() | ProviderLease.Regranted():
                lease = self._leases.setdefault(event.originator_id, _Lease())
                self._require(
                    event.epoch == lease.epoch + 1,
                    f"epoch {event.epoch} follows epoch {lease.epoch}; wanted {lease.epoch + 1}",
                )
                lease.epoch = event.epoch
                lease.holder = event.holder
            case ProviderLease.Released() | ProviderLease.Lapsed():
                self._leases.setdefault(event.originator_id, _Lease()).holder = None
            case ProviderFact():
                self._fact(event)
            case _:
                pass

    def _fact(self, event: ProviderFact) -> None:
        provider: str | None
        match event:
            case Decision.Made() | Evidence.Kept():  # nothing follows them
                provider = event.provider
            case Request.Intended() | Instance.Granted() | Grant.Granted() | Orphan.Found():
                provider = self._provider_of[event.originator_id] = event.provider
            case _:
                provider = self._provider_of.get(event.originator_id)
        if provider is None:
            self._find("its first event, which names the provider, is missing")
            return
        lease = self._leases.get(ids.lease_id(provider), _Lease())
        if lease.holder is None:
            self._find(f"nobody holds the lease of provider {provider}")
            return
        self._require(
            event.epoch == lease.epoch,
            f"written under epoch {event.epoch} of provider {provider}, current is {lease.epoch}",
        )
        if event.by.startswith(_PROVISIONER):
            self._require(
                event.by in (lease.holder, _PROVISIONER + lease.holder),
                f"written by {event.by}, while {lease.holder} holds provider {provider}",
            )
