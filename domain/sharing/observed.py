"""The last observation of a resource: what counts of it, how old it is, and what of it is ours."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from xce.domain.formats.observation import Observation, Quality, Scope


class Sight(StrEnum):
    """What is known of the real use."""

    #: Nobody looks.
    NONE = "none"
    FRESH = "fresh"
    STALE = "stale"
    #: The newest look gave a lower bound only.
    PARTIAL = "partial"
    #: Somebody looks, and has never seen anything.
    NEVER = "never"

    @property
    def blind(self) -> bool:
        """Return whether there is an observer that does not see now."""
        return self in (Sight.STALE, Sight.PARTIAL, Sight.NEVER)


@dataclass(frozen=True, slots=True)
class Stamp:
    """Where an observation stands in time: its age counts from ``at``; ``skewed``: its own clock was too far off."""

    at: datetime
    sequence: int
    skewed: bool


def stamp_of(observation: Observation, time_to_live: timedelta) -> Stamp:
    """Return where an observation stands: by its own time, or where that is further off than it would live, by ours."""
    skewed = abs(observation.received_at - observation.observed_at) > time_to_live
    at = (
        observation.received_at if skewed else min(observation.observed_at, observation.received_at)
    )
    return Stamp(at, observation.sequence, skewed)


class Observed:
    """Takes observations in any order; one older than the last of its kind changes nothing."""

    def __init__(self, time_to_live: timedelta) -> None:
        self._time_to_live = time_to_live
        #: The last usable one.
        self.last: Observation | None = None
        self.stamp: Stamp | None = None
        #: The last lower bound, if it is newer than that.
        self.bound: Observation | None = None
        self._newest: dict[str, Stamp] = {}

    def take(self, observation: Observation) -> bool:
        """Return whether it counts: False if it is older than the last one, or the same again."""
        stamp = stamp_of(observation, self._time_to_live)
        before = self._newest.get(observation.source)
        if before is not None and not _follows(stamp, before):
            return False
        self._newest[observation.source] = stamp
        if observation.quality is Quality.UNREACHABLE or observation.in_use is None:
            return True
        if self.stamp is not None and stamp.at < self.stamp.at:
            return False  # of another source, and older
        if observation.usable:
            self.last, self.stamp, self.bound = observation, stamp, None
        else:
            self.bound = observation
        return True

    def age(self, now: datetime) -> timedelta | None:
        """Return the age of the last usable observation; None: there was none."""
        return None if self.stamp is None else max(timedelta(0), now - self.stamp.at)

    def sight(self, now: datetime) -> Sight:
        """Return what is known now."""
        age = self.age(now)
        if age is None:
            return Sight.NEVER
        if self.bound is not None:
            return Sight.PARTIAL
        return Sight.FRESH if age <= self._time_to_live else Sight.STALE

    def in_use(self) -> int | None:
        """Return the last number, or the lower bound that came since if that is more; None: there was none."""
        numbers = [each.in_use for each in (self.last, self.bound) if each is not None]
        known = [number for number in numbers if number is not None]
        return max(known, default=None)


def _follows(stamp: Stamp, before: Stamp) -> bool:
    if stamp.sequence and before.sequence:
        return stamp.sequence > before.sequence
    return stamp.at > before.at


def ours_of(in_use: int, scope: Scope, pool_size: int | None, *, total: int, returning: int) -> int:
    """Return which part of an observed number can be ours (N'): of a whole pool, what others cannot have."""
    if scope is Scope.OURS or pool_size is None:
        return in_use
    return max(0, in_use - max(0, pool_size - total - returning))
