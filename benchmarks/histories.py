"""Long logs for benchmarks: two clouds and two licence pools, hosts and tokens that come, are used and go back, year after year.

``python -m benchmarks.histories FILE [--events N]`` writes one. All through the aggregates' own commands, one append a minute.
"""

import argparse
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any, Final

from xce.adapters.store.open import open_log
from xce.domain.events.base import Aggregate
from xce.domain.formats.provider import (
    Billing,
    BillingUnit,
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

START: Final = datetime(2026, 3, 1, tzinfo=UTC)
MINUTE: Final = timedelta(minutes=1)
#: By cloud: its templates with their prices.
CLOUDS: Final = {"aws": {"c4": "0.17", "m8": "0.40"}, "gcp": {"n2": "0.21"}}
#: By pool: its tokens with their prices.
POOLS: Final = {"pool-a": {"lic_sim": "2.00", "lic_syn": "3.50"}, "pool-b": {"lic_pnr": "5.25"}}
HOSTS: Final = 6
TOKENS: Final = 8
#: Requests of one minute live so many minutes.
LIFE: Final = 40
BY: Final = "provisioner/p1"


def write_history(log: EventLog, events: int) -> None:
    """Append at least so many events to a new log: one append for each minute, so that stamps never go back."""
    for aggregates in minutes():
        # An aggregate comes once in an append, with all that happened to it.
        recorded = log.append(list({aggregate.id: aggregate for aggregate in aggregates}.values()))
        if recorded[-1].position >= events:
            return


def minutes() -> Iterator[Sequence[Aggregate[Any]]]:
    """Yield the aggregates that change in each minute, for ever. Their events are appended in the order of the minutes."""
    yield from _Site().minutes()


class _Site:
    def __init__(self) -> None:
        self._numbers = count(1)
        self._hosts = deque[list[Instance]]()
        self._tokens = deque[list[tuple[Grant, str]]]()
        self._resources: dict[str, ElasticResource] = {}
        self._providers: dict[str, Provider] = {}
        self._leases: dict[str, ProviderLease] = {}

    def minutes(self) -> Iterator[Sequence[Aggregate[Any]]]:
        yield self._set_up()
        for minute in count(1):
            at = START + minute * MINUTE
            changed: list[Aggregate[Any]] = []
            changed += self._go_back(at)
            changed += self._ask_hosts(at, minute)
            if minute % 3 == 0:
                changed += self._ask_tokens(at, minute)
            if minute % 97 == 0:
                changed += self._trouble(at, minute)
            yield changed

    def _set_up(self) -> list[Aggregate[Any]]:
        for name, offers in CLOUDS.items():
            unit = BillingUnit.HOUR if name == "gcp" else BillingUnit.SECOND
            description = ProviderDescription(
                name=name,
                capacity=5000,
                billing=Billing(unit=unit),
                templates=tuple(
                    TemplateOffer(template_id=item, price_per_hour=Decimal(price))
                    for item, price in offers.items()
                ),
            )
            self._providers[name] = Provider.describe_first(
                description=description, at=START, by=BY
            )
        for name, offers in POOLS.items():
            description = ProviderDescription(
                name=name,
                kinds=("countable",),
                resources=tuple(
                    ResourceOffer(name=item, capacity=5000, price_per_hour=Decimal(price))
                    for item, price in offers.items()
                ),
            )
            self._providers[name] = Provider.describe_first(
                description=description, at=START, by=BY
            )
            for item in offers:
                self._resources[item] = ElasticResource.declare(
                    resource=item, owned=20, provider=name, max_borrow=4000, step=1, at=START, by="admin/alice"
                )  # fmt: skip
        for name in self._providers:
            self._leases[name] = ProviderLease.grant(
                provider=name, holder="p1", term=timedelta(seconds=30), at=START, by="controller"
            )
        return [*self._providers.values(), *self._resources.values(), *self._leases.values()]

    def _ask(self, provider: str, kind: Kind, item: str, price: str, at: datetime) -> Request:
        number = next(self._numbers)
        lease = self._leases[provider]
        amount = HOSTS if kind is Kind.HOST else TOKENS
        request = Request.intend(
            request=f"R{number}", provider=provider, kind=kind, item=item, amount=amount, price_per_hour=Decimal(price),
            deadline=at + 15 * MINUTE, reason=f"{amount} jobs of queue normal wait for {item}",
            jobs=[str(100_000 + number * 8 + job) for job in range(amount)], demand_position=number,
            hold=10 * MINUTE, at=at, by=BY, epoch=lease.epoch,
        )  # fmt: skip
        request.accept(provider_request_id=f"add-{number}", at=at, by=BY, epoch=lease.epoch)
        return request

    def _ask_hosts(self, at: datetime, minute: int) -> list[Aggregate[Any]]:
        offers = [
            (name, item, price) for name, items in CLOUDS.items() for item, price in items.items()
        ]
        provider, item, price = offers[minute % len(offers)]
        request = self._ask(provider, Kind.HOST, item, price, at)
        epoch = self._leases[provider].epoch
        instances: list[Instance] = []
        came = HOSTS - minute % 2
        for host in range(came):
            machine = f"{request.name.lower()}-{host}"
            name = f"{provider}/{machine}"
            request.grant_instance(instance_id=name, machine=machine, at=at, by=BY, epoch=epoch)
            instance = Instance.grant(
                instance=name, request_id=request.name, provider=provider, template=item, machine=machine,
                name=f"ip-{machine}", price_per_hour=Decimal(price), billing=self._providers[provider].description.billing,
                hold_until=at + 10 * MINUTE, at=at, by=BY, epoch=epoch,
            )  # fmt: skip
            if minute % 50 == 0 and host == 0:
                instance.miss_join(why="not joined after 10m", at=at, by=BY, epoch=epoch)
            else:
                instance.join(
                    host=f"ip-{machine}", booted_at=at, attributes={"type": "X86_64", "zone": "a"},
                    total={"slots": 8, "mem": 32768}, at=at, by=BY, epoch=epoch,
                )  # fmt: skip
            instances.append(instance)
        if came < HOSTS:
            request.fall_short(
                failed=HOSTS - came, why="InsufficientCapacity", at=at, by=BY, epoch=epoch
            )
        request.close(outcome=request.outcome, why="answered", at=at, by=BY, epoch=epoch)
        self._hosts.append(instances)
        return [request, *instances]

    def _ask_tokens(self, at: datetime, minute: int) -> list[Aggregate[Any]]:
        offers = [
            (name, item, price) for name, items in POOLS.items() for item, price in items.items()
        ]
        provider, item, price = offers[minute // 3 % len(offers)]
        request = self._ask(provider, Kind.COUNTABLE, item, price, at)
        epoch = self._leases[provider].epoch
        name = f"{provider}/{request.name.lower()}"
        request.grant_amount(grant_id=name, amount=TOKENS, at=at, by=BY, epoch=epoch)
        request.close(outcome=RequestState.COMPLETE, why="answered", at=at, by=BY, epoch=epoch)
        grant = Grant.grant(
            grant=name, request_id=request.name, provider=provider, resource=item, amount=TOKENS,
            hold_until=at + 10 * MINUTE, expires_at=None, price_per_hour=Decimal(price), at=at, by=BY, epoch=epoch,
        )  # fmt: skip
        self._resources[item].borrow(grant_id=name, amount=TOKENS, at=at, by=BY)
        self._tokens.append([(grant, item)])
        return [request, grant, self._resources[item]]

    def _go_back(self, at: datetime) -> list[Aggregate[Any]]:
        changed: list[Aggregate[Any]] = []
        if len(self._hosts) > LIFE:
            back = f"B{next(self._numbers)}"
            for instance in self._hosts.popleft():
                epoch = self._leases[instance.provider].epoch
                if instance.host is not None:
                    instance.start_drain(why="idle for 30m", at=at, by=BY, epoch=epoch)
                instance.intend_return(
                    return_id=back, why="idle for 30m", at=at, by=BY, epoch=epoch
                )
                instance.accept_return(
                    return_id=back, provider_return_id=f"rem-{back}", at=at, by=BY, epoch=epoch
                )
                instance.confirm_return(at=at, by=BY, epoch=epoch)
                changed.append(instance)
        if len(self._tokens) > LIFE:
            for grant, item in self._tokens.popleft():
                resource = self._resources[item]
                epoch = self._leases[grant.provider].epoch
                for part in (3, TOKENS - 3):
                    back = f"B{next(self._numbers)}"
                    grant.start_return(return_id=back, amount=part, at=at, by=BY, epoch=epoch)
                    resource.give_back(
                        return_id=back, grant_id=grant.name, amount=part, occupied=5, at=at, by=BY
                    )
                    grant.confirm_return(return_id=back, at=at, by=BY, epoch=epoch)
                changed += [grant, resource]
        return changed

    def _trouble(self, at: datetime, minute: int) -> list[Aggregate[Any]]:
        name = tuple(self._providers)[minute % len(self._providers)]
        provider, lease = self._providers[name], self._leases[name]
        provider.pause(item=None, until=at + 5 * MINUTE, why="InsufficientCapacity", at=at, by=BY)
        if minute % 2:
            provider.resume(item=None, at=at + MINUTE, by="admin/alice")
        lease.take_over(  # the same provisioner, started again
            holder="p1", epoch=lease.epoch + 1, term=timedelta(seconds=30), at=at, by="controller"
        )
        return [provider, lease]


def main() -> None:
    """Write one log."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--events", type=int, default=1_000_000)
    arguments = parser.parse_args()
    with open_log(arguments.file) as log:
        write_history(log, arguments.events)
        print(f"{arguments.file}: {log.head().position:,} events")


if __name__ == "__main__":
    main()
