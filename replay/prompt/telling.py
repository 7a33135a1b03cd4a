"""What commands answer: what was done, what happened on the way, where two branches part."""

from datetime import datetime
from typing import Final

from xce.domain.errors import InputError
from xce.replay.prompt.answers import Answer, Document, clock, counted, stamp, table
from xce.replay.prompt.difference import Parting
from xce.replay.prompt.info import figures, with_units
from xce.replay.prompt.play import Play
from xce.replay.scenario.acts import Done
from xce.replay.scenario.run import Mark

#: Characters of a line that people are shown.
WIDTH: Final = 140
#: Lines of what happened that people are shown; JSON has all.
LINES_MAX: Final = 30


def done(command: str, deed: Done) -> Answer:
    """Return what was done.

    Raises:
        InputError: it was not possible.
    """
    if deed.refused:
        raise InputError.of(command, f"not possible: {deed.what}")
    return Answer({"done": deed.what}, (deed.what,))


def moved(
    play: Play, mark: Mark, before: datetime, steps: int, stopped: str | None, *, everything: bool
) -> Answer:
    """Return what happened on the way; people are shown all of it, or what came last."""
    moments = play.runner.moments_since(mark)
    shown = moments if everything else tuple(one for one in moments if one.at == play.now)
    lines = [f"{one.at:%H:%M:%S} {'-' if one.position is None else one.position:>5} {cut(one.what, WIDTH)}" for one in shown[:LINES_MAX]]  # fmt: skip
    if len(shown) > LINES_MAX:
        lines.append(f"and {len(shown) - LINES_MAX} more")
    span = clock(play.now) if before == play.now else f"{clock(before)} to {clock(play.now)}"
    events = sum(1 for one in moments if one.position is not None)
    head = f"{span}: {counted(steps, 'moment')}, {counted(events, 'event')}"
    document = {
        "moments": steps,
        "over": play.is_over,
        "stopped": stopped,
        "happened": [one.model_dump(mode="json") for one in moments],
    }
    return Answer(document, (*lines, head if stopped is None else f"{head}; {stopped}"))


def parted(left: str, one: Play, right: str, other: Play, found: Parting | None) -> Answer:
    """Return where two branches part, and what both amount to."""
    mine, theirs = figures(one), figures(other)
    ends = {left: stamp(one.now), right: stamp(other.now)}
    rows = [("time", clock(one.now), clock(other.now))]
    beside = dict(with_units(theirs))
    rows += [(name, value, beside[name]) for name, value in with_units(mine)]
    document: Document = {
        "first": None if found is None else _parting(found),
        "ends": ends,
        "figures": {left: mine, right: theirs},
    }
    lines = [_no_difference(one, other)] if found is None else list(_parting_lines(left, right, found))  # fmt: skip
    return Answer(document, (*lines, table(("MEASURE", left, right), rows, (1, 2))))


def _no_difference(one: Play, other: Play) -> str:
    until = min(one.now, other.now)
    far = "" if one.is_over and other.is_over else f" up to {clock(until)}"
    return f"no session and no decision differs{far}"


def _parting(found: Parting) -> Document:
    ends = (found.one, found.other)
    return {
        "sessions": [None if one is None else one.number for one in ends],
        "at": [None if one is None else stamp(one.now) for one in ends],
        "job": found.job,
        "path": found.path,
        "left": found.left,
        "right": found.right,
    }


def _parting_lines(left: str, right: str, found: Parting) -> tuple[str, ...]:
    places = [
        f"{name} has no session then"
        if one is None
        else f"{name} session {one.number} of {clock(one.now)}"
        for name, one in ((left, found.one), (right, found.other))
    ]
    about = "" if found.job is None else f", job {found.job}"
    return (
        f"first difference: {places[0]}; {places[1]}{about}: {found.path}",
        f"  {left}: {cut(found.left)}",
        f"  {right}: {cut(found.right)}",
    )


def cut(value: str | None, most: int = 300) -> str:
    """Return a text that is not longer than that; of None: nothing."""
    if value is None:
        return "nothing"
    return value if len(value) <= most else f"{value[:most]} ..."
