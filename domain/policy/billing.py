"""Paid time: how long a host is paid for already, and when a return ends it without waste (F11)."""

from datetime import datetime, timedelta
from typing import Final

from xce.domain.formats.policy import PolicySettings
from xce.domain.formats.provider import Billing, BillingUnit
from xce.domain.policy.times import clock, later

_UNIT: Final = {
    BillingUnit.SECOND: timedelta(seconds=1),
    BillingUnit.HOUR: timedelta(hours=1),
}


def billed(used: timedelta, billing: Billing) -> timedelta:
    """Return the time that is paid for a use: whole started units, at least the minimum; some use is at least one unit."""
    unit = _UNIT[billing.unit]
    units = max(1, -(-max(used, timedelta(0)) // unit), -(-billing.minimum // unit))
    return units * unit


def due(since: datetime, until: datetime | None, billing: Billing, before: datetime) -> timedelta:
    """Return the paid time of a use that falls due before a moment: each unit when it begins, the minimum at the start.

    ``until``: when the use ends; None: not before that moment.
    """
    if before <= since:
        return timedelta(0)
    return billed((before if until is None else min(before, until)) - since, billing)


def why_keep_paid(
    launched_at: datetime, billing: Billing, now: datetime, settings: PolicySettings
) -> str | None:
    """Return why a return now would waste paid time, or come too late for its end; None: now is right.

    A return is sent in a window before the end of what is paid: ``release_window`` long, and over ``release_lead`` before the
    end where a further hour would begin, since the return takes that long.
    """
    paid_until = later(launched_at, billed(now - launched_at, billing))
    remaining = paid_until - now
    if remaining > settings.release_lead + settings.release_window:
        return f"paid until {clock(paid_until)}"
    if billing.unit is BillingUnit.HOUR and remaining < settings.release_lead:
        return f"too late to be gone when the next paid hour begins at {clock(paid_until)}"
    return None
