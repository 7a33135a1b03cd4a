"""Invariant 7, broken by events that no command would record."""

from typing import Any

import pytest

from tests.unit.invariants.forger import Forger, assert_found, findings
from xce.domain.events.base import DomainEvent
from xce.domain.formats.provider import (
    Kind,
    ResourceOffer,
    TemplateOffer,
)
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.orphan import Orphan, OrphanKind
from xce.domain.provisioning.request import Request, RequestState
from xce.projections.invariants.capacity import Capacity

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
