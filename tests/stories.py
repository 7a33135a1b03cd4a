"""A small true story in a log: hosts and tokens are asked for, come, are used and go back, under leases that change hands."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeVar

from tests.unit.aggregates import Fact, Stamp
from xce.domain.events import ids
from xce.domain.events.base import Aggregate
from xce.domain.formats.provider import (
    Billing,
    Kind,
    ProviderDescription,
    ResourceOffer,
    TemplateOffer,
)
from xce.domain.ports import EventLog
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.lease import ProviderLease
from xce.domain.provisioning.provider import Provider
from xce.domain.provisioning.request import Request, RequestState
from xce.domain.sharing.elastic_resource import ElasticResource

A = TypeVar("A", bound=Aggregate[Any])

START = datetime(2026, 3, 1, 10, tzinfo=UTC)
TERM = timedelta(seconds=30)

AWS = ProviderDescription(
    name="aws", capacity=5, templates=(TemplateOffer(template_id="c4", max_number=4),)
)
POOL = ProviderDescription(
    name="pool", kinds=("countable",), resources=(ResourceOffer(name="lic", capacity=10),)
)


class Story:
    """Tells itself step by step; each step is one append, under the fences of its time."""

    def __init__(self, log: EventLog, suffix: str = "") -> None:
        self.log = log
        self.now = START
        self._suffix = suffix
        self._epochs = {"aws": 1, "pool": 1}

    def steps(self) -> Iterator[Callable[[], None]]:
        """Yield the steps in order, each to be called once."""
        yield self.describe
        yield self.lease
        yield self.ask_for_hosts
        yield self.hosts_come
        yield self.hosts_join
        yield self.ask_for_tokens
        yield self.tokens_come
        yield self.another_takes_over
        yield self.a_host_goes_back
        yield self.tokens_go_back
        yield self.ask_again_and_lose_track

    def tell(self) -> None:
        """Tell all of it."""
        for step in self.steps():
            step()

    # ----------------------------------------------------------------- steps
    def describe(self) -> None:
        stamp = self._stamp()
        self._save(
            Provider.describe_first(description=self._named(AWS), **stamp),
            Provider.describe_first(description=self._named(POOL), **stamp),
            ElasticResource.declare(
                resource=self._name("lic"), owned=14, provider=self._name("pool"), max_borrow=10, step=1, **stamp
            ),
        )  # fmt: skip

    def lease(self) -> None:
        stamp = self._stamp()
        self._save(
            *(
                ProviderLease.grant(provider=self._name(name), holder="p1", term=TERM, **stamp)
                for name in ("aws", "pool")
            )
        )

    def ask_for_hosts(self) -> None:
        self._save(self._intend("R1", "aws", Kind.HOST, "c4", 2), provider="aws")

    def hosts_come(self) -> None:
        request = self._get(Request, ids.request_id(self._name("R1")))
        fact = self._fact("aws")
        request.accept(provider_request_id=self._name("add-1"), **fact)
        instances: list[Instance] = []
        for number in (1, 2):
            request.grant_instance(
                instance_id=self._name(f"I{number}"), machine=f"m{number}", **fact
            )
            instances.append(
                Instance.grant(
                    instance=self._name(f"I{number}"), request_id=self._name("R1"), provider=self._name("aws"),
                    template="c4", machine=f"m{number}", name=f"node-{number}", price_per_hour=Decimal("0.17"),
                    billing=Billing(), hold_until=START, **fact,
                )
            )  # fmt: skip
        request.close(outcome=RequestState.COMPLETE, why="all came", **fact)
        self._save(request, *instances, provider="aws")

    def hosts_join(self) -> None:
        fact = self._fact("aws")
        instances = [
            self._get(Instance, ids.instance_id(self._name(f"I{number}"))) for number in (1, 2)
        ]
        for instance in instances:
            instance.join(
                host=f"h-{instance.machine}", booted_at=START, attributes={"type": "X86_64"},
                total={"slots": 4}, **fact,
            )  # fmt: skip
        self._save(*instances, provider="aws")

    def ask_for_tokens(self) -> None:
        self._save(
            self._intend("R2", "pool", Kind.COUNTABLE, self._name("lic"), 6), provider="pool"
        )

    def tokens_come(self) -> None:
        fact = self._fact("pool")
        request = self._get(Request, ids.request_id(self._name("R2")))
        resource = self._get(ElasticResource, ids.shared_id(self._name("lic")))
        request.grant_amount(grant_id=self._name("G1"), amount=6, **fact)
        request.close(outcome=RequestState.COMPLETE, why="all came", **fact)
        resource.borrow(grant_id=self._name("G1"), amount=6, at=self.now, by="provisioner/p1")
        grant = Grant.grant(
            grant=self._name("G1"), request_id=self._name("R2"), provider=self._name("pool"), resource=self._name("lic"),
            amount=6, hold_until=START, expires_at=None, price_per_hour=Decimal("2.00"), **fact,
        )  # fmt: skip
        self._save(request, grant, resource, provider="pool")

    def another_takes_over(self) -> None:
        lease = self._get(ProviderLease, ids.lease_id(self._name("aws")))
        lease.take_over(holder="p2", epoch=2, term=TERM, **self._stamp())
        self._save(lease)
        self._epochs["aws"] = 2

    def a_host_goes_back(self) -> None:
        for number in range(4):
            instance = self._get(Instance, ids.instance_id(self._name("I1")))
            fact = self._fact("aws")
            match number:
                case 0:
                    instance.start_drain(why="idle", **fact)
                case 1:
                    instance.intend_return(return_id=self._name("X1"), why="idle", **fact)
                case 2:
                    instance.accept_return(
                        return_id=self._name("X1"), provider_return_id="ret-1", **fact
                    )
                case _:
                    instance.confirm_return(**fact)
            self._save(instance, provider="aws")

    def tokens_go_back(self) -> None:
        for return_id, amount, refused in (("X2", 4, True), ("X3", 6, False)):
            name = self._name(return_id)
            grant, resource = self._lent()
            grant.start_return(return_id=name, amount=amount, **self._fact("pool"))
            resource.give_back(
                return_id=name, grant_id=grant.name, amount=amount, occupied=9, at=self.now, by="provisioner/p1"
            )  # fmt: skip
            self._save(grant, resource, provider="pool")
            grant, resource = self._lent()
            if refused:
                grant.refuse_return(return_id=name, why="not now", **self._fact("pool"))
                resource.put_back(return_id=name, why="not now", at=self.now, by="provisioner/p1")
            else:
                grant.confirm_return(return_id=name, **self._fact("pool"))
            self._save(grant, resource, provider="pool")

    def ask_again_and_lose_track(self) -> None:
        request = self._intend("R3", "aws", Kind.HOST, "c4", 1)
        self._save(request, provider="aws")
        request.lose_track(why="timeout", **self._fact("aws"))
        self._save(request, provider="aws")

    # --------------------------------------------------------------- helpers
    def _intend(self, name: str, provider: str, kind: Kind, item: str, amount: int) -> Request:
        return Request.intend(
            request=self._name(name), provider=self._name(provider), kind=kind, item=item, amount=amount,
            price_per_hour=Decimal("0.17"), deadline=self.now + timedelta(minutes=15), reason="jobs wait",
            jobs=["101"], demand_position=0, hold=timedelta(0), **self._fact(provider),
        )  # fmt: skip

    def _lent(self) -> tuple[Grant, ElasticResource]:
        return (
            self._get(Grant, ids.grant_id(self._name("G1"))),
            self._get(ElasticResource, ids.shared_id(self._name("lic"))),
        )

    def _get(self, kind: type[A], aggregate_id: str) -> A:
        return self.log.get(kind, aggregate_id)

    def _save(self, *aggregates: Aggregate[Any], provider: str | None = None) -> None:
        fences = (
            {} if provider is None else {ids.lease_id(self._name(provider)): self._epochs[provider]}
        )
        self.log.append(aggregates, fences=fences)

    def _stamp(self) -> Stamp:
        self.now += timedelta(minutes=1)
        return {"at": self.now, "by": "admin/alice"}

    def _fact(self, provider: str) -> Fact:
        self.now += timedelta(minutes=1)
        epoch = self._epochs[provider]
        return {"at": self.now, "by": f"provisioner/p{epoch}", "epoch": epoch}

    def _name(self, name: str) -> str:
        return name + self._suffix

    def _named(self, description: ProviderDescription) -> ProviderDescription:
        offers = tuple(
            offer.model_copy(update={"name": self._name(offer.name)})
            for offer in description.resources
        )
        return description.model_copy(
            update={"name": self._name(description.name), "resources": offers}
        )
