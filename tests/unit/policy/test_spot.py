"""Spot shares: how much may be of a template that is taken back at any moment, and what is asked instead of it."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.policy.makers import (
    asks,
    at,
    carried_out,
    demand,
    holds,
    hosts,
    instance,
    of_kind,
    provider,
    request,
    round_of,
    template,
)
from xce.domain.errors import InputError
from xce.domain.formats.policy import (
    DecisionKind,
    FailureEntry,
    Pause,
    PolicySettings,
    SpotShare,
)
from xce.domain.policy import facts
from xce.domain.policy.checks import read_policy_input
from xce.domain.policy.decide import decide


def sharing(share: str, template: str = "s4", on_demand: str = "c4") -> PolicySettings:
    rule = SpotShare(template=template, on_demand=on_demand, share=Decimal(share))
    return PolicySettings(spot=(rule,))


BOTH = provider("aws", template("s4", price="0.05"), template("c4", price="0.17"))


def test_what_may_not_be_spot_is_asked_on_demand_for_the_same_jobs() -> None:
    inputs = round_of(BOTH, wants=demand(hosts("s4", 10)), settings=sharing("0.6"))

    assert asks(inputs) == [("aws", "s4", 6), ("aws", "c4", 4)]
    first, second = of_kind(decide(inputs), DecisionKind.REQUEST)
    assert first.reason.endswith("6 from aws, spot before on demand, as far as its share goes")
    assert second.reason.endswith("4 from aws, next after aws (spot share of s4: 6 of 6 used)")
    assert second.jobs == ("j7", "j8", "j9", "j10")
    assert asks(carried_out(inputs)) == []


def test_the_share_is_of_all_hosts_of_both_that_are_there_asked_and_wanted() -> None:
    inputs = round_of(
        BOTH,
        wants=demand(hosts("s4", 4, ("a", 1, 4)), hosts("c4", 2, ("b", 2, 2))),
        instances=[instance("i", "s4"), instance("k", "s4"), instance("l", "c4")],
        requests=[request("R1", "s4", 1)],
        settings=sharing("0.5"),
    )

    # 10 in all: 5 may be spot, and 3 are.
    assert asks(inputs) == [("aws", "s4", 2), ("aws", "c4", 2), ("aws", "c4", 2)]
    assert asks(carried_out(inputs)) == []


def test_while_spot_is_refused_all_is_asked_on_demand() -> None:
    inputs = round_of(
        BOTH,
        wants=demand(hosts("s4", 3)),
        pauses=[Pause(provider="aws", item="s4", until=at(5), why="no capacity")],
        settings=sharing("1"),
    )

    assert asks(inputs) == [("aws", "c4", 3)]


def test_f06_spot_that_failed_of_late_comes_after_what_is_on_demand() -> None:
    failed = FailureEntry(
        provider="aws", item="s4", in_a_row=1, last_at=at(-11), refused=True, why="no capacity"
    )
    inputs = round_of(BOTH, wants=demand(hosts("s4", 3)), failures=[failed], settings=sharing("1"))

    assert asks(inputs) == [("aws", "c4", 3)]


def test_a_share_of_nothing_asks_no_spot_and_none_is_held_where_nobody_offers_the_other() -> None:
    nothing = round_of(BOTH, wants=demand(hosts("s4", 2)), settings=sharing("0"))
    alone = round_of(
        provider("aws", template("s4")), wants=demand(hosts("s4", 3)), settings=sharing("0.5")
    )

    assert asks(nothing) == [("aws", "c4", 2)]
    assert asks(alone) == [("aws", "s4", 1)]
    assert holds(alone) == ["2 of 3 hosts of s4 not asked: aws: spot share of s4: 1 of 1 used"]


def test_a_demand_for_the_other_template_and_other_templates_are_left_alone() -> None:
    inputs = round_of(
        provider("aws", template("s4"), template("c4"), template("m8")),
        wants=demand(hosts("c4", 2, ("a", 1, 2)), hosts("m8", 2, ("b", 2, 2))),
        settings=sharing("0.5"),
    )

    assert asks(inputs) == [("aws", "c4", 2), ("aws", "m8", 2)]


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ('[{"template": "a", "on_demand": "a", "share": 0.5}]', "are the same"),
        ('[{"template": "a", "on_demand": "b", "share": 1.5}]', "less than or equal to 1"),
        (
            '[{"template": "a", "on_demand": "b", "share": 1}, {"template": "a", "on_demand": "c", "share": 1}]',
            "a template is there twice",
        ),
    ],
)
def test_a_wrong_share_is_refused(rules: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        read_policy_input(
            f'{{"format": "xce.policy/1", "now": "2026-03-01T10:00:00Z", "settings": {{"spot": {rules}}}}}'
        )


@given(
    st.integers(0, 12),
    st.integers(0, 12),
    st.integers(0, 5),
    st.integers(0, 5),
    st.integers(0, 4),
    st.integers(-1, 8),
)
def test_spot_is_never_more_than_its_share_and_nothing_is_held_that_could_be_asked(
    spot: int, on_demand: int, there: int, others: int, quarters: int, cap: int
) -> None:
    inputs = round_of(
        provider("aws", template("s4", max_number=cap), template("c4")),
        wants=demand(
            hosts("s4", spot, *((f"s{n}", n, 1) for n in range(1, spot + 1))),
            hosts("c4", on_demand, *((f"c{n}", 100 + n, 1) for n in range(1, on_demand + 1))),
        ),
        instances=[
            *(instance(f"s{n}", "s4") for n in range(there)),
            *(instance(f"c{n}", "c4") for n in range(others)),
        ],
        settings=sharing(str(Decimal(quarters) / 4)),
    )
    after = carried_out(inputs)

    asked = sum(facts.open_amount(one) for one in after.inventory.requests)
    of_spot = there + sum(
        facts.open_amount(one) for one in after.inventory.requests if one.template == "s4"
    )
    assert asked == spot + on_demand
    assert of_spot <= max(there, (there + others + spot + on_demand) * quarters // 4)
    assert asks(after) == []
