"""What goes back, what stays, and why."""

from datetime import datetime, timedelta

import pytest

from tests.unit.policy.makers import (
    NOW,
    asks,
    at,
    demand,
    grant,
    holds,
    hosts,
    idle_host,
    idle_units,
    instance,
    minutes,
    of_kind,
    provider,
    request,
    resource,
    returned,
    returned_parts,
    round_of,
    template,
    units,
)
from xce.domain.formats.policy import DecisionKind, PolicyInput, PolicySettings
from xce.domain.formats.provider import (
    Billing,
    BillingUnit,
    Capabilities,
    Kind,
    ProviderDescription,
)
from xce.domain.formats.session_result import Idle, IdleCount
from xce.domain.policy.billing import billed
from xce.domain.policy.decide import decide
from xce.domain.provisioning.grant import GrantState
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.request import RequestState

IDLE = Idle(hosts=(idle_host("i-1", at(-60)),))


# ----------------------------------------------------------------------- hosts
def test_an_idle_host_past_its_hold_goes_back_and_ends_its_cost() -> None:
    inputs = round_of(provider("aws", template()), idle=IDLE, instances=[instance("i-1")])

    (decision,) = decide(inputs).decisions

    assert decision.kind is DecisionKind.RETURN
    assert (decision.provider, decision.template, decision.count) == ("aws", "c4", 1)
    assert decision.instances == ("i-1",)
    assert str(decision.cost_per_hour) == "0.17"
    assert decision.reason == "idle for 1h or longer, past the hold, and not wanted"


def test_idle_hosts_of_one_template_go_back_together_and_unknown_prices_stay_unknown() -> None:
    names = ("i-10", "i-9", "i-2")
    inputs = round_of(
        provider("aws", template(price=None)),
        idle=Idle(hosts=tuple(idle_host(name, at(-60)) for name in names)),
        instances=[instance("i-9"), instance("i-2"), instance("i-10", price=None)],
    )

    (decision,) = decide(inputs).decisions

    assert decision.instances == ("i-2", "i-9", "i-10")
    assert decision.cost_per_hour is None


@pytest.mark.parametrize("whose", ["provider", "settings", "entry"])
def test_nothing_goes_back_before_the_longest_hold_is_over(whose: str) -> None:
    def inputs(now: datetime) -> PolicyInput:
        return round_of(
            provider(
                "aws",
                template(),
                minimum_hold=minutes(90) if whose == "provider" else minutes(10),
            ),
            settings=PolicySettings(
                minimum_hold=minutes(90) if whose == "settings" else minutes(10)
            ),
            instances=[
                instance(
                    "i-1",
                    joined_at=at(-80),
                    hold_until=at(10) if whose == "entry" else at(-30),
                )
            ],
            idle=IDLE,
            now=now,
        )

    assert returned(inputs(at(9.9))) == []
    assert holds(inputs(at(9.9))) == ["idle, and kept: held until 2026-03-01T10:10:00Z"]
    assert returned(inputs(at(10))) == ["i-1"]


def test_a_hold_counts_from_the_join_and_where_that_is_unknown_from_the_idle_time() -> None:
    entry = instance("i-1", granted_at=at(-120)).model_copy(update={"joined_at": None})

    def inputs(hold: float) -> PolicyInput:
        return round_of(
            provider("aws", template(), minimum_hold=minutes(hold)), idle=IDLE, instances=[entry]
        )

    assert returned(inputs(60)) == ["i-1"]
    assert returned(inputs(61)) == []


def test_f09_a_host_of_a_template_that_is_wanted_now_stays() -> None:
    inputs = round_of(
        provider("aws", template()),
        wants=demand(hosts("c4", 1)),
        idle=IDLE,
        instances=[instance("i-1")],
    )

    assert returned(inputs) == []
    assert holds(inputs) == ["idle, and kept: 1 more of c4 is wanted now"]


@pytest.mark.parametrize("lines", [("c4", "c4@0.17"), ("c4@0.17", "c4")])
def test_the_reason_of_a_host_that_stays_counts_every_line_of_its_template(
    lines: tuple[str, str],
) -> None:
    inputs = round_of(
        provider("aws", template()),
        wants=demand(hosts(lines[0], 1), hosts(lines[1], 1)),
        idle=IDLE,
        instances=[instance("i-1")],
    )

    assert "idle, and kept: 2 more of c4 are wanted now" in holds(inputs)


