"""The bounds on asking: capacities, what may be in flight, and budgets, over everything that exists or is asked (F07).

A bound knows what is used of it. An ask is possible while all its bounds have room, and takes from all of them, so that the asks
of one round count against the next.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Protocol

from xce.domain.formats.policy import Budget, PolicyInput
from xce.domain.formats.provider import Kind, ProviderDescription, ResourceOffer, TemplateOffer
from xce.domain.formats.standing import BudgetUse
from xce.domain.policy import money, spot
from xce.domain.policy.backoff import BackOff
from xce.domain.policy.granularity import Sizes
from xce.domain.policy.purses import UNBOUNDED, KnownSpent, PeriodBound, in_it, in_money, purses_of
from xce.domain.policy.times import clock, later
from xce.domain.policy.usage import Usage, asked_within
from xce.domain.policy.wanted import Want
from xce.domain.values import natural_key, write_duration


class Bound(Protocol):
    """One bound on asking."""

    def room(self, price: Decimal | None) -> int:
        """Return how many more of this price it allows."""
        ...

    def take(self, amount: int, price: Decimal | None) -> None:
        """Count an ask; below 0: one that is taken back."""
        ...

    def why(self, price: Decimal | None) -> str:
        """Return for people why it allows no more than it does."""
        ...


@dataclass(slots=True)
class CountBound:
    """At most ``limit`` of something; ``unaccounted`` of what is used may exist and is not counted on."""

    what: str
    limit: int
    used: int
    unaccounted: int = 0

    def room(self, price: Decimal | None) -> int:
        """Return what is left, whatever the price."""
        return max(0, self.limit - self.used)

    def take(self, amount: int, price: Decimal | None) -> None:
        """Count an ask."""
        self.used += amount

    def why(self, price: Decimal | None) -> str:
        """Return the bound and its use."""
        return f"{self.what}: {self.used} of {self.limit} used{in_it(self.unaccounted)}"


@dataclass(slots=True)
class CostBound:
    """At most ``limit`` money per hour. An unknown price is not zero: nothing unpriced passes, and nothing at all while what
    exists has an unknown price. ``unaccounted`` hosts and units of what is paid may exist and are not counted on.
    """

    what: str
    limit: Decimal
    rate: Decimal = money.ZERO
    unpriced: list[str] = field(default_factory=list[str])
    unaccounted: int = 0

    def room(self, price: Decimal | None) -> int:
        """Return how many of this price the rest of the money pays for."""
        if price is None or self.unpriced:
            return 0
        if not price:
            return UNBOUNDED
        left = money.plus(self.limit, -self.rate)
        return money.how_many(left, price)

    def take(self, amount: int, price: Decimal | None) -> None:
        """Count an ask."""
        if not amount:
            return
        assert price is not None, "nothing unpriced passes"
        self.rate = money.plus(self.rate, money.times(price, amount))

    def why(self, price: Decimal | None) -> str:
        """Return the budget and the rate, or whose price is unknown."""
        if self.unpriced:
            return f"{self.what} cannot be kept: the price of {self.unpriced[0]} is unknown"
        if price is None:
            return f"{self.what} bounds the cost, and its price is unknown"
        return (
            f"{self.what}: {money.plain(self.rate)} of {money.plain(self.limit)} per hour used"
            f"{in_it(self.unaccounted)}, and one more costs {money.plain(price)}"
        )


@dataclass(slots=True)
class RateBound(CountBound):
    """At most ``limit`` hosts asked within a time."""

    within: timedelta = timedelta(0)

    def why(self, price: Decimal | None) -> str:
        """Return the bound and what was asked."""
        return (
            f"{self.what}: {self.used} of {self.limit} asked within {write_duration(self.within)}"
        )


class Bounds:
    """All bounds of one round, counted from the inventory."""

    def __init__(
        self, inputs: PolicyInput, wants: Mapping[tuple[Kind, str], Want] | None = None
    ) -> None:
        """Count; ``wants``: what the round wants of each item."""
        self._inputs = inputs
        self._wants = wants or {}
        self._shares: dict[str, Bound] = {}
        self._cautious: dict[str, list[Bound]] = {}
        usage = Usage(inputs)
        self._usage = usage
        budgets = sorted(inputs.budgets, key=lambda budget: natural_key(budget.name))
        self._in_flight = CountBound(
            "hosts in flight", inputs.settings.max_in_flight_hosts, usage.in_flight
        )
        self._budget_hosts = [
            (
                budget,
                CountBound(
                    f"hosts of budget {budget.name}",
                    most,
                    usage.hosts(budget),
                    usage.unaccounted_in(budget, Kind.HOST),
                ),
            )
            for budget in budgets
            if (most := budget.max_hosts) is not None
        ]
        self._budget_rates = [
            (
                budget,
                RateBound(
                    f"budget {budget.name}",
                    rate.hosts,
                    asked_within(inputs, budget, rate),
                    within=rate.within,
                ),
            )
            for budget in budgets
            if (rate := budget.max_asked) is not None
        ]
        self._budget_costs = [
            (budget, _cost_bound(usage, budget, limit))
            for budget in budgets
            if (limit := budget.max_cost_per_hour) is not None
        ]
        self._billings = {provider.name: provider.billing for provider in inputs.providers}
        spent = tuple(KnownSpent.of(one) for one in inputs.spent) if budgets else ()
        self._purses = [
            (budget, purse)
            for budget in budgets
            for purse in purses_of(inputs.now, budget, usage.by_project, spent, self._billings)
        ]
        self._demand = inputs.demand
        self._back_off = BackOff(inputs)
        self._of_template: dict[tuple[str, str], list[Bound]] = {}
        self._capacity_of: dict[str, list[Bound]] = {}
        self._shared = inputs.shared
        self._of_site: dict[str, list[Bound]] = {}

    def uses(self) -> Iterator[BudgetUse]:
        """Yield how far each bound of each budget is used."""
        for budget, bound in self._budget_hosts:
            yield _use(budget, "max_hosts", Decimal(bound.used), Decimal(bound.limit))
        for budget, rate in self._budget_rates:
            yield _use(budget, "max_asked", Decimal(rate.used), Decimal(rate.limit))
        for budget, cost in self._budget_costs:
            yield _use(budget, "max_cost_per_hour", cost.rate, cost.limit)
        for budget, purse in self._purses:
            bound_name = f"max_cost_per_{purse.period}"
            yield _use(
                budget, bound_name, *map(in_money, (purse.spent, purse.limit, purse.to_come))
            )

    def of_template(
        self, provider: ProviderDescription, offer: TemplateOffer, project: str | None
    ) -> list[Bound]:
        """Return the bounds on hosts of one offer for a project; those it shares with other offers are the same objects."""
        covering: list[Bound] = [
            bound
            for budget, bound in (*self._budget_hosts, *self._budget_rates)
            if budget.covers(provider.name, offer.template_id, project)
        ]
        return [
            *self._own(provider, offer),
            *self._capacity(provider),
            *self._caution(provider),
            self._in_flight,
            *covering,
            *self._costs_of(provider.name, offer.template_id, project),
        ]

    def _own(self, provider: ProviderDescription, offer: TemplateOffer) -> list[Bound]:
        """Return the bounds on hosts of one template alone; several lines of it share them."""
        key = provider.name, offer.template_id
        if key not in self._of_template:
            bounds: list[Bound] = []
            if offer.max_number >= 0:
                used = self._usage.of_template[key]
                lost = self._usage.unaccounted_for(
                    provider=provider.name, kind=Kind.HOST, item=offer.template_id
                )
                bounds.append(
                    CountBound(f"template {offer.template_id}", offer.max_number, used, lost)
                )
            bounds += self._spot_of(offer.template_id)
            if (why := self._back_off.probing_since(*key)) is not None:
                grain = provider.granularity
                least = Sizes.of(grain.minimum, grain.step).up(self._probe_of(offer.template_id))
                bounds.append(CountBound(f"probe ({why})", least, self._usage.in_flight_of[key]))
            self._of_template[key] = bounds
        return self._of_template[key]

    def _spot_of(self, template: str) -> list[Bound]:
        """Return the bound on the spot share of a template, from whomever: the same object for all providers."""
        rule = spot.rule_of(self._inputs, template)
        if rule is None or rule.template != template:
            return []
        if template not in self._shares:
            there = Counter[str]()
            for (_, of), count in self._usage.of_template.items():
                there[of] += count
            wanted = sum(
                max(0, want.amount - want.asked_since)
                for (kind, line), want in self._wants.items()
                if kind is Kind.HOST
                and (spot.is_of(line, rule.template) or spot.is_of(line, rule.on_demand))
            )
            most = spot.most(rule, there[template] + there[rule.on_demand], wanted)
            self._shares[template] = CountBound(f"spot share of {template}", most, there[template])
        return [self._shares[template]]

    def _caution(self, provider: ProviderDescription) -> list[Bound]:
        """Return the bound on what is on its way from a provider that has lost many hosts at once; the same object for all templates."""
        if provider.name not in self._cautious:
            self._cautious[provider.name] = [*self._after_mass_loss(provider)]
        return self._cautious[provider.name]

    def _after_mass_loss(self, provider: ProviderDescription) -> Iterator[Bound]:
        settings = self._inputs.settings
        whole, parts = settings.mass_loss_share.as_integer_ratio()
        for loss in self._inputs.losses:
            before = loss.hosts + self._usage.of_provider[provider.name]
            if (
                loss.provider == provider.name
                and self._inputs.now < later(loss.last_at, settings.cautious_for)
                and loss.hosts >= settings.mass_loss_least
                and loss.hosts * parts > whole * before
            ):
                grain = provider.granularity
                sizes = Sizes.of(grain.minimum, grain.step)
                least = max(sizes.up(self._probe_of(one.template_id)) for one in provider.templates)
                coming = sum(
                    count
                    for (owner, _), count in self._usage.in_flight_of.items()
                    if owner == provider.name
                )
                yield CountBound(
                    f"slow start after {loss.hosts} hosts were lost by {clock(loss.last_at)}",
                    max(least, loss.joined_since),
                    coming,
                )

    def _probe_of(self, template: str) -> int:
        """Return the hosts that the first job needs which wants some of a template: less would serve nobody (F15)."""
        jobs = [
            (job.order, job.hosts)
            for line in self._demand.hosts
            if line.template == template or line.template.startswith(f"{template}@")
            for job in line.jobs
        ]
        return max(1, min(jobs)[1]) if jobs else 1

    def of_resource(
        self, provider: ProviderDescription, offer: ResourceOffer, project: str | None
    ) -> list[Bound]:
        """Return the bounds on units of one offer for a project. An unknown capacity is the caller's to refuse."""
        assert offer.capacity is not None, "an unknown capacity allows nothing"
        used = self._usage.of_resource[provider.name, offer.name]
        lost = self._usage.unaccounted_for(
            provider=provider.name, kind=Kind.COUNTABLE, item=offer.name
        )
        own: Bound = CountBound(f"capacity of {offer.name}", offer.capacity, used, lost)
        return [own, *self._site_of(offer.name), *self._costs_of(provider.name, None, project)]

    def _site_of(self, resource: str) -> list[Bound]:
        """Return the site's own bound on what is borrowed of a resource, from whomever: the same object for all lenders."""
        if resource not in self._of_site:
            limits = [each.max_borrow for each in self._shared if each.name == resource]
            used = self._usage.borrowed[resource]
            lost = self._usage.unaccounted_for(kind=Kind.COUNTABLE, item=resource)
            self._of_site[resource] = [
                CountBound(f"max_borrow of {resource}", limit, used, lost)
                for limit in limits
                if limit is not None
            ]
        return self._of_site[resource]

    def _capacity(self, provider: ProviderDescription) -> list[Bound]:
        """Return the bound on all hosts of a provider: the same object for all its templates."""
        if provider.name not in self._capacity_of:
            used = self._usage.of_provider[provider.name]
            lost = self._usage.unaccounted_for(provider=provider.name, kind=Kind.HOST)
            self._capacity_of[provider.name] = (
                []
                if provider.capacity is None
                else [CountBound("capacity in hosts", provider.capacity, used, lost)]
            )
        return self._capacity_of[provider.name]

    def _costs_of(self, provider: str, template: str | None, project: str | None) -> list[Bound]:
        rates: list[Bound] = [
            bound
            for budget, bound in self._budget_costs
            if budget.covers(provider, template, project)
        ]
        billing = self._billings[provider]
        return rates + [
            PeriodBound(purse, billing, self._usage.unaccounted_in(budget))
            for budget, purse in self._purses
            if budget.covers(provider, template, project)
        ]


def budget_uses(inputs: PolicyInput) -> tuple[BudgetUse, ...]:
    """Return how far each bound of each budget is used, before anything is asked."""
    return tuple(Bounds(inputs).uses()) if inputs.budgets else ()


def _use(
    budget: Budget, bound: str, used: Decimal, limit: Decimal, counted_on: Decimal = money.ZERO
) -> BudgetUse:
    return BudgetUse.model_construct(
        budget=budget.name,
        bound=bound,
        used=min(used, money.MOST),
        counted_on=min(counted_on, money.MOST),
        limit=limit,
    )


def _cost_bound(usage: Usage, budget: Budget, limit: Decimal) -> CostBound:
    """Return the bound of a budget on the cost rate, with the rate of now."""
    bound = CostBound(f"budget {budget.name}", limit, unaccounted=usage.unaccounted_in(budget))
    covered = list(usage.by_project.covered(budget))
    bound.unpriced = sorted(cost.what for cost in covered if cost.price is None)
    for cost in covered:
        if cost.price is not None:
            bound.take(cost.amount, cost.price)
    return bound
