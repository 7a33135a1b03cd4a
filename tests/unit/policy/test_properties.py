"""What holds for every round: bounds are kept, nothing is asked twice, nothing goes back too early, lists have no order."""

from collections import Counter
from datetime import timedelta
from decimal import Decimal
from random import Random
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.policy.makers import (
    NOW,
    POSITION,
    at,
    carried_out,
    demand,
    grant,
    hosts,
    idle_host,
    instance,
    minutes,
    of_kind,
    provider,
    request,
    resource,
    round_of,
    template,
    units,
)
from xce.domain.formats.policy import (
    Budget,
    Decision,
    DecisionKind,
    FailureEntry,
    Pause,
    PolicyInput,
    PolicySettings,
    StandingMinimum,
)
from xce.domain.formats.provider import Billing, BillingUnit, Kind, ProviderDescription
from xce.domain.formats.session_result import (
    CountDemand,
    Demand,
    HostDemand,
    Idle,
    IdleCount,
)
from xce.domain.policy import facts
from xce.domain.policy.decide import decide
from xce.domain.policy.granularity import Sizes
from xce.domain.provisioning.grant import GrantState
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.request import RequestState

T = TypeVar("T")
TEMPLATES = ("c4", "m8")
RESOURCES = ("lic", "tok")
PROVIDERS = ("p1", "p2", "p10")
prices = st.sampled_from(["0", "0.17", "0.25", "1.50", None])


@st.composite
def providers(draw: st.DrawFn, name: str) -> ProviderDescription:
    return provider(
        name,
        *(
            template(item, price=draw(prices), max_number=draw(st.integers(-1, 12)))
            for item in draw(st.sets(st.sampled_from(TEMPLATES)).map(sorted))
        ),
        resources=[
            resource(
                item,
                capacity=draw(st.none() | st.integers(0, 20)),
                price=draw(prices),
                step=draw(st.integers(1, 4)),
            )
            for item in draw(st.sets(st.sampled_from(RESOURCES)).map(sorted))
        ],
        priority=draw(st.integers(0, 1)),
        capacity=draw(st.none() | st.integers(0, 15)),
        minimum=draw(st.integers(1, 4)),
        step=draw(st.integers(1, 3)),
        minimum_hold=minutes(draw(st.sampled_from([0, 30, 90]))),
        billing=Billing(unit=draw(st.sampled_from(BillingUnit))),
        partial_returns=draw(st.booleans()),
    )


@st.composite
def demands(draw: st.DrawFn) -> Demand:
    orders = iter(draw(st.permutations(range(1, 13))))

    def jobs(count: int) -> list[tuple[str, int, int]]:
        number = draw(st.integers(1, 3))
        return [
            (f"j{order}", order, draw(st.integers(1, max(1, count))))
            for order in (next(orders) for _ in range(number))
        ]

    parts: list[HostDemand | CountDemand] = []
    lines = draw(st.sets(st.sampled_from([*TEMPLATES, "c4@0.17"]), max_size=2))
    for line in sorted(lines):
        count = draw(st.integers(0, 15))
        parts.append(hosts(line, count, *jobs(count)))
    for name in sorted(draw(st.sets(st.sampled_from(RESOURCES)))):
        count = draw(st.integers(0, 15))
        parts.append(units(name, count, *jobs(count)))
    runs = draw(st.lists(st.tuples(st.sampled_from(TEMPLATES), st.integers(1, 5)), max_size=4))
    return demand(*parts, order=runs)


