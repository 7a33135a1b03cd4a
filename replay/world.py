"""The virtual-time driver: jobs come and end, sessions decide, the engine acts, simulated providers answer.

It only says when things happen. What is true is in the log; what a session sees of totals and supply comes from the
projections of that log; what is decided comes from ``run_session`` and ``decide``; what it leads to from the engine.
A session is handed ``PendingJob`` values only: true run times stay in here.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from xce.domain.engine.calls import (
    Answer,
    Call,
    ListCall,
    ReturnStatusCall,
    StatusCall,
    Step,
    Steps,
    make,
)
from xce.domain.engine.commands import (
    Command,
    DeclareShared,
    DescribeProvider,
    RecordJoin,
    ReportBookings,
    TakeLease,
)
from xce.domain.engine.controller import Controller
from xce.domain.engine.provisioner import Provisioner
from xce.domain.engine.reconciliation import Listing, Sightings, reconcile
from xce.domain.errors import RejectedError
from xce.domain.formats.config import SimulationConfig
from xce.domain.formats.delta import (
    NO_CATALOG_CHANGES,
    Changes,
    Delta,
    catalog_changes,
    going_on,
)
from xce.domain.formats.policy import Decision, DecisionKind, PolicyInput
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import Catalog, Host, HostState, Shared, Snapshot
from xce.domain.ports import EventLog
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance, InstanceState
from xce.domain.provisioning.request import OPEN, Request, RequestState
from xce.domain.scheduling.kept import Scheduler
from xce.domain.sharing.elastic_resource import ElasticResource
from xce.domain.sharing.meter import Meter, Totals
from xce.domain.sharing.wants import terms_of, whole_wants
from xce.projections.all import Projections
from xce.replay.agenda import Agenda, CountedIds
from xce.replay.cluster import SimulatedCluster
from xce.replay.provider_truth import Join
from xce.replay.providers import SimulatedProvider
from xce.replay.workloads.workload import Workload, WorkloadJob

#: Who writes the events of a simulation.
BY: Final = "xce sim"
#: The lease outlives any simulation: there is nobody to take over.
LEASE_TERM: Final = timedelta(days=3650)
_SECOND: Final = timedelta(seconds=1)
_NO_AMOUNTS: Final = Changes[Shared]()
#: What brings waiting jobs nearer, and, when none waits, the end. All other events may be attempts that fail for ever.
_COMING: Final = (Instance.Joined, ElasticResource.Borrowed)
_GOING: Final = (Instance.Returned, Instance.Lost, Grant.ReturnConfirmed, Grant.Lost)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job is submitted."""

    job: WorkloadJob


@dataclass(frozen=True, slots=True)
class End:
    """A job has run for its true run time."""

    job: str


@dataclass(frozen=True, slots=True)
class Change:
    """Something is different at a provider: a host joins."""

    provider: str


@dataclass(frozen=True, slots=True)
class Poll:
    """Providers are asked what became of requests and returns."""


@dataclass(frozen=True, slots=True)
class Wake:
    """A session is due."""


Happening = Arrival | End | Change | Poll | Wake


class Watcher(Protocol):
    """Told what happens, as it happens."""

    def started(self, job: WorkloadJob, at: datetime) -> None:
        """A job starts; the session that started it is told at the same time."""
        ...

    def ended(self, job: WorkloadJob, at: datetime) -> None:
        """A job ended."""
        ...

    def session(self, snapshot: Snapshot, result: SessionResult) -> None:
        """A session is over; its allocations start now."""
        ...


