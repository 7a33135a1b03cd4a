"""The live driver without I/O: what the batch system shows and what the controller knows make a snapshot, and orders to both.

Supply, totals and hosts of one snapshot come from one log position (D12): a host that the log does not know as joined is still in
flight, so it is left out until its join is recorded; a host that is drained takes no work, whatever the batch system says of it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from xce.domain.errors import InputError
from xce.domain.formats.config import SharedPool
from xce.domain.formats.inventory import GrantEntry, InstanceEntry
from xce.domain.formats.rest import DrainEntry, JoinReport, Observations, SharedEntry, Supply
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.shared_report import SharedReport
from xce.domain.formats.snapshot import Host, HostState, RunningJob, Shared, Snapshot
from xce.domain.ports import ExpectedHost, SchedulerOrders
from xce.domain.provisioning.drain import AtDeadline, DrainState
from xce.domain.provisioning.instance import InstanceState
from xce.domain.sharing.meter import Meter, Totals
from xce.domain.sharing.recall import recalled_by, recalled_of
from xce.domain.sharing.wants import pool_of, report_of, whole_wants

#: Where a session says that a requirement is wrong.
_RESREQ: Final = re.compile(r"pending\[(\d+)\]\.resreq", re.ASCII)
_IN_CLUSTER = frozenset({InstanceState.JOINED, InstanceState.DRAINING, InstanceState.RETURNING})
#: A host that passed its health check counts as open for so long, even where the batch system shows it as closed still.
OPENS_WITHIN: Final = timedelta(minutes=5)
#: A host of these that never joined is in the cluster until it is gone.
_GOING = frozenset({InstanceState.NEVER_JOINED, InstanceState.RETURNING})


@dataclass(frozen=True, slots=True)
class Look:
    """What runs on a host that is closed."""

    host: str
    jobs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reports:
    """What the controller has to be told."""

    joins: tuple[JoinReport, ...] = ()
    looks: tuple[Look, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.joins or self.looks)


def unreadable(snapshot: Snapshot, error: InputError) -> str:
    """Return which job keeps a session from being held, with its requirement, for people; of several the first."""
    first = error.problems[0]
    found = _RESREQ.fullmatch(first.path)
    if found is None:
        return str(error).splitlines()[0]
    job = snapshot.pending[int(found[1])]
    more = len(error.problems) - 1
    column = "" if first.column is None else f"column {first.column}: "
    others = f"; and of {more} more" if more else ""
    return f"the requirement of job {job.id} cannot be read, {job.resreq!r}: {column}{first.message}{others}"


@dataclass(slots=True)
class SchedulerMemory:
    """What one life of the driver remembers: nothing that must survive it."""

    idle_since: dict[str, datetime] = field(default_factory=dict[str, datetime])
    meters: dict[str, Meter] = field(default_factory=dict[str, Meter])
    totals: dict[str, Totals] = field(default_factory=dict[str, Totals])
    #: What the batch system itself shows as used by others; None: unknown.
    elsewhere: dict[str, int | None] = field(default_factory=dict[str, "int | None"])
    #: What waiting jobs that could start want, by the last session.
    wants: dict[str, int] = field(default_factory=dict[str, int])

    def look(self, view: Snapshot, supply: Supply, seen: Observations | None) -> Snapshot:
        """See it, and return the snapshot of the next session."""
        self.see(view, supply, max(view.now, supply.now), seen)
        return merged(view, supply, self)

    def see(
        self, view: Snapshot, supply: Supply, now: datetime, seen: Observations | None = None
    ) -> None:
        """Note since when hosts have been without a job, as far as the batch system does not say, and what is booked and observed."""
        busy = set(jobs_on(view.running))
        idle = {host.name for host in view.hosts if host.name not in busy}
        self.idle_since = {host: since for host, since in self.idle_since.items() if host in idle}
        for host in idle:
            self.idle_since.setdefault(host, now)
        pools = {} if seen is None else {pool.name: pool for pool in seen.pools}
        self.meters = {
            entry.name: self._meter(pools.get(entry.name) or pool_of(entry, None))
            for entry in supply.shared
        }
        newest = newest_grants(supply.inventory.grants)
        self.totals = {
            entry.name: Totals(entry.owned, entry.borrowed, entry.returning, newest.get(entry.name))
            for entry in supply.shared
        }
        self.elsewhere = {entry.name: entry.used_elsewhere for entry in view.shared}
        recalls = recalled_by(
            (one.description for one in supply.providers), supply.inventory.grants
        )
        for name, meter in self.meters.items():
            meter.sync(_bookings(view, name, now), now)
            meter.recall(recalled_of(recalls, name))
            for one in () if seen is None else seen.observations:
                if one.resource == name and one.source == meter.pool.observer:
                    meter.observe(one)

    def _meter(self, pool: SharedPool) -> Meter:
        """Return the meter of a resource; a new one where the configuration changed, as nothing of the old one can be relied on then."""
        known = self.meters.get(pool.name)
        return known if known is not None and known.pool == pool else Meter(pool)

    def note_needs(self, snapshot: Snapshot, result: SessionResult) -> None:
        """Note what is needed of each shared resource from this session on."""
        for allocation in result.allocations:
            for entry in allocation.shared:
                if entry.name in self.meters:
                    self.meters[entry.name].book(allocation.job, entry.amount, snapshot.now)
        self.wants = whole_wants(snapshot, result)
        for name, meter in self.meters.items():
            meter.note(self.wants.get(name, 0), self.totals[name], snapshot.now)

    def shared_reports(self, now: datetime) -> dict[str, SharedReport]:
        """Return what the controller is told of each shared resource, after ``note_needs``."""
        return {
            name: report_of(meter, self.totals[name], now, self.wants.get(name, 0))
            for name, meter in self.meters.items()
        }

    def occupied(self, snapshot: Snapshot, result: SessionResult) -> dict[str, int | None]:
        """Return what nothing may fall below, after ``note_needs``; None: unknown.

        What may not be booked for now, such as a part that is recalled, is not occupied.
        """
        used = in_use(snapshot.running, result)
        found: dict[str, int | None] = {}
        for name, meter in self.meters.items():
            elsewhere = self.elsewhere.get(name, 0)
            occupied = meter.read(self.totals[name], snapshot.now).occupied
            found[name] = (
                None if elsewhere is None else max(used.get(name, 0) + elsewhere, occupied)
            )
        return found


def newest_grants(grants: Iterable[GrantEntry]) -> dict[str, datetime]:
    """Return when the newest grant of each resource came."""
    newest: dict[str, datetime] = {}
    for grant in grants:
        at = newest.get(grant.resource)
        newest[grant.resource] = grant.granted_at if at is None else max(at, grant.granted_at)
    return newest


def _bookings(view: Snapshot, name: str, now: datetime) -> dict[str, tuple[int, datetime]]:
    return {
        job.id: (job.shared[name], job.started or now) for job in view.running if name in job.shared
    }


# --------------------------------------------------------------------- what runs
def jobs_on(running: Iterable[RunningJob]) -> dict[str, list[str]]:
    """Return the jobs of each host that has any."""
    found: dict[str, list[str]] = {}
    for job in running:
        for use in job.hosts:
            found.setdefault(use.name, []).append(job.id)
    return found


def in_use(running: Iterable[RunningJob], result: SessionResult | None) -> dict[str, int]:
    """Return what running jobs, and those that start now, hold of shared resources."""
    used: dict[str, int] = {}
    for job in running:
        for name, amount in job.shared.items():
            used[name] = used.get(name, 0) + amount
    for allocation in () if result is None else result.allocations:
        for entry in allocation.shared:
            used[entry.name] = used.get(entry.name, 0) + entry.amount
    return used


# ----------------------------------------------------------- reports to the controller
def reports(view: Snapshot, supply: Supply) -> Reports:
    """Return the joins and looks that the controller does not know of yet."""
    return Reports(tuple(_joins(view, supply)), tuple(_looks(view, supply)))


def _joins(view: Snapshot, supply: Supply) -> Iterator[JoinReport]:
    jobs = jobs_on(view.running)
    for host, entry in _there(view, supply):
        busy = host.name in jobs
        if (
            not busy
            and _is_checked(entry, supply)
            and (
                # It is closed before it is checked: a host that is found sick must not have got a job meanwhile.
                host.state is HostState.OPEN
                or (entry.reported_as, entry.booted_at) == (host.name, host.booted_at)
            )
        ):
            continue
        yield JoinReport(
            host=host.name,
            booted_at=host.booted_at or view.now,
            instance=entry.id if host.instance is not None else None,
            attributes=dict(host.attributes),
            total=dict(host.total),
            busy=busy,
        )


def _is_checked(entry: InstanceEntry, supply: Supply) -> bool:
    """Return whether an instance opens only after a health check."""
    return any(
        one.description.checks(entry.template)
        for one in supply.providers
        if one.name == entry.provider
    )


def _there(view: Snapshot, supply: Supply) -> Iterator[tuple[Host, InstanceEntry]]:
    """Yield the hosts that are up of instances that are waited for."""
    starting = [e for e in supply.inventory.instances if e.state is InstanceState.STARTING]
    if not starting:
        return
    named = {host.id: host.expected_name for host in supply.catalog.in_flight.hosts}
    by_id = {entry.id: entry for entry in starting}
    by_machine = _unique((name, entry) for entry in starting for name in _machine_names(entry))
    by_name = _unique((named.get(entry.id), entry) for entry in starting)
    known = {entry.host for entry in supply.inventory.instances if entry.state in _IN_CLUSTER}
    for host in view.hosts:
        if host.state is HostState.DOWN:
            continue
        entry: InstanceEntry | None = None
        if host.instance is not None:
            entry = by_id.get(host.instance) or by_machine.get(host.instance)
        elif host.booted_at is not None and host.name not in known:
            entry = by_name.get(host.name)
        if entry is not None:
            yield host, entry


def _shut(view: Snapshot, supply: Supply) -> set[str]:
    """Return the hosts that take no work before a health check, or ever after one that did not pass."""
    jobs = jobs_on(view.running)
    waiting = {
        host.name
        for host, entry in _there(view, supply)
        if host.name not in jobs and _is_checked(entry, supply)
    }
    sick = {
        entry.reported_as
        for entry in supply.inventory.instances
        if entry.reported_as is not None and entry.host is None and entry.state in _GOING
    }
    joined = {entry.host for entry in supply.inventory.instances if entry.state in _IN_CLUSTER}
    return waiting | (sick - joined)


def _machine_names(entry: InstanceEntry) -> tuple[str, ...]:
    """Return the names by which a host may know itself: the provider's id, with and without its provider.

    They are not our id where the machine was lent before under the same id.
    """
    return () if entry.machine is None else (entry.machine, f"{entry.provider}/{entry.machine}")


def _unique(pairs: Iterable[tuple[str | None, InstanceEntry]]) -> dict[str, InstanceEntry]:
    """Return what a name means; one that could mean two means nothing."""
    found: dict[str, list[InstanceEntry]] = {}
    for name, entry in pairs:
        if name is not None:
            found.setdefault(name, []).append(entry)
    return {name: entries[0] for name, entries in found.items() if len(entries) == 1}


def _looks(view: Snapshot, supply: Supply) -> Iterable[Look]:
    jobs = jobs_on(view.running)
    drains = {drain.host: drain for drain in supply.drains}
    draining = _draining(supply)
    for host in view.hosts:
        if host.state is HostState.OPEN or host.name not in draining:
            continue
        found = tuple(jobs.get(host.name, ()))
        if _is_news(drains.get(host.name), found, supply.now):
            yield Look(host.name, found)


def _is_news(drain: DrainEntry | None, jobs: tuple[str, ...], now: datetime) -> bool:
    if drain is None or drain.state is DrainState.ASKED:
        return True
    if drain.state is DrainState.EMPTY:
        return bool(jobs)
    if not jobs:
        return True
    late = drain.deadline is not None and drain.deadline <= now
    return drain.state is DrainState.CLOSED and (late or drain.yields)


def _draining(supply: Supply) -> set[str]:
    """Return the hosts that take no new work, by the log."""
    hosts = {drain.host for drain in supply.drains}
    return hosts | {
        entry.host
        for entry in supply.inventory.instances
        if entry.host is not None
        and entry.state in (InstanceState.DRAINING, InstanceState.RETURNING)
    }


# ------------------------------------------------------------------- the snapshot
def merged(view: Snapshot, supply: Supply, memory: SchedulerMemory) -> Snapshot:
    """Return what a session sees: jobs and rules of the batch system, supply of the log at one position."""
    now = max(view.now, supply.now)
    jobs = jobs_on(view.running)
    draining = _draining(supply)
    instances = {
        entry.host: entry
        for entry in supply.inventory.instances
        if entry.host is not None and entry.state in _IN_CLUSTER
    }
    hosts: list[Host] = []
    for host in view.hosts:
        entry = instances.get(host.name)
        is_busy = host.name in jobs
        if entry is None and not is_busy and _is_elsewhere(host, supply):
            continue
        state = host.state
        if host.name in draining and state is HostState.OPEN:
            state = HostState.DRAINING
        elif state is HostState.DRAINING and host.name not in draining and _opens(entry, now):
            state = HostState.OPEN
        elif entry is None and host.instance is not None and state is HostState.OPEN:
            state = HostState.CLOSED  # of an instance that is gone, or not recorded as joined
        idle = host.idle_since or memory.idle_since.get(host.name)
        hosts.append(
            host.model_copy(
                update={
                    "state": state,
                    "instance": None if entry is None else entry.id,
                    "idle_since": None if is_busy or entry is None else idle,
                }
            )
        )
    return view.model_copy(
        update={
            "now": now,
            "position": supply.position,
            "hosts": tuple(hosts),
            "shared": _shared(view, supply, memory, now),
            "catalog": supply.catalog,
        }
    )


def _opens(entry: InstanceEntry | None, now: datetime) -> bool:
    """Return whether a host has just passed its check, and is told to open in this round: it is no longer in flight, so it is supply."""
    return (
        entry is not None
        and entry.state is InstanceState.JOINED
        and entry.reported_as is not None
        and entry.joined_at is not None
        and now - entry.joined_at <= OPENS_WITHIN
    )


def _is_elsewhere(host: Host, supply: Supply) -> bool:
    """Return whether the log has a host as in flight, or as gone: then it is no supply of this snapshot."""
    if host.instance is not None:
        return True
    names = {one.expected_name for one in supply.catalog.in_flight.hosts}
    return host.booted_at is not None and host.name in names


def _shared(
    view: Snapshot, supply: Supply, memory: SchedulerMemory, now: datetime
) -> tuple[Shared, ...]:
    seen = {entry.name: entry for entry in view.shared}
    declared = {entry.name for entry in supply.shared}
    others = [entry for entry in view.shared if entry.name not in declared]
    return (*(_of_log(entry, seen, memory, now) for entry in supply.shared), *others)


def _of_log(
    entry: SharedEntry, seen: Mapping[str, Shared], memory: SchedulerMemory, now: datetime
) -> Shared:
    known = seen.get(entry.name)
    meter = memory.meters.get(entry.name)
    elsewhere: int | None = 0 if known is None else known.used_elsewhere
    peak: int | None = None
    if meter is not None:
        reading = meter.read(memory.totals[entry.name], now)
        if elsewhere is not None:
            elsewhere = max(elsewhere, reading.used_elsewhere)
        if not reading.sight.blind or meter.pool.return_when_blind:
            peak = meter.peak(now)
    return Shared(
        name=entry.name,
        total=entry.total,
        used_elsewhere=elsewhere,
        owned=entry.owned,
        borrowed=entry.borrowed,
        peak_need=peak,
    )


# ------------------------------------------------------- orders to the batch system
def orders(
    view: Snapshot, supply: Supply, result: SessionResult, gone: Iterable[str]
) -> SchedulerOrders:
    """Return what the batch system is to do after a session.

    Args:
        view: what it showed.
        supply: what the log says, at the position of the session.
        result: of the session.
        gone: instances that the log knows to be gone.
    """
    closed = _draining(supply) | _shut(view, supply)
    jobs = jobs_on(view.running)
    over = set(gone)
    joined = {entry.host for entry in supply.inventory.instances if entry.state in _IN_CLUSTER}
    requeue = [
        job
        for drain in supply.drains
        if drain.state is DrainState.OVERDUE and drain.at_deadline is AtDeadline.REQUEUE
        for job in jobs.get(drain.host, ())
    ]
    return SchedulerOrders(
        position=result.position,
        close=tuple(h.name for h in view.hosts if h.name in closed and h.state is HostState.OPEN),
        open=tuple(
            h.name for h in view.hosts if h.state is HostState.DRAINING and h.name not in closed
        ),
        remove=tuple(
            h.name
            for h in view.hosts
            if h.instance in over and h.name not in jobs and h.name not in joined
        ),
        requeue=tuple(dict.fromkeys(requeue)),
        start=result.allocations,
        expected=_expected(supply),
    )


def departed(view: Snapshot, supply: Supply) -> list[str]:
    """Return the instances that hosts name and the inventory does not have: gone, or never ours."""
    known = {entry.id for entry in supply.inventory.instances}
    machines = {name for entry in supply.inventory.instances for name in _machine_names(entry)}
    return [
        host.instance
        for host in view.hosts
        if host.instance is not None and host.instance not in known | machines
    ]


def _expected(supply: Supply) -> tuple[ExpectedHost, ...]:
    in_flight = {host.id: host for host in supply.catalog.in_flight.hosts}
    templates = {template.id: template for template in supply.catalog.templates}
    found: list[ExpectedHost] = []
    for entry in supply.inventory.instances:
        if entry.state is not InstanceState.STARTING:
            continue
        host = in_flight.get(entry.id)
        # A template that is offered at several prices has a line of the catalog for each.
        template = templates.get(entry.template if host is None else host.template)
        if template is not None:
            found.append(
                ExpectedHost(
                    instance=entry.id,
                    machine=entry.machine,
                    name=None if host is None else host.expected_name,
                    template=entry.template,
                    since=entry.granted_at,
                    attributes=dict(template.attributes),
                    provides=dict(template.provides),
                )
            )
    return tuple(found)
