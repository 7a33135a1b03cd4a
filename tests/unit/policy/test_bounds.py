"""What bounds an ask: capacities of templates, providers and resources, and budgets."""

from decimal import Decimal

from tests.unit.policy.makers import (
    asks,
    demand,
    grant,
    holds,
    hosts,
    instance,
    provider,
    request,
    resource,
    round_of,
    template,
    units,
)
from xce.domain.formats.policy import Budget, DecisionKind, PolicyInput, PolicySettings
from xce.domain.formats.provider import Kind
from xce.domain.policy.decide import decide
from xce.domain.provisioning.grant import GrantState
from xce.domain.provisioning.instance import InstanceState


# -------------------------------------------------------------------- capacity
def test_f07_errored_never_joined_and_returning_hosts_count_against_the_limit() -> None:
    states = (InstanceState.NEVER_JOINED, InstanceState.RETURNING, InstanceState.DRAINING)
    inputs = round_of(
        provider("aws", template(max_number=4)),
        wants=demand(hosts("c4", 2)),
        instances=[instance(f"i-{state}", state=state) for state in states],
    )

    assert asks(inputs) == [("aws", "c4", 1)]
    assert holds(inputs) == ["1 of 2 hosts of c4 not asked: aws: template c4: 4 of 4 used"]


def test_returned_and_lost_hosts_do_not_count() -> None:
    inputs = round_of(
        provider("aws", template(max_number=2)),
        wants=demand(hosts("c4", 2)),
        instances=[
            instance("i-1", state=InstanceState.RETURNED),
            instance("i-2", state=InstanceState.LOST),
        ],
    )

    assert asks(inputs) == [("aws", "c4", 2)]


def test_only_the_open_amount_of_a_request_counts_beside_its_hosts() -> None:
    inputs = round_of(
        provider("aws", template(max_number=10)),
        wants=demand(hosts("c4", 9)),
        requests=[request("R1", amount=6, granted=2, failed=1)],
        instances=[instance("i-1", from_request="R1"), instance("i-2", from_request="R1")],
    )

    assert asks(inputs) == [("aws", "c4", 5)]


def test_the_capacity_of_a_provider_is_over_all_its_templates() -> None:
    inputs = round_of(
        provider("aws", template("c4"), template("m8"), capacity=5),
        wants=demand(hosts("c4", 3, ("j1", 1, 3)), hosts("m8", 2, ("j2", 2, 1), ("j3", 3, 1))),
        instances=[instance("i-1", "m8")],
    )

    assert asks(inputs) == [("aws", "c4", 3), ("aws", "m8", 1)]


def test_f15_a_job_of_which_only_a_part_could_be_asked_is_not_asked_and_leaves_the_room_to_others() -> (
    None
):
    """Five hosts may be there: the gang of six gets none, the gang of four behind it gets all of its own."""
    inputs = round_of(
        provider("aws", template("c4"), capacity=5),
        wants=demand(hosts("c4", 11, ("gang", 1, 6), ("small gang", 2, 4), ("single", 3, 1))),
    )

    assert asks(inputs) == [("aws", "c4", 5)]
    (request,) = [d for d in decide(inputs).decisions if d.kind is DecisionKind.REQUEST]
    assert request.jobs == ("small gang", "single")
    (hold,) = [d for d in decide(inputs).decisions if d.kind is DecisionKind.HOLD]
    assert (
        "job gang is served whole or not at all, and only 5 of 6 c4 could be asked" in hold.reason
    )


def test_what_stopped_several_jobs_is_said_once_in_a_hold() -> None:
    """Ten tokens are wanted and three are lent: neither job is served, for one and the same reason."""
    inputs = round_of(
        provider("aws", template("c4")),
        provider("lender", resources=[resource("lic", capacity=3)]),
        wants=demand(
            hosts("c4", 2, ("j1", 1, 1), ("j2", 2, 1)), units("lic", 10, ("j1", 1, 5), ("j2", 2, 5))
        ),
    )

    held = [d for d in decide(inputs).decisions if d.kind is DecisionKind.HOLD]

    assert {d.template or d.resource for d in held} == {"c4", "lic"}
    for hold in held:
        assert "job j1 is served whole or not at all" in hold.reason
        assert "job j2 is served whole or not at all" in hold.reason
        assert hold.reason.count("lender: ") == 1, hold.reason


def test_a_host_is_not_asked_for_a_job_whose_tokens_nobody_lends() -> None:
    inputs = round_of(
        provider("aws", template("c4")),
        wants=demand(hosts("c4", 1, ("j1", 1, 1)), units("lic", 4, ("j1", 1, 4))),
    )

    assert asks(inputs) == []


