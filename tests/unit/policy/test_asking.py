"""What is asked, of whom, how much, and in which order."""

from decimal import Decimal

from tests.unit.policy.makers import (
    POSITION,
    asks,
    at,
    carried_out,
    demand,
    holds,
    hosts,
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
from xce.domain.formats.policy import Budget, DecisionKind, Pause, PolicyInput, PolicySettings
from xce.domain.policy.decide import decide
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.request import RequestState


def test_what_is_wanted_is_asked_with_its_price_its_jobs_and_a_reason() -> None:
    inputs = round_of(
        provider("aws", template("c4", price="0.17")),
        wants=demand(hosts("c4", 3, ("j2", 2, 1), ("j1", 1, 2))),
    )

    (decision,) = decide(inputs).decisions

    assert decision.kind is DecisionKind.REQUEST
    assert (decision.provider, decision.template, decision.count) == ("aws", "c4", 3)
    assert decision.jobs == ("j1", "j2")
    assert decision.cost_per_hour == Decimal("0.51")
    assert "3 hosts of c4 wanted" in decision.reason


def test_nothing_wanted_asks_nothing_and_says_nothing() -> None:
    assert decide(round_of(provider("aws", template()))).decisions == ()


# ------------------------------------------------------------------ which offer
def test_the_provider_of_higher_priority_comes_first_whatever_its_price() -> None:
    inputs = round_of(
        provider("cheap", template(price="0.10")),
        provider("preferred", template(price="9.00"), priority=1),
        wants=demand(hosts("c4", 1)),
    )

    assert asks(inputs) == [("preferred", "c4", 1)]


def test_within_a_priority_the_lower_price_comes_first_and_an_unpriced_offer_last() -> None:
    inputs = round_of(
        provider("unpriced", template(price=None, max_number=1)),
        provider("dear", template(price="0.30", max_number=1)),
        provider("cheap", template(price="0.20", max_number=1)),
        wants=demand(hosts("c4", 3)),
    )

    assert asks(inputs) == [("cheap", "c4", 1), ("dear", "c4", 1), ("unpriced", "c4", 1)]


def test_f12_a_tie_is_broken_by_name_with_digits_as_numbers_whatever_the_listing_order() -> None:
    second, tenth = provider("p2", template()), provider("p10", template())

    for providers in ((second, tenth), (tenth, second)):
        assert asks(round_of(*providers, wants=demand(hosts("c4", 1)))) == [("p2", "c4", 1)]


def test_a_demand_for_one_of_several_prices_is_served_at_that_price_only() -> None:
    inputs = round_of(
        provider("cheap", template(price="0.17")),
        provider("dear", template(price="0.250")),
        wants=demand(hosts("c4@0.25", 2)),
    )

    assert asks(inputs) == [("dear", "c4", 2)]
    assert asks(carried_out(inputs)) == []


def test_what_nobody_offers_is_held_with_its_jobs() -> None:
    inputs = round_of(provider("aws", template()), wants=demand(hosts("gpu", 2, ("j7", 1, 2))))

    (hold,) = decide(inputs).decisions

    assert hold.kind is DecisionKind.HOLD
    assert (hold.template, hold.count, hold.jobs) == ("gpu", 2, ("j7",))
    assert "no provider offers it" in hold.reason


def test_a_paused_provider_is_skipped_and_the_next_one_says_after_whom_it_comes() -> None:
    inputs = round_of(
        provider("aws", template(price="0.10")),
        provider("gcp", template(price="0.20")),
        wants=demand(hosts("c4", 2)),
        pauses=[Pause(provider="aws", until=at(5), why="throttled")],
    )

    (decision,) = decide(inputs).decisions

    assert (decision.provider, decision.count) == ("gcp", 2)
    assert "next after aws (paused until 2026-03-01T10:05:00Z: throttled)" in decision.reason


def test_a_pause_of_another_item_or_one_that_is_over_does_not_count() -> None:
    inputs = round_of(
        provider("aws", template()),
        wants=demand(hosts("c4", 1)),
        pauses=[
            Pause(provider="aws", item="m8", until=at(5), why="no capacity"),
            Pause(provider="aws", until=at(0), why="over by now"),
        ],
    )

    assert asks(inputs) == [("aws", "c4", 1)]


def test_the_pause_that_lasts_longest_is_the_reason_when_nothing_can_be_asked() -> None:
    inputs = round_of(
        provider("aws", template()),
        wants=demand(hosts("c4", 1)),
        pauses=[
            Pause(provider="aws", until=at(5), why="throttled"),
            Pause(provider="aws", item="c4", until=at(9), why="no capacity"),
        ],
    )

    assert asks(inputs) == []
    assert holds(inputs) == [
        "1 of 1 hosts of c4 not asked: aws: paused until 2026-03-01T10:09:00Z: no capacity"
    ]


# ------------------------------------------------------- what was asked since (D7)
def test_what_was_asked_after_the_demand_is_subtracted_and_what_was_asked_before_is_not() -> None:
    inputs = round_of(
        provider("aws", template()),
        wants=demand(hosts("c4", 5)),
        requests=[
            request("R1", amount=3, asked_position=POSITION),
            request("R2", amount=2, asked_position=POSITION + 1),
        ],
    )

    assert asks(inputs) == [("aws", "c4", 3)]


def test_f01_the_same_demand_in_later_rounds_asks_no_more() -> None:
    first = round_of(provider("aws", template(max_number=6)), wants=demand(hosts("c4", 3)))
    assert asks(first) == [("aws", "c4", 3)]

    assert asks(carried_out(first)) == []


def test_f01_a_demand_that_saw_the_ask_is_net_of_it_and_asks_what_it_says() -> None:
    inputs = round_of(
        provider("aws", template(max_number=6)),
        wants=demand(hosts("c4", 1)),
        requests=[request("R1", amount=3, asked_position=POSITION - 1)],
    )

    assert asks(inputs) == [("aws", "c4", 1)]


def test_hosts_that_came_since_the_demand_count_although_nothing_is_in_flight_any_more() -> None:
    inputs = round_of(
        provider("aws", template()),
        wants=demand(hosts("c4", 3)),
        requests=[
            request(
                "R1", amount=3, granted=3, state=RequestState.COMPLETE, asked_position=POSITION + 1
            )
        ],
        instances=[instance(f"i-{n}", from_request="R1") for n in range(3)],
    )

    assert asks(inputs) == []


def test_of_what_came_since_the_demand_a_draining_host_counts_and_a_returning_one_does_not() -> (
    None
):
    closed = request(
        "R1", amount=2, granted=2, state=RequestState.COMPLETE, asked_position=POSITION + 1
    )
    inputs = round_of(
        provider("aws", template()),
        wants=demand(hosts("c4", 2)),
        requests=[closed],
        instances=[
            instance("i-1", from_request="R1", state=InstanceState.DRAINING),
            instance("i-2", from_request="R1", state=InstanceState.RETURNING),
        ],
    )

    assert asks(inputs) == [("aws", "c4", 1)]


def test_f03_a_host_that_never_joined_is_replaced_and_still_counts_against_the_limit() -> None:
    closed = request(
        "R1", amount=1, granted=1, state=RequestState.COMPLETE, asked_position=POSITION + 1
    )
    bad = instance("i-1", from_request="R1", state=InstanceState.NEVER_JOINED)

    def inputs(most: int) -> PolicyInput:
        return round_of(
            provider("aws", template(max_number=most)),
            wants=demand(hosts("c4", 1)),
            requests=[closed],
            instances=[bad],
        )

    assert asks(inputs(most=2)) == [("aws", "c4", 1)]
    assert asks(inputs(most=1)) == []


def test_f08_after_seven_of_ten_the_next_round_asks_exactly_three() -> None:
    partial = request(
        "R1",
        amount=10,
        granted=7,
        failed=3,
        state=RequestState.PARTIAL,
        asked_position=POSITION - 5,
    )
    arrived = [instance(f"m{n}", from_request="R1", state=InstanceState.STARTING) for n in range(7)]
    offers = provider("aws", template()), provider("gcp", template(price="0.20"))

    fresh = round_of(*offers, wants=demand(hosts("c4", 3)), requests=[partial], instances=arrived)
    before_the_ask = round_of(
        *offers,
        wants=demand(hosts("c4", 10)),
        requests=[partial],
        instances=arrived,
        position=POSITION - 10,
    )

    assert asks(fresh) == [("aws", "c4", 3)]
    assert asks(before_the_ask) == [("aws", "c4", 3)]


def test_f24_an_ask_is_an_addition_and_needs_no_reading_of_what_exists() -> None:
    live = [instance(f"i-{n}") for n in range(200)]

    inputs = round_of(provider("aws", template()), wants=demand(hosts("c4", 4)), instances=live)

    assert [decision.count for decision in decide(inputs).decisions] == [4]


# ----------------------------------------------------------------- granularity
def test_an_ask_is_rounded_up_to_the_minimum_and_the_step() -> None:
    inputs = round_of(provider("aws", template(), minimum=3, step=2), wants=demand(hosts("c4", 5)))

    assert asks(inputs) == [("aws", "c4", 6)]
    assert asks(carried_out(inputs)) == []
    assert "1 of them spare" in decide(inputs).decisions[0].reason


def test_where_there_is_no_room_to_round_up_it_is_rounded_down() -> None:
    inputs = round_of(
        provider("aws", template(max_number=5), minimum=2, step=2), wants=demand(hosts("c4", 5))
    )

    assert asks(inputs) == [("aws", "c4", 4)]
    assert "room for 1" in holds(inputs)[0]


def test_below_the_minimum_nothing_is_asked_and_the_next_provider_may_have_it() -> None:
    inputs = round_of(
        provider("aws", template(max_number=3), minimum=4),
        provider("gcp", template(price="0.20", max_number=1)),
        wants=demand(hosts("c4", 2)),
    )

    assert asks(inputs) == [("gcp", "c4", 1)]
    (hold,) = holds(inputs)
    assert "aws: template c4: 0 of 3 used; room for 3, and it gives 1 or a multiple, 4 at" in hold


def test_a_budget_is_not_passed_by_rounding_up() -> None:
    inputs = round_of(
        provider("aws", template(price="1.00"), minimum=4, step=4),
        wants=demand(hosts("c4", 5)),
        budgets=[Budget(name="all", max_cost_per_hour=Decimal("7.99"))],
    )

    assert asks(inputs) == [("aws", "c4", 4)]


def test_spare_hosts_of_a_size_serve_later_jobs_of_the_same_round() -> None:
    inputs = round_of(
        provider("aws", template("c4"), template("m8"), minimum=4, step=4),
        wants=demand(
            hosts("c4", 3, ("j1", 1, 1), ("j3", 3, 2)),
            hosts("m8", 1, ("j2", 2, 1)),
            order=[("c4", 1), ("m8", 1), ("c4", 2)],
        ),
    )

    assert asks(inputs) == [("aws", "c4", 4), ("aws", "m8", 4)]


def test_units_are_asked_in_steps_of_the_offer() -> None:
    inputs = round_of(
        provider("pool", resources=[resource(step=5)], minimum=3), wants=demand(units("lic", 1))
    )

    assert asks(inputs) == [("pool", "lic", 5)]


def test_f29_more_than_one_request_may_hold_is_split() -> None:
    inputs = round_of(
        provider("aws", template(max_number=300)),
        wants=demand(hosts("c4", 625)),
        settings=PolicySettings(max_per_request=100, max_in_flight_hosts=1000),
    )

    assert asks(inputs) == [("aws", "c4", 100)] * 3
    assert asks(carried_out(inputs)) == []


def test_each_request_of_a_split_has_the_minimum_and_the_step() -> None:
    inputs = round_of(
        provider("aws", template(), minimum=14, step=7),
        wants=demand(hosts("c4", 99)),
        settings=PolicySettings(max_per_request=100, max_in_flight_hosts=1000),
    )

    assert asks(inputs) == [("aws", "c4", 91), ("aws", "c4", 14)]


def test_a_minimum_that_no_request_may_hold_is_a_reason_to_hold() -> None:
    inputs = round_of(
        provider("aws", template(), minimum=8, step=3),
        wants=demand(hosts("c4", 1)),
        settings=PolicySettings(max_per_request=8),
    )

    assert asks(inputs) == []
    assert "at least 9 in steps of 3, and the settings allow 8 in one request" in holds(inputs)[0]


def test_a_split_says_which_jobs_each_request_serves() -> None:
    inputs = round_of(
        provider("aws", template()),
        wants=demand(hosts("c4", 4, ("j1", 1, 1), ("j2", 2, 2), ("j3", 3, 1))),
        settings=PolicySettings(max_per_request=2),
    )

    jobs = [decision.jobs for decision in of_kind(decide(inputs), DecisionKind.REQUEST)]

    assert jobs == [("j1", "j2"), ("j2", "j3")]


# ------------------------------------------------------------------- job order
def test_when_supply_is_short_the_jobs_that_come_first_get_it() -> None:
    inputs = round_of(
        provider("aws", template("c4"), template("m8"), capacity=3),
        wants=demand(
            hosts("c4", 3, ("j1", 1, 1), ("j3", 3, 2)),
            hosts("m8", 2, ("j2", 2, 2)),
            order=[("c4", 1), ("m8", 2), ("c4", 2)],
        ),
    )

    assert asks(inputs) == [("aws", "c4", 1), ("aws", "m8", 2)]
    (hold,) = of_kind(decide(inputs), DecisionKind.HOLD)
    assert (hold.template, hold.count, hold.jobs) == ("c4", 2, ("j3",))


def test_hosts_and_units_share_a_budget_in_job_order() -> None:
    inputs = round_of(
        provider("aws", template(price="1.00")),
        provider("pool", resources=[resource(price="1.00")]),
        wants=demand(
            hosts("c4", 2, ("j1", 1, 1), ("j3", 3, 1)),
            units("lic", 3, ("j2", 2, 2), ("j4", 4, 1)),
        ),
        budgets=[Budget(name="all", max_cost_per_hour=Decimal("3.50"))],
    )

    assert asks(inputs) == [("aws", "c4", 1), ("pool", "lic", 2)]


def test_the_order_of_hosts_is_kept_where_a_later_host_serves_an_earlier_job() -> None:
    inputs = round_of(
        provider("aws", template("c4", price="1.00"), template("m8", price="1.00")),
        provider("pool", resources=[resource(price="1.00")]),
        wants=demand(
            hosts("c4", 1, ("j3", 3, 1)),
            hosts("m8", 1, ("j1", 1, 1)),
            units("lic", 1, ("j2", 2, 1)),
            order=[("c4", 1), ("m8", 1)],
        ),
        budgets=[Budget(name="all", max_cost_per_hour=Decimal(2))],
    )

    assert asks(inputs) == [("pool", "lic", 1), ("aws", "c4", 1)]


def test_a_demand_without_an_order_of_hosts_goes_by_its_first_jobs() -> None:
    wants = demand(hosts("c4", 1, ("j2", 2, 1)), hosts("m8", 1, ("j1", 1, 1)))
    inputs = round_of(
        provider("aws", template("c4"), template("m8"), capacity=1),
        wants=wants.model_copy(update={"order": ()}),
    )

    assert asks(inputs) == [("aws", "m8", 1)]


def test_jobs_that_share_hosts_get_their_share_of_a_partial_ask() -> None:
    sharing = [(f"j{n}", n, 1) for n in range(1, 13)]
    inputs = round_of(
        provider("aws", template(max_number=1)), wants=demand(hosts("c4", 3, *sharing))
    )

    ask, hold = decide(inputs).decisions

    assert ask.jobs == ("j1", "j2", "j3", "j4")
    assert hold.jobs == tuple(f"j{n}" for n in range(5, 13))


# --------------------------------------------------------------- standing still
def test_a_freeze_asks_nothing_and_says_so() -> None:
    inputs = round_of(
        provider("aws", template()),
        wants=demand(hosts("c4", 2), units("lic", 1)),
        settings=PolicySettings(freeze=True),
    )

    assert asks(inputs) == []
    assert holds(inputs) == [
        "the settings freeze provisioning: 1 of lic not asked, 2 hosts of c4 not asked"
    ]


def test_demand_older_than_its_time_to_live_buys_nothing() -> None:
    def inputs(age: float) -> PolicyInput:
        return round_of(
            provider("aws", template()),
            wants=demand(hosts("c4", 2, ("j1", 1, 2))),
            computed_at=at(-age),
            settings=PolicySettings(demand_time_to_live=minutes(5)),
        )

    assert asks(inputs(age=5)) == [("aws", "c4", 2)]
    assert asks(inputs(age=6)) == []
    (hold,) = decide(inputs(age=6)).decisions
    assert hold.jobs == ("j1",)
    assert "the demand is 6m old, and counts for 5m" in hold.reason
    assert asks(inputs(age=-60)) == [("aws", "c4", 2)], "a stamp ahead of the clock is not old"
