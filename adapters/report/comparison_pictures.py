"""The pictures of a comparison. Policies are letters here; the table says which is which."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from xce.adapters.report.canvas import APART, BLUE, GREY, INK, RED, Canvas, Span, finish, thousands
from xce.adapters.report.pictures import Picture
from xce.domain.formats.comparison import RunOutcome
from xce.replay.statistics import NEEDED, OWN, PROVISIONED, token_series

#: Pictures that each policy has one of are drawn for so many policies at most.
ONE_EACH_MAX: Final = 6
_STYLES: Final = ("-", "--", ":")
#: Marks of a scale of waiting times, in minutes.
_TICKS: Final = {
    0: "0",
    1: "1 min",
    5: "5 min",
    15: "15 min",
    60: "1 h",
    240: "4 h",
    720: "12 h",
    2880: "2 d",
    10080: "7 d",
}


def letter(place: int) -> str:
    """Return what a policy is called in pictures: A to Z, then A1, B1 and on."""
    name = chr(ord("A") + place % 26)
    return name if place < 26 else f"{name}{place // 26}"


def colour(place: int) -> str:
    """Return the colour of a policy."""
    return APART[place % len(APART)]


def _style(place: int) -> str:
    return _STYLES[place // len(APART) % len(_STYLES)]


def draw(runs: Sequence[RunOutcome]) -> tuple[Picture, ...]:
    """Return all pictures of one workload that the runs have something for."""
    drawn: list[Picture] = []
    when = min(run.report.started for run in runs), max(run.report.ended for run in runs)
    name = runs[0].workload
    if len(runs) > 1 and all(
        run.figures.cost is not None and run.figures.wait_mean for run in runs
    ):
        drawn.append(_trade(runs, name))
    if any(run.curves.spent and run.curves.spent[-1] for run in runs):
        drawn.append(_spent(runs, when, name))
    if any(run.figures.cost and run.figures.waste is not None for run in runs):
        drawn.append(_money(runs, name))
    if any(run.curves.waits for run in runs):
        drawn.append(_waits(runs, name))
    drawn += [_tokens(runs, use.name, when, name) for use in runs[0].report.shared]
    drawn += _demand(runs, when, name)
    return tuple(drawn)


def _trade(runs: Sequence[RunOutcome], name: str) -> Picture:
    longest = max(float(run.figures.wait_mean or 0) for run in runs)
    unit, word = (3600, "hours") if longest > 3 * 3600 else (60, "minutes")
    with Canvas(f"trade {name}", height=3.2) as canvas:
        axes = canvas.axes[0]
        for place, run in enumerate(runs):
            cost, wait = float(run.figures.cost or 0), float(run.figures.wait_mean or 0) / unit
            axes.scatter([wait], [cost], s=70, color=colour(place), zorder=3)
            axes.annotate(
                letter(place), (wait, cost), xytext=(7, 4), textcoords="offset points", color=INK,
                fontweight="bold",
            )  # fmt: skip
        axes.set_xlabel(f"{word} waited, mean")
        axes.set_ylabel("cost")
        axes.yaxis.set_major_formatter(thousands)
        axes.margins(0.12)
        axes.grid(visible=True, axis="x")
        canvas.make_room_below()
        return Picture(
            "What waiting less costs",
            "Each point is a policy: the further left, the less jobs waited; the lower, the less was paid.",
            canvas.svg(),
        )


def _money(runs: Sequence[RunOutcome], name: str) -> Picture:
    """Return what was paid for slots and tokens that jobs held, and for those that none did, side by side."""
    with Canvas(f"money {name}", height=0.9 + 0.32 * len(runs)) as canvas:
        axes = canvas.axes[0]
        for place, run in enumerate(runs):
            cost, waste = float(run.figures.cost or 0), float(run.figures.waste or 0)
            axes.barh([place], [cost - waste], height=0.6, color=colour(place), linewidth=0)
            axes.barh(
                [place], [waste], left=[cost - waste], height=0.6, color=colour(place), alpha=0.35,
                linewidth=0,
            )  # fmt: skip
            share = f" {waste / cost:.0%} waste" if cost else ""
            axes.annotate(
                share, (cost, place), xytext=(3, 0), textcoords="offset points", color=INK,
                va="center",
            )  # fmt: skip
        axes.set_yticks(range(len(runs)), [letter(place) for place in range(len(runs))])
        axes.invert_yaxis()
        axes.margins(x=0.13)
        axes.set_xlim(left=0)
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x")
        axes.xaxis.set_major_formatter(thousands)
        axes.set_xlabel("cost")
        canvas.make_room_below()
        return Picture(
            "Used and wasted",
            "What was paid for slots and borrowed tokens while jobs held them (dark), and while none did (light): starting up, idle, on"
            " the way back, rounding to billing units.",
            canvas.svg(),
        )


def _spent(runs: Sequence[RunOutcome], when: Span, name: str) -> Picture:
    with Canvas(f"spent {name}", height=2.8) as canvas:
        axes = canvas.axes[0]
        top = 1.0
        for place, run in enumerate(runs):
            spent = [float(value) for value in run.curves.spent]
            if spent:
                top = max(top, 1.06 * spent[-1])
            axes.plot(
                run.curves.spent_times, spent, color=colour(place), linestyle=_style(place),
                linewidth=1.5, label=letter(place),
            )  # fmt: skip
        finish(axes, "spent", when, top=top)
        return Picture("Cost over time", "Money spent from the beginning.", canvas.svg())


def _waits(runs: Sequence[RunOutcome], name: str) -> Picture:
    with Canvas(f"waits {name}", height=3.0) as canvas:
        axes = canvas.axes[0]
        for place, run in enumerate(runs):
            minutes = [wait / 60 for wait in run.curves.waits]
            axes.plot(
                minutes, range(len(minutes)), color=colour(place), linestyle=_style(place),
                linewidth=1.5, label=letter(place),
            )  # fmt: skip
        longest = max((run.curves.waits[-1] for run in runs if run.curves.waits), default=0)
        _minutes(axes, max(1.0, longest / 60))
        axes.set_ylim(0, 101)
        axes.set_ylabel("% of jobs")
        axes.set_xlabel("waited, at most")
        axes.legend(loc="lower right", fontsize=8.5)
        canvas.make_room_below()
        return Picture(
            "Waiting times",
            "The share of the jobs that had started after such a time; the higher a line, the better. The scale is logarithmic "
            "above one minute.",
            canvas.svg(),
        )


def _minutes(axes: Any, longest: float) -> None:
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlim(0, longest)
    ticks = [tick for tick in _TICKS if tick <= longest]
    axes.set_xticks(ticks, [_TICKS[tick] for tick in ticks])
    axes.minorticks_off()


def _tokens(runs: Sequence[RunOutcome], resource: str, when: Span, name: str) -> Picture:
    with Canvas(f"tokens {resource} {name}", height=2.7) as canvas:
        axes = canvas.axes[0]
        top = 1
        for place, run in enumerate(runs):
            series = run.curves.series
            total = _sum(
                series, token_series(resource, "owned"), token_series(resource, "borrowed")
            )
            top = max([top, *total])
            axes.step(
                run.curves.times, total, where="post", color=colour(place), linestyle=_style(place),
                linewidth=1.1, label=letter(place), alpha=0.85,
            )  # fmt: skip
        finish(axes, "tokens", when, top=1.06 * top)
        return Picture(
            f"Tokens of {resource}",
            "What the cluster owned and had borrowed at a time.",
            canvas.svg(),
        )


def _demand(runs: Sequence[RunOutcome], when: Span, name: str) -> list[Picture]:
    """Return one picture a policy, all to one scale."""
    shown = runs[:ONE_EACH_MAX]
    supply = max(
        (max(_sum(run.curves.series, OWN, PROVISIONED), default=0) for run in shown), default=0
    )
    needed = max((max(_of(run, NEEDED), default=0) for run in shown), default=0)
    top = max(1.0, 1.06 * max(supply, min(needed, 2.5 * supply)))
    drawn: list[Picture] = []
    for place, run in enumerate(shown):
        with Canvas(f"demand {place} {name}", height=2.2) as canvas:
            axes = canvas.axes[0]
            times: tuple[datetime, ...] = run.curves.times
            own = _of(run, OWN)
            total = _sum(run.curves.series, OWN, PROVISIONED)
            axes.fill_between(
                times, 0, own, step="post", color=GREY, linewidth=0, label="own partition"
            )
            axes.fill_between(
                times, own, total, step="post", color=BLUE, linewidth=0, label="from providers"
            )
            axes.step(
                times, _of(run, NEEDED), where="post", color=RED, linewidth=1.0,
                label="needed: running and waiting",
            )  # fmt: skip
            finish(axes, "slots", when, top=top)
            caption = f"{letter(place)}: {run.policy}"
            if place == 0:
                caption += (
                    ". Slots that jobs run on or wait for (line), against the slots of the cluster (areas); where the line is above"
                    " the areas, jobs wait. All policies have the same scale; a peak far above all supply is cut off."
                )
            if place == ONE_EACH_MAX - 1 and len(runs) > ONE_EACH_MAX:
                caption += f". The other {len(runs) - ONE_EACH_MAX} policies are in the table."
            drawn.append(Picture(f"Demand against supply: {letter(place)}", caption, canvas.svg()))
    return drawn


def _of(run: RunOutcome, name: str) -> tuple[int, ...]:
    return run.curves.series.get(name, (0,) * len(run.curves.times))


def _sum(series: dict[str, tuple[int, ...]], first: str, second: str) -> list[int]:
    return [a + b for a, b in zip(series.get(first, ()), series.get(second, ()), strict=True)]
