"""The result of a session on groups of waiting jobs: what is written of a job is kept until something else is said of its group."""

from collections.abc import Sequence
from typing import Final

from xce.domain.demand.idle import idle_supply
from xce.domain.demand.impossible import Impossible
from xce.domain.demand.nothing_comes import Told, told_of_all
from xce.domain.demand.sorting_out import Waiting
from xce.domain.demand.supply import Supply
from xce.domain.formats.building import all_built, built
from xce.domain.formats.session_result import Demand, JobWhy, Pending, ReasonKind, SessionResult
from xce.domain.formats.snapshot import OrderMode
from xce.domain.scheduling.compile import Compiled
from xce.domain.scheduling.explain import Failure, Publisher
from xce.domain.scheduling.groups import Free, PhaseOne, Place, Stretch, try_groups
from xce.domain.scheduling.kept_queue import KeptQueue
from xce.domain.scheduling.session import allocations_of, result_of
from xce.domain.scheduling.trace import Trace

_NO_DEMAND: Final = dict(Demand())


class KeptResult:
    """Runs sessions on the groups of a queue, and keeps what they write of each job."""

    def __init__(self, queue: KeptQueue) -> None:
        self._queue = queue
        self._never: _Judge | None = None
        #: Of the last result that was kept: changes of the queue until then, and what is in it.
        self._seen = -1
        self._pending: tuple[Pending, ...] = ()
        self._not_counted: tuple[JobWhy, ...] = ()

    def run(self, compiled: Compiled, free: dict[str, int] | None, *, trace: bool) -> SessionResult:
        """Return the result of a session; the snapshot has no guarantees, and no pending job of it runs.

        ``free``: what all hosts together have free, if it is known; it may be changed.
        """
        found = try_groups(
            compiled.core,
            self._queue.groups,
            compiled.ids,
            None if free is None else Free(compiled.core, free),
            is_strict=compiled.snapshot.settings.order is OrderMode.STRICT,
        )
        told = self._told(compiled, found)
        if told is None:
            started = [(place.job, placed) for place, placed in found.started]
            return result_of(compiled, started, self._one_by_one(found), trace=trace)
        return self._written(compiled, found, told, trace=trace)

    def _told(self, compiled: Compiled, found: PhaseOne) -> list[Told] | None:
        supply = Supply(compiled)
        if supply.has_any:
            return None
        if self._never is None or not self._never.is_of(compiled):
            self._never = _Judge(compiled, supply)
        return told_of_all(compiled, supply, self._never.judge, found.waiting)

    def _one_by_one(self, found: PhaseOne) -> list[Waiting]:
        """Return the waiting jobs in job order, each with its class and why it waits."""
        failures: dict[Place, Failure] = {}
        for stretch in found.waiting:
            failures.update(dict.fromkeys(stretch.places, stretch.failure))
        return [
            (place.job, place.group.job_class, failures[place])
            for place in self._queue.places
            if place.group is not None and place in failures
        ]

    def _written(
        self, compiled: Compiled, found: PhaseOne, told: Sequence[Told], *, trace: bool
    ) -> SessionResult:
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
            self._write(found, impossible)
        demand = built(
            Demand,
            {
                **_NO_DEMAND,
                "impossible": whys_of(sorted(impossible, key=lambda place: place.order)),
                "not_counted": self._not_counted,
            },
        )
        started = [(place.job, placed) for place, placed in found.started]
        allocations = allocations_of(core, started) if started else ()
        recorder = None
        if trace:
            waiting = self._one_by_one(found)
            recorder = Trace(core)
            recorder.started(allocations)
            recorder.waiting(waiting)
            recorder.catalog(demand, {}, [job for job, _, _ in waiting])
        return built(
            SessionResult,
            {
                "format": "xce.session/1",
                "position": compiled.snapshot.position,
                "allocations": allocations,
                "reason_sets": sets,
                "pending": self._pending,
                "demand": demand,
                "idle": idle_supply(compiled, [placed for _, placed in started], ()),
                "warnings": tuple(compiled.warnings),
                "trace": None if recorder is None else recorder.lines,
            },
        )

    def _write(self, found: PhaseOne, impossible: Sequence[Place]) -> None:
        """Put what is said of the waiting jobs in job order."""
        for place, _ in found.started:
            place.pending = place.why = None
            if place.group is not None:
                place.group.unsaid.append(place)
                place.group.untold.append(place)
        places = self._queue.places
        self._pending = pending_of(places)
        others: Sequence[Place] = places
        if impossible:
            gone = set(impossible)
            others = [place for place in places if place not in gone]
        self._not_counted = whys_of(others)
        self._seen = -1 if found.started or impossible else self._queue.changes


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


def pending_of(places: Sequence[Place]) -> tuple[Pending, ...]:
    """Return what is written of the jobs that wait."""
    return tuple([pending for place in places if (pending := place.pending) is not None])


def whys_of(places: Sequence[Place]) -> tuple[JobWhy, ...]:
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
    made = all_built(Pending, [{"job": place.job.id, **more} for place in places])
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
    made = all_built(JobWhy, [{"job": place.job.id, "why": text} for place in places])
    for place, why in zip(places, made, strict=True):
        place.why = why
    return bool(places)
