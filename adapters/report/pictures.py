"""The pictures of a report, as SVG texts. They need matplotlib (extra ``report``); equal runs give equal texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.util import find_spec
from typing import Final

from xce.adapters.report.canvas import APART, BLUE, GREY, INK, MUTED, RED, Canvas, Span, finish
from xce.replay.statistics import NEEDED, OWN, PROVISIONED, token_series
from xce.replay.timeline import Timeline

POINTS: Final = 700
#: Upper ends of the classes of waiting times, in seconds, and their names.
WAIT_CLASSES: Final[tuple[tuple[int, str], ...]] = (
    (0, "none"),
    (60, "1 min"),
    (300, "5 min"),
    (900, "15 min"),
    (3600, "1 h"),
    (4 * 3600, "4 h"),
    (12 * 3600, "12 h"),
    (86_400, "1 d"),
)
LONGER: Final = "longer"


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: its title, one sentence that says how to read it, and the SVG."""

    title: str
    caption: str
    svg: str


@dataclass(frozen=True, slots=True)
class Material:
    """What pictures are drawn from.

    Attributes:
        demand: the statistics' timeline.
        hosts: hosts in the cluster by template.
        spent: money spent by template and resource.
        waits: when each job was submitted, and the seconds it waited.
        shared: names of the shared resources.
        start: the left end of every picture over time.
        end: the right end.
    """

    demand: Timeline
    hosts: Timeline
    spent: Timeline
    waits: tuple[tuple[datetime, int], ...]
    shared: tuple[str, ...]
    start: datetime
    end: datetime


def available() -> bool:
    """Return whether pictures can be drawn here."""
    return find_spec("matplotlib") is not None


def draw(material: Material) -> tuple[Picture, ...]:
    """Return all pictures that the material has something for."""
    pictures: list[Picture] = []
    when = material.start, material.end
    if material.demand.times:
        pictures.append(_demand(material.demand, when))
        pictures += [_tokens(material.demand, name, when) for name in material.shared]
    if material.hosts.times:
        pictures.append(_hosts(material.hosts, tuple(material.spent.values), when))
    if material.waits:
        pictures.append(_waits(material.waits, when))
    if any(series[-1] for series in material.spent.values.values()):
        pictures.append(_spent(material.spent, when))
    return tuple(pictures)


def wait_classes(waits: Sequence[int]) -> tuple[int, ...]:
    """Return how many waits fall into each class of ``WAIT_CLASSES``, and how many are longer."""
    counts = [0] * (len(WAIT_CLASSES) + 1)
    for wait in waits:
        counts[next((i for i, (most, _) in enumerate(WAIT_CLASSES) if wait <= most), -1)] += 1
    return tuple(counts)


def _demand(timeline: Timeline, when: Span) -> Picture:
    thin = timeline.thinned(POINTS)
    with Canvas("demand") as canvas:
        axes = canvas.axes[0]
        own, provisioned, needed = (_series(thin, name) for name in (OWN, PROVISIONED, NEEDED))
        supply = [a + b for a, b in zip(own, provisioned, strict=True)]
        axes.fill_between(
            thin.times, 0, own, step="post", color=GREY, linewidth=0, label="own partition"
        )
        axes.fill_between(
            thin.times, own, supply, step="post", color=BLUE, linewidth=0, label="from providers"
        )
        axes.step(
            thin.times,
            needed,
            where="post",
            color=RED,
            linewidth=1.1,
            label="needed: running and waiting",
        )
        finish(axes, "slots", when, top=_top(supply, needed))
        return Picture(
            "Demand against supply",
            "Slots that jobs run on or wait for (line), against the slots of the cluster (areas). Where the line is above the areas, "
            "jobs wait. A peak far above all supply is cut off.",
            canvas.svg(),
        )


def _tokens(timeline: Timeline, resource: str, when: Span) -> Picture:
    thin = timeline.thinned(POINTS)
    with Canvas(f"tokens {resource}", height=2.6) as canvas:
        axes = canvas.axes[0]
        owned, borrowed, used, wanted = (
            _series(thin, token_series(resource, what))
            for what in ("owned", "borrowed", "in use", "wanted")
        )
        total = [a + b for a, b in zip(owned, borrowed, strict=True)]
        need = [a + b for a, b in zip(used, wanted, strict=True)]
        axes.fill_between(thin.times, 0, owned, step="post", color=GREY, linewidth=0, label="owned")
        axes.fill_between(
            thin.times, owned, total, step="post", color=BLUE, linewidth=0, label="borrowed"
        )
        if any(wanted):
            axes.fill_between(
                thin.times,
                used,
                need,
                step="post",
                color=RED,
                alpha=0.45,
                linewidth=0,
                label="wanted by jobs that could start",
            )
        axes.step(thin.times, used, where="post", color=INK, linewidth=1.0, label="in use")
        finish(axes, "tokens", when, top=_top(total, need))
        return Picture(
            f"Tokens of {resource}",
            "What the cluster owns and has borrowed (areas), what running jobs hold (dark line), and what jobs that could start but for them want (red).",
            canvas.svg(),
        )


