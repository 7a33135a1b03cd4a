"""Classes of equal jobs: what one needs, who it is for the limits, and what was found out about it.

Two jobs are in one class if they have the same user, project, queue, array, task range, requirement,
allocator, exclusive and run limit. Then whatever holds for one of them holds for the other.
"""

from collections.abc import Mapping
from copy import copy
from datetime import timedelta
from typing import TYPE_CHECKING

from xce.domain.cluster.limits import HOSTS, JOBS, Meter, Meters
from xce.domain.cluster.requests import Amounts, Request, Wanted
from xce.domain.cluster.state import Ground, Scope

if TYPE_CHECKING:
    from xce.domain.scheduling.plans import Allocator

#: What ``Part.claimed`` holds of one meter; see there.
ClaimedMeter = tuple[int, int, int, int, int]


class Part:
    """One primary request of a class of jobs, with the meters that it touches.

    Attributes:
        index: its place in the alternative.
        tasks: its own task count; None: the job's.
        fixed: of each meter that does not depend on the plan: number, amount a task, amount once.
        claimed: of each that does: number, amount a task of the bucket, amount a bucket, and with the first
            bucket amount a task of the part and amount once.
        placed: the placed meters of the class.
        is_exclusive: whether the alternative that it belongs to takes whole hosts.
        is_guarded: whether a guarantee of others may refuse a claim, because amounts are taken per host.
        stays_refused: whether a host that has refused a first bucket goes on to refuse it as long as amounts
            only shrink; not so where hosts are counted that a job of ours may come to use.
        allocator: the one that the job asks for; None: a built-in one, by the number of tasks.
        is_free: whether nothing but room on the host decides about a claim, and a built-in allocator about plans.
    """

    __slots__ = (
        "allocator",
        "claimed",
        "fixed",
        "index",
        "is_exclusive",
        "is_free",
        "is_guarded",
        "placed",
        "request",
        "scope",
        "stays_refused",
        "tasks",
    )

    def __init__(
        self,
        index: int,
        request: Request,
        scope: Scope,
        meters: tuple[Meter, ...],
        book: Meters,
        *,
        exclusive: bool,
        outside: bool,
        allocator: "Allocator | None" = None,
    ) -> None:
        self.index = index
        self.allocator = allocator
        self.request = request
        self.scope = scope
        self.tasks = request.tasks
        self.is_exclusive = exclusive
        fixed: list[tuple[int, int, int]] = []
        claimed: list[ClaimedMeter] = []
        task, once = dict(request.shared_task), dict(request.shared_job)
        each_host = dict(request.shared_host)
        for name in dict.fromkeys((*task, *once, *each_host)):
            number = book.shared[name].number
            if name in task or name in once:
                fixed.append((number, task.get(name, 0), once.get(name, 0)))
            if name in each_host:
                claimed.append((number, 0, each_host[name], 0, 0))
        on_task, on_host, on_first = dict(request.task), dict(request.host), dict(request.job)
        placed: list[Meter] = []
        for meter in meters:
            name, rule = meter.resource, meter.rule
            assert rule is not None, "jobs have the meters of rules"
            if rule.placed:
                placed.append(meter)
            elif name == JOBS:
                if index == 0:
                    fixed.append((meter.number, 0, 1))
            elif name in book.shared:
                a_task, at_once = task.get(name, 0), once.get(name, 0)
                if name in each_host:
                    claimed.append((meter.number, 0, each_host[name], a_task, at_once))
                elif a_task or at_once:
                    fixed.append((meter.number, a_task, at_once))
            else:
                a_task, at_once = on_task.get(name, 0), on_first.get(name, 0)
                if name in on_host:
                    claimed.append((meter.number, a_task, on_host[name], 0, at_once))
                elif a_task or at_once:
                    fixed.append((meter.number, a_task, at_once))
        self.fixed = tuple(fixed)
        self.claimed = tuple(claimed)
        self.placed = tuple(placed)
        self.is_guarded = outside and bool(request.host or request.shared_host)
        self.is_free = allocator is None and not (placed or claimed or exclusive or self.is_guarded)
        self.stays_refused = not (claimed or exclusive or self.is_guarded) and all(
            meter.resource != HOSTS for meter in placed
        )

    def fixed_amounts(self, tasks: int) -> dict[str, int]:
        """Return what it takes of every resource, of hosts and shared, whatever the plan."""
        request = self.request
        amounts: dict[str, int] = {}
        for table in (request.task, request.shared_task):
            for name, amount in table:
                amounts[name] = amounts.get(name, 0) + amount * tasks
        for table in (request.job, request.shared_job):
            for name, amount in table:
                amounts[name] = amounts.get(name, 0) + amount
        for table in (request.host, request.shared_host):
            for name, _ in table:
                amounts.pop(name, None)
        return amounts

    def fixed_shared(self, tasks: int) -> dict[str, int]:
        """Return what it takes of shared resources before any host is chosen."""
        amounts = {name: amount * tasks for name, amount in self.request.shared_task}
        for name, amount in self.request.shared_job:
            amounts[name] = amounts.get(name, 0) + amount
        return amounts

    def most_hosts(self, tasks: int, left: list[int], uncommitted: Mapping[int, int]) -> int:
        """Return how many buckets the meters of ``claimed`` allow at most."""
        most = tasks
        for number, a_task, a_host, first_task, first_once in self.claimed:
            if a_host > 0:
                room = left[number] - uncommitted.get(number, 0)
                room -= tasks * (a_task + first_task) + first_once
                most = min(most, max(0, room) // a_host)
        return most


class Alternative:
    """One alternative of a class: one part, or all of several."""

    __slots__ = ("is_exclusive", "number", "parts")

    def __init__(self, number: int, parts: tuple[Part, ...], *, exclusive: bool) -> None:
        self.number = number
        self.parts = parts
        self.is_exclusive = exclusive


class JobClass:
    """A class of equal jobs.

    Attributes:
        allocator: the one that it asks for; None: a built-in one.
        meters: all meters of limits that count such a job.
        outside: whether any guarantee keeps amounts from such a job.
    """

    __slots__ = (
        "_least_amounts", "allocator", "alternatives", "array", "exclusive", "least", "meters", "most", "outside", "placed",
        "project", "queue", "run_limit", "unknown", "user", "wanted",
    )  # fmt: skip

    def __init__(
        self,
        ground: Ground,
        wanted: Wanted,
        *,
        user: str,
        project: str,
        queue: str,
        array: str | None,
        least: int,
        most: int,
        exclusive: bool,
        run_limit: timedelta | None,
        allocator: "Allocator | None" = None,
    ) -> None:
        self.wanted = wanted
        self.allocator = allocator
        self.exclusive = exclusive
        self.run_limit = run_limit
        self.user = user
        self.project = project
        self.queue = queue
        self.array = array
        self.least = least
        self.most = most
        self.unknown = wanted.unknown
        self._least_amounts: tuple[Amounts | None] | None = None
        self.meters = ground.meters.of_job(user, project, queue, array)
        self.placed = tuple(m for m in self.meters if m.rule is not None and m.rule.placed)
        self.outside = any(user not in guarantee.members for guarantee in ground.guarantees)
        admission = ground.admission(user, run_limit)
        self.alternatives: tuple[Alternative, ...] = tuple(
            Alternative(
                place,
                tuple(
                    Part(
                        index,
                        request,
                        ground.scope(request, admission),
                        self.meters,
                        ground.meters,
                        exclusive=exclusive or wanted.exclusive[place],
                        outside=self.outside,
                        allocator=allocator,
                    )
                    for index, request in enumerate(requests)
                ),
                exclusive=exclusive or wanted.exclusive[place],
            )
            for place, requests in enumerate(wanted.alternatives)
        )

    def least_amounts(self) -> Amounts | None:
        """Return what it takes of hosts at the very least; None where meters or alternatives have a say too."""
        if self._least_amounts is None:
            self._least_amounts = (self._sum_at_least(),)
        return self._least_amounts[0]

    def _sum_at_least(self) -> Amounts | None:
        if len(self.alternatives) != 1 or self.outside:
            return None
        amounts: dict[str, int] = {}
        for part in self.alternatives[0].parts:
            if part.fixed or part.allocator is not None:
                return None
            request = part.request
            tasks = part.tasks or self.least
            for times, table in ((tasks, request.task), (1, request.host), (1, request.job)):
                for name, amount in table:
                    amounts[name] = amounts.get(name, 0) + amount * times
        return tuple(amounts.items())

    def only(self, alternative: Alternative) -> "JobClass":
        """Return the same class with one alternative and no other."""
        made = copy(self)
        made.alternatives = (alternative,)
        return made

    def on(self, ground: Ground) -> "JobClass":
        """Return the same class on another ground."""
        return JobClass(
            ground,
            self.wanted,
            user=self.user,
            project=self.project,
            queue=self.queue,
            array=self.array,
            least=self.least,
            most=self.most,
            exclusive=self.exclusive,
            run_limit=self.run_limit,
            allocator=self.allocator,
        )
