"""Which borrowed amounts go back: what stayed unused, in steps, the dearest grants first, past their hold."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from xce.domain.formats.policy import Decision, DecisionKind, GrantEntry, GrantPart, PolicyInput
from xce.domain.formats.provider import Kind, ProviderDescription
from xce.domain.policy import facts, money
from xce.domain.policy.times import clock, later
from xce.domain.provisioning.grant import GrantState
from xce.domain.values import natural_key


@dataclass(frozen=True, slots=True)
class _Terms:
    """How the lender of a grant takes it back."""

    step: int = 1
    parts: bool = False
    minimum_hold: timedelta = timedelta(0)
    price: Decimal | None = None


def reclaim_counts(inputs: PolicyInput) -> tuple[list[Decision], list[Decision]]:
    """Return the returns, one a provider and resource, and a hold for each resource of which something stays."""
    returns: list[Decision] = []
    holds: list[Decision] = []
    unused = {count.name: count.amount for count in inputs.idle.counts}
    for resource in sorted(unused, key=natural_key):
        if not unused[resource]:
            continue
        why = _why_keep_all(inputs, resource)
        if why is None:
            chosen, why = _choose(inputs, resource, unused[resource])
            returns += _returns(inputs, resource, chosen)
        else:
            chosen = []
        rest = unused[resource] - sum(part.amount for _, part in chosen)
        if rest and why:
            holds.append(_hold(resource, rest, why))
    return returns, holds


# ----------------------------------------------------------------------- rules
def _why_keep_all(inputs: PolicyInput, resource: str) -> str | None:
    for count in inputs.demand.countable:
        if count.name == resource and count.amount:
            return f"{count.amount} more of it are wanted now"
    asks = [
        request.id
        for request in inputs.inventory.requests
        if request.kind is Kind.COUNTABLE
        and request.resource == resource
        and facts.open_amount(request)
    ]
    if asks:
        return f"request {min(asks, key=natural_key)} for it is open"
    return None


def _choose(
    inputs: PolicyInput, resource: str, unused: int
) -> tuple[list[tuple[GrantEntry, GrantPart]], str | None]:
    """Return which parts of which grants go back, and why the rest stays."""
    terms = _terms_of(inputs.providers, resource)
    grants = [
        grant
        for grant in inputs.inventory.grants
        if grant.resource == resource
        and grant.state is GrantState.ACTIVE
        and facts.usable(grant) > 0
    ]
    grants.sort(key=lambda grant: _dearest_first(grant, terms.get(grant.provider, _Terms())))
    chosen: list[tuple[GrantEntry, GrantPart]] = []
    whys: list[str] = []
    left = unused
    for grant in grants:
        term = terms.get(grant.provider, _Terms())
        if why := _in_hold(grant, term, inputs.now):
            whys.append(why)
            continue
        has = facts.usable(grant)
        amount = _part(has, left, term)
        if amount:
            chosen.append((grant, GrantPart(grant=grant.id, amount=amount)))
            left -= amount
        if left and amount < has:
            whys.append(_why_no_part(grant, left, term))
    return chosen, "; ".join(whys) or "no further grant could go back"


def _part(has: int, left: int, term: _Terms) -> int:
    """Return how much of a grant goes back: steps of it, or, where parts are not taken or make no step, all or nothing."""
    if has <= left and (not term.parts or has < term.step):
        return has
    if not term.parts:
        return 0
    return min(has, left) // term.step * term.step


def _why_no_part(grant: GrantEntry, left: int, term: _Terms) -> str:
    if term.parts:
        return f"{left} of grant {grant.id} are less than a step of {term.step}"
    return f"grant {grant.id} of {facts.usable(grant)} goes back as a whole only"


def _in_hold(grant: GrantEntry, term: _Terms, now: datetime) -> str | None:
    end = later(grant.granted_at, term.minimum_hold)
    if grant.hold_until is not None:
        end = max(end, grant.hold_until)
    if now >= end:
        return None
    return f"grant {grant.id} is held until {clock(end)}"


def _dearest_first(grant: GrantEntry, term: _Terms) -> tuple[object, ...]:
    """Known prices first, the dearest of them first; then the oldest grant, then its id."""
    price = grant.price_per_hour if grant.price_per_hour is not None else term.price
    unknown = price is None
    return (unknown, -(price or money.ZERO), grant.granted_at, natural_key(grant.id))


def _terms_of(providers: Iterable[ProviderDescription], resource: str) -> dict[str, _Terms]:
    return {
        provider.name: _Terms(
            offer.step,
            provider.capabilities.partial_returns,
            max(provider.minimum_hold, offer.minimum_hold),
            provider.price_of(offer),
        )
        for provider in providers
        for offer in provider.resources
        if offer.name == resource
    }


# ------------------------------------------------------------------- decisions
def _returns(
    inputs: PolicyInput, resource: str, chosen: list[tuple[GrantEntry, GrantPart]]
) -> Iterable[Decision]:
    terms = _terms_of(inputs.providers, resource)
    for provider in dict.fromkeys(grant.provider for grant, _ in chosen):
        parts = [(grant, part) for grant, part in chosen if grant.provider == provider]
        stated = terms.get(provider, _Terms()).price
        prices = [
            grant.price_per_hour if grant.price_per_hour is not None else stated
            for grant, _ in parts
        ]
        amount = sum(part.amount for _, part in parts)
        yield Decision(
            kind=DecisionKind.RETURN,
            provider=provider,
            resource=resource,
            amount=amount,
            grants=tuple(part for _, part in parts),
            reason=f"{amount} of {resource} unused for the whole idle time, past the hold",
            cost_per_hour=money.cost_of(
                (price, part.amount) for price, (_, part) in zip(prices, parts, strict=True)
            ),
        )


def _hold(resource: str, amount: int, why: str) -> Decision:
    return Decision(
        kind=DecisionKind.HOLD,
        resource=resource,
        amount=amount,
        reason=f"{amount} of {resource} unused, and kept: {why}",
    )
