"""What people see of an elastic resource: one line with all numbers, and why a grant does not go back now.

Unknown is None in a row and ``-`` in a line, and never 0.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from xce.domain.formats.config import SharedPool
from xce.domain.formats.inventory import GrantEntry, RequestEntry
from xce.domain.formats.observation import Observation
from xce.domain.formats.rest import Observations, SharedEntry
from xce.domain.policy import facts
from xce.domain.provisioning.grant import GrantState
from xce.domain.sharing.drift import drift_alert, drift_text
from xce.domain.sharing.observed import Observed, Sight, ours_of

HEADINGS: Final = (
    "RESOURCE", "TOTAL", "OWNED", "BORROWED", "IN-USE", "BOOKED", "OBSERVED", "UNBOOKED", "FREE", "NOTE",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SharedRow:
    """One resource, every number by itself.

    Attributes:
        asked: on its way to us.
        in_use: the larger of booked and observed, so that nothing counts twice.
        booked: of jobs; None: the scheduler did not say.
        observed: what the server sees that can be ours; None: nobody looks, or nobody has seen anything.
        age_s: seconds since that was seen.
        unbooked: seen and not booked.
        recalled: what its lenders want back.
    """

    resource: str
    total: int
    owned: int
    borrowed: int
    asked: int
    returning: int
    in_use: int | None
    booked: int | None
    observed: int | None
    age_s: float | None
    sight: Sight
    unbooked: int | None
    free: int | None
    over: int
    recalled: int
    notes: tuple[str, ...]

    def cells(self) -> tuple[str, ...]:
        """Return the row as texts, below ``HEADINGS``."""
        borrowed = f"{self.borrowed} (+{self.asked} asked)" if self.asked else str(self.borrowed)
        return (
            self.resource,
            str(self.total),
            str(self.owned),
            borrowed,
            _known(self.in_use),
            _known(self.booked),
            self._observed(),
            _known(self.unbooked) if self.sight is Sight.FRESH else "-",
            _known(self.free),
            "; ".join(self.notes),
        )

    def _observed(self) -> str:
        if self.observed is None or self.age_s is None:
            return "-"
        stale = "" if self.sight is Sight.FRESH else f", {self.sight.value}"
        return f"{self.observed} ({_age(self.age_s)}{stale})"


def shared_rows(
    entries: Iterable[SharedEntry],
    seen: Observations,
    now: datetime,
    *,
    booked: Mapping[str, int] | None = None,
    recalled: Mapping[str, int] | None = None,
) -> list[SharedRow]:
    """Return one row for each resource; ``booked``: what jobs hold, None: not known; ``recalled``: what lenders want back."""
    pools = {pool.name: pool for pool in seen.pools}
    return [
        _row(
            entry,
            pools.get(entry.name),
            [one for one in seen.observations if one.resource == entry.name],
            now,
            None if booked is None else booked.get(entry.name, 0),
            (recalled or {}).get(entry.name, 0),
        )
        for entry in entries
    ]


def _row(
    entry: SharedEntry,
    pool: SharedPool | None,
    observations: list[Observation],
    now: datetime,
    booked: int | None,
    recalled: int,
) -> SharedRow:
    sight, observed, age = _seen(entry, pool, observations, now)
    known = [number for number in (booked, observed) if number is not None]
    in_use = max(known) if known else entry.occupied
    occupied = [number for number in (in_use, entry.occupied) if number is not None]
    over = max(0, max(occupied, default=0) - entry.total)
    drift = None if observed is None or booked is None else observed - booked
    return SharedRow(
        resource=entry.name,
        total=entry.total,
        owned=entry.owned,
        borrowed=entry.borrowed,
        asked=entry.in_flight,
        returning=entry.returning,
        in_use=in_use,
        booked=booked,
        observed=observed,
        age_s=None if age is None else age.total_seconds(),
        sight=sight,
        unbooked=None if drift is None else max(0, drift),
        free=max(0, entry.total - max(occupied)) if occupied else None,
        over=over,
        recalled=recalled,
        notes=(
            *_notes(entry, sight, over, drift),
            *([f"{recalled} recalled"] if recalled else []),
            *_alerts(entry, pool, now),
        ),
    )


def _seen(
    entry: SharedEntry, pool: SharedPool | None, observations: list[Observation], now: datetime
) -> tuple[Sight, int | None, timedelta | None]:
    if pool is None or pool.observer is None:
        return Sight.NONE, None, None
    observed = Observed(pool.time_to_live)
    for one in observations:
        if one.source == pool.observer:
            observed.take(one)
    number = observed.in_use()
    if number is not None:
        number = ours_of(
            number,
            pool.observation_scope,
            pool.pool_size,
            total=entry.total,
            returning=entry.returning,
        )
    return observed.sight(now), number, observed.age(now)


def _notes(entry: SharedEntry, sight: Sight, over: int, drift: int | None) -> Iterable[str]:
    if over:
        yield f"over {over}"
    match sight:
        case Sight.STALE:
            yield "observation stale"
        case Sight.PARTIAL:
            yield "observation partial"
        case Sight.NEVER:
            yield "never observed"
        case Sight.NONE | Sight.FRESH:
            pass
    if entry.occupied is None:
        yield "use unknown"
    if drift is not None and drift < 0:
        yield f"{-drift} booked and not checked out"
    if entry.returning:
        yield f"{entry.returning} going back"


def _alerts(entry: SharedEntry, pool: SharedPool | None, now: datetime) -> Iterable[str]:
    drift = drift_alert(entry.report, pool, now)
    if drift is not None and entry.report is not None and entry.report.drift_since is not None:
        yield f"ALERT: {drift_text(drift)} since {_clock(entry.report.drift_since)}"


def why_it_stays(
    grant: GrantEntry,
    row: SharedRow,
    entry: SharedEntry,
    asks: Iterable[RequestEntry],
    now: datetime,
) -> str | None:
    """Return why nothing of a grant goes back now, for people; None: the idle window alone decides, or it is recalled and goes."""
    if grant.state is not GrantState.ACTIVE:
        return f"it is {grant.state.value}"
    held_until = grant.granted_at + entry.min_hold
    if grant.hold_until is not None:
        held_until = max(held_until, grant.hold_until)
    if now < held_until:
        return f"held until {_clock(held_until)}"
    open_asks = [one.id for one in asks if one.resource == entry.name and facts.open_amount(one)]
    if open_asks:
        return f"request {open_asks[0]} for it is open"
    if row.sight.blind:
        return "what is really in use is not seen now"
    if row.over:
        return f"{row.over} more are occupied than there are"
    if row.free is None:
        return "what is in use is unknown"
    if not row.free:
        return "all of it is in use"
    if row.recalled:
        return None
    idle_from = grant.granted_at + entry.idle_return_after
    if now < idle_from:
        return f"not old enough to be idle before {_clock(idle_from)}"
    return None


def _known(amount: int | None) -> str:
    return "-" if amount is None else str(amount)


def _age(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def _clock(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
