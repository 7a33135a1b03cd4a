"""How fast the log folds into views and a round is decided: ``python -m benchmarks.projections``.

CPU seconds after imports; decoding events from the store is not part of it.
"""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, cast

from xce.domain.events.base import Aggregate, DomainEvent
from xce.domain.events.recorded import Recorded
from xce.domain.formats.policy import PolicyInput
from xce.domain.formats.provider import Billing, Kind, ProviderDescription, TemplateOffer
from xce.domain.formats.session_result import Demand, HostDemand, JobHosts
from xce.domain.policy.decide import decide
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.provider import Provider
from xce.domain.provisioning.request import Request
from xce.domain.provisioning.request import RequestState as State
from xce.projections.all import Projections

START: Final = datetime(2026, 3, 1, tzinfo=UTC)
PRICE: Final = Decimal("0.17")
REQUESTS: Final = 3_000
HOSTS: Final = 10
LIVE_REQUESTS: Final = 50


def _at(minute: int) -> datetime:
    return START + timedelta(minutes=minute)


def history() -> list[Recorded]:
    """Return the log of a cluster that asks for ten hosts a minute and gives them back fifty minutes later."""
    description = ProviderDescription(
        name="aws", templates=(TemplateOffer(template_id="c4", price_per_hour=PRICE),)
    )
    events: list[DomainEvent] = []
    events += _new(Provider.describe_first(description=description, at=START, by="b"))
    living: list[list[Instance]] = []
    for number in range(REQUESTS):
        at = _at(number)
        request, instances = _asked(number, at)
        living.append(instances)
        leaving = living[number - LIVE_REQUESTS] if number >= LIVE_REQUESTS else []
        for instance in leaving:
            instance.start_drain(why="idle", at=at, by="b", epoch=1)
            instance.intend_return(return_id=f"B{number}", why="idle", at=at, by="b", epoch=1)
            instance.confirm_return(at=at, by="b", epoch=1)
        events += _new(request)
        for instance in (*instances, *leaving):
            events += _new(instance)
    return [Recorded(position, event, b"") for position, event in enumerate(events, start=1)]


def _new(aggregate: Aggregate[Any]) -> list[DomainEvent]:
    return list(cast("Sequence[DomainEvent]", aggregate.collect_events()))


def _asked(number: int, at: datetime) -> tuple[Request, list[Instance]]:
    request = Request.intend(
        request=f"R{number}",
        provider="aws",
        kind=Kind.HOST,
        item="c4",
        amount=HOSTS,
        price_per_hour=PRICE,
        deadline=at + timedelta(hours=1),
        reason="jobs wait",
        jobs=("1", "2"),
        demand_position=0,
        hold=timedelta(0),
        at=at,
        by="b",
        epoch=1,
    )
    request.accept(provider_request_id=f"p{number}", at=at, by="b", epoch=1)
    instances: list[Instance] = []
    for host in range(HOSTS):
        name = f"R{number}m{host}"
        request.grant_instance(instance_id=name, machine=name, at=at, by="b", epoch=1)
        instance = Instance.grant(
            instance=name,
            request_id=request.name,
            provider="aws",
            template="c4",
            machine=name,
            name=name,
            price_per_hour=PRICE,
            billing=Billing(),
            hold_until=None,
            at=at,
            by="b",
            epoch=1,
        )
        instance.join(host=name, booted_at=at, attributes={}, total={}, at=at, by="b", epoch=1)
        instances.append(instance)
    request.close(outcome=State.COMPLETE, why="all came", at=at, by="b", epoch=1)
    return request, instances


def seconds(call: Callable[[], object], times: int) -> float:
    """Return CPU seconds of one call."""
    start = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - start) / times


def main() -> None:
    """Print the figures."""
    events = history()
    made = Projections()
    took = seconds(lambda: Projections().apply(events), 3)
    made.apply(events)
    print(f"fold of {len(events):,} events: {len(events) / took:>10,.0f}/s")
    now = _at(REQUESTS)
    live = len(made.inventory.view().instances)
    print(
        f"views again, nothing changed: {seconds(lambda: made.catalog.view(now), 1000) * 1e6:>10.2f} us"
    )
    jobs = tuple(JobHosts(job=str(n), order=n, hosts=1) for n in range(1, 10_001))
    inputs = PolicyInput(
        now=now,
        demand=Demand(hosts=(HostDemand(template="c4", count=10_000, jobs=jobs),)),
        providers=made.catalog.descriptions(),
        inventory=made.inventory.view(),
    )
    print(
        f"a round, {len(jobs):,} jobs, {live} instances: {seconds(lambda: decide(inputs), 3) * 1e3:>10.1f} ms"
    )


if __name__ == "__main__":
    main()
