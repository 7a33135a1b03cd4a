"""From a snapshot to what a session works on: classes of jobs, meters, and the state at its start."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from xce.domain.cluster.hosts import HostList, host_list, key_of_name
from xce.domain.cluster.kinds import HostKind, kind_of
from xce.domain.cluster.limits import Meters, Share, guarantees_of, meters_of
from xce.domain.cluster.requests import SelectionTypeError, Wanted, reader_of
from xce.domain.cluster.state import Ground, State
from xce.domain.errors import InputError, Problem
from xce.domain.formats.snapshot import InFlightHost, PendingJob, Snapshot
from xce.domain.scheduling.allocators import NONE_INSTALLED, Allocators, unknown
from xce.domain.scheduling.classes import JobClass

_ClassKey = tuple[Wanted, str, str, str, str | None, int, int, bool, timedelta | None, str | None]


class Compiled:
    """A snapshot, ready for a session.

    Attributes:
        core: the state at the start.
        classes: the class of each pending job, by its place in the snapshot; None for one that runs already.
        in_flight: hosts in flight in their order, those that have joined left out.
        template_kinds: kind of the hosts of each template.
        ids: ids of all jobs that are still here.
        warnings: what is odd about the snapshot.
    """

    __slots__ = ("classes", "core", "ids", "in_flight", "snapshot", "template_kinds", "warnings")

    def __init__(self, snapshot: Snapshot, allocators: Allocators = NONE_INSTALLED) -> None:
        self.snapshot = snapshot
        self.warnings: list[str] = []
        hosts = host_list(snapshot.hosts)
        meters = meters_of(snapshot)
        ground = Ground(hosts, meters, guarantees_of(snapshot), snapshot.now)
        self.template_kinds: dict[str, HostKind] = {
            template.id: kind_of(template.attributes, template.provides)
            for template in snapshot.catalog.templates
        }
        running_ids = {job.id for job in snapshot.running}
        self.ids = running_ids.union([job.id for job in snapshot.pending])
        self.classes = _classes(
            snapshot, ground, running_ids, self.template_kinds.values(), allocators
        )
        self._count_running(meters, hosts)
        self.core = State(ground)
        self._occupy(hosts)
        self.in_flight = self._not_joined()
        declared = {queue.name for queue in snapshot.queues}
        undeclared = {job.queue for job in snapshot.pending if job.queue not in declared}
        self.warnings += [
            f"queue {name!r} is not declared; its priority is 0"
            for name in sorted(undeclared, key=key_of_name)
        ]
        both = [job.id for job in snapshot.pending if job.id in running_ids]
        self.warnings += [
            f"job {name!r} is running and pending; it runs"
            for name in sorted(both, key=key_of_name)
        ]

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
        self.warnings += [
            f"host {hosts.names[place]!r}: its running jobs use more than it has"
            for place in sorted(overused)
        ]

    def _not_joined(self) -> list[InFlightHost]:
        in_flight = self.snapshot.catalog.in_flight.hosts
        if not in_flight:
            return []
        in_order = sorted(in_flight, key=lambda host: key_of_name(host.id))
        joined = {host.instance for host in self.snapshot.hosts if host.instance is not None}
        self.warnings += [
            f"host in flight {host.id!r} has joined; it is not counted twice"
            for host in in_order
            if host.id in joined
        ]
        return [host for host in in_order if host.id not in joined]


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
    problems: list[Problem] = []
    known: dict[_ClassKey, JobClass] = {}
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
        key = (
            wanted, job.user, job.project, job.queue, None if job.array is None else job.array.id,
            tasks.min, most, job.exclusive, job.run_limit, job.allocator,
        )  # fmt: skip
        found = known.get(key)
        if found is None:
            found = known[key] = JobClass(
                ground,
                wanted,
                user=job.user,
                project=job.project,
                queue=job.queue,
                array=None if job.array is None else job.array.id,
                least=tasks.min,
                most=most,
                exclusive=job.exclusive,
                run_limit=job.run_limit,
                allocator=None if job.allocator is None else allocators[job.allocator],
            )
        classes.append(found)
    if problems:
        raise InputError("snapshot", problems)
    return classes


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
