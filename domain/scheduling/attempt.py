"""One attempt to place one primary request, and the context that the parts of a job share."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from xce.domain.cluster.limits import HOSTS, TOGETHER, Share
from xce.domain.cluster.requests import Amounts
from xce.domain.cluster.state import State
from xce.domain.scheduling.classes import JobClass, Part
from xce.domain.scheduling.explain import PendRecord
from xce.domain.scheduling.guarantees import broken, kept_from

#: Most jobs take nothing of any meter: they share this.
_NOTHING: Final[Mapping[int, int]] = MappingProxyType({})


class Claim(NamedTuple):
    """One bucket on one host: what it takes of the host, and of meters that depend on the plan.

    Attributes:
        before: what the host had free of each of the amounts.
        uncommitted_before: what the context had counted of each of the meters.
    """

    place: int
    tasks: int
    amounts: Amounts
    metered: tuple[tuple[int, int], ...]
    before: tuple[int, ...]
    uncommitted_before: tuple[int, ...]


class Allocation(NamedTuple):
    """What a satisfied attempt gives: hosts in claim order, and the shared request with all its entries."""

    hosts: tuple[Claim, ...]
    shared: tuple[tuple[int, int], ...]


class Context:
    """What an alternative of a job has taken so far and nobody has committed.

    Attributes:
        claims: of the parts that are placed; their amounts are taken from the hosts.
        uncommitted: amounts by meter, not taken from the meters.
    """

    __slots__ = ("_asked", "_free", "claims", "job", "uncommitted")

    def __init__(self, job: JobClass) -> None:
        self.job = job
        self.claims: list[Claim] = []
        self.uncommitted: Mapping[int, int] = _NOTHING
        #: For guarantees: fixed amounts by resource, and what was free in all before the first claim.
        self._asked: dict[str, int] | None = None
        self._free: dict[str, int] | None = None

    def take(self, number: int, amount: int) -> None:
        """Count an amount of a meter as taken."""
        so_far = self.uncommitted
        if not isinstance(so_far, dict):
            so_far = self.uncommitted = {}
        so_far[number] = so_far.get(number, 0) + amount

    def put_back(self, number: int, amount: int) -> None:
        """Count no more of a meter as taken than this."""
        if isinstance(self.uncommitted, dict):
            self.uncommitted[number] = amount

    def ask(self, amounts: dict[str, int]) -> dict[str, int]:
        """Add fixed amounts of a part; return the sums of the job so far, of the same resources."""
        if self._asked is None:
            self._asked = {}
        asked = self._asked
        for name, amount in amounts.items():
            asked[name] = asked.get(name, 0) + amount
        return {name: asked[name] for name in amounts}

    def free_before(self, core: State, resource: str) -> int:
        """Return what was free of a resource in all before this job claimed anything."""
        if self._free is None:
            self._free = {}
        known = self._free.get(resource)
        if known is None:
            known = core.total_free(resource)
            if resource not in core.ground.meters.shared:
                for claim in self.claims:
                    known += sum(amount for name, amount in claim.amounts if name == resource)
            self._free[resource] = known
        return known

    def guarantees_broken(self, core: State, amounts: dict[str, int]) -> list[str]:
        """Return the quotas that would lose a part of what they keep if the job took these amounts in all."""
        return [
            name
            for resource, amount in amounts.items()
            for name in broken(
                self.free_before(core, resource), amount, kept_from(core, self.job, resource)
            )
        ]


class Attempt:
    """One call of the framework.

    Attributes:
        part: the primary request; None is answered with an error code.
        tasks: how many tasks of it are placed.
        record: what stopped it, made by the framework.
        allocation: set on success only.
    """

    __slots__ = ("allocation", "context", "part", "record", "tasks")

    def __init__(
        self, part: Part | None, tasks: int, context: Context, record: PendRecord | None = None
    ) -> None:
        self.part = part
        self.tasks = tasks
        self.context = context
        self.record = record
        self.allocation: Allocation | None = None

    def metered(self, bucket: int, *, first: bool) -> tuple[tuple[int, int], ...]:
        """Return what a bucket takes of the meters that depend on the plan."""
        part, tasks = self.part, self.tasks
        assert part is not None, "the framework checked it"
        return tuple(
            (number, bucket * a_task + a_host + (tasks * first_task + once if first else 0))
            for number, a_task, a_host, first_task, once in part.claimed
        )

    def is_refused(
        self,
        core: State,
        claims: Sequence[Claim],
        candidate: tuple[int, Amounts],
        metered: tuple[tuple[int, int], ...],
    ) -> bool:
        """Return whether a meter that depends on the plan, or a guarantee, refuses one more claim.

        ``claims`` are those of the plan so far; those of earlier parts are in the context, and so are the
        amounts of ``claims`` by meter.
        """
        part, context = self.part, self.context
        assert part is not None, "the framework checked it"
        for number, amount in metered:
            if amount > 0 and context.uncommitted.get(number, 0) + amount > core.left[number]:
                return True
        if not part.placed and not part.is_guarded:
            return False
        place, amounts = candidate
        shares: list[Share] = [(claim.place, dict(claim.amounts)) for claim in context.claims]
        shares += [(claim.place, dict(claim.amounts)) for claim in claims]
        shares.append((place, dict(amounts)))
        shared = self._shared_so_far(core, metered)
        if part.placed and core.placed.refusing(part.placed, shares, shared, core.names):
            return True
        if part.is_guarded:
            dependent = (*part.request.host, *part.request.shared_host)
            taken = {
                name: shared.get(name, 0) + sum(uses.get(name, 0) for _, uses in shares)
                for name, _ in dependent
            }
            return bool(context.guarantees_broken(core, taken))
        return False

    def _shared_so_far(self, core: State, metered: tuple[tuple[int, int], ...]) -> dict[str, int]:
        meters = core.ground.meters.all
        more = dict(metered)
        amounts: dict[str, int] = {}
        for number in (*self.context.uncommitted, *more):
            meter = meters[number]
            if meter.rule is None:
                amounts[meter.name] = self.context.uncommitted.get(number, 0) + more.get(number, 0)
        return amounts

    def rooms(self, core: State, hosts: Sequence[int], *, first: bool) -> list[int]:
        """Return how many tasks each host could take as one bucket, by its own room and limits alone."""
        part, most = self.part, self.tasks
        assert part is not None, "the framework checked it"
        request = part.request
        once: dict[str, int] = dict(request.host)
        if first:
            for name, amount in request.job:
                once[name] = once.get(name, 0) + amount
        task = dict(request.task)
        rooms = [most] * len(hosts)
        for name in dict.fromkeys((*task, *once)):
            column, a_task, fixed = core.column(name), task.get(name, 0), once.get(name, 0)
            if a_task > 0:
                more = [(column[place] - fixed) // a_task for place in hosts]
            else:
                more = [most if column[place] >= fixed else 0 for place in hosts]
            rooms = list(map(min, rooms, more))
        if once:
            rooms = [max(0, room) for room in rooms]
        barred = core.busy if part.is_exclusive else core.shut
        if barred:
            rooms = [
                0 if place in barred else room for place, room in zip(hosts, rooms, strict=True)
            ]
        if part.placed:
            rooms = [
                self._accepted(core, place, room, first=first)
                for place, room in zip(hosts, rooms, strict=True)
            ]
        return rooms

    def most_hosts(self, core: State) -> int:
        """Return how many hosts a plan can have at most, as far as meters say."""
        part = self.part
        assert part is not None, "the framework checked it"
        most = part.most_hosts(self.tasks, core.left, self.context.uncommitted)
        for meter in part.placed:
            rule = meter.rule
            if (
                meter.resource == HOSTS
                and rule is not None
                and not rule.per_host
                and not rule.hosts
            ):
                known = core.placed.counted_hosts(meter)
                free_of_charge = known.intersection(core.view(part.scope).matching)
                most = min(most, max(0, rule.amount - len(known)) + len(free_of_charge))
        return most

    def has_room_in_all(self, core: State, hosts: Sequence[int], rooms: Sequence[int]) -> bool:
        """Return whether limits that count several hosts together leave room for all tasks."""
        part, tasks = self.part, self.tasks
        assert part is not None, "the framework checked it"
        each_task = dict(part.request.task)
        for meter in part.placed:
            rule = meter.rule
            if rule is None or rule.hosts is None or rule.per_host:
                continue
            listed = [
                (room, place)
                for place, room in zip(hosts, rooms, strict=True)
                if core.names[place] in rule.hosts
            ]
            in_list = sum(room for room, _ in listed)
            outside = sum(rooms) - in_list
            a_task = each_task.get(meter.resource, 0)
            if meter.resource == HOSTS:
                known = core.placed.counted_hosts(meter)
                new = sorted((room for room, place in listed if place not in known), reverse=True)
                in_list -= sum(new[max(0, rule.amount - len(known)) :])
            elif a_task > 0:
                used = core.placed.amounts.get((meter.number, TOGETHER), 0)
                in_list = min(in_list, max(0, rule.amount - used) // a_task)
            if outside + in_list < tasks:
                return False
        return True

    def _accepted(self, core: State, place: int, room: int, *, first: bool) -> int:
        """Return the largest bucket up to ``room`` that placed limits accept on a host as the only one."""
        part = self.part
        assert part is not None, "the framework checked it"
        low, high = 0, room
        if room > 0:
            metered = self.metered(room, first=first)
            amounts = part.request.bucket(room, first=first)
            if not self.is_refused(core, (), (place, amounts), metered):
                return room
            high = room - 1
        while low < high:
            middle = (low + high + 1) // 2
            metered = self.metered(middle, first=first)
            amounts = part.request.bucket(middle, first=first)
            if self.is_refused(core, (), (place, amounts), metered):
                high = middle - 1
            else:
                low = middle
        return low
