"""The picture of docs/explanation/demand.md: hosts that fill, and hosts that are opened, from the session of an example.

The counted jobs are placed by a second session, on the snapshot with what the first one asks for (S' of the session's rules).
So the picture shows what the scheduler will do once the demand is there, and shows nothing if the demand were wrong.
"""

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from xce.domain.formats.session_result import Allocation, SessionResult
from xce.domain.formats.snapshot import Catalog, Host, HostUse, RunningJob, Snapshot, Tasks
from xce.domain.scheduling.session import run_session

EXAMPLE: Final = Path(__file__).parents[1] / "examples" / "filling.json"
PATH: Final = "docs/images/demand.svg"

CELL: Final = 30
COLUMN: Final = 118
LEFT: Final = 24
TOP: Final = 74
#: Colours that people who see few colours can tell apart (Okabe and Ito 2008); the id stands in each block as well.
COLOURS: Final = ("#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7", "#d55e00", "#0072b2")
RUNNING: Final = "#c4cad2"


class Kind(NamedTuple):
    """How hosts and tokens of one origin are drawn."""

    word: str
    dash: str
    stroke: str


OWN: Final = Kind("there", "", "#5b6470")
IN_FLIGHT: Final = Kind("in flight", "6 4", "#5b6470")
NEW: Final = Kind("new: the demand", "2 3", "#b3261e")


class Block(NamedTuple):
    """So many cells of a bar that a job takes; "" is free."""

    job: str
    cells: int


class Bar(NamedTuple):
    """A host, or the tokens of one origin, with what fills it."""

    name: str
    note: str
    kind: Kind
    size: int
    blocks: tuple[Block, ...]


def pages() -> Iterator[tuple[str, str]]:
    """Yield the one picture."""
    snapshot = Snapshot.from_json(EXAMPLE.read_bytes(), EXAMPLE.name)
    result = run_session(snapshot)
    later = with_demand(snapshot, result)
    placed = run_session(later)
    counted = {job.id for job in later.pending}
    assert {job.job for job in placed.allocations} == counted, "the demand is sound"
    yield PATH, picture(snapshot, result, later, placed)


# ---------------------------------------------------------------------------- S'
def with_demand(snapshot: Snapshot, result: SessionResult) -> Snapshot:
    """Return S': started jobs run, everything in flight and demanded is there, and only the counted jobs wait."""
    counted = {job.job for job in result.pending if job.provisioning is not None}
    lent = {each.name: each.amount for each in snapshot.catalog.in_flight.counts}
    for demand in result.demand.countable:
        lent[demand.name] = lent.get(demand.name, 0) + demand.amount
    templates = {template.id: template for template in snapshot.catalog.templates}
    names = [(host.id, host.template) for host in snapshot.catalog.in_flight.hosts]
    opened = [template for template, count in result.demand.order for _ in range(count)]
    names += [
        (f"new {template} {opened[:i].count(template) + 1}", template)
        for i, template in enumerate(opened)
    ]
    hosts = tuple(
        Host(name=name, total=templates[template].provides, rank=rank)
        for rank, (name, template) in enumerate(names, start=1)
    )
    return snapshot.model_copy(
        update={
            "hosts": (*snapshot.hosts, *hosts),
            "shared": tuple(
                pool.model_copy(update={"total": pool.total + lent.get(pool.name, 0)})
                for pool in snapshot.shared
            ),
            "running": (
                *snapshot.running,
                *(_running(job, snapshot) for job in result.allocations),
            ),
            "pending": tuple(
                job.model_copy(update={"tasks": Tasks(min=job.tasks.min)})
                for job in snapshot.pending
                if job.id in counted
            ),
            "catalog": Catalog(),
        }
    )


def _running(allocation: Allocation, snapshot: Snapshot) -> RunningJob:
    (job,) = (job for job in snapshot.pending if job.id == allocation.job)
    return RunningJob(
        id=job.id,
        user=job.user,
        hosts=tuple(HostUse(name=on.name, tasks=on.tasks, uses=on.uses) for on in allocation.hosts),
        shared={each.name: each.amount for each in allocation.shared},
    )


# ----------------------------------------------------------------------- drawing
def picture(
    snapshot: Snapshot, result: SessionResult, later: Snapshot, placed: SessionResult
) -> str:
    """Return the picture as SVG."""
    started = {job.job for job in result.allocations}
    colours = {
        job.id: COLOURS[i % len(COLOURS)]
        for i, job in enumerate(
            [job for job in later.running if job.id in started] + list(later.pending)
        )
    }
    bars = list(_host_bars(snapshot, later, placed))
    tokens = list(_token_bars(snapshot, result, later, placed))
    most = max(bar.size for bar in bars)
    below = TOP + most * CELL + 92
    width = LEFT * 2 + COLUMN * len(bars)
    height = below + 84 + 24 * (len(result.demand.impossible) + len(result.demand.not_counted))
    parts = [
        _text(
            LEFT,
            28,
            "Slots: where each job runs, or will run once the demand is there",
            16,
            bold=True,
        ),
        *_group_words(bars),
    ]
    for i, bar in enumerate(bars):
        parts += _upright(bar, LEFT + i * COLUMN, TOP, most, colours)
    parts.append(_text(LEFT, below - 16, "Tokens of lic_sim", 16, bold=True))
    x = float(LEFT)
    for bar in tokens:
        parts += _lying(bar, x, below, colours)
        x += bar.size * CELL + 14
    y = below + 84
    for each in (*result.demand.not_counted, *result.demand.impossible):
        parts.append(_text(LEFT, y, f"Job {each.job} is not in the demand: {each.why}", 13))
        y += 24
    title = "Hosts filled and hosts opened by the demand"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="Helvetica, Arial, sans-serif">\n<title>{title}</title>\n'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n' + "".join(parts) + "</svg>\n"
    )


