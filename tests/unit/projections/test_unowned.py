"""Open orphans in the inventory and the catalog: given asks whose outcomes are lost, then what may exist leaves no room."""

from decimal import Decimal

import pytest

from tests.unit.projections.run import Run, accept, came, cloud, hosts, template
from xce.domain.engine.commands import (
    CloseOrphan,
    Command,
    DismissOrphan,
    GiveUpRequest,
    ReportOrphan,
    SettleRequest,
)
from xce.domain.formats.inventory import UnownedEntry
from xce.domain.policy.unaccounted import Unaccounted
from xce.domain.provisioning.orphan import OrphanKind

UNKNOWN = OrphanKind.UNKNOWN_TO_US
LOST = (
    GiveUpRequest("R1", "over"),
    SettleRequest("R1", "nobody knows"),
    ReportOrphan("aws", "R1", UNKNOWN, "R1", "never found out"),
)


def site() -> Run:
    return Run(cloud("aws", template("c4", "0.17"), template("m8", "1.50"), capacity=5))


def unowned(run: Run) -> tuple[UnownedEntry, ...]:
    return run.projections.inventory.view().unowned


def unaccounted(run: Run) -> list[tuple[str, str | None, int, Decimal | None]]:
    found: tuple[Unaccounted, ...] = run.projections.catalog.unaccounted()
    return [(one.what, one.item, one.amount, one.price) for one in found]


def room(run: Run) -> int:
    return run.catalog().templates[0].allowed


def test_an_ask_of_which_nobody_knows_is_as_large_as_what_is_not_known_of_it() -> None:
    run = site()
    run.do(hosts("R1", 3, project="phys"), accept("R1"), came("R1", "m-1"))

    run.do(*LOST)

    (one,) = unowned(run)
    assert (one.template, one.amount, one.request, one.project) == ("c4", 2, "R1", "phys")
    assert unaccounted(run) == [("orphan aws/R1", "c4", 2, Decimal("0.17"))]
    assert room(run) == 2  # of 5: one came, two may have


def test_it_gets_smaller_as_what_it_has_done_is_found_out() -> None:
    run = site()
    run.do(hosts("R1", 3), *LOST)

    run.do(came("R1", "m-1", failed=["m-2"]))
    (rest,) = unowned(run)
    run.do(came("R1", "m-3"))

    assert rest.amount == 1
    assert unowned(run) == ()
    assert room(run) == 2


@pytest.mark.parametrize(
    "end",
    [DismissOrphan("aws", "R1", "nothing is there"), CloseOrphan("aws", "R1", "not listed")],
    ids=["dismissed", "closed"],
)
def test_it_counts_until_it_has_ended(end: Command) -> None:
    run = site()
    run.do(hosts("R1", 3), *LOST)
    before = room(run)

    run.do(end)

    assert (before, room(run), unaccounted(run)) == (2, 5, [])


def test_an_ask_that_was_given_up_counts_before_it_is_reported() -> None:
    run = site()
    run.do(hosts("R1", 3), accept("R1"))

    run.do(GiveUpRequest("R1", "over"))

    assert unaccounted(run) == [("request R1", "c4", 3, Decimal("0.17"))]
    assert run.catalog().in_flight.hosts == ()
    assert room(run) == 2


def test_a_machine_is_what_its_request_asked_for_else_what_its_provider_says_else_the_dearest() -> (
    None
):
    run = site()
    run.do(hosts("R1", 1), *LOST[:2])

    run.do(
        ReportOrphan("aws", "i-1", UNKNOWN, "R1", "found"),
        ReportOrphan("aws", "i-2", UNKNOWN, None, "found", item="c4"),
        ReportOrphan("aws", "i-3", UNKNOWN, "R9", "found"),
    )

    assert unaccounted(run) == [
        ("orphan aws/i-1", "c4", 1, Decimal("0.17")),
        ("orphan aws/i-2", "c4", 1, Decimal("0.17")),
        ("orphan aws/i-3", "m8", 1, Decimal("1.50")),
    ]
    assert room(run) == 2


def test_a_rebuilt_and_a_resumed_view_have_the_same() -> None:
    run = site()
    run.do(hosts("R1", 3), *LOST)
    position, kept = run.projections.position, run.projections.keep()

    run.do(came("R1", "m-1"))

    resumed = type(run.projections).resumed(position, kept)
    resumed.apply(run.log.read(position))
    assert resumed.difference(run.projections) is None
    assert run.rebuilt().difference(run.projections) is None
    assert unowned(run)[0].amount == 2