def test_hosts_in_flight_are_bounded_over_all_providers_and_joined_ones_are_not_among_them() -> (
    None
):
    inputs = round_of(
        provider("aws", template(max_number=3)),
        provider("gcp", template(price="0.20")),
        wants=demand(hosts("c4", 9)),
        requests=[request("R1", "m8", amount=2, of="gcp")],
        instances=[instance("i-1", of="gcp", state=InstanceState.STARTING), instance("i-2")],
        settings=PolicySettings(max_in_flight_hosts=8),
    )

    assert asks(inputs) == [("aws", "c4", 2), ("gcp", "c4", 3)]
    assert "hosts in flight: 8 of 8 used" in holds(inputs)[0]


def test_a_resource_of_unknown_capacity_is_not_asked() -> None:
    inputs = round_of(
        provider("pool", resources=[resource(capacity=None)]), wants=demand(units("lic", 2))
    )

    assert asks(inputs) == []
    assert holds(inputs) == ["2 of 2 units of lic not asked: pool: its capacity is unknown"]


def test_capacity_of_a_resource_counts_what_is_lent_returning_and_asked() -> None:
    inputs = round_of(
        provider("pool", resources=[resource(capacity=20)]),
        wants=demand(units("lic", 9)),
        grants=[
            grant("g-1", 8, returning=2, returned=3, state=GrantState.RETURNING),
            grant("g-2", 4, returned=4, state=GrantState.CLOSED),
            grant("g-3", 4, state=GrantState.LOST),
        ],
        requests=[request("R1", "lic", 9, of="pool", kind=Kind.COUNTABLE, failed=1, price="2.00")],
    )

    assert asks(inputs) == [("pool", "lic", 7)]


# --------------------------------------------------------------------- budgets
def test_the_cost_rate_counts_hosts_units_and_what_is_asked_returning_and_errored_included() -> (
    None
):
    inputs = round_of(
        provider("aws", template(price="1.00")),
        provider("pool", resources=[resource()]),
        wants=demand(hosts("c4", 10)),
        instances=[
            instance("i-1", price="1.50", state=InstanceState.NEVER_JOINED),
            instance("i-2", price="0.50", state=InstanceState.RETURNING),
            instance("i-3", price="7.00", state=InstanceState.RETURNED),
        ],
        grants=[grant("g-1", 3, returned=1, price="2.00")],
        requests=[request("R1", "m8", amount=2, price="0.25")],
        budgets=[Budget(name="all", max_cost_per_hour=Decimal("9.49"))],
    )

    assert asks(inputs) == [("aws", "c4", 2)]
    assert "budget all: 8.50 of 9.49 per hour used, and one more costs 1.00" in holds(inputs)[0]


def test_a_budget_of_one_provider_leaves_the_others_alone() -> None:
    inputs = round_of(
        provider("aws", template(price="1.00")),
        provider("gcp", template(price="2.00")),
        wants=demand(hosts("c4", 4)),
        budgets=[
            Budget(name="aws only", provider="aws", max_cost_per_hour=Decimal("1.00")),
            Budget(name="few", provider="gcp", max_hosts=2),
        ],
        instances=[instance("i-1", of="gcp")],
    )

    assert asks(inputs) == [("aws", "c4", 1), ("gcp", "c4", 1)]
    assert "gcp: hosts of budget few: 2 of 2 used" in holds(inputs)[0]


def test_an_unpriced_offer_is_not_asked_under_a_cost_budget() -> None:
    inputs = round_of(
        provider("aws", template(price=None)),
        wants=demand(hosts("c4", 1)),
        budgets=[Budget(name="all", max_cost_per_hour=Decimal(1000))],
    )

    assert asks(inputs) == []
    assert "budget all bounds the cost, and its price is unknown" in holds(inputs)[0]


def test_while_something_has_no_known_price_a_cost_budget_allows_nothing() -> None:
    def inputs(*stated: str) -> PolicyInput:
        return round_of(
            provider("aws", template(price="0.10"), *(template("m8", price=p) for p in stated)),
            wants=demand(hosts("c4", 1)),
            instances=[instance("i-7", "m8", price=None)],
            budgets=[Budget(name="all", max_cost_per_hour=Decimal("1.00"))],
        )

    assert asks(inputs()) == []
    assert "budget all cannot be kept: the price of instance i-7 is unknown" in holds(inputs())[0]
    assert asks(inputs("0.50")) == [("aws", "c4", 1)], "what the provider asks now stands in"


def test_an_offer_that_costs_nothing_passes_a_budget_that_is_spent() -> None:
    inputs = round_of(
        provider("own", template(price="0")),
        wants=demand(hosts("c4", 2)),
        budgets=[Budget(name="all", max_cost_per_hour=Decimal(0))],
    )

    assert asks(inputs) == [("own", "c4", 2)]