@st.composite
def rounds(draw: st.DrawFn) -> PolicyInput:
    names = draw(st.lists(st.sampled_from(PROVIDERS), unique=True))
    owner = st.sampled_from([*PROVIDERS])
    instances = [
        instance(
            f"i-{n}",
            draw(st.sampled_from(TEMPLATES)),
            of=draw(owner),
            state=draw(st.sampled_from(InstanceState)),
            from_request=draw(st.sampled_from([None, "R0", "R1"])),
            granted_at=at(-draw(st.integers(0, 200))),
            hold_until=draw(st.none() | st.integers(-60, 60).map(at)),
            price=draw(prices),
        )
        for n in range(draw(st.integers(0, 8)))
    ]
    grants = [
        grant(
            f"g-{n}",
            amount := draw(st.integers(1, 9)),
            item=draw(st.sampled_from(RESOURCES)),
            of=draw(owner),
            returned=draw(st.integers(0, amount)),
            state=draw(st.sampled_from(GrantState)),
            granted_at=at(-draw(st.integers(0, 200))),
            hold_until=draw(st.none() | st.integers(-60, 60).map(at)),
            price=draw(prices),
        )
        for n in range(draw(st.integers(0, 5)))
    ]
    requests = [
        request(
            f"R{n}",
            draw(st.sampled_from(RESOURCES if kind is Kind.COUNTABLE else TEMPLATES)),
            draw(st.integers(1, 9)),
            of=draw(owner),
            kind=kind,
            granted=draw(st.integers(0, 4)),
            failed=draw(st.integers(0, 4)),
            state=draw(st.sampled_from(RequestState)),
            asked_position=POSITION + draw(st.integers(-3, 3)),
            asked_at=at(-draw(st.integers(0, 30))),
            price=draw(prices),
        )
        for n, kind in enumerate(draw(st.lists(st.sampled_from(Kind), max_size=5)))
    ]
    budgets = [
        Budget(
            name=f"b{n}",
            provider=draw(st.none() | owner),
            max_hosts=draw(st.none() | st.integers(0, 20)),
            max_cost_per_hour=draw(st.none() | st.integers(0, 20).map(Decimal)),
        )
        for n in range(draw(st.integers(0, 2)))
    ]
    pauses = [
        Pause(
            provider=draw(owner),
            item=draw(st.sampled_from([None, *TEMPLATES])),
            until=at(draw(st.integers(-5, 5))),
            why="tests",
        )
        for _ in range(draw(st.integers(0, 2)))
    ]
    idle = Idle(
        hosts=tuple(
            idle_host(entry.id, at(-draw(st.integers(0, 90))))
            for entry in instances
            if draw(st.booleans())
        ),
        counts=tuple(
            IdleCount(name=name, amount=draw(st.integers(0, 12)))
            for name in sorted(draw(st.sets(st.sampled_from(RESOURCES))))
        ),
    )
    return round_of(
        *[draw(providers(name)) for name in names],
        wants=draw(demands()),
        idle=idle,
        requests=requests,
        instances=instances,
        grants=grants,
        budgets=budgets,
        pauses=pauses,
        failures=[
            FailureEntry(
                provider=name,
                item=item,
                in_a_row=draw(st.integers(1, 5)),
                last_at=at(-draw(st.integers(0, 90))),
                refused=draw(st.booleans()),
                why="tests",
            )
            for name in sorted(draw(st.sets(st.sampled_from(PROVIDERS), max_size=2)))
            for item in sorted(draw(st.sets(st.sampled_from([*TEMPLATES, *RESOURCES]), max_size=2)))
        ],
        settings=PolicySettings(
            max_in_flight_hosts=draw(st.integers(0, 30)),
            max_per_request=draw(st.integers(1, 8)),
            minimum_hold=minutes(draw(st.sampled_from([0, 45]))),
            standing=tuple(
                StandingMinimum(template=item, hosts=draw(st.integers(0, 6)))
                for item in sorted(draw(st.sets(st.sampled_from(TEMPLATES))))
            ),
        ),
    )


def _requests(inputs: PolicyInput) -> list[Decision]:
    return of_kind(decide(inputs), DecisionKind.REQUEST)


def _amount(decision: Decision) -> int:
    return (decision.count or 0) + (decision.amount or 0)


def _hosts_by_owner(inputs: PolicyInput) -> Counter[tuple[str, str]]:
    """Return the hosts that exist or are asked, by (provider, template), counted the plain way."""
    found = Counter[tuple[str, str]]()
    for entry in inputs.inventory.instances:
        if entry.state not in (InstanceState.RETURNED, InstanceState.LOST):
            found[entry.provider, entry.template] += 1
    for asked in inputs.inventory.requests:
        if asked.template is not None:
            found[asked.provider, asked.template] += facts.open_amount(asked)
    return found


@given(rounds())
def test_no_capacity_and_no_count_budget_is_passed(inputs: PolicyInput) -> None:
    before, after = _hosts_by_owner(inputs), _hosts_by_owner(carried_out(inputs))
    grown = {key for key in after if after[key] > before[key]}
    described = {entry.name: entry for entry in inputs.providers}

    for name, item in grown:
        offer = next(t for t in described[name].templates if t.template_id == item)
        assert offer.max_number < 0 or after[name, item] <= offer.max_number
        capacity = described[name].capacity
        here = sum(count for (owner, _), count in after.items() if owner == name)
        assert capacity is None or here <= capacity
        for budget in inputs.budgets:
            if budget.max_hosts is not None and budget.provider in (None, name):
                counted = here if budget.provider is not None else after.total()
                assert counted <= budget.max_hosts
    starting = sum(e.state is InstanceState.STARTING for e in inputs.inventory.instances)
    asked = sum(facts.open_amount(r) for r in carried_out(inputs).inventory.requests if r.template)
    assert not grown or starting + asked <= inputs.settings.max_in_flight_hosts


