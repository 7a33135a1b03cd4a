"""The batch system and its scheduler: what really runs where, joins and looks reported by the real rules, and plain sessions.

A session here starts each job on any free host and wants one host for each that waits: placement is tested elsewhere.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Protocol

from xce.domain.engine.commands import Command, RecordJoin, ReportBookings
from xce.domain.engine.scheduler import departed, orders, reports
from xce.domain.engine.site_commands import ReportDrain
from xce.domain.errors import RejectedError, TransientError
from xce.domain.formats.rest import Supply
from xce.domain.formats.session_result import (
    CountDemand,
    Demand,
    HostDemand,
    Idle,
    IdleCount,
    IdleHost,
    JobAmount,
    JobHosts,
    SessionResult,
)
from xce.domain.formats.snapshot import Host, HostState, HostUse, RunningJob, Snapshot
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.request import OPEN
from xce.replay.faults.cloud import RESOURCE, TEMPLATE, Cloud, Machine
from xce.replay.faults.time import START, MachineClock, Time

#: How often sessions are held, and how long a host must be without a job to be idle.
SESSION_S: Final = 60.0
IDLE_S: Final = 120.0
#: Units of the shared resource that the site owns.
OWNED: Final = 1


@dataclass(slots=True)
class Job:
    """One job: one host, and perhaps one unit of the shared resource."""

    job: str
    work_s: float
    unit: bool
    host: str | None = None
    started_s: float = 0.0
    runs: int = 0
    done: bool = False


class Batch:
    """The truth of the batch system."""

    def __init__(self, time: Time, clouds: Sequence[Cloud]) -> None:
        self.jobs: dict[str, Job] = {}
        self.expected = 0
        self._time = time
        self._clouds = clouds
        #: Hosts that the scheduler has seen recorded as joined: the others take no job yet.
        self.admitted: set[str] = set()
        self._closed: set[str] = set()
        self._idle_since: dict[str, float] = {}
        self._shown: dict[tuple[str, bool], Host] = {}
        self._running: dict[tuple[str, str], RunningJob] = {}

    # ---------------------------------------------------------------------- jobs
    def submit(self, job: Job) -> None:
        """A job comes."""
        self.jobs[job.job] = job

    @property
    def alive(self) -> list[Job]:
        """Jobs that wait or run."""
        return [job for job in self.jobs.values() if not job.done]

    @property
    def finished(self) -> bool:
        """Whether all jobs have come and ended."""
        return len(self.jobs) == self.expected and not self.alive

    def waiting(self) -> list[Job]:
        """Return the jobs that wait, in order."""
        self.look()
        return [job for job in self.jobs.values() if job.host is None and not job.done]

    def units(self) -> int:
        """Return the units in use."""
        self.look()
        return sum(job.unit for job in self.jobs.values() if job.host is not None)

    def job_on(self, host: str) -> str | None:
        """Return the job on a host."""
        return next((job.job for job in self.jobs.values() if job.host == host), None)

    def start(self, job: Job, host: str) -> None:
        """Start a job on an open host."""
        job.host, job.started_s = host, self._time.now_s
        job.runs += 1
        run = job.runs
        self._idle_since.pop(host, None)
        self._time.after(job.work_s, lambda: self._end(job, run))

    def _end(self, job: Job, run: int) -> None:
        self.look()
        if job.host is not None and job.runs == run:
            self._idle_since[job.host] = self._time.now_s
            job.host, job.done = None, True

    def requeue(self, name: str) -> None:
        """Put a running job back into the queue."""
        job = self.jobs[name]
        if job.host is not None:
            job.host = None

    def look(self) -> None:
        """Requeue the jobs whose hosts are gone."""
        up = {host for host, _ in self.hosts()}
        for job in self.jobs.values():
            if job.host is not None and job.host not in up:
                job.host = None

    # --------------------------------------------------------------------- hosts
    def hosts(self) -> Iterator[tuple[str, Machine]]:
        """Yield the hosts that are there."""
        now = self._time.now_s
        for cloud in self._clouds:
            for machine in cloud.machines.values():
                if machine.is_host(now):
                    yield host_of(machine.machine), machine

    def is_open(self, host: str) -> bool:
        """Return whether it is not closed."""
        return host not in self._closed

    def close(self, host: str) -> None:
        """Give it no new work."""
        self._closed.add(host)

    def open(self, host: str) -> None:
        """Let it take work again."""
        self._closed.discard(host)

    def idle_since(self, host: str) -> float:
        """Return since when it has had no job."""
        return self._idle_since.setdefault(host, self._time.now_s)

    def view(self, now: datetime) -> Snapshot:
        """Return what the batch system shows."""
        self.look()
        return Snapshot.model_construct(
            format="xce.snapshot/1",
            now=now,
            hosts=tuple(self._host(name, machine) for name, machine in self.hosts()),
            running=tuple(
                self._job(job.job, job.host) for job in self.jobs.values() if job.host is not None
            ),
        )

    def _host(self, name: str, machine: Machine) -> Host:
        key = name, self.is_open(name)
        shown = self._shown.get(key)
        if shown is None:
            shown = self._shown[key] = Host.model_construct(
                name=name,
                state=HostState.OPEN if key[1] else HostState.DRAINING,
                instance=machine.machine,
                booted_at=_stamp(machine.joins_s or 0.0),
            )
        return shown

    def _job(self, job: str, host: str) -> RunningJob:
        shown = self._running.get((job, host))
        if shown is None:
            uses = (HostUse.model_construct(name=host),)
            shown = RunningJob.model_construct(id=job, hosts=uses, shared={})
            self._running[job, host] = shown
        return shown


def host_of(machine: str) -> str:
    """Return the name of a machine's host."""
    return f"h-{machine}"


