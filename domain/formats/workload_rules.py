"""How a workload is cut, scaled and given licences before it is simulated, wherever it comes from."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Final

from pydantic import AfterValidator, Field, StrictInt, WithJsonSchema

from xce.domain.formats.base import Duration, Format, Name
from xce.domain.formats.simulated_provider import Day, Share, TimeOfDay, minute_of_day

_DAYS: Final = tuple(Day)

#: How many times as much: 0.5, 1, 2.25.
Factor = Annotated[
    Decimal,
    Field(gt=0, le=1000, max_digits=12, decimal_places=6),
    WithJsonSchema({"type": ["string", "number"], "description": "above 0, such as 1.5"}),
]


class ScaleRule(Format):
    """The same workload, denser or longer."""

    arrivals: Factor = Field(
        default=Decimal(1), description="2: the same jobs come in half the time"
    )
    run_times: Factor = Field(
        default=Decimal(1), description="2: every job runs, and may run, twice as long"
    )


def _some_time(value: timedelta | None) -> timedelta | None:
    if value is not None and value < timedelta(seconds=1):
        raise ValueError("wanted at least 1s")
    return value


class CutRule(Format):
    """A part of a workload, by the time of submission."""

    skip: Duration = Field(
        default=timedelta(0), description="jobs of so long after the first submission are not taken"
    )
    length: Annotated[Duration | None, AfterValidator(_some_time)] = Field(
        default=None, description="from there on, jobs of so long are; null: all others"
    )


class LicencePeak(Format):
    """A time of day in which another share of the jobs needs a licence, such as before a tape-out."""

    share: Share = Field(description="of the jobs that are submitted in it")
    start: TimeOfDay = Field(description="UTC")
    end: TimeOfDay = Field(description="UTC; a peak may pass midnight")
    days: tuple[Day, ...] | None = Field(default=None, description="on which it starts; null: all")

    def covers(self, at: datetime) -> bool:
        """Return whether a time (UTC) is in the peak."""
        minute = at.hour * 60 + at.minute
        start, end = minute_of_day(self.start), minute_of_day(self.end)
        day = at
        if start < end:
            inside = start <= minute < end
        else:
            inside = minute >= start or minute < end
            day = at - timedelta(days=1) if minute < end else at
        return inside and (self.days is None or _DAYS[day.weekday()] in self.days)


class LicenceRule(Format):
    """A share of the jobs needs tokens of a feature; which ones, a hash of seed, feature and job id says."""

    feature: Name
    share: Share = Field(description="of the jobs")
    tokens: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = Field(
        default=1, description="for a job"
    )
    peaks: tuple[LicencePeak, ...] = Field(
        default=(), description="times with another share; the first that covers a job counts"
    )

    def share_at(self, at: datetime) -> Decimal:
        """Return the share of the jobs that are submitted at a time (UTC)."""
        return next((peak.share for peak in self.peaks if peak.covers(at)), self.share)
