"""The catalog pass as far as the rules fix it: what the supply is, who is left out at once, S', and the impossible."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from tests.reference.placing import place
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
    capacities: Mapping[str, int]

    def hold(self, opened: Iterable[str]) -> bool:
        """Return whether there is room for new hosts of these templates, opened one after the other.

        Each takes from its template, and from the first of its template's draws that has something left.
        """
        by_id = {template.id: template for template in self.templates}
        left, capacities = dict(self.room), dict(self.capacities)
        most = {
            (template.id, at): draw.most
            for template in self.templates
            for at, draw in enumerate(template.draws)
        }
        for name in opened:
            left[name] -= 1
            if left[name] < 0:
                return False
            if not by_id[name].draws:
                continue
            for at, draw in enumerate(by_id[name].draws):
                if most[name, at] == 0:
                    continue
                if draw.capacity is None:
                    most[name, at] -= 1
                    break
                if capacities[draw.capacity] > 0:
                    most[name, at] -= 1
                    capacities[draw.capacity] -= 1
                    break
            else:
                return False
        return True


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
        capacities={capacity.name: capacity.room for capacity in catalog.capacities},
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
