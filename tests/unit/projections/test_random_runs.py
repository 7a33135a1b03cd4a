"""Random runs through the real commands: views against aggregates, rebuilt against folded, at every position."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

from hypothesis import given, settings
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
from xce.domain.formats.policy import PolicyInput
from xce.domain.formats.provider import Billing, BillingUnit, Kind, ProviderDescription
from xce.domain.policy.billing import billed
from xce.domain.policy.unaccounted import counts_as, stated_prices
from xce.domain.provisioning.grant import LIVE as LIVE_GRANTS
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import LIVE, Instance, InstanceState
from xce.domain.provisioning.orphan import Orphan, OrphanKind
from xce.domain.provisioning.provider import Provider
from xce.domain.provisioning.request import GIVEN_UP, OPEN, Request
from xce.projections.all import Projections, RebuiltProjections

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


@given(moves)
@settings(max_examples=40)
def test_rebuilt_from_the_log_the_state_is_equal_at_every_position(steps: list[Move]) -> None:
    run = played(steps)
    events = list(run.log.read())
    followed = Projections()

    assert run.rebuilt().difference(run.projections) is None
    for recorded in events:
        followed.apply([recorded])
        followed.catalog.view(run.now)
        followed.inventory.view()
        rebuilt = folded(events[: recorded.position])
        assert rebuilt.difference(followed) is None
        assert rebuilt.state() == followed.state()
        assert rebuilt.catalog.view(run.now) == followed.catalog.view(run.now)
        assert rebuilt.spending.lines(run.now) == followed.spending.lines(run.now)


@given(moves)
def test_the_inventory_says_what_the_aggregates_say(steps: list[Move]) -> None:
    run = played(steps)
    inventory = run.projections.inventory.view()
    requests, instances, grants = all_of(run)

    assert {entry.id: entry.state for entry in inventory.instances} == {
        instance.name: instance.state for instance in instances if instance.state in LIVE
    }
    assert {
        entry.id: (entry.state, entry.returning, entry.returned, entry.amount)
        for entry in inventory.grants
    } == {
        grant.name: (grant.state, grant.returning, grant.returned, grant.amount)
        for grant in grants
        if grant.state in LIVE_GRANTS
    }
    alive = {entry.request for entry in inventory.instances}
    alive |= {entry.request for entry in inventory.grants}
    shown = {
        entry.id: (entry.state, entry.granted, entry.failed, entry.provider_request_id)
        for entry in inventory.requests
    }
    for request in requests:
        found = (request.state, request.granted, request.failed, request.provider_request_id)
        if request.name in shown:
            assert shown[request.name] == found
        assert (request.name in shown) or request.state not in OPEN
        expected = request.state in OPEN or (request.state in GIVEN_UP and not request.settled)
        assert (request.name not in shown) or expected or request.name in alive
    existing = Counter((i.provider, i.template) for i in instances if i.state in LIVE)
    for request in requests:
        if request.kind is Kind.HOST:
            existing[request.provider, request.item] += request.open_amount
    assert run.projections.inventory.hosts_of == +existing


@given(moves)
def test_totals_are_owned_plus_borrowed_as_the_aggregates_say(steps: list[Move]) -> None:
    run = played(steps)
    requests, _, grants = all_of(run)
    resource, total = run.resource(), run.projections.totals.of("lic")

    assert (total.owned, total.borrowed, total.total) == (
        resource.owned,
        resource.borrowed,
        resource.total,
    )
    assert total.total == total.owned + total.borrowed
    assert total.borrowed == sum(grant.active for grant in grants)
    assert total.returning == sum(grant.returning for grant in grants if grant.state in LIVE_GRANTS)
    assert total.in_flight == sum(r.open_amount for r in requests if r.kind is Kind.COUNTABLE)
    assert min(total.owned, total.borrowed, total.returning, total.in_flight) >= 0


@given(moves)
def test_a_host_is_in_flight_or_joined_or_neither_and_what_is_open_is_in_flight_once(
    steps: list[Move],
) -> None:
    run = played(steps)
    requests, instances, _ = all_of(run)
    catalog = run.catalog()
    found = [host.id for host in catalog.in_flight.hosts]
    joined = set(run.projections.inventory.joined_hosts().values())

    assert len(found) == len(set(found))
    assert not joined & set(found)
    starting = [i.name for i in instances if i.state is InstanceState.STARTING]
    asked = sum(r.open_amount for r in requests if r.kind is Kind.HOST)
    assert len(found) == len(starting) + asked
    assert set(starting) <= set(found)
    lines = {line.id for line in catalog.templates}
    assert all(host.template in lines for host in catalog.in_flight.hosts)


@given(moves)
def test_room_never_lets_a_limit_be_passed(steps: list[Move]) -> None:
    run = played(steps)
    used = run.projections.inventory.hosts_of
    descriptions = run.projections.catalog.descriptions()
    for line in run.projections.catalog.view(at(10_000)).templates:
        limits = [
            (offer.max_number - used[d.name, offer.template_id]) if offer.max_number >= 0 else 10**6
            for d in descriptions
            for offer in d.templates
            if line.id.partition("@")[0] == offer.template_id
        ]
        assert 0 <= line.allowed <= sum(max(0, limit) for limit in limits)


@dataclass(frozen=True)
class Cost:
    """What is paid for of something, by hand."""

    price: Decimal | None
    since: datetime
    billing: Billing

    def upto(self, end: datetime, amount: int) -> Fraction:
        if self.price is None:
            return Fraction(0)
        paid = billed(end - self.since, self.billing) // minutes(1 / 60)
        return Fraction(self.price) * amount * paid / 3600


def _orphan_cost(event: Orphan.Found, said: ProviderDescription) -> Cost:
    since = event.timestamp if event.since is None else min(event.timestamp, event.since)
    _, price = counts_as(event.item, event.price_per_hour, stated_prices(said, event.of))
    return Cost(price, since, said.billing)


@given(moves)
def test_costs_are_the_sum_over_everything_that_was_ever_there(steps: list[Move]) -> None:
    run = played(steps)
    exact = Fraction(0)
    costs: dict[str, Cost] = {}
    said: dict[str, ProviderDescription] = {}
    parts: dict[tuple[str, str], int] = {}
    left: Counter[str] = Counter()
    for recorded in run.log.read():
        event, now = recorded.event, recorded.event.timestamp
        name, ended = event.originator_id, 0
        match event:
            case Provider.Described():
                said[event.description.name] = event.description
            case Instance.Granted() | Grant.Granted():
                known = event.billing if isinstance(event, Instance.Granted) else Billing()
                costs[name] = Cost(event.price_per_hour, now, known)
                left[name] = 1 if isinstance(event, Instance.Granted) else event.amount
            case Orphan.Found() if event.theirs != event.tag:
                costs[name] = _orphan_cost(event, said[event.provider])
                left[name] = event.amount
            case Grant.ReturnStarted():
                parts[name, event.return_id] = event.amount
            case Grant.ReturnConfirmed():
                ended = parts[name, event.return_id]
            case Instance.Returned() | Instance.Lost() | Grant.Lost():
                ended = left[name]
            case Orphan.Vanished() | Orphan.Adopted():
                ended = left[name]
            case Orphan.Dismissed():
                del left[name]
            case _:
                pass
        if ended:
            exact += costs[name].upto(now, ended)
            left[name] -= ended
    exact += sum(costs[name].upto(run.now, amount) for name, amount in left.items() if amount)

    lines = run.projections.spending.lines(run.now)
    assert abs(exact - Fraction(run.projections.spending.cost_at(run.now))) <= Fraction(
        len(lines), 2 * 10**6
    )
    live = sum(line.live for line in lines)
    assert live == sum(amount for amount in left.values())


@given(moves)
def test_nothing_is_both_owned_and_unowned(steps: list[Move]) -> None:
    run = played(steps)
    inventory = run.projections.inventory.view()

    owned = {
        f"{one.provider}/{one.machine}"
        for one in inventory.instances
        if one.state is not InstanceState.RETURNING  # the machine may be there again by then
    }
    owned |= {one.id for one in inventory.grants}

    assert not owned & {one.id for one in inventory.unowned}


@given(moves)
@settings(max_examples=30)
def test_the_views_are_right_input_of_the_policy(steps: list[Move]) -> None:
    run = played(steps)
    inputs = PolicyInput(
        now=run.now,
        inventory=run.projections.inventory.view(),
        providers=run.projections.catalog.descriptions(),
        pauses=run.projections.catalog.pauses(run.now),
    )

    assert PolicyInput.from_json(inputs.to_json()) == inputs


def test_a_difference_names_where_it_is() -> None:
    one, other = played([]), played([])
    assert one.projections.difference(other.projections) is None

    other.do(join("aws/R1m1"))
    assert one.projections.difference(other.projections) == (
        f"position {one.projections.position} and {other.projections.position}"
    )
    one.do(MissJoin("aws/R1m1", "x"))
    found = one.projections.difference(other.projections)
    assert found is not None
    assert found.startswith("inventory, instances: aws/R1m1 is ")


def test_projections_rebuilt_event_by_event_are_compared_with_those_that_are_served() -> None:
    run = played([])
    rebuilt = RebuiltProjections(run.projections)
    for recorded in run.log.read():
        rebuilt.see(recorded)
    assert rebuilt.difference() is None

    run.do(join("aws/R1m1"))
    assert rebuilt.difference() is not None


def test_a_rebuild_stops_at_the_position_asked_for() -> None:
    run = played([])

    assert run.rebuilt(upto=9).position == 9
    assert {projection.position for projection in run.rebuilt(upto=9).each().values()} == {9}
    assert run.rebuilt(upto=9).difference(folded(list(run.log.read(0, 9)))) is None


@given(moves)
@settings(max_examples=40)
def test_kept_and_resumed_it_is_the_same_and_folds_on_alike(steps: list[Move]) -> None:
    run = played(steps)
    events = list(run.log.read())
    middle = len(events) // 2
    followed = folded(events[:middle])

    kept = followed.keep()
    resumed = Projections.resumed(followed.position, kept)

    assert resumed.difference(followed) is None
    assert resumed.keep() == kept
    assert resumed.inventory.view() == followed.inventory.view()
    assert resumed.catalog.view(run.now) == followed.catalog.view(run.now)
    for projections in (resumed, followed):
        projections.apply(events[middle:])
    assert resumed.difference(followed) is None
    assert resumed.catalog.view(run.now) == followed.catalog.view(run.now)
    assert resumed.spending.lines(run.now) == followed.spending.lines(run.now)
    assert resumed.keep() == followed.keep()
