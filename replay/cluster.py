"""The simulated batch system: hosts, running and pending jobs, and what a snapshot shows of them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from xce.domain.engine.commands import RecordJoin
from xce.domain.formats.building import built
from xce.domain.formats.delta import Changes, Collected
from xce.domain.formats.session_result import Allocation, PlacedOn
from xce.domain.formats.snapshot import Host, HostState, HostUse, PendingJob, Queue, RunningJob


@dataclass(slots=True)
class _Provisioned:
    """A host that a provider created, while it is in the cluster."""

    host: Host
    jobs: int = 0


class SimulatedCluster:
    """Truth of the batch system. Reads no clock: each change says when it happens."""

    def __init__(self, own: tuple[Host, ...]) -> None:
        self._own = {host.name: host for host in own}
        self._own_jobs = {host.name: 0 for host in own}
        self._provisioned: dict[str, _Provisioned] = {}
        self._name_of: dict[str, str] = {}
        self._pending: dict[str, PendingJob] = {}
        self._running: dict[str, RunningJob] = {}
        self._hosts: tuple[Host, ...] | None = None
        self._host_changes = Collected(Changes[Host])
        self._pending_changes = Collected(Changes[PendingJob])
        self._running_changes = Collected(Changes[RunningJob])

    # ------------------------------------------------------------------- faces
    def hosts(self) -> tuple[Host, ...]:
        """Return all hosts as a snapshot shows them."""
        if self._hosts is None:
            self._hosts = (
                *self._own.values(),
                *(entry.host for entry in self._provisioned.values()),
            )
        return self._hosts

    def provisioned(self) -> Iterator[Host]:
        """Yield the hosts that providers created."""
        return (entry.host for entry in self._provisioned.values())

    def taken_changes(
        self,
    ) -> tuple[Changes[Host], Changes[PendingJob], Changes[RunningJob]]:
        """Return what has happened to hosts, waiting and running jobs since the last call."""
        return (
            self._host_changes.taken(),
            self._pending_changes.taken(),
            self._running_changes.taken(),
        )

    def pending(self) -> tuple[PendingJob, ...]:
        """Return the jobs that wait."""
        return tuple(self._pending.values())

    def running(self) -> tuple[RunningJob, ...]:
        """Return the jobs that have resources."""
        return tuple(self._running.values())

    @property
    def pending_count(self) -> int:
        """How many jobs wait."""
        return len(self._pending)

    def has_job(self, instance: str) -> bool:
        """Return whether the host of an instance has a job; False if it has no host."""
        name = self._name_of.get(instance)
        return name is not None and self._provisioned[name].jobs > 0

    def is_running(self, job: str) -> bool:
        """Return whether a job has resources."""
        return job in self._running

    def is_own(self, host: str) -> bool:
        """Return whether a host is of the own partition."""
        return host in self._own

    def has_host(self, host: str) -> bool:
        """Return whether a host is in the cluster."""
        return host in self._own or host in self._provisioned

    def jobs_on(self, host: str) -> tuple[str, ...]:
        """Return the jobs that run on a host."""
        return tuple(
            job.id for job in self._running.values() if any(use.name == host for use in job.hosts)
        )

    def find_host(self, instance: str) -> str | None:
        """Return the host of an instance; None: it has none."""
        return self._name_of.get(instance)

    def instance_of(self, host: str) -> str | None:
        """Return the instance of a host; None: it is an own one."""
        entry = self._provisioned.get(host)
        return None if entry is None else entry.host.instance

    def whole_host(self, instance: str, job: str) -> Allocation:
        """Return the placing of a job of one task, one slot of the host of an instance."""
        use = PlacedOn(name=self._name_of[instance], tasks=1, uses={"slots": 1})
        return Allocation(job=job, hosts=(use,))

    def next_threshold(self, queues: Iterable[Queue], now: datetime) -> datetime | None:
        """Return when a waiting job will next have waited as long as its queue asks before it counts as demand."""
        minutes = {
            queue.name: sorted({wait for _, wait in queue.demand_threshold})
            for queue in queues
            if queue.demand_threshold
        }
        if not minutes:
            return None
        times = [
            job.submitted + timedelta(minutes=wait)
            for job in self._pending.values()
            if job.submitted is not None
            for wait in minutes.get(job.queue, ())
        ]
        return min((at for at in times if at > now), default=None)

    # ------------------------------------------------------------------- hosts
    def join(self, join: RecordJoin, now: datetime) -> None:
        """Add the host that a join tells of."""
        assert join.host not in self._own_jobs, f"{join.host} is an own host"
        if join.host in self._provisioned:
            # A new machine under the name of one that is gone.
            old = self._provisioned[join.host].host
            assert old.instance is not None, "a provider created it"
            self.remove(old.instance)
        host = Host(
            name=join.host,
            attributes=dict(join.attributes),
            total=dict(join.total),
            instance=join.instance,
            booted_at=join.booted_at,
            idle_since=now,
        )
        self._provisioned[host.name] = _Provisioned(host)
        self._host_changes.add(host)
        self._name_of[join.instance] = host.name
        self._hosts = None

    def set_state(self, instance: str, state: HostState) -> None:
        """Open or close the host of an instance."""
        entry = self._provisioned[self._name_of[instance]]
        entry.host = entry.host.model_copy(update={"state": state})
        self._host_changes.change(entry.host)
        self._hosts = None

    def set_host_state(self, host: str, state: HostState) -> None:
        """Open or close any host by its name."""
        instance = self.instance_of(host)
        if instance is not None:
            self.set_state(instance, state)
            return
        self._own[host] = self._own[host].model_copy(update={"state": state})
        self._host_changes.change(self._own[host])
        self._hosts = None

    def remove(self, instance: str) -> None:
        """Take the host of an instance out of the cluster, if it is there."""
        name = self._name_of.pop(instance, None)
        if name is not None:
            assert self._provisioned[name].jobs == 0, f"{name} still has a job"
            del self._provisioned[name]
            self._host_changes.remove(name)
            self._hosts = None

    # -------------------------------------------------------------------- jobs
    def submit(self, job: PendingJob) -> None:
        """Add a job that waits."""
        assert job.id not in self._pending, f"job {job.id} waits already"
        assert job.id not in self._running, f"job {job.id} runs already"
        self._pending[job.id] = job
        self._pending_changes.add(job)

    def start(self, allocation: Allocation, at: datetime) -> None:
        """Start a job where a session placed it."""
        pending = self._pending.pop(allocation.job)
        self._pending_changes.remove(pending.id)
        running = self._running[pending.id] = built(
            RunningJob,
            {
                "id": pending.id,
                "user": pending.user,
                "project": pending.project,
                "queue": pending.queue,
                "started": at,
                "hosts": tuple(
                    [
                        built(
                            HostUse,
                            {"name": place.name, "tasks": place.tasks, "uses": place.uses},
                        )
                        for place in allocation.hosts
                    ]
                ),
                "shared": {entry.name: entry.amount for entry in allocation.shared},
                "exclusive": pending.exclusive,
                "run_limit": pending.run_limit,
                "array": pending.array,
            },
        )
        self._running_changes.add(running)
        for place in allocation.hosts:
            self._count_job(place.name, +1, at)

    def end(self, job_id: str, at: datetime) -> RunningJob:
        """End a running job, and return what it was."""
        job = self._running.pop(job_id)
        self._running_changes.remove(job_id)
        for use in job.hosts:
            self._count_job(use.name, -1, at)
        return job

    def requeue(self, pending: PendingJob, at: datetime) -> RunningJob:
        """End a running job and let it wait again; return what it was."""
        job = self.end(pending.id, at)
        self.submit(pending)
        return job

    def withdraw(self, job: str) -> None:
        """Take a job out that waits; one that does not stays as it is."""
        if self._pending.pop(job, None) is not None:
            self._pending_changes.remove(job)

    def _count_job(self, name: str, change: int, at: datetime) -> None:
        if name in self._own_jobs:
            self._own_jobs[name] += change
            return
        entry = self._provisioned[name]
        entry.jobs += change
        idle_since = None if entry.jobs else at
        if entry.host.idle_since != idle_since:
            entry.host = entry.host.model_copy(update={"idle_since": idle_since})
            self._host_changes.change(entry.host)
            self._hosts = None
