"""From a snapshot to what a session works on: classes of jobs, meters, and the state at its start."""

from collections.abc import Collection, Container, Iterable, Sequence
from datetime import timedelta
from typing import Self

from xce.domain.cluster.hosts import HostList, host_list, key_of_name
from xce.domain.cluster.kinds import HostKind, kind_of
from xce.domain.cluster.limits import Meters, Share, guarantees_of, meters_of
from xce.domain.cluster.requests import SelectionTypeError, Wanted, reader_of
from xce.domain.cluster.state import Ground, State
from xce.domain.errors import InputError, Problem
from xce.domain.formats.snapshot import Catalog, Host, InFlightHost, PendingJob, Snapshot
from xce.domain.scheduling.allocators import NONE_INSTALLED, Allocators, unknown
from xce.domain.scheduling.classes import JobClass
from xce.domain.scheduling.picker import Picker, in_job_order

#: What jobs of one class have in common.
ClassKey = tuple[Wanted, str, str, str, str | None, int, int, bool, timedelta | None, str | None]


class Compiled:
    """A snapshot, ready for a session.

    Attributes:
        core: the state at the start.
        queue: the pending jobs in the order in which they are tried, each with its class; those that run already are left out.
        in_flight: hosts in flight in their order, those that have joined left out.
        template_kinds: kind of the hosts of each template.
        ids: ids of all jobs that are still here.
        maybe_idle: hosts among which are all that a provider created and that have been idle for any time.
        warnings: what is odd about the snapshot.
    """

    __slots__ = (
        "core", "ids", "in_flight", "maybe_idle", "queue", "snapshot", "template_kinds", "warnings",
    )  # fmt: skip

    core: State
    queue: Sequence[tuple[PendingJob, JobClass]]

    def __init__(
        self,
        snapshot: Snapshot,
        allocators: Allocators = NONE_INSTALLED,
        picker: Picker = in_job_order,
    ) -> None:
        self.snapshot = snapshot
        self.warnings: list[str] = []
        hosts = host_list(snapshot.hosts)
        meters = meters_of(snapshot)
        ground = Ground(hosts, meters, guarantees_of(snapshot), snapshot.now)
        self.template_kinds = template_kinds(snapshot.catalog)
        running_ids = {job.id for job in snapshot.running}
        self.ids: Container[str] = running_ids.union([job.id for job in snapshot.pending])
        self.maybe_idle: Iterable[Host] = snapshot.hosts
        classes = _classes(snapshot, ground, running_ids, self.template_kinds.values(), allocators)
        pending = snapshot.pending
        self.queue = [
            (pending[place], job_class)
            for place in picker(pending, snapshot.queues)
            if (job_class := classes[place]) is not None
        ]
        self._count_running(meters, hosts)
        self.core = State(ground)
        self._occupy(hosts)
        self.in_flight = self._not_joined()
        declared = {queue.name for queue in snapshot.queues}
        undeclared = {job.queue for job in snapshot.pending if job.queue not in declared}
        self.warnings += undeclared_warnings(undeclared)
        self.warnings += both_warnings(job.id for job in pending if job.id in running_ids)

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        core: State,
        queue: Sequence[tuple[PendingJob, JobClass]],
        *,
        in_flight: list[InFlightHost],
        template_kinds: dict[str, HostKind],
        ids: Container[str],
        maybe_idle: Iterable[Host],
        warnings: list[str],
    ) -> Self:
        """Return what was made ready elsewhere; see the attributes."""
        made = cls.__new__(cls)
        made.snapshot, made.core, made.queue, made.in_flight = snapshot, core, queue, in_flight
        made.template_kinds, made.ids = template_kinds, ids
        made.maybe_idle, made.warnings = maybe_idle, warnings
        return made

    def _count_running(self, meters: Meters, hosts: HostList) -> None:
        """Count what runs for shared resources and limits."""
        has_rules = bool(meters.rules)
        for job in self.snapshot.running:
            if not has_rules:
                if job.shared:
                    meters.count_running((), (), job.shared, hosts.names)
                continue
            array = None if job.array is None else job.array.id
            counted = meters.of_job(job.user, job.project, job.queue, array)
            if counted or job.shared:
                shares: list[Share] = [(hosts.index[use.name], use.uses) for use in job.hosts]
                meters.count_running(counted, shares, job.shared, hosts.names)

    def _occupy(self, hosts: HostList) -> None:
        """Take what runs from the hosts."""
        core, index = self.core, hosts.index
        free, busy = core.free, core.busy
        for job in self.snapshot.running:
            for use in job.hosts:
                place = index[use.name]
                busy.add(place)
                for name, amount in use.uses.items():
                    if name in free:
                        free[name][place] -= amount
                    else:
                        core.column(name)[place] -= amount
            if job.exclusive:
                core.shut.update([index[use.name] for use in job.hosts])
            if core.ground.guarantees:
                shares = [(index[use.name], use.uses) for use in job.hosts]
                core.use_by_group(job.user, shares, job.shared)
        overused: set[int] = set()
        for column in core.free.values():
            if column and min(column) < 0:
                for place, amount in enumerate(column):
                    if amount < 0:
                        column[place] = 0
                        overused.add(place)
        self.warnings += overuse_warnings(hosts, overused)

    def _not_joined(self) -> list[InFlightHost]:
        in_flight = self.snapshot.catalog.in_flight.hosts
        if not in_flight:
            return []
        joined = {host.instance for host in self.snapshot.hosts if host.instance is not None}
        return not_joined(in_flight, joined, self.warnings)