def _hosts(timeline: Timeline, names: tuple[str, ...], when: Span) -> Picture:
    """Draw the hosts by template, in the colours that the templates have among ``names``."""
    thin = timeline.thinned(POINTS)
    with Canvas("hosts", height=2.6) as canvas:
        axes = canvas.axes[0]
        below = [0.0] * len(thin.times)
        for name in thin.values:
            above = [a + b for a, b in zip(below, _series(thin, name), strict=True)]
            axes.fill_between(
                thin.times,
                below,
                above,
                step="post",
                color=_colour(names.index(name)),
                linewidth=0,
                label=name,
            )
            below = above
        finish(axes, "hosts", when, top=_top(below))
        return Picture("Hosts from providers", "Hosts in the cluster, by template.", canvas.svg())


def _waits(waits: tuple[tuple[datetime, int], ...], when: Span) -> Picture:
    with Canvas("waits", panels=2, height=2.9) as canvas:
        left, right = canvas.axes
        counts = wait_classes([wait for _, wait in waits])
        names = [name for _, name in WAIT_CLASSES] + [LONGER]
        shares = [100 * count / len(waits) for count in counts]
        left.bar(range(len(names)), shares, color=BLUE, width=0.78)
        left.set_xticks(range(len(names)), names, rotation=35, ha="right")
        left.set_title("How long jobs waited, at most")
        left.set_ylabel("% of jobs")
        for i, share in enumerate(shares):
            if share:
                left.annotate(
                    f"{share:.1f}" if share >= 0.1 else "<0.1",
                    (i, share),
                    ha="center",
                    va="bottom",
                    fontsize=7.5,
                    color=MUTED,
                )
        times, median, high = _over_time(waits)
        right.step(
            times,
            [value / 60 for value in high],
            where="post",
            color=RED,
            linewidth=1.0,
            label="95th percentile",
        )
        right.step(
            times,
            [value / 60 for value in median],
            where="post",
            color=INK,
            linewidth=1.0,
            label="median",
        )
        right.set_title("By the time of submission")
        finish(right, "minutes waited", when, top=None, logarithmic=True)
        return Picture(
            "Waiting times",
            "From submission to start. Left: shares of all jobs. Right: in 60 spans of equal length; the scale is logarithmic above "
            "one minute.",
            canvas.svg(),
        )


def _over_time(
    waits: tuple[tuple[datetime, int], ...],
) -> tuple[list[datetime], list[int], list[int]]:
    """Return median and 95th percentile in spans of equal length, of those spans in which jobs were submitted."""
    first, last = waits[0][0], waits[-1][0]
    width = max((last - first) / 60, timedelta(seconds=1))
    spans: dict[int, list[int]] = {}
    for at, wait in waits:
        spans.setdefault(min(59, int((at - first) / width)), []).append(wait)
    times, median, high = list[datetime](), list[int](), list[int]()
    for index in sorted(spans):
        ordered = sorted(spans[index])
        times.append(first + index * width)
        median.append(ordered[len(ordered) // 2])
        high.append(ordered[-(-95 * len(ordered) // 100) - 1])
    return times, median, high


def _spent(timeline: Timeline, when: Span) -> Picture:
    with Canvas("spent", height=2.6) as canvas:
        axes = canvas.axes[0]
        below = [0.0] * len(timeline.times)
        for i, name in enumerate(timeline.values):
            above = [a + b for a, b in zip(below, _series(timeline, name), strict=True)]
            axes.fill_between(
                timeline.times, below, above, color=_colour(i), linewidth=0, label=name
            )
            below = above
        finish(axes, "spent so far", when, top=_top(below))
        return Picture(
            "Cost over time",
            "Money spent from the beginning, by host template and borrowed resource.",
            canvas.svg(),
        )


def _top(supply: Sequence[float], need: Sequence[float] = ()) -> float:
    """Return where an axis ends: above all supply, and above the need unless it is far more."""
    most = max(supply, default=0)
    return max(1.0, 1.06 * max(most, min(max(need, default=0), 2.5 * most)))


def _series(timeline: Timeline, name: str) -> list[float]:
    return [float(value) for value in timeline.values[name]]


def _colour(index: int) -> str:
    return APART[index % len(APART)]
