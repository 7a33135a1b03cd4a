"""What to ask: each lot of the demand, earlier jobs first, of the first offers that have room.

A job is served as a whole or not at all (field case F15): where the bounds leave only a part of what it needs, that part is
not asked, unless other jobs need it, and what it would have taken is left to the jobs behind it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from xce.domain.formats.policy import Decision, DecisionKind, PolicyInput
from xce.domain.formats.provider import Kind
from xce.domain.policy import money
from xce.domain.policy.bounds import Bounds
from xce.domain.policy.offers import Offer, offers_of
from xce.domain.policy.wanted import Lot, Want, Wanted

_Key = tuple[Kind, str]


def ask(inputs: PolicyInput, wants: Wanted) -> tuple[list[Decision], list[Decision]]:
    """Return the requests, in the order in which they are sent, and a hold for each item of which some is not asked."""
    given_up: dict[str, str] = {}
    while True:
        taking = _Taking(inputs, wants, given_up)
        partly = taking.first_partly_served()
        if partly is None:
            break
        given_up[partly] = taking.why_partly(partly)
    requests = list(_requests(taking.asked.values(), taking.offers, wants.items))
    holds = [
        _hold(wants.items[key], lots, taking.offers[key], given_up)
        for key, lots in taking.left.items()
    ]
    return requests, holds


class _Taking:
    """One run over the lots: what each offer takes, and what is left.

    Attributes:
        offers: by item, in the order in which they are asked.
        asked: the offers of which something is asked, in the order of the first lot.
        left: by item, what of each lot is not asked.
    """

    def __init__(self, inputs: PolicyInput, wants: Wanted, given_up: Collection[str]) -> None:
        bounds = Bounds(inputs)
        self.offers = {key: offers_of(inputs, *key, bounds) for key in wants.items}
        self.asked: dict[int, Offer] = {}
        self.left: dict[_Key, list[Lot]] = {}
        self._lots = wants.lots
        self._given_up = given_up
        #: What was taken of each lot.
        self._taken: list[int] = []
        for lot in wants.lots:
            skipped = bool(lot.jobs) and all(job in given_up for job in lot.jobs)
            rest = lot.amount if skipped else self._take(lot)
            self._taken.append(lot.amount - rest)
            if rest:
                self.left.setdefault((lot.kind, lot.item), []).append(
                    Lot(lot.kind, lot.item, rest, lot.order, lot.jobs)
                )

    def _take(self, lot: Lot) -> int:
        """Take as much of a lot as the offers have; return the rest."""
        rest = lot.amount
        for offer in self.offers[lot.kind, lot.item]:
            if taken := offer.take(rest, lot.jobs):
                self.asked.setdefault(id(offer), offer)
                rest -= taken
            if not rest:
                break
        return rest

    def first_partly_served(self) -> str | None:
        """Return the first job of which a part is asked that serves no job; None: there is none."""
        unserved = {
            job
            for lot, taken in zip(self._lots, self._taken, strict=True)
            if taken < lot.amount
            for job in lot.jobs
        }
        for lot, taken in zip(self._lots, self._taken, strict=True):
            if taken and lot.jobs and unserved.issuperset(lot.jobs):
                return next(job for job in lot.jobs if job not in self._given_up)
        return None

    def why_partly(self, job: str) -> str:
        """Return how much of what a job needs could have been asked, for people."""
        parts: dict[_Key, tuple[int, int]] = {}
        for lot, taken in zip(self._lots, self._taken, strict=True):
            if job in lot.jobs:
                got, wanted = parts.get((lot.kind, lot.item), (0, 0))
                parts[lot.kind, lot.item] = (got + taken, wanted + lot.amount)
        shares = ", ".join(
            f"{got} of {wanted} {item}" for (_, item), (got, wanted) in parts.items()
        )
        return f"job {job} is served whole or not at all, and only {shares} could be asked"


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
def _hold(
    want: Want, lots: list[Lot], offers: list[Offer], given_up: Mapping[str, str]
) -> Decision:
    amount = sum(lot.amount for lot in lots)
    host = want.kind is Kind.HOST
    unit = "hosts" if host else "units"
    jobs = tuple(dict.fromkeys(job for lot in lots for job in lot.jobs))
    whys = [f"{offer.provider.name}: {offer.stopped}" for offer in offers if offer.stopped]
    why = "; ".join([*whys, *(given_up[job] for job in jobs if job in given_up)])
    return Decision(
        kind=DecisionKind.HOLD,
        provider=offers[0].provider.name if len(offers) == 1 else None,
        template=want.item if host else None,
        resource=None if host else want.item,
        count=amount if host else None,
        amount=None if host else amount,
        reason=f"{amount} of {want.amount} {unit} of {want.item} not asked: "
        + (why or "no provider offers it"),
        jobs=jobs,
    )
