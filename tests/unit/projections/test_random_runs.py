"""Random runs through the real commands: views against aggregates, rebuilt against folded, at every position."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from hypothesis import given, settings

from tests.unit.projections.moves import (
    Move,
    all_of,
    folded,
    moves,
    played,
)
from tests.unit.projections.run import (
    at,
    join,
    minutes,
)
from xce.domain.engine.commands import (
    MissJoin,
)
from xce.domain.formats.policy import PolicyInput
from xce.domain.formats.provider import Billing, Kind, ProviderDescription
from xce.domain.policy.billing import billed
from xce.domain.policy.unaccounted import counts_as, stated_prices
from xce.domain.provisioning.grant import LIVE as LIVE_GRANTS
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import LIVE, Instance, InstanceState
from xce.domain.provisioning.orphan import Orphan
from xce.domain.provisioning.provider import Provider
from xce.domain.provisioning.request import GIVEN_UP, OPEN
from xce.projections.all import Projections, RebuiltProjections


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
