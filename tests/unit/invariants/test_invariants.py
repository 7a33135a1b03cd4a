"""Each promise, broken by events that no command would record: the check names the position and what is wrong."""

from typing import Any

import pytest

from tests.unit.aggregates import AT, HOUR
from tests.unit.invariants.forger import TERM, Forger, assert_found, findings
from xce.domain.events.base import DomainEvent
from xce.domain.events.digest import GENESIS
from xce.domain.events.recorded import Recorded
from xce.domain.formats.provider import (
    Kind,
)
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.lease import ProviderLease
from xce.domain.provisioning.request import Request, RequestState
from xce.domain.sharing.elastic_resource import ElasticResource
from xce.projections.invariants.epochs import Epochs
from xce.projections.invariants.intents import Intents
from xce.projections.invariants.ownership import Ownership
from xce.projections.invariants.totals import Totals


# ------------------------------------------------------------------ 1 ownership
def test_one_machine_has_one_owner() -> None:
    forger = Forger().host("I1").host("I2", "R2")

    assert_found(
        Ownership(), forger, 4, "machine m1 of provider aws is owned by instance:I1 already"
    )


def test_a_machine_that_came_back_under_the_same_id_has_a_new_owner() -> None:
    forger = Forger().host("I1").add(Instance.Lost, "instance:I1", why="").host("I2", "R2")

    assert findings(Ownership(), forger.events) == []


@pytest.mark.parametrize("event_class", [Request.InstanceGranted, Request.MachineFailed])
def test_a_machine_of_a_request_has_a_record(event_class: type[DomainEvent]) -> None:
    why: dict[str, Any] = {"why": ""} if event_class is Request.MachineFailed else {}
    forger = Forger().add(event_class, "request:R1", instance_id="I1", machine="m1", **why)

    assert_found(Ownership(), forger, 1, "instance:I1 has no record in its instance")


def test_a_grant_is_in_a_total() -> None:
    forger = (
        Forger().add(Request.AmountGranted, "request:R1", grant_id="G1", amount=2).grant("G1", 2)
    )

    assert_found(Ownership(), forger, 1, "grant:G1 has no record in its total")


def test_the_parts_of_a_thing_say_the_same() -> None:
    forger = Forger().add(Request.InstanceGranted, "request:R1", instance_id="I1", machine="m7")

    assert_found(Ownership(), forger.instance("I1"), 2, "machine m1 of request R1 and machine m7")


# ------------------------------------------------------------------ 2 intents
def test_an_intent_is_written_once() -> None:
    assert_found(
        Intents(), Forger().intend("R1").intend("R1"), 2, "there is an intent of request:R1 before"
    )


def test_one_request_at_the_provider_is_one_of_ours() -> None:
    forger = Forger().intend("R1").intend("R2")
    for name in ("R1", "R2"):
        forger.add(Request.Accepted, f"request:{name}", provider_request_id="add-1")

    assert_found(Intents(), forger, 4, "add-1 of provider aws is request:R1 already")


def test_nothing_comes_without_an_intent() -> None:
    assert_found(Intents(), Forger().instance("I1"), 1, "no intent of request:R1 before it")
    assert_found(Intents(), Forger().grant("G1", 1), 1, "no intent of request:R1 before it")
    closed = Forger().add(Request.Closed, "request:R1", outcome=RequestState.FAILED, why="")
    assert_found(Intents(), closed, 1, "no intent of request:R1 before it")


def test_what_comes_is_what_was_asked() -> None:
    forger = Forger().intend("R1").instance("I1", template="m8")

    assert_found(Intents(), forger, 2, "request R1 is for c4 of provider aws, not for m8 of aws")


@pytest.mark.parametrize(
    ("event_class", "payload"),
    [
        (Instance.Returned, {}),
        (Instance.ReturnAccepted, {"return_id": "X1", "provider_return_id": "ret"}),
        (Instance.ReturnRefused, {"return_id": "X1", "why": ""}),
    ],
)
def test_nothing_goes_back_without_an_intent(
    event_class: type[DomainEvent], payload: dict[str, Any]
) -> None:
    forger = Forger().intend("R1").instance("I1").add(event_class, "instance:I1", **payload)

    assert_found(Intents(), forger, 3, "there is no return under way")


def test_a_grants_return_is_answered_once() -> None:
    forger = Forger().intend("R1", kind=Kind.COUNTABLE, item="lic").grant("G1", 2)
    forger.add(Grant.ReturnStarted, "grant:G1", return_id="X1", amount=1)
    for _ in range(2):
        forger.add(Grant.ReturnConfirmed, "grant:G1", return_id="X1")

    assert_found(Intents(), forger, 5, "there is no return under way")