def _stamp(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


class ControllerLink(Protocol):
    """The controller over the network; every call raises ``RejectedError`` or ``TransientError``."""

    def supply(self) -> Supply:
        """Return what is known."""
        ...

    def order(self, *commands: Command) -> object:
        """Give an order."""
        ...

    def publish(self, result: SessionResult) -> None:
        """Publish a session."""
        ...


@dataclass(slots=True)
class SchedulerLife:
    """One life of the scheduler process."""

    batch: Batch
    link: ControllerLink
    clock: MachineClock
    #: Told how many hosts and units the jobs of a session need.
    on_session: Callable[[int, int], None]
    shared: bool
    dead: bool = False
    _spare_since: dict[str, float] = field(default_factory=dict[str, float])

    def step(self) -> float:
        """Hold a session."""
        try:
            self._session()
        except (TransientError, RejectedError):
            return SESSION_S / 3
        return SESSION_S

    def _session(self) -> None:
        supply = self.link.supply()
        view = self.batch.view(self.clock.now())
        for join in reports(view, supply).joins:
            if join.instance is not None:
                self._tell(
                    RecordJoin(join.instance, join.host, join.booted_at, {}, {}, busy=join.busy)
                )
        instances = {one.host: one.id for one in supply.inventory.instances if one.host}
        for look in reports(view, supply).looks:
            self._tell(ReportDrain(look.host, instances.get(look.host), look.jobs))
        free = self._start(supply)
        result = self._result(supply, free)
        told = orders(view, supply, result, departed(view, supply))
        for host in told.close:
            self.batch.close(host)
        for host in told.open:
            self.batch.open(host)
        for job in told.requeue:
            self.batch.requeue(job)
        if self.shared:
            self.link.order(self._bookings(supply))
        self.link.publish(result)

    def _bookings(self, supply: Supply) -> ReportBookings:
        occupied = {RESOURCE: self.batch.units()}
        return ReportBookings(occupied, primary=supply.primary, as_of=supply.now)

    def _tell(self, command: Command) -> None:
        try:
            self.link.order(command)
        except RejectedError:
            return  # the state has changed meanwhile: the next session sees it

    def _start(self, supply: Supply) -> list[str]:
        """Start what can start; return the hosts that are free then."""
        draining = {one.host for one in supply.drains}
        joined = {
            one.host
            for one in supply.inventory.instances
            if one.state is InstanceState.JOINED and one.host not in draining
        }
        self.batch.admitted |= {host for host in joined if host is not None}
        free = [
            name
            for name, _ in self.batch.hosts()
            if name in joined and self.batch.is_open(name) and self.batch.job_on(name) is None
        ]
        total = next((one.total for one in supply.shared), 0)
        for job in self.batch.waiting():
            if not free:
                break
            if job.unit and self.batch.units() >= total:
                continue
            self.batch.start(job, free.pop(0))
        return free

    def _result(self, supply: Supply, free: list[str]) -> SessionResult:
        waiting = self.batch.waiting()
        alive = self.batch.alive
        self.on_session(len(alive), sum(job.unit for job in alive))
        coming = sum(
            max(0, one.amount - one.granted - one.failed)
            for one in supply.inventory.requests
            if one.state in OPEN and one.template is not None
        ) + sum(one.state is InstanceState.STARTING for one in supply.inventory.instances)
        missing = waiting[len(free) + coming :]
        hosts: tuple[HostDemand, ...] = ()
        if missing:
            parts = tuple(
                JobHosts.model_construct(job=job.job, order=i, hosts=1)
                for i, job in enumerate(missing, 1)
            )
            hosts = (HostDemand.model_construct(template=TEMPLATE, count=len(missing), jobs=parts),)
        demand = Demand(
            hosts=hosts,
            order=((TEMPLATE, len(missing)),) if missing else (),
            countable=self._units_wanted(supply, waiting),
        )
        return SessionResult(
            position=supply.position, demand=demand, idle=self._idle(supply, free, waiting)
        )

    def _units_wanted(self, supply: Supply, waiting: list[Job]) -> tuple[CountDemand, ...]:
        wanting = [job for job in waiting if job.unit]
        entry = next(iter(supply.shared), None)
        if entry is None or not wanting:
            return ()
        there = max(0, entry.total - self.batch.units()) + entry.in_flight
        missing = wanting[there:]
        if not missing:
            return ()
        parts = tuple(JobAmount(job=job.job, order=i, amount=1) for i, job in enumerate(missing, 1))
        return (CountDemand(name=RESOURCE, amount=len(missing), wanted=len(wanting), jobs=parts),)

    def _idle(self, supply: Supply, free: list[str], waiting: list[Job]) -> Idle:
        now = self.clock.elapsed_s()
        instances = {one.host: one.id for one in supply.inventory.instances if one.host}
        hosts = tuple(
            IdleHost(instance=instances[name], host=name, idle_since=_stamp(since))
            for name in free
            if name in instances and (since := self.batch.idle_since(name)) <= now - IDLE_S
        )
        counts: tuple[IdleCount, ...] = ()
        entry = next(iter(supply.shared), None)
        if entry is not None and entry.borrowed and not any(job.unit for job in waiting):
            spare = min(entry.borrowed, entry.total - self.batch.units())
            since = self._spare_since.setdefault(RESOURCE, now)
            if spare > 0 and since <= now - IDLE_S:
                counts = (IdleCount(name=RESOURCE, amount=spare),)
        else:
            self._spare_since.clear()
        return Idle(hosts=hosts, counts=counts)
