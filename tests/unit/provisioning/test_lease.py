"""ProviderLease: given earlier steps, when a command, then new events or a refusal."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.unit.aggregates import STAMP, then
from xce.domain.errors import IllegalTransitionError, RejectedError, StaleEpochError
from xce.domain.provisioning.lease import ProviderLease

TERM = timedelta(seconds=30)
Step = Callable[[ProviderLease], None]


def given(*steps: Step) -> ProviderLease:
    lease = ProviderLease.grant(provider="aws", holder="A", term=TERM, **STAMP)
    for step in steps:
        step(lease)
    lease.collect_events()
    return lease


def take_over(holder: str, epoch: int) -> Step:
    return lambda lease: lease.take_over(holder=holder, epoch=epoch, term=TERM, **STAMP)


def regrant(holder: str, epoch: int) -> Step:
    return lambda lease: lease.regrant(holder=holder, epoch=epoch, term=TERM, **STAMP)


def release(epoch: int) -> Step:
    return lambda lease: lease.release(epoch=epoch, **STAMP)


def lapse(epoch: int) -> Step:
    return lambda lease: lease.lapse(epoch=epoch, **STAMP)


def test_the_first_holder_has_epoch_one() -> None:
    lease = ProviderLease.grant(provider="aws", holder="A", term=TERM, **STAMP)

    assert then(lease) == [("Granted", {"holder": "A", "term": TERM})]
    assert (lease.id, lease.epoch) == ("lease:aws", 1)


def test_each_holder_has_an_epoch_of_its_own() -> None:
    lease = given()

    for step in (take_over("B", 2), release(2), regrant("A", 3), lapse(3), regrant("A", 4)):
        step(lease)

    assert [name for name, _ in then(lease)] == [
        "TakenOver", "Released", "Regranted", "Lapsed", "Regranted",
    ]  # fmt: skip
    assert (lease.holder, lease.epoch) == ("A", 4)


@pytest.mark.parametrize(
    "steps",
    [[take_over("B", 2)], [release(1)], [lapse(1)], [release(1), regrant("B", 2)]],
)
def test_a_repeated_command_records_nothing(steps: list[Step]) -> None:
    lease = given(*steps)

    steps[-1](lease)

    assert then(lease) == []


def test_a_holder_that_was_started_again_takes_over_from_itself() -> None:
    lease = given()

    take_over("A", 2)(lease)

    assert [name for name, _ in then(lease)] == ["TakenOver"]


@pytest.mark.parametrize("step", [release(1), lapse(1), take_over("A", 1), take_over("C", 2)])
def test_a_leader_that_does_not_know_it_lost_is_told(step: Step) -> None:
    """F23: what is said under an epoch that somebody else took is refused."""
    lease = given(take_over("B", 2))

    with pytest.raises(StaleEpochError, match="epoch"):
        step(lease)

    assert then(lease) == []


def test_an_epoch_is_not_skipped() -> None:
    with pytest.raises(RejectedError, match="epoch 3 is ahead; wanted 2"):
        take_over("B", 3)(given())


def test_a_lease_that_nobody_holds_is_not_taken_over() -> None:
    for step in (release(1), lapse(1)):
        with pytest.raises(IllegalTransitionError, match="TakenOver"):
            take_over("B", 2)(given(step))


def test_a_held_lease_is_not_granted_again() -> None:
    with pytest.raises(IllegalTransitionError, match=r"Regranted .* lease is held"):
        regrant("B", 2)(given())


def test_a_lease_ends_once() -> None:
    with pytest.raises(IllegalTransitionError, match="released"):
        lapse(1)(given(release(1)))
    with pytest.raises(IllegalTransitionError, match="lapsed"):
        release(1)(given(lapse(1)))


def test_a_term_is_a_time() -> None:
    with pytest.raises(RejectedError, match="above 0"):
        ProviderLease.grant(provider="aws", holder="A", term=timedelta(0), **STAMP)
    with pytest.raises(RejectedError, match="above 0"):
        given().take_over(holder="B", epoch=2, term=timedelta(0), **STAMP)
