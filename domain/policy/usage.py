"""What exists or is asked, counted once, and what was asked within a time: what the bounds on asking are counted from."""

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from operator import itemgetter

from xce.domain.formats.policy import AskRate, Budget, PolicyInput
from xce.domain.formats.provider import Kind, ProviderDescription
from xce.domain.policy import facts
from xce.domain.policy.by_project import ByProject
from xce.domain.policy.purses import Cost
from xce.domain.policy.unaccounted import unaccounted
from xce.domain.provisioning.instance import InstanceState


def asked_within(inputs: PolicyInput, budget: Budget, rate: AskRate) -> int:
    """Return the hosts that were asked within the time of a rate.

    The record of asks has all of them, merged by time; the requests of the inventory stand in where there is no record.
    """
    since = inputs.now - rate.within
    recorded = Counter[tuple[str, str, str | None]]()
    for entry in inputs.asked:
        key = entry.provider, entry.template, entry.project
        if entry.asked_at > since and budget.covers(*key):
            recorded[key] += entry.hosts
    requested = Counter[tuple[str, str, str | None]]()
    for request in inputs.inventory.requests:
        template = request.template
        if (
            template is not None
            and request.asked_at > since
            and budget.covers(request.provider, template, request.project)
        ):
            requested[request.provider, template, request.project] += request.amount
    return (recorded | requested).total()


class Usage:
    """What exists or is asked, counted once."""

    def __init__(self, inputs: PolicyInput) -> None:
        inventory = inputs.inventory
        prices = _stated_prices(inputs.providers)
        self.of_template = Counter[tuple[str, str]]()
        self._hosts_of = Counter[tuple[str, str, str | None]]()
        self.of_provider = Counter[str]()
        self.of_resource = Counter[tuple[str, str]]()
        self.borrowed = Counter[str]()
        self.in_flight = 0
        self.in_flight_of = Counter[tuple[str, str]]()
        self.costs: list[Cost] = []
        for instance in inventory.instances:
            if not facts.exists(instance):
                continue
            self._exists(instance.provider, instance.template, instance.project, 1)
            if instance.state is InstanceState.STARTING:
                self._comes(instance.provider, instance.template, 1)
            stated = prices.get((instance.provider, Kind.HOST, instance.template))
            self.costs.append(
                Cost(
                    f"instance {instance.id}",
                    instance.provider,
                    instance.template,
                    instance.project,
                    _known(instance.price_per_hour, stated),
                    1,
                    instance.granted_at,
                )
            )
        for grant in inventory.grants:
            if amount := facts.held(grant):
                self.of_resource[grant.provider, grant.resource] += amount
                self.borrowed[grant.resource] += amount
                stated = prices.get((grant.provider, Kind.COUNTABLE, grant.resource))
                price = _known(grant.price_per_hour, stated)
                self.costs.append(
                    Cost(
                        f"grant {grant.id}",
                        grant.provider,
                        None,
                        grant.project,
                        price,
                        amount,
                        grant.granted_at,
                    )
                )
        for request in inventory.requests:
            if not (amount := facts.open_amount(request)):
                continue
            if request.kind is Kind.HOST:
                item = request.template or ""
                self._exists(request.provider, item, request.project, amount)
                self._comes(request.provider, item, amount)
            else:
                item = request.resource or ""
                self.of_resource[request.provider, item] += amount
                self.borrowed[item] += amount
            stated = prices.get((request.provider, request.kind, item))
            price = _known(request.price_per_hour, stated)
            self.costs.append(
                Cost(
                    f"request {request.id}",
                    request.provider,
                    request.template,
                    request.project,
                    price,
                    amount,
                )
            )

        #: What may exist and is not counted on; it is in all the counts but those of what is on its way.
        self.unaccounted = unaccounted(inventory, inputs.providers)
        for one in self.unaccounted:
            template = None
            if one.kind is Kind.HOST:
                template = one.item or ""
                self._exists(one.provider, template, one.project, one.amount)
            elif one.item is not None:
                self.of_resource[one.provider, one.item] += one.amount
                self.borrowed[one.item] += one.amount
            self.costs.append(
                Cost(
                    one.what, one.provider, template, one.project, one.price, one.amount, one.since
                )
            )

        self.by_project = ByProject(
            self.costs, lambda cost: (cost.provider, cost.template, cost.project)
        )
        self._hosts_by_project = ByProject(self._hosts_of.items(), itemgetter(0))

    def _comes(self, provider: str, template: str, amount: int) -> None:
        self.in_flight += amount
        self.in_flight_of[provider, template] += amount

    def _exists(self, provider: str, template: str, project: str | None, amount: int) -> None:
        self.of_template[provider, template] += amount
        self.of_provider[provider] += amount
        self._hosts_of[provider, template, project] += amount

    def unaccounted_for(
        self, *, provider: str | None = None, kind: Kind | None = None, item: str | None = None
    ) -> int:
        """Return how much of what counts is not accounted for, of one provider, kind or item."""
        return sum(
            one.amount
            for one in self.unaccounted
            if provider in (None, one.provider)
            and kind in (None, one.kind)
            and item in (None, one.item)
        )

    def unaccounted_in(self, budget: Budget, kind: Kind | None = None) -> int:
        """Return how much of what counts against a budget is not accounted for."""
        return sum(
            one.amount
            for one in self.unaccounted
            if kind in (None, one.kind)
            and budget.covers(
                one.provider, (one.item or "") if one.kind is Kind.HOST else None, one.project
            )
        )

    def hosts(self, budget: Budget) -> int:
        """Return the hosts that count against a budget."""
        return sum(count for _, count in self._hosts_by_project.covered(budget))


def _known(agreed: Decimal | None, stated: Decimal | None) -> Decimal | None:
    """Return the price that was agreed, else what is asked now."""
    return agreed if agreed is not None else stated


def _stated_prices(
    providers: Iterable[ProviderDescription],
) -> dict[tuple[str, Kind, str], Decimal | None]:
    """Return what providers ask now, for entries that do not say what was agreed."""
    prices: dict[tuple[str, Kind, str], Decimal | None] = {}
    for provider in providers:
        for template in provider.templates:
            prices[provider.name, Kind.HOST, template.template_id] = provider.price_of(template)
        for resource in provider.resources:
            prices[provider.name, Kind.COUNTABLE, resource.name] = provider.price_of(resource)
    return prices
