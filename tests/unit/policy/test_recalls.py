"""What a lender wants back goes as far as it is free; terms that end are put off for what is needed."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from xce.domain.policy.decide import renewals


def lender(to: int | None, **more: Any) -> Any:
    offer = resource(**more).model_copy(update={"recalled_to": to})
    return provider("pool", resources=[offer], partial_returns=True)


def site(
    to: int | None, *, free: int | None, step: int = 1, terms: dict[str, Any] | None = None, **more: Any
) -> PolicyInput:  # fmt: skip
    made = SharedTerms.model_validate({"name": "lic", "free": free, **(terms or {})})
    inputs = round_of(lender(to, step=step), **more)
    return inputs.model_copy(update={"shared": (made,)})


def back_of(inputs: PolicyInput) -> dict[str, int]:
    return dict(returned_parts(inputs))


def test_what_is_free_of_a_recall_goes_at_once_and_the_rest_is_said() -> None:
    inputs = site(2, free=3, grants=[grant(amount=8, granted_at=NOW)])
    assert back_of(inputs) == {"g-1": 3}
    assert any("pool wants 6 of lic back, 3 stay" in hold for hold in holds(inputs))


def test_a_recall_is_in_whole_steps_of_what_is_free() -> None:
    assert back_of(site(5, free=8, step=4, grants=[grant(amount=8)])) == {"g-1": 4}
    assert back_of(site(5, free=3, step=4, grants=[grant(amount=8)])) == {}


@pytest.mark.parametrize(
    ("terms", "why"),
    [
        ({"blind": True, "free": 5}, "not seen"),
        ({"over": 1, "free": 0}, "more are occupied"),
        ({"free": None}, "what is in use is unknown"),
    ],
)
def test_blind_over_or_unknown_nothing_recalled_goes_back(terms: dict[str, Any], why: str) -> None:
    inputs = site(0, free=None, terms=terms, grants=[grant(amount=5)])
    assert back_of(inputs) == {}
    assert any(why in hold for hold in holds(inputs))


def test_a_hold_is_kept_against_a_recall() -> None:
    held = grant(amount=5, hold_until=NOW + minutes(1))
    assert back_of(site(0, free=5, grants=[held])) == {}


def test_what_waiting_jobs_want_does_not_hold_a_recall_and_nothing_is_asked_of_its_lender() -> None:
    inputs = site(0, free=2, grants=[grant(amount=5)], wants=demand(units("lic", 3)))
    assert back_of(inputs) == {"g-1": 2}
    assert asks(inputs) == []
    assert any("it wants what it lends to fall to 0" in hold for hold in holds(inputs))


def test_what_is_on_its_way_back_already_counts_for_a_recall() -> None:
    inputs = site(2, free=3, grants=[grant(amount=5, returning=3)])
    assert back_of(inputs) == {}
    assert holds(inputs) == []


def test_without_a_recall_nothing_is_different() -> None:
    inputs = site(None, free=5, grants=[grant(amount=5)], idle=idle_units("lic", 2))
    assert back_of(inputs) == {"g-1": 2}


@given(
    amounts=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    to=st.integers(0, 20),
    free=st.integers(0, 20),
    step=st.sampled_from([1, 2, 5]),
)
def test_no_recall_takes_more_than_is_free_or_than_a_step_beyond_what_is_wanted(
    amounts: list[int], to: int, free: int, step: int
) -> None:
    grants = [grant(f"g-{n}", amount) for n, amount in enumerate(amounts)]
    back = sum(back_of(site(to, free=free, step=step, grants=grants)).values())
    wanted = max(0, sum(amounts) - to)
    assert back <= free
    assert back < wanted + step


# ------------------------------------------------------------------------ terms
def ending(
    name: str, amount: int, at: datetime, *, since: datetime | None = None, price: str = "2.00"
) -> Any:
    made = grant(name, amount, granted_at=since or at - timedelta(hours=1), price=price)
    return made.model_copy(update={"expires_at": at})


def kept(*grants: Any, to: int | None = None, **more: Any) -> list[str]:
    inputs = site(to, free=None, grants=grants, **more)
    return [one.id for one in renewals(inputs)]


def test_an_end_is_put_off_a_quarter_of_an_hour_before_it_comes_or_after_half_a_term() -> None:
    assert kept(ending("g", 5, NOW + minutes(16))) == []
    assert kept(ending("g", 5, NOW + minutes(15))) == ["g"]
    short = ending("g", 5, NOW + minutes(5), since=NOW - minutes(4))
    assert kept(short) == []
    assert kept(ending("g", 5, NOW + minutes(5), since=NOW - minutes(5))) == ["g"]
    renewed = short.model_copy(update={"renewed_at": NOW - minutes(6)})
    assert kept(renewed) == ["g"]


def test_what_is_over_or_never_ends_is_not_put_off() -> None:
    assert kept(ending("g", 5, NOW)) == []
    assert kept(grant()) == []


def test_what_is_idle_ends_the_dearest_first_and_the_rest_is_kept() -> None:
    cheap = ending("cheap", 3, NOW + minutes(5), price="1.00")
    dear = ending("dear", 3, NOW + minutes(5), price="9.00")
    assert kept(cheap, dear, idle=idle_units("lic", 3)) == ["cheap"]
    assert kept(cheap, dear, idle=idle_units("lic", 2)) == ["cheap", "dear"]
    assert kept(cheap, dear, idle=idle_units("lic", 6)) == []


def test_what_is_wanted_back_ends_and_blind_nothing_counts_as_idle() -> None:
    one = ending("g", 3, NOW + minutes(5))
    assert kept(one, to=0) == []
    assert kept(one, terms={"blind": True}, idle=idle_units("lic", 3)) == ["g"]


def test_frozen_or_on_old_demand_what_is_there_is_kept() -> None:
    inputs = site(
        None, free=None, grants=[ending("g", 3, NOW + minutes(5))], idle=idle_units("lic", 3)
    )
    old = inputs.model_copy(update={"computed_at": NOW - timedelta(days=1)})
    frozen = old.model_copy(update={"settings": old.settings.model_copy(update={"freeze": True})})
    assert [[g.id for g in renewals(one)] for one in (inputs, old, frozen)] == [[], ["g"], ["g"]]
