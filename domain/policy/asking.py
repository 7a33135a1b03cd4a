"""What to ask: each lot of the demand, earlier jobs first, of the first offers that have room.

A job is served as a whole or not at all (field case F15): where the bounds leave only a part of what it needs, that part is
not asked, unless other jobs need it, and what it would have taken is left to the jobs behind it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from xce.domain.formats.policy import Decision, DecisionKind, PolicyInput
from xce.domain.formats.provider import Kind
from xce.domain.policy import money
from xce.domain.policy.bounds import Bounds
from xce.domain.policy.offers import Before, Offer, offers_of
from xce.domain.policy.wanted import Lot, Want, Wanted

_Key = tuple[Kind, str]
#: An item, and the project whose budgets pay for it; None: no budget is for its project.
_Paid = tuple[Kind, str, str | None]

#: Jobs of which a hold says why they are given up; the others are counted.
_WHYS_SHOWN: Final = 5


def ask(inputs: PolicyInput, wants: Wanted) -> tuple[list[Decision], list[Decision]]:
    """Return the requests, in the order in which they are sent, and a hold for each item of which some is not asked."""
    if not wants.items:
        return [], []
    taking = _Taking(inputs, wants)
    taking.run()
    requests = list(_requests(taking.asked(), taking.offers, wants))
    holds = [
        _hold(wants.items[key[:2]], lots, taking.offers[key], taking.given_up, key[2])
        for key, lots in taking.left().items()
    ]
    return requests, holds


class _Took(NamedTuple):
    """What a lot took of one offer, and how to take it back."""

    offer: Offer
    before: Before
    amount: int


class _Partly(NamedTuple):
    """Why a job is given up: how much of it could have been asked, and what stopped the rest."""

    text: str
    stopped: tuple[str, ...]


class _Taking:
    """The lots one after the other: what each offer gives, and which jobs are given up as they cannot be served whole.

    A lot is settled once it is known that a job of it is served, or that nothing is taken of it. Where all its jobs are left
    unserved by other lots, the first of them is given up, and all from this lot on are taken again without it.

    Attributes:
        offers: by item, in the order in which they are asked.
        given_up: by job, why.
    """

    def __init__(self, inputs: PolicyInput, wants: Wanted) -> None:
        bounds = Bounds(inputs, wants.items)
        self._payers = {project for budget in inputs.budgets for project in budget.projects}
        paid = dict.fromkeys(self._paid(lot) for lot in wants.lots)
        self.offers = {key: offers_of(inputs, *key, bounds) for key in paid}
        self.given_up: dict[str, _Partly] = {}
        self._lots = wants.lots
        #: What each lot took so far, from the first on.
        self._took: list[list[_Took]] = []
        #: By job, how many of those lots took less than they want.
        self._short = Counter[str]()
        self._lots_of: dict[str, list[int]] = {}
        for place, lot in enumerate(wants.lots):
            for job in lot.jobs:
                self._lots_of.setdefault(job, []).append(place)

    def run(self) -> None:
        """Take all lots."""
        settled = 0
        while settled < len(self._lots):
            if len(self._took) < len(self._lots):
                self._take(self._lots[len(self._took)])
            while settled < len(self._took) and (serves := self._serves(settled)) is not None:
                if not serves:
                    self._give_up(settled)
                    break
                settled += 1

    def asked(self) -> list[Offer]:
        """Return the offers of which something is asked, in the order of the first lot."""
        taken = [took.offer for each in self._took for took in each if took.amount]
        return list({id(offer): offer for offer in taken}.values())

    def left(self) -> dict[_Paid, list[Lot]]:
        """Return by item and payer what of each lot is not asked."""
        left: dict[_Paid, list[Lot]] = {}
        for place, lot in enumerate(self._lots):
            if rest := lot.amount - self._taken(place):
                left.setdefault(self._paid(lot), []).append(replace(lot, amount=rest))
        return left

    def _paid(self, lot: Lot) -> _Paid:
        return (lot.kind, lot.item, lot.project if lot.project in self._payers else None)

    def _taken(self, place: int) -> int:
        return sum(took.amount for took in self._took[place])

    def _take(self, lot: Lot) -> None:
        """Take as much of a lot as the offers have, unless all its jobs are given up."""
        rest = lot.amount
        took: list[_Took] = []
        if not lot.jobs or not all(job in self.given_up for job in lot.jobs):
            for offer in self.offers[self._paid(lot)]:
                if not rest:
                    break
                before = offer.before()
                amount = offer.take(rest, lot.jobs)
                took.append(_Took(offer, before, amount))
                rest -= amount
        self._took.append(took)
        if rest:
            self._short.update(lot.jobs)

    def _serves(self, place: int) -> bool | None:
        """Return whether what a lot took serves a job, or nothing was taken; None: lots behind it will tell."""
        jobs = self._lots[place].jobs
        if not jobs or not self._taken(place):
            return True
        known = [job for job in jobs if self._lots_of[job][-1] < len(self._took)]
        if any(not self._short[job] for job in known):
            return True
        return False if len(known) == len(jobs) else None

    def _give_up(self, place: int) -> None:
        """Give up the first job of a lot, and undo all from this lot on."""
        job = next(job for job in self._lots[place].jobs if job not in self.given_up)
        self.given_up[job] = self._why_partly(job)
        while len(self._took) > place:
            lot = self._lots[len(self._took) - 1]
            if self._taken(len(self._took) - 1) < lot.amount:
                self._short.subtract(lot.jobs)
            for took in reversed(self._took.pop()):
                took.offer.undo(took.before)

    def _why_partly(self, job: str) -> "_Partly":
        """Return how much of what a job needs could have been asked, and what stopped the rest."""
        parts: dict[_Key, tuple[int, int]] = {}
        stopped: dict[str, None] = {}
        for place in self._lots_of[job]:
            lot = self._lots[place]
            got, wanted = parts.get((lot.kind, lot.item), (0, 0))
            parts[lot.kind, lot.item] = (got + self._taken(place), wanted + lot.amount)
            if self._taken(place) < lot.amount:
                stopped |= dict.fromkeys(_whys(self.offers[self._paid(lot)]))
        shares = ", ".join(
            f"{got} of {wanted} {item}" for (_, item), (got, wanted) in parts.items()
        )
        return _Partly(
            f"job {job} is served whole or not at all, and only {shares} could be asked",
            tuple(stopped),
        )


# -------------------------------------------------------------------- requests
def _requests(
    asked: Iterable[Offer], offers: Mapping[_Paid, list[Offer]], wants: Wanted
) -> Iterator[Decision]:
    project_of = {lot.jobs[0]: lot.project for lot in wants.lots if lot.jobs}
    rank = {
        id(offer): (key, place)
        for key, found in offers.items()
        for place, offer in enumerate(found)
    }
    for offer in asked:
        key, place = rank[id(offer)]
        why = _why_ask(offer, wants.items[key[:2]], offers[key], place, key[2])
        parts = offer.sizes.split(offer.asked)
        served = list(offer.served)
        for number, amount in enumerate(parts, start=1):
            part_of = f" (request {number} of {len(parts)})" if len(parts) > 1 else ""
            drawn = _draw(served, amount)
            projects = {project_of.get(jobs[0]) if jobs else None for jobs in drawn}
            project = projects.pop() if len(projects) == 1 else None
            jobs = tuple(dict.fromkeys(job for some in drawn for job in some))
            yield _decision(offer, amount, jobs, why + part_of, project)


def _decision(
    offer: Offer, amount: int, jobs: tuple[str, ...], reason: str, project: str | None
) -> Decision:
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
        project=project,
        cost_per_hour=money.cost_of([(offer.price, amount)]),
    )


def _draw(served: list[tuple[int, tuple[str, ...]]], amount: int) -> list[tuple[str, ...]]:
    """Take ``amount`` from the front of what is served and return whom each part of it serves."""
    drawn: list[tuple[str, ...]] = []
    while served and amount:
        first, whom = served[0]
        drawn.append(whom)
        if first > amount:
            served[0] = (first - amount, whom)
            break
        del served[0]
        amount -= first
    return drawn


def _why_ask(offer: Offer, want: Want, offers: list[Offer], place: int, project: str | None) -> str:
    unit = "host" if offer.kind is Kind.HOST else "unit"
    text = f"{want.amount} {unit}{'' if want.amount == 1 else 's'} of {want.item} wanted"
    if want.asked_since:
        text += f", {want.asked_since} asked since"
    if want.standing:
        text += f", {want.standing} of them {'as spare hosts' if want.spare else 'by a standing minimum'}"
    text += f"; {offer.asked}{_for(project)} from {offer.provider.name}, {_why_this_one(offer, offers, place)}"
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
        if second.waits and not offer.waits:
            return f"as the others failed of late ({_failed(offers)})"
        if second.item != offer.item:
            return "spot before on demand, as far as its share goes"
        if offer.provider.priority != second.provider.priority:
            return f"first by priority ({offer.provider.priority})"
        if offer.price != second.price:
            return f"the cheapest of its priority ({money.plain(offer.price)} per hour)"
        return "first by name at equal priority and price"
    before = offers[place - 1]
    return f"next after {before.provider.name} ({before.stopped})"


def _failed(offers: list[Offer]) -> str:
    names = [offer.provider.name for offer in offers if offer.waits]
    more = "" if len(names) <= _WHYS_SHOWN else f" and {len(names) - _WHYS_SHOWN} more"
    return ", ".join(names[:_WHYS_SHOWN]) + more


# ----------------------------------------------------------------------- holds
def _hold(
    want: Want,
    lots: list[Lot],
    offers: list[Offer],
    given_up: Mapping[str, _Partly],
    project: str | None,
) -> Decision:
    amount = sum(lot.amount for lot in lots)
    host = want.kind is Kind.HOST
    unit = "hosts" if host else "units"
    jobs = tuple(dict.fromkeys(job for lot in lots for job in lot.jobs))
    whys = _whys(offers)
    gone = [given_up[job] for job in jobs if job in given_up]
    said = set(whys)  # what stopped one job often stopped those behind it: it is said once
    for partly in gone[:_WHYS_SHOWN]:
        new = [why for why in partly.stopped if why not in said]
        said.update(new)
        whys.append(f"{partly.text} ({'; '.join(new)})" if new else partly.text)
    if len(gone) > _WHYS_SHOWN:
        whys.append(f"so for {len(gone) - _WHYS_SHOWN} more jobs")
    why = "; ".join(whys)
    return Decision(
        kind=DecisionKind.HOLD,
        provider=offers[0].provider.name if len(offers) == 1 else None,
        template=want.item if host else None,
        resource=None if host else want.item,
        count=amount if host else None,
        amount=None if host else amount,
        project=project,
        reason=f"{amount} of {want.amount} {unit} of {want.item} not asked{_for(project)}: "
        + (why or "no provider offers it"),
        jobs=jobs,
    )


def _whys(offers: Iterable[Offer]) -> list[str]:
    """Return why offers gave less than was wanted of them."""
    return [f"{offer.provider.name}: {offer.stopped}" for offer in offers if offer.stopped]


def _for(project: str | None) -> str:
    return "" if project is None else f" for project {project}"
