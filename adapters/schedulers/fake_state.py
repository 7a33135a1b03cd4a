"""The fake batch system without its file: a value, and what may happen to it."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Literal

from pydantic import Field

from xce.domain.errors import NotFoundError, RejectedError
from xce.domain.formats.base import Count, Duration, Format, Name, Time
from xce.domain.formats.session_result import Allocation
from xce.domain.formats.snapshot import (
    Host,
    HostState,
    HostUse,
    Limit,
    PendingJob,
    Queue,
    RunningJob,
    Settings,
    Shared,
    Snapshot,
)
from xce.domain.ports import ExpectedHost, SchedulerOrders

#: Ended jobs that are remembered.
ENDED_MAX = 10_000


class FakeJob(Format):
    """A job that waits, and how long it will run: only the batch system knows."""

    job: PendingJob
    run_time: Duration


class FakeRun(Format):
    """A job that runs."""

    waiting: FakeJob
    job: RunningJob
    ends_at: Time


class FakeEnd(Format):
    """A job that has ended."""

    job: Name
    started: Time
    ended: Time
    hosts: tuple[Name, ...]


class FakeState(Format):
    """Everything the fake batch system knows."""

    format: Literal["xce.fake-batch/1"] = "xce.fake-batch/1"
    next_job: Count = 1
    hosts: tuple[Host, ...] = ()
    shared: tuple[Shared, ...] = ()
    queues: tuple[Queue, ...] = ()
    limits: tuple[Limit, ...] = ()
    settings: Settings = Settings()
    waiting: tuple[FakeJob, ...] = ()
    running: tuple[FakeRun, ...] = ()
    ended: tuple[FakeEnd, ...] = Field(default=(), description="the newest last")
    departed: tuple[Name, ...] = Field(
        default=(), description="instances that were hosts here and are gone: they boot only once"
    )

    def with_(self, **changes: object) -> "FakeState":
        """Return it with some fields changed."""
        return self.model_copy(update=changes)


# ------------------------------------------------------------------- what is shown
def view_of(state: FakeState, now: datetime) -> Snapshot:
    """Return what the batch system shows."""
    return Snapshot(
        format="xce.snapshot/1",
        now=now,
        hosts=state.hosts,
        shared=state.shared,
        queues=state.queues,
        limits=state.limits,
        settings=state.settings,
        running=tuple(run.job for run in state.running),
        pending=tuple(one.job for one in state.waiting),
    )


# --------------------------------------------------------------------------- jobs
def submitted(
    state: FakeState, jobs: Iterable[PendingJob], run_time: timedelta, now: datetime
) -> FakeState:
    """Return it with more jobs that wait; a job without a name of its own ("new") gets the next number.

    Raises:
        RejectedError: a job of this id is there.
    """
    number = state.next_job
    known = {one.job.id for one in state.waiting} | {run.job.id for run in state.running}
    added: list[FakeJob] = []
    for job in jobs:
        name = job.id
        if name == "new":
            name, number = str(number), number + 1
        if name in known:
            raise RejectedError(f"job {name} is there already")
        known.add(name)
        submitted_at = job.submitted or now
        made = job.model_copy(update={"id": name, "submitted": submitted_at})
        added.append(FakeJob(job=made, run_time=run_time))
    return state.with_(waiting=(*state.waiting, *added), next_job=number)


def moved_on(state: FakeState, now: datetime) -> FakeState:
    """Return it with the jobs ended whose time is over."""
    over = {run.job.id: run.ends_at for run in state.running if run.ends_at <= now}
    return ended(state, over) if over else state


def ended(state: FakeState, over: dict[str, datetime]) -> FakeState:
    """Return it with these running jobs ended at these times."""
    ends = [
        FakeEnd(
            job=run.job.id,
            started=run.job.started or over[run.job.id],
            ended=over[run.job.id],
            hosts=tuple(use.name for use in run.job.hosts),
        )
        for run in state.running
        if run.job.id in over
    ]
    going = tuple(run for run in state.running if run.job.id not in over)
    kept = (*state.ended, *sorted(ends, key=lambda end: end.ended))[-ENDED_MAX:]
    return _idle_since(state.with_(running=going, ended=kept), over)


def _idle_since(state: FakeState, over: dict[str, datetime]) -> FakeState:
    """Return it with hosts that have become idle marked so."""
    busy = {use.name for run in state.running for use in run.job.hosts}
    since = max(over.values(), default=None)
    return state.with_(
        hosts=tuple(
            host.model_copy(update={"idle_since": since})
            if host.name not in busy and host.idle_since is None
            else host
            for host in state.hosts
        )
    )


def requeued(state: FakeState, jobs: Iterable[str]) -> FakeState:
    """Return it with running jobs back in the queue."""
    back = set(jobs)
    again = tuple(run.waiting for run in state.running if run.job.id in back)
    going = tuple(run for run in state.running if run.job.id not in back)
    return state.with_(waiting=(*again, *state.waiting), running=going)


def started(state: FakeState, allocation: Allocation, now: datetime) -> FakeState:
    """Return it with a job started where a session placed it.

    Raises:
        NotFoundError: it does not wait, or there is no such host.
        RejectedError: a host takes no work, or has not enough left.
    """
    found = next((one for one in state.waiting if one.job.id == allocation.job), None)
    if found is None:
        raise NotFoundError(f"job {allocation.job} does not wait")
    hosts = {host.name: host for host in state.hosts}
    for place in allocation.hosts:
        host = hosts.get(place.name)
        if host is None:
            raise NotFoundError(f"there is no host {place.name}")
        if host.state is not HostState.OPEN:
            raise RejectedError(f"host {place.name} is {host.state}")
        for resource, amount in place.uses.items():
            left = host.total.get(resource, 0) - _used(state, place.name, resource)
            if amount > left:
                raise RejectedError(
                    f"host {place.name} has {left} {resource} left; wanted {amount}"
                )
    pending = found.job
    job = RunningJob(
        id=pending.id,
        user=pending.user,
        project=pending.project,
        queue=pending.queue,
        started=now,
        hosts=tuple(
            HostUse(name=place.name, tasks=place.tasks, uses=place.uses)
            for place in allocation.hosts
        ),
        shared={entry.name: entry.amount for entry in allocation.shared},
        exclusive=pending.exclusive,
        run_limit=pending.run_limit,
        array=pending.array,
    )
    run = FakeRun(waiting=found, job=job, ends_at=now + found.run_time)
    busy = {place.name for place in allocation.hosts}
    return state.with_(
        waiting=tuple(one for one in state.waiting if one is not found),
        running=(*state.running, run),
        hosts=tuple(
            host.model_copy(update={"idle_since": None}) if host.name in busy else host
            for host in state.hosts
        ),
    )


def _used(state: FakeState, host: str, resource: str) -> int:
    return sum(
        use.uses.get(resource, 0)
        for run in state.running
        for use in run.job.hosts
        if use.name == host
    )


# -------------------------------------------------------------------------- hosts
def with_host(state: FakeState, host: Host) -> FakeState:
    """Return it with one more host.

    Raises:
        RejectedError: a host of this name is there.
    """
    if any(one.name == host.name for one in state.hosts):
        raise RejectedError(f"host {host.name} is there already")
    return state.with_(hosts=(*state.hosts, host))


def without_host(state: FakeState, name: str) -> FakeState:
    """Return it without a host; jobs on it go back into the queue.

    Raises:
        NotFoundError: there is none.
    """
    host = host_of(state, name)
    lost = [run.job.id for run in state.running if any(use.name == name for use in run.job.hosts)]
    departed = state.departed if host.instance is None else (*state.departed, host.instance)
    return requeued(state, lost).with_(
        hosts=tuple(one for one in state.hosts if one.name != name), departed=departed
    )


def with_state(state: FakeState, name: str, host_state: HostState) -> FakeState:
    """Return it with a host opened or closed.

    Raises:
        NotFoundError: there is none.
    """
    host_of(state, name)
    return state.with_(
        hosts=tuple(
            one.model_copy(update={"state": host_state}) if one.name == name else one
            for one in state.hosts
        )
    )


def host_of(state: FakeState, name: str) -> Host:
    """Return a host.

    Raises:
        NotFoundError: there is none.
    """
    for host in state.hosts:
        if host.name == name:
            return host
    raise NotFoundError(f"there is no host {name}")


def booted(
    state: FakeState, expected: Iterable[ExpectedHost], boot_time: timedelta, now: datetime
) -> FakeState:
    """Return it with the expected hosts that have had time to boot."""
    here = {host.instance for host in state.hosts} | set(state.departed)
    names = {host.name for host in state.hosts}
    for one in expected:
        name = one.name or one.instance.replace("/", "-")
        if one.instance in here or name in names or one.since + boot_time > now:
            continue
        host = Host(
            name=name,
            attributes=dict(one.attributes),
            total=dict(one.provides),
            instance=one.instance,
            booted_at=one.since + boot_time,
            idle_since=now,
        )
        state = state.with_(hosts=(*state.hosts, host))
        names.add(name)
    return state


# ------------------------------------------------------------------------- orders
def obeyed(state: FakeState, orders: SchedulerOrders, now: datetime) -> tuple[FakeState, list[str]]:
    """Return it after orders, and what of them could not be done: the world may have moved on since."""
    problems: list[str] = []
    names = {host.name for host in state.hosts}
    busy = {use.name for run in state.running for use in run.job.hosts}
    for name in orders.close:
        if name in names:
            state = with_state(state, name, HostState.DRAINING)
    for name in orders.open:
        if name in names:
            state = with_state(state, name, HostState.OPEN)
    state = requeued(state, orders.requeue)
    for name in orders.remove:
        if name in names and name not in busy:
            state = without_host(state, name)
    for allocation in orders.start:
        try:
            state = started(state, allocation, now)
        except RejectedError as error:
            problems.append(f"job {allocation.job}: {error}")
    return state, problems
