"""Sessions one after the other: what a session works on is kept, and only what has changed is done again.

``Scheduler.run`` gives the bytes that ``run_session`` gives on the snapshot that all deltas so far have made. What is
kept follows each delta: the queue in its order, classes of jobs, free amounts of hosts, meters. A delta that changes
what all of that rests on (settings, queues, limits, groups, the names of shared resources) is rare, and makes everything
anew. Where nothing has changed that a session looks at, the last result is the result.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from xce.domain.cluster.kinds import HostKind
from xce.domain.cluster.limits import guarantees_of, meters_of
from xce.domain.cluster.state import Ground
from xce.domain.formats.building import built
from xce.domain.formats.delta import Delta, apply, is_empty, next_catalog
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import (
    ArrayElement,
    Host,
    PendingJob,
    Shared,
    Snapshot,
)
from xce.domain.scheduling.allocators import by_name
from xce.domain.scheduling.classes import JobClass
from xce.domain.scheduling.compile import (
    Compiled,
    both_warnings,
    not_joined,
    template_kinds,
    undeclared_warnings,
)
from xce.domain.scheduling.kept_hosts import KeptHosts, KeptMeters, is_alike
from xce.domain.scheduling.kept_queue import KeptQueue
from xce.domain.scheduling.kept_result import KeptResult
from xce.domain.scheduling.outcome import Outcome
from xce.domain.scheduling.plans import Allocator
from xce.domain.scheduling.session import run_compiled, run_session
from xce.domain.scheduling.usual import is_usual

#: Combinations of selections and users that one ground knows before it is time for a new one.
_SCOPES_MAX: Final = 4_000
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


class Scheduler:
    """Runs the sessions of one cluster, one after the other.

    Attributes:
        same: how many sessions had the result of the one before.
    """

    def __init__(self, snapshot: Snapshot, *, allocators: Iterable[Allocator] = ()) -> None:
        """Begin with a snapshot that contradicts itself nowhere.

        Raises:
            AllocatorError: see ``run_session``.
        """
        self._given = tuple(allocators)
        self._allocators = by_name(self._given)
        self.same = 0
        self._changes = 0
        self._load(snapshot)

    def _load(self, snapshot: Snapshot) -> None:
        """Make everything anew."""
        self._changes += 1
        self._whole: Snapshot | None = snapshot
        self._waiting: tuple[PendingJob, ...] | None = snapshot.pending
        #: The snapshot without the jobs that wait, of which there may be very many: no session looks at a list of them.
        self._rest = snapshot.model_copy(update={"pending": ()})
        self._hosts = {host.name: host for host in snapshot.hosts}
        self._shared = {pool.name: pool for pool in snapshot.shared}
        self._running = {job.id: job for job in snapshot.running}
        self._pending = {job.id: job for job in snapshot.pending}
        self._here = _Here(self._pending, self._running)
        self._arrays: dict[str, Counter[int]] = {}
        for job in snapshot.running:
            self._note_array(job.array, 1)
        for waiting in snapshot.pending:
            self._note_array(waiting.array, 1)
        guarantees = guarantees_of(snapshot)
        self._kept = KeptHosts(snapshot.hosts, snapshot.running)
        self._meters = KeptMeters(meters_of(snapshot), guarantees)
        for job in snapshot.running:
            self._meters.take(job)
        self._guarantees = guarantees
        self._kinds = template_kinds(snapshot.catalog)
        kinds: Iterable[HostKind] = (*self._kept.ordered.kinds, *self._kinds.values())
        self._queue = KeptQueue(snapshot, kinds, self._allocators)
        self._result = KeptResult(self._queue)
        self._both: set[str] = self._running.keys() & self._pending.keys()
        self._ground: Ground | None = None
        self._last: _Last | None = None

    @property
    def snapshot(self) -> Snapshot:
        """Return the one that all deltas so far have made; the jobs that wait are listed when somebody asks."""
        if self._whole is None:
            if self._waiting is None:
                self._waiting = tuple(self._pending.values())
            self._whole = self._rest.model_copy(update={"pending": self._waiting})
        return self._whole

    # going on

    def advance(self, delta: Delta) -> None:
        """Go on to the next snapshot.

        Raises:
            InputError: see ``apply``; then nothing has changed.
        """
        before = self._rest
        if not is_usual(
            before, delta, self._hosts, self._running, self._pending, self._kept.jobs_on
        ):
            self._load(apply(self.snapshot, delta))
            return
        self._whole = None
        if self._kept.ordered.available_until and delta.now != before.now:
            self._ground = self._last = None
        if is_empty(delta):
            self._rest = before.model_copy(update={"now": delta.now, "position": delta.position})
            return
        self._last = None
        self._changes += 1
        arrays = self._arrays_of(delta)
        limits = self._limits_of(arrays)
        self._change_running_and_hosts(delta)
        self._change_pending(delta)
        self._change_shared(delta.shared.put)
        self._rest = self._after(before, delta)
        if delta.pending.is_any:
            self._waiting = None
        if self._rest.catalog.templates is not before.catalog.templates:
            self._kinds = template_kinds(self._rest.catalog)
            self._queue.see_kinds(self._kinds.values())
        is_overgrown = self._meters.is_overgrown or self._queue.is_overgrown
        if is_overgrown or limits != self._limits_of(arrays):
            self._load(self.snapshot)

    def _after(self, before: Snapshot, delta: Delta) -> Snapshot:
        """Return the snapshot of what is kept now, without the jobs that wait."""
        return built(
            Snapshot,
            {
                "format": before.format,
                "now": delta.now,
                "position": delta.position,
                "hosts": tuple(self._hosts.values()) if delta.hosts.is_any else before.hosts,
                "shared": tuple(self._shared.values()) if delta.shared.put else before.shared,
                "queues": before.queues,
                "limits": before.limits,
                "quotas": before.quotas,
                "groups": before.groups,
                "running": tuple(self._running.values())
                if delta.running.is_any
                else before.running,
                "pending": (),
                "catalog": next_catalog(before.catalog, delta.catalog, []),
                "settings": before.settings,
            },
        )

    def _change_running_and_hosts(self, delta: Delta) -> None:
        """Take out and in what has changed; hosts that come, go or are others are all put in order anew."""
        running, hosts = delta.running, delta.hosts
        are_other = bool(hosts.removed) or any(
            host.name not in self._hosts or not is_alike(self._hosts[host.name], host)
            for host in hosts.put
        )
        again = [job.id for job in running.put if job.id in self._running]
        for name in dict.fromkeys((*running.removed, *again)):
            job = self._running[name]
            self._meters.give_back(job)
            self._note_array(job.array, -1)
            if not are_other:
                self._kept.give_back(job)
        for name in running.removed:
            del self._running[name]
        for name in hosts.removed:
            del self._hosts[name]
        for host in hosts.put:
            self._hosts[host.name] = host
            if not are_other:
                self._kept.replace(host)
        for job in running.put:
            self._running[job.id] = job
            self._meters.take(job)
            self._note_array(job.array, 1)
            if not are_other:
                self._kept.take(job)
        if are_other:
            self._kept = KeptHosts(self._hosts.values(), self._running.values())
            self._meters.forget_places()
            self._queue.see_kinds(self._kept.ordered.kinds)
            self._ground = None

    def _change_shared(self, pools: Iterable[Shared]) -> None:
        for pool in pools:
            before = self._shared[pool.name]
            self._shared[pool.name] = pool
            if pool.used_elsewhere is not None and before.used_elsewhere is not None:
                more = pool.total - pool.used_elsewhere - (before.total - before.used_elsewhere)
                self._meters.change_total(pool.name, more)

    def _change_pending(self, delta: Delta) -> None:
        for name in delta.pending.removed:
            self._note_array(self._pending.pop(name).array, -1)
            self._queue.remove(name)
        for job in delta.pending.put:
            if job.id in self._pending:
                self._note_array(self._pending[job.id].array, -1)
            self._pending[job.id] = job
            self._note_array(job.array, 1)
            self._queue.put(job)
        if delta.pending.is_any or delta.running.is_any:
            both: set[str] = set()
            if self._may_be_both(delta):
                both |= self._running.keys() & self._pending.keys()
            if both != self._both:
                self._both = both
                self._queue.forget_queue()

    def _may_be_both(self, delta: Delta) -> bool:
        return bool(self._both) or any(
            name in self._running and name in self._pending
            for name in (
                *(job.id for job in delta.pending.put),
                *(job.id for job in delta.running.put),
            )
        )

    def _note_array(self, element: ArrayElement | None, times: int) -> None:
        """Count how many elements of an array state which limit."""
        if element is not None and element.limit is not None:
            stated = self._arrays.setdefault(element.id, Counter())
            stated[element.limit] += times
            if not stated[element.limit]:
                del stated[element.limit]

    def _arrays_of(self, delta: Delta) -> set[str]:
        """Return the arrays of which a delta may change an element that states a limit."""
        elements = [job.array for job in delta.running.put]
        elements += [job.array for job in delta.pending.put]
        for name in (*delta.running.removed, *[job.id for job in delta.running.put]):
            if name in self._running:
                elements.append(self._running[name].array)
        for name in (*delta.pending.removed, *[job.id for job in delta.pending.put]):
            if name in self._pending:
                elements.append(self._pending[name].array)
        return {element.id for element in elements if element is not None}

    def _limits_of(self, arrays: Iterable[str]) -> dict[str, int | None]:
        """Return how many elements of arrays may run at once; None: no element says so."""
        return {name: min(self._arrays.get(name, ()), default=None) for name in arrays}

    # sessions

    def run(self, *, trace: bool = False) -> SessionResult:
        """Return the result of a session on the present snapshot.

        Raises:
            AllocatorError, InputError: see ``run_session``.
        """
        return self.outcome(trace=trace).result

    def outcome(self, *, trace: bool = False) -> Outcome:
        """Return what comes of a session on the present snapshot; its result is to be read before the next delta, or not at all.

        Raises:
            AllocatorError, InputError: see ``run_session``.
        """
        snapshot, last = self._rest, self._last
        if last is not None and last.is_of(snapshot.now, trace=trace):
            self.same += 1
            return last.outcome_at(snapshot.position)
        if not self._queue.is_readable:
            return Outcome.of(run_session(self.snapshot, trace=trace, allocators=self._given))
        if self._guarantees or self._both:
            outcome = Outcome.of(run_compiled(self._compiled(one_by_one=True), trace=trace))
        else:
            compiled = self._compiled(one_by_one=False)
            made = self._changes
            outcome = self._result.run(compiled, self._kept.all_free(), trace=trace)
            outcome = outcome.only_while(lambda: self._changes == made)
        self._last = _Last(outcome, snapshot, self._pending, self._kept.maybe_idle, trace=trace)
        return outcome

    def _compiled(self, *, one_by_one: bool) -> Compiled:
        """Return what a session works on, with the queue job by job or not at all."""
        snapshot, warnings = self._rest, list[str]()
        ground = self._ground
        if ground is None or len(ground.scopes) > _SCOPES_MAX:
            ground = self._ground = Ground(
                self._kept.ordered, self._meters.meters, self._guarantees, snapshot.now
            )
            self._queue.forget_ground()
        ground.now = snapshot.now
        queue: Sequence[tuple[PendingJob, JobClass]] = ()
        if one_by_one:
            queue = self._queue.queue(ground, self._both)
        else:
            self._queue.make_groups(ground)
        core = self._kept.state(
            ground,
            self._meters.placed_use(self._kept.ordered, self._running),
            self._meters.granted(),
            warnings,
        )
        in_flight = not_joined(snapshot.catalog.in_flight.hosts, self._kept.instances, warnings)
        warnings += undeclared_warnings(self._queue.undeclared)
        warnings += both_warnings(self._both)
        return Compiled.of(
            snapshot,
            core,
            queue,
            in_flight=in_flight,
            template_kinds=self._kinds,
            ids=self._here,
            maybe_idle=self._kept.maybe_idle.values(),
            warnings=warnings,
        )


class _Here:
    """Ids of all jobs that are still here."""

    __slots__ = ("_pending", "_running")

    def __init__(self, pending: Mapping[str, object], running: Mapping[str, object]) -> None:
        self._pending = pending
        self._running = running

    def __contains__(self, name: object) -> bool:
        return name in self._pending or name in self._running


class _Last:
    """The last result, and until when it stays the same if nothing but time goes on."""

    def __init__(
        self,
        outcome: Outcome,
        snapshot: Snapshot,
        pending: Mapping[str, PendingJob],
        idle: Mapping[str, Host],
        *,
        trace: bool,
    ) -> None:
        self._first = self._outcome = outcome
        self._position = snapshot.position
        self._snapshot = snapshot
        self._pending = pending
        self._idle = idle
        self._trace = trace
        self._until: datetime | None = None

    def outcome_at(self, position: int) -> Outcome:
        """Return what comes of a session at a position of the log, the same while the position is."""
        if position != self._position:
            self._outcome, self._position = self._first.at(position), position
        return self._outcome

    def is_of(self, now: datetime, *, trace: bool) -> bool:
        """Return whether a session at a time has the same result."""
        if trace is not self._trace or now < self._snapshot.now:
            return False
        if self._until is None:
            self._until = min(self._times(), default=_NEVER)
        return now < self._until

    def _times(self) -> Iterator[datetime]:
        """Yield the times after the session at which time alone changes what a session finds."""
        snapshot = self._snapshot
        now, settings = snapshot.now, snapshot.settings
        for template in snapshot.catalog.templates:
            if template.paused_until is not None and template.paused_until > now:
                yield template.paused_until
        for host in self._idle.values():
            if host.idle_since is not None and host.idle_since + settings.idle_host_after > now:
                yield host.idle_since + settings.idle_host_after
        waits = {
            queue.name: [timedelta(minutes=minutes) for _, minutes in queue.demand_threshold]
            for queue in snapshot.queues
            if queue.demand_threshold
        }
        if waits:
            for job in self._pending.values():
                for wait in waits.get(job.queue, ()):
                    if job.submitted is not None and job.submitted + wait > now:
                        yield job.submitted + wait