class World:
    """One simulation, from the first submission until nothing is left to do."""

    def __init__(
        self,
        config: SimulationConfig,
        workload: Workload,
        log: EventLog,
        providers: dict[str, SimulatedProvider],
        watchers: Iterable[Watcher] = (),
    ) -> None:
        self.config = config
        self.workload = workload
        self.log = log
        self.providers = providers
        self.projections = Projections()
        self.cluster = SimulatedCluster(config.cluster.all_hosts())
        self.now = workload.start
        self._settings = config.policy.settings()
        self._rated = any(budget.max_asked is not None for budget in config.policy.budgets)
        self._watchers = tuple(watchers)
        self._controller = Controller(log)
        self._primary = log.take_primary()
        self._ids = CountedIds()
        self._provisioner = Provisioner(self._ids)
        self._sightings: dict[str, Sightings] = {}
        self._agenda = Agenda[Happening]()
        self._jobs = {job.id: job for job in workload.jobs}
        self._meters = {pool.name: Meter(pool) for pool in config.cluster.shared}
        self._early_joins: dict[str, Join] = {}
        self._last_session: datetime | None = None
        self._next_wake: datetime | None = None
        self._next_poll: datetime | None = None
        self._next_change: dict[str, datetime] = {}
        #: When a job came, started or ended, or supply came or went; and how many jobs are still to come or to end.
        self._last_progress = workload.start
        self._to_come = 0
        self._scheduler = Scheduler(self._first_snapshot())
        self._seen_catalog = Catalog()
        self.sessions = 0
        self.ended = 0

    # --------------------------------------------------------------------- run
    def run(self, progress: Callable[[int], None] = lambda ended: None) -> None:
        """Run to the end; ``progress`` is told the number of jobs that have ended, now and then."""
        for job in self.workload.jobs:
            self._agenda.put(self.workload.start + timedelta(seconds=job.submit), Arrival(job))
        self._to_come = len(self.workload.jobs)
        self.now = self._agenda.next_time or self.now
        self._last_progress = self.now
        self._set_up()
        while (at := self._agenda.next_time) is not None:
            happenings = self._agenda.take_until(at)
            if self._is_stuck(at):
                break
            self.now = at
            self._happen(happenings)
            progress(self.ended)

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
        self._commit(Step((command,)) for command in commands)

    def _happen(self, happenings: list[Happening]) -> None:
        session_due = False
        for happening in happenings:
            match happening:
                case Arrival(job=job):
                    self.cluster.submit(job.pending(self.workload.start))
                    self._to_come -= 1
                    self._last_progress = self.now
                    self._wake_soon()
                case End(job=job_id):
                    for name in self.cluster.end(job_id, self.now).shared:
                        self._meters[name].release(job_id, self.now)
                    self.ended += 1
                    self._to_come -= 1
                    self._last_progress = self.now
                    for watcher in self._watchers:
                        watcher.ended(self._jobs[job_id], self.now)
                    self._wake_soon()
                case Change(provider=name):
                    if self._next_change.get(name) == self.now:
                        del self._next_change[name]
                    self._record_joins()
                    self._poll_soon()
                    self._watch_provider(name)
                case Poll():
                    if self._next_poll == self.now:
                        self._next_poll = None
                        self._poll()
                case Wake():
                    if self._next_wake == self.now:
                        self._next_wake = None
                        session_due = True
        if session_due or self._next_wake == self.now:
            self._next_wake = None
            self._session()

    # ---------------------------------------------------------------- sessions
    def _session(self) -> None:
        self._last_session = self.now
        self.sessions += 1
        self._scheduler.advance(self._delta())
        snapshot = self._scheduler.snapshot
        result = self._scheduler.run()
        for allocation in result.allocations:
            job = self._jobs[allocation.job]
            self.cluster.start(allocation, self.now)
            for entry in allocation.shared:
                self._meters[entry.name].book(allocation.job, entry.amount, self.now)
            self._agenda.put(self.now + timedelta(seconds=job.run_time), End(job.id))
            self._to_come += 1
            for watcher in self._watchers:
                watcher.started(job, self.now)
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
            settings=self._settings,
        )
        decisions, steps = self._provisioner.round(inputs)
        self._carry_out(steps)
        self._plan_next_session(result, decisions)

    def _first_snapshot(self) -> Snapshot:
        cluster = self.config.cluster
        return Snapshot.model_construct(
            format="xce.snapshot/1",
            now=self.now,
            position=0,
            hosts=self.cluster.hosts(),
            # Nothing is declared in the log yet.
            shared=tuple(
                Shared.model_construct(
                    name=pool.name,
                    total=pool.owned,
                    used_elsewhere=0,
                    owned=pool.owned,
                    borrowed=0,
                    peak_need=None,
                )
                for pool in cluster.shared
            ),
            queues=cluster.queues,
            limits=cluster.limits,
            quotas=cluster.quotas,
            groups=cluster.groups,
            running=(),
            pending=(),
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
        return Shared.model_construct(
            name=name,
            total=totals.total,
            used_elsewhere=meter.read(totals, self.now).used_elsewhere,
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
        self._controller.handle(ReportBookings(occupied), at=self.now, by=BY)

    # ------------------------------------------------------------------ engine
    def _poll(self) -> None:
        self._carry_out(
            self._provisioner.poll(
                self.projections.inventory.view(),
                self.now,
                self._settings,
                capabilities={
                    name: one.description.capabilities for name, one in self.providers.items()
                },
            )
        )
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
                self._poll_at(max(self.now + _SECOND, due))
        for request in view.requests:
            if request.state in OPEN and request.deadline is not None:
                self._wake_at(request.deadline)

    def _carry_out(self, steps: Iterable[Step]) -> None:
        """Make commands durable, then look and call, then go on with the answers, until nothing follows."""
        while done := self._commit(steps):
            following: list[Step] = []
            looks = [
                instance for step in done for look in step.looks for instance in look.instances
            ]
            if looks:
                busy = {instance: self.cluster.has_job(instance) for instance in looks}
                following += self._provisioner.looked(busy, self.projections.inventory.view())
            for step in done:
                for call in step.calls:
                    if isinstance(call, ListCall):
                        following += self._list(call.provider)
                        continue
                    answer = self._call(call)
                    following += self._provisioner.answered(call, answer, self.now, self._settings)
            steps = following

    def _list(self, provider: str) -> Steps:
        """Go on after a listing."""
        holdings = self.providers[provider].holdings(self.now)
        if holdings is None:
            return ()
        steps, self._sightings[provider] = reconcile(
            Listing(provider, holdings, self.now),
            self.projections.inventory.view(),
            self._sightings.get(provider, Sightings()),
            self._ids,
        )
        return steps

    def _commit(self, steps: Iterable[Step]) -> list[Step]:
        """Append the commands of all steps at once; return the steps that were not refused."""
        done: list[Step] = []
        for step in steps:
            if self._accepted(step.commands):
                done.append(step)
            else:
                self._accepted(step.otherwise)
        if change := self._controller.take():
            recorded = self.log.append(
                change.aggregates, fences={"primary": self._primary, **change.fences}
            )
            self._controller.appended()
            self.projections.apply(recorded)
            for entry in recorded:
                self._follow(entry.event)
        return done

    def _accepted(self, commands: Iterable[Command]) -> bool:
        try:
            for command in commands:
                self._controller.handle(command, at=self.now, by=BY)
        except RejectedError:
            return False
        return True

    def _call(self, call: Call) -> Answer:
        try:
            return make(call, self.providers[call.provider], self.now)
        finally:
            self._watch_provider(call.provider)
            if not isinstance(call, (StatusCall, ReturnStatusCall)):
                self._poll_soon()

    def _follow(self, event: object) -> None:
        """Do in the cluster what an event says of its hosts; a change of supply is a reason for a session."""
        if isinstance(event, _COMING if self.cluster.pending_count else _GOING):
            self._last_progress = self.now
        match event:
            case Instance.DrainStarted(originator_id=aggregate):
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
                self._poll_at(self.now + _SECOND)
                self._wake_at(self.now + self.config.driver.review_interval)
            case _:
                pass

    def _record_joins(self) -> None:
        """Record the joins whose instances are known; the others wait for the next poll."""
        for name, provider in self.providers.items():
            self._early_joins.update(
                (f"{name}/{join.machine}", join) for join in provider.joins(self.now)
            )
        starting = [
            entry.id
            for entry in self.projections.inventory.view().instances
            if entry.state is InstanceState.STARTING and entry.id in self._early_joins
        ]
        for step in self._commit(Step((self._join_of(instance),)) for instance in starting):
            for command in step.commands:
                assert isinstance(command, RecordJoin)
                del self._early_joins[command.instance]
                self.cluster.join(command.instance, _host_of(command, self.now))
                self._wake_soon()

    def _join_of(self, instance: str) -> RecordJoin:
        join = self._early_joins[instance]
        return RecordJoin(instance, join.name, join.booted_at, join.attributes, join.total)

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