@given(rounds())
def test_no_capacity_of_a_resource_is_passed(inputs: PolicyInput) -> None:
    lent = Counter[tuple[str, str]]()
    for entry in inputs.inventory.grants:
        lent[entry.provider, entry.resource] += facts.held(entry)
    for asked in carried_out(inputs).inventory.requests:
        if asked.resource is not None:
            lent[asked.provider, asked.resource] += facts.open_amount(asked)

    for decision in _requests(inputs):
        if decision.resource is None:
            continue
        owner = next(entry for entry in inputs.providers if entry.name == decision.provider)
        offer = next(entry for entry in owner.resources if entry.name == decision.resource)
        assert offer.capacity is not None
        assert lent[owner.name, offer.name] <= offer.capacity
        assert _amount(decision) % offer.step == 0


def _costs(inputs: PolicyInput) -> list[tuple[str, Decimal | None]]:
    """Return (provider, price per hour) of each single host and unit that exists or is asked."""
    stated: dict[tuple[str, str], Decimal | None] = {}
    for owner in inputs.providers:
        stated |= {
            (owner.name, offer.template_id): owner.price_of(offer) for offer in owner.templates
        }
        stated |= {(owner.name, offer.name): owner.price_of(offer) for offer in owner.resources}
    found: list[tuple[str, str, Decimal | None, int]] = [
        *(
            (e.provider, e.template, e.price_per_hour, int(facts.exists(e)))
            for e in inputs.inventory.instances
        ),
        *(
            (e.provider, e.resource, e.price_per_hour, facts.held(e))
            for e in inputs.inventory.grants
        ),
        *(
            (e.provider, e.template or e.resource or "", e.price_per_hour, facts.open_amount(e))
            for e in inputs.inventory.requests
        ),
    ]
    return [
        (owner, price if price is not None else stated.get((owner, item)))
        for owner, item, price, amount in found
        for _ in range(amount)
    ]


@given(rounds())
def test_the_cost_rate_passes_no_budget_and_an_unknown_price_is_not_zero(
    inputs: PolicyInput,
) -> None:
    costs = _costs(carried_out(inputs))
    for budget in inputs.budgets:
        asked = [d for d in _requests(inputs) if budget.provider in (None, d.provider)]
        if budget.max_cost_per_hour is None or not asked:
            continue
        prices = [price for owner, price in costs if budget.provider in (None, owner)]
        known = [price for price in prices if price is not None]
        assert len(known) == len(prices)
        added = sum(decision.cost_per_hour or 0 for decision in asked)
        assert sum(known) <= budget.max_cost_per_hour or added == 0


@given(rounds())
def test_carried_out_and_decided_again_nothing_is_asked(inputs: PolicyInput) -> None:
    assert _requests(carried_out(inputs)) == []


@given(rounds())
def test_no_more_is_asked_than_is_wanted_but_for_the_size_of_asks(inputs: PolicyInput) -> None:
    asked = Counter[tuple[str, str]]()
    for decision in _requests(inputs):
        assert _amount(decision) > 0
        asked[decision.provider or "", decision.template or decision.resource or ""] += _amount(
            decision
        )

    for (name, item), amount in asked.items():
        owner = next(entry for entry in inputs.providers if entry.name == name)
        if item in TEMPLATES:
            grain, most = owner.granularity, inputs.settings.max_per_request
            sizes = Sizes.of(grain.minimum, grain.step, most)
            lines = [p.count for p in inputs.demand.hosts if p.template.partition("@")[0] == item]
            lines += [least.hosts for least in inputs.settings.standing if least.template == item]
        else:
            offer = next(entry for entry in owner.resources if entry.name == item)
            sizes = Sizes.of(offer.step, offer.step)
            lines = [part.amount for part in inputs.demand.countable if part.name == item]
        assert amount <= sum(sizes.up(line) for line in lines)


@given(rounds())
def test_each_request_has_a_possible_size(inputs: PolicyInput) -> None:
    for decision in _requests(inputs):
        if decision.template is None:
            continue
        owner = next(entry for entry in inputs.providers if entry.name == decision.provider)
        assert decision.count is not None
        assert owner.granularity.minimum <= decision.count <= inputs.settings.max_per_request
        assert decision.count % owner.granularity.step == 0


