"""Short ways to write a round's input, and to carry its decisions out on an inventory."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from xce.domain.formats.inventory import GrantEntry, InstanceEntry, Inventory, RequestEntry
from xce.domain.formats.periods import Spent
from xce.domain.formats.policy import (
    Budget,
    Decision,
    DecisionKind,
    Decisions,
    FailureEntry,
    Pause,
    PolicyInput,
    PolicySettings,
)
from xce.domain.formats.provider import (
    Billing,
    Capabilities,
    Granularity,
    Kind,
    ProviderDescription,
    ResourceOffer,
    TemplateOffer,
)
from xce.domain.formats.session_result import (
    CountDemand,
    Demand,
    HostDemand,
    Idle,
    IdleCount,
    IdleHost,
    JobAmount,
    JobHosts,
)
from xce.domain.policy.decide import decide
from xce.domain.provisioning.grant import GrantState
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.request import RequestState

NOW = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
POSITION = 100


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


LONG_AGO = NOW - minutes(120)


def at(minute: float) -> datetime:
    return NOW + minutes(minute)


# ------------------------------------------------------------------- providers
def template(
    name: str = "c4", *, price: str | None = "0.17", max_number: int = -1, priority: int = 0
) -> TemplateOffer:
    return TemplateOffer(
        template_id=name,
        price_per_hour=None if price is None else Decimal(price),
        max_number=max_number,
        priority=priority,
    )


def resource(
    name: str = "lic", *, capacity: int | None = 100, price: str | None = "2.00", step: int = 1
) -> ResourceOffer:
    return ResourceOffer(
        name=name,
        capacity=capacity,
        price_per_hour=None if price is None else Decimal(price),
        step=step,
    )


def provider(
    name: str = "aws",
    *templates: TemplateOffer,
    resources: Iterable[ResourceOffer] = (),
    priority: int = 0,
    capacity: int | None = None,
    minimum: int = 1,
    step: int = 1,
    minimum_hold: timedelta = timedelta(0),
    billing: Billing | None = None,
    partial_returns: bool = False,
) -> ProviderDescription:
    return ProviderDescription(
        name=name,
        kinds=("host", "countable"),
        templates=templates,
        resources=tuple(resources),
        priority=priority,
        capacity=capacity,
        granularity=Granularity(minimum=minimum, step=step),
        minimum_hold=minimum_hold,
        billing=billing or Billing(),
        capabilities=Capabilities(partial_returns=partial_returns),
    )


# ---------------------------------------------------------------------- demand
def hosts(item: str, count: int, *jobs: tuple[str, int, int]) -> HostDemand:
    """Return a demand for hosts; jobs are (name, order, hosts), by default one job a host."""
    parts = jobs or tuple((f"j{i}", i, 1) for i in range(1, count + 1))
    return HostDemand(
        template=item,
        count=count,
        jobs=tuple(JobHosts(job=job, order=order, hosts=n) for job, order, n in parts),
    )


def units(name: str, amount: int, *jobs: tuple[str, int, int]) -> CountDemand:
    parts = jobs or tuple((f"j{i}", i, 1) for i in range(1, amount + 1))
    return CountDemand(
        name=name,
        amount=amount,
        wanted=amount,
        jobs=tuple(JobAmount(job=job, order=order, amount=n) for job, order, n in parts),
    )


def demand(
    *parts: HostDemand | CountDemand,
    order: Iterable[tuple[str, int]] = (),
    projects: dict[str, tuple[str, ...]] | None = None,
) -> Demand:
    found = [part for part in parts if isinstance(part, HostDemand)]
    return Demand(
        hosts=tuple(found),
        order=tuple(order) or tuple((part.template, part.count) for part in found),
        countable=tuple(part for part in parts if isinstance(part, CountDemand)),
        projects=projects or {},
    )


def idle_host(instance: str, since: datetime) -> IdleHost:
    return IdleHost(instance=instance, host=f"host-{instance}", idle_since=since)


def idle_units(name: str, amount: int) -> Idle:
    return Idle(counts=(IdleCount(name=name, amount=amount),))


# ------------------------------------------------------------------- inventory
def request(
    name: str = "R1",
    item: str = "c4",
    amount: int = 1,
    *,
    of: str = "aws",
    kind: Kind = Kind.HOST,
    granted: int = 0,
    failed: int = 0,
    state: RequestState = RequestState.ACCEPTED,
    asked_at: datetime = NOW,
    asked_position: int = 50,
    deadline: datetime | None = None,
    price: str | None = "0.17",
    project: str | None = None,
) -> RequestEntry:
    return RequestEntry(
        id=name,
        provider=of,
        kind=kind,
        template=item if kind is Kind.HOST else None,
        resource=item if kind is Kind.COUNTABLE else None,
        amount=amount,
        granted=granted,
        failed=failed,
        state=state,
        asked_at=asked_at,
        asked_position=asked_position,
        deadline=deadline,
        price_per_hour=None if price is None else Decimal(price),
        project=project,
    )


def instance(
    name: str = "i-1",
    item: str = "c4",
    *,
    of: str = "aws",
    state: InstanceState = InstanceState.JOINED,
    from_request: str | None = None,
    granted_at: datetime = LONG_AGO,
    joined_at: datetime | None = None,
    hold_until: datetime | None = None,
    price: str | None = "0.17",
    project: str | None = None,
) -> InstanceEntry:
    return InstanceEntry(
        id=name,
        provider=of,
        template=item,
        state=state,
        request=from_request,
        host=f"host-{name}",
        granted_at=granted_at,
        joined_at=joined_at or granted_at,
        hold_until=hold_until,
        price_per_hour=None if price is None else Decimal(price),
        project=project,
    )


def grant(
    name: str = "g-1",
    amount: int = 5,
    *,
    item: str = "lic",
    of: str = "pool",
    from_request: str | None = None,
    returning: int = 0,
    returned: int = 0,
    state: GrantState = GrantState.ACTIVE,
    granted_at: datetime = LONG_AGO,
    hold_until: datetime | None = None,
    price: str | None = "2.00",
    project: str | None = None,
) -> GrantEntry:
    return GrantEntry(
        id=name,
        provider=of,
        resource=item,
        request=from_request,
        amount=amount,
        returning=returning,
        returned=returned,
        state=state,
        granted_at=granted_at,
        hold_until=hold_until,
        price_per_hour=None if price is None else Decimal(price),
        project=project,
    )


# ----------------------------------------------------------------------- rounds
def round_of(
    *providers: ProviderDescription,
    wants: Demand | None = None,
    idle: Idle | None = None,
    requests: Iterable[RequestEntry] = (),
    instances: Iterable[InstanceEntry] = (),
    grants: Iterable[GrantEntry] = (),
    budgets: Iterable[Budget] = (),
    pauses: Iterable[Pause] = (),
    failures: Iterable[FailureEntry] = (),
    spent: Iterable[Spent] = (),
    settings: PolicySettings | None = None,
    now: datetime = NOW,
    position: int = POSITION,
    computed_at: datetime | None = None,
) -> PolicyInput:
    return PolicyInput(
        now=now,
        position=position,
        computed_at=computed_at,
        demand=wants or Demand(),
        idle=idle or Idle(),
        providers=providers,
        inventory=Inventory(
            requests=tuple(requests), instances=tuple(instances), grants=tuple(grants)
        ),
        budgets=tuple(budgets),
        pauses=tuple(pauses),
        failures=tuple(failures),
        spent=tuple(spent),
        settings=settings or PolicySettings(),
    )


def of_kind(decisions: Decisions, kind: DecisionKind) -> list[Decision]:
    return [decision for decision in decisions.decisions if decision.kind is kind]


def asks(inputs: PolicyInput) -> list[tuple[str | None, str | None, int | None]]:
    """Return (provider, item, amount) of each request of the round."""
    return [
        (
            decision.provider,
            decision.template or decision.resource,
            decision.count if decision.template else decision.amount,
        )
        for decision in of_kind(decide(inputs), DecisionKind.REQUEST)
    ]


def returned(inputs: PolicyInput) -> list[str]:
    """Return the instances that the round gives back."""
    returns = of_kind(decide(inputs), DecisionKind.RETURN)
    return [name for decision in returns for name in decision.instances]


def returned_parts(inputs: PolicyInput) -> list[tuple[str, int]]:
    """Return (grant, amount) that the round gives back."""
    returns = of_kind(decide(inputs), DecisionKind.RETURN)
    return [(part.grant, part.amount) for decision in returns for part in decision.grants]


def holds(inputs: PolicyInput) -> list[str]:
    """Return the reasons of what the round deliberately does not do."""
    return [decision.reason for decision in of_kind(decide(inputs), DecisionKind.HOLD)]


def carried_out(inputs: PolicyInput) -> PolicyInput:
    """Return the same round once its decisions are in the inventory, before anybody answered."""
    decisions = decide(inputs)
    entries = list(inputs.inventory.requests)
    position = max([inputs.position, *(entry.asked_position for entry in entries)])
    for number, decision in enumerate(of_kind(decisions, DecisionKind.REQUEST), start=1):
        amount = decision.count if decision.template is not None else decision.amount
        assert amount is not None
        assert decision.provider is not None
        entries.append(
            RequestEntry(
                id=f"new-{number}",
                provider=decision.provider,
                kind=Kind.HOST if decision.template is not None else Kind.COUNTABLE,
                template=decision.template,
                resource=decision.resource,
                amount=amount,
                state=RequestState.INTENDED,
                asked_at=inputs.now,
                asked_position=position + number,
                project=decision.project,
                price_per_hour=None
                if decision.cost_per_hour is None
                else decision.cost_per_hour / amount,
            )
        )
    inventory = inputs.inventory.model_copy(update={"requests": tuple(entries)})
    return inputs.model_copy(update={"inventory": inventory})