@pytest.mark.parametrize(("line", "stays"), [("c4@0.25", True), ("c4x", False), ("m8", False)])
def test_f09_a_demand_at_another_price_keeps_it_and_one_for_another_template_does_not(
    line: str, stays: bool
) -> None:
    inputs = round_of(
        provider("aws", template()),
        wants=demand(hosts(line, 1)),
        idle=IDLE,
        instances=[instance("i-1")],
    )

    assert (returned(inputs) == []) is stays


@pytest.mark.parametrize("state", [state for state in InstanceState if state != "joined"])
def test_f10_only_a_joined_host_is_given_back_by_the_policy(state: InstanceState) -> None:
    inputs = round_of(
        provider("aws", template()), idle=IDLE, instances=[instance("i-1", state=state)]
    )

    assert returned(inputs) == []


def test_an_idle_host_that_we_do_not_own_is_left_alone_and_named() -> None:
    inputs = round_of(provider("aws", template()), idle=IDLE)

    (hold,) = decide(inputs).decisions

    assert (hold.kind, hold.instances) == (DecisionKind.HOLD, ("i-1",))


def test_a_host_of_a_provider_that_is_not_described_any_more_goes_back() -> None:
    assert returned(round_of(idle=IDLE, instances=[instance("i-1")])) == ["i-1"]


def test_f24_without_a_demand_that_is_young_enough_nothing_goes_back() -> None:
    inputs = round_of(
        provider("aws", template()),
        idle=Idle(hosts=IDLE.hosts, counts=(IdleCount(name="lic", amount=2),)),
        instances=[instance("i-1")],
        grants=[grant("g-1", 2)],
        computed_at=at(-10),
    )

    (hold,) = decide(inputs).decisions

    assert hold.kind is DecisionKind.HOLD
    assert "1 idle host not returned, 2 of lic not returned" in hold.reason


def test_a_freeze_gives_nothing_back() -> None:
    inputs = round_of(
        provider("aws", template()),
        idle=IDLE,
        instances=[instance("i-1")],
        settings=PolicySettings(freeze=True),
    )

    assert returned(inputs) == []
    assert holds(inputs) == ["the settings freeze provisioning: 1 idle host not returned"]


# --------------------------------------------------------------- billing (F11)
HOURLY = Billing(unit=BillingUnit.HOUR)


def launched_at_ten(now: datetime, billing: Billing = HOURLY) -> PolicyInput:
    """Return the round at ``now`` of a host launched at 10:00, idle from 10:20, with an idle time of 5 min."""
    return round_of(
        provider("h", template("H", price="6.00"), billing=billing),
        idle=Idle(hosts=(idle_host("i-1", at(20)),)),
        instances=[instance("i-1", "H", of="h", granted_at=NOW, joined_at=at(4), price="6.00")],
        now=now,
    )


def test_f11_a_host_paid_by_the_hour_goes_back_late_in_the_hour_and_in_time_to_be_gone() -> None:
    sent = [minute for minute in range(25, 60) if returned(launched_at_ten(at(minute)))]

    assert sent == [50, 51, 52, 53, 54, 55, 56, 57]
    assert holds(launched_at_ten(at(25))) == ["idle, and kept: paid until 2026-03-01T11:00:00Z"]


def test_f11_too_late_in_the_hour_it_is_kept_for_the_next_one_which_ends_the_same_way() -> None:
    assert holds(launched_at_ten(at(58))) == [
        "idle, and kept: too late to be gone when the next paid hour begins at 2026-03-01T11:00:00Z"
    ]
    assert holds(launched_at_ten(at(61))) == ["idle, and kept: paid until 2026-03-01T12:00:00Z"]
    assert returned(launched_at_ten(at(112))) == ["i-1"]


def test_f11b_a_job_that_wants_the_template_meanwhile_keeps_the_host() -> None:
    waiting = launched_at_ten(at(52)).model_copy(update={"demand": demand(hosts("H", 1))})

    assert returned(waiting) == []


def test_f11c_a_host_paid_by_the_second_goes_back_at_once_after_its_minimum() -> None:
    by_second = Billing(unit=BillingUnit.SECOND, minimum=timedelta(seconds=60))

    assert returned(launched_at_ten(at(25), by_second)) == ["i-1"]


def test_a_paid_minimum_is_used_before_the_host_goes_back() -> None:
    two_hours = Billing(unit=BillingUnit.SECOND, minimum=minutes(120))

    assert returned(launched_at_ten(at(109), two_hours)) == []
    assert returned(launched_at_ten(at(110), two_hours)) == ["i-1"]
    assert returned(launched_at_ten(at(300), two_hours)) == ["i-1"]


