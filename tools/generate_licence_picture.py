"""The picture and the table of docs/explanation/licence-arithmetic.md: two hours of one licence, by the rules themselves.

Jobs, a licence server that sees checkouts late and lets them linger, and a lender that takes two minutes. All numbers come from
``domain/sharing``; if a rule changes, the picture does.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Final, NamedTuple

from xce.domain.formats.config import SharedPool
from xce.domain.formats.observation import Observation, Quality
from xce.domain.sharing.lending import Lent, amount_to_ask, choose, unused
from xce.domain.sharing.meter import Meter, Totals

PATH: Final = "docs/images/licence-timeline.svg"
START: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)
MINUTES: Final = 120
POOL: Final = SharedPool(
    name="wavesim",
    owned=10,
    provider="pool",
    max_borrow=10,
    step=5,
    idle_return_after=timedelta(minutes=30),
    min_hold=timedelta(minutes=20),
    settle_time=timedelta(minutes=5),
    observer="server",
)
LEAD: Final = 2
LATE: Final = 3
LINGER: Final = 6


class Job(NamedTuple):
    """Submitted at a minute, runs for so many once it has its licences."""

    name: str
    submitted: int
    amount: int
    run: int


JOBS: Final = (Job("A", 0, 8, 42), Job("B", 12, 6, 100), Job("C", 24, 6, 56))


class Point(NamedTuple):
    """All numbers of a minute."""

    minute: int
    total: int
    booked: int
    observed: int
    occupied: int
    wanted: int
    peak: int | None
    said: str


@dataclass(slots=True)
class _Grant:
    at: datetime
    amount: int


def course() -> list[Point]:
    """Return two hours, minute by minute."""
    meter = Meter(POOL)
    waiting = list(JOBS)
    ends: dict[str, tuple[int, Job, int]] = {}
    lingers: list[tuple[int, int]] = []
    grants: list[_Grant] = []
    coming: list[tuple[int, int]] = []
    points: list[Point] = []
    for minute in range(MINUTES + 1):
        now = START + timedelta(minutes=minute)
        said: list[str] = []
        for name, (end, job, _) in list(ends.items()):
            if end == minute:
                del ends[name]
                meter.release(name, now)
                lingers.append((minute + LINGER, job.amount))
                said.append(f"{name} ends")
        for due, amount in [entry for entry in coming if entry[0] == minute]:
            coming.remove((due, amount))
            grants.append(_Grant(now, amount))
            said.append(f"{amount} come")
        totals = Totals(POOL.owned, sum(grant.amount for grant in grants))
        lingers = [entry for entry in lingers if entry[0] > minute]
        seen = sum(job.amount for _, job, out in ends.values() if out <= minute)
        seen += sum(amount for _, amount in lingers)
        meter.observe(
            Observation(
                resource=POOL.name,
                source="server",
                quality=Quality.OK,
                in_use=seen,
                observed_at=now,
                received_at=now,
            )
        )
        for job in [job for job in waiting if job.submitted <= minute]:
            if not meter.fits(job.amount, totals, now):
                break
            waiting.remove(job)
            meter.book(job.name, job.amount, now)
            ends[job.name] = (minute + job.run, job, minute + LATE)
            said.append(f"{job.name} starts with {job.amount}")
        wanted = sum(job.amount for job in waiting if job.submitted <= minute)
        meter.note(wanted, totals, now)
        reading = meter.read(totals, now)
        asked = amount_to_ask(
            occupied=reading.occupied,
            wanted=wanted,
            headroom=POOL.headroom,
            total=totals.total,
            open_asks=sum(amount for _, amount in coming),
            owed=totals.borrowed,
            max_borrow=POOL.max_borrow,
            step=POOL.step,
        )
        if asked:
            coming.append((minute + LEAD, asked))
            said.append(f"{asked} asked")
        peak = meter.peak(now)
        if peak is not None and not wanted and not coming:
            totals = _give_back(grants, totals, peak, reading.occupied, now, said)
        points.append(
            Point(
                minute,
                totals.total,
                reading.booked,
                seen,
                reading.occupied,
                wanted,
                peak,
                ", ".join(said),
            )
        )
    return points


def _give_back(
    grants: list[_Grant],
    totals: Totals,
    peak: int,
    occupied: int,
    now: datetime,
    said: list[str],
) -> Totals:
    lent = [
        Lent(
            str(number),
            "pool",
            grant.amount,
            grant.at,
            grant.at + POOL.min_hold,
            None,
            POOL.step,
            True,
        )
        for number, grant in enumerate(grants)
    ]
    amount = unused(owned=totals.owned, borrowed=totals.borrowed, peak=peak)
    chosen, _ = choose(lent, amount, now=now, idle_return_after=POOL.idle_return_after)
    for one, part in chosen:
        assert totals.total - part >= occupied, "nothing in use goes back"
        grants[int(one.grant)].amount -= part
        said.append(f"{part} go back")
        totals = Totals(totals.owned, totals.borrowed - part)
    return totals


# ----------------------------------------------------------------------- drawing
LEFT: Final = 44
TOP: Final = 34
WIDTH: Final = 7
HEIGHT: Final = 9
MOST: Final = 28
BOTTOM: Final = TOP + MOST * HEIGHT


def pages() -> Iterator[tuple[str, str]]:
    """Yield the one picture."""
    yield PATH, picture(course())


def picture(points: list[Point]) -> str:
    """Return the course as SVG: what is there, what is occupied, what is booked, and the largest need of the window."""
    width, height = LEFT + MINUTES * WIDTH + 150, BOTTOM + 60
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
            ' font-family="sans-serif" font-size="11" role="img">'
        ),
        "<title>Total, occupied, booked and largest need of one licence over two hours</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for amount in range(0, MOST + 1, 5):
        y = _y(amount)
        parts.append(
            f'<line x1="{LEFT}" y1="{y}" x2="{_x(MINUTES)}" y2="{y}" stroke="#e3e6ea"/>'
            f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{amount}</text>'
        )
    for minute in range(0, MINUTES + 1, 15):
        at = START + timedelta(minutes=minute)
        parts.append(
            f'<text x="{_x(minute)}" y="{BOTTOM + 16}" text-anchor="middle">{at:%H:%M}</text>'
        )
    occupied = _steps([(point.minute, point.occupied) for point in points])
    parts.append(
        f'<path d="M{LEFT},{BOTTOM} {occupied.replace("M", "L", 1)} L{_x(MINUTES)},{BOTTOM} Z" fill="#f3d9a4"/>'
    )
    booked = [(point.minute, point.booked) for point in points]
    peak = [(point.minute, point.peak) for point in points if point.peak is not None]
    total = [(point.minute, point.total) for point in points]
    parts.append(f'<path d="{_steps(booked)}" fill="none" stroke="#0072b2" stroke-width="1.5"/>')
    parts.append(
        f'<path d="{_steps(peak)}" fill="none" stroke="#b3261e" stroke-width="1.5" stroke-dasharray="5 3"/>'
    )
    parts.append(f'<path d="{_steps(total)}" fill="none" stroke="#1f2328" stroke-width="2.5"/>')
    for point in points:
        if "asked" in point.said or "go back" in point.said:
            what = "asked" if "asked" in point.said else "back"
            parts.append(
                f'<text x="{_x(point.minute)}" y="{TOP - 8}" text-anchor="middle">{escape(what)}</text>'
                f'<line x1="{_x(point.minute)}" y1="{TOP - 4}" x2="{_x(point.minute)}" y2="{BOTTOM}" stroke="#9aa2ab" stroke-dasharray="1 3"/>'
            )
    legend = (
        ("#1f2328", "total (T)"),
        ("#e0b04a", "occupied"),
        ("#0072b2", "booked (K)"),
        ("#b3261e", "peak need (P)"),
    )
    for row, (colour, word) in enumerate(legend):
        y = TOP + 10 + row * 18
        x = _x(MINUTES) + 16
        parts.append(
            f'<rect x="{x}" y="{y - 8}" width="14" height="8" fill="{colour}"/><text x="{x + 20}" y="{y}">{word}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _steps(points: list[tuple[int, int]]) -> str:
    """Return a line that holds each value until the next one."""
    path = f"M{_x(points[0][0])},{_y(points[0][1])}"
    last = points[0][1]
    for minute, amount in points[1:]:
        if amount != last:
            path += f" H{_x(minute)} V{_y(amount)}"
            last = amount
    return f"{path} H{_x(points[-1][0])}"


def _x(minute: int) -> int:
    return LEFT + minute * WIDTH


def _y(amount: int) -> int:
    return BOTTOM - amount * HEIGHT


if __name__ == "__main__":
    for point in course():
        if point.said:
            print(point)
