"""What is occupied of an elastic resource: bookings of jobs and what the licence server sees, never one without the other.

Fed with what happens, in time order; reads no clock. Observations change no number of what is owned, borrowed or booked: they move
what is derived. Letters in comments are those of the rules in ``docs/explanation/licence-arithmetic.md``.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from xce.domain.errors import RejectedError
from xce.domain.formats.config import SharedPool
from xce.domain.formats.observation import Observation
from xce.domain.sharing.observed import Observed, Sight, ours_of
from xce.domain.sharing.window import PeakWindow


@dataclass(frozen=True, slots=True)
class Totals:
    """The part of the state that only the log changes.

    Attributes:
        granted_at: of the newest grant; None: there is none.
    """

    owned: int
    borrowed: int = 0
    returning: int = 0
    granted_at: datetime | None = None

    @property
    def total(self) -> int:
        """What may be booked against (T)."""
        return self.owned + self.borrowed


@dataclass(frozen=True, slots=True)
class Reading:
    """All numbers of one moment.

    Attributes:
        total: owned and borrowed (T).
        booked: of running jobs, and of suspended ones that keep theirs (K).
        young: bookings that the licence server need not have seen yet (Ku).
        observed: what the server sees that can be ours (N'); None: it has never been seen.
        age: of the last usable observation; None: there is none.
        occupied: what nothing may fall below.
        limit: what may be booked against now: less than the total where the server issues less, a part is recalled, or a job was denied.
        drift: observed less booked; None: unknown.
        notes: what a person should see, in short.
    """

    total: int
    booked: int
    young: int
    observed: int | None
    age: timedelta | None
    sight: Sight
    occupied: int
    limit: int
    drift: int | None
    notes: tuple[str, ...]

    @property
    def free(self) -> int:
        """What a job may book now; never below 0."""
        return max(0, self.limit - self.occupied)

    @property
    def over(self) -> int:
        """How much more is occupied than there is."""
        return max(0, self.occupied - self.total)

    @property
    def unbooked(self) -> int | None:
        """What the server sees and nobody booked; None: unknown."""
        return None if self.drift is None else max(0, self.drift)

    @property
    def used_elsewhere(self) -> int:
        """What a session counts beside its own bookings, so that it starts jobs on ``free`` and no more."""
        return max(self.total - self.limit, 0) + self.occupied - self.booked


class _Booking(NamedTuple):
    amount: int
    at: datetime


class Meter:
    """One elastic resource: bookings, observations and the idle window."""

    def __init__(self, pool: SharedPool) -> None:
        self.pool = pool
        self._observed = Observed(pool.time_to_live)
        #: The oldest first; each is there as long as its job holds it.
        self._bookings: dict[str, _Booking] = {}
        self._booked = 0
        self._released = deque[_Booking]()
        self._window = PeakWindow(pool.idle_return_after)
        self._denied_at: datetime | None = None
        self._recalled = 0
        self._wanted_since: datetime | None = None
        self._drift_since: datetime | None = None

    # ----------------------------------------------------------------- bookings
    def book(self, job: str, amount: int, at: datetime) -> None:
        """A job takes an amount, 0 too.

        Raises:
            RejectedError: the job has one.
        """
        if job in self._bookings:
            raise RejectedError(f"job {job} has {self._bookings[job].amount} of {self.pool.name}")
        self._bookings[job] = _Booking(amount, at)
        self._booked += amount

    def release(self, job: str, at: datetime) -> None:
        """A job gives its booking up.

        Raises:
            RejectedError: it has none.
        """
        booking = self._bookings.pop(job, None)
        if booking is None:
            raise RejectedError(f"job {job} has booked nothing of {self.pool.name}")
        self._booked -= booking.amount
        if self.pool.linger_guard:
            self._released.append(_Booking(booking.amount, at))

    def sync(self, running: Mapping[str, tuple[int, datetime]], at: datetime) -> None:
        """Take over which jobs have booked what, and since when: bookings that are not there any more are released."""
        for job in [job for job in self._bookings if job not in running]:
            self.release(job, at)
        new = {job: entry for job, entry in running.items() if job not in self._bookings}
        for job, (amount, since) in sorted(new.items(), key=lambda item: item[1][1]):
            self.book(job, amount, min(since, at))

    def fits(self, amount: int, totals: Totals, now: datetime) -> bool:
        """Return whether an amount may be booked now: both by what is booked and by what is occupied."""
        reading = self.read(totals, now)
        return max(reading.booked, reading.occupied) + amount <= reading.limit

    # ------------------------------------------------------------- observations
    def observe(self, observation: Observation) -> bool:
        """Take an observation; return whether it counts. One that is older than the last, or the same again, does not."""
        counts = self._observed.take(observation)
        stamp = self._observed.stamp
        if self._denied_at is not None and stamp is not None and stamp.at > self._denied_at:
            self._denied_at = None
        return counts

    def deny(self, at: datetime) -> None:
        """A tool did not get its licence: nothing is free until the next observation."""
        self._denied_at = at

    def recall(self, amount: int) -> None:
        """The lender wants an amount back: it is not booked any more, and goes as jobs end; 0 ends the recall."""
        self._recalled = amount

    # ------------------------------------------------------------------ numbers
    def read(self, totals: Totals, now: datetime) -> Reading:
        """Return all numbers of this moment."""
        pool, observed = self.pool, self._observed
        sight = observed.sight(now) if pool.observer is not None else Sight.NONE
        seen = observed.in_use() if pool.observer is not None else None
        ours = (
            None
            if seen is None
            else ours_of(
                seen,
                pool.observation_scope,
                pool.pool_size,
                total=totals.total,
                returning=totals.returning,
            )
        )
        young = self._young(now)
        match sight:
            case Sight.NONE | Sight.NEVER:
                floor = self._booked + self._just_released(now)
                occupied = floor if ours is None else max(floor, ours)
            case Sight.FRESH:
                occupied = max(self._booked, (ours or 0) + young)
            case Sight.STALE | Sight.PARTIAL:
                occupied = max(self._booked, (ours or 0) + self._since_observed(now))
        notes: list[str] = []
        limit = self._limit(totals, now, sight, notes)
        drift = None if ours is None else ours - self._booked
        if sight.blind:
            notes.append(_BLIND[sight])
        if observed.stamp is not None and observed.stamp.skewed and pool.observer is not None:
            notes.append("the observer's clock is off")
        self._note_drift(drift, young, now, notes)
        if occupied > totals.total:
            notes.append(f"over {occupied - totals.total}")
        return Reading(
            totals.total,
            self._booked,
            young,
            ours,
            observed.age(now) if pool.observer is not None else None,
            sight,
            occupied,
            limit,
            drift,
            tuple(notes),
        )

    def _young(self, now: datetime) -> int:
        """Return what was booked within the settle time and no observation has matched to its job (Ku)."""
        return self._booked_since(now - self.pool.settle_time)

    def _since_observed(self, now: datetime) -> int:
        """Return what was booked since the last observation, and shortly before it."""
        stamp = self._observed.stamp
        since = now if stamp is None else stamp.at
        return self._booked_since(min(since, now) - self.pool.settle_time)

    def _booked_since(self, since: datetime) -> int:
        last = self._observed.last
        matched = {} if last is None else last.matched
        amount = 0
        for job in reversed(self._bookings):
            booking = self._bookings[job]
            if booking.at <= since:
                break
            amount += max(0, booking.amount - matched.get(job, 0))
        return amount

    def _just_released(self, now: datetime) -> int:
        """Return what ended jobs may still linger on, where nobody looks."""
        while self._released and self._released[0].at <= now - self.pool.linger_guard:
            self._released.popleft()
        return sum(booking.amount for booking in self._released)

    def _limit(self, totals: Totals, now: datetime, sight: Sight, notes: list[str]) -> int:
        limit = totals.total
        last = self._observed.last
        issued = None if last is None else last.issued
        if sight is Sight.FRESH and issued is not None and self.pool.issues_ours:
            settled = totals.granted_at is None or now - totals.granted_at > self.pool.settle_time
            if issued < totals.total and settled:
                notes.append(f"the server issues {issued} of {totals.total}")
                limit = issued
            elif issued > totals.total and totals.granted_at is not None:
                notes.append(f"the server issues {issued}, more than the {totals.total} counted")
        if self._recalled:
            notes.append(f"{self._recalled} recalled")
            limit = min(limit, max(totals.owned, totals.total - self._recalled))
        if self._denied_at is not None:
            notes.append("a job was denied its licence")
            limit = 0
        return limit

    def _note_drift(self, drift: int | None, young: int, now: datetime, notes: list[str]) -> None:
        if drift is None or drift == 0:
            return
        if drift > 0:
            notes.append(f"{drift} in use and not booked")
        elif drift + young < 0:
            notes.append(f"{-drift} booked and not checked out")

    def drifting(self, totals: Totals, now: datetime) -> tuple[int | None, datetime | None]:
        """Return the drift, and since when it has been as large as the site wants it reported; None: unknown, or it is not.

        Fresh bookings that the server need not have seen yet are no drift. To be called whenever something changed.
        """
        reading = self.read(totals, now)
        drift = reading.drift
        if drift is not None and drift < 0:
            drift = min(0, drift + reading.young)
        if drift is None or not 0 < self.pool.drift_alert <= abs(drift):
            self._drift_since = None
        elif self._drift_since is None:
            self._drift_since = now
        return drift, self._drift_since

    def drift_alert(self, totals: Totals, now: datetime) -> int | None:
        """Return the drift that is to be reported: as large as the site allows none, for as long; None: there is no such."""
        drift, since = self.drifting(totals, now)
        return drift if since is not None and now - since >= self.pool.drift_alert_after else None

    # ------------------------------------------------------------------- window
    def note(self, wanted: int, totals: Totals, now: datetime) -> None:
        """Say what startable waiting jobs want from now on (D); with what is occupied it is the need that the window keeps."""
        if not wanted:
            self._wanted_since = None
        elif self._wanted_since is None:
            self._wanted_since = now
        self._window.note(now, self.read(totals, now).occupied + self.pool.headroom + wanted)

    def peak(self, now: datetime) -> int | None:
        """Return the largest need of the idle window (P); None: it is unknown, and nothing goes back."""
        return self._window.peak(now)

    def next_change(self, now: datetime) -> datetime | None:
        """Return when time alone changes a number of use: the peak falls, or a guard ends; None: never."""
        guarded = (booking.at + self.pool.linger_guard for booking in self._released)
        times = [self._window.next_fall(now), *(at for at in guarded if at > now)]
        return min((at for at in times if at is not None), default=None)

    @property
    def wanted_since(self) -> datetime | None:
        """Since when there has been demand without a break; None: there is none."""
        return self._wanted_since


_BLIND = {
    Sight.STALE: "observation stale",
    Sight.PARTIAL: "observation partial",
    Sight.NEVER: "never observed",
}
