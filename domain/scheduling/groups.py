"""Waiting jobs in groups: a session asks once for all jobs that are equal in everything that it looks at.

A job of a group that cannot start says so for all that come after it. So what a session does goes with the number of
groups and of jobs that start, whatever the length of the queue.
"""

from bisect import bisect_left
from collections.abc import Container, Iterable, Sequence
from datetime import datetime
from heapq import heapify, heappop, heapreplace
from operator import attrgetter
from typing import Final, NamedTuple

from xce.domain.cluster.state import State
from xce.domain.formats.session_result import JobWhy, Pending, ReasonKind
from xce.domain.formats.snapshot import PendingJob
from xce.domain.scheduling.classes import JobClass
from xce.domain.scheduling.compile import ClassKey
from xce.domain.scheduling.explain import Failure, behind, limited, stopped
from xce.domain.scheduling.guarantees import limits_before_hosts
from xce.domain.scheduling.placement import Placed, start
from xce.domain.scheduling.unsatisfiable import Unsatisfiable

#: What decides about the place of a job in the queue.
Order = tuple[int, int, datetime, tuple[tuple[int, int, str], ...]]

#: What the jobs of a group have in common.
GroupKey = tuple[ClassKey, bool, tuple[str, ...], bool, str]


class Shape:
    """A class of jobs, whatever the ground: ``job_class`` is the class on the present one."""

    __slots__ = ("job_class", "jobs", "key")

    def __init__(self, key: ClassKey) -> None:
        self.key = key
        self.jobs = 0
        self.job_class: JobClass | None = None


class Place:
    """A job in the queue.

    Attributes:
        name: the id of the job.
        order: where it stands.
        shape: None if its requirement cannot be read.
        group: None until a session asks for it.
        pending, why: what the last session wrote of it, if it did.
        traced: the same of a line of jobs that is traced: what stops it, and why it is not counted.
    """

    __slots__ = ("group", "job", "name", "order", "pending", "shape", "traced", "why")

    def __init__(self, job: PendingJob, order: Order, shape: Shape | None) -> None:
        self.job = job
        self.name = job.id
        self.order = order
        self.shape = shape
        self.group: Group | None = None
        self.pending: Pending | None = None
        self.why: JobWhy | None = None
        self.traced: tuple[str, str] = ("", "")


#: Jobs in ``unsaid`` beyond twice those that wait, before all is forgotten that is written: nobody may ask for long.
_UNSAID_MORE: Final = 1_000
#: What places are put in order by.
ORDER: Final = attrgetter("order")


class Group:
    """Jobs that are equal in everything that a session looks at.

    Attributes:
        may_stop: whether something about its jobs themselves may stop them.
        is_for_sale: whether something may be bought for them.
        known_class: their class on the present ground, once a session asks for it.
        places: in job order.
        said: main reason and reasons that ``Place.pending`` has of all but those of ``unsaid``.
        told: the text that ``Place.why`` has of all but those of ``untold``.
        judge: who has found that its jobs could run some day, and that no fewer tasks would do.
    """

    __slots__ = (
        "is_for_sale",
        "judge",
        "key",
        "known_class",
        "may_stop",
        "places",
        "said",
        "told",
        "unsaid",
        "untold",
    )

    def __init__(self, key: GroupKey) -> None:
        self.key = key
        class_key, held, waits_for, self.is_for_sale, _ = key
        self.may_stop = held or bool(waits_for) or bool(class_key[0].unknown)
        self.known_class: JobClass | None = None
        self.judge: object = None
        self.places: list[Place] = []
        self.said: tuple[ReasonKind, int] | None = None
        self.told: str | None = None
        self.unsaid: list[Place] = []
        self.untold: list[Place] = []

    @property
    def job_class(self) -> JobClass:
        """Return the class of its jobs on the present ground."""
        assert self.known_class is not None, "a session sees to it"
        return self.known_class

    @property
    def first(self) -> PendingJob:
        """Return its first job."""
        return self.places[0].job

    def put(self, place: Place) -> None:
        """Add a job."""
        place.group = self
        places = self.places
        if not places or places[-1].order < place.order:
            places.append(place)
        else:
            places.insert(bisect_left(places, place.order, key=ORDER), place)
        if len(self.unsaid) > _UNSAID_MORE + 2 * len(places):
            self.said = self.told = (
                None  # nobody has read a result for long: then it is as if nobody ever had
            )
            self.unsaid, self.untold = [], []
        self.unsaid.append(place)
        self.untold.append(place)

    def remove(self, place: Place) -> None:
        """Take a job out."""
        del self.places[bisect_left(self.places, place.order, key=ORDER)]
        place.group = None


class Stretch(NamedTuple):
    """Jobs of a group that wait for one and the same reason: those from ``start`` to ``end``.

    Attributes:
        is_all: whether they are all of the group that wait.
    """

    group: Group
    start: int
    end: int
    failure: Failure
    is_all: bool = True

    @property
    def places(self) -> Sequence[Place]:
        """Return its jobs."""
        places = self.group.places
        return (
            places if not self.start and self.end == len(places) else places[self.start : self.end]
        )


class PhaseOne(NamedTuple):
    """Who starts with what, in job order, and who waits and why, by the first job of each stretch."""

    started: list[tuple[Place, Placed]]
    waiting: list[Stretch]


