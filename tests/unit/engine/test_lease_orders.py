"""Orders about leases, and under them; given orders, when one, then its answer and events."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.engine.rig import ADMIN, AT, OPEN, P1, P2, TAKE, Rig, ready
from tests.unit.engine.test_controller import CLOUD, POOL, names
from xce.domain.engine import commands as c
from xce.domain.engine.commands import Command
from xce.domain.engine.workspace import EpochMissingError, NoLeaseError
from xce.domain.errors import (
    LeaseHeldError,
    StaleEpochError,
)
from xce.domain.provisioning.lease import ProviderLease


def test_a_lease_that_another_holds_is_not_taken_before_its_term_is_over() -> None:
    rig = ready()
    rig.order(P2, c.DescribeProvider(POOL))
    rig.elapsed_s = 29.0

    with pytest.raises(LeaseHeldError, match="p1 holds the lease of cloud for 1 s more"):
        rig.order(P2, replace(TAKE, holder="p2"))


def test_a_lease_that_was_not_renewed_lapses_and_is_granted_to_another_under_the_next_epoch() -> (
    None
):
    rig = ready()
    rig.elapsed_s = 30.0

    assert rig.tick() == ["lease.Lapsed"]
    assert rig.order(P2, replace(TAKE, holder="p2")).epochs == {"cloud": 2}
    assert names(rig.new) == ["lease.Regranted"]


def test_a_renewal_is_no_event_and_begins_a_term() -> None:
    rig = ready()
    rig.elapsed_s = 20.0
    rig.order(P1, c.RenewLease("cloud", "p1", 1))
    assert rig.new == []
    rig.elapsed_s = 49.0

    assert rig.tick() == []

    rig.elapsed_s = 50.0
    assert rig.tick() == ["lease.Lapsed"]


def test_f23_a_leader_that_lost_its_lease_writes_nothing_and_cannot_renew() -> None:
    rig = ready()
    rig.elapsed_s = 30.0
    rig.tick()
    rig.order(P2, replace(TAKE, holder="p2"))
    rig.order(P2, OPEN, epochs={"cloud": 2})
    rig.elapsed_s = 33.0

    with pytest.raises(StaleEpochError, match="epoch 1 was superseded by epoch 2"):
        rig.order(P1, replace(OPEN, request="R2"), epochs={"cloud": 1})
    with pytest.raises(StaleEpochError):
        rig.order(P1, c.RenewLease("cloud", "p1", 1))

    assert rig.new == []


def test_a_provisioner_says_under_which_epoch_it_writes() -> None:
    with pytest.raises(EpochMissingError):
        ready().order(P1, OPEN, epochs={})


@pytest.mark.parametrize(
    "command",
    [
        c.DescribeProvider(CLOUD.model_copy(update={"capacity": 7})),
        c.PauseProvider("cloud", None, AT + timedelta(days=1), "throttled"),
        c.ResumeProvider("cloud", None),
    ],
)
def test_f23_a_leader_that_lost_its_lease_neither_describes_its_provider_nor_pauses_it(
    command: Command,
) -> None:
    rig = ready()
    rig.order(ADMIN, c.PauseProvider("cloud", None, AT + timedelta(hours=1), "maintenance"))
    rig.elapsed_s = 30.0
    rig.tick()

    with pytest.raises(NoLeaseError):
        rig.order(P1, command)
    rig.order(P2, replace(TAKE, holder="p2"))
    with pytest.raises(StaleEpochError):
        rig.order(P1, command, epochs={"cloud": 1})
    with pytest.raises(EpochMissingError, match="p2 acts on provider cloud"):
        rig.order(P1, command, epochs={})
    assert rig.new == []

    rig.order(P2, command, epochs={"cloud": 2})
    assert len(rig.new) == 1


def test_a_provider_that_nobody_acts_on_is_described_without_a_lease_and_paused_by_an_admin() -> (
    None
):
    rig = Rig()

    rig.order(P1, c.DescribeProvider(CLOUD), epochs={})
    rig.order(P2, c.DescribeProvider(CLOUD.model_copy(update={"capacity": 7})), epochs={})
    rig.order(P1, TAKE, epochs={})
    rig.order(ADMIN, c.PauseProvider("cloud", None, AT + timedelta(days=1), "x"), epochs={})

    assert names(rig.new) == ["provider.Paused"]


def test_f23_after_a_start_each_lease_has_one_full_term_of_grace() -> None:
    rig = ready()
    rig.elapsed_s = 29.0
    again = rig.restarted()  # its own clock stands at 5 s
    again.elapsed_s = 34.0

    assert again.tick() == []
    again.elapsed_s = 35.0
    assert again.tick() == ["lease.Lapsed"]


def test_f22_terms_do_not_follow_the_clock_on_the_wall() -> None:
    rig = ready()
    back = AT - timedelta(minutes=10)

    rig.controller.tick(at=back, elapsed_s=29.0)
    assert rig.save() == []
    rig.controller.tick(at=back, elapsed_s=30.0)
    assert rig.save() == ["lease.Lapsed"]


def test_the_holder_that_starts_again_takes_its_own_lease_under_a_new_epoch() -> None:
    rig = ready()

    assert rig.order(P1, TAKE).epochs == {"cloud": 2}
    assert names(rig.new) == ["lease.TakenOver"]


def test_an_admin_takes_a_held_lease_by_force() -> None:
    rig = ready()

    assert rig.order(ADMIN, replace(TAKE, holder="p2", force=True)).epochs == {"cloud": 2}


def test_a_released_lease_does_not_lapse_and_its_provider_has_no_facts() -> None:
    rig = ready()
    rig.order(P1, c.ReleaseLease("cloud", "p1"))
    rig.elapsed_s = 100.0

    assert rig.tick() == []
    with pytest.raises(NoLeaseError):
        rig.order(P1, OPEN)


def test_a_lease_whose_append_failed_has_no_term() -> None:
    rig = Rig()
    rig.order(P1, c.DescribeProvider(CLOUD))
    rig.order(P1, TAKE, fails=True)
    rig.elapsed_s = 100.0

    assert rig.tick() == []


def test_a_lease_that_was_saved_by_an_append_in_doubt_has_a_full_term_from_when_it_was_found() -> (
    None
):
    """The lease of p1 would have ended at 30 s; p2 has taken it over, which only the log knows."""
    rig = ready()
    rig.elapsed_s = 20.0
    take_over = replace(TAKE, holder="p2", force=True)
    elsewhere = Rig(rig.streams)
    elsewhere.order(ADMIN, take_over)
    rig.order(ADMIN, take_over, fails=True)

    rig.controller.found(rig.streams.get(ProviderLease, "lease:cloud"), elapsed_s=21.0)

    assert rig.controller.lease_ends_s() == {"cloud": 51.0}
    rig.elapsed_s = 30.0
    assert rig.tick() == []
    rig.elapsed_s = 51.0
    assert rig.tick() == ["lease.Lapsed"]


def test_a_lease_whose_release_is_found_in_the_log_does_not_lapse() -> None:
    rig = ready()
    Rig(rig.streams).order(P1, c.ReleaseLease("cloud", "p1"))
    rig.controller.forget()

    rig.controller.found(rig.streams.get(ProviderLease, "lease:cloud"), elapsed_s=1.0)

    assert rig.controller.lease_ends_s() == {}
