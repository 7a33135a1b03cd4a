"""Curves that the log alone tells: what had been spent when, and how many hosts there were, by template."""

from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Final

from xce.replay.history import History
from xce.replay.rounding import rounded
from xce.replay.timeline import Timeline, TimelineBuilder

_SECOND: Final = timedelta(seconds=1)


def cost_timeline(history: History, end: datetime, points: int = 400) -> Timeline:
    """Return what had been spent by template at evenly spaced times: use as it goes on, what is billed beyond it at its end.

    Hosts and units without a known price cost nothing here; the summary says that the cost is unknown.
    """
    templates = sorted({use.template for use in history.hosts.values()})
    names = templates + sorted({use.resource for use in history.grants.values()} - set(templates))
    changes: dict[str, list[tuple[datetime, Fraction, Fraction]]] = {name: [] for name in names}
    for use in history.hosts.values():
        price = Fraction(use.price_per_hour or 0)
        changes[use.template].append((use.since, price, Fraction(0)))
        if use.until is not None:
            extra = Fraction(use.billed_seconds(end) - use.used(end) // _SECOND, 3600) * price
            changes[use.template].append((use.until, -price, extra))
    for grant in history.grants.values():
        price = Fraction(grant.price_per_hour or 0)
        changes[grant.resource].append((grant.since, price * grant.amount, Fraction(0)))
        changes[grant.resource].extend(
            (at, -price * amount, Fraction(0)) for at, amount in grant.parts
        )
    first = min((at for series in changes.values() for at, _, _ in series), default=end)
    times = _evenly(first, end, points)
    return Timeline(times, {name: _spent(series, times) for name, series in changes.items()})


def _evenly(first: datetime, last: datetime, points: int) -> tuple[datetime, ...]:
    seconds = (last - first) // _SECOND
    steps = max(1, min(points, seconds))
    return tuple(dict.fromkeys(first + (seconds * i // steps) * _SECOND for i in range(steps + 1)))


def _spent(
    changes: list[tuple[datetime, Fraction, Fraction]], times: tuple[datetime, ...]
) -> tuple[Decimal, ...]:
    ordered = sorted(changes, key=lambda change: change[0])
    spent, rate, index = Fraction(0), Fraction(0), 0
    now = times[0]
    series: list[Decimal] = []
    for time in times:
        while index < len(ordered) and ordered[index][0] <= time:
            at, change, extra = ordered[index]
            spent += rate * ((at - now) // _SECOND) / 3600 + extra
            rate, now, index = rate + change, at, index + 1
        spent += rate * ((time - now) // _SECOND) / 3600
        now = time
        series.append(rounded(spent, 6))
    return tuple(series)


def hosts_timeline(history: History, end: datetime) -> Timeline:
    """Return how many hosts of each template were in the cluster, at every time at which that changed."""
    changes: list[tuple[datetime, str, int]] = []
    for use in history.hosts.values():
        if use.joined_at is not None:
            changes.append((use.joined_at, use.template, 1))
            changes.append((use.until or end, use.template, -1 if use.until else 0))
    counts = dict.fromkeys(sorted({template for _, template, _ in changes}), 0)
    builder = TimelineBuilder()
    for at, template, change in sorted(changes):
        counts[template] += change
        builder.add(at, counts)
    return builder.build()
