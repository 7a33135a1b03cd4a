"""What to ask: each lot of the demand, earlier jobs first, of the first offers that have room."""

from collections.abc import Iterable, Iterator, Mapping

from xce.domain.formats.policy import Decision, DecisionKind, PolicyInput
from xce.domain.formats.provider import Kind
from xce.domain.policy import money
from xce.domain.policy.bounds import Bounds
from xce.domain.policy.offers import Offer, offers_of
from xce.domain.policy.wanted import Lot, Want, Wanted

_Key = tuple[Kind, str]


def ask(inputs: PolicyInput, wants: Wanted) -> tuple[list[Decision], list[Decision]]:
    """Return the requests, in the order in which they are sent, and a hold for each item of which some is not asked."""
    bounds = Bounds(inputs)
    offers = {key: offers_of(inputs, *key, bounds) for key in wants.items}
    left: dict[_Key, list[Lot]] = {}
    first_asked: dict[int, Offer] = {}
    for lot in wants.lots:
        rest = lot.amount
        for offer in offers[lot.kind, lot.item]:
            if taken := offer.take(rest, lot.jobs):
                first_asked.setdefault(id(offer), offer)
                rest -= taken
            if not rest:
                break
        else:
            left.setdefault((lot.kind, lot.item), []).append(
                Lot(lot.kind, lot.item, rest, lot.order, lot.jobs)
            )
    requests = list(_requests(first_asked.values(), offers, wants.items))
    holds = [_hold(wants.items[key], lots, offers[key]) for key, lots in left.items()]
    return requests, holds


# -------------------------------------------------------------------- requests
def _requests(
    asked: Iterable[Offer], offers: Mapping[_Key, list[Offer]], items: Mapping[_Key, Want]
) -> Iterator[Decision]:
    rank = {
        id(offer): (key, place)
        for key, found in offers.items()
        for place, offer in enumerate(found)
    }
    for offer in asked:
        key, place = rank[id(offer)]
        why = _why_ask(offer, items[key], offers[key], place)
        parts = offer.sizes.split(offer.asked)
        served = list(offer.served)
        for number, amount in enumerate(parts, start=1):
            part_of = f" (request {number} of {len(parts)})" if len(parts) > 1 else ""
            yield _decision(offer, amount, _draw(served, amount), why + part_of)


def _decision(offer: Offer, amount: int, jobs: tuple[str, ...], reason: str) -> Decision:
    host = offer.kind is Kind.HOST
    return Decision(
        kind=DecisionKind.REQUEST,
        provider=offer.provider.name,
        template=offer.item if host else None,
        resource=None if host else offer.item,
        count=amount if host else None,
        amount=None if host else amount,
        reason=reason,
        jobs=jobs,
        cost_per_hour=money.cost_of([(offer.price, amount)]),
    )


def _draw(served: list[tuple[int, tuple[str, ...]]], amount: int) -> tuple[str, ...]:
    """Take ``amount`` from the front of what is served and return whom it serves."""
    jobs: dict[str, None] = {}
    while served and amount:
        first, whom = served[0]
        jobs.update(dict.fromkeys(whom))
        if first > amount:
            served[0] = (first - amount, whom)
            break
        del served[0]
        amount -= first
    return tuple(jobs)


def _why_ask(offer: Offer, want: Want, offers: list[Offer], place: int) -> str:
    unit = "host" if offer.kind is Kind.HOST else "unit"
    text = f"{want.amount} {unit}{'' if want.amount == 1 else 's'} of {want.item} wanted"
    if want.asked_since:
        text += f", {want.asked_since} asked since"
    text += f"; {offer.asked} from {offer.provider.name}, {_why_this_one(offer, offers, place)}"
    if offer.surplus:
        text += (
            f"; {offer.surplus} of them spare, as it gives at least {offer.sizes.minimum}"
            f" in steps of {offer.sizes.step}"
        )
    return text


def _why_this_one(offer: Offer, offers: list[Offer], place: int) -> str:
    if len(offers) == 1:
        return "the only one that offers it"
    if place == 0:
        second = offers[1]
        if offer.provider.priority != second.provider.priority:
            return f"first by priority ({offer.provider.priority})"
        if offer.price != second.price:
            return f"the cheapest of its priority ({money.plain(offer.price)} per hour)"
        return "first by name at equal priority and price"
    before = offers[place - 1]
    return f"next after {before.provider.name} ({before.stopped})"


# ----------------------------------------------------------------------- holds
def _hold(want: Want, lots: list[Lot], offers: list[Offer]) -> Decision:
    amount = sum(lot.amount for lot in lots)
    host = want.kind is Kind.HOST
    unit = "hosts" if host else "units"
    why = "; ".join(f"{offer.provider.name}: {offer.stopped}" for offer in offers)
    return Decision(
        kind=DecisionKind.HOLD,
        provider=offers[0].provider.name if len(offers) == 1 else None,
        template=want.item if host else None,
        resource=None if host else want.item,
        count=amount if host else None,
        amount=None if host else amount,
        reason=f"{amount} of {want.amount} {unit} of {want.item} not asked: "
        + (why or "no provider offers it"),
        jobs=tuple(dict.fromkeys(job for lot in lots for job in lot.jobs)),
    )
