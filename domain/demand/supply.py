"""What the catalog offers to one session: templates with room, counts in flight, headroom."""

from decimal import Decimal
from typing import Final

from xce.domain.cluster.hosts import key_of_name
from xce.domain.cluster.kinds import HostKind
from xce.domain.cluster.state import State
from xce.domain.demand.offer import Offer
from xce.domain.demand.rooms import Rooms
from xce.domain.scheduling.classes import JobClass, Part
from xce.domain.scheduling.compile import Compiled

_FREE: Final = Decimal(0)
#: More of a shared resource than any job can ask for.
_PLENTY: Final = 2**60


class Supply:
    """The catalog of one session.

    Attributes:
        offers: all templates in the order of preference.
        rooms: how many more hosts there may be of each, before any is opened; to be copied by who opens some.
        tiers: those with room at the start, by priority, highest first.
        in_flight: by number of the meter, how much of each shared resource is on its way.
        headroom: by number of the meter, how much more could be obtained; only known amounts.
        all_counts: the most that could ever come, unknown headroom being plenty.
        has_any: whether there is anything that phase 1 did not have.
    """

    __slots__ = ("all_counts", "has_any", "headroom", "in_flight", "offers", "rooms", "tiers")

    def __init__(self, compiled: Compiled) -> None:
        snapshot = compiled.snapshot
        catalog = snapshot.catalog
        self.offers = [
            Offer(template, compiled.template_kinds[template.id], snapshot.now)
            for template in catalog.templates
        ]
        self.offers.sort(
            key=lambda offer: (
                -offer.priority,
                offer.price is None,
                offer.price or _FREE,
                key_of_name(offer.template.id),
            )
        )
        for number, offer in enumerate(self.offers):
            offer.number = number
        self.rooms = Rooms(
            self.offers, {capacity.name: capacity.room for capacity in catalog.capacities}
        )
        self.tiers: list[list[Offer]] = []
        for offer in self.offers:
            if self.rooms.left[offer.number] > 0:
                if not self.tiers or self.tiers[-1][0].priority != offer.priority:
                    self.tiers.append([])
                self.tiers[-1].append(offer)
        meters = compiled.core.ground.meters
        self.in_flight: dict[int, int] = {}
        for count in catalog.in_flight.counts:
            if count.name not in meters.unknown:
                number = meters.shared[count.name].number
                self.in_flight[number] = self.in_flight.get(number, 0) + count.amount
        self.headroom: dict[int, int] = {}
        self.all_counts: dict[int, int] = {}
        for count in catalog.in_flight.counts:
            number = meters.shared[count.name].number
            self.all_counts[number] = self.all_counts.get(number, 0) + count.amount
        for countable in catalog.countable:
            number = meters.shared[countable.name].number
            more = _PLENTY if countable.headroom is None else countable.headroom
            self.all_counts[number] = self.all_counts.get(number, 0) + more
            if countable.headroom is not None and countable.name not in meters.unknown:
                self.headroom[number] = countable.headroom
        self.has_any = bool(
            self.tiers
            or compiled.in_flight
            or any(self.in_flight.values())
            or any(self.headroom.values())
        )


def tasks_on_empty(part: Part, kind: HostKind, tasks: int) -> int:
    """Return how many tasks of a part an empty host of a kind takes as one bucket, limits aside."""
    room = part.request.room_on(kind)
    return tasks if room is None else min(tasks, room)


def most_hosts_of(job: JobClass, kind: HostKind) -> int:
    """Return how many empty hosts of a kind a job could use at most, if they were alone."""
    most = 0
    for alternative in job.alternatives:
        hosts = 0
        for part in alternative.parts:
            tasks = part.tasks or job.least
            room = tasks_on_empty(part, kind, tasks)
            span = part.request.span
            if room == 0:
                continue
            if span.one_host:
                hosts += 1
            elif span.one_task_a_host or span.ptile is not None:
                hosts += part.request.fewest_hosts(tasks)
            else:
                # Limits about hosts may leave room for one task where the host itself takes more.
                hosts += tasks if part.placed or part.allocator else -(-tasks // room)
        most = max(most, hosts)
    return most


def add_in_flight(core: State, compiled: Compiled, supply: Supply) -> None:
    """Let the hosts in flight join and the counts in flight be granted."""
    for host in compiled.in_flight:
        core.add_host(compiled.template_kinds[host.template], host.expected_name)
    for number, amount in supply.in_flight.items():
        core.left[number] += amount
