"""Events that follow one another by version, whatever they say; and what a check finds in them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from tests.unit.aggregates import AT, HOUR
from xce.domain.events.base import DomainEvent, ProviderFact
from xce.domain.events.digest import GENESIS
from xce.domain.events.recorded import Recorded
from xce.domain.formats.provider import (
    Billing,
    Kind,
    ProviderDescription,
)
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.lease import ProviderLease
from xce.domain.provisioning.provider import Provider
from xce.domain.provisioning.request import Request
from xce.domain.sharing.elastic_resource import ElasticResource
from xce.projections.invariants.report import Invariant

TERM = timedelta(seconds=30)


class Forger:
    """Makes events that follow one another by version, whatever they say."""

    def __init__(self) -> None:
        self.events: list[DomainEvent] = []
        self._versions: dict[str, int] = {}

    def add(
        self,
        event_class: type[DomainEvent],
        aggregate_id: str,
        *,
        at: datetime = AT,
        by: str = "provisioner/p1",
        epoch: int = 1,
        **payload: Any,
    ) -> "Forger":
        version = self._versions[aggregate_id] = self._versions.get(aggregate_id, 0) + 1
        document: dict[str, Any] = {
            "originator_id": aggregate_id, "originator_version": version, "timestamp": at, "by": by, **payload,
        }  # fmt: skip
        if issubclass(event_class, ProviderFact) or "epoch" in event_class.model_fields:
            document["epoch"] = epoch
        self.events.append(event_class.model_validate(document))
        return self

    # ------------------------------------------------------------ usual events
    def lease(self, holder: str = "p1") -> "Forger":
        return self.add(ProviderLease.Granted, "lease:aws", holder=holder, term=TERM)

    def describe(self, **parts: Any) -> "Forger":
        return self.add(
            Provider.Described,
            "provider:aws",
            description=ProviderDescription(name="aws", **parts),
        )

    def intend(
        self, name: str, amount: int = 1, kind: Kind = Kind.HOST, item: str = "c4", **parts: Any
    ) -> "Forger":
        return self.add(
            Request.Intended, f"request:{name}", provider="aws", kind=kind, item=item, amount=amount,
            price_per_hour=None, deadline=AT + HOUR, reason="", jobs=(), demand_position=0, hold=TERM, **parts,
        )  # fmt: skip

    def instance(
        self, name: str, request: str = "R1", machine: str = "m1", **parts: Any
    ) -> "Forger":
        document: dict[str, Any] = {"provider": "aws", "template": "c4", "hold_until": None} | parts
        return self.add(
            Instance.Granted, f"instance:{name}", request_id=request, machine=machine, name=None,
            price_per_hour=None, billing=Billing(), **document,
        )  # fmt: skip

    def host(self, name: str, request: str = "R1", machine: str = "m1") -> "Forger":
        """Both sides of one host."""
        self.add(Request.InstanceGranted, f"request:{request}", instance_id=name, machine=machine)
        return self.instance(name, request, machine)

    def grant(self, name: str, amount: int, **parts: Any) -> "Forger":
        document: dict[str, Any] = {"hold_until": None} | parts
        return self.add(
            Grant.Granted, f"grant:{name}", request_id="R1", provider="aws", resource="lic", amount=amount,
            expires_at=None, price_per_hour=None, **document,
        )  # fmt: skip

    def declare(self, owned: int = 0, max_borrow: int = 9) -> "Forger":
        return self.add(
            ElasticResource.Declared, "shared:lic", owned=owned, provider="aws", max_borrow=max_borrow, step=1,
            idle_return_after=TERM, min_hold=TERM,
        )  # fmt: skip

    def units(self, name: str, amount: int, **parts: Any) -> "Forger":
        """All sides of one grant."""
        self.add(Request.AmountGranted, "request:R1", grant_id=name, amount=amount)
        self.grant(name, amount, **parts)
        return self.add(ElasticResource.Borrowed, "shared:lic", grant_id=name, amount=amount)

    def give_back(
        self, return_id: str, name: str, amount: int, occupied: int = 0, at: datetime = AT
    ) -> "Forger":
        """Both sides of one return."""
        self.add(Grant.ReturnStarted, f"grant:{name}", return_id=return_id, amount=amount, at=at)
        return self.add(
            ElasticResource.GivenBack, "shared:lic", return_id=return_id, grant_id=name, amount=amount,
            occupied=occupied, at=at,
        )  # fmt: skip


def findings(invariant: Invariant, events: Sequence[DomainEvent]) -> list[tuple[int | None, str]]:
    for position, event in enumerate(events, start=1):
        invariant.see(Recorded(position, event, GENESIS))
    check = invariant.end()
    assert check.passed == (not check.findings)
    return [(finding.position, finding.message) for finding in check.findings]


def assert_found(invariant: Invariant, forger: Forger, position: int | None, message: str) -> None:
    found = findings(invariant, forger.events)
    assert len(found) == 1, found
    assert found[0][0] == position
    assert message in found[0][1]
