"""The virtual-time driver: jobs come and end, sessions decide, the engine acts, simulated providers answer.

It only says when things happen. What is true is in the log; what a session sees of totals and supply comes from the
projections of that log; what is decided comes from ``run_session`` and ``decide``; what it leads to from the engine.
A session is handed ``PendingJob`` values only: true run times stay in here.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from xce.domain.engine.calls import Call, ListCall, ReturnStatusCall, StatusCall, Step
from xce.domain.engine.commands import (
    Command,
    DeclareShared,
    DescribeProvider,
    RecordJoin,
    ReportBookings,
    TakeLease,
)
from xce.domain.formats.config import SimulationConfig
from xce.domain.formats.delta import (
    NO_CATALOG_CHANGES,
    Changes,
    Delta,
    catalog_changes,
    going_on,
)
from xce.domain.formats.policy import Decision, DecisionKind, Inventory, PolicyInput
from xce.domain.formats.session_result import Allocation, SessionResult
from xce.domain.formats.snapshot import Catalog, Host, HostState, Shared, Snapshot
from xce.domain.ports import EventLog
from xce.domain.provisioning.drain import AtDeadline, Drain
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance, InstanceState
from xce.domain.provisioning.provider import Provider
from xce.domain.provisioning.request import OPEN, Request, RequestState
from xce.domain.scheduling.kept import Scheduler
from xce.domain.sharing.elastic_resource import ElasticResource
from xce.domain.sharing.meter import Meter, Totals
from xce.domain.sharing.wants import terms_of, whole_wants
from xce.projections.all import Projections
from xce.replay.agenda import Agenda, CountedIds
from xce.replay.cluster import SimulatedCluster
from xce.replay.happenings import (
    Act,
    Arrival,
    Change,
    CheckOut,
    End,
    Happening,
    Listing,
    Observe,
    Poll,
    StopWatcher,
    Wake,
    Watcher,
)
from xce.replay.licence_servers import LicenceServer
from xce.replay.providers import SimulatedProvider
from xce.replay.shell import BY, Crashed, CrashPoint, Shell, soon
from xce.replay.workloads.workload import Workload, WorkloadJob

__all__ = ["BY", "Watcher", "World"]

#: The lease outlives any simulation: there is nobody to take over.
LEASE_TERM: Final = timedelta(days=3650)
_NO_AMOUNTS: Final = Changes[Shared]()
_NOTHING: Final = Inventory()
#: What brings waiting jobs nearer, and, when none waits, the end. All other events may be attempts that fail for ever.
_COMING: Final = (Instance.Joined, ElasticResource.Borrowed)
_GOING: Final = (Instance.Returned, Instance.Lost, Grant.ReturnConfirmed, Grant.Lost)


class World:
    """One simulation, from the first submission until nothing is left to do."""

    def __init__(
        self,
        config: SimulationConfig,
        workload: Workload,
        log: EventLog,
        providers: dict[str, SimulatedProvider],
        watchers: Iterable[Watcher] = (),
        servers: Iterable[LicenceServer] = (),
    ) -> None:
        self.config = config
        self.workload = workload
        self.log = log
        self.providers = providers
        self.cluster = SimulatedCluster(config.cluster.all_hosts())
        self.now = workload.start
        self._settings = config.policy.settings()
        self._rated = any(budget.max_asked is not None for budget in config.policy.budgets)
        self._watchers = tuple(watchers)
        self._ids = CountedIds()
        self._up_at: datetime | None = None
        self._until: datetime | None = None
        self.down_for = timedelta(0)
        self._servers = {server.name: server for server in servers}
        self._observed_until: dict[str, datetime] = {}
        #: What the last session saw occupied, and the limit, of each shared resource that a server serves.
        self._seen_use: dict[str, tuple[int, int]] = {}
        self._attempts: dict[str, int] = {}
        self._slipping: list[tuple[str | None, WorkloadJob]] = []
        self._after_each: list[Callable[[datetime | None], None]] = []
        self.shell = self._new_shell()
        self._agenda = Agenda[Happening]()
        self._jobs = {job.id: job for job in workload.jobs}
        self._meters = {pool.name: Meter(pool) for pool in config.cluster.shared}
        self._last_session: datetime | None = None
        self._next_wake: datetime | None = None
        self._next_poll: datetime | None = None
        self._next_listing: datetime | None = None
        self._next_change: dict[str, datetime] = {}
        #: When a job came, started or ended, or supply came or went; and how many jobs are still to come or to end.
        self._last_progress = workload.start
        self._to_come = 0
        self._scheduler = Scheduler(self._first_snapshot())
        self._seen_catalog = Catalog()
        self.sessions = 0
        self.ended = 0

    @property
    def projections(self) -> Projections:
        """What the log says, folded by the process that lives now."""
        return self.shell.projections

    @property
    def down(self) -> bool:
        """Whether the process has ended and is not started again."""
        return self._up_at is not None

    def _new_shell(self) -> Shell:
        return Shell(self.config, self.log, self.providers, self._ids, self, self.config.lifecycle)

    # --------------------------------------------------------------------- run
    def at(self, offset: timedelta, do: Callable[[], None]) -> None:
        """Have something done at a time after the workload's second 0, before what happens by itself; to be said before the run."""
        self._agenda.put(self.workload.start + offset, Act(do))

    def after_each(self, do: Callable[[datetime | None], None]) -> None:
        """Have something done whenever everything of one time has happened; it is told the next time, None at the end."""
        self._after_each.append(do)

    def run(
        self,
        progress: Callable[[int], None] = lambda ended: None,
        until: datetime | None = None,
    ) -> None:
        """Run to the end, or ``until`` then; ``progress`` is told the number of jobs that have ended, now and then."""
        for job in self.workload.jobs:
            self._agenda.put(self.workload.start + timedelta(seconds=job.submit), Arrival(job))
        self._until = until
        self._to_come = len(self.workload.jobs)
        self.now = self._agenda.next_time or self.now
        self._last_progress = self.now
        self._set_up()
        while (at := self._agenda.next_time) is not None:
            if until is not None and at > until:
                self.now = until
                break
            happenings = self._agenda.take_until(at)
            if self._is_stuck(at):
                break
            self.now = at
            self._happen(happenings)
            if (following := self._agenda.next_time) != at:
                for do in self._after_each:
                    do(following)
            progress(self.ended)
        else:
            if until is not None:
                self.now = max(self.now, until)

    def _is_stuck(self, at: datetime) -> bool:
        """Return whether there have been only failing attempts for too long, and nothing else is to come."""
        if self._to_come or self._next_change:
            return False
        return at - self._last_progress > self.config.driver.stall_limit

    def _set_up(self) -> None:
        commands: list[Command] = []
        for provider in self.config.providers:
            commands.append(DescribeProvider(provider.description()))
            commands.append(TakeLease(provider.name, "sim", LEASE_TERM))
        for pool in self.config.cluster.shared:
            commands.append(
                DeclareShared(
                    pool.name,
                    pool.owned,
                    pool.provider,
                    pool.max_borrow,
                    pool.step,
                    pool.idle_return_after,
                    pool.min_hold,
                )
            )
        self.shell.commit(Step((command,)) for command in commands)
        for name, server in self._servers.items():
            self._observe_at(name, self.now + server.every)
        self._list_soon()

    def _happen(self, happenings: list[Happening]) -> None:
        session_due = False
        for happening in happenings:
            match happening:
                case Arrival(job=job):
                    self.cluster.submit(job.pending(self.workload.start))
                    self._to_come -= 1
                    self._last_progress = self.now
                    self._wake_soon()
                case End():
                    self._end(happening)
                case CheckOut():
                    self._check_out(happening)
                case Observe(server=name):
                    if self._observed_until.get(name) == self.now:
                        del self._observed_until[name]
                        self._observe(name)
                case Act(do=do):
                    self._guarded(do)
                case Change(provider=name):
                    if self._next_change.get(name) == self.now:
                        del self._next_change[name]
                    self._bury(name)
                    self._record_joins()
                    self._poll_soon()
                    self._watch_provider(name)
                case Poll():
                    if self._next_poll == self.now:
                        self._next_poll = None
                        self._guarded(self._poll)
                case Listing():
                    if self._next_listing == self.now:
                        self._next_listing = None
                        self._guarded(self._list)
                case Wake():
                    if self._next_wake == self.now:
                        self._next_wake = None
                        session_due = True
        if session_due or self._next_wake == self.now:
            self._next_wake = None
            self._guarded(self._session)

    def _guarded(self, do: Callable[[], None]) -> None:
        """Do something that the process may end in."""
        try:
            do()
        except Crashed:
            self.go_down(self.down_for)

    # ---------------------------------------------------------------- sessions
    def _session(self) -> None:
        if self._up_at is not None:
            self._wake_at(self._up_at)
            return
        self._last_session = self.now
        self.sessions += 1
        self._scheduler.advance(self._delta())
        snapshot = self._scheduler.snapshot
        result = self._scheduler.run()
        for allocation in result.allocations:
            self._start(allocation)
        for watcher in self._watchers:
            watcher.session(snapshot, result)
        wants = whole_wants(snapshot, result)
        self._note_needs(wants)
        inputs = PolicyInput.model_construct(
            format="xce.policy/1",
            now=self.now,
            position=snapshot.position,
            computed_at=self.now,
            demand=result.demand,
            idle=result.idle,
            providers=self.projections.catalog.descriptions(),
            inventory=self.projections.inventory.view(),
            budgets=self.config.policy.budgets,
            pauses=self.projections.catalog.pauses(self.now),
            asked=self.projections.asks.view(self.now) if self._rated else (),
            failures=self.projections.failures.view(),
            shared=tuple(
                terms_of(
                    meter,
                    self._totals(name),
                    self.now,
                    in_flight=self.projections.totals.of(name).in_flight,
                    wants=wants,
                )
                for name, meter in self._meters.items()
            ),
            settings=self._settings
            if not self.projections.reasons.site.frozen
            else self._settings.model_copy(update={"freeze": True}),
        )
        decisions = self.shell.round(inputs)
        self._plan_next_session(result, decisions)

    def _first_snapshot(self) -> Snapshot:
        cluster = self.config.cluster
        return Snapshot.model_construct(
            format="xce.snapshot/1",
            now=self.now,
            position=self.projections.position,
            hosts=self.cluster.hosts(),
            shared=tuple(
                # In a new log nothing is declared yet.
                Shared.model_construct(
                    name=pool.name,
                    total=pool.owned,
                    used_elsewhere=0,
                    owned=pool.owned,
                    borrowed=0,
                    peak_need=None,
                )
                if not self.projections.position
                else self._shared(pool.name, self._meters[pool.name])
                for pool in cluster.shared
            ),
            queues=cluster.queues,
            limits=cluster.limits,
            quotas=cluster.quotas,
            groups=cluster.groups,
            running=self.cluster.running(),
            pending=self.cluster.pending(),
            catalog=Catalog(),
            settings=self.config.session,
        )

    def _delta(self) -> Delta:
        """Return what is different from the last session: totals and supply by the projections, the rest by the cluster."""
        before = self._scheduler.snapshot
        hosts, pending, running = self.cluster.taken_changes()
        shared = [self._shared(name, meter) for name, meter in self._meters.items()]
        put = [now for now, then in zip(shared, before.shared, strict=True) if now != then]
        catalog = self.projections.catalog.view(self.now)
        supply = NO_CATALOG_CHANGES
        if catalog is not self._seen_catalog:
            supply = catalog_changes(before.catalog, catalog)
            self._seen_catalog = catalog
        return going_on(
            before,
            now=self.now,
            position=self.projections.position,
            hosts=hosts,
            shared=Changes[Shared](put=tuple(put)) if put else _NO_AMOUNTS,
            running=running,
            pending=pending,
            catalog=supply,
        )

    def _shared(self, name: str, meter: Meter) -> Shared:
        totals = self._totals(name)
        reading = meter.read(totals, self.now)
        if self._servers:
            self._seen_use[name] = reading.occupied, reading.limit
        return Shared.model_construct(
            name=name,
            total=totals.total,
            used_elsewhere=reading.used_elsewhere,
            owned=totals.owned,
            borrowed=totals.borrowed,
            peak_need=meter.peak(self.now),
        )

    def _totals(self, name: str) -> Totals:
        known = self.projections.totals.of(name)
        return Totals(known.owned, known.borrowed, known.returning)

    def _note_needs(self, wants: Mapping[str, int]) -> None:
        occupied: dict[str, int | None] = {}
        for name, meter in self._meters.items():
            totals = self._totals(name)
            meter.note(wants.get(name, 0), totals, self.now)
            occupied[name] = meter.read(totals, self.now).occupied
        self.shell.handle(ReportBookings(occupied))

    # ------------------------------------------------------------------ engine
    def _poll(self) -> None:
        if self._up_at is not None:
            self._poll_at(self._up_at)
            return
        self.shell.poll()
        self._record_joins()
        view = self.projections.inventory.view()
        for entry in view.instances:
            due: datetime | None = None
            match entry.state:
                case InstanceState.STARTING:
                    due = entry.granted_at + self._settings.join_limit
                case InstanceState.NEVER_JOINED:
                    due = entry.hold_until or self.now
                case InstanceState.DRAINING:
                    due = self.now
                case _:
                    pass
            if due is not None:
                self._poll_at(max(soon(self.now), due))
        for request in view.requests:
            if request.state in OPEN and request.deadline is not None:
                self._wake_at(request.deadline)

    def _list(self) -> None:
        if self._up_at is None:
            for name, provider in self.providers.items():
                if provider.description.capabilities.listing:
                    self.shell.carry_out(self.shell.list_provider(name))
        if self._goes_on():
            self._list_soon()

    def called(self, call: Call) -> None:
        """See ``Outside.called``."""
        self._watch_provider(call.provider)
        if not isinstance(call, (StatusCall, ReturnStatusCall)):
            self._poll_soon()

    def unanswered(self, call: Call | ListCall) -> None:
        """See ``Outside.unanswered``: it is tried again, but not at once."""
        self._watch_provider(call.provider)
        self._poll_at(soon(self.now))

    def look(self, instances: Iterable[str]) -> dict[str, bool]:
        """See ``Outside.look``."""
        return {instance: self.cluster.has_job(instance) for instance in instances}

    def jobs_on(self, host: str) -> tuple[str, ...]:
        """See ``Outside.jobs_on``."""
        return self.cluster.jobs_on(host)

    def follow(self, event: object) -> None:
        """Do in the cluster what an event says of its hosts; a change of supply is a reason for a session."""
        if isinstance(event, _COMING if self.cluster.pending_count else _GOING):
            self._last_progress = self.now
        match event:
            case Instance.DrainStarted(originator_id=aggregate):
                self._slip_in(_name(aggregate))
                self.cluster.set_state(_name(aggregate), HostState.DRAINING)
            case Instance.Reopened(originator_id=aggregate):
                self.cluster.set_state(_name(aggregate), HostState.OPEN)
                self._wake_soon()
            case (
                Instance.Returned(originator_id=aggregate) | Instance.Lost(originator_id=aggregate)
            ):
                self.cluster.remove(_name(aggregate))
                self._wake_soon()
            case Instance.JoinMissed():
                self._wake_soon()
                self._poll_soon()
            case Request.Closed(outcome=outcome) if outcome is not RequestState.COMPLETE:
                self._wake_soon()
            case Request.MachineFailed() | Request.FellShort():
                self._wake_soon()
            case Instance.ReturnRefused() | Grant.ReturnRefused():
                self._poll_at(soon(self.now))
                self._wake_at(self.now + self.config.driver.review_interval)
            case Drain.Event():
                self._follow_drain(event)
            case Provider.Paused() | Provider.Resumed():
                self._wake_soon()
            case _:
                pass

    def _follow_drain(self, event: Drain.Event) -> None:
        host = _name(event.originator_id)
        match event:
            case Drain.Asked(instance=None):
                self.cluster.set_host_state(host, HostState.DRAINING)
                self._poll_soon()
            case Drain.Asked(deadline=deadline):
                self._poll_soon()
                if deadline is not None:
                    self._poll_at(deadline)
            case Drain.DeadlinePassed(jobs=jobs, at_deadline=AtDeadline.REQUEUE):
                for job in jobs:
                    self.stop_job(job)
                self._poll_soon()
            case Drain.Cancelled() | Drain.SlippedIn() if self.cluster.is_own(host):
                self.cluster.set_host_state(host, HostState.OPEN)
                self._wake_soon()
            case _:
                pass

    def _record_joins(self) -> None:
        """Record the joins whose instances are known; the others wait for the next poll."""
        if self._up_at is not None:
            return
        for join in self.shell.take_joins():
            self.cluster.join(join.instance, _host_of(join, self.now))
            self._wake_soon()

    # -------------------------------------------------------------------- jobs
    def _start(self, allocation: Allocation) -> None:
        job = self._jobs[allocation.job]
        attempt = self._attempts.get(job.id, 0)
        self.cluster.start(allocation, self.now)
        for entry in allocation.shared:
            meter = self._meters[entry.name]
            meter.book(allocation.job, entry.amount, self.now)
            server = self._servers.get(meter.pool.observer or "")
            if server is not None:
                at = server.take_on(entry.name, job.id, attempt, entry.amount, self.now)
                self._agenda.put(at, CheckOut(job.id, attempt, server.name))
        seconds, fails = job.attempt(attempt)
        self._agenda.put(self.now + timedelta(seconds=seconds), End(job.id, attempt, fails))
        self._to_come += 1
        for watcher in self._watchers:
            watcher.started(job, self.now)

    def _end(self, end: End) -> None:
        self._to_come -= 1
        if end.attempt != self._attempts.get(end.job, 0) or not self.cluster.is_running(end.job):
            return  # this attempt was stopped before its time
        job = self._jobs[end.job]
        last = end.attempt + 1 >= len(job.failures)
        if end.fails and not (job.given_up and last):
            self.stop_job(end.job)
            return
        self._free(self.cluster.end(end.job, self.now).shared, end.job)
        self.ended += 1
        self._last_progress = self.now
        for watcher in self._watchers:
            watcher.ended(job, self.now)
        self._wake_soon()
        if self._last_session == self.now:
            # It took no time: what it held is free in the second in which it started.
            self._next_wake = self.now

    def stop_job(self, job_id: str) -> None:
        """End a running job's attempt before its time: it is queued again."""
        job = self._jobs[job_id]
        self._free(self.cluster.requeue(job.pending(self.workload.start), self.now).shared, job_id)
        self._attempts[job_id] = self._attempts.get(job_id, 0) + 1
        for watcher in self._watchers:
            if isinstance(watcher, StopWatcher):
                watcher.stopped(job, self.now)
        self._wake_soon()

    def cancel_job(self, job_id: str) -> None:
        """Take a job out, whether it waits or runs; one that is neither stays as it is."""
        if self.cluster.is_running(job_id):
            self.stop_job(job_id)
        self.cluster.withdraw(job_id)
        self._wake_soon()

    def _free(self, shared: Iterable[str], job_id: str) -> None:
        for name in shared:
            meter = self._meters[name]
            meter.release(job_id, self.now)
            server = self._servers.get(meter.pool.observer or "")
            if server is not None:
                server.give_back(name, job_id, self.now)

    def slip_in(self, host: str | None, job: WorkloadJob) -> None:
        """Have the batch system start a job on a provisioned host (None: any) just before it is closed for its return."""
        self._jobs[job.id] = job
        self._slipping.append((host, job))

    def _slip_in(self, instance: str) -> None:
        host = self.cluster.find_host(instance)
        for entry in [entry for entry in self._slipping if entry[0] in (None, host)][:1]:
            self._slipping.remove(entry)
            self.cluster.submit(entry[1].pending(self.workload.start))
            self._start(self.cluster.whole_host(instance, entry[1].id))

    # ----------------------------------------------------------------- trouble
    def go_down(self, length: timedelta) -> None:
        """End the process at once; after some time another begins, which knows the log alone."""
        self._up_at = self.now + length
        self.shell.crash_at = None
        self._agenda.put(self._up_at, Act(self._come_up))

    def crash_at_ask(self, point: CrashPoint, length: timedelta) -> None:
        """Have the process end at its next ask, before or after the call."""
        self.down_for = length
        self.shell.crash_at = point

    def _come_up(self) -> None:
        self._up_at = None
        old, self.shell = self.shell, self._new_shell()
        old.hand_over(self.shell)
        self.shell.recover()
        for name, meter in self._meters.items():
            fresh = self._meters[name] = Meter(meter.pool)
            running = [job for job in self.cluster.running() if name in job.shared]
            fresh.sync(
                {job.id: (job.shared[name], job.started or self.now) for job in running}, self.now
            )
        self.cluster.taken_changes()
        self._scheduler = Scheduler(self._first_snapshot())
        self._seen_catalog = Catalog()
        for name, provider in self.providers.items():
            if provider.description.capabilities.listing:
                self.shell.carry_out(self.shell.list_provider(name))
        self._poll_soon()
        self._wake_soon()

    def lose_host(self, host: str) -> None:
        """A host dies: its jobs are queued again; a provisioned one's machine ends."""
        instance = self.cluster.instance_of(host)
        if instance is None:
            self._empty(host)
            self.cluster.set_host_state(host, HostState.DOWN)
            return
        name, machine = self._machine_of(instance)
        self.providers[name].take(machine, self.now)
        self._watch_provider(name)
        self._bury(name)

    def take_back(self, host: str, notice: timedelta) -> None:
        """The provider of a provisioned host says that it takes its machine back."""
        instance = self.cluster.instance_of(host)
        assert instance is not None, f"{host} is an own host"
        name, machine = self._machine_of(instance)
        self.providers[name].take(machine, self.now + notice, self.now)
        self._watch_provider(name)
        self._poll_soon()

    def _bury(self, provider: str) -> None:
        """Stop the jobs of machines that have ended by themselves; their hosts are down until our books say that they are gone."""
        for machine in self.providers[provider].ended(self.now):
            host = self.cluster.find_host(f"{provider}/{machine}")
            if host is not None:
                self._empty(host)
                self.cluster.set_host_state(host, HostState.DOWN)

    def _empty(self, host: str) -> None:
        for job in self.cluster.jobs_on(host):
            self.stop_job(job)

    def _machine_of(self, instance: str) -> tuple[str, str]:
        for name in self.providers:
            if instance.startswith(f"{name}/"):
                return name, instance.removeprefix(f"{name}/")
        raise AssertionError(f"{instance} is of no provider")

    # ---------------------------------------------------------- licence servers
    def _check_out(self, checkout: CheckOut) -> None:
        server = self._servers[checkout.server]
        totals = {name: self._totals(name).total for name in self._meters}
        for name in server.check_out(checkout.job, checkout.attempt, totals, self.now):
            self._meters[name].deny(self.now)
            if self.cluster.is_running(checkout.job):
                self.stop_job(checkout.job)

    def _observe(self, name: str) -> None:
        server = self._servers[name]
        for seen in server.look(self.now):
            meter = self._meters.get(seen.resource)
            if meter is None or self._up_at is not None:
                continue
            meter.observe(seen)
            now = meter.read(self._totals(seen.resource), self.now)
            if (now.occupied, now.limit) != self._seen_use.get(seen.resource):
                self._wake_soon()
        if self._goes_on():
            self._observe_at(name, self.now + server.every)

    def _goes_on(self) -> bool:
        """Return whether anything is still to come or to go."""
        return bool(
            self._until is not None
            or self._to_come
            or self.cluster.pending_count
            or self.projections.inventory.view() != _NOTHING
        )

    def totals_of(self, name: str) -> Totals:
        """Return what there is of a shared resource, by the log."""
        return self._totals(name)

    def meter_of(self, name: str) -> Meter:
        """Return what is known of the use of a shared resource."""
        return self._meters[name]

    def wake(self) -> None:
        """Have a session soon."""
        self._wake_soon()

    def watch(self, provider: str) -> None:
        """Have what changes at a provider noticed."""
        self._watch_provider(provider)

    # -------------------------------------------------------------------- time
    def _wake_at(self, at: datetime) -> None:
        at = max(at, self.now)
        if self._last_session is not None:
            at = max(at, self._last_session + self.config.driver.session_interval)
        if self._next_wake is None or at < self._next_wake:
            self._next_wake = at
            self._agenda.put(at, Wake())

    def _wake_soon(self) -> None:
        self._wake_at(self.now)

    def _poll_soon(self) -> None:
        self._poll_at(self.now)

    def _poll_at(self, earliest: datetime) -> None:
        """Poll at the first beat of the poll interval that is not before ``earliest``."""
        beat = self.config.driver.poll_interval
        passed = (earliest - self.workload.start) // beat
        at = self.workload.start + passed * beat
        if at < earliest:
            at += beat
        if self._next_poll is None or at < self._next_poll:
            self._next_poll = at
            self._agenda.put(at, Poll())

    def _list_soon(self) -> None:
        interval = self.config.driver.list_interval
        if interval is not None:
            self._next_listing = self.now + interval
            self._agenda.put(self._next_listing, Listing())

    def _observe_at(self, name: str, at: datetime) -> None:
        self._observed_until[name] = at
        self._agenda.put(at, Observe(name))

    def _watch_provider(self, name: str) -> None:
        at = self.providers[name].next_change(self.now)
        if at is not None and at != self._next_change.get(name):
            self._next_change[name] = at
            self._agenda.put(at, Change(name))

    def _plan_next_session(self, result: SessionResult, decisions: tuple[Decision, ...]) -> None:
        """Wake when time alone changes something, and look again while something is held back."""
        idle_after = self.config.session.idle_host_after
        for host in self.cluster.provisioned():
            if host.idle_since is not None:
                due = host.idle_since + idle_after
                if due > self.now:
                    self._wake_at(due)
        for meter in self._meters.values():
            if (change := meter.next_change(self.now)) is not None:
                self._wake_at(change)
        for pause in self.projections.catalog.pauses(self.now):
            self._wake_at(pause.until)
        if (
            passed := self.cluster.next_threshold(self.config.cluster.queues, self.now)
        ) is not None:
            self._wake_at(passed)
        if any(decision.kind is DecisionKind.HOLD for decision in decisions):
            self._wake_at(self.now + self.config.driver.review_interval)


def _host_of(join: RecordJoin, now: datetime) -> Host:
    return Host(
        name=join.host,
        attributes=dict(join.attributes),
        total=dict(join.total),
        instance=join.instance,
        booted_at=join.booted_at,
        idle_since=now,
    )


def _name(aggregate_id: str) -> str:
    return aggregate_id.partition(":")[2]