# ------------------------------------------------------------------ 3 totals
def test_more_than_is_held_does_not_go_back() -> None:
    found = findings(Totals(), Forger().declare().units("G1", 2).give_back("X1", "G1", 3).events)

    assert (5, "3 go back, of 2 that it holds") in found
    assert any(position == 6 and "leave the total, which has 2" in text for position, text in found)


def test_the_total_does_not_fall_below_what_is_occupied() -> None:
    forger = Forger().declare(owned=1).units("G1", 2).give_back("X1", "G1", 2, occupied=2)

    assert_found(Totals(), forger, 6, "the total falls to 1, below the 2 that are occupied")


def test_a_return_takes_effect_once() -> None:
    forger = Forger().declare().units("G1", 4).give_back("X1", "G1", 1).give_back("X1", "G1", 1)

    found = findings(Totals(), forger.events)

    assert [position for position, _ in found] == [7, 8]
    assert all("X1 takes effect a second time" in text for _, text in found)


def test_what_was_not_given_back_is_not_put_back() -> None:
    forger = Forger().declare().units("G1", 4).give_back("X1", "G1", 1)
    forger.add(Grant.ReturnRefused, "grant:G1", return_id="X1", why="")
    forger.add(
        ElasticResource.PutBack, "shared:lic", return_id="X9", grant_id="G1", amount=1, why=""
    )

    assert_found(Totals(), forger, 8, "return X9 is put back and was not given back")


def test_nothing_goes_back_before_its_hold() -> None:
    lent = Forger().declare().units("G1", 2, hold_until=AT + HOUR).give_back("X1", "G1", 1)
    assert_found(Totals(), lent, 5, "before its hold until 2026-03-01T11:00:00+00:00")

    host = Forger().instance("I1", hold_until=AT + HOUR)
    host.add(Instance.ReturnIntended, "instance:I1", return_id="X1", why="")
    assert_found(Totals(), host, 2, "before its hold")

    later = Forger().declare().units("G1", 2, hold_until=AT + HOUR)
    assert findings(Totals(), later.give_back("X1", "G1", 1, at=AT + HOUR).events) == []


def test_a_grant_and_the_total_it_is_in_agree() -> None:
    forger = Forger().declare().units("G1", 2).add(Grant.Lost, "grant:G1", why="")

    assert_found(
        Totals(), forger, 5, "grant:G1 lends 0 by its own events and 2 by those of the total"
    )


# ------------------------------------------------------------------ 6 epochs
def test_an_old_epoch_writes_nothing() -> None:
    forger = (
        Forger().lease().add(ProviderLease.TakenOver, "lease:aws", holder="p2", term=TERM, epoch=2)
    )

    assert_found(
        Epochs(),
        forger.intend("R1", by="provisioner/p2"),
        3,
        "under epoch 1 of provider aws, current is 2",
    )


def test_nobody_writes_under_a_lease_that_nobody_holds() -> None:
    ended = Forger().lease().add(ProviderLease.Lapsed, "lease:aws")

    assert_found(Epochs(), ended.intend("R1"), 3, "nobody holds the lease of provider aws")
    assert_found(Epochs(), Forger().intend("R1"), 1, "nobody holds the lease of provider aws")


def test_only_the_holder_writes() -> None:
    assert_found(
        Epochs(), Forger().lease("p2").intend("R1"), 2, "written by provisioner/p1, while p2 holds"
    )


def test_epochs_grow_by_one() -> None:
    forger = (
        Forger().lease().add(ProviderLease.TakenOver, "lease:aws", holder="p2", term=TERM, epoch=3)
    )

    assert_found(Epochs(), forger, 2, "epoch 3 follows epoch 1; wanted 2")


def test_a_fact_whose_first_event_is_missing_is_named() -> None:
    forger = Forger().lease().add(Instance.Lost, "instance:I1", why="")

    assert_found(Epochs(), forger, 2, "its first event, which names the provider, is missing")


def test_the_fences_follow_the_leases() -> None:
    epochs = Epochs()
    forger = Forger().lease().add(ProviderLease.Released, "lease:aws")
    forger.add(ProviderLease.Regranted, "lease:aws", holder="p2", term=TERM, epoch=2)
    seen: list[int] = []

    for position, event in enumerate(forger.events, start=1):
        epochs.see(Recorded(position, event, GENESIS))
        seen.append(epochs.fences()["lease:aws"])

    assert seen == [1, 2, 2]
