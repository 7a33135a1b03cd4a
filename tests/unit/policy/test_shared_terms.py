"""What a site has set for an elastic resource bounds what the policy asks of it and gives back."""

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.policy.makers import (
    NOW,
    asks,
    demand,
    grant,
    holds,
    idle_units,
    minutes,
    provider,
    resource,
    returned_parts,
    round_of,
    units,
)
from xce.domain.formats.policy import PolicyInput, SharedTerms

POOL = provider("pool", resources=[resource(step=2)], partial_returns=True)


def with_terms(inputs: PolicyInput, **terms: Any) -> PolicyInput:
    made = SharedTerms.model_validate({"name": "lic", **terms})
    return inputs.model_copy(update={"shared": (made,)})


def wants(amount: int, **terms: Any) -> PolicyInput:
    return with_terms(round_of(POOL, wants=demand(units("lic", amount))), **terms)


def test_asks_are_in_steps_of_the_site_and_of_the_lender() -> None:
    assert asks(wants(5)) == [("pool", "lic", 6)]
    assert asks(wants(5, step=3)) == [("pool", "lic", 6)]
    assert asks(wants(7, step=3)) == [("pool", "lic", 12)]


def test_the_most_that_may_be_borrowed_bounds_what_is_there_and_asked_together() -> None:
    inputs = with_terms(
        round_of(POOL, wants=demand(units("lic", 7)), grants=[grant(amount=5)]), max_borrow=10
    )
    assert asks(inputs) == [("pool", "lic", 4)]
    assert any("max_borrow of lic" in hold for hold in holds(inputs))


def test_demand_has_to_last_before_more_is_borrowed() -> None:
    young = wants(4, borrow_after=minutes(5), wanted_since=NOW - minutes(4))
    assert asks(young) == []
    assert any("the demand has to last until" in hold for hold in holds(young))
    old = wants(4, borrow_after=minutes(5), wanted_since=NOW - minutes(5))
    assert asks(old) == [("pool", "lic", 4)]


@pytest.mark.parametrize(
    ("wanted", "spare", "asked"),
    [(0, 5, None), (0, 3, None), (0, 1, 2), (0, 0, 4), (4, -4, 8), (0, -20, 4)],
)
def test_headroom_is_asked_for_where_it_is_missing_and_never_more(
    wanted: int, spare: int, asked: int | None
) -> None:
    inputs = with_terms(
        round_of(POOL, wants=demand(units("lic", wanted)) if wanted else None),
        headroom=3,
        spare=spare,
    )
    assert [amount for _, _, amount in asks(inputs)] == ([] if asked is None else [asked])


def gives_back(**terms: Any) -> list[tuple[str, int]]:
    inputs = round_of(
        POOL,
        idle=idle_units("lic", 6),
        grants=[grant("old", 4), grant("young", 4, granted_at=NOW - minutes(10))],
    )
    return returned_parts(with_terms(inputs, **terms))


def test_a_grant_younger_than_the_idle_window_stays() -> None:
    assert gives_back() == [("old", 4), ("young", 2)]
    assert gives_back(idle_return_after=minutes(30)) == [("old", 4)]


def test_the_hold_of_the_site_counts_as_that_of_the_lender() -> None:
    assert gives_back(min_hold=timedelta(minutes=11)) == [("old", 4)]


@pytest.mark.parametrize("terms", [{"blind": True}, {"over": 1}])
def test_nothing_goes_back_blind_or_while_more_is_occupied_than_there_is(
    terms: dict[str, Any],
) -> None:
    assert gives_back(**terms) == []


def test_parts_go_back_in_steps_of_both() -> None:
    assert gives_back(step=3) == [("old", 4)]
