"""Random courses of events: what may happen next, and what all of it comes to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from hypothesis import strategies as st

from tests.unit.projections.run import (
    Run,
    accept,
    at,
    came,
    cloud,
    declare,
    hosts,
    join,
    lent,
    minutes,
    occupied,
    pool,
    template,
    units,
)
from xce.domain.engine.commands import (
    AcceptReturn,
    CloseOrphan,
    Command,
    ConfirmGrantReturn,
    ConfirmReturn,
    DescribeProvider,
    DismissOrphan,
    GiveUpRequest,
    LoseTrack,
    MissJoin,
    PauseProvider,
    RefuseGrantReturn,
    RefuseRequest,
    RefuseReturn,
    Reopen,
    ReportOrphan,
    StartDrain,
    StartGrantReturn,
    StartReturn,
)
from xce.domain.events import ids
from xce.domain.events.recorded import Recorded
from xce.domain.formats.inventory import RequestEntry
from xce.domain.formats.provider import Billing, BillingUnit, Kind
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance, InstanceState
from xce.domain.provisioning.orphan import OrphanKind
from xce.domain.provisioning.request import Request
from xce.projections.all import Projections

T = TypeVar("T")

CLOUDS = {
    "aws": cloud("aws", template("c4"), template("m8", "0.40", max_number=4), lead=3),
    "gcp": cloud("gcp", template("c4", "0.25"), capacity=5, billing=Billing(unit=BillingUnit.HOUR)),
}
DESCRIPTIONS = (
    *CLOUDS.values(),
    cloud("aws", template("c4", "0.19", max_number=3)),
    cloud("gcp", template("c4", "0.25"), template("m8", None), minimum=2),
    pool(9),
    pool(20),
)


@dataclass(frozen=True)
class Move:
    """One thing that happens: what it is about is picked among what there is then."""

    action: str
    pick: int
    amount: int
    wait: int


def _asking(run: Run, move: Move) -> list[Command]:
    number = 1 + len([r for r in run.log.read() if isinstance(r.event, Request.Intended)])
    price = (None, "0.17", "0.25", "0.40")[move.pick % 4]
    if move.pick % 3 == 0:
        return [units(f"R{number}", move.amount, price=price)]
    of = ("aws", "gcp")[move.pick % 2]
    item = ("c4", "m8")[move.pick % 5 == 0]
    return [hosts(f"R{number}", move.amount, item, of=of, price=price)]


def _answer(entry: RequestEntry, move: Move) -> Command:
    """Some machines or grants came, with those of before; some failed; perhaps that is all."""
    ended = move.pick % 2 == 0
    if entry.kind is Kind.COUNTABLE:
        grants = [(f"{entry.id}g{n}", n + 1) for n in range(move.amount)]
        return lent(entry.id, *grants, ended=ended)
    names = [f"{entry.id}m{n}" for n in range(move.amount + 1)]
    cut = move.pick % (len(names) + 1)
    return came(entry.id, *names[:cut], failed=names[cut : cut + 1], ended=ended)


def commands_of(run: Run, move: Move) -> list[Command]:
    """Return what a move comes to now; nothing where there is nothing to move."""
    inventory = run.projections.inventory.view()
    in_state = {
        state: [entry for entry in inventory.instances if entry.state is state]
        for state in InstanceState
    }
    back = f"B{run.projections.position}"
    match move.action:
        case "ask":
            return _asking(run, move)
        case "settle" | "answer" | "track" if inventory.requests:
            request = _pick(inventory.requests, move)
            if move.action == "answer":
                return [accept(request.id), _answer(request, move)]
            if move.action == "track":
                return [LoseTrack(request.id, "timeout")]
            return [
                (RefuseRequest, GiveUpRequest)[move.amount % 2](request.id, "no capacity"),
            ]
        case "late":
            asked = {
                r.event.originator_id for r in run.log.read() if isinstance(r.event, Request.Closed)
            }
            return [
                came(ids.name_of(name), f"{ids.name_of(name)}late")
                for name in sorted(asked)[: move.amount % 2]
                if run.log.get(Request, name).kind is Kind.HOST
            ]
        case "join" | "miss" if in_state[InstanceState.STARTING]:
            starting = _pick(in_state[InstanceState.STARTING], move).id
            return [join(starting) if move.action == "join" else MissJoin(starting, "x")]
        case "drain" if in_state[InstanceState.JOINED]:
            return [StartDrain(_pick(in_state[InstanceState.JOINED], move).id, "idle")]
        case "reopen" if in_state[InstanceState.DRAINING]:
            return [Reopen(_pick(in_state[InstanceState.DRAINING], move).id, "busy")]
        case "return":
            idle = [*in_state[InstanceState.DRAINING], *in_state[InstanceState.NEVER_JOINED]]
            return [StartReturn(back, (_pick(idle, move).id,), "idle")] if idle else []
        case "returned" | "refused" if in_state[InstanceState.RETURNING]:
            entry = _pick(in_state[InstanceState.RETURNING], move)
            assert entry.return_id is not None
            if move.action == "returned":
                return [
                    AcceptReturn(entry.return_id, (entry.id,), "theirs"),
                    ConfirmReturn(entry.return_id, entry.id),
                ]
            return [RefuseReturn(entry.return_id, entry.id, "no")]
        case "give back" if inventory.grants:
            grant = _pick(inventory.grants, move)
            return [StartGrantReturn(back, grant.id, 1 + move.amount % 3)]
        case "given back" | "put back":
            going = [entry for entry in inventory.grants if entry.return_id is not None]
            if not going:
                return []
            grant = _pick(going, move)
            assert grant.return_id is not None
            if move.action == "given back":
                return [ConfirmGrantReturn(grant.return_id, grant.id)]
            return [RefuseGrantReturn(grant.return_id, grant.id, "no")]
        case "occupy":
            return [occupied(move.amount - 1)]
        case "declare":
            return [declare(move.pick % 9, move.amount * 3, step=1 + move.pick % 3)]
        case "pause":
            item = (None, "c4", "lic")[move.pick % 3]
            of = ("aws", "gcp", "pool")[move.pick % 3]
            until = run.now + minutes(1 + move.amount * 10)
            return [PauseProvider(of, item, until, "no capacity")]
        case "orphan":
            return [_found(run, move)]
        case "orphan ends" if inventory.unowned:
            one = _pick(inventory.unowned, move)
            theirs = one.id.removeprefix(f"{one.provider}/")
            if move.pick % 4:
                return [CloseOrphan(one.provider, theirs, "not listed")]
            return [DismissOrphan(one.provider, theirs, "of others")]
        case "describe":
            return [DescribeProvider(DESCRIPTIONS[move.pick % len(DESCRIPTIONS)])]
        case _:
            return []


def _found(run: Run, move: Move) -> ReportOrphan:
    """Something that nobody owns: of ids that answers bring as well, at times that may be wrong."""
    of = ("aws", "gcp", "pool")[move.amount % 3]
    theirs = ("R1late", "R1m0", "R2m0", "R3g0", "R4m1", "x1", "x2")[move.pick % 7]
    since = (None, run.now - minutes(move.wait), at(0), run.now + minutes(5))[move.pick % 4]
    tag = (None, "R1", "R2", "R9")[move.amount % 4]
    units_of = of == "pool"
    item = ("lic", None)[move.pick % 2] if units_of else ("c4", "m8", None)[move.pick % 3]
    return ReportOrphan(
        of,
        theirs,
        OrphanKind.UNKNOWN_TO_US,
        tag,
        "listed twice",
        of=Kind.COUNTABLE if units_of else Kind.HOST,
        item=item,
        amount=move.amount if units_of else 1,
        since=since,
    )


def lose(run: Run, move: Move) -> None:
    """Something is gone without our return."""
    inventory = run.projections.inventory.view()
    if inventory.grants and move.pick % 2:
        name = _pick(inventory.grants, move).id
        grant, resource = run.grant(name), run.resource()
        grant.lose(why="term over", at=run.now, by="test", epoch=1)
        resource.lose_grant(grant_id=name, at=run.now, by="test")
        run.save(grant, resource)
    elif inventory.instances:
        instance = run.instance(_pick(inventory.instances, move).id)
        instance.lose(why="gone", at=run.now, by="test", epoch=1)
        run.save(instance)


def _pick(entries: Sequence[T], move: Move) -> T:
    return entries[move.pick % len(entries)]


ACTIONS = (
    "ask", "answer", "answer", "answer", "settle", "track", "late", "join", "join", "join", "miss", "drain", "drain",
    "reopen", "return", "return", "returned", "returned", "refused", "give back", "give back", "given back", "put back",
    "occupy", "declare", "pause", "describe", "lose", "orphan", "orphan", "orphan ends",
)  # fmt: skip
moves = st.lists(
    st.builds(
        Move,
        st.sampled_from(ACTIONS),
        st.integers(0, 59),
        st.integers(1, 4),
        st.integers(0, 30),
    ),
    min_size=20,
    max_size=60,
)


def played(steps: list[Move]) -> Run:
    run = Run(*CLOUDS.values(), pool(20))
    run.do(declare(owned=5, max_borrow=9), occupied(0))
    run.do(hosts("R1", 3), hosts("R2", 2, of="gcp", price="0.25"), units("R3", 4))
    run.do(accept("R1"), accept("R2"), accept("R3"))
    run.do(came("R1", "R1m0", "R1m1"), came("R2", "R2m0", failed=["R2m1"]), lent("R3", ("R3g0", 2)))
    run.do(join("aws/R1m0"))
    for step in steps:
        run.now += minutes(step.wait)
        if step.action == "lose":
            lose(run, step)
            run.attempt(occupied(0))
        else:
            run.attempt(*commands_of(run, step))
        run.catalog()
        run.projections.inventory.view()
    return run


def all_of(run: Run) -> tuple[list[Request], list[Instance], list[Grant]]:
    """Return all aggregates of the log."""
    names = dict.fromkeys(recorded.event.originator_id for recorded in run.log.read())
    return (
        [run.log.get(Request, name) for name in names if ids.kind_of(name) == ids.REQUEST],
        [run.log.get(Instance, name) for name in names if ids.kind_of(name) == ids.INSTANCE],
        [run.log.get(Grant, name) for name in names if ids.kind_of(name) == ids.GRANT],
    )


def folded(events: list[Recorded]) -> Projections:
    made = Projections()
    made.apply(events)
    return made