@given(rounds())
def test_nothing_goes_back_before_its_hold_nor_what_is_wanted_nor_more_than_is_unused(
    inputs: PolicyInput,
) -> None:
    described = {entry.name: entry for entry in inputs.providers}
    unused = {count.name: count.amount for count in inputs.idle.counts}
    back = Counter[str]()
    for decision in of_kind(decide(inputs), DecisionKind.RETURN):
        owner = described.get(decision.provider or "")
        least = owner.minimum_hold if owner is not None else timedelta(0)
        for name in decision.instances:
            entry = next(entry for entry in inputs.inventory.instances if entry.id == name)
            assert entry.state is InstanceState.JOINED
            assert name in {idle.instance for idle in inputs.idle.hosts}
            assert entry.joined_at is not None
            assert NOW - entry.joined_at >= max(least, inputs.settings.minimum_hold)
            assert entry.hold_until is None or entry.hold_until <= NOW
            assert not any(
                part.count and part.template.partition("@")[0] == entry.template
                for part in inputs.demand.hosts
            )
        for part in decision.grants:
            given_grant = next(entry for entry in inputs.inventory.grants if entry.id == part.grant)
            assert given_grant.state is GrantState.ACTIVE
            assert 0 < part.amount <= given_grant.amount - given_grant.returned
            assert NOW - given_grant.granted_at >= least
            assert given_grant.hold_until is None or given_grant.hold_until <= NOW
            back[given_grant.resource] += part.amount
    for name, amount in back.items():
        assert amount <= unused[name]
        assert not any(p.amount for p in inputs.demand.countable if p.name == name)


@given(rounds())
def test_no_return_goes_below_a_standing_minimum(inputs: PolicyInput) -> None:
    going = Counter[str]()
    for decision in of_kind(decide(inputs), DecisionKind.RETURN):
        if decision.template is not None:
            going[decision.template] += len(decision.instances)

    for minimum in inputs.settings.standing:
        joined = sum(
            entry.template == minimum.template and entry.state is InstanceState.JOINED
            for entry in inputs.inventory.instances
        )
        if going[minimum.template]:
            assert joined - going[minimum.template] >= minimum.hosts


@given(rounds())
def test_what_is_wanted_is_asked_or_held_for_a_reason(inputs: PolicyInput) -> None:
    decisions = decide(carried_out(inputs)).decisions
    first = decide(inputs).decisions
    held = {d.template or d.resource for d in first if d.kind is DecisionKind.HOLD}
    asked = {d.template or d.resource for d in first if d.kind is DecisionKind.REQUEST}

    for part in inputs.demand.hosts:
        if part.count and not inputs.inventory.requests:
            item = part.template.partition("@")[0]
            assert part.template in held or item in asked
    assert all(decision.reason for decision in (*first, *decisions))


@given(rounds(), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_the_order_of_lists_does_not_matter(inputs: PolicyInput, random: Random) -> None:
    def mixed(items: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(random.sample(items, len(items)))

    demanded, inventory, idle = inputs.demand, inputs.inventory, inputs.idle
    shuffled = inputs.model_copy(
        update={
            "providers": tuple(
                entry.model_copy(
                    update={
                        "templates": mixed(entry.templates),
                        "resources": mixed(entry.resources),
                    }
                )
                for entry in mixed(inputs.providers)
            ),
            "demand": demanded.model_copy(
                update={
                    "hosts": tuple(
                        part.model_copy(update={"jobs": mixed(part.jobs)})
                        for part in mixed(demanded.hosts)
                    ),
                    "countable": mixed(demanded.countable),
                }
            ),
            "inventory": inventory.model_copy(
                update={
                    "requests": mixed(inventory.requests),
                    "instances": mixed(inventory.instances),
                    "grants": mixed(inventory.grants),
                }
            ),
            "idle": idle.model_copy(
                update={"hosts": mixed(idle.hosts), "counts": mixed(idle.counts)}
            ),
            "budgets": mixed(inputs.budgets),
            "pauses": mixed(inputs.pauses),
            "failures": mixed(inputs.failures),
        }
    )

    assert decide(shuffled).to_json() == decide(inputs).to_json()


@given(rounds())
@settings(max_examples=30)
def test_a_freeze_and_a_stale_demand_leave_only_cancels_and_holds(inputs: PolicyInput) -> None:
    frozen = inputs.model_copy(
        update={"settings": inputs.settings.model_copy(update={"freeze": True})}
    )
    stale = inputs.model_copy(update={"computed_at": at(-6)})

    for still in (frozen, stale):
        kinds = {decision.kind for decision in decide(still).decisions}
        assert kinds <= {DecisionKind.CANCEL, DecisionKind.HOLD}
