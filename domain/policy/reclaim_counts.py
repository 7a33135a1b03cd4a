"""Which borrowed amounts go back: what stayed unused, as the rules of sharing choose it; and why the rest stays."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from math import lcm

from xce.domain.formats.inventory import GrantEntry
from xce.domain.formats.policy import Decision, DecisionKind, GrantPart, PolicyInput, SharedTerms
from xce.domain.formats.provider import Kind, ProviderDescription
from xce.domain.policy import facts, money
from xce.domain.policy.times import later
from xce.domain.provisioning.grant import GrantState
from xce.domain.sharing.lending import Lent, choose
from xce.domain.sharing.recall import recalled_by
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
    recalls = recalled_by(inputs.providers, inputs.inventory.grants)
    for provider, resource in sorted(recalls, key=lambda key: tuple(map(natural_key, key))):
        back, kept_back = _recalled(inputs, provider, resource, recalls[provider, resource])
        returns += back
        holds += kept_back
    wanted_back = {resource for _, resource in recalls}
    unused = {count.name: count.amount for count in inputs.idle.counts}
    for resource in sorted(unused, key=natural_key):
        # What is recalled goes first; what is left unused is known after it.
        if not unused[resource] or resource in wanted_back:
            continue
        chosen: list[tuple[Lent, int]] = []
        why = _why_keep_all(inputs, resource)
        if why is None:
            chosen, kept = choose(
                _lent(inputs, resource),
                unused[resource],
                now=inputs.now,
                idle_return_after=terms_of(inputs, resource).idle_return_after,
            )
            why = "; ".join(each.why for each in kept) or "no further grant could go back"
            returns += _returns(resource, chosen)
        rest = unused[resource] - sum(amount for _, amount in chosen)
        if rest:
            holds.append(_hold(resource, rest, why))
    return returns, holds


def terms_of(inputs: PolicyInput, resource: str) -> SharedTerms:
    """Return what the site has set for a resource."""
    found = (terms for terms in inputs.shared if terms.name == resource)
    return next(found, SharedTerms(name=resource))


# --------------------------------------------------------------------- recalls
def _recalled(
    inputs: PolicyInput, provider: str, resource: str, amount: int
) -> tuple[list[Decision], list[Decision]]:
    """Return what goes back to a lender that wants it: what is free, past its hold, however lately it was needed."""
    lent = [one for one in _lent(inputs, resource) if one.lender == provider]
    free = terms_of(inputs, resource).free
    why = _why_keep_recalled(inputs, resource)
    chosen: list[tuple[Lent, int]] = []
    if why is None and free is not None:
        step = max((one.step for one in lent), default=1)
        whole = min(-(-amount // step) * step, free)
        chosen, kept = choose(lent, whole, now=inputs.now, recalled=True)
        why = "; ".join(each.why for each in kept) or f"{free} are free"
    back = [
        decision.model_copy(
            update={"reason": f"{provider} wants {amount} of {resource} back: {decision.amount} of it are free"}
        )
        for decision in _returns(resource, chosen)
    ]  # fmt: skip
    rest = amount - sum(part for _, part in chosen)
    if rest <= 0:
        return back, []
    reason = f"{provider} wants {amount} of {resource} back, {rest} stay: {why}"
    return back, [Decision(kind=DecisionKind.HOLD, resource=resource, amount=rest, reason=reason)]


def _why_keep_recalled(inputs: PolicyInput, resource: str) -> str | None:
    if terms_of(inputs, resource).free is None:
        return "what is in use is unknown"
    return _why_not_now(inputs, resource)


# ----------------------------------------------------------------------- rules
def _why_keep_all(inputs: PolicyInput, resource: str) -> str | None:
    for count in inputs.demand.countable:
        if count.name == resource and count.amount:
            return f"{count.amount} more of it are wanted now"
    return _why_not_now(inputs, resource)


def _why_not_now(inputs: PolicyInput, resource: str) -> str | None:
    asks = [
        request.id
        for request in inputs.inventory.requests
        if request.kind is Kind.COUNTABLE
        and request.resource == resource
        and facts.open_amount(request)
    ]
    if asks:
        return f"request {min(asks, key=natural_key)} for it is open"
    terms = terms_of(inputs, resource)
    if terms.blind:
        return "what is really in use is not seen now"
    if terms.over:
        return f"{terms.over} more are occupied than there are"
    return None


def _lent(inputs: PolicyInput, resource: str) -> list[Lent]:
    lenders = _lenders_of(inputs.providers, resource)
    terms = terms_of(inputs, resource)
    return [
        _one_lent(grant, lenders.get(grant.provider, _Terms()), terms)
        for grant in inputs.inventory.grants
        if grant.resource == resource and grant.state is GrantState.ACTIVE
    ]


def _one_lent(grant: GrantEntry, lender: _Terms, terms: SharedTerms) -> Lent:
    held_until = later(grant.granted_at, max(lender.minimum_hold, terms.min_hold))
    if grant.hold_until is not None:
        held_until = max(held_until, grant.hold_until)
    return Lent(
        grant=grant.id,
        lender=grant.provider,
        usable=facts.usable(grant),
        granted_at=grant.granted_at,
        held_until=held_until,
        price=grant.price_per_hour if grant.price_per_hour is not None else lender.price,
        step=lcm(lender.step, terms.step),
        parts=lender.parts,
    )


def _lenders_of(providers: Sequence[ProviderDescription], resource: str) -> dict[str, _Terms]:
    # A lender that no longer offers the resource still holds its borrowers to its minimum.
    known = {provider.name: _Terms(minimum_hold=provider.minimum_hold) for provider in providers}
    return known | {
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
def _returns(resource: str, chosen: list[tuple[Lent, int]]) -> Iterable[Decision]:
    for provider in dict.fromkeys(lent.lender for lent, _ in chosen):
        parts = [(lent, part) for lent, part in chosen if lent.lender == provider]
        amount = sum(part for _, part in parts)
        yield Decision(
            kind=DecisionKind.RETURN,
            provider=provider,
            resource=resource,
            amount=amount,
            grants=tuple(GrantPart(grant=lent.grant, amount=part) for lent, part in parts),
            reason=f"{amount} of {resource} unused for the whole idle time, past the hold",
            cost_per_hour=money.cost_of((lent.price, part) for lent, part in parts),
        )


def _hold(resource: str, amount: int, why: str) -> Decision:
    return Decision(
        kind=DecisionKind.HOLD,
        resource=resource,
        amount=amount,
        reason=f"{amount} of {resource} unused, and kept: {why}",
    )
