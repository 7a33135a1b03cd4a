"""Times in rules and reasons."""

from datetime import UTC, datetime, timedelta
from typing import Final

_LAST: Final = datetime.max.replace(tzinfo=UTC)


def later(at: datetime, by: timedelta) -> datetime:
    """Return the time that much later; the last one there is where the calendar ends before it."""
    return at + by if by <= _LAST - at else _LAST


def clock(at: datetime) -> str:
    """Return a time as reasons show it: RFC 3339, to the second."""
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
