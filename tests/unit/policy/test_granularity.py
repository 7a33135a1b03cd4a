"""Sizes of asks, against a search over all ways to split."""

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from xce.domain.policy.granularity import Sizes

small = st.integers(1, 12)
sizes = st.builds(Sizes.of, small, st.integers(1, 5), st.integers(1, 20) | st.none())


@cache
def _possible(sizes: Sizes, most: int) -> frozenset[int]:
    """Return all amounts up to ``most`` that requests add up to."""
    one = {
        amount
        for amount in range(sizes.minimum, most + 1)
        if amount % sizes.step == 0 and (sizes.maximum is None or amount <= sizes.maximum)
    }
    reached = {0}
    while new := {first + part for first in reached for part in one} - reached:
        if not (new := {amount for amount in new if amount <= most}):
            break
        reached |= new
    return frozenset(reached)


@given(sizes, st.integers(0, 60))
def test_down_is_the_largest_amount_that_requests_can_make(sizes: Sizes, amount: int) -> None:
    assert sizes.down(amount) == max(n for n in _possible(sizes, 60) if n <= amount)


@given(sizes.filter(lambda sizes: sizes.possible), st.integers(0, 60))
def test_up_is_the_least_amount_that_requests_can_make(sizes: Sizes, amount: int) -> None:
    assert sizes.up(amount) == min(n for n in _possible(sizes, 90) if n >= amount)


@given(sizes.filter(lambda sizes: sizes.possible), st.integers(0, 60))
def test_a_split_adds_up_and_each_part_is_a_request_of_its_own(sizes: Sizes, amount: int) -> None:
    amount = sizes.up(amount)

    parts = sizes.split(amount)

    assert sum(parts) == amount
    assert all(part >= sizes.minimum and part % sizes.step == 0 for part in parts)
    assert all(sizes.maximum is None or part <= sizes.maximum for part in parts)
    fewest = -(-amount // sizes.maximum) if sizes.maximum else min(amount, 1)
    assert len(parts) == fewest
