"""What a run amounts to: told of jobs and sessions while it goes on, and of the log at the end.

Jobs, waiting times and use come from what the driver tells; everything that costs comes from the log (``history``).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Final

from xce.domain.events.recorded import Head
from xce.domain.formats.config import SimulationConfig
from xce.domain.formats.provider import Kind
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.simulation import (
    JobCounts,
    JobsWhy,
    LogEnd,
    MappingNote,
    PartitionUse,
    RequestCounts,
    ReturnCounts,
    SharedUse,
    SimulationReport,
    TemplateUse,
    WaitingTimes,
)
from xce.domain.formats.snapshot import Host, Snapshot
from xce.domain.scheduling.outcome import Outcome
from xce.replay.happenings import Watcher
from xce.replay.held_back import HeldBack
from xce.replay.history import GrantUse, History, HostUse
from xce.replay.needed import Needed
from xce.replay.rounding import money, ratio, rounded
from xce.replay.timeline import Timeline, TimelineBuilder
from xce.replay.workloads.workload import Workload, WorkloadJob

_SECOND: Final = timedelta(seconds=1)
_SLOTS: Final = "slots"

# Names of the series; those of a shared resource have its name in front.
NEEDED: Final = "slots needed"
RUNNING: Final = "slots in use"
OWN: Final = "own slots"
PROVISIONED: Final = "provisioned slots"
IN_FLIGHT: Final = "hosts in flight"
WAITING_JOBS: Final = "jobs waiting"


def token_series(resource: str, what: str) -> str:
    """Return the name of a series of a shared resource; ``what``: owned, borrowed, in use, wanted."""
    return f"{resource} {what}"


@dataclass(frozen=True, slots=True)
class _Placed:
    """Where a job runs, and since when."""

    since: datetime
    slots: tuple[tuple[str, int], ...]
    shared: tuple[tuple[str, int], ...]


class Statistics:
    """Collects while a simulation runs; ``summary`` and ``timeline`` say what was collected."""

    def __init__(self, config: SimulationConfig, workload: Workload) -> None:
        self._config = config
        self._workload = workload
        self._own = {host.name for host in config.cluster.all_hosts()}
        self._own_slots = sum(host.total.get(_SLOTS, 0) for host in config.cluster.all_hosts())
        self._waits: list[int] = []
        self._ended: set[str] = set()
        self._begun: set[str] = set()
        self._placed: dict[str, _Placed] = {}
        self._busy: dict[str, int] = {}
        self._slots_in_use = 0
        self._in_use: dict[str, int] = {pool.name: 0 for pool in config.cluster.shared}
        self._peak_in_use = dict(self._in_use)
        self._peak_borrowed = dict(self._in_use)
        self._hosts: tuple[tuple[Host, ...], int] = ((), 0)
        self._needed = Needed()
        self._last: Outcome | None = None
        self._sessions = 0
        self._builder = TimelineBuilder()
        self._wait_points: list[tuple[datetime, int]] = []
        self._held_back = HeldBack()

    def watchers(self) -> tuple[Watcher, ...]:
        """Return all that has to be told, for a world; of rounds only where there is somebody to ask."""
        return (self, self._held_back) if self._config.providers else (self,)

    # --------------------------------------------------------- told by the driver
    def started(self, job: WorkloadJob, at: datetime) -> None:
        """A job starts; the session that started it is told at the same time."""
        if job.id in self._begun:
            return
        self._begun.add(job.id)
        wait = (at - self._workload.start) // _SECOND - job.submit
        self._waits.append(wait)
        self._wait_points.append((self._workload.start + job.submit * _SECOND, wait))

    def ended(self, job: WorkloadJob, at: datetime) -> None:
        """A job ends, in the second it started or later."""
        self._ended.add(job.id)
        self.stopped(job, at)

    def stopped(self, job: WorkloadJob, at: datetime) -> None:
        """See ``StopWatcher.stopped``: its resources are free."""
        placed = self._placed.pop(job.id, None)
        if placed is None:
            return  # no session placed it: the batch system did by itself
        seconds = (at - placed.since) // _SECOND
        for host, slots in placed.slots:
            self._busy[host] = self._busy.get(host, 0) + slots * seconds
            self._slots_in_use -= slots
        for name, amount in placed.shared:
            self._in_use[name] -= amount

    def session(self, snapshot: Snapshot, result: SessionResult) -> None:
        """See ``Watcher.session``."""
        self.outcome(snapshot, Outcome.of(result))

    def outcome(self, snapshot: Snapshot, outcome: Outcome) -> None:
        """A session is over; its allocations start now."""
        self._sessions += 1
        self._last = outcome
        starting: set[str] = set()
        for allocation in outcome.allocations:
            starting.add(allocation.job)
            placed = _Placed(
                snapshot.now,
                tuple((use.name, use.uses.get(_SLOTS, 0)) for use in allocation.hosts),
                tuple((entry.name, entry.amount) for entry in allocation.shared),
            )
            self._placed[allocation.job] = placed
            self._slots_in_use += sum(slots for _, slots in placed.slots)
            for name, amount in placed.shared:
                self._in_use[name] += amount
                self._peak_in_use[name] = max(self._peak_in_use[name], self._in_use[name])
        self._sample(snapshot, outcome, starting)

    def _sample(self, snapshot: Snapshot, outcome: Outcome, starting: set[str]) -> None:
        self._needed.see(snapshot.pending)
        self._needed.start(starting)
        values: dict[str, int] = {
            NEEDED: self._slots_in_use + self._needed.tasks,
            RUNNING: self._slots_in_use,
            OWN: self._own_slots,
            PROVISIONED: self._provisioned(snapshot.hosts),
            IN_FLIGHT: len(snapshot.catalog.in_flight.hosts),
            WAITING_JOBS: len(snapshot.pending) - len(starting),
        }
        wanted = {entry.name: entry.wanted for entry in outcome.countable}
        for shared in snapshot.shared:
            values[token_series(shared.name, "owned")] = shared.total - shared.borrowed
            values[token_series(shared.name, "borrowed")] = shared.borrowed
            values[token_series(shared.name, "in use")] = self._in_use[shared.name]
            values[token_series(shared.name, "wanted")] = wanted.get(shared.name, 0)
            self._peak_borrowed[shared.name] = max(
                self._peak_borrowed[shared.name], shared.borrowed
            )
        self._builder.add(snapshot.now, values)

    def _provisioned(self, hosts: tuple[Host, ...]) -> int:
        if hosts is not self._hosts[0]:
            slots = sum(host.total.get(_SLOTS, 0) for host in hosts if host.instance is not None)
            self._hosts = (hosts, slots)
        return self._hosts[1]

    # ------------------------------------------------------------------ afterwards
    def timeline(self) -> Timeline:
        """Return demand, supply and tokens at every session."""
        return self._builder.build()

    def waits(self) -> tuple[tuple[datetime, int], ...]:
        """Return when each started job was submitted and how many seconds it waited, by submission."""
        return tuple(sorted(self._wait_points))

    def summary(self, history: History, *, end: datetime, log: Head) -> SimulationReport:
        """Return the run in numbers; ``history`` is of the whole log, ``end`` the time of the last happening."""
        start = (
            self._workload.start
            + min((job.submit for job in self._workload.jobs), default=0) * _SECOND
        )
        templates = tuple(self._templates(history, end))
        shared = tuple(self._shared(history, end))
        costs = [*(use.cost for use in templates), *(use.cost for use in shared)]
        return SimulationReport(
            source=self._workload.source,
            seed=self._config.driver.seed,
            started=start,
            ended=end,
            sessions=self._sessions,
            jobs=self._jobs(),
            waiting=waiting_times(self._waits),
            own=self._partition((end - start) // _SECOND),
            templates=templates,
            shared=shared,
            requests=_requests(history),
            returns=_returns(history),
            rounds=self._held_back.counts(),
            cost=None if None in costs else sum((c for c in costs if c is not None), Decimal(0)),
            log=LogEnd(position=log.position, digest=log.digest.hex()),
        )

    def _jobs(self) -> JobCounts:
        workload = self._workload
        return JobCounts(
            read=workload.records,
            submitted=len(workload.jobs),
            started=len(self._waits),
            ended=len(self._ended),
            left_out=tuple(JobsWhy(why=entry.why, jobs=entry.jobs) for entry in workload.left_out),
            not_ended=self._not_ended(),
            notes=tuple(
                MappingNote(what=note.what, jobs=note.jobs, first=note.first)
                for note in workload.notes
            ),
        )

    def _not_ended(self) -> tuple[JobsWhy, ...]:
        reasons: dict[str, str] = {}
        if self._last is not None:
            last = self._last.result
            reasons = {entry.job: f"waits: {entry.reason.value}" for entry in last.pending}
            reasons |= {entry.job: entry.why for entry in last.demand.not_counted}
            reasons |= {entry.job: f"impossible: {entry.why}" for entry in last.demand.impossible}
        by_why: dict[str, list[str]] = {}
        for job in self._workload.jobs:
            if job.id not in self._ended:
                why = "runs" if job.id in self._placed else reasons.get(job.id, "not submitted")
                by_why.setdefault(why, []).append(job.id)
        return tuple(JobsWhy(why=why, jobs=tuple(jobs)) for why, jobs in sorted(by_why.items()))

    def _partition(self, seconds: int) -> PartitionUse:
        busy = sum(amount for host, amount in self._busy.items() if host in self._own)
        total = self._own_slots * seconds
        return PartitionUse(
            hosts=len(self._own),
            slots=self._own_slots,
            slot_seconds=total,
            busy_slot_seconds=busy,
            utilisation=ratio(busy, total),
        )

    def _templates(self, history: History, end: datetime) -> Iterable[TemplateUse]:
        grouped: dict[tuple[str, str, Decimal | None], list[HostUse]] = {}
        for use in history.hosts.values():
            grouped.setdefault((use.template, use.provider, use.price_per_hour), []).append(use)
        for template, provider, price in sorted(grouped, key=_template_key):
            uses = grouped[template, provider, price]
            slot_seconds = sum(
                use.slots * (((use.until or end) - use.joined_at) // _SECOND)
                for use in uses
                if use.joined_at is not None
            )
            busy = sum(self._busy.get(use.host, 0) for use in uses if use.host is not None)
            yield TemplateUse(
                template=template,
                provider=provider,
                price_per_hour=price,
                hosts=len(uses),
                joined=sum(use.joined_at is not None for use in uses),
                host_seconds=sum(use.used(end) // _SECOND for use in uses),
                billed_seconds=sum(use.billed_seconds(end) for use in uses),
                cost=money(use.cost(end) for use in uses),
                slot_seconds=slot_seconds,
                busy_slot_seconds=busy,
                utilisation=ratio(busy, slot_seconds),
                still_there=sum(use.until is None for use in uses),
            )

    def _shared(self, history: History, end: datetime) -> Iterable[SharedUse]:
        for pool in self._config.cluster.shared:
            grants = [use for use in history.grants.values() if use.resource == pool.name]
            yield SharedUse(
                name=pool.name,
                owned=history.owned.get(pool.name, pool.owned),
                peak_in_use=self._peak_in_use[pool.name],
                peak_borrowed=self._peak_borrowed[pool.name],
                borrowed=sum(use.amount for use in grants),
                returned=sum(use.returned for use in grants),
                lost=sum(use.lost for use in grants),
                held_at_end=sum(use.held for use in grants),
                why_held=tuple(_why_held(use, end) for use in grants if use.held),
                unit_seconds=sum(use.unit_seconds(end) for use in grants),
                cost=money(use.cost(end) for use in grants),
            )


def waiting_times(waits: Iterable[int]) -> WaitingTimes:
    """Return the distribution of waiting times, in seconds."""
    ordered = sorted(waits)
    count = len(ordered)
    if not count:
        return WaitingTimes(jobs=0)
    middle = Fraction(ordered[(count - 1) // 2] + ordered[count // 2], 2)
    return WaitingTimes(
        jobs=count,
        mean=rounded(Fraction(sum(ordered), count), 3),
        median=rounded(middle, 1),
        p95=ordered[-(-95 * count // 100) - 1],
        max=ordered[-1],
    )


def _template_key(key: tuple[str, str, Decimal | None]) -> tuple[str, str, bool, Decimal]:
    template, provider, price = key
    return template, provider, price is None, price or Decimal(0)


def _why_held(use: GrantUse, end: datetime) -> str:
    if use.pending:
        return f"{use.held} of {use.grant}: going back"
    if use.hold_until is not None and use.hold_until > end:
        return f"{use.held} of {use.grant}: to be held until {use.hold_until:%Y-%m-%dT%H:%M:%SZ}"
    return f"{use.held} of {use.grant}: not given back before the run ended"


def _requests(history: History) -> RequestCounts:
    hosts = [use for use in history.requests.values() if use.kind is Kind.HOST]
    units = [use for use in history.requests.values() if use.kind is Kind.COUNTABLE]
    outcomes: dict[str, int] = {}
    for use in history.requests.values():
        outcomes[use.outcome] = outcomes.get(use.outcome, 0) + 1
    return RequestCounts(
        hosts_asked=sum(use.amount for use in hosts),
        hosts_granted=sum(use.granted for use in hosts),
        units_asked=sum(use.amount for use in units),
        units_granted=sum(use.granted for use in units),
        requests=len(history.requests),
        by_outcome=dict(sorted(outcomes.items())),
    )


def _returns(history: History) -> ReturnCounts:
    uses = history.returns.values()
    return ReturnCounts(
        returns=len(uses),
        hosts_returned=sum(
            use.until is not None and use.trouble is None for use in history.hosts.values()
        ),
        units_returned=sum(use.returned for use in history.grants.values()),
        refused=sum(use.outcome.startswith("refused") for use in uses),
        open=sum(use.ended_at is None for use in uses),
    )