@pytest.mark.parametrize(
    ("used", "unit", "minimum", "paid"),
    [
        (0, BillingUnit.SECOND, 0, 1 / 60),
        (0.5, BillingUnit.SECOND, 0, 0.5),
        (0.5, BillingUnit.SECOND, 1, 1),
        (60, BillingUnit.HOUR, 0, 60),
        (60.01, BillingUnit.HOUR, 0, 120),
        (5, BillingUnit.HOUR, 90, 120),
        (-5, BillingUnit.HOUR, 0, 60),
    ],
)
def test_use_is_billed_in_whole_started_units_and_never_below_the_minimum(
    used: float, unit: BillingUnit, minimum: float, paid: float
) -> None:
    assert billed(minutes(used), Billing(unit=unit, minimum=minutes(minimum))) == minutes(paid)


# ---------------------------------------------------------------------- counts
def pool(
    step: int = 1, *, parts: bool = False, hold: float = 0, name: str = "pool"
) -> ProviderDescription:
    return provider(
        name,
        resources=[resource(step=step)],
        minimum_hold=minutes(hold),
        partial_returns=parts,
    )


def test_a_borrowed_amount_that_is_unused_goes_back_and_ends_its_cost() -> None:
    inputs = round_of(pool(), idle=idle_units("lic", 5), grants=[grant("g-1", 5)])

    (decision,) = decide(inputs).decisions

    assert decision.kind is DecisionKind.RETURN
    assert (decision.provider, decision.resource, decision.amount) == ("pool", "lic", 5)
    assert [(part.grant, part.amount) for part in decision.grants] == [("g-1", 5)]
    assert str(decision.cost_per_hour) == "10.00"


@pytest.mark.parametrize(("unused", "back"), [(4, []), (7, [("g-1", 5)])])
def test_what_goes_back_is_rounded_down_to_the_step(
    unused: int, back: list[tuple[str, int]]
) -> None:
    inputs = round_of(
        pool(step=5, parts=True), idle=idle_units("lic", unused), grants=[grant("g-1", 10)]
    )

    assert returned_parts(inputs) == back
    assert any("less than a step of 5" in hold for hold in holds(inputs))


def test_a_lender_that_takes_no_parts_gets_whole_grants_that_fit_what_is_unused() -> None:
    grants = [grant("g-10", 10, granted_at=at(-200)), grant("g-7", 7)]

    assert returned_parts(round_of(pool(), idle=idle_units("lic", 9), grants=grants)) == [
        ("g-7", 7)
    ]
    assert holds(round_of(pool(), idle=idle_units("lic", 9), grants=grants)) == [
        "2 of lic unused, and kept: grant g-10 of 10 goes back as a whole only"
    ]


def test_a_grant_smaller_than_a_step_goes_back_whole() -> None:
    inputs = round_of(pool(step=5, parts=True), idle=idle_units("lic", 3), grants=[grant("g-1", 3)])

    assert returned_parts(inputs) == [("g-1", 3)]


def test_of_a_grant_that_is_no_multiple_a_lender_that_takes_parts_gets_whole_steps() -> None:
    inputs = round_of(pool(step=5, parts=True), idle=idle_units("lic", 9), grants=[grant("g-1", 7)])

    assert returned_parts(inputs) == [("g-1", 5)]


def test_the_dearest_known_price_goes_first_then_the_oldest_then_the_id() -> None:
    grants = [
        grant("g-1", 2, price=None, granted_at=at(-900)),
        grant("g-2", 2, price="1.00", granted_at=at(-300)),
        grant("g-10", 2, price="3.00", granted_at=at(-300)),
        grant("g-9", 2, price="3.00", granted_at=at(-300)),
        grant("g-3", 2, price="3.00", granted_at=at(-400)),
    ]
    lender = provider("pool", resources=[resource(price=None)])

    inputs = round_of(lender, idle=idle_units("lic", 10), grants=grants)

    order = [name for name, _ in returned_parts(inputs)]
    assert order == ["g-3", "g-9", "g-10", "g-2", "g-1"]


def test_a_lender_that_no_longer_offers_the_resource_still_has_its_minimum_hold() -> None:
    inputs = round_of(
        provider("pool", minimum_hold=minutes(30)),
        idle=idle_units("lic", 5),
        grants=[grant("young", granted_at=at(-29)), grant("old", granted_at=at(-30))],
    )

    assert returned_parts(inputs) == [("old", 5)]


