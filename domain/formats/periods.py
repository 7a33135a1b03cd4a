"""Days and months in a named time zone, and what was spent in one of them."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

from pydantic import Field

from xce.domain.formats.base import Count, Format, Money, Name, Time
from xce.domain.formats.provider import Kind
from xce.domain.formats.simulated_provider import Zone

_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_LAST: Final = datetime.max.replace(tzinfo=UTC)


class Period(StrEnum):
    """A part of the calendar."""

    DAY = "day"
    MONTH = "month"

    def start(self, at: datetime, zone: str) -> datetime:
        """Return when the period with a moment in it began, in UTC: at midnight by the clocks of the zone."""
        return min(self._midnight(_local(at, zone), zone), at.astimezone(UTC))

    def end(self, at: datetime, zone: str) -> datetime:
        """Return when the period with a moment in it ends, which is when the next one begins."""
        local = _local(at, zone)
        days = 1 if self is Period.DAY else 32 - local.day
        try:
            return self._midnight(local + timedelta(days=days), zone)
        except OverflowError:
            return _LAST  # a period that has no end in the calendar

    def _midnight(self, local: datetime, zone: str) -> datetime:
        """Return the start of the period of a local time; a midnight that the clocks skip is when they go on."""
        day = 1 if self is Period.MONTH else local.day
        midnight = datetime(local.year, local.month, day, tzinfo=ZoneInfo(zone))
        try:
            return midnight.astimezone(UTC)
        except OverflowError:
            return _FIRST


def _local(at: datetime, zone: str) -> datetime:
    """Return what the clocks of a zone show, without their zone; at the ends of the calendar what those of UTC do."""
    try:
        return at.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    except OverflowError:
        return at.astimezone(UTC).replace(tzinfo=None)


class SpentLine(Format):
    """What one template or resource of a provider cost in a period, for one project; with what nobody owns of it."""

    provider: Name
    kind: Kind
    item: Name | None = Field(
        description="null: unknown, of something that nobody owns and whose provider offers none"
    )
    project: Name | None = Field(
        default=None, description="whose budgets pay for it; null: several projects, or none"
    )
    cost: Money = Field(description="up to now; of all that has a known price")
    unpriced: Count = Field(
        default=0, description="hosts or units that ended in the period and had no price"
    )

    @property
    def template(self) -> str | None:
        """As a budget covers it: the template of hosts, empty where it is unknown; None: units."""
        return (self.item or "") if self.kind is Kind.HOST else None


class Spent(Format):
    """What was spent since a day or month began: what lives and what has ended."""

    period: Period
    zone: Zone = "UTC"
    since: Time = Field(description="when the period began")
    lines: tuple[SpentLine, ...] = ()
