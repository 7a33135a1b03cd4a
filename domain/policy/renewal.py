"""Which grants that end by themselves are kept: those whose end is near, as far as they are not idle."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from xce.domain.formats.inventory import GrantEntry
from xce.domain.formats.policy import PolicyInput
from xce.domain.policy import facts
from xce.domain.provisioning.grant import GrantState
from xce.domain.sharing.recall import recalled_by
from xce.domain.values import natural_key

#: An end is put off so long before it comes, or, of a shorter term, when half of it is over.
RENEW_BEFORE: Final = timedelta(minutes=15)


def to_renew(inputs: PolicyInput, *, stale: bool) -> tuple[GrantEntry, ...]:
    """Return the grants whose ends are to be put off now.

    What is idle, or wanted back by its lender, is left to end. ``stale``: nothing is known of now, and nothing is idle then.
    """
    idle = {} if stale else {count.name: count.amount for count in inputs.idle.counts}
    for terms in inputs.shared:
        if terms.blind or terms.over:
            idle.pop(terms.name, None)
    recalls = dict(recalled_by(inputs.providers, inputs.inventory.grants))
    kept: list[GrantEntry] = []
    for grant in sorted(_ending(inputs), key=_dearest_first):
        usable = facts.usable(grant)
        key = grant.provider, grant.resource
        if usable <= recalls.get(key, 0):
            recalls[key] -= usable
        elif usable <= idle.get(grant.resource, 0):
            idle[grant.resource] -= usable
        else:
            kept.append(grant)
    return tuple(sorted(kept, key=lambda grant: natural_key(grant.id)))


def _ending(inputs: PolicyInput) -> Iterator[GrantEntry]:
    for grant in inputs.inventory.grants:
        if grant.state is not GrantState.ACTIVE or grant.expires_at is None:
            continue
        if inputs.now >= grant.expires_at:
            continue
        due = renewal_due(grant)
        if due is not None and inputs.now >= due:
            yield grant


def renewal_due(grant: GrantEntry) -> datetime | None:
    """Return from when on a grant's end is to be put off; None: it has none."""
    if grant.expires_at is None:
        return None
    term = grant.expires_at - (grant.renewed_at or grant.granted_at)
    return grant.expires_at - min(RENEW_BEFORE, term / 2)


def _dearest_first(grant: GrantEntry) -> tuple[object, ...]:
    price = grant.price_per_hour
    return (price is None, -(price or Decimal(0)), grant.granted_at, natural_key(grant.id))
