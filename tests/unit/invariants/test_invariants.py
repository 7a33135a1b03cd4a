"""Each promise, broken by events that no command would record: the check names the position and what is wrong."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.stories import Story
from tests.unit.aggregates import AT, HOUR
from xce.adapters.store.open import MEMORY, open_log
from xce.domain.errors import NotFoundError
from xce.domain.events.base import Aggregate, DomainEvent, ProviderFact
from xce.domain.events.digest import GENESIS
from xce.domain.events.recorded import Recorded
from xce.domain.formats.provider import (
    Billing,
    Kind,
    ProviderDescription,
    ResourceOffer,
    TemplateOffer,
)
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.lease import ProviderLease
from xce.domain.provisioning.orphan import Orphan, OrphanKind
from xce.domain.provisioning.provider import Provider
from xce.domain.provisioning.request import Request, RequestState
from xce.domain.sharing.elastic_resource import ElasticResource
from xce.projections.invariants.capacity import Capacity
from xce.projections.invariants.epochs import Epochs
from xce.projections.invariants.intents import Intents
from xce.projections.invariants.ownership import Ownership
from xce.projections.invariants.report import FINDINGS_MAX, Invariant
from xce.projections.invariants.states import States
from xce.projections.invariants.totals import Totals

TERM = timedelta(seconds=30)


class Forger:
    """Makes events that follow one another by version, whatever they say."""

    def __init__(self) -> None:
        self.events: list[DomainEvent] = []
        self._versions: dict[str, int] = {}

    def add(
        self,
        event_class: type[DomainEvent],
        aggregate_id: str,
        *,
        at: datetime = AT,
        by: str = "provisioner/p1",
        epoch: int = 1,
        **payload: Any,
    ) -> "Forger":
        version = self._versions[aggregate_id] = self._versions.get(aggregate_id, 0) + 1
        document: dict[str, Any] = {
            "originator_id": aggregate_id, "originator_version": version, "timestamp": at, "by": by, **payload,
        }  # fmt: skip
        if issubclass(event_class, ProviderFact) or "epoch" in event_class.model_fields:
            document["epoch"] = epoch
        self.events.append(event_class.model_validate(document))
        return self

    # ------------------------------------------------------------ usual events
    def lease(self, holder: str = "p1") -> "Forger":
        return self.add(ProviderLease.Granted, "lease:aws", holder=holder, term=TERM)

    def describe(self, **parts: Any) -> "Forger":
        return self.add(
            Provider.Described,
            "provider:aws",
            description=ProviderDescription(name="aws", **parts),
        )

    def intend(
        self, name: str, amount: int = 1, kind: Kind = Kind.HOST, item: str = "c4", **parts: Any
    ) -> "Forger":
        return self.add(
            Request.Intended, f"request:{name}", provider="aws", kind=kind, item=item, amount=amount,
            price_per_hour=None, deadline=AT + HOUR, reason="", jobs=(), demand_position=0, hold=TERM, **parts,
        )  # fmt: skip

    def instance(
        self, name: str, request: str = "R1", machine: str = "m1", **parts: Any
    ) -> "Forger":
        document: dict[str, Any] = {"provider": "aws", "template": "c4", "hold_until": None} | parts
        return self.add(
            Instance.Granted, f"instance:{name}", request_id=request, machine=machine, name=None,
            price_per_hour=None, billing=Billing(), **document,
        )  # fmt: skip

    def host(self, name: str, request: str = "R1", machine: str = "m1") -> "Forger":
        """Both sides of one host."""
        self.add(Request.InstanceGranted, f"request:{request}", instance_id=name, machine=machine)
        return self.instance(name, request, machine)

    def grant(self, name: str, amount: int, **parts: Any) -> "Forger":
        document: dict[str, Any] = {"hold_until": None} | parts
        return self.add(
            Grant.Granted, f"grant:{name}", request_id="R1", provider="aws", resource="lic", amount=amount,
            expires_at=None, price_per_hour=None, **document,
        )  # fmt: skip

    def declare(self, owned: int = 0, max_borrow: int = 9) -> "Forger":
        return self.add(
            ElasticResource.Declared, "shared:lic", owned=owned, provider="aws", max_borrow=max_borrow, step=1,
            idle_return_after=TERM, min_hold=TERM,
        )  # fmt: skip

    def units(self, name: str, amount: int, **parts: Any) -> "Forger":
        """All sides of one grant."""
        self.add(Request.AmountGranted, "request:R1", grant_id=name, amount=amount)
        self.grant(name, amount, **parts)
        return self.add(ElasticResource.Borrowed, "shared:lic", grant_id=name, amount=amount)

    def give_back(
        self, return_id: str, name: str, amount: int, occupied: int = 0, at: datetime = AT
    ) -> "Forger":
        """Both sides of one return."""
        self.add(Grant.ReturnStarted, f"grant:{name}", return_id=return_id, amount=amount, at=at)
        return self.add(
            ElasticResource.GivenBack, "shared:lic", return_id=return_id, grant_id=name, amount=amount,
            occupied=occupied, at=at,
        )  # fmt: skip


def findings(invariant: Invariant, events: Sequence[DomainEvent]) -> list[tuple[int | None, str]]:
    for position, event in enumerate(events, start=1):
        invariant.see(Recorded(position, event, GENESIS))
    check = invariant.end()
    assert check.passed == (not check.findings)
    return [(finding.position, finding.message) for finding in check.findings]


def assert_found(invariant: Invariant, forger: Forger, position: int | None, message: str) -> None:
    found = findings(invariant, forger.events)
    assert len(found) == 1, found
    assert found[0][0] == position
    assert message in found[0][1]


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


# ------------------------------------------------------------------ 7 capacity
C4_MAX_2 = (TemplateOffer(template_id="c4", max_number=2), TemplateOffer(template_id="m8"))
LIC_MAX_5 = (ResourceOffer(name="lic", capacity=5), ResourceOffer(name="other"))


def test_what_exists_and_what_is_asked_is_within_the_templates_bound() -> None:
    """F07: also what is errored or returning exists."""
    forger = Forger().describe(templates=C4_MAX_2).intend("R1", 2).host("I1")
    forger.add(Request.MachineFailed, "request:R1", instance_id="I2", machine="m2", why="")
    forger.instance("I2", machine="m2").add(Instance.JoinMissed, "instance:I2", why="")
    forger.add(Instance.ReturnIntended, "instance:I2", return_id="X1", why="")

    assert_found(
        Capacity(), forger.intend("R2"), 9, "3 of template c4 exist or are asked; 2 are possible"
    )


def test_what_is_gone_makes_room() -> None:
    forger = (
        Forger().describe(templates=C4_MAX_2).intend("R1", 2).host("I1").host("I2", machine="m2")
    )
    forger.add(Instance.Lost, "instance:I2", why="").intend("R2")
    forger.add(Request.Closed, "request:R2", outcome=RequestState.FAILED, why="").intend("R3")

    assert findings(Capacity(), forger.events) == []


def test_an_unknown_outcome_is_counted() -> None:
    forger = Forger().describe(templates=C4_MAX_2).intend("R1", 2)
    forger.add(Request.OutcomeUnknown, "request:R1", why="timeout")

    assert_found(Capacity(), forger.intend("R2"), 4, "3 of template c4 exist or are asked")


def test_a_surplus_is_no_fault_of_ours_until_more_is_asked() -> None:
    forger = Forger().describe(templates=C4_MAX_2).intend("R1", 2)
    for number in (1, 2, 3):
        forger.host(f"I{number}", machine=f"m{number}")
    assert findings(Capacity(), forger.events) == []

    assert_found(Capacity(), forger.intend("R2"), 9, "4 of template c4 exist or are asked")


def test_all_templates_together_are_within_the_providers_bound() -> None:
    forger = (
        Forger().describe(templates=C4_MAX_2, capacity=3).intend("R1", 2).intend("R2", 2, item="m8")
    )

    assert_found(
        Capacity(), forger, 3, "4 hosts of provider aws exist or are asked; 3 are possible"
    )


def test_what_is_not_offered_is_not_asked() -> None:
    described = Forger().describe(templates=C4_MAX_2, resources=LIC_MAX_5)

    assert_found(Capacity(), Forger().intend("R1"), 1, "which has not described itself")
    assert_found(
        Capacity(), described.intend("R1", item="x9"), 2, "which provider aws does not offer"
    )
    unknown = Forger().describe(resources=LIC_MAX_5).intend("R1", kind=Kind.COUNTABLE, item="other")
    assert_found(Capacity(), unknown, 2, "of which provider aws states no capacity")


def test_a_bound_that_shrinks_is_judged_at_the_next_ask() -> None:
    forger = (
        Forger()
        .describe(templates=(TemplateOffer(template_id="c4", max_number=9),))
        .intend("R1", 5)
    )
    forger.describe(templates=C4_MAX_2)
    assert findings(Capacity(), forger.events) == []

    assert_found(
        Capacity(), forger.intend("R2"), 4, "6 of template c4 exist or are asked; 2 are possible"
    )


def test_units_are_lent_until_their_return_is_confirmed() -> None:
    forger = Forger().describe(resources=LIC_MAX_5).declare().intend("R1", 5, Kind.COUNTABLE, "lic")
    forger.units("G1", 5).give_back("X1", "G1", 5)

    assert_found(
        Capacity(),
        forger.intend("R2", 1, Kind.COUNTABLE, "lic"),
        9,
        "6 of lic are lent or asked; provider aws has 5",
    )
    forger.events.pop()
    forger.add(Grant.ReturnConfirmed, "grant:G1", return_id="X1").intend(
        "R3", 5, Kind.COUNTABLE, "lic"
    )
    assert findings(Capacity(), forger.events) == []


def test_no_more_is_borrowed_than_the_site_allows() -> None:
    forger = (
        Forger()
        .describe(resources=LIC_MAX_5)
        .declare(max_borrow=3)
        .intend("R1", 4, Kind.COUNTABLE, "lic")
    )

    assert_found(Capacity(), forger, 3, "4 of lic are lent or asked; at most 3 may be borrowed")


def orphan(forger: Forger, theirs: str, **parts: Any) -> Forger:
    document: dict[str, Any] = {"kind": OrphanKind.UNKNOWN_TO_US, "tag": None} | parts
    return forger.add(
        Orphan.Found, f"orphan:aws/{theirs}", provider="aws", theirs=theirs, why="", **document
    )


@pytest.mark.parametrize("item", ["c4", None])
def test_what_nobody_owns_takes_room_of_its_template_else_of_the_dearest(item: str | None) -> None:
    forger = Forger().describe(templates=(C4_MAX_2[0],)).intend("R1")
    orphan(forger, "m7", item=item)
    assert findings(Capacity(), forger.events) == []

    assert_found(
        Capacity(), forger.intend("R2"), 4,
        "3 of template c4 exist or are asked (1 of it unaccounted for); 2 are possible",
    )  # fmt: skip


def test_what_nobody_owns_takes_room_of_its_provider() -> None:
    forger = Forger().describe(templates=C4_MAX_2, capacity=2)
    orphan(orphan(forger, "m7", item="m8"), "m8", item="x9")

    assert_found(
        Capacity(), forger.intend("R1"), 4, "3 hosts of provider aws exist or are asked (2 of it"
    )


@pytest.mark.parametrize(
    ("end", "parts"),
    [
        (Orphan.Adopted, {"owner": "instance:aws/m7"}),
        (Orphan.Dismissed, {"why": ""}),
        (Orphan.Vanished, {"why": ""}),
    ],
)
def test_an_orphan_that_has_ended_makes_room(end: type[DomainEvent], parts: dict[str, Any]) -> None:
    forger = orphan(Forger().describe(templates=C4_MAX_2), "m7", item="c4")

    forger.add(end, "orphan:aws/m7", **parts).intend("R1", 2)

    assert findings(Capacity(), forger.events) == []


def test_an_orphan_of_a_record_of_ours_counts_by_its_record() -> None:
    forger = Forger().describe(templates=C4_MAX_2)
    orphan(forger, "m7", item="c4", kind=OrphanKind.NEVER_JOINED).intend("R1", 2)

    assert findings(Capacity(), forger.events) == []


def given_up(outcome: RequestState = RequestState.TIMED_OUT) -> Forger:
    forger = Forger().describe(templates=C4_MAX_2).intend("R1", 2).host("I1")
    forger.add(Request.Closed, "request:R1", outcome=outcome, why="over")
    return forger.add(Instance.Lost, "instance:I1", why="")


def test_an_ask_that_was_given_up_counts_until_it_is_settled() -> None:
    asked = given_up().intend("R2", 2)
    assert_found(Capacity(), asked, 7, "3 of template c4 exist or are asked (1 of it")

    settled = given_up().add(Request.Settled, "request:R1", why="").intend("R2", 2)
    refused = given_up(RequestState.FAILED).intend("R2", 2)

    assert findings(Capacity(), settled.events) == []
    assert findings(Capacity(), refused.events) == []


def test_an_ask_that_is_reported_counts_once_and_less_as_what_it_has_done_is_found_out() -> None:
    forger = orphan(given_up(), "R1", tag="R1", item="c4").intend("R2", 1)
    assert findings(Capacity(), forger.events) == []

    forger.add(Request.Settled, "request:R1", why="")
    forger.host("I2", machine="m2").add(Instance.Lost, "instance:I2", why="").intend("R3", 1)

    assert findings(Capacity(), forger.events) == []


def test_units_that_nobody_owns_take_room_of_their_resource_and_of_what_may_be_borrowed() -> None:
    forger = Forger().describe(resources=LIC_MAX_5).declare(max_borrow=4)
    orphan(forger, "g7", of=Kind.COUNTABLE, item="lic", amount=4)
    forger.intend("R1", 2, Kind.COUNTABLE, "lic")

    found = findings(Capacity(), forger.events)

    assert [position for position, _ in found] == [4, 4]
    assert "6 of lic are lent or asked (4 of it unaccounted for); provider aws has 5" in found[0][1]
    assert "at most 4 may be borrowed" in found[1][1]


# ------------------------------------------------------------------ 8 states
class Nothing:
    """A source without aggregates."""

    def get(self, aggregate_class: type[Any], aggregate_id: str) -> Any:
        raise NotFoundError(f"{aggregate_id} is nowhere")


class Wrong:
    """A source that gives each aggregate with one value changed."""

    def __init__(self, aggregate: Aggregate[Any]) -> None:
        self._aggregate = aggregate

    def get(self, aggregate_class: type[Any], aggregate_id: str) -> Any:
        return self._aggregate


class View:
    """A view that counts; what is served may be something else."""

    name = "count"

    def __init__(self, served: int) -> None:
        self._served = served
        self._rebuilt = 0

    def see(self, recorded: Recorded) -> None:
        self._rebuilt += 1

    def difference(self) -> str | None:
        if self._served == self._rebuilt:
            return None
        return f"served {self._served}, rebuilt {self._rebuilt}"


def test_an_event_that_its_state_did_not_allow_is_named() -> None:
    forger = Forger().lease().add(ProviderLease.Released, "lease:aws")
    forger.add(ProviderLease.TakenOver, "lease:aws", holder="p2", term=TERM, epoch=2)

    found = findings(States(Nothing()), forger.events)

    assert found[0] == (3, "it is not allowed while the lease is released")


def test_an_event_that_does_not_follow_is_named_once() -> None:
    forger = Forger().lease()
    for _ in range(3):
        forger.add(ProviderLease.TakenOver, "lease:aws", holder="p2", term=TERM, epoch=2)
    del forger.events[1]

    found = findings(States(Nothing()), forger.events)

    assert [position for position, _ in found] == [2]
    assert "does not follow lease:aws version 1" in found[0][1]


def test_what_cannot_be_loaded_is_named() -> None:
    assert_found(
        States(Nothing()), Forger().lease(), None, "cannot be loaded: lease:aws is nowhere"
    )


def test_a_state_that_differs_is_named_with_what_differs() -> None:
    forger = Forger().lease()
    other = Forger().lease("p2").events[0].mutate(None)
    assert isinstance(other, ProviderLease)

    assert_found(States(Wrong(other)), forger, None, "holder is 'p1', loaded 'p2'")


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_aggregates_that_are_let_go_early_are_compared_all_the_same(kept: int) -> None:
    log = open_log(MEMORY)
    for number in range(3):
        Story(log, f"-{number}").tell()
    names: set[str] = set()
    invariant = States(log, kept=kept)
    for recorded in log.read():
        invariant.see(recorded)
        names.add(recorded.event.originator_id)

    outcome = invariant.end()

    assert (outcome.found, outcome.counted) == (0, len(names))


def test_a_state_that_differs_is_named_when_it_is_let_go() -> None:
    forger = Forger().lease()
    other = Forger().lease("p2").events[0].mutate(None)
    assert isinstance(other, ProviderLease)

    assert_found(States(Wrong(other), kept=0), forger, None, "holder is 'p1', loaded 'p2'")


def test_what_is_stored_after_an_aggregate_was_let_go_is_not_held_against_it() -> None:
    log = open_log(MEMORY)
    story = Story(log)
    invariant = States(log, kept=0)
    seen = 0
    for step in story.steps():
        step()
        for recorded in log.read(seen):
            invariant.see(recorded)
            seen = recorded.position

    assert invariant.end().found == 0


def test_a_view_is_rebuilt_and_compared() -> None:
    log = open_log(MEMORY)
    Story(log).tell()
    events = [r.event for r in log.read()]

    assert findings(States(log, [View(served=len(events))]), events) == []
    assert findings(States(log, [View(served=2)]), events) == [
        (None, "the view count differs: served 2, rebuilt 33")
    ]


def test_findings_are_bounded_and_counted() -> None:
    forger = Forger()
    for number in range(FINDINGS_MAX + 5):
        forger.instance(f"I{number}", machine=f"m{number}")
    invariant = Intents()

    assert len(findings(invariant, forger.events)) == FINDINGS_MAX
    assert invariant.end().found == FINDINGS_MAX + 5
