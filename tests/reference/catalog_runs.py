"""The catalog pass as far as the rules fix it: supply, S', and which sets of jobs it may count.

Which template a new host gets is free within the rules, so the pass is not repeated here. Instead all runs that
the rules allow are searched for one that counts exactly the jobs which a result counts.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, product

from tests.reference.placing import place, place_alternative
from tests.reference.plain import Outcome
from tests.reference.world import PlainHost, PlainJob, World, virtual_host, waited
from xce.domain.formats.snapshot import Snapshot, Tasks, Template
from xce.domain.values import natural_key

#: More of a shared resource than any job asks for; stands for an unknown headroom where nothing may be proved.
PLENTY = 2**40


@dataclass(frozen=True)
class Supply:
    """What the catalog offers: in flight, and new."""

    in_flight_hosts: tuple[PlainHost, ...]
    in_flight_counts: Mapping[str, int]
    templates: tuple[Template, ...]
    room: Mapping[str, int]
    headroom: Mapping[str, int]


def supply_of(snapshot: Snapshot) -> Supply:
    """Return the catalog's supply; a host that has joined is not in flight any more."""
    catalog = snapshot.catalog
    by_id = {template.id: template for template in catalog.templates}
    joined = {host.instance for host in snapshot.hosts}
    counts: Counter[str] = Counter()
    for flying in catalog.in_flight.counts:
        counts[flying.name] += flying.amount
    return Supply(
        in_flight_hosts=tuple(
            virtual_host(f"\0{host.id}", by_id[host.template], "in_flight", host.expected_name)
            for host in sorted(catalog.in_flight.hosts, key=lambda host: natural_key(host.id))
            if host.id not in joined
        ),
        in_flight_counts=counts,
        templates=tuple(catalog.templates),
        room={
            template.id: 0
            if template.paused_until is not None and template.paused_until > snapshot.now
            else template.allowed
            for template in catalog.templates
        },
        headroom={countable.name: countable.headroom or 0 for countable in catalog.countable},
    )


def new_hosts(supply: Supply, ids: Iterable[str], first: int = 1) -> list[PlainHost]:
    """Return new virtual hosts of these templates, numbered from ``first``."""
    by_id = {template.id: template for template in supply.templates}
    return [
        virtual_host(f"\0new {number}", by_id[name], "new", None)
        for number, name in zip(count(first), ids)
    ]


def at_least_tasks(job: PlainJob) -> PlainJob:
    """Return the job as demand sees it: with ``tasks.min`` tasks."""
    tasks = Tasks(min=job.least, max=job.least)
    return replace(job, pending=job.pending.model_copy(update={"tasks": tasks}))


def s_prime(
    outcome: Outcome,
    supply: Supply,
    counted: Sequence[PlainJob],
    order: Iterable[str],
    amounts: Mapping[str, int],
) -> World:
    """Return S' of the page: everything in flight arrived, the demand met, and only the counted jobs pending."""
    world = outcome.world.with_hosts(supply.in_flight_hosts).with_shared(supply.in_flight_counts)
    world = world.with_hosts(new_hosts(supply, order)).with_shared(amounts)
    return replace(world, waiting=tuple(at_least_tasks(job) for job in counted))


def left_out_at_once(
    snapshot: Snapshot, examined: Sequence[PlainJob], failed: Sequence[PlainJob]
) -> dict[str, str]:
    """Return the examined jobs that are not counted whatever the catalog has, with the reason."""
    why: dict[str, str] = {}
    thresholds = {queue.name: queue.demand_threshold for queue in snapshot.queues}
    for job in examined:
        pairs = thresholds.get(job.pending.queue, ())
        long_waiting = [
            waited(other.pending, snapshot.now).total_seconds() / 60
            for other in failed
            if other.pending.queue == job.pending.queue
        ]
        if not job.pending.provision:
            why[job.id] = "opted out"
        elif pairs and not any(
            sum(w >= minutes for w in long_waiting) >= jobs for jobs, minutes in pairs
        ):
            why[job.id] = f"below the demand threshold of queue {job.pending.queue}"
    return why


