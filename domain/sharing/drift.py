"""Drift: what a licence server sees and what jobs have booked differ, by so much and for so long that people want to know."""

from datetime import datetime

from xce.domain.formats.config import SharedPool
from xce.domain.formats.shared_report import SharedReport


def drift_alert(report: SharedReport | None, pool: SharedPool | None, now: datetime) -> int | None:
    """Return the drift to alert of: above 0 is in use and not booked, below 0 booked and not in use; None: there is none.

    How much, and for how long, is set at the resource: ``drift_alert`` and ``drift_alert_after``.
    """
    if report is None or pool is None or report.drift is None or report.drift_since is None:
        return None
    return report.drift if now - report.drift_since >= pool.drift_alert_after else None


def drift_text(drift: int) -> str:
    """Return a drift for people."""
    if drift > 0:
        return f"{drift} in use and not booked"
    return f"{-drift} booked and not checked out"
