"""What is wrong with a configuration whose fields are right one by one: names that nobody has, names used twice."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xce.domain.formats.config import SharedPool, SimulationConfig
from xce.domain.formats.observation import Scope
from xce.domain.formats.provider import Kind, TemplateOffer

#: Where in a document: keys and indices.
Loc = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """One thing that is wrong, and where."""

    loc: Loc
    message: str


def contradictions(config: SimulationConfig) -> Iterator[Contradiction]:
    """Yield everything that does not fit together, part by part."""
    yield from _cluster(config)
    yield from _shared(config)
    yield from _providers(config)
    yield from _budgets(config)
    features = {pool.name for pool in config.cluster.shared}
    for i, rule in enumerate(config.workload.licences):
        yield from _unknown(
            ("workload", "licences", i, "feature"), "shared resource", rule.feature, features
        )
    yield from _twice(
        ("workload", "licences"), "feature", (rule.feature for rule in config.workload.licences)
    )
    yield from _twice(
        ("policy", "budgets"), "name", (budget.name for budget in config.policy.budgets)
    )


def _budgets(config: SimulationConfig) -> Iterator[Contradiction]:
    providers = {provider.name for provider in config.providers}
    templates = {offer.template_id for provider in config.providers for offer in provider.templates}
    for i, budget in enumerate(config.policy.budgets):
        at: Loc = ("policy", "budgets", i)
        if budget.provider is not None:
            yield from _unknown((*at, "provider"), "provider", budget.provider, providers)
        for j, name in enumerate(budget.providers):
            yield from _unknown((*at, "providers", j), "provider", name, providers)
        for j, name in enumerate(budget.templates):
            yield from _unknown((*at, "templates", j), "template", name, templates)


def _cluster(config: SimulationConfig) -> Iterator[Contradiction]:
    cluster = config.cluster
    shared = {pool.name for pool in cluster.shared}
    owner: dict[str, int] = {}
    for i, group in enumerate(cluster.hosts):
        for host in group.hosts():
            if owner.setdefault(host.name, i) != i:
                yield Contradiction(
                    ("cluster", "hosts", i, "name"),
                    f"host {host.name!r} is also in the group {cluster.hosts[owner[host.name]].name!r}",
                )
                break
        for resource in group.total:
            if resource in shared:
                yield Contradiction(
                    ("cluster", "hosts", i, "total", resource),
                    f"{resource!r} is a shared resource, not one of a host",
                )
    yield from _twice(("cluster", "shared"), "name", (pool.name for pool in cluster.shared))
    yield from _twice(("cluster", "queues"), "name", (queue.name for queue in cluster.queues))
    yield from _twice(("cluster", "limits"), "name", (limit.name for limit in cluster.limits))
    yield from _twice(("cluster", "quotas"), "name", (quota.name for quota in cluster.quotas))
    yield from _twice(("cluster", "groups"), "name", (group.name for group in cluster.groups))
    groups = {group.name for group in cluster.groups}
    for i, limit in enumerate(cluster.limits):
        for j, name in enumerate(limit.groups or ()):
            yield from _unknown(("cluster", "limits", i, "groups", j), "group", name, groups)
    for i, quota in enumerate(cluster.quotas):
        yield from _unknown(("cluster", "quotas", i, "group"), "group", quota.group, groups)
        if quota.maximum is not None and quota.maximum < quota.guaranteed:
            yield Contradiction(
                ("cluster", "quotas", i, "maximum"),
                f"maximum {quota.maximum} is below guaranteed {quota.guaranteed}",
            )


def _shared(config: SimulationConfig) -> Iterator[Contradiction]:
    lenders = {
        provider.name: {offer.name for offer in provider.resources} for provider in config.providers
    }
    for i, pool in enumerate(config.cluster.shared):
        yield from _one_pool(("cluster", "shared", i), pool, lenders)


def _one_pool(loc: Loc, pool: SharedPool, lenders: dict[str, set[str]]) -> Iterator[Contradiction]:
    yield from _observation(loc, pool)
    if pool.headroom > pool.owned + pool.max_borrow:
        yield Contradiction(
            (*loc, "headroom"),
            f"headroom {pool.headroom} is above all that there can be: {pool.owned + pool.max_borrow}",
        )
    if pool.provider is None:
        if pool.max_borrow:
            yield Contradiction((*loc, "max_borrow"), "nobody lends it: provider is not set")
        return
    if pool.provider not in lenders:
        yield from _unknown((*loc, "provider"), "provider", pool.provider, lenders)
    elif pool.name not in lenders[pool.provider]:
        yield Contradiction(
            (*loc, "provider"), f"provider {pool.provider!r} does not lend {pool.name!r}"
        )
    if 0 < pool.max_borrow < pool.step:
        yield Contradiction(
            (*loc, "max_borrow"),
            f"max_borrow {pool.max_borrow} is below one step of {pool.step}: nothing could be borrowed",
        )


def _observation(loc: Loc, pool: SharedPool) -> Iterator[Contradiction]:
    if pool.observation_scope is Scope.POOL and pool.pool_size is None:
        yield Contradiction(
            (*loc, "observation_scope"), "of a whole pool, pool_size must say how much that is"
        )
    if pool.pool_size is not None and pool.pool_size < pool.owned:
        yield Contradiction(
            (*loc, "pool_size"), f"pool_size {pool.pool_size} is below the {pool.owned} owned"
        )
    if pool.observer is None:
        for field, is_set in (
            ("observation_ttl", pool.observation_ttl is not None),
            ("return_when_blind", pool.return_when_blind),
            ("drift_alert", pool.drift_alert > 0),
        ):
            if is_set:
                yield Contradiction((*loc, field), "nobody observes it: observer is not set")


def _providers(config: SimulationConfig) -> Iterator[Contradiction]:
    yield from _twice(("providers",), "name", (provider.name for provider in config.providers))
    shared = {pool.name for pool in config.cluster.shared}
    seen: dict[str, tuple[str, TemplateOffer]] = {}
    for i, provider in enumerate(config.providers):
        loc: Loc = ("providers", i)
        templates = {offer.template_id for offer in provider.templates}
        resources = {offer.name for offer in provider.resources}
        yield from _twice(
            (*loc, "templates"), "template_id", (o.template_id for o in provider.templates)
        )
        yield from _twice((*loc, "resources"), "name", (o.name for o in provider.resources))
        if templates and Kind.HOST not in provider.kinds:
            yield Contradiction((*loc, "kinds"), 'has templates, so it must list "host"')
        if resources and Kind.COUNTABLE not in provider.kinds:
            yield Contradiction((*loc, "kinds"), 'has resources, so it must list "countable"')
        for j, offer in enumerate(provider.templates):
            for resource in offer.provides:
                if resource in shared:
                    yield Contradiction(
                        (*loc, "templates", j, "provides", resource),
                        f"{resource!r} is a shared resource, not one of a host",
                    )
            other, same = seen.setdefault(offer.template_id, (provider.name, offer))
            if (same.attributes, same.provides) != (offer.attributes, offer.provides):
                yield Contradiction(
                    (*loc, "templates", j, "template_id"),
                    f"template {offer.template_id!r} is another kind of host at provider {other!r}",
                )
        for j, offer_of in enumerate(provider.resources):
            yield from _unknown(
                (*loc, "resources", j, "name"), "shared resource", offer_of.name, shared
            )
        behaviour = provider.simulation
        for item in behaviour.capacity:
            yield from _unknown(
                (*loc, "simulation", "capacity", item),
                "template or resource",
                item,
                templates | resources,
            )
        for resource in behaviour.outside_use:
            yield from _unknown(
                (*loc, "simulation", "outside_use", resource), "resource", resource, resources
            )
        for j, refusal in enumerate(behaviour.refusals):
            for k, item in enumerate(refusal.items or ()):
                yield from _unknown(
                    (*loc, "simulation", "refusals", j, "items", k),
                    "template or resource",
                    item,
                    templates | resources,
                )


def _unknown(loc: Loc, what: str, name: str, known: Iterable[str]) -> Iterator[Contradiction]:
    names = sorted(known)
    if name not in names:
        listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        yield Contradiction(loc, f"no {what} is named {name!r}; there is " + (listed or "none"))


def _twice(loc: Loc, field: str, names: Iterable[str]) -> Iterator[Contradiction]:
    seen = Counter[str]()
    for i, name in enumerate(names):
        seen[name] += 1
        if seen[name] == 2:
            yield Contradiction((*loc, i, field), f"{name!r} is there twice")