def template_kinds(catalog: Catalog) -> dict[str, HostKind]:
    """Return the kind of the hosts of each template."""
    return {
        template.id: kind_of(template.attributes, template.provides)
        for template in catalog.templates
    }


def not_joined(
    in_flight: Iterable[InFlightHost], joined: Collection[str], warnings: list[str]
) -> list[InFlightHost]:
    """Return the hosts in flight in their order without those that have joined, of which it warns."""
    in_order = sorted(in_flight, key=lambda host: key_of_name(host.id))
    warnings += [
        f"host in flight {host.id!r} has joined; it is not counted twice"
        for host in in_order
        if host.id in joined
    ]
    return [host for host in in_order if host.id not in joined]


def overuse_warnings(hosts: HostList, places: Iterable[int]) -> list[str]:
    """Warn of hosts of which more is used than there is."""
    return [
        f"host {hosts.names[place]!r}: its running jobs use more than it has"
        for place in sorted(places)
    ]


def undeclared_warnings(queues: Iterable[str]) -> list[str]:
    """Warn of queues that pending jobs name and nobody declares."""
    return [
        f"queue {name!r} is not declared; its priority is 0"
        for name in sorted(queues, key=key_of_name)
    ]


def both_warnings(ids: Iterable[str]) -> list[str]:
    """Warn of jobs that are running and pending."""
    return [
        f"job {name!r} is running and pending; it runs" for name in sorted(ids, key=key_of_name)
    ]


def _classes(
    snapshot: Snapshot,
    ground: Ground,
    running_ids: set[str],
    template_kinds: Iterable[HostKind],
    allocators: Allocators,
) -> list[JobClass | None]:
    """Return the class of each pending job.

    Raises:
        InputError: requirements that cannot be read, allocators that are not there; every problem with its path.
    """
    reader = reader_of(snapshot.settings.units, ground.meters.shared)
    likeness = Likeness(ground)
    problems: list[Problem] = []
    known: dict[ClassKey, JobClass] = {}
    checked: set[Wanted] = set()
    kinds: list[HostKind] = []
    classes: list[JobClass | None] = []
    for place, job in enumerate(snapshot.pending):
        try:
            wanted = reader.read(job.resreq)
            if wanted not in checked:
                checked.add(wanted)
                if wanted.has_selection:
                    kinds = kinds or list(dict.fromkeys((*ground.hosts.kinds, *template_kinds)))
                    wanted.check_kinds(kinds)
        except SelectionTypeError as error:
            problems.append(_at(place, error.message, error.column))
            continue
        except InputError as error:
            problems += [_at(place, problem.message, problem.column) for problem in error.problems]
            continue
        tasks = job.tasks
        most = tasks.min if tasks.max is None else tasks.max
        if wanted.compounds and set(wanted.compounds) != {tasks.min, most}:
            problems.append(_at(place, _wrong_counts(wanted.compounds, tasks.min, most), None))
            continue
        if job.allocator is not None and (why := unknown(job.allocator, allocators)):
            problems.append(Problem(why, f"pending[{place}].allocator"))
            continue
        if job.id in running_ids:
            classes.append(None)
            continue
        key = likeness.key(job, wanted)
        found = known.get(key)
        if found is None:
            found = known[key] = class_of(ground, key, allocators)
        classes.append(found)
    if problems:
        raise InputError("snapshot", problems)
    return classes


