"""What startable waiting jobs want of shared resources as a whole, and what the policy is told of a resource."""

from collections.abc import Mapping
from datetime import datetime

from xce.domain.cluster.requests import Request, reader_of
from xce.domain.formats.policy import SharedTerms
from xce.domain.formats.rest import SharedEntry
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import PendingJob, Snapshot
from xce.domain.sharing.meter import Meter, Totals


def whole_wants(snapshot: Snapshot, result: SessionResult) -> dict[str, int]:
    """Return what the jobs that count as demand want of each shared resource, also where it is free (D).

    A session says what is missing; a need is all of it. Of several alternatives of a job the largest counts.
    """
    counted = {entry.job for entry in result.pending if entry.provisioning is not None}
    if not counted or not snapshot.shared:
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


def terms_of(
    meter: Meter, totals: Totals, now: datetime, *, in_flight: int, wants: Mapping[str, int]
) -> SharedTerms:
    """Return what one policy round is told of a resource; ``in_flight``: asked and not yet granted."""
    pool, reading = meter.pool, meter.read(totals, now)
    return SharedTerms(
        name=pool.name,
        max_borrow=pool.max_borrow,
        step=pool.step,
        idle_return_after=pool.idle_return_after,
        min_hold=pool.min_hold,
        borrow_after=pool.borrow_after,
        wanted_since=meter.wanted_since,
        headroom=pool.headroom,
        spare=totals.total + in_flight - reading.occupied - wants.get(pool.name, 0),
        blind=reading.sight.blind and not pool.return_when_blind,
        over=reading.over,
    )


def terms_of_entry(entry: SharedEntry) -> SharedTerms:
    """Return what the log alone says of a resource: what the site has set, and nothing of what is in use now."""
    return SharedTerms(
        name=entry.name,
        max_borrow=entry.max_borrow,
        step=entry.step,
        idle_return_after=entry.idle_return_after,
        min_hold=entry.min_hold,
    )
