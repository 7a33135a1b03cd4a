"""Jobs of a simulated world, from their submission to their end: attempts, what they hold, and who is told."""

from collections.abc import Iterable
from datetime import timedelta

from xce.domain.formats.session_result import Allocation
from xce.replay.cluster import SimulatedCluster
from xce.replay.happenings import Arrival, CheckOut, End, StopWatcher, Watcher
from xce.replay.shared_use import SharedUse
from xce.replay.timetable import Timetable
from xce.replay.workloads.workload import Workload, WorkloadJob


class Jobs:
    """Knows how long each job runs in truth, which nobody is told."""

    def __init__(
        self,
        workload: Workload,
        cluster: SimulatedCluster,
        shared: SharedUse,
        timetable: Timetable,
        watchers: Iterable[Watcher],
    ) -> None:
        self._workload = workload
        self._jobs = {job.id: job for job in workload.jobs}
        self._cluster = cluster
        self._shared = shared
        self._timetable = timetable
        self._watchers = tuple(watchers)
        self._attempts: dict[str, int] = {}
        self._slipping: list[tuple[str | None, WorkloadJob]] = []
        #: How many are still to come or to end.
        self.to_come = 0
        self.ended = 0

    def expect(self) -> None:
        """Put the submissions of all jobs down."""
        for job in self._workload.jobs:
            at = self._workload.start + timedelta(seconds=job.submit)
            self._timetable.put(at, Arrival(job))
        self.to_come = len(self._workload.jobs)

    def submit(self, job: WorkloadJob) -> None:
        """A job comes."""
        self._cluster.submit(job.pending(self._workload.start))
        self.to_come -= 1
        self._timetable.note_progress()
        self._timetable.wake_soon()

    def start(self, allocation: Allocation) -> None:
        """Start an attempt of a job where a session placed it."""
        now = self._timetable.now
        job = self._jobs[allocation.job]
        attempt = self._attempts.get(job.id, 0)
        self._cluster.start(allocation, now)
        for at, checkout in self._shared.book(job.id, attempt, allocation.shared, now):
            self._timetable.put(at, checkout)
        seconds, fails = job.attempt(attempt)
        self._timetable.put(now + timedelta(seconds=seconds), End(job.id, attempt, fails))
        self.to_come += 1
        for watcher in self._watchers:
            watcher.started(job, now)

    def end(self, end: End) -> None:
        """An attempt has run for its time: its job ends, or is queued again if it fails."""
        now = self._timetable.now
        self.to_come -= 1
        if end.attempt != self._attempts.get(end.job, 0) or not self._cluster.is_running(end.job):
            return  # this attempt was stopped before its time
        job = self._jobs[end.job]
        last = end.attempt + 1 >= len(job.failures)
        if end.fails and not (job.given_up and last):
            self.stop(end.job)
            return
        self._shared.free(end.job, self._cluster.end(end.job, now).shared, now)
        self.ended += 1
        self._timetable.note_progress()
        for watcher in self._watchers:
            watcher.ended(job, now)
        self._timetable.wake_soon()
        if self._timetable.last_session == now:
            # It took no time: what it held is free in the second in which it started.
            self._timetable.wake_again()

    def check_out(self, checkout: CheckOut) -> None:
        """An attempt takes its tokens; one that is denied stops."""
        for name in self._shared.check_out(checkout, self._timetable.now):
            self._shared.meter(name).deny(self._timetable.now)
            if self._cluster.is_running(checkout.job):
                self.stop(checkout.job)

    # ------------------------------------------------------------ interference
    def stop(self, job_id: str) -> None:
        """End a running job's attempt before its time: it is queued again."""
        now = self._timetable.now
        job = self._jobs[job_id]
        stopped = self._cluster.requeue(job.pending(self._workload.start), now)
        self._shared.free(job_id, stopped.shared, now)
        self._attempts[job_id] = self._attempts.get(job_id, 0) + 1
        for watcher in self._watchers:
            if isinstance(watcher, StopWatcher):
                watcher.stopped(job, now)
        self._timetable.wake_soon()

    def stop_all_on(self, host: str) -> None:
        """End the attempts of all jobs of a host before their time."""
        for job in self._cluster.jobs_on(host):
            self.stop(job)

    def cancel(self, job_id: str) -> None:
        """Take a job out, whether it waits or runs; one that is neither stays as it is."""
        if self._cluster.is_running(job_id):
            self.stop(job_id)
        self._cluster.withdraw(job_id)
        self._timetable.wake_soon()

    def slip_in(self, host: str | None, job: WorkloadJob) -> None:
        """Have the batch system start a job on a provisioned host (None: any) just before it is closed for its return."""
        self._jobs[job.id] = job
        self._slipping.append((host, job))

    def closing(self, instance: str) -> None:
        """The host of an instance is about to be closed: a job may slip in."""
        host = self._cluster.find_host(instance)
        for entry in [entry for entry in self._slipping if entry[0] in (None, host)][:1]:
            self._slipping.remove(entry)
            self._cluster.submit(entry[1].pending(self._workload.start))
            self.start(self._cluster.whole_host(instance, entry[1].id))