def possible_at_all(snapshot: Snapshot, outcome: Outcome, supply: Supply, job: PlainJob) -> bool:
    """Return whether the job could run in an empty cluster with all room, all counts and no limits."""
    headroom = {
        c.name: PLENTY if c.headroom is None else c.headroom for c in snapshot.catalog.countable
    }
    world = replace(
        outcome.world,
        hosts=tuple(replace(host, is_open=True) for host in outcome.world.hosts),
        pools={name: replace(pool, elsewhere=0) for name, pool in outcome.world.pools.items()},
        limits=(),
        guarantees=(),
        holdings=(),
        waiting=(job,),
    )
    world = (
        world.with_hosts(supply.in_flight_hosts)
        .with_shared(supply.in_flight_counts)
        .with_shared(headroom)
    )
    templates = sorted(
        supply.templates, key=lambda template: (-template.priority, natural_key(template.id))
    )
    names = [template.id for template in templates for _ in range(min(template.allowed, job.least))]
    return place(world.with_hosts(new_hosts(supply, names)), job, job.least) is not None


@dataclass
class Runs:
    """A search through the runs of the catalog pass that the rules allow; ``budget`` placements at most."""

    supply: Supply
    budget: int

    def can_count(
        self, world: World, candidates: Sequence[PlainJob], counted: set[str]
    ) -> bool | None:
        """Return whether some run counts exactly these jobs; None when the budget was spent before it was known.

        ``world``: the end of phase 1, with what is in flight and all headroom.
        """
        try:
            return self._from(world, Counter(), candidates, counted)
        except _SpentError:
            return None

    def _from(
        self, world: World, opened: Counter[str], candidates: Sequence[PlainJob], counted: set[str]
    ) -> bool:
        if not candidates:
            return True
        job, *rest = candidates
        options = self.options(world, opened, job)
        if job.id not in counted:
            return next(options, None) is None and self._from(world, opened, rest, counted)
        return any(self._from(after, more, rest, counted) for after, more in options)

    def options(
        self, world: World, opened: Counter[str], job: PlainJob
    ) -> Iterator[tuple[World, Counter[str]]]:
        """Yield the ways in which the pass may place a job: the world after it and the hosts opened till then."""
        for number in range(len(job.requirement.alternatives)):
            if (after := self._placed(world, opened, job, number, ())) is not None:
                yield after
                continue
            single = [
                after
                for template in self.supply.templates
                for after in self._fewest(world, opened, job, number, template)
            ]
            yield from single or self._mixed(world, opened, job, number)

    def _fewest(
        self, world: World, opened: Counter[str], job: PlainJob, number: int, template: Template
    ) -> list[tuple[World, Counter[str]]]:
        room = self.supply.room[template.id] - opened[template.id]
        for hosts in range(1, min(room, job.least) + 1):
            after = self._placed(world, opened, job, number, (template.id,) * hosts)
            if after is not None:
                return [after]
        return []

    def _mixed(
        self, world: World, opened: Counter[str], job: PlainJob, number: int
    ) -> list[tuple[World, Counter[str]]]:
        names = [
            template.id for template in self.supply.templates if self.supply.room[template.id] > 0
        ]
        for hosts in range(2, job.least + 1):
            found: list[tuple[World, Counter[str]]] = []
            for mix in product(names, repeat=hosts):
                total = opened + Counter(mix)
                if all(total[name] <= self.supply.room[name] for name in mix):
                    after = self._placed(world, opened, job, number, mix)
                    found += [] if after is None else [after]
            if found:
                return found
        return []

    def _placed(
        self, world: World, opened: Counter[str], job: PlainJob, number: int, new: tuple[str, ...]
    ) -> tuple[World, Counter[str]] | None:
        self.budget -= 1
        if self.budget < 0:
            raise _SpentError
        hosts = new_hosts(self.supply, new, first=opened.total() + 1)
        wider = world.with_hosts(hosts)
        holding = place_alternative(wider, job, job.requirement.alternatives[number], job.least)
        if holding is None:
            return None
        return wider.start(job, holding), opened + Counter(new)


class _SpentError(Exception):
    """The budget of placements is spent."""
