"""After a mass loss a provider is asked again slowly: as many as have joined since, and the least at first."""

from datetime import datetime

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
    minutes,
    provider,
    request,
    round_of,
    template,
)
from xce.domain.formats.policy import LossEntry, PolicyInput, PolicySettings
from xce.domain.formats.provider import ProviderDescription


def lost(hosts: int, last_at: datetime | None = None, *, joined: int = 0) -> LossEntry:
    return LossEntry(provider="aws", hosts=hosts, last_at=last_at or at(-5), joined_since=joined)


def after(
    *losses: LossEntry, wants: int = 20, there: int = 0, of: ProviderDescription | None = None
) -> PolicyInput:
    inputs = round_of(
        of or provider("aws", template()),
        wants=demand(hosts("c4", wants)),
        instances=[instance(f"i{n}") for n in range(there)],
    )
    return inputs.model_copy(update={"losses": losses})


def test_a_mass_that_vanished_together_is_not_bought_back_at_once() -> None:
    assert asks(after(lost(20))) == [("aws", "c4", 1)]
    assert holds(after(lost(20))) == [
        "19 of 20 hosts of c4 not asked: aws: slow start after 20 hosts were lost by 2026-03-01T09:55:00Z: 1 of 1 used"
    ]
    assert asks(carried_out(after(lost(20)))) == []


def test_each_host_that_joins_lets_one_more_be_on_its_way() -> None:
    assert asks(after(lost(20, joined=4), there=4)) == [("aws", "c4", 4)]
    coming = after(lost(20, joined=4), there=4)
    asked = request("R1", amount=3, asked_position=1)
    inventory = coming.inventory.model_copy(update={"requests": (asked,)})
    assert asks(coming.model_copy(update={"inventory": inventory})) == [("aws", "c4", 1)]


@pytest.mark.parametrize(
    ("loss", "there"),
    [(lost(2), 0), (lost(3), 12), (lost(20, at(-30)), 0)],
    ids=["too few", "a small part", "long ago"],
)
def test_other_losses_bound_nothing(loss: LossEntry, there: int) -> None:
    assert asks(after(loss, there=there)) == [("aws", "c4", 20)]


def test_other_providers_are_asked_for_what_this_one_is_not() -> None:
    inputs = round_of(
        provider("aws", template(price="0.1")),
        provider("gcp", template(price="0.2")),
        wants=demand(hosts("c4", 5)),
    )

    assert asks(inputs.model_copy(update={"losses": (lost(9),)})) == [
        ("aws", "c4", 1),
        ("gcp", "c4", 4),
    ]


def test_the_least_serves_the_first_job_and_is_a_possible_size() -> None:
    of = provider("aws", template(), template("m8"), minimum=2, step=2)
    inputs = after(lost(20), of=of).model_copy(
        update={"demand": demand(hosts("c4", 9, ("gang", 1, 3), ("other", 2, 6)))}
    )

    assert asks(inputs) == [("aws", "c4", 4)]


def test_without_caution_all_is_asked() -> None:
    careless = PolicySettings(cautious_for=minutes(0))

    assert asks(after(lost(20)).model_copy(update={"settings": careless})) == [("aws", "c4", 20)]


@given(st.integers(3, 60), st.integers(1, 60), st.integers(0, 30))
def test_never_are_more_on_their_way_than_have_joined_since_and_all_come_in_the_end(
    hosts_lost: int, wants: int, survivors: int
) -> None:
    """Round after round all that was asked joins: what is asked grows, and the demand is met in few rounds."""
    joined, rounds = 0, 0
    while joined < wants:
        inputs = after(
            lost(hosts_lost, joined=joined), wants=wants - joined, there=survivors + joined
        )
        (ask,) = asks(inputs)
        assert ask[2] is not None
        if hosts_lost * 5 > hosts_lost + survivors + joined:
            assert ask[2] <= max(1, joined)
        joined += ask[2]
        rounds += 1

    assert rounds <= 8
