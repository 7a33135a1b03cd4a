"""Budgets for some providers and templates together, and on how fast hosts are asked."""

from datetime import datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.policy.makers import (
    asks,
    at,
    carried_out,
    demand,
    grant,
    holds,
    hosts,
    instance,
    minutes,
    provider,
    request,
    resource,
    round_of,
    template,
    units,
)
from xce.domain.errors import InputError
from xce.domain.formats.policy import AskedEntry, AskRate, Budget, PolicyInput
from xce.domain.policy.checks import read_policy_input
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.request import RequestState


def asked(hosts: int, when: datetime, *, of: str = "aws", item: str = "c4") -> AskedEntry:
    return AskedEntry(provider=of, template=item, hosts=hosts, asked_at=when)


def rate(hosts: int, within: float, **scope: object) -> Budget:
    limit = AskRate(hosts=hosts, within=minutes(within))
    return Budget.model_validate({"name": "step", "max_asked": limit, **scope})


def with_asked(inputs: PolicyInput, *entries: AskedEntry) -> PolicyInput:
    return inputs.model_copy(update={"asked": entries})


# ----------------------------------------------------------------------- scopes
def test_a_budget_for_some_providers_counts_these_together_and_no_other() -> None:
    inputs = round_of(
        provider("a", template(price="0.1")),
        provider("b", template(price="0.2")),
        provider("c", template(price="0.3")),
        wants=demand(hosts("c4", 6)),
        instances=[instance("i", of="a"), instance("k", of="c")],
        budgets=[Budget(name="two", providers=("a", "b"), max_hosts=3)],
    )

    assert asks(inputs) == [("a", "c4", 2), ("c", "c4", 4)]


def test_a_budget_for_a_template_leaves_the_others_and_units_alone() -> None:
    inputs = round_of(
        provider("aws", template("c4"), template("m8"), resources=[resource("lic")]),
        wants=demand(
            hosts("c4", 3, ("a", 1, 3)),
            hosts("m8", 3, ("b", 2, 1), ("c", 3, 2)),
            units("lic", 3, ("d", 4, 3)),
        ),
        instances=[instance("i", "m8", state=InstanceState.RETURNING)],
        budgets=[
            Budget(name="few m8", templates=("m8",), max_hosts=3),
            Budget(name="cheap m8", templates=("m8",), max_cost_per_hour=Decimal("0.34")),
        ],
    )

    assert sorted(asks(inputs), key=str) == [("aws", "c4", 3), ("aws", "lic", 3), ("aws", "m8", 1)]
    (hold,) = holds(inputs)
    assert "budget cheap m8: 0.34 of 0.34 per hour used" in hold


def test_what_has_no_price_elsewhere_does_not_stop_a_budget_for_a_template() -> None:
    inputs = round_of(
        provider("aws", template("c4"), template("m8", price=None)),
        wants=demand(hosts("c4", 1)),
        instances=[instance("i", "m8", price=None)],
        grants=[grant(of="gone", price=None)],
        budgets=[Budget(name="c4 only", templates=("c4",), max_cost_per_hour=Decimal(1))],
    )

    assert asks(inputs) == [("aws", "c4", 1)]


def test_a_budget_names_one_provider_or_several_not_both() -> None:
    text = (
        '{"format": "xce.policy/1", "now": "2026-03-01T10:00:00Z",'
        ' "budgets": [{"name": "x", "provider": "a", "providers": ["b"]}]}'
    )

    with pytest.raises(InputError, match=r"budgets\[0\]: provider and providers are both there"):
        read_policy_input(text)


# ------------------------------------------------------------------------ rates
def test_no_more_hosts_are_asked_within_a_time_than_its_rate_allows() -> None:
    inputs = with_asked(
        round_of(provider("aws", template()), wants=demand(hosts("c4", 9)), budgets=[rate(5, 10)]),
        asked(2, at(-9)),
        asked(40, at(-10)),
    )

    assert asks(inputs) == [("aws", "c4", 3)]
    assert holds(inputs) == [
        "6 of 9 hosts of c4 not asked: aws: budget step: 5 of 5 asked within 10m"
    ]


def test_a_rate_counts_over_all_it_covers_and_goes_on_with_the_next_that_it_does_not() -> None:
    inputs = with_asked(
        round_of(
            provider("a", template(price="0.1")),
            provider("b", template(price="0.2")),
            wants=demand(hosts("c4", 4)),
            budgets=[rate(3, 10, provider="a")],
        ),
        asked(1, at(-1), of="a", item="m8"),
        asked(9, at(-1), of="b"),
    )

    assert asks(inputs) == [("a", "c4", 2), ("b", "c4", 2)]


def test_requests_of_the_inventory_count_once_beside_the_record_of_asks() -> None:
    inputs = round_of(
        provider("aws", template()),
        wants=demand(hosts("c4", 9)),
        requests=[request("R1", amount=4, failed=4, state=RequestState.FAILED, asked_at=at(-2))],
        budgets=[rate(5, 10)],
    )

    assert asks(inputs) == [("aws", "c4", 1)]
    assert asks(with_asked(inputs, asked(4, at(-2)))) == [("aws", "c4", 1)]
    assert asks(carried_out(inputs)) == []


def test_units_are_not_hosts_and_do_not_count_against_a_rate() -> None:
    inputs = round_of(
        provider("pool", resources=[resource("lic")]),
        wants=demand(units("lic", 4)),
        budgets=[rate(0, 10)],
    )

    assert asks(inputs) == [("pool", "lic", 4)]


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)), max_size=40),
    st.integers(0, 6),
    st.integers(1, 8),
)
def test_whenever_one_looks_back_no_more_was_asked_than_the_rate(
    wishes: list[tuple[int, int]], most: int, within: int
) -> None:
    made: list[AskedEntry] = []
    minute = 0
    for pause, count in wishes:
        minute += pause
        inputs = round_of(
            provider("aws", template()),
            wants=demand(hosts("c4", count)),
            now=at(minute),
            budgets=[rate(most, within)],
        )
        made += [asked(n or 0, at(minute)) for _, _, n in asks(with_asked(inputs, *made))]

    for entry in made:
        since = entry.asked_at - minutes(within)
        window = [one.hosts for one in made if since < one.asked_at <= entry.asked_at]
        assert sum(window) <= most
