"""Windows of the day in a named time zone, on some days of the week."""

from datetime import datetime, timedelta
from typing import Final, Self
from zoneinfo import ZoneInfo

from pydantic import Field, model_validator

from xce.domain.formats.base import Format
from xce.domain.formats.simulated_provider import Day, TimeOfDay, Zone

_DAYS: Final = tuple(Day)


class Window(Format):
    """A part of the day. Clocks that change make it an hour longer or shorter: what counts is the local time."""

    start: TimeOfDay | None = Field(default=None, description="null: all day")
    end: TimeOfDay | None = Field(
        default=None, description="may be before the start: the window then passes midnight"
    )
    days: tuple[Day, ...] | None = Field(
        default=None, description="on which the window starts; null: all"
    )
    zone: Zone = Field(default="UTC", description="of the times and days, such as Europe/Berlin")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.start is None) != (self.end is None):
            raise ValueError("start and end belong together")
        return self

    def holds(self, now: datetime) -> bool:
        """Return whether ``now`` is in the window."""
        local = now.astimezone(ZoneInfo(self.zone))
        day = local
        if self.start is not None and self.end is not None:
            clock = f"{local:%H:%M}"
            if self.start < self.end:
                if not self.start <= clock < self.end:
                    return False
            elif self.end <= clock < self.start:
                return False
            elif clock < self.end:
                day = local - timedelta(days=1)
        return self.days is None or _DAYS[day.weekday()] in self.days
