"""Failures in a row: given events, then how often each item failed since its last success."""

import pytest

from tests.unit.projections.run import (
    Run,
    accept,
    at,
    came,
    cloud,
    declare,
    hosts,
    join,
    lent,
    pool,
    template,
    units,
)
from xce.domain.engine.commands import (
    Command,
    GiveUpRequest,
    LoseInstance,
    MissJoin,
    PauseProvider,
    RefuseRequest,
    ResumeProvider,
)
from xce.projections.all import Projections


def run() -> Run:
    return Run(cloud("aws", template("c4"), template("m8")), pool())


def refused(
    request: str, item: str = "c4", *, of: str = "aws", until: float = 9
) -> tuple[Command, ...]:
    """Return what is recorded once a provider refused an ask."""
    return RefuseRequest(request, "none left"), PauseProvider(of, item, at(until), "none left")


def failures(made: Run) -> list[tuple[str, str, int, bool]]:
    return [(e.provider, e.item, e.in_a_row, e.refused) for e in made.projections.failures.view()]


def test_a_refusal_counts_for_its_item_alone() -> None:
    made = run()
    made.do(hosts("R1", 1), *refused("R1"), at=at(3))

    assert failures(made) == [("aws", "c4", 1, True)]
    (entry,) = made.projections.failures.view()
    assert (entry.last_at, entry.why) == (at(3), "none left")
    assert made.projections.failures.in_a_row("aws", "m8") == 0


def test_an_ask_that_was_never_made_and_a_pause_by_hand_are_no_failures() -> None:
    made = run()
    made.do(hosts("R1", 1), RefuseRequest("R1", "the listing does not have it"))
    made.do(PauseProvider("aws", "c4", at(9), "maintenance"), at=at(1))

    assert failures(made) == []


@pytest.mark.parametrize(
    ("ends", "at_once"),
    [
        ((RefuseRequest("R1", "Error Code: InsufficientInstanceCapacity: none left"),), True),
        ((RefuseRequest("R1", "two of them did not boot"),), False),
        ((GiveUpRequest("R1", "2 of 2 have not come"),), True),
    ],
    ids=["an error code", "no error code", "nothing until the deadline"],
)
def test_f06_after_an_error_code_or_nothing_at_all_it_is_not_asked_again_at_once(
    ends: tuple[Command, ...], at_once: bool
) -> None:
    made = run()
    made.do(hosts("R1", 2), accept("R1"), *ends)

    (entry,) = made.projections.failures.view()
    assert (entry.in_a_row, entry.refused, entry.at_once) == (1, False, at_once)


def test_an_ask_that_nobody_accepted_says_nothing_of_the_item_when_it_is_given_up() -> None:
    made = run()
    made.do(hosts("R1", 2), GiveUpRequest("R1", "2 of 2 have not come"))

    (entry,) = made.projections.failures.view()
    assert not entry.at_once


def test_failures_add_up_until_a_host_joins() -> None:
    made = run()
    made.do(hosts("R1", 1), *refused("R1"))
    made.do(hosts("R2", 1), *refused("R2", until=10))
    made.do(hosts("R3", 1), accept("R3"), came("R3", "m1", ended=True))
    assert failures(made) == [("aws", "c4", 2, True)]

    made.do(join("aws/m1"))

    assert failures(made) == []


def test_a_host_that_never_joins_and_one_that_breaks_while_starting_are_failures() -> None:
    made = run()
    made.do(hosts("R1", 1), accept("R1"), came("R1", "m1", ended=True))
    made.do(MissJoin("aws/m1", "not in 10 min"))
    made.do(hosts("R2", 1), accept("R2"), came("R2", failed=["m2"], ended=True))

    assert failures(made) == [("aws", "c4", 2, False)]


def test_what_one_request_brings_counts_once() -> None:
    made = run()
    made.do(hosts("R1", 3), accept("R1"), came("R1", "m3", failed=["m1", "m2"], ended=True))
    made.do(MissJoin("aws/m3", "x"))

    assert failures(made) == [("aws", "c4", 1, False)]


def test_a_request_that_is_given_up_is_a_failure_and_a_late_host_of_it_a_success() -> None:
    made = run()
    made.do(hosts("R1", 1), accept("R1"), GiveUpRequest("R1", "deadline"))
    assert failures(made) == [("aws", "c4", 1, False)]

    made.do(came("R1", "m1"), join("aws/m1"))

    assert failures(made) == []


def test_a_partial_answer_is_a_failure_until_a_later_request_brings_a_host_that_joins() -> None:
    """Asked ten, got seven (F08): that the seven work does not mean that the other three can be had."""
    made = run()
    made.do(hosts("R1", 3), accept("R1"), came("R1", "m1", ended=True))
    made.do(join("aws/m1"))
    assert failures(made) == [("aws", "c4", 1, False)]

    made.do(hosts("R2", 1), accept("R2"), came("R2", "m2", ended=True), join("aws/m2"))

    assert failures(made) == []


def test_a_host_that_is_lost_while_starting_counts_neither_way() -> None:
    made = run()
    made.do(hosts("R1", 1), accept("R1"), came("R1", "m1", ended=True))
    made.do(LoseInstance("aws/m1", "taken back"))

    assert failures(made) == []
    assert made.projections.failures.state()["asks"] == {}


def test_a_resource_is_well_again_once_some_is_lent() -> None:
    made = run()
    made.do(declare())
    made.do(units("R1", 2), *refused("R1", "lic", of="pool"))
    assert failures(made) == [("pool", "lic", 1, True)]

    made.do(units("R2", 2), accept("R2"), lent("R2", ("g1", 2)))

    assert failures(made) == []


def test_whoever_resumes_a_provider_wants_it_tried_as_if_nothing_had_been() -> None:
    made = run()
    made.do(hosts("R1", 1), *refused("R1"))
    made.do(hosts("R2", 1, "m8"), *refused("R2", "m8"))
    made.do(PauseProvider("aws", None, at(9), "x"))

    made.do(ResumeProvider("aws", "c4"))
    assert failures(made) == [("aws", "m8", 1, True)]
    made.do(ResumeProvider("aws", None))

    assert failures(made) == []


def test_what_was_kept_goes_on_as_before() -> None:
    made = run()
    made.do(hosts("R1", 2), accept("R1"), came("R1", "m1"))
    made.do(hosts("R2", 1), *refused("R2"))
    kept = made.projections

    again = Projections.resumed(kept.position, kept.keep())

    assert again.failures.state() == kept.failures.state()
