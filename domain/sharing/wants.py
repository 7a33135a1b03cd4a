"""What startable waiting jobs want of shared resources as a whole, and what the policy is told of a resource."""

from datetime import datetime

from xce.domain.cluster.requests import Request, reader_of
from xce.domain.formats.config import SharedPool
from xce.domain.formats.policy import SharedTerms
from xce.domain.formats.rest import SharedEntry
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.shared_report import SharedReport
from xce.domain.formats.snapshot import PendingJob, Snapshot
from xce.domain.sharing.meter import Meter, Totals


def whole_wants(snapshot: Snapshot, result: SessionResult) -> dict[str, int]:
    """Return what the jobs that count as demand want of each shared resource, also where it is free (D).

    A session says what is missing; a need is all of it. Of several alternatives of a job the largest counts.
    """
    if not snapshot.shared:
        return {}
    counted = {entry.job for entry in result.pending if entry.provisioning is not None}
    if not counted:
        return {}
    reader = reader_of(snapshot.settings.units, (shared.name for shared in snapshot.shared))
    wants: dict[str, int] = {}
    for job in snapshot.pending:
        if job.id in counted:
            alternatives = reader.read(job.resreq).alternatives
            for name, amount in _largest(job, alternatives).items():
                wants[name] = wants.get(name, 0) + amount
    return wants


def _largest(job: PendingJob, alternatives: tuple[tuple[Request, ...], ...]) -> dict[str, int]:
    largest: dict[str, int] = {}
    for parts in alternatives:
        amounts: dict[str, int] = {}
        for part in parts:
            tasks = part.tasks or job.tasks.min
            for name, amount in part.shared_task:
                amounts[name] = amounts.get(name, 0) + amount * tasks
            for name, amount in (*part.shared_job, *part.shared_host):
                amounts[name] = amounts.get(name, 0) + amount
        for name, amount in amounts.items():
            largest[name] = max(largest.get(name, 0), amount)
    return largest


def report_of(meter: Meter, totals: Totals, now: datetime, wanted: int) -> SharedReport:
    """Return what a scheduler says of a resource after a session."""
    drift, since = meter.drifting(totals, now)
    reading = meter.read(totals, now)
    return SharedReport(
        wanted=wanted,
        wanted_since=meter.wanted_since,
        booked=reading.booked,
        blind=reading.sight.blind and not meter.pool.return_when_blind,
        drift=drift,
        drift_since=since,
    )


def terms_of(
    pool: SharedPool, *, total: int, in_flight: int, occupied: int | None, report: SharedReport
) -> SharedTerms:
    """Return what one policy round is told of a resource, in a simulation and by a provisioner.

    Args:
        pool: what the site has set.
        total: what may be booked against.
        in_flight: asked and not yet granted.
        occupied: what nothing may fall below; None: unknown, then nothing is known to be spare.
        report: of the scheduler, after the session that the demand is of.
    """
    return SharedTerms(
        name=pool.name,
        max_borrow=pool.max_borrow,
        step=pool.step,
        idle_return_after=pool.idle_return_after,
        min_hold=pool.min_hold,
        borrow_after=pool.borrow_after,
        wanted_since=report.wanted_since,
        headroom=pool.headroom,
        spare=None if occupied is None else total + in_flight - occupied - report.wanted,
        blind=report.blind,
        over=0 if occupied is None else max(0, occupied - total),
        free=None if occupied is None else max(0, total - occupied),
    )


def terms_of_entry(entry: SharedEntry, pool: SharedPool | None) -> SharedTerms:
    """Return the same from what a controller shows; ``pool`` of its configuration, None: it names no such resource.

    Numbers that the log has win over the configuration: they are what the controller checks.
    """
    return terms_of(
        pool_of(entry, pool),
        total=entry.total,
        in_flight=entry.in_flight,
        occupied=entry.occupied,
        report=entry.report or SharedReport(),
    )


def pool_of(entry: SharedEntry, pool: SharedPool | None) -> SharedPool:
    """Return the settings of a resource: those of the log, and what only the configuration says."""
    logged = SharedPool(
        name=entry.name,
        owned=entry.owned,
        provider=entry.provider,
        max_borrow=entry.max_borrow,
        step=entry.step,
        idle_return_after=entry.idle_return_after,
        min_hold=entry.min_hold,
    )
    if pool is None:
        return logged
    return pool.model_copy(
        update={field: getattr(logged, field) for field in logged.model_fields_set}
    )
