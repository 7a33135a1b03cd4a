"""Allocators: how the tasks of one primary request split into buckets, in the order in which plans are tried.

An allocator is a generator of plans, an optional guard and an optional preparation hook; the search for
hosts, the rollback and the result are the framework's (``allocation``). Plans that provably have no room are
left out: the generator sees what each host could take. The first plan that works stays the same.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from xce.domain.cluster.state import State
from xce.domain.scheduling.attempt import Attempt
from xce.domain.scheduling.classes import Part

#: Sizes of buckets, one bucket a host.
Plan = tuple[int, ...]

#: Plans of one request that are tried at most. Only limits that tie hosts together make one plan after the
#: other fail; a request that they refuse so often counts as one without a plan.
PLANS_MAX: Final = 2_000


class Plans(Protocol):
    """A running plan generator."""

    def next(self, failed_at: int | None) -> Plan | None:
        """Return the next plan, None after the last.

        Args:
            failed_at: which bucket of the last plan found no host; None before the first plan. All plans
                that begin with the same buckets fail there too and may be left out.
        """
        ...

    def close(self) -> None:
        """Give up whatever the generator holds; called once."""
        ...


@dataclass(frozen=True, slots=True)
class Allocator:
    """What is an allocator's own.

    Attributes:
        plans: starts a plan generator for a primary request on the scheduling core; None: there is no plan.
        accepts: whether a request with so many tasks is for this allocator; None: every one is.
        prepare: called with every accepted attempt before anything is checked.
    """

    name: str
    plans: Callable[[State, Attempt], Plans | None]
    accepts: Callable[[Part, int], bool] | None = None
    prepare: Callable[[Attempt], None] | None = None


class ListedPlans:
    """The plans of any iterator, one after the other."""

    def __init__(self, plans: Iterator[Plan]) -> None:
        self._plans = plans

    def next(self, failed_at: int | None) -> Plan | None:
        """Return the next plan of the iterator."""
        return next(self._plans, None)

    def close(self) -> None:
        """Forget the iterator."""
        self._plans = iter(())


class _OneTask:
    """The only plan of one task; it has no state, so one object serves all attempts."""

    def next(self, failed_at: int | None) -> Plan | None:
        return (1,) if failed_at is None else None

    def close(self) -> None:
        pass


_ONE_TASK = _OneTask()


def _sequential(core: State, attempt: Attempt) -> Plans:
    return _ONE_TASK


def _parallel(core: State, attempt: Attempt) -> Plans | None:
    assert attempt.part is not None, "the framework checked it"
    span, tasks = attempt.part.request.span, attempt.tasks
    if span.one_host:
        return ListedPlans(iter(((tasks,),)))
    if span.one_task_a_host:
        return _fixed(core, attempt, (1,) * tasks) if tasks <= core.count else None
    if span.ptile is not None:
        full, rest = divmod(tasks, span.ptile)
        if full > core.count:
            return None
        return _fixed(core, attempt, (span.ptile,) * full + ((rest,) if rest else ()))
    return _Partitions(core, attempt)


def _fixed(core: State, attempt: Attempt, plan: Plan) -> Plans | None:
    """Return the one plan of a span, or none where too few hosts can take its largest buckets."""
    part = attempt.part
    assert part is not None, "the framework checked it"
    if part.is_free and not part.request.job and len(plan) > 1:
        full = sum(1 for size in plan if size == plan[0])
        amounts = part.request.bucket(plan[0], first=False)
        groups = core.view(part.scope).groups
        if not any(len(core.all_fits(group, amounts, full)) >= full for group in groups):
            return None
    return ListedPlans(iter((plan,)))


def _parallel_accepts(part: Part, tasks: int) -> bool:
    return tasks > 1


#: Jobs of one task: a single plan of one bucket.
SEQJOB = Allocator("seqjob", _sequential)
#: All others: partitions in descending order, or the one plan of ``span``.
PARJOB = Allocator("parjob", _parallel, accepts=_parallel_accepts)


def _hosts_with_room(core: State, part: Part) -> Sequence[Sequence[int]]:
    """Return the groups of hosts, without those that have no room for a single task."""
    amounts = part.request.bucket(1, first=False)
    return [core.all_fits(group, amounts) for group in core.view(part.scope).groups]


class _Partitions:
    """Partitions of a task count in descending lexicographic order, those that hosts could take.

    With ``same`` the hosts of each value are a group; the order is over the plans of all groups.
    """

    def __init__(self, core: State, attempt: Attempt) -> None:
        self._core = core
        self._attempt = attempt
        self._plans_left = PLANS_MAX
        self._groups: list[_Descending] | None = None
        self._last: list[int] | None = None

    def next(self, failed_at: int | None) -> Plan | None:
        """Return the greatest plan left of any group."""
        last = self._last
        if last is None and self._one_host_may_take_all():
            last = self._last = [self._attempt.tasks]
            return tuple(last)
        groups = self._started_groups()
        if last is not None:
            place = len(last) - 1 if failed_at is None else failed_at
            for group in groups:
                group.skip(last, place)
        heads = [group.head for group in groups if group.head is not None]
        self._plans_left -= 1
        if not heads or self._plans_left < 0:
            return None
        self._last = max(heads)
        return tuple(self._last)

    def _one_host_may_take_all(self) -> bool:
        """Return whether a host has room for the first plan of all, one bucket; only where that is quickly seen."""
        core, attempt, part = self._core, self._attempt, self._attempt.part
        assert part is not None, "the framework checked it"
        if part.request.selector.same:
            return False
        view = core.view(part.scope)
        amounts = part.request.bucket(attempt.tasks, first=True)
        start = view.cursors.get(amounts, 0)
        return core.first_fit_of(view.whole, start, amounts, core.shut) >= 0

    def _started_groups(self) -> "list[_Descending]":
        if self._groups is None:
            core, attempt, part = self._core, self._attempt, self._attempt.part
            assert part is not None, "the framework checked it"
            most = attempt.most_hosts(core)
            has_first = bool(part.request.job)
            self._groups = []
            for hosts in _hosts_with_room(core, part):
                rooms = attempt.rooms(core, hosts, first=False)
                if not attempt.has_room_in_all(core, hosts, rooms):
                    continue
                firsts = attempt.rooms(core, hosts, first=True) if has_first else None
                descending = _Descending(attempt.tasks, rooms, firsts, most)
                if descending.head is not None:
                    self._groups.append(descending)
        return self._groups

    def close(self) -> None:
        """Forget what hosts could take."""
        self._groups = []


class _Descending:
    """Partitions of a number of tasks of which the i-th largest part is at most the i-th largest room.

    A partition that passes has, as long as only room on hosts decides, a host for each of its parts: those
    that could take the j-th part could take all later ones, and there are at least j of them.
    """

    def __init__(self, tasks: int, rooms: list[int], firsts: list[int] | None, most: int) -> None:
        self._tasks = tasks
        self._all_rooms = rooms
        self._firsts = firsts
        self._most = most
        #: Rooms for the parts, largest first; with ``firsts`` without the host of the first part.
        self._rooms: list[int] = sorted((room for room in rooms if room > 0), reverse=True)
        self.head: list[int] | None = None
        self._restart(0, [], tasks)

    def skip(self, plan: list[int], place: int) -> None:
        """Go on to the greatest partition below all that begin as ``plan`` does up to ``place``."""
        head = self.head
        if head is None or head[: place + 1] != plan[: place + 1]:
            return
        for index in range(place, -1, -1):
            if self._restart(index, head[:index], head[index] - 1):
                return
        self.head = None

    def _restart(self, index: int, start: list[int], largest: int) -> bool:
        """Set the head to the greatest partition that begins with ``start`` and goes on with at most ``largest``."""
        rest = self._tasks - sum(start)
        if index == 0 and self._firsts is not None:
            size = self._first_size(min(largest, rest))
            offset = 0
        else:
            offset = index - 1 if self._firsts is not None else index
            size = self._size(offset, min(largest, rest), rest, self._most - index)
        if size == 0:
            return False
        sizes = [*start, size]
        rest -= size
        if index == 0 and self._firsts is not None:
            offset = -1
        while rest > 0:
            offset += 1
            size = min(self._rooms[offset], size, rest)
            sizes.append(size)
            rest -= size
        self.head = sizes
        return True

    def _size(self, offset: int, largest: int, rest: int, most: int) -> int:
        """Return the largest next part that leaves enough room for the others, 0 if none does."""
        rooms = self._rooms
        if offset >= len(rooms) or most < 1:
            return 0
        size = min(largest, rooms[offset])
        if size < 1:
            return 0
        available = 0
        for room in rooms[offset : offset + most]:
            available += min(size, room)
            if available >= rest:
                return size
        return 0

    def _first_size(self, largest: int) -> int:
        """Return the largest first part: its host is the first that takes it, the others need other hosts."""
        firsts = self._firsts
        assert firsts is not None, "asked for with amounts of the first host only"
        for size in range(min(largest, max(firsts, default=0)), 0, -1):
            chosen = next((place for place, room in enumerate(firsts) if room >= size), None)
            if chosen is None:
                continue
            others = sorted(
                (r for place, r in enumerate(self._all_rooms) if r > 0 and place != chosen),
                reverse=True,
            )
            rest = self._tasks - size
            available = sum(min(room, size) for room in others[: max(0, self._most - 1)])
            if available >= rest:
                self._rooms = others
                return size
        return 0