def test_grants_in_their_hold_stay_and_later_ones_may_go_instead() -> None:
    inputs = round_of(
        pool(hold=30),
        idle=idle_units("lic", 6),
        grants=[
            grant("g-1", 2, price="9.00", hold_until=at(1)),
            grant("g-2", 2, price="8.00", granted_at=at(-29)),
            grant("g-3", 2, price="7.00", granted_at=at(-30), hold_until=at(0)),
        ],
    )

    assert returned_parts(inputs) == [("g-3", 2)]
    until = "is held until 2026-03-01T10:01:00Z"
    assert holds(inputs) == [f"4 of lic unused, and kept: grant g-1 {until}; grant g-2 {until}"]


def test_what_is_on_its_way_back_is_not_given_back_again() -> None:
    inputs = round_of(
        pool(parts=True),
        idle=idle_units("lic", 10),
        grants=[
            grant("g-1", 5, returning=5, state=GrantState.RETURNING),
            grant("g-2", 5, returned=3),
            grant("g-3", 4, returned=4, state=GrantState.CLOSED),
        ],
    )

    assert returned_parts(inputs) == [("g-2", 2)]


def test_nothing_goes_back_while_an_ask_for_it_is_open() -> None:
    asked = request("R1", "lic", 2, of="pool", kind=Kind.COUNTABLE)

    inputs = round_of(pool(), idle=idle_units("lic", 5), grants=[grant()], requests=[asked])

    assert returned_parts(inputs) == []
    assert holds(inputs) == ["5 of lic unused, and kept: request R1 for it is open"]


def test_nothing_goes_back_while_jobs_want_more_of_it() -> None:
    inputs = round_of(
        pool(), wants=demand(units("lic", 2)), idle=idle_units("lic", 5), grants=[grant()]
    )

    assert returned_parts(inputs) == []
    assert asks(inputs) == [("pool", "lic", 2)]


def test_several_lenders_get_their_own_back() -> None:
    lenders = pool(), pool(name="other")

    inputs = round_of(
        *lenders,
        idle=idle_units("lic", 10),
        grants=[grant("g-1", 4), grant("g-2", 3, of="other"), grant("g-3", 2, of="gone")],
    )

    returns = of_kind(decide(inputs), DecisionKind.RETURN)
    assert [(decision.provider, decision.amount) for decision in returns] == [
        ("pool", 4),
        ("other", 3),
        ("gone", 2),
    ]


def test_partial_returns_are_a_capability() -> None:
    whole = pool()
    parts = whole.model_copy(update={"capabilities": Capabilities(partial_returns=True)})

    assert returned_parts(round_of(whole, idle=idle_units("lic", 3), grants=[grant()])) == []
    assert returned_parts(round_of(parts, idle=idle_units("lic", 3), grants=[grant()])) == [
        ("g-1", 3)
    ]


# ------------------------------------------------------------------- deadlines
def test_f05_an_open_request_is_given_up_at_its_deadline_and_not_before() -> None:
    asked = request("R1", amount=5, granted=1, asked_at=NOW, deadline=at(15))

    before = round_of(provider("aws", template()), requests=[asked], now=at(14.9))
    then = round_of(provider("aws", template()), requests=[asked], now=at(15))

    assert decide(before).decisions == ()
    (decision,) = decide(then).decisions
    assert decision.kind is DecisionKind.CANCEL
    assert (decision.requests, decision.provider, decision.count) == (("R1",), "aws", 4)
    assert decision.reason == "request R1: 4 of 5 have not come 15m after the ask; given up"


def test_a_request_without_a_deadline_has_that_of_the_settings() -> None:
    asked = request("R1", "lic", 5, of="pool", kind=Kind.COUNTABLE, asked_at=NOW)
    settings = PolicySettings(request_deadline=minutes(20))

    def cancelled(minute: float) -> list[str]:
        inputs = round_of(requests=[asked], settings=settings, now=at(minute))
        return [name for decision in decide(inputs).decisions for name in decision.requests]

    assert cancelled(19) == []
    assert cancelled(20) == ["R1"]


def test_closed_requests_have_no_deadline_and_a_freeze_does_not_stop_one() -> None:
    closed = request("R1", state=RequestState.PARTIAL, deadline=at(-1))
    open_one = request("R2", state=RequestState.UNKNOWN, deadline=at(-1))

    inputs = round_of(requests=[open_one, closed], settings=PolicySettings(freeze=True))

    assert [decision.requests for decision in decide(inputs).decisions] == [("R2",)]