def class_key(job: PendingJob, wanted: Wanted) -> ClassKey:
    """Return what a job has in common with all jobs of its class."""
    tasks = job.tasks
    return (
        wanted, job.user, job.project, job.queue, None if job.array is None else job.array.id,
        tasks.min, tasks.min if tasks.max is None else tasks.max, job.exclusive, job.run_limit, job.allocator,
    )  # fmt: skip


class Likeness:
    """What of a class key decides anything on a ground.

    Without limits and guarantees nobody asks whose a job is, as far as no host is somebody's own. Jobs that take
    shared resources stay apart all the same: when one fails, what is said of it depends on what is left just then.
    """

    __slots__ = ("has_limits", "is_timed", "owners")

    def __init__(self, ground: Ground) -> None:
        self.has_limits = bool(ground.meters.rules or ground.guarantees)
        self.owners = ground.hosts.owners
        self.is_timed = bool(ground.hosts.available_until)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Likeness):
            return NotImplemented
        return (self.has_limits, self.owners, self.is_timed) == (
            other.has_limits, other.owners, other.is_timed,
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.has_limits, self.owners, self.is_timed))

    def key(self, job: PendingJob, wanted: Wanted) -> ClassKey:
        """Return the key of a job without what decides nothing."""
        if self.has_limits or self.owners or self.is_timed or wanted.takes_shared:
            return self.of(class_key(job, wanted))
        tasks = job.tasks
        most = tasks.min if tasks.max is None else tasks.max
        return (wanted, "", "", "", None, tasks.min, most, job.exclusive, None, job.allocator)

    def of(self, key: ClassKey) -> ClassKey:
        """Return the key without what decides nothing."""
        if self.has_limits or key[0].takes_shared:
            return key
        wanted, user, _, _, _, least, most, exclusive, run_limit, allocator = key
        return (
            wanted, user if user in self.owners else "", "", "", None,
            least, most, exclusive, run_limit if self.is_timed else None, allocator,
        )  # fmt: skip


def class_of(ground: Ground, key: ClassKey, allocators: Allocators) -> JobClass:
    """Return a class of jobs on a ground."""
    wanted, user, project, queue, array, least, most, exclusive, run_limit, allocator = key
    return JobClass(
        ground,
        wanted,
        user=user,
        project=project,
        queue=queue,
        array=array,
        least=least,
        most=most,
        exclusive=exclusive,
        run_limit=run_limit,
        allocator=None if allocator is None else allocators[allocator],
    )


def _at(place: int, message: str, column: int | None) -> Problem:
    return Problem(message, f"pending[{place}].resreq", column=column or None)


def _wrong_counts(counts: Sequence[int], least: int, most: int) -> str:
    wrong = next(count for count in counts if not least == count == most)
    wanted = str(least) if least == most else f"a fixed number of tasks, found {least} to {most}"
    return f"the counts of the parts add up to {wrong}; wanted the tasks of the job, {wanted}"


def waiting_classes(
    core: State, jobs: Iterable[tuple[PendingJob, JobClass]]
) -> list[dict[object, int]]:
    """Return, by guarantee, the classes of a group's jobs with their number."""
    waiting: list[dict[object, int]] = [{} for _ in core.ground.guarantees]
    for _, job in jobs:
        for number, guarantee in enumerate(core.ground.guarantees):
            if job.user in guarantee.members:
                waiting[number][job] = waiting[number].get(job, 0) + 1
    return waiting
