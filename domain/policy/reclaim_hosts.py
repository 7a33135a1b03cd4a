"""Which idle hosts go back: past their hold, not wanted by the demand, late in what is paid."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal

from xce.domain.formats.inventory import InstanceEntry
from xce.domain.formats.policy import Decision, DecisionKind, PolicyInput
from xce.domain.formats.provider import Billing, ProviderDescription
from xce.domain.formats.session_result import IdleHost
from xce.domain.policy import billing, money
from xce.domain.policy.lines import line_id
from xce.domain.policy.standing import minimums, not_needed
from xce.domain.policy.times import clock, later
from xce.domain.provisioning.instance import InstanceState
from xce.domain.values import natural_key, write_duration


def reclaim_hosts(inputs: PolicyInput) -> tuple[list[Decision], list[Decision]]:
    """Return the returns, one a provider and template, and the holds of idle hosts that stay, one a reason."""
    if not inputs.idle.hosts:
        return [], []
    providers = {provider.name: provider for provider in inputs.providers}
    entries = {entry.id: entry for entry in inputs.inventory.instances}
    going: dict[tuple[str, str], list[tuple[InstanceEntry, IdleHost]]] = {}
    staying: dict[tuple[str, str, str], list[InstanceEntry]] = {}
    unknown: list[str] = []
    for idle in _each_once(inputs.idle.hosts):
        entry = entries.get(idle.instance)
        if entry is None:
            unknown.append(idle.instance)
        elif entry.state in (InstanceState.STARTING, InstanceState.JOINED):
            if why := _why_keep(entry, idle, providers.get(entry.provider), inputs):
                staying.setdefault((entry.provider, entry.template, why), []).append(entry)
            else:
                going.setdefault((entry.provider, entry.template), []).append((entry, idle))
    _keep_minimums(inputs, going, staying)
    returns = [_return(hosts, providers, inputs.now) for hosts in going.values()]
    holds = [_hold(entries, why) for (_, _, why), entries in staying.items()]
    if unknown:
        holds.append(
            Decision(
                kind=DecisionKind.HOLD,
                instances=tuple(unknown),
                reason="idle, and not in the inventory: nothing is done with what is not ours",
            )
        )
    return returns, holds


def _keep_minimums(
    inputs: PolicyInput,
    going: dict[tuple[str, str], list[tuple[InstanceEntry, IdleHost]]],
    staying: dict[tuple[str, str, str], list[InstanceEntry]],
) -> None:
    """Let only so many hosts go that the standing minimums stay: the cheapest are kept, those of unknown price last."""
    for template, most in not_needed(inputs).items():
        hosts = [pair for key, pairs in going.items() if key[1] == template for pair in pairs]
        hosts.sort(key=lambda pair: _cheapness(pair[0]))
        for pair in hosts[: max(0, len(hosts) - most)]:
            entry = pair[0]
            key = entry.provider, entry.template
            going[key].remove(pair)
            if not going[key]:
                del going[key]
            why = f"a standing minimum of {template} holds now"
            if template not in minimums(inputs):
                why = f"spare hosts of {template} are kept now"
            staying.setdefault((*key, why), []).append(entry)


def _cheapness(entry: InstanceEntry) -> tuple[object, ...]:
    return (entry.price_per_hour is None, entry.price_per_hour or 0, natural_key(entry.id))


def _each_once(hosts: Iterable[IdleHost]) -> Iterator[IdleHost]:
    by_instance = {
        host.instance: host for host in sorted(hosts, key=lambda host: (host.idle_since, host.host))
    }
    for instance in sorted(by_instance, key=natural_key):
        yield by_instance[instance]


# ----------------------------------------------------------------- rules, in order
def _why_keep(
    entry: InstanceEntry,
    idle: IdleHost,
    provider: ProviderDescription | None,
    inputs: PolicyInput,
) -> str | None:
    """Return why a host stays; None: it can go."""
    return (
        _not_joined(entry)
        or _wanted(entry, inputs)
        or _in_hold(entry, idle, provider, inputs)
        or billing.why_keep_paid(
            entry.granted_at,
            provider.billing if provider is not None else Billing(),
            inputs.now,
            inputs.settings,
        )
    )


def _not_joined(entry: InstanceEntry) -> str | None:
    return None if entry.state is InstanceState.JOINED else "it has not joined yet"


def _wanted(entry: InstanceEntry, inputs: PolicyInput) -> str | None:
    """A host of a template that is wanted now would be asked for again (F09)."""
    lines = (entry.template, line_id(entry.template, entry.price_per_hour))
    wanted = [
        host
        for host in inputs.demand.hosts
        if host.count and (host.template in lines or host.template.startswith(f"{entry.template}@"))
    ]
    if not wanted:
        return None
    count = sum(host.count for host in wanted)
    name = wanted[0].template if len(wanted) == 1 else entry.template
    return f"{count} more of {name} {'is' if count == 1 else 'are'} wanted now"


def hold_end(
    entry: InstanceEntry,
    joined_at: datetime,
    provider: ProviderDescription | None,
    minimum_hold: timedelta,
) -> datetime:
    """Return the time before which an instance must not go back."""
    hold = max(provider.minimum_hold if provider is not None else timedelta(0), minimum_hold)
    end = later(joined_at, hold)
    return end if entry.hold_until is None else max(end, entry.hold_until)


def _in_hold(
    entry: InstanceEntry,
    idle: IdleHost,
    provider: ProviderDescription | None,
    inputs: PolicyInput,
) -> str | None:
    joined_at = entry.joined_at or max(entry.granted_at, idle.idle_since)
    end = hold_end(entry, joined_at, provider, inputs.settings.minimum_hold)
    if inputs.now >= end:
        return None
    return f"held until {clock(end)}"


# ------------------------------------------------------------------- decisions
def _return(
    hosts: list[tuple[InstanceEntry, IdleHost]],
    providers: dict[str, ProviderDescription],
    now: datetime,
) -> Decision:
    first = hosts[0][0]
    least = min(max(timedelta(0), now - idle.idle_since) for _, idle in hosts)
    stated = _stated_price(providers.get(first.provider), first.template)
    prices = [
        entry.price_per_hour if entry.price_per_hour is not None else stated for entry, _ in hosts
    ]
    return Decision(
        kind=DecisionKind.RETURN,
        provider=first.provider,
        template=first.template,
        count=len(hosts),
        instances=tuple(entry.id for entry, _ in hosts),
        reason=f"idle for {write_duration(least)} or longer, past the hold, and not wanted",
        cost_per_hour=money.cost_of((price, 1) for price in prices),
    )


def _stated_price(provider: ProviderDescription | None, template: str) -> Decimal | None:
    if provider is None:
        return None
    offers = [offer for offer in provider.templates if offer.template_id == template]
    return provider.price_of(offers[0]) if offers else None


def _hold(entries: list[InstanceEntry], why: str) -> Decision:
    return Decision(
        kind=DecisionKind.HOLD,
        provider=entries[0].provider,
        template=entries[0].template,
        count=len(entries),
        instances=tuple(entry.id for entry in entries),
        reason=f"idle, and kept: {why}",
    )
