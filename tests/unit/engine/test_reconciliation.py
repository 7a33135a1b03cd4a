"""Reconciliation: given what we have and what a provider lists, then what follows; one reading alone takes nothing away."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from xce.domain.engine.calls import GiveBackCall, Step
from xce.domain.engine.commands import (
    CloseOrphan,
    ConfirmReturn,
    LoseGrant,
    LoseInstance,
    RecordStatus,
    RefuseRequest,
    ReportOrphan,
    ReturnOrphan,
)
from xce.domain.engine.reconciliation import Listing, Sightings, forget, reconcile
from xce.domain.formats.inventory import GrantEntry, InstanceEntry, Inventory, RequestEntry
from xce.domain.formats.lifecycle import LifecycleSettings, OrphanRule
from xce.domain.formats.provider import Kind
from xce.domain.ports import Holding, MachineReport, MachineResult, RequestStatus, StatusAnswer
from xce.domain.provisioning.grant import GrantState
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.orphan import OrphanKind
from xce.domain.provisioning.request import RequestState
from xce.replay.agenda import CountedIds

NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)
NOTHING = Inventory()
RETURNING = LifecycleSettings(orphans=OrphanRule.RETURN)


def machine(name: str, tag: str | None = None) -> Holding:
    return Holding(name, Kind.HOST, "c4", tag, f"host-{name}", launched_at=NOW)


def instance(
    name: str, state: InstanceState = InstanceState.JOINED, return_id: str | None = None
) -> InstanceEntry:
    return InstanceEntry(
        id=f"aws/{name}",
        provider="aws",
        template="c4",
        state=state,
        machine=name,
        granted_at=NOW - HOUR,
        return_id=return_id,
    )


def request(
    state: RequestState = RequestState.UNKNOWN, amount: int = 2, age: timedelta = HOUR
) -> RequestEntry:
    return RequestEntry(
        id="R7",
        provider="aws",
        kind=Kind.HOST,
        template="c4",
        amount=amount,
        state=state,
        asked_at=NOW - age,
    )


def follows(
    inventory: Inventory,
    *listings: tuple[Holding, ...],
    lifecycle: LifecycleSettings | None = None,
    orphans: dict[str, str | None] | None = None,
) -> list[list[Step]]:
    """Return what follows from each of several listings, one after the other."""
    sightings, ids = Sightings(), CountedIds()
    found: list[list[Step]] = []
    for holdings in listings:
        steps, sightings = reconcile(
            Listing("aws", holdings, NOW),
            inventory,
            sightings,
            ids,
            lifecycle=lifecycle or LifecycleSettings(),
            orphans=orphans or {},
        )
        found.append(list(steps))
    return found


def commands(steps: list[Step]) -> list[object]:
    return [command for step in steps for command in step.commands]


def test_what_is_owned_and_listed_leads_to_nothing() -> None:
    inventory = Inventory(instances=(instance("m1"),))

    assert follows(inventory, (machine("m1"),), (machine("m1"),)) == [[], []]


def test_both_machines_of_an_ask_whose_answer_was_lost_are_taken_over_and_the_request_is_complete() -> (
    None
):
    """F04."""
    ((step,),) = follows(
        Inventory(requests=(request(),)), (machine("m1", "R7"), machine("m2", "R7"))
    )

    (status,) = step.commands
    assert isinstance(status, RecordStatus)
    assert (status.request, status.answer.status) == ("R7", RequestStatus.COMPLETE)
    assert [one.machine for one in status.answer.machines] == ["m1", "m2"]
    assert step.calls == ()


def test_an_ask_that_was_never_made_is_refused_once_a_listing_would_show_what_it_made() -> None:
    """F04, variation b."""
    early = Inventory(requests=(request(age=timedelta(seconds=30)),))
    assert follows(early, ()) == [[]]

    ((step,),) = follows(Inventory(requests=(request(),)), ())

    (refused,) = step.commands
    assert isinstance(refused, RefuseRequest)


def test_an_ask_that_brought_less_is_ended_with_what_it_brought() -> None:
    young = Inventory(requests=(request(age=timedelta(seconds=30)),))
    ((first,),) = follows(young, (machine("m1", "R7"),))
    (status,) = first.commands
    assert isinstance(status, RecordStatus)
    assert status.answer.status is RequestStatus.RUNNING

    ((step,),) = follows(Inventory(requests=(request(),)), (machine("m1", "R7"),))

    (status,) = step.commands
    assert isinstance(status, RecordStatus)
    assert status.answer.status is RequestStatus.COMPLETE_WITH_ERROR


def test_where_something_without_a_tag_may_be_of_the_ask_nothing_is_concluded() -> None:
    first, second = follows(
        Inventory(requests=(request(),)),
        (replace(machine("m1"), launched_at=NOW - HOUR / 2),),
        (replace(machine("m1"), launched_at=NOW - HOUR / 2),),
    )

    assert first == []
    (report,) = commands(second)
    assert isinstance(report, ReportOrphan)
    older = (replace(machine("m1"), launched_at=NOW - 2 * HOUR),)
    assert [type(c) for c in commands(follows(Inventory(requests=(request(),)), older)[0])] == [
        RefuseRequest
    ]


def test_a_provider_that_tells_whole_seconds_or_whose_clock_is_behind_may_have_made_it_all_the_same() -> (
    None
):
    asked = Inventory(requests=(request(age=HOUR),))
    for behind in (timedelta(seconds=0.7), timedelta(seconds=30)):
        made = (replace(machine("m1"), launched_at=NOW - HOUR - behind),)

        first, second = follows(asked, made, made)

        assert first == []
        assert [type(c) for c in commands(second)] == [ReportOrphan]


def test_how_far_clocks_may_be_apart_is_set_by_the_site() -> None:
    asked = Inventory(requests=(request(age=HOUR),))
    made = (replace(machine("m1"), launched_at=NOW - HOUR - timedelta(minutes=5)),)

    usual = follows(asked, made)[0]
    wide = follows(asked, made, lifecycle=LifecycleSettings(clocks_apart=timedelta(minutes=5)))[0]

    assert [type(c) for c in commands(usual)] == [RefuseRequest]
    assert wide == []


def test_a_late_machine_of_a_request_that_was_given_up_is_taken_over_at_once() -> None:
    """F05."""
    given_up = Inventory(requests=(request(RequestState.TIMED_OUT),))

    ((step,),) = follows(given_up, (machine("m1", "R7"),))

    (status,) = step.commands
    assert isinstance(status, RecordStatus)
    report = MachineReport("m1", "host-m1", MachineResult.SUCCEED, NOW)
    assert status.answer == StatusAnswer(RequestStatus.RUNNING, (report,))


def test_a_machine_of_a_request_that_is_over_is_taken_over_or_else_reported() -> None:
    first, (step,) = follows(NOTHING, (machine("m1", "R1"),), (machine("m1", "R1"),))

    assert first == []
    (late,), (report,) = step.commands, step.otherwise
    assert isinstance(late, RecordStatus)
    assert isinstance(report, ReportOrphan)
    assert (report.theirs, report.kind, report.tag) == ("m1", OrphanKind.UNKNOWN_TO_US, "R1")


def test_a_machine_that_stays_unowned_although_its_request_knows_it_is_reported() -> None:
    """It was returned, and the provider still has it."""
    *_, third = follows(NOTHING, *[(machine("m1", "R1"),)] * 3)

    assert [type(command) for command in commands(third)] == [ReportOrphan]


def test_what_nobody_owns_is_reported_at_the_second_sighting_and_stays_by_default() -> None:
    first, second = follows(NOTHING, (machine("m1"),), (machine("m1"),))
    assert first == []
    assert [type(command) for command in commands(second)] == [ReportOrphan]

    again = follows(NOTHING, (machine("m1"),), (machine("m1"),), orphans={"m1": None})
    assert again == [[], []]


@pytest.mark.parametrize("launched_at", [NOW - HOUR, None])
def test_what_nobody_owns_is_reported_since_its_launch_else_since_it_was_seen_first(
    launched_at: datetime | None,
) -> None:
    one = (replace(machine("m1"), launched_at=launched_at),)
    sightings = Sightings()
    steps: list[list[Step]] = []
    for when in (NOW, NOW + HOUR):
        found, sightings = reconcile(Listing("aws", one, when), NOTHING, sightings, CountedIds())
        steps.append(list(found))

    assert steps[0] == []
    ((step,),) = (steps[1],)
    (report,) = step.commands
    assert isinstance(report, ReportOrphan)
    assert report.since == (launched_at or NOW)
    assert forget(sightings).first == {}


def test_what_nobody_owns_goes_back_where_that_is_set() -> None:
    twice = [(machine("m1"),)] * 2
    _, (step,) = follows(NOTHING, *twice, lifecycle=RETURNING, orphans={"m1": None})

    (intent,) = step.commands
    assert intent == ReturnOrphan("aws", "m1", "B1", "no record of ours owns it")
    call = GiveBackCall("aws", "B1", orphans=("m1",), names=(("m1", "host-m1"),))
    assert step.calls == (call,)
    _, (repeat,) = follows(NOTHING, *twice, lifecycle=RETURNING, orphans={"m1": "B9"})
    assert (repeat.commands, repeat.calls) == ((), (replace(call, return_id="B9"),))


def test_an_orphan_that_is_not_there_any_more_is_closed() -> None:
    (steps,) = follows(NOTHING, (), orphans={"m1": None})

    assert [type(command) for command in commands(steps)] == [CloseOrphan]


def test_an_orphan_of_an_ask_stays_open_while_something_carries_its_tag() -> None:
    (steps,) = follows(NOTHING, (machine("m1", "R7"),), orphans={"R7": None})

    assert steps == []


def test_a_machine_is_lost_when_two_listings_lack_it() -> None:
    inventory = Inventory(instances=(instance("m1"), instance("m2")))

    first, second = follows(inventory, (machine("m2"),), (machine("m2"),))

    assert first == []
    assert commands(second) == [LoseInstance("aws/m1", "the provider does not list it any more")]


def test_a_machine_that_is_listed_again_is_not_lost() -> None:
    inventory = Inventory(instances=(instance("m1"), instance("m2")))
    gone, back = (machine("m2"),), (machine("m1"), machine("m2"))

    assert follows(inventory, gone, back, gone) == [[], [], []]


def test_a_machine_of_a_moment_ago_may_not_be_listed_yet() -> None:
    young = instance("m1").model_copy(update={"granted_at": NOW - timedelta(minutes=1)})

    assert follows(Inventory(instances=(young,)), (), ()) == [[], []]


def test_a_machine_on_its_way_back_that_is_not_listed_any_more_has_gone_back() -> None:
    inventory = Inventory(instances=(instance("m1", InstanceState.RETURNING, "B3"),))

    _, second = follows(inventory, (), ())

    assert commands(second) == [ConfirmReturn("B3", "aws/m1")]


def test_an_amount_that_the_lender_does_not_list_any_more_is_lost() -> None:
    lent = GrantEntry(
        id="aws/g1", provider="aws", resource="lic", amount=5, state=GrantState.ACTIVE, granted_at=NOW - HOUR
    )  # fmt: skip

    _, second = follows(Inventory(grants=(lent,)), (), ())

    assert [type(command) for command in commands(second)] == [LoseGrant]


@pytest.mark.parametrize("listed", [0, 5])
def test_a_listing_that_takes_away_a_large_share_is_asked_again_before_it_is_believed(
    listed: int,
) -> None:
    """F24."""
    inventory = Inventory(instances=tuple(instance(f"m{n}") for n in range(10)))
    short = tuple(machine(f"m{n}") for n in range(listed))

    *before, last = follows(inventory, *[short] * 4)

    assert before == [[], [], []]
    assert len(commands(last)) == 10 - listed


def test_a_failed_listing_begins_the_agreement_anew() -> None:
    inventory = Inventory(instances=(instance("m1"),))
    _, sightings = reconcile(Listing("aws", (), NOW), inventory, Sightings(), CountedIds())
    assert sightings.missing == {"m1": 1}

    steps, _ = reconcile(Listing("aws", (), NOW), inventory, forget(sightings), CountedIds())

    assert steps == ()


def test_another_providers_machines_are_not_looked_for_here() -> None:
    other = instance("m1").model_copy(update={"provider": "other", "id": "other/m1"})

    assert follows(Inventory(instances=(other,)), (), ()) == [[], []]
