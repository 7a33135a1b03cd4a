"""The catalog pass: the jobs that failed on resources, tried again on what the catalog could bring.

Each job is placed by the same allocator over real hosts with what phase 1 left free, hosts in flight, virtual
hosts opened before, and then new virtual hosts. What it takes stays taken.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from xce.domain.cluster.state import State
from xce.domain.demand.lookahead import Ahead
from xce.domain.demand.mixes import order_matters, small_mixes
from xce.domain.demand.offer import Offer
from xce.domain.demand.sorting_out import Candidate
from xce.domain.demand.supply import Supply, most_hosts_of, tasks_on_empty
from xce.domain.demand.template_choice import Option, best, best_alone
from xce.domain.scheduling.attempt import Attempt, Context
from xce.domain.scheduling.classes import Alternative, JobClass, Part
from xce.domain.scheduling.guarantees import kept_from, limits_before_hosts
from xce.domain.scheduling.placement import Placed, commit, place, undo_placed

#: Task counts up to which the fewest hosts of a template are found one by one; above by halving.
_ONE_BY_ONE: Final = 32
#: How many hosts above the fewest are tried where the fewest move other jobs.
_MORE: Final = 4
#: More hosts than there is ever room for.
_NEVER: Final = 2**60


#: What a job takes of each of several new hosts.
Used = Sequence[Mapping[str, int]]


class Counted(NamedTuple):
    """A job that counts, with what the pass gave it."""

    candidate: Candidate
    placed: Placed


class Stopped(NamedTuple):
    """What stopped a job before any host was looked at, if anything did, for every alternative alike.

    Attributes:
        limits: names of limits.
        short: shared resources with the amount that is missing.
    """

    limits: Sequence[str] = ()
    short: Sequence[tuple[str, int]] = ()


class Pass:
    """One run over the candidates in job order.

    Attributes:
        core: the state; it has all that is in flight, and the headroom as free amounts.
        opened: the new hosts so far, in the order opened.
        rooms: how many more there may be of each template.
        counted: the jobs that found a place, in job order.
        failed: classes that found nothing, with what stopped the first job of each when its turn came. All
            that a class could have was tried then, and supply only shrinks, so the others find nothing either.
    """

    def __init__(self, core: State, supply: Supply, opened: Sequence[Offer] = ()) -> None:
        self.core = core
        self.supply = supply
        self.opened: list[Offer] = []
        self.was_given = bool(opened)
        self.rooms = supply.rooms.copy()
        self.counted: list[Counted] = []
        self.failed: dict[JobClass, Stopped] = {}
        self._fitting: dict[tuple[JobClass, int], list[Option]] = {}
        self._only: dict[JobClass, tuple[JobClass, ...]] = {}
        self._ahead: Ahead | None = None
        self._room_of: tuple[object, int] = (None, 0)
        self._add(opened)

    def try_job(
        self, candidate: Candidate, all_jobs: Sequence[Candidate], place_in_all: int
    ) -> bool:
        """Place a job, opening hosts if it must be; it is one of all the candidates."""
        job = candidate.job_class
        if job in self.failed and not job.outside:
            return False
        placed = None
        if self._could_help(candidate):
            placed = self._on_what_is_there(job) or self._open_for(
                candidate, all_jobs, place_in_all
            )
        if placed is None:
            self.give_up(job)
            return False
        self._count(candidate, placed)
        return True

    def _on_what_is_there(self, job: JobClass) -> Placed | None:
        """Return a place without new hosts; none is looked for where not even the room of all hosts would do."""
        if (
            len(job.alternatives) == 1
            and len(job.alternatives[0].parts) == 1
            and job.least > 1
            and not _needs_one_host(job)
        ):
            part = job.alternatives[0].parts[0]
            tasks = part.tasks or job.least
            if self._room_there(job, part, tasks) < tasks:
                return None
        return place(self.core, job, job.least)

    def give_up(self, job: JobClass) -> None:
        """Record what stops a job that finds nothing now."""
        if job not in self.failed:
            self.failed[job] = self._what_stopped(job)

    def adopt(self, opened: Sequence[Offer], placements: Iterable[Placed]) -> None:
        """Take over new hosts and jobs on them that were found otherwise; what they take of meters is counted."""
        self._add(opened)
        core = self.core
        for placed in placements:
            for claim in placed.claims:
                core.debit(claim.place, claim.amounts)
            core.occupy([claim.place for claim in placed.claims], exclusive=False)

    def _could_help(self, candidate: Candidate) -> bool:
        """Return whether a job has anything to hope for that it did not have in phase 1."""
        if self.opened or self.supply.has_any or candidate.job_class.outside:
            return True
        return candidate.is_behind or candidate.job_class.most > candidate.job_class.least

    def _what_stopped(self, job: JobClass) -> Stopped:
        core = self.core
        limits: list[str] = []
        short: list[tuple[str, int]] = []
        for alternative in job.alternatives:
            names = limits_before_hosts(core, job, alternative.number, guarantees=True)
            missing = _missing(core, job, alternative)
            if not names and not missing:
                return Stopped()
            limits += names
            short += [] if names else missing
        return Stopped(limits, short)

    def place_without_new(self, candidate: Candidate) -> bool:
        """Place a job on what is there, if it has a place."""
        job = candidate.job_class
        placed = place(self.core, job, job.least)
        if placed is None:
            return False
        self._count(candidate, placed)
        return True

    def options(self, job: JobClass) -> Iterator[list[Offer]]:
        """Yield new hosts with which a job has a place, the best first; more of them after the fewest."""
        for only in self._alternatives(job):
            for tier in self.supply.tiers:
                for offer in tier:
                    room = self.rooms.left[offer.number]
                    fewest = self._fewest(only, offer) if room > 0 else None
                    if fewest is not None:
                        for hosts in range(len(fewest), min(room, len(fewest) + _MORE) + 1):
                            yield [offer] * hosts
            yield from self._mixes(only)

    def _count(self, candidate: Candidate, placed: Placed) -> None:
        commit(self.core, placed)
        if self.core.ground.guarantees:
            self.core.no_longer_waits(candidate.job_class)
        if self._ahead is not None:
            self._ahead.placed(candidate.place)
        self.counted.append(Counted(candidate, placed))

    def _open_for(
        self, candidate: Candidate, all_jobs: Sequence[Candidate], place_in_all: int
    ) -> Placed | None:
        job = candidate.job_class
        if self._is_too_wide(job):
            return None
        for each in self._alternatives(job):
            only = candidate._replace(job_class=each)
            for number in range(len(self.supply.tiers)):
                options = self._options(each, number)
                if options:
                    chosen = self._choose(options, number, only, all_jobs, place_in_all)
                    return self._placed_on([chosen.offer] * len(chosen.used), job)
            mix = next(self._mixes(each), None)
            if mix is not None:
                return self._placed_on(mix, job)
        return None

    def _placed_on(self, offers: Sequence[Offer], job: JobClass) -> Placed:
        """Open hosts with which a job has a place, and place it."""
        self._add(offers)
        placed = place(self.core, job, job.least)
        assert placed is not None, "the hosts were found to do"
        return placed

    def _alternatives(self, job: JobClass) -> Sequence[JobClass]:
        """Return the class once for each alternative, with no other: price never picks the alternative."""
        if len(job.alternatives) == 1:
            return (job,)
        known = self._only.get(job)
        if known is None:
            known = self._only[job] = tuple(job.only(each) for each in job.alternatives)
        return known

    def _options(self, job: JobClass, tier: int) -> list[Option]:
        """Return the ways to serve a job with new hosts of one template of a priority."""
        room = self.rooms.left
        if not _is_single(job):
            options: list[Option] = []
            for offer in self.supply.tiers[tier]:
                if room[offer.number] > 0:
                    used = self._fewest(job, offer)
                    if used is not None:
                        options.append(Option(offer, used))
            return options
        known = self._fitting.get((job, tier))
        if known is None:
            fitting = [(offer, self._single(job, offer)) for offer in self.supply.tiers[tier]]
            known = [Option(offer, used) for offer, used in fitting if used is not None]
            self._fitting[job, tier] = known
        left = self.core.left
        for meter, a_task, once in job.alternatives[0].parts[0].fixed:
            if a_task + once > max(0, left[meter]):
                return []
        return [option for option in known if room[option.offer.number] > 0]

    def _choose(
        self,
        options: Sequence[Option],
        tier: int,
        candidate: Candidate,
        all_jobs: Sequence[Candidate],
        place_in_all: int,
    ) -> Option:
        if self._ahead is None and sum(1 for each in options if each.offer.price is not None) > 1:
            self._ahead = Ahead(self.core, all_jobs[place_in_all:])
        if self._ahead is None:
            return best_alone(options)
        chosen = best(options, tier, self.supply.tiers[tier], self._ahead, candidate)
        self._ahead.placed(candidate.place)
        self._ahead.open(chosen.offer.kind, chosen.used)
        return chosen

    def _fewest(self, job: JobClass, offer: Offer) -> Used | None:
        """Return what the job takes of the fewest new hosts of one template with which it has a place."""
        if _is_single(job):
            used = self._single(job, offer)
            fixed = job.alternatives[0].parts[0].fixed
            left = self.core.left
            is_met = all(a_task + once <= max(0, left[meter]) for meter, a_task, once in fixed)
            return used if is_met else None
        if _may_share_one_host(job):
            used = self._on_one_host(job, offer)
            if used is not None or _needs_one_host(job):
                return used
        most = min(
            self.rooms.left[offer.number],
            most_hosts_of(job, offer.kind) + self._kept(job, offer),
        )
        least = self._least(job, [offer])
        if least > most:
            return None
        if most <= _ONE_BY_ONE:
            for hosts in range(least, most + 1):
                used = self._with_new(job, offer, hosts)
                if used is not None:
                    return used
            return None
        low, high = least, most
        found = self._with_new(job, offer, high)
        while found is not None and low < high:
            middle = (low + high) // 2
            used = self._with_new(job, offer, middle)
            if used is not None:
                found, high = used, middle
            else:
                low = middle + 1
        return found

    def _least(self, job: JobClass, offers: Sequence[Offer]) -> int:
        """Return a number of new hosts of any of these offers below which a job has no place, however it is split.

        More than ``offers`` if all of them, one host each, are too few where there are several.
        """
        if len(job.alternatives) != 1 or len(job.alternatives[0].parts) != 1:
            return 1
        part = job.alternatives[0].parts[0]
        tasks = part.tasks or job.least
        room = self._room_there(job, part, tasks)
        if room >= tasks:
            return 1
        new = [tasks_on_empty(part, offer.kind, tasks) for offer in offers]
        if len(new) == 1:
            return -(-(tasks - room) // new[0]) if new[0] > 0 else _NEVER
        return 1 if room + sum(new) >= tasks else len(new) + 1

    def _is_too_wide(self, job: JobClass) -> bool:
        """Return whether all hosts that are there and all new ones together are too few, however a job is split."""
        if len(job.alternatives) != 1 or len(job.alternatives[0].parts) != 1:
            return False
        if _needs_one_host(job):
            return False
        part = job.alternatives[0].parts[0]
        tasks = part.tasks or job.least
        room = self._room_there(job, part, tasks)
        for tier in self.supply.tiers:
            for offer in tier:
                room += self.rooms.left[offer.number] * tasks_on_empty(part, offer.kind, tasks)
        return room < tasks

    def _room_there(self, job: JobClass, part: Part, tasks: int) -> int:
        """Return how many tasks of a job all hosts that are there would take, each as one bucket; at most ``tasks``."""
        key = (job, len(self.counted), self.core.count)
        if self._room_of[0] != key:
            view = self.core.view(part.scope)
            hosts = self.core.all_fits(view.whole, part.request.bucket(1, first=False))
            rooms = Attempt(part, tasks, Context(job)).rooms(self.core, hosts, first=False)
            self._room_of = (key, min(tasks, sum(room for room in rooms if room > 0)))
        return self._room_of[1]

    def _single(self, job: JobClass, offer: Offer) -> Used | None:
        """Return what a job of one task takes of an empty host of a template, None if it does not fit."""
        part = job.alternatives[0].parts[0]
        amounts = dict(part.request.bucket(1, first=True))
        totals = offer.kind.totals
        if tasks_on_empty(part, offer.kind, 1) == 1 and all(
            totals.get(name, 0) >= amount for name, amount in amounts.items()
        ):
            return [amounts]
        return None

    def _on_one_host(self, job: JobClass, offer: Offer) -> Used | None:
        """Return what a job takes of one new host that takes all of it, None if there is no such host.

        No host that is there takes it all, or the job had its first plan there.
        """
        part = job.alternatives[0].parts[0]
        left = self.core.left
        for meter, a_task, once in part.fixed:
            if a_task * job.least + once > max(0, left[meter]):
                return None
        if not part.request.selector.matches(offer.kind):
            return None
        amounts = dict(part.request.bucket(job.least, first=True))
        totals = offer.kind.totals
        if all(totals.get(name, 0) >= amount for name, amount in amounts.items()):
            return [amounts]
        return None

    def _kept(self, job: JobClass, offer: Offer) -> int:
        """Return how many more hosts could be needed because amounts are kept for groups."""
        if not job.outside:
            return 0
        more = 0
        for guarantee in self.core.ground.guarantees:
            provides = offer.kind.totals.get(guarantee.resource, 0)
            kept = sum(amount for _, amount in kept_from(self.core, job, guarantee.resource))
            if provides > 0:
                more += -(-kept // provides)
        return more

    def _with_new(self, job: JobClass, offer: Offer, hosts: int) -> Used | None:
        """Return what the job takes of so many new hosts if it has a place then; nothing stays changed."""
        core = self.core
        first = core.count
        core.add_hosts(offer.kind, hosts)
        try:
            placed = place(core, job, job.least)
            if placed is None:
                return None
            undo_placed(core, placed)
            used: list[dict[str, int]] = [{} for _ in range(hosts)]
            for claim in placed.claims:
                if claim.place >= first:
                    of_host = used[claim.place - first]
                    for name, amount in claim.amounts:
                        of_host[name] = of_host.get(name, 0) + amount
            return used
        finally:
            core.remove_last_hosts(hosts)

    def _add(self, offers: Sequence[Offer]) -> None:
        for offer in offers:
            self.core.add_host(offer.kind)
            self.opened.append(offer)
            self.rooms.take(offer)

    def _mixes(self, job: JobClass) -> Iterator[list[Offer]]:
        """Yield mixes of new hosts with which a job has a place."""
        if _is_single(job):
            return
        mix = self._find_mix(job, self.supply.tiers)
        if mix is None and self.rooms.are_shared:
            # What is preferred may have used up what it shares with hosts that hold more.
            mix = self._find_mix(job, [self._largest_first(job)])
        if mix is not None:
            yield mix
        if order_matters(job) or self.rooms.are_shared:
            offers = [
                offer
                for tier in self.supply.tiers
                for offer in tier
                if self.rooms.left[offer.number] > 0 and most_hosts_of(job, offer.kind) > 0
            ]
            yield from small_mixes(job, offers, self.rooms, lambda new: self._used_of(job, new))

    def _largest_first(self, job: JobClass) -> list[Offer]:
        """Return all templates, first those of which a host takes most tasks of a job."""
        parts = [part for alternative in job.alternatives for part in alternative.parts]

        def tasks(offer: Offer) -> int:
            return sum(tasks_on_empty(part, offer.kind, part.tasks or job.least) for part in parts)

        offers = [offer for tier in self.supply.tiers for offer in tier]
        return sorted(offers, key=tasks, reverse=True)

    def _find_mix(self, job: JobClass, tiers: Sequence[Sequence[Offer]]) -> list[Offer] | None:
        """Return new hosts of several templates with which a job has a place, for when one is not enough."""
        offers: list[Offer] = []
        rooms = self.rooms.copy()
        for tier in tiers:
            for offer in tier:
                most = most_hosts_of(job, offer.kind) + self._kept(job, offer)
                most = min(rooms.left[offer.number], most)
                rooms.take(offer, most)
                offers += [offer] * most
            used = self._used_of(job, offers)
            if used is not None:
                used = self._without_spare(job, used)
                return used if self._used_of(job, used) is not None else None
        return None

    def _used_of(self, job: JobClass, offers: Sequence[Offer]) -> list[Offer] | None:
        """Return those of the offered hosts that the job takes, None if it has no place on them."""
        if self._least(job, offers) > len(offers):
            return None
        first = self.core.count
        for offer in offers:
            self.core.add_host(offer.kind)
        try:
            placed = place(self.core, job, job.least)
            if placed is None:
                return None
            undo_placed(self.core, placed)
            used = sorted({claim.place for claim in placed.claims if claim.place >= first})
            return [offers[number - first] for number in used]
        finally:
            self.core.remove_last_hosts(len(offers))

    def _without_spare(self, job: JobClass, offers: list[Offer]) -> list[Offer]:
        """Return a mix without hosts that are not needed, the least preferred dropped first."""
        number = len(offers) - 1
        while number >= 0:
            used = self._used_of(job, [*offers[:number], *offers[number + 1 :]])
            if used is not None:
                offers = used
            number = min(number, len(offers)) - 1
        return offers


def _may_share_one_host(job: JobClass) -> bool:
    """Return whether the first plan of a job is all its tasks on one host that only room can refuse."""
    if len(job.alternatives) != 1 or job.outside:
        return False
    parts = job.alternatives[0].parts
    if len(parts) != 1 or not parts[0].is_free:
        return False
    span = parts[0].request.span
    return not (span.one_task_a_host or span.ptile or parts[0].request.selector.same)


def _needs_one_host(job: JobClass) -> bool:
    """Return whether all tasks of a job go on one host that only room can refuse, or nowhere."""
    return _may_share_one_host(job) and job.alternatives[0].parts[0].request.span.one_host


def _missing(core: State, job: JobClass, alternative: Alternative) -> list[tuple[str, int]]:
    """Return the shared resources of which an alternative takes more than there is, with the difference."""
    taken: dict[int, int] = {}
    for part in alternative.parts:
        for number, a_task, once in part.fixed:
            if core.ground.meters.all[number].rule is None:
                amount = (part.tasks or job.least) * a_task + once
                taken[number] = taken.get(number, 0) + amount
    return [
        (core.ground.meters.all[number].name, amount - max(0, core.left[number]))
        for number, amount in taken.items()
        if amount > max(0, core.left[number])
    ]


def _is_single(job: JobClass) -> bool:
    """Return whether the job is one task that only room, shared amounts and fixed limits can stop."""
    if job.least != 1 or len(job.alternatives) != 1 or job.outside:
        return False
    parts = job.alternatives[0].parts
    return len(parts) == 1 and not (parts[0].placed or parts[0].claimed or parts[0].allocator)
