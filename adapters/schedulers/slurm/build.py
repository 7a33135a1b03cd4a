"""From readings to a snapshot: jobs that wait and run, and Slurm's own words on each."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from pydantic import ValidationError

from xce.adapters import collector
from xce.adapters.schedulers.slurm.explained import Explained
from xce.adapters.schedulers.slurm.facts import JobFact, PartitionFact, Readings, newest
from xce.adapters.schedulers.slurm.hosts import Hosts
from xce.adapters.schedulers.slurm.limits import Around, limits_of
from xce.adapters.schedulers.slurm.lists import amounts, array_tasks, licences
from xce.adapters.schedulers.slurm.reasons import Waits, waits_for
from xce.adapters.schedulers.slurm.requirement import (
    Asked,
    CannotTellError,
    Ground,
    asked_of,
    shape_of,
    together,
)
from xce.domain.cluster.resreq.reading import parse
from xce.domain.errors import InputError, Problem
from xce.domain.formats.base import problems_of
from xce.domain.formats.building import built
from xce.domain.formats.snapshot import (
    ArrayElement,
    Catalog,
    Host,
    HostUse,
    MemoryUnit,
    PendingJob,
    Queue,
    RunningJob,
    Settings,
    Shared,
    Snapshot,
    Tasks,
)

_WAITED: Final = re.compile(r"(?:^|[,?])(\w+)(?::(\d+(?:_(?:\d+|\*))?))?", re.ASCII)
#: Begins the id of what keeps a node busy and is not shown to us.
UNSEEN: Final = "?"
#: Elements of arrays and jobs of one view: more are named, and left out.
JOBS_MAX: Final = 2_000_000
#: Tasks of one job.
TASKS_MAX: Final = 1_000_000
#: A longer time limit is none.
MINUTES_MAX: Final = 100 * 366 * 24 * 60
_HELD_STATES: Final = frozenset({"REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
_UNITS: Final[dict[str, MemoryUnit | None]] = {"mem": None}


@dataclass(frozen=True, slots=True)
class View:
    """A snapshot, and what stands behind it.

    Attributes:
        facts: the record of each waiting job, by our id.
        troubles: what could not be used, by where it was read.
    """

    snapshot: Snapshot
    facts: Mapping[str, JobFact]
    troubles: tuple[tuple[str, Problem], ...]


def view_of(readings: Readings) -> View:
    """Return what a Slurm shows as a snapshot; its bare amounts of memory have no unit, all others say theirs.

    Raises:
        InputError: names that nothing can have, such as one with a control character.
    """
    try:
        with collector.paused():
            return _Builder(replace(readings, jobs=_of_one_user(readings))).view()
    except ValidationError as error:
        raise InputError("what Slurm shows", problems_of(error)) from None


def _of_one_user(readings: Readings) -> tuple[JobFact, ...]:
    """Return each job once; those of a partition that gives a node to one user ask for that too."""
    apart = {one.name for one in readings.partitions if one.is_for_one_user}
    return tuple(
        replace(job, shared="user")
        if not job.shared and not apart.isdisjoint(job.partitions)
        else job
        for job in newest(readings.jobs)
    )


class _Builder:
    def __init__(self, readings: Readings) -> None:
        self._readings = readings
        self._hosts = Hosts(readings)
        self._troubles = list(readings.troubles)
        self._partitions = {one.name: one for one in readings.partitions}
        self._limiting = {one.name for one in readings.qos} if readings.settings.limits_hold else set[str]()  # fmt: skip
        self._queues: dict[str, tuple[str, str]] = {}
        self._licences = frozenset(one.name for one in readings.licences)
        self._ground = Ground(
            threads=self._hosts.threads(),
            memory_counts=readings.settings.memory_counts,
            everywhere=self._hosts.everywhere,
            reserved=self._hosts.are_reserved,
            shared=self._licences,
        )
        self._asked: dict[tuple[object, ...], Asked | str] = {}
        self._tasks: dict[int, Tasks] = {}
        self._active = {one.name for one in readings.reservations if one.is_active}
        self._facts: dict[str, JobFact] = {}
        self._said: set[str] = set()

    def view(self) -> View:
        hosts = self._hosts.all()
        running = (*self._running(hosts), *self._unseen())
        waiting = [job for job in self._readings.jobs if job.is_waiting]
        for job in waiting:
            self._queue(job)
        limits, troubles = limits_of(
            self._readings.qos, self._readings.associations, self._around(waiting, running)
        ) if self._readings.settings.limits_hold else ((), [])  # fmt: skip
        self._troubles += troubles
        explained = Explained(limits, running)
        pending = tuple(self._pending(waiting, {job.id for job in running}, explained))
        snapshot = Snapshot(
            format="xce.snapshot/1",
            now=self._readings.at,
            hosts=hosts,
            shared=self._shared(running),
            queues=tuple(
                Queue(name=name, priority=self._tier(partition))
                for name, (partition, _) in sorted(self._queues.items())
            ),
            limits=limits,
            running=running,
            pending=pending,
            catalog=Catalog(),
            settings=Settings(units=_UNITS),
        )
        said = dict.fromkeys([*self._troubles, *self._hosts.troubles])
        return View(snapshot, self._facts, tuple(said))

    # ---------------------------------------------------------------- rules around
    def _around(self, waiting: Iterable[JobFact], running: Iterable[RunningJob]) -> Around:
        people = {(job.user, job.account) for job in waiting}
        people |= {(job.user, job.project) for job in running}
        own = {one.name: one.qos for one in self._readings.partitions if one.qos}
        return Around(self._queues, own, frozenset(people), self._licences)

    def _queue(self, job: JobFact) -> str:
        """Return the queue of a job: its partition, and its quality of service where that limits something."""
        partition = job.partitions[0] if job.partitions else "default"
        qos = job.qos if job.qos in self._limiting else ""
        name = f"{partition}:{qos}" if qos else partition
        self._queues.setdefault(name, (partition, qos))
        return name

    def _tier(self, partition: str) -> int:
        known = self._partitions.get(partition)
        return known.tier if known else 0

    def _shared(self, running: Iterable[RunningJob]) -> tuple[Shared, ...]:
        ours: dict[str, int] = {}
        for job in running:
            for name, amount in job.shared.items():
                ours[name] = ours.get(name, 0) + amount
        return tuple(
            Shared(
                name=one.name,
                total=one.total,
                used_elsewhere=None
                if one.used is None
                else max(0, one.used - ours.get(one.name, 0)) + one.reserved,
            )
            for one in self._readings.licences
        )

    # ------------------------------------------------------------------ running jobs
    def _running(self, hosts: Iterable[Host]) -> Iterator[RunningJob]:
        totals = {host.name: host.total for host in hosts}
        for job in self._readings.jobs:
            if not job.runs:
                continue
            shared = self._held_licences(job)
            yield built(
                RunningJob,
                {
                    "id": job.id,
                    "user": job.user or "nobody",
                    "project": job.account or "default",
                    "queue": self._queue(job),
                    "started": job.started,
                    "hosts": tuple(self._uses(job, totals)),
                    "shared": shared,
                    "exclusive": job.shared == "none" or self._is_whole(job),
                    "run_limit": _limit_of(job, self._partitions),
                    "array": _element(job, job.array_index) if job.array_id else None,
                },
            )

    def _unseen(self) -> Iterator[RunningJob]:
        """Yield something that keeps a node busy whose own counts say so, though no job that we are shown is there.

        Such a job has ended since, or is hidden from us. It takes nothing of the node by our count, so that nobody asks for a host in its
        stead; but a node with it is neither idle nor empty.
        """
        for node in self._hosts.unseen():
            yield built(
                RunningJob,
                {
                    "id": f"{UNSEEN}{node}",
                    "user": "nobody",
                    "project": "default",
                    "queue": "unknown",
                    "started": None,
                    "hosts": (built(HostUse, {"name": node, "tasks": 1, "uses": {}}),),
                    "shared": {},
                    "exclusive": False,
                    "run_limit": None,
                    "array": None,
                },
            )
            if self._readings.settings.jobs_are_private:
                message = f"PrivateData hides jobs, so that node {node} is busy with none: read as an operator"
                self._troubles.append(("scontrol show config", Problem(message)))

    def _held_licences(self, job: JobFact) -> dict[str, int]:
        try:
            found = licences(job.licences)
        except ValueError as error:
            self._trouble(job, f"licences: {error}")
            return {}
        return {name: amount for name, amount in found.items() if name in self._licences and amount}

    def _uses(self, job: JobFact, totals: Mapping[str, Mapping[str, int]]) -> Iterator[HostUse]:
        generic = [
            (name.removeprefix("gres/"), int(amount))
            for name, amount in amounts(job.allocated).items()
            if name.startswith("gres/") and amount.isdigit()
        ]
        for place in job.placed:
            total = totals.get(place.node)
            if total is None:
                self._trouble(job, f"it runs on {place.node!r}, which is no node")
                continue
            uses = {"slots": place.cpus}
            if self._readings.settings.memory_counts and place.memory:
                uses["mem"] = place.memory
            for name, amount in generic:
                if name in total:
                    uses[name] = -(-amount // len(job.placed))
            yield built(HostUse, {"name": place.node, "tasks": 1, "uses": uses})

    # ------------------------------------------------------------------ waiting jobs
    def _pending(
        self, waiting: list[JobFact], taken: set[str], explained: Explained
    ) -> Iterator[PendingJob]:
        ids = taken | {job.id for job in waiting if not job.array_tasks}
        elements = {job.number: self._elements(job, ids) for job in waiting}
        alive = ids.union(name for one in elements.values() for name, _ in one)
        arrays = _first_of_arrays(self._readings.jobs, elements)
        parts: dict[int, list[JobFact]] = {}
        for job in waiting:
            if job.het_id:
                parts.setdefault(job.het_id, []).append(job)
        made = 0
        for job in waiting:
            if job.het_id and job.het_offset:
                continue
            group = (
                sorted(parts[job.het_id], key=lambda one: one.het_offset) if job.het_id else [job]
            )
            values = self._values(group, alive, arrays, explained)
            if values is None:
                continue
            for name, array in elements[job.number]:
                if made >= JOBS_MAX:
                    self._trouble(
                        job, f"more than {JOBS_MAX} jobs: it and those behind are left out"
                    )
                    return
                made += 1
                self._facts[name] = job
                yield built(PendingJob, {**values, "id": name, "array": array})

    def _elements(self, job: JobFact, ids: set[str]) -> Iterable[tuple[str, ArrayElement | None]]:
        if not job.array_tasks:
            return [(job.id, _element(job, job.array_index) if job.array_id else None)]
        try:
            indexes, limit = array_tasks(job.array_tasks)
        except ValueError as error:
            self._trouble(job, f"array: {error}")
            return []
        limit = job.array_limit or limit
        found: list[tuple[str, ArrayElement | None]] = []
        name = str(job.array_id)
        for index in dict.fromkeys(indexes):
            if (one := f"{name}_{index}") not in ids:
                found.append(
                    (one, built(ArrayElement, {"id": name, "index": index, "limit": limit}))
                )
        return found

    def _values(
        self, group: list[JobFact], alive: set[str], arrays: Mapping[int, str], explained: Explained
    ) -> dict[str, object] | None:
        """Return all fields of a waiting job, in order."""
        job = group[0]
        asked = self._ask(group)
        held = isinstance(asked, str)
        before: tuple[str, ...] = ()
        for one in group:
            kind = self._kind(one)
            if kind is Waits.DEPENDENCY:
                before = tuple(name for name in _waited(one, arrays) if name in alive)
                held = held or not before
            elif kind is Waits.LIMIT:
                held = held or not explained(one, self._queue(one))
            elif kind not in (Waits.RESOURCES, Waits.LICENCES, Waits.ARRAY):
                held = True
        if isinstance(asked, str):
            self._trouble(job, asked)
            asked = Asked("", 1, exclusive=False)
        tasks = self._tasks.get(asked.tasks)
        if tasks is None:
            tasks = self._tasks[asked.tasks] = Tasks(min=asked.tasks)
        return {
            "id": job.id,
            "user": job.user or "nobody",
            "project": job.account or "default",
            "queue": self._queue(job),
            "priority": job.priority or 0,
            "submitted": job.submitted,
            "tasks": tasks,
            "resreq": asked.resreq,
            "exclusive": asked.exclusive,
            "held": held,
            "waits_for": before,
            "provision": True,
            "run_limit": _limit_of(job, self._partitions),
            "array": None,
            "allocator": None,
        }

    def _ask(self, group: list[JobFact]) -> Asked | str:
        """Return the requirement of a job, or why it cannot be told."""
        found: list[Asked] = []
        for job in group:
            shape = shape_of(job)
            known = self._asked.get(shape)
            if known is None:
                try:
                    known = asked_of(job, self._ground, exclusive=self._is_whole(job))
                except CannotTellError as error:
                    known = str(error)
                known = _sayable(known)
                self._asked[shape] = known
            if isinstance(known, str):
                return known
            found.append(known)
        if len(found) == 1:
            return found[0]
        try:
            return _sayable(together(found))
        except CannotTellError as error:
            return str(error)

    def _kind(self, job: JobFact) -> Waits:
        """Return what a job waits for; where Slurm has not looked at it again, its own fields say more than the word."""
        kind = waits_for(job.reason or "None")
        if job.priority == 0 or not job.states.isdisjoint(_HELD_STATES):
            return Waits.HELD
        if job.reason == "InvalidAccount" and not self._readings.settings.associations_hold:
            kind = Waits.RESOURCES  # 23.11 says so of jobs that it has not looked at yet
        if kind is Waits.UNKNOWN:
            if job.reason not in self._said:
                self._said.add(job.reason)
                self._trouble(
                    job, f"the reason {job.reason!r} is not known: such jobs are no demand"
                )
            return kind
        if kind in (Waits.RESOURCES, Waits.LICENCES, Waits.ARRAY):
            if job.dependency and "unfulfilled" in job.dependency:
                return Waits.DEPENDENCY
            if job.eligible is not None and job.eligible > self._readings.at:
                return Waits.TIME
            if job.reservation and self._active.isdisjoint(job.reservation.split(",")):
                return Waits.RESERVATION
            partitions = [self._partitions.get(name) for name in job.partitions]
            if partitions and all(one is not None and not one.is_up for one in partitions):
                return Waits.SITE
        return kind

    def _is_whole(self, job: JobFact) -> bool:
        return any(
            (known := self._partitions.get(name)) is not None and known.is_exclusive
            for name in job.partitions
        )

    def _trouble(self, job: JobFact, message: str) -> None:
        self._troubles.append(("job", Problem(message, job.id)))


def _sayable(asked: Asked | str) -> Asked | str:
    """Return what a job asks for if the language takes it: one odd job must not stop the session of all."""
    if isinstance(asked, str):
        return asked
    if asked.tasks > TASKS_MAX:
        return f"{asked.tasks} tasks are more than {TASKS_MAX}"
    try:
        parse(asked.resreq)
    except InputError as error:
        return f"{asked.resreq!r}: {error.problems[0]}"
    return asked


def _element(job: JobFact, index: int | None) -> ArrayElement | None:
    if index is None:
        return None
    return built(ArrayElement, {"id": str(job.array_id), "index": index, "limit": job.array_limit})


def _limit_of(job: JobFact, partitions: Mapping[str, PartitionFact]) -> timedelta | None:
    limit = job.time_limit
    if limit is None and job.partitions and (known := partitions.get(job.partitions[0])):
        limit = known.max_time
    return None if limit is None or limit > MINUTES_MAX else timedelta(minutes=limit)


def _first_of_arrays(
    jobs: Iterable[JobFact],
    elements: Mapping[int, Iterable[tuple[str, ArrayElement | None]]],
) -> dict[int, str]:
    """Return an element of each array that has not ended: who waits for the array waits for it."""
    found: dict[int, str] = {}
    for job in jobs:
        if job.array_id and (job.runs or job.is_waiting):
            names = [name for name, _ in elements.get(job.number, ())] or [job.id]
            found.setdefault(job.array_id, names[0])
    return found


def _waited(job: JobFact, arrays: Mapping[int, str]) -> Iterator[str]:
    """Yield the ids that a job depends on."""
    for kind, name in _WAITED.findall(job.dependency):
        if not name or kind == "after":
            continue
        number, _, index = name.partition("_")
        if index == "*" or (not index and int(number) in arrays):
            yield arrays.get(int(number), number)
        else:
            yield name
