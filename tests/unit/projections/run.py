"""A log in memory written through the real commands, and projections that follow it."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from xce.adapters.store.open import open_log
from xce.domain.engine.commands import (
    AcceptRequest,
    Command,
    DeclareShared,
    DescribeProvider,
    OpenRequest,
    RecordJoin,
    RecordStatus,
    ReportBookings,
    TakeLease,
)
from xce.domain.engine.controller import Controller
from xce.domain.errors import RejectedError
from xce.domain.events import ids
from xce.domain.events.base import Aggregate
from xce.domain.events.recorded import Recorded
from xce.domain.formats.provider import (
    Billing,
    Granularity,
    Kind,
    LeadTime,
    ProviderDescription,
    ResourceOffer,
    TemplateOffer,
)
from xce.domain.formats.snapshot import Attribute, Catalog, Template
from xce.domain.ports import (
    GrantReport,
    MachineReport,
    MachineResult,
    RequestStatus,
    StatusAnswer,
)
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.provider import Provider
from xce.domain.sharing.elastic_resource import ElasticResource
from xce.projections.all import Projections

START = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
BY = "test"


def at(minute: float) -> datetime:
    return START + timedelta(minutes=minute)


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def template(
    name: str = "c4",
    price: str | None = "0.17",
    *,
    max_number: int = -1,
    provides: dict[str, int] | None = None,
    attributes: dict[str, Attribute] | None = None,
    priority: int = 0,
) -> TemplateOffer:
    return TemplateOffer(
        template_id=name,
        price_per_hour=None if price is None else Decimal(price),
        max_number=max_number,
        provides=provides or {},
        attributes=attributes or {},
        priority=priority,
    )


def cloud(
    name: str = "aws",
    *templates: TemplateOffer,
    capacity: int | None = None,
    priority: int = 0,
    minimum: int = 1,
    step: int = 1,
    lead: float = 0,
    billing: Billing | None = None,
) -> ProviderDescription:
    return ProviderDescription(
        name=name,
        templates=templates,
        capacity=capacity,
        priority=priority,
        granularity=Granularity(minimum=minimum, step=step),
        lead_time=LeadTime(p50=minutes(lead), p95=minutes(lead)),
        billing=billing or Billing(),
    )


def pool(
    capacity: int | None = 50,
    *,
    step: int = 1,
    price: str | None = "2.00",
    name: str = "pool",
    item: str = "lic",
) -> ProviderDescription:
    offer = ResourceOffer(
        name=item,
        capacity=capacity,
        step=step,
        price_per_hour=None if price is None else Decimal(price),
    )
    return ProviderDescription(name=name, kinds=("countable",), resources=(offer,))


def declare(
    owned: int = 10,
    max_borrow: int = 40,
    *,
    step: int = 1,
    name: str = "lic",
    lender: str | None = "pool",
    min_hold: float = 0,
) -> DeclareShared:
    return DeclareShared(name, owned, lender, max_borrow, step, minutes(30), minutes(min_hold))


def hosts(
    name: str,
    amount: int,
    item: str = "c4",
    *,
    of: str = "aws",
    price: str | None = "0.17",
    project: str | None = None,
) -> OpenRequest:
    return OpenRequest(
        request=name,
        provider=of,
        kind=Kind.HOST,
        item=item,
        amount=amount,
        price_per_hour=None if price is None else Decimal(price),
        deadline=at(10_000),
        reason="jobs wait",
        jobs=("1",),
        demand_position=0,
        project=project,
    )


def units(
    name: str, amount: int, item: str = "lic", *, of: str = "pool", price: str | None = "2.00"
) -> OpenRequest:
    return OpenRequest(
        request=name,
        provider=of,
        kind=Kind.COUNTABLE,
        item=item,
        amount=amount,
        price_per_hour=None if price is None else Decimal(price),
        deadline=at(10_000),
        reason="jobs wait",
        jobs=("1",),
        demand_position=0,
    )


def accept(name: str) -> AcceptRequest:
    return AcceptRequest(name, f"theirs-{name}")


def came(
    name: str,
    *machines: str,
    failed: Iterable[str] = (),
    ended: bool = False,
    message: str = "no capacity",
) -> RecordStatus:
    reports = [
        *(MachineReport(m, f"node-{m}", MachineResult.SUCCEED) for m in machines),
        *(MachineReport(m, f"node-{m}", MachineResult.FAIL, message=message) for m in failed),
    ]
    status = RequestStatus.COMPLETE if ended else RequestStatus.RUNNING
    return RecordStatus(name, StatusAnswer(status, tuple(reports), message=message))


def lent(
    name: str, *grants: tuple[str, int], ended: bool = True, item: str = "lic"
) -> RecordStatus:
    reports = tuple(GrantReport(grant, item, amount) for grant, amount in grants)
    status = RequestStatus.COMPLETE if ended else RequestStatus.RUNNING
    return RecordStatus(name, StatusAnswer(status, grants=reports))


def join(instance: str, minute: float = 0) -> RecordJoin:
    return RecordJoin(instance, instance.replace("/", "-"), at(minute), {}, {"slots": 4})


def occupied(amount: int | None, name: str = "lic") -> ReportBookings:
    return ReportBookings({name: amount})


class Run:
    """Commands in, events out, projections beside; one append for each ``do``."""

    def __init__(self, *providers: ProviderDescription, templates: Iterable[Template] = ()) -> None:
        self.log = open_log(":memory:")
        self.log.take_primary()
        self.templates = tuple(templates)
        self.projections = Projections(self.templates)
        self.controller = Controller(self.log)
        self.now = START
        self.saves: list[int] = [0]
        for provider in providers:
            self.do(DescribeProvider(provider), TakeLease(provider.name, "p1", minutes(600_000)))

    def do(self, *commands: Command, at: datetime | None = None) -> list[Recorded]:
        """Carry commands out and append them at once; what is refused raises."""
        self.now = at or self.now
        for command in commands:
            self.controller.handle(command, at=self.now, by=BY)
        return self._append()

    def attempt(self, *commands: Command) -> list[Recorded]:
        """Carry out those that are not refused."""
        for command in commands:
            try:
                self.controller.handle(command, at=self.now, by=BY)
            except RejectedError:
                continue
        return self._append()

    def _append(self) -> list[Recorded]:
        change = self.controller.take()
        if not change:
            return []
        recorded = list(self.log.append(change.aggregates, fences=change.fences))
        self.controller.appended()
        self.projections.apply(recorded)
        self.saves.append(self.projections.position)
        return recorded

    def grant(self, name: str) -> Grant:
        return self.log.get(Grant, ids.grant_id(name))

    def instance(self, name: str) -> Instance:
        return self.log.get(Instance, ids.instance_id(name))

    def resource(self, name: str = "lic") -> ElasticResource:
        return self.log.get(ElasticResource, ids.shared_id(name))

    def provider(self, name: str) -> Provider:
        return self.log.get(Provider, ids.provider_id(name))

    def save(self, *aggregates: Aggregate[Any]) -> None:
        """Append aggregates that a test changed itself; the controller reads them anew."""
        recorded = self.log.append(aggregates)
        self.projections.apply(recorded)
        self.saves.append(self.projections.position)
        self.controller = Controller(self.log)

    def catalog(self) -> Catalog:
        return self.projections.catalog.view(self.now)

    def rebuilt(self, upto: int | None = None) -> Projections:
        return Projections.rebuild(self.log, upto=upto, templates=self.templates)
