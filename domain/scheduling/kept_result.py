"""The result of a session on groups of waiting jobs: what is written of a job is kept until something else is said of its group."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import itemgetter
from typing import Final

from xce.domain.demand.idle import idle_supply
from xce.domain.demand.impossible import Impossible
from xce.domain.demand.nothing_comes import Now, Told, told_of_all
from xce.domain.demand.sorting_out import Waiting, why_not_examined
from xce.domain.demand.supply import Supply
from xce.domain.formats.building import all_built, built
from xce.domain.formats.session_result import (
    Allocation,
    Demand,
    JobWhy,
    Pending,
    ReasonKind,
    ReasonSet,
    SessionResult,
)
from xce.domain.formats.snapshot import OrderMode
from xce.domain.scheduling.classes import JobClass
from xce.domain.scheduling.compile import Compiled
from xce.domain.scheduling.explain import Failure, Publisher
from xce.domain.scheduling.groups import Free, Group, PhaseOne, Place, Stretch, try_groups
from xce.domain.scheduling.kept_line import KeptLine, Line, Said, walk
from xce.domain.scheduling.kept_queue import KeptQueue
from xce.domain.scheduling.outcome import Outcome
from xce.domain.scheduling.placement import Placed
from xce.domain.scheduling.session import allocations_of, result_of
from xce.domain.scheduling.trace import Trace

_NO_DEMAND: Final = dict(Demand())


class KeptResult:
    """Runs sessions on the groups of a queue, and keeps what they write of each job."""

    def __init__(self, queue: KeptQueue) -> None:
        self._queue = queue
        self._never: _Judge | None = None
        self._line: KeptLine | None = None
        #: Of the last result that was kept: changes of the queue until then, and what is in it.
        self._seen = -1
        self._pending: tuple[Pending, ...] = ()
        self._not_counted: tuple[JobWhy, ...] = ()

    def run(self, compiled: Compiled, free: dict[str, int] | None, *, trace: bool) -> Outcome:
        """Return what comes of a session; the snapshot has no guarantees, and no pending job of it runs.

        ``free``: what all hosts together have free, if it is known; it may be changed.
        """
        supply = Supply(compiled)
        kept_free = None if free is None else Free(compiled.core, free)
        is_strict = compiled.snapshot.settings.order is OrderMode.STRICT
        if self._never is None or not self._never.is_of(compiled):
            self._never = _Judge(compiled, supply)
        if is_strict and self._are_a_line(compiled, supply):
            return self._run_line(compiled, supply, kept_free, trace=trace)
        self._forget_line()
        self._queue.joined = []
        groups = self._queue.groups
        found = try_groups(compiled.core, groups, compiled.ids, kept_free, is_strict=is_strict)
        told = told_of_all(compiled, supply, self._never.judge, found.waiting)
        if told is None:
            started = [(place.job, placed) for place, placed in found.started]
            return Outcome.of(result_of(compiled, started, self._one_by_one(found), trace=trace))
        allocations = _allocations(compiled, found.started)
        write = partial(self._written, compiled, found, told, allocations, trace=trace)
        return self._outcome(compiled, allocations, write, trace=trace)

    @staticmethod
    def _outcome(
        compiled: Compiled,
        allocations: tuple[Allocation, ...],
        write: Callable[[], SessionResult],
        *,
        trace: bool,
    ) -> Outcome:
        """Return what comes of a session that demands nothing; nobody asks for a trace who does not read it."""
        if trace:
            return Outcome.of(write())
        return Outcome(compiled.snapshot.position, allocations, (), write)

    def _are_a_line(self, compiled: Compiled, supply: Supply) -> bool:
        """Return whether all jobs behind one that cannot start say the same."""
        settings, queues = compiled.snapshot.settings, compiled.snapshot.queues
        if (
            supply.has_any
            or self._queue.has_limits
            or len(self._queue.places) > settings.catalog_pass_cap
            or any(queue.demand_threshold for queue in queues)
        ):
            return False
        return all(
            group.judge is self._never or self._is_possible(group) for group in self._queue.groups
        )

    def _is_possible(self, group: Group) -> bool:
        """Return whether jobs of a group could run some day, and with no fewer tasks than they ask for."""
        job_class = group.job_class
        assert self._never is not None, "it was made"
        if job_class.most > job_class.least or self._never.judge.why(job_class) is not None:
            return False
        group.judge = self._never
        return True

    def _run_line(
        self, compiled: Compiled, supply: Supply, free: Free | None, *, trace: bool
    ) -> Outcome:
        core, queue = compiled.core, self._queue
        found = walk(core, queue.places, queue.groups, compiled.ids, free)
        allocations = _allocations(compiled, found.started)
        write = partial(self._write_line, compiled, supply, found, allocations, trace=trace)
        return self._outcome(compiled, allocations, write, trace=trace)

    def _write_line(
        self,
        compiled: Compiled,
        supply: Supply,
        found: Line,
        allocations: tuple[Allocation, ...],
        *,
        trace: bool,
    ) -> SessionResult:
        """Write the result of a session; those before it may not have been written."""
        core, queue = compiled.core, self._queue
        behind = found.behind(queue.places)
        joined, queue.joined = queue.joined, []
        line = self._line
        if line is None or not line.is_of(found.stopped.keys(), traced=trace):
            self._forget_line()
            line = self._line = KeptLine(found.stopped.keys(), traced=trace)
        line.odd += [place for place in joined if place.group not in found.stopped]
        publisher = Publisher(core)
        recorder = Trace(core) if trace else None
        failures = [
            (group.places[0].order, failure, group) for group, failure in found.stopped.items()
        ]
        blocked = found.blocked
        if blocked is not None:
            failures.append((blocked.place.order, blocked.failure, blocked.group))
            if behind:
                failures.append((behind[0].order, blocked.order, blocked.group))
        failures.sort(key=itemgetter(0))
        for _, failure, group in failures:
            publisher.publish(failure, group.job_class)
        sets = publisher.sets()
        is_other = self._seen != queue.changes or bool(found.started)
        for group, failure in found.stopped.items():
            stretch = Stretch(group, 0, len(group.places), failure)
            is_other |= say(stretch, publisher.publish(failure, group.job_class))
            is_other |= tell(stretch, why_not_examined(failure))
        if blocked is not None:
            of_it = publisher.publish(blocked.failure, blocked.group.job_class)
            of_them = None
            if behind:
                said = publisher.publish(blocked.order, blocked.group.job_class)
                text = None
                if recorder is not None:
                    (text,) = recorder.texts(blocked.group.job_class, blocked.order)
                of_them = Said(*said, f"behind job {blocked.place.job.id}", text)
            why = Now(compiled, supply).why(blocked.group)
            is_other |= line.write(blocked.place, Said(*of_it, why), behind, of_them)
        if is_other:
            self._write(found.started, ())
            line.odd += [place for place, _ in found.started]
        placed = [placed for _, placed in found.started]
        result = self._result(compiled, allocations, placed, sets, ())
        if recorder is None:
            return result
        recorder.started(allocations)
        self._trace_line(recorder, found, behind)
        return result.model_copy(update={"trace": recorder.lines})

    def _trace_line(self, recorder: Trace, found: Line, behind: Sequence[Place]) -> None:
        """Describe the jobs that wait, once what is written of them is."""
        blocked = found.blocked
        if not found.stopped:
            if blocked is not None:
                recorder.waiting([(blocked.place.job, blocked.group.job_class, blocked.failure)])
                recorder.add([place.traced[0] for place in behind])
                recorder.not_counted(self._not_counted[:1])
                recorder.add([place.traced[1] for place in behind])
            return
        started = {place for place, _ in found.started}
        waiting: list[Waiting] = []
        for place in self._queue.places:
            if place in started:
                continue
            group = place.group
            assert group is not None, "every job is in one"
            failure = found.stopped.get(group)
            if failure is None:
                assert blocked is not None, "it waits, and nothing of its own stops it"
                failure = blocked.failure if place is blocked.place else blocked.order
            waiting.append((place.job, group.job_class, failure))
        recorder.waiting(waiting)
        recorder.not_counted(self._not_counted)

    def _forget_line(self) -> None:
        """Note that nothing is known any more of what is written of which job."""
        if self._line is not None:
            self._line = None
            for group in self._queue.groups:
                group.said = group.told = None

    def _one_by_one(self, found: PhaseOne) -> list[Waiting]:
        """Return the waiting jobs in job order, each with its class and why it waits."""
        failures: dict[Place, tuple[JobClass, Failure]] = {}
        for stretch in found.waiting:
            each = (stretch.group.job_class, stretch.failure)
            failures.update(dict.fromkeys(stretch.places, each))
        return [
            (place.job, *of_it)
            for place in self._queue.places
            if (of_it := failures.get(place)) is not None
        ]

    def _written(
        self,
        compiled: Compiled,
        found: PhaseOne,
        told: Sequence[Told],
        allocations: tuple[Allocation, ...],
        *,
        trace: bool,
    ) -> SessionResult:
        """Write the result of a session; those before it may not have been written."""
        core = compiled.core
        publisher = Publisher(core)
        is_other = self._seen != self._queue.changes or bool(found.started)
        impossible: list[Place] = []
        for stretch, each in zip(found.waiting, told, strict=True):
            failure = stretch.failure
            said = failure.set_id or publisher.publish(failure, stretch.group.job_class)
            is_other |= say(stretch, said)
            is_other |= tell(stretch, each.text)
            if each.is_impossible:
                impossible += stretch.places
        sets = publisher.sets()
        if is_other or impossible:
            self._write(found.started, impossible)
        placed = [placed for _, placed in found.started]
        result = self._result(compiled, allocations, placed, sets, impossible)
        if not trace:
            return result
        waiting = self._one_by_one(found)
        recorder = Trace(core)
        recorder.started(result.allocations)
        recorder.waiting(waiting)
        if impossible:
            recorder.catalog(result.demand, {}, [job for job, _, _ in waiting])
        else:
            recorder.not_counted(result.demand.not_counted)
        return result.model_copy(update={"trace": recorder.lines})

    def _result(
        self,
        compiled: Compiled,
        allocations: tuple[Allocation, ...],
        placed: Sequence[Placed],
        sets: tuple[ReasonSet, ...],
        impossible: Sequence[Place],
    ) -> SessionResult:
        demand = {
            **_NO_DEMAND,
            "impossible": whys_of(sorted(impossible, key=lambda place: place.order)),
            "not_counted": self._not_counted,
        }
        return built(
            SessionResult,
            {
                "format": "xce.session/1",
                "position": compiled.snapshot.position,
                "allocations": allocations,
                "reason_sets": sets,
                "pending": self._pending,
                "demand": built(Demand, demand),
                "idle": idle_supply(compiled, placed, ()),
                "warnings": tuple(compiled.warnings),
                "trace": None,
            },
        )

    def _write(self, started: Sequence[tuple[Place, Placed]], impossible: Sequence[Place]) -> None:
        """Put what is said of the waiting jobs in job order."""
        for place, _ in started:
            place.pending = place.why = None
            if place.group is not None:
                place.group.unsaid.append(place)
                place.group.untold.append(place)
        places = self._queue.places
        self._pending = pending_of(places)
        others: Iterable[Place] = places
        if impossible:
            gone = set(impossible)
            others = [place for place in places if place not in gone]
        self._not_counted = whys_of(others)
        self._seen = -1 if started or impossible else self._queue.changes


class _Judge:
    """Says what could never run; the same as long as hosts, totals and the catalog are."""

    def __init__(self, compiled: Compiled, supply: Supply) -> None:
        self._ground = compiled.core.ground
        self._catalog = compiled.snapshot.catalog
        self._totals = _totals(compiled)
        self.judge = Impossible(compiled, supply)

    def is_of(self, compiled: Compiled) -> bool:
        """Return whether nothing that it looks at is another."""
        ground = compiled.core.ground
        return (
            ground is self._ground
            and not ground.hosts.available_until
            and compiled.snapshot.catalog is self._catalog
            and _totals(compiled) == self._totals
        )


def _totals(compiled: Compiled) -> list[int]:
    return [pool.total for pool in compiled.snapshot.shared]


def _allocations(
    compiled: Compiled, started: Sequence[tuple[Place, Placed]]
) -> tuple[Allocation, ...]:
    """Return what starting jobs are given."""
    if not started:
        return ()
    return allocations_of(compiled.core, [(place.job, placed) for place, placed in started])


def pending_of(places: Iterable[Place]) -> tuple[Pending, ...]:
    """Return what is written of the jobs that wait."""
    return tuple([pending for place in places if (pending := place.pending) is not None])


def whys_of(places: Iterable[Place]) -> tuple[JobWhy, ...]:
    """Return why jobs are not counted, or are impossible."""
    return tuple([why for place in places if (why := place.why) is not None])


def say(stretch: Stretch, said: tuple[ReasonKind, int]) -> bool:
    """Write reason and reasons of the jobs of a stretch; return whether anything was written."""
    group = stretch.group
    reason, number = said
    places: Sequence[Place]
    if stretch.is_all:
        places = group.unsaid if group.said == said else group.places
        if not places:
            return False
        group.said = said
        group.unsaid = []
    else:
        group.said = None
        places = [
            place
            for place in stretch.places
            if (known := place.pending) is None
            or known.reasons != number
            or known.reason is not reason
        ]
    more = {"reason": reason, "reasons": number, "provisioning": None, "expanded": None}
    made = all_built(Pending, [{"job": place.name, **more} for place in places])
    for place, pending in zip(places, made, strict=True):
        place.pending = pending
    return bool(places)


def tell(stretch: Stretch, text: str) -> bool:
    """Write why the jobs of a stretch are not counted; return whether anything was written."""
    group = stretch.group
    places: Sequence[Place]
    if stretch.is_all:
        places = group.untold if group.told == text else group.places
        if not places:
            return False
        group.told = text
        group.untold = []
    else:
        group.told = None
        places = [
            place for place in stretch.places if (known := place.why) is None or known.why != text
        ]
    made = all_built(JobWhy, [{"job": place.name, "why": text} for place in places])
    for place, why in zip(places, made, strict=True):
        place.why = why
    return bool(places)