class Free:
    """What is free of each resource on all hosts together, and which jobs it is plainly too little for."""

    __slots__ = ("_amounts", "_core")

    def __init__(self, core: State, amounts: dict[str, int]) -> None:
        """Begin with at least what all hosts together have; it owns the amounts."""
        self._core = core
        self._amounts = amounts

    def take(self, placed: Placed) -> None:
        """Take what a job was given."""
        amounts = self._amounts
        for claim in placed.claims:
            for name, amount in claim.amounts:
                amounts[name] = amounts.get(name, 0) - amount

    def failure(self, job: JobClass) -> Failure | None:
        """Return the failure of a job for which all hosts together have too little; None: it is to be tried."""
        least = job.least_amounts()
        if least is None:
            return None
        amounts = self._amounts
        for name, amount in least:
            if amount > amounts.get(name, 0):
                break
        else:
            return None
        # The first part that fails is the one of which the reasons are told.
        parts = job.alternatives[0].parts
        if len(parts) != 1:
            return None
        part = parts[0]
        if not self._core.view(part.scope).hosts:
            return None
        return Failure((), ((part, part.tasks or job.least),), on_resources=True)


def try_groups(
    core: State,
    groups: Iterable[Group],
    here: Container[str],
    free: Free | None,
    *,
    is_strict: bool,
) -> PhaseOne:
    """Try every pending job in order; the same as one by one. There are no guarantees.

    Args:
        core: the state at the start.
        groups: all pending jobs.
        here: ids of the jobs that are still here.
        free: what is free, if it is known.
        is_strict: whether the first job that fails on resources holds back all behind it.
    """
    started: list[tuple[Place, Placed]] = []
    waiting: list[Stretch] = []
    failed = Unsatisfiable()
    heap: list[tuple[Order, int, Group]] = []
    for group in groups:
        stop = stop_of(group, here) if group.may_stop else None
        if stop is None:
            heap.append((group.places[0].order, 0, group))
        else:
            waiting.append(Stretch(group, 0, len(group.places), stop))
    heapify(heap)
    stopped_at_once = len(waiting)
    while heap:
        _, at, group = heap[0]
        job_class = group.job_class
        failure = failed.known(job_class)
        if failure is None and free is not None:
            failure = free.failure(job_class)
            if failure is not None:
                failure = failed.first(job_class, failure)
        if failure is None:
            placed = start(core, job_class)
            if isinstance(placed, Placed):
                started.append((group.places[at], placed))
                if free is not None:
                    free.take(placed)
                at += 1
                if at < len(group.places):
                    heapreplace(heap, (group.places[at].order, at, group))
                else:
                    heappop(heap)
                continue
            failure = failed.first(job_class, placed)
        heappop(heap)
        if is_strict and failure.on_resources:
            waiting.append(Stretch(group, at, at + 1, failure, is_all=False))
            ahead = [(each.group, each) for each in waiting[stopped_at_once:-1]]
            waiting[stopped_at_once:-1] = []
            rest = [(each, number, True) for _, number, each in heap]
            rest.append((group, at + 1, False))
            waiting += _all_behind(core, group.places[at], ahead, rest)
            break
        waiting.append(Stretch(group, at, len(group.places), failure))
    waiting.sort(key=_first_order)
    return PhaseOne(started, waiting)


def _first_order(stretch: Stretch) -> Order:
    return stretch.group.places[stretch.start].order


def _all_behind(
    core: State,
    blocker: Place,
    ahead: Iterable[tuple[Group, Stretch]],
    rest: Iterable[tuple[Group, int, bool]],
) -> Iterable[Stretch]:
    """Yield why all others wait once a job holds back all behind it.

    Args:
        core: the state, in which nothing starts any more.
        blocker: the job.
        ahead: stretches that fail, of which the first job stands before it.
        rest: groups with the place of their first job that has not been tried, and whether no job before it waits.
    """
    order = behind(blocker.job.id)
    known: dict[JobClass, Failure] = {}
    all_behind = [*rest]
    for group, stretch in ahead:
        end = bisect_left(group.places, blocker.order, key=ORDER)
        yield stretch._replace(end=end, is_all=end == len(group.places))
        all_behind.append((group, end, False))
    for group, at, is_all in all_behind:
        end = len(group.places)
        if at < end:
            failure, job_class = order, group.job_class
            if job_class.meters or job_class.outside:
                if job_class not in known:
                    known[job_class] = stands_behind(core, job_class, order)
                failure = known[job_class]
            yield Stretch(group, at, end, failure, is_all)


def stop_of(group: Group, here: Container[str]) -> Failure | None:
    """Return what about the jobs of a group themselves stops them, None if nothing does."""
    first, unknown = group.first, group.job_class.unknown
    return stopped(
        held=first.held,
        waits_for=[name for name in first.waits_for if name in here],
        unknown=unknown,
    )


def stands_behind(core: State, job: JobClass, order: Failure) -> Failure:
    """Return why a job waits that stands behind a blocked one: limits if they stop it, else ``order``."""
    names: list[str] = []
    for number in range(len(job.alternatives)):
        stopping = limits_before_hosts(core, job, number, guarantees=True)
        if not stopping:
            return order
        names += stopping
    return limited(core, job, dict.fromkeys(names))
