"""Hosts for a queue of simple jobs, opened one after the other, each the one whose filling is the best buy.

A host takes the tasks in job order that fit, whatever comes after it, so the choice is which host to fill next.
All templates of the best priority that serves the first waiting job are compared by what the tasks that they
would take are worth for their price. The worth is from the dual prices of buying what still waits by the
fraction; as the queue changes, so do they. When all jobs have found hosts, the hosts in this order hold them
by the scheduler's own rules, so the demand is sound. Where supply is short the first job comes first: then
only hosts that take a task of it are compared.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from xce.domain.cluster.kinds import HostKind
from xce.domain.cluster.state import Scope, State
from xce.domain.demand.lookahead import is_simple
from xce.domain.demand.offer import Offer
from xce.domain.demand.rooms import Rooms
from xce.domain.demand.supply import Supply
from xce.domain.demand.waiting_tasks import WaitingTasks
from xce.domain.demand.worth import dual_prices
from xce.domain.scheduling.classes import JobClass


class Manner(NamedTuple):
    """How hosts are compared.

    Attributes:
        bias: what a share of the price of the dearest template takes off a host's merit; small hosts leave more
            choice.
        refresh: hosts opened between two computations of dual prices.
        scarcity: what every host counts beyond its price, in shares of the price of the dearest template; the more,
            the fewer and larger hosts are taken.
    """

    bias: float
    refresh: int
    scarcity: float = 0.0


#: The first is the best on the average; the others are tried too where few tasks wait, and the cheapest is taken.
MANNERS: Final = (
    Manner(0.0225, 3), Manner(0.01, 3), Manner(0.035, 3), Manner(0.0225, 1), Manner(0.0, 3), Manner(0.035, 1),
    Manner(0.01, 8),
)  # fmt: skip
#: Those where templates share a capacity and there is too little room for all jobs; in the last only hosts count.
SCARCE: Final = tuple(Manner(0.0, 3, scarcity) for scarcity in (0.05, 0.2, 1.0, 1_000.0))
#: Tasks that are put on hosts in all manners together.
TRIED_MAX: Final = 8_000
#: Hosts that are filled to compare all templates; after that most are of the few on which most is spent.
_COMPARED_MAX: Final = 20_000
_FEW: Final = 2
_ALL_EVERY: Final = 16
#: Hosts of one gang that are filled to compare templates; the others are taken to fill up as well as these.
_GANG_HOSTS: Final = 8
#: More groups of tasks than these are left to placing job by job.
GROUPS_MAX: Final = 200


class Filling:
    """The hosts that jobs are on.

    Attributes:
        opened: the new hosts, in the order opened.
        place_of: by job, the place of the host of its first task, -1 if it has none.
        more_of: the places of the others, in host order.
        failed: classes of jobs that found nothing.
    """

    def __init__(
        self,
        core: State,
        supply: Supply,
        jobs: Sequence[JobClass],
        tasks: WaitingTasks,
        *,
        by_worth: bool,
        manner: Manner = MANNERS[0],
    ) -> None:
        self._core = core
        self._supply = supply
        self._jobs = jobs
        self._tasks = tasks
        self._by_worth = by_worth
        self.opened: list[Offer] = []
        self.place_of: list[int] = [-1] * len(jobs)
        self.more_of: dict[int, list[int]] = {}
        self.failed: set[JobClass] = set()
        #: The jobs of each class, once one finds nothing.
        self._equal: dict[JobClass, list[int]] = {}
        self._rooms = supply.rooms.copy()
        self._markets = [_Market(tasks, tier, self._rooms, manner) for tier in supply.tiers]

    def fill(self) -> bool:
        """Fill what is there, then open hosts until no job waits; return whether the hosts hold the jobs.

        They do if all jobs have hosts, or, where the first job comes first, those that are not ``failed``.
        """
        self._fill_what_is_there()
        tasks = self._tasks
        place = self._core.count
        while (job := tasks.first()) is not None:
            chosen = self._next_host(job)
            if chosen is None:
                if self._by_worth or self._jobs[job].least > 1:
                    return False  # a mix of templates may do for several tasks
                self._give_up(job)
                continue
            offer, taken = chosen
            for number in range(tasks.left(job)):
                self.opened.append(offer)
                self._rooms.take(offer)
                self._put(place, taken if number == 0 else tasks.filling(offer.kind))
                place += 1
        return True

    @property
    def price(self) -> Decimal | None:
        """Return what the new hosts cost per hour, None if the price of one is not known."""
        total = Decimal(0)
        for offer in self.opened:
            if offer.price is None:
                return None
            total += offer.price
        return total

    @property
    def left_out(self) -> int:
        """Return how many jobs have no place."""
        return sum(1 for place in self.place_of if place < 0)

    def _put(self, place: int, taken: Sequence[int]) -> None:
        place_of = self.place_of
        for job in taken:
            if place_of[job] < 0:
                place_of[job] = place
            else:
                self.more_of.setdefault(job, []).append(place)
        self._tasks.take(taken)

    def _give_up(self, number: int) -> None:
        """Leave all jobs out that are equal to one that found nothing: supply only shrinks."""
        failed = self._jobs[number]
        self.failed.add(failed)
        if not self._equal:
            for equal, job in enumerate(self._jobs):
                self._equal.setdefault(job, []).append(equal)
        self._tasks.drop(self._equal[failed])

    def _fill_what_is_there(self) -> None:
        """Fill the real hosts that have room for a task, and those in flight."""
        core, tasks = self._core, self._tasks
        hosts = core.ground.hosts
        real = len(hosts.hosts)
        bases: dict[Scope, set[int]] = {}
        for place in [*sorted(self._with_room()), *range(real, core.count)]:

            def free(resource: str, place: int = place) -> int:
                return core.column(resource)[place]

            def admits(scope: Scope, place: int = place) -> bool:
                if place >= real:
                    return scope.selector.matches(core.kind(place))
                if scope not in bases:
                    bases[scope] = set(scope.base(core.ground))
                return place in bases[scope]

            self._put(place, tasks.fill_free(free, admits))

    def _with_room(self) -> set[int]:
        """Return the places of the real hosts that have room for a task of any class."""
        core = self._core
        real = len(core.ground.hosts.hosts)
        places: set[int] = set()
        seen: set[object] = set()
        for job in dict.fromkeys(self._jobs):
            part = job.alternatives[0].parts[0]
            amounts = part.request.bucket(1, first=True)
            if (part.scope, amounts) in seen:
                continue
            seen.add((part.scope, amounts))
            view = core.view(part.scope)
            start = view.cursors.get(amounts, 0)
            at = core.first_fit_of(view.whole, start, amounts, core.shut)
            while at >= 0 and view.hosts[at] < real:
                places.add(view.hosts[at])
                at = core.first_fit_of(view.whole, at + 1, amounts, core.shut)
        return places

    def _next_host(self, job: int) -> tuple[Offer, list[int]] | None:
        """Return the host to open next, with the tasks that it takes; None if the first job finds none.

        As many such hosts are opened as the first job has tasks left: they are of one template.
        """
        tasks = self._tasks
        hosts = tasks.left(job)
        for market in self._markets:
            offers = market.offers(hosts)
            fitting = next((offer for offer in offers if tasks.fits(job, offer.kind)), None)
            if fitting is None:
                continue
            if not fitting.price:
                return fitting, tasks.filling(fitting.kind)
            if not self._by_worth or hosts > 1:
                offers = [offer for offer in offers if tasks.fits(job, offer.kind)]
            return market.best([offer for offer in offers if offer.price is not None], hosts)
        return None


class _Market:
    """What hosts of the templates of one priority are worth for their price."""

    def __init__(
        self, tasks: WaitingTasks, tier: Sequence[Offer], rooms: Rooms, manner: Manner
    ) -> None:
        self._tasks = tasks
        self._bias, self._refresh_every, scarcity = manner
        self._extra = scarcity * max((offer.cost for offer in tier), default=0.0)
        self._tier = tier
        self._rooms = rooms
        self._offers: list[Offer] = []
        self._age = 0
        self._worths: list[float] = []
        self._worth_of_fine = 0.0
        self._bounds: Mapping[int, float] = {}
        self._dearest = 0.0
        self._filled = 0
        self._chosen: dict[HostKind, float] = {}

    def offers(self, hosts: int) -> list[Offer]:
        """Return the first template of each kind that has room for so many hosts, in order of preference."""
        room = self._rooms.left
        if hosts > 1:
            return self._first_of_kinds(hosts)
        if not self._offers or any(not room[offer.number] for offer in self._offers):
            self._offers = self._first_of_kinds(1)
        return self._offers

    def _first_of_kinds(self, hosts: int) -> list[Offer]:
        kinds: dict[HostKind, Offer] = {}
        room = self._rooms.left
        for offer in self._tier:
            if room[offer.number] >= hosts:
                kinds.setdefault(offer.kind, offer)
        return [*kinds.values()]

    def best(self, offers: Sequence[Offer], hosts: int) -> tuple[Offer, list[int]] | None:
        """Return the host that is the best buy, with the tasks that it takes; all are priced.

        Of a long queue, once many hosts are compared, only the templates on which most is spent are,
        but for every so many hosts.

        ``hosts``: how many of it are opened.
        """
        if len(offers) == 1:
            return offers[0], self._tasks.filling(offers[0].kind)
        if self._age % self._refresh_every == 0 or any(
            offer.number not in self._bounds for offer in offers
        ):
            self._refresh(offers)
        self._age += 1
        if self._filled > _COMPARED_MAX and hosts == 1 and self._age % _ALL_EVERY:
            few = sorted(offers, key=lambda each: (-self._chosen.get(each.kind, 0.0), each.number))
            if (found := self._best_of(few[:_FEW], 1)) is not None:
                return found
        return self._best_of(offers, hosts)

    def _best_of(self, offers: Sequence[Offer], hosts: int) -> tuple[Offer, list[int]] | None:
        bounds = self._bounds
        found: tuple[Offer, list[int]] | None = None
        best = (0.0, 0)
        for offer in sorted(offers, key=lambda each: (-bounds[each.number], each.number)):
            bias = self._bias * self._price(offer) / self._dearest
            if found is not None and bounds[offer.number] - bias < -best[0]:
                continue
            taken = self._tasks.filling(offer.kind)
            self._filled += 1
            if not taken:
                continue
            key = (self._merit(offer, hosts, taken), offer.number)
            if found is None or key < best:
                best, found = key, (offer, taken)
        if found is not None:
            kind = found[0].kind
            self._chosen[kind] = self._chosen.get(kind, 0.0) + found[0].cost
        return found

    def _merit(self, offer: Offer, hosts: int, taken: Sequence[int]) -> float:
        """Return how good a buy a host is, better ones less."""
        price = self._price(offer)
        return self._bias * price / self._dearest - self._worth_of(offer, hosts, taken) / price

    def _price(self, offer: Offer) -> float:
        """Return what a host counts as."""
        return offer.cost + self._extra

    def _worth_of(self, offer: Offer, hosts: int, taken: Sequence[int]) -> float:
        """Return what a host's tasks are worth, the mean where several are opened; the first takes these."""
        tasks = self._tasks
        worth = tasks.worth(taken, self._worths, self._worth_of_fine)
        if hosts == 1:
            return worth
        all_taken = [*taken]
        tasks.take(taken)
        compared = min(hosts, _GANG_HOSTS)
        for _ in range(compared - 1):
            others = tasks.filling(offer.kind)
            tasks.take(others)
            worth += tasks.worth(others, self._worths, self._worth_of_fine)
            all_taken += others
        tasks.give_back(all_taken)
        return worth / compared

    def _refresh(self, offers: Sequence[Offer]) -> None:
        """Compute what a unit of each resource is worth now."""
        tasks = self._tasks
        names = list(dict.fromkeys(name for offer in offers for name in offer.kind.totals))
        duals = dual_prices(
            [float(tasks.needed(name)) for name in names],
            [[float(offer.kind.totals.get(name, 0)) for name in names] for offer in offers],
            [self._price(offer) for offer in offers],
        )
        prices = dict(zip(names, duals, strict=True))
        self._worth_of_fine = prices.get(tasks.fine, 0.0)
        self._worths = [
            sum([prices.get(name, 0.0) * amount for name, amount in group.need.items()])
            for group in tasks.groups
        ]
        self._dearest = max(self._price(offer) for offer in offers)
        self._bounds = {
            offer.number: sum([prices[name] * amount for name, amount in offer.kind.totals.items()])
            / (self._price(offer) or 1.0)
            for offer in offers
        }


def are_fillable(jobs: Sequence[JobClass]) -> bool:
    """Return whether jobs are simple and take the first host with room for each of their tasks."""
    return all(
        is_simple(job)
        and not job.alternatives[0].parts[0].request.selector.order
        and (job.least == 1 or _has_equal_tasks(job))
        for job in dict.fromkeys(jobs)
    )


def _has_equal_tasks(job: JobClass) -> bool:
    request = job.alternatives[0].parts[0].request
    return request.span.one_task_a_host and not request.job