def _host_bars(snapshot: Snapshot, later: Snapshot, placed: SessionResult) -> Iterator[Bar]:
    flying = {host.id for host in snapshot.catalog.in_flight.hosts}
    own = {host.name for host in snapshot.hosts}
    for host in later.hosts:
        blocks = [
            Block(job.id, use.uses.get("slots", use.tasks))
            for job in later.running
            for use in job.hosts
            if use.name == host.name
        ]
        blocks += [
            Block(job.job, on.uses["slots"])
            for job in placed.allocations
            for on in job.hosts
            if on.name == host.name
        ]
        kind = OWN if host.name in own else IN_FLIGHT if host.name in flying else NEW
        size = host.total["slots"]
        yield Bar(host.name, f"{host.total['mem'] // 1024} GiB", kind, size, _filled(blocks, size))


def _token_bars(
    snapshot: Snapshot, result: SessionResult, later: Snapshot, placed: SessionResult
) -> Iterator[Bar]:
    (pool,) = snapshot.shared
    blocks = [Block(job.id, job.shared.get(pool.name, 0)) for job in later.running]
    blocks += [
        Block(job.job, each.amount)
        for job in placed.allocations
        for each in job.shared
        if each.name == pool.name
    ]
    cells = [block.job for block in blocks for _ in range(block.cells)]
    sizes = (
        (OWN, pool.total),
        (IN_FLIGHT, sum(each.amount for each in snapshot.catalog.in_flight.counts)),
        (NEW, sum(each.amount for each in result.demand.countable)),
    )
    for kind, size in sizes:
        mine, cells = cells[:size], cells[size:]
        runs = [Block(job, mine.count(job)) for job in dict.fromkeys(mine)]
        yield Bar("", kind.word, kind, size, _filled(runs, size))


def _filled(blocks: Iterable[Block], size: int) -> tuple[Block, ...]:
    taken = tuple(block for block in blocks if block.cells)
    free = size - sum(block.cells for block in taken)
    return (*taken, Block("", free)) if free else taken


def _group_words(bars: list[Bar]) -> Iterator[str]:
    for kind in dict.fromkeys(bar.kind for bar in bars):
        first = next(i for i, bar in enumerate(bars) if bar.kind == kind)
        yield _text(LEFT + first * COLUMN, 56, kind.word, 13, colour=kind.stroke)


def _upright(bar: Bar, x: float, y: float, most: int, colours: Mapping[str, str]) -> Iterator[str]:
    """Yield a host, filled from below."""
    width, bottom = COLUMN - 24, y + most * CELL
    level = bottom
    for block in bar.blocks:
        level -= block.cells * CELL
        yield _block(block, x, level, width, block.cells * CELL, colours)
    yield _frame(bar.kind, x, level, width, bar.size * CELL)
    yield _text(x, bottom + 20, bar.name, 14, bold=True)
    yield _text(x, bottom + 38, bar.note, 12)


def _lying(bar: Bar, x: float, y: float, colours: Mapping[str, str]) -> Iterator[str]:
    """Yield tokens, filled from the left."""
    at = x
    for block in bar.blocks:
        yield _block(block, at, y, block.cells * CELL, CELL, colours)
        at += block.cells * CELL
    yield _frame(bar.kind, x, y, bar.size * CELL, CELL)
    yield _text(x, y + CELL + 18, f"{bar.size} {bar.note}", 12, colour=bar.kind.stroke)


def _block(
    block: Block, x: float, y: float, width: float, height: float, colours: Mapping[str, str]
) -> str:
    if not block.job:
        return ""
    fill = colours.get(block.job, RUNNING)
    label = block.job if width < 50 else f"job {block.job}"
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}" stroke="#ffffff"/>\n'
        + _text(x + width / 2, y + height / 2 + 5, label, 13, middle=True)
    )


def _frame(kind: Kind, x: float, y: float, width: float, height: float) -> str:
    dash = f' stroke-dasharray="{kind.dash}"' if kind.dash else ""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="none" '
        f'stroke="{kind.stroke}" stroke-width="2"{dash}/>\n'
    )


def _text(
    x: float,
    y: float,
    text: str,
    size: int,
    *,
    bold: bool = False,
    middle: bool = False,
    colour: str = "#1f2933",
) -> str:
    more = ' font-weight="bold"' if bold else ""
    more += ' text-anchor="middle"' if middle else ""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}"{more}>{escape(text)}</text>\n'
