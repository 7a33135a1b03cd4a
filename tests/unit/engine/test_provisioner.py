"""The provisioner: given an inventory and a message, then commands first and calls after them."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TypeVar

import pytest

from xce.domain.engine.calls import ListCall
from xce.domain.engine.commands import (
    AcceptGrantReturn,
    AcceptRequest,
    AcceptReturn,
    ConfirmGrantReturn,
    ConfirmReturn,
    GiveUpRequest,
    LoseTrack,
    MissJoin,
    OpenRequest,
    PauseProvider,
    RecordDecision,
    RecordStatus,
    RefuseGrantReturn,
    RefuseRequest,
    RefuseReturn,
    Reopen,
    ReportOrphan,
    StartDrain,
    StartGrantReturn,
    StartReturn,
)
from xce.domain.engine.polling import Underway
from xce.domain.engine.provisioner import (
    AskCall,
    GiveBackCall,
    Look,
    Provisioner,
    ReturnStatusCall,
    StatusCall,
    Step,
)
from xce.domain.formats.inventory import GrantEntry, InstanceEntry, Inventory, RequestEntry
from xce.domain.formats.policy import DecisionKind, FailureEntry, PolicyInput, PolicySettings
from xce.domain.formats.provider import (
    Capabilities,
    Kind,
    ProviderDescription,
    ResourceOffer,
    TemplateOffer,
)
from xce.domain.formats.session_result import (
    CountDemand,
    Demand,
    HostDemand,
    Idle,
    IdleCount,
    IdleHost,
    JobAmount,
    JobHosts,
)
from xce.domain.ports import (
    Accepted,
    Ask,
    GrantBack,
    MachineReport,
    MachineResult,
    Refused,
    RequestStatus,
    ReturnStatus,
    StatusAnswer,
)
from xce.domain.provisioning.decision import Deed
from xce.domain.provisioning.grant import GrantState
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.request import RequestState
from xce.replay.agenda import CountedIds

NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)
SETTINGS = PolicySettings()
NONE, NO_DEMAND, NOT_IDLE = Inventory(), Demand(), Idle()
CLOUD = ProviderDescription(
    name="cloud", templates=(TemplateOffer(template_id="c4", price_per_hour=Decimal("0.17")),)
)
POOL = ProviderDescription(
    name="pool",
    kinds=("countable",),
    capabilities=Capabilities(partial_returns=True),
    resources=(ResourceOffer(name="lic", capacity=50, price_per_hour=Decimal(2)),),
)


def instance(state: InstanceState, number: int = 1, return_id: str | None = None) -> InstanceEntry:
    return InstanceEntry(
        id=f"cloud/m{number}",
        provider="cloud",
        template="c4",
        state=state,
        machine=f"m{number}",
        host=f"n{number}",
        granted_at=NOW - HOUR,
        joined_at=NOW - HOUR,
        return_id=return_id,
    )


E = TypeVar("E", InstanceEntry, GrantEntry)


def accepted_return(entry: E, theirs: str) -> E:
    return entry.model_copy(update={"provider_return_id": theirs})


def grant(returning: int = 0, return_id: str | None = None) -> GrantEntry:
    return GrantEntry(
        id="pool/g1",
        provider="pool",
        resource="lic",
        amount=10,
        returning=returning,
        state=GrantState.RETURNING if returning else GrantState.ACTIVE,
        granted_at=NOW - HOUR,
        return_id=return_id,
    )


def inputs(
    inventory: Inventory = NONE, demand: Demand = NO_DEMAND, idle: Idle = NOT_IDLE
) -> PolicyInput:
    return PolicyInput(
        now=NOW, position=5, demand=demand, idle=idle, providers=(CLOUD, POOL), inventory=inventory
    )


def provisioner() -> Provisioner:
    return Provisioner(CountedIds())


def test_demand_becomes_a_durable_intent_and_then_a_call_with_its_id_as_tag() -> None:
    demand = Demand(
        hosts=(HostDemand(template="c4", count=3, jobs=(JobHosts(job="7", order=1, hosts=3),)),),
        order=(("c4", 3),),
    )

    _, (step,) = provisioner().round(inputs(demand=demand))

    intent, decided = step.commands
    assert isinstance(intent, OpenRequest)
    assert isinstance(decided, RecordDecision)
    assert (decided.deed, decided.amount, decided.led_to) == (Deed.REQUEST, 3, ("request:R1",))
    assert (decided.jobs, decided.demand_position) == (("7",), 5)
    assert (intent.request, intent.item, intent.amount, intent.jobs) == ("R1", "c4", 3, ("7",))
    assert (intent.price_per_hour, intent.demand_position) == (Decimal("0.17"), 5)
    assert intent.deadline == NOW + SETTINGS.request_deadline
    assert step.calls == (AskCall("cloud", Ask("R1", Kind.HOST, "c4", 3)),)


def test_demand_for_tokens_asks_the_pool() -> None:
    demand = Demand(
        countable=(
            CountDemand(
                name="lic", amount=4, wanted=4, jobs=(JobAmount(job="7", order=1, amount=4),)
            ),
        )
    )

    _, (step,) = provisioner().round(inputs(demand=demand))

    assert step.calls == (AskCall("pool", Ask("R1", Kind.COUNTABLE, "lic", 4)),)


def test_an_idle_host_is_closed_then_looked_at_and_not_yet_returned() -> None:
    idle = Idle(hosts=(IdleHost(instance="cloud/m1", host="n1", idle_since=NOW - HOUR),))
    inventory = Inventory(instances=(instance(InstanceState.JOINED),))

    _, (step,) = provisioner().round(inputs(inventory, idle=idle))

    assert [type(command) for command in step.commands] == [StartDrain, RecordDecision]
    assert step.looks == (Look(("cloud/m1",)),)
    assert step.calls == ()


def test_after_the_look_a_busy_host_opens_again_and_a_free_one_goes_back() -> None:
    inventory = Inventory(
        instances=(instance(InstanceState.DRAINING, 1), instance(InstanceState.DRAINING, 2))
    )

    reopened, returned = provisioner().looked({"cloud/m1": True, "cloud/m2": False}, inventory)

    assert [type(command) for command in reopened.commands] == [Reopen]
    assert reopened.calls == ()
    assert returned.commands == (StartReturn("B1", ("cloud/m2",), "drained"),)
    assert returned.calls == (GiveBackCall("cloud", "B1", instances=(("cloud/m2", "m2"),)),)


def test_unused_tokens_leave_the_total_before_the_pool_is_told() -> None:
    idle = Idle(counts=(IdleCount(name="lic", amount=6),))

    _, (step,) = provisioner().round(inputs(Inventory(grants=(grant(),)), idle=idle))

    assert step.commands[0] == StartGrantReturn("B1", "pool/g1", 6)
    assert isinstance(step.commands[1], RecordDecision)
    assert step.calls == (GiveBackCall("pool", "B1", grants=(("pool/g1", GrantBack("g1", 6)),)),)


def test_a_request_past_its_deadline_is_given_up() -> None:
    entry = RequestEntry(
        id="R1",
        provider="cloud",
        kind=Kind.HOST,
        template="c4",
        amount=2,
        state=RequestState.ACCEPTED,
        asked_at=NOW - HOUR,
        deadline=NOW,
    )

    _, (step,) = provisioner().round(inputs(Inventory(requests=(entry,))))

    command, decided = step.commands
    assert isinstance(command, GiveUpRequest)
    assert command.request == "R1"
    assert isinstance(decided, RecordDecision)
    assert decided.deed is Deed.CANCEL


ASK = AskCall("cloud", Ask("R1", Kind.HOST, "c4", 3))
BACK = GiveBackCall("cloud", "B1", (("cloud/m1", "m1"),), (("pool/g1", GrantBack("g1", 2)),))
STATUS = ReturnStatusCall("cloud", "B1", (("cloud/m1", "m1"),), (("pool/g1", "g1"),))


def commands(steps: tuple[Step, ...]) -> list[object]:
    return [command for step in steps for command in step.commands]


def test_an_accepted_ask_records_the_provider_id() -> None:
    steps = provisioner().answered(ASK, Accepted("add-1"), NOW, SETTINGS)

    assert commands(steps) == [AcceptRequest("R1", "add-1")]


@pytest.mark.parametrize(
    ("retry_after_s", "pause"), [(None, timedelta(minutes=10)), (30, timedelta(seconds=30))]
)
def test_a_refused_ask_pauses_the_template_for_the_time_that_was_named(
    retry_after_s: int | None, pause: timedelta
) -> None:
    refused = Refused("InsufficientCapacity", "none left", retry_after_s)

    steps = provisioner().answered(ASK, refused, NOW, SETTINGS)

    why = "InsufficientCapacity: none left"
    assert commands(steps) == [
        RefuseRequest("R1", why),
        PauseProvider("cloud", "c4", NOW + pause, why),
    ]


def test_whoever_observes_only_decides_the_same_and_carries_nothing_out() -> None:
    settings = SETTINGS.model_copy(update={"observe_only": True})
    failures = FailureEntry(provider="cloud", item="c4", in_a_row=3, last_at=NOW)
    acting = PolicyInput(now=NOW, providers=(CLOUD,), failures=(failures,))

    decisions, steps = provisioner().round(acting.model_copy(update={"settings": settings}))

    assert decisions == provisioner().round(acting)[0] != ()
    assert steps == ()


def test_the_pause_after_a_refusal_doubles_with_each_failure_before_it() -> None:
    refused = Refused("InsufficientCapacity", "none left")

    (steps,) = provisioner().answered(ASK, refused, NOW, SETTINGS, 2)

    _, pause = steps.commands
    assert isinstance(pause, PauseProvider)
    assert pause.until == NOW + 4 * SETTINGS.pause_after_refusal


def test_a_pause_that_the_policy_decides_is_recorded() -> None:
    failures = FailureEntry(
        provider="cloud", item="c4", in_a_row=3, last_at=NOW, why="never joined"
    )
    inputs = PolicyInput(now=NOW, providers=(CLOUD,), failures=(failures,))

    decisions, steps = provisioner().round(inputs)

    assert [decision.kind for decision in decisions] == [DecisionKind.PAUSE]
    why = "3 asks in a row came to nothing: never joined"
    until = NOW + SETTINGS.pause_after_refusal
    assert commands(steps) == [PauseProvider("cloud", "c4", until, why)]


def test_a_refusal_to_be_tried_again_at_once_pauses_nothing() -> None:
    steps = provisioner().answered(ASK, Refused("Busy", "try again", 0), NOW, SETTINGS)

    assert commands(steps) == [RefuseRequest("R1", "Busy: try again")]


def test_an_ask_without_an_answer_is_unknown_and_other_calls_are_just_polled_again() -> None:
    assert commands(provisioner().failed(ASK, "timeout")) == [LoseTrack("R1", "timeout")]
    assert provisioner().failed(BACK, "timeout") == ()


def test_a_status_answer_is_recorded_as_it_came() -> None:
    answer = StatusAnswer(RequestStatus.RUNNING)

    steps = provisioner().answered(StatusCall("cloud", "R1", "add-1"), answer, NOW, SETTINGS)

    assert commands(steps) == [RecordStatus("R1", answer)]


def test_the_answer_to_a_return_is_recorded_for_machines_and_grants() -> None:
    accepted = provisioner().answered(BACK, Accepted("ret-1"), NOW, SETTINGS)
    refused = provisioner().answered(BACK, Refused("Hold", "too early"), NOW, SETTINGS)

    assert commands(accepted) == [
        AcceptReturn("B1", ("cloud/m1",), "ret-1"),
        AcceptGrantReturn("B1", "pool/g1", "ret-1"),
    ]
    assert commands(refused) == [
        RefuseReturn("B1", "cloud/m1", "too early"),
        RefuseGrantReturn("B1", "pool/g1", "too early"),
    ]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (ReturnStatus(RequestStatus.RUNNING), []),
        (
            ReturnStatus(RequestStatus.RUNNING, gone=frozenset({"m1"})),
            [ConfirmReturn("B1", "cloud/m1")],
        ),
        (
            ReturnStatus(RequestStatus.COMPLETE),
            [ConfirmReturn("B1", "cloud/m1"), ConfirmGrantReturn("B1", "pool/g1")],
        ),
        (
            ReturnStatus(RequestStatus.RUNNING, refused=(("g1", "hold"),)),
            [RefuseGrantReturn("B1", "pool/g1", "hold")],
        ),
    ],
)
def test_a_return_is_confirmed_or_refused_part_by_part(
    answer: ReturnStatus, expected: list[object]
) -> None:
    assert commands(provisioner().answered(STATUS, answer, NOW, SETTINGS)) == expected


def test_a_return_that_ended_with_an_error_does_not_count_as_gone() -> None:
    answer = ReturnStatus(RequestStatus.COMPLETE_WITH_ERROR, gone=frozenset({"m1"}))

    confirmed, refused = commands(provisioner().answered(STATUS, answer, NOW, SETTINGS))

    assert confirmed == ConfirmReturn("B1", "cloud/m1")
    assert isinstance(refused, RefuseGrantReturn)


def test_polls_follow_from_the_inventory_alone() -> None:
    accepted = RequestEntry(
        id="R1",
        provider="cloud",
        kind=Kind.HOST,
        template="c4",
        amount=2,
        state=RequestState.ACCEPTED,
        asked_at=NOW,
        provider_request_id="add-1",
    )
    inventory = Inventory(
        requests=(accepted,),
        instances=(accepted_return(instance(InstanceState.RETURNING, 3, "B7"), "ret-7"),),
        grants=(accepted_return(grant(4, "B8"), "ret-8"),),
    )

    steps = provisioner().poll(inventory, NOW, SETTINGS, looked_at=NOW)

    assert [call for step in steps for call in step.calls] == [
        StatusCall("cloud", "R1", "add-1"),
        ReturnStatusCall("cloud", "B7", (("cloud/m3", "m3"),), theirs="ret-7"),
        ReturnStatusCall("pool", "B8", (), (("pool/g1", "g1"),), theirs="ret-8"),
    ]


def test_a_return_that_was_never_answered_is_made_again_under_its_own_id() -> None:
    inventory = Inventory(
        instances=(instance(InstanceState.RETURNING, 3, "B7"),), grants=(grant(4, "B8"),)
    )

    steps = provisioner().poll(inventory, NOW, SETTINGS, looked_at=NOW)

    assert [call for step in steps for call in step.calls] == [
        GiveBackCall("cloud", "B7", (("cloud/m3", "m3"),)),
        GiveBackCall("pool", "B8", (), (("pool/g1", GrantBack("g1", 4)),)),
    ]
    ours = Underway(returns={"B7", "B8"})
    assert not [
        c
        for s in provisioner().poll(inventory, NOW, SETTINGS, looked_at=NOW, underway=ours)
        for c in s.calls
    ]


def test_a_machine_that_does_not_join_in_time_is_given_up_and_then_returned() -> None:
    starting = instance(InstanceState.STARTING)
    late = Inventory(instances=(starting,))

    assert MissJoin("cloud/m1", "did not join within 15 min") in commands(
        provisioner().poll(late, NOW, SETTINGS, looked_at=NOW)
    )

    useless = Inventory(instances=(instance(InstanceState.NEVER_JOINED),))
    assert StartReturn("B1", ("cloud/m1",), "never joined") in commands(
        provisioner().poll(useless, NOW, SETTINGS, looked_at=NOW)
    )


@pytest.mark.parametrize(
    "looked_at", [None, NOW - timedelta(minutes=1)], ids=["nobody", "too early"]
)
def test_a_machine_that_nobody_has_looked_for_since_its_time_was_over_is_not_given_up(
    looked_at: datetime | None,
) -> None:
    """The scheduler is away: the host may have joined, and jobs may run on it."""
    granted = NOW - SETTINGS.join_limit
    starting = instance(InstanceState.STARTING).model_copy(update={"granted_at": granted})

    assert not commands(
        provisioner().poll(Inventory(instances=(starting,)), NOW, SETTINGS, looked_at=looked_at)
    )


def test_a_host_that_is_left_draining_is_looked_at_again_and_then_given_back() -> None:
    """Its return was refused, or the provisioner died between the drain and the look."""
    inventory = Inventory(instances=(instance(InstanceState.DRAINING),))

    steps = provisioner().poll(inventory, NOW, SETTINGS, looked_at=NOW)

    assert [look for step in steps for look in step.looks] == [Look(("cloud/m1",))]
    assert commands(provisioner().looked({"cloud/m1": False}, inventory)) == [
        StartReturn("B1", ("cloud/m1",), "drained")
    ]


def test_a_long_answer_is_recorded_in_parts_of_which_the_last_ends_the_request() -> None:
    machines = tuple(MachineReport(f"m{n}", f"n{n}", MachineResult.SUCCEED) for n in range(1200))
    answer = StatusAnswer(RequestStatus.COMPLETE, machines)

    steps = provisioner().answered(StatusCall("cloud", "R1", "add-1"), answer, NOW, SETTINGS)

    parts = [command.answer for command in commands(steps) if isinstance(command, RecordStatus)]
    assert [len(part.machines) for part in parts] == [500, 500, 200]
    assert [part.status for part in parts] == ["running", "running", "complete"]
    assert tuple(one for part in parts for one in part.machines) == machines


def test_many_hosts_go_back_in_returns_of_a_hundred() -> None:
    inventory = Inventory(
        instances=tuple(instance(InstanceState.NEVER_JOINED, n) for n in range(250))
    )

    steps = provisioner().poll(inventory, NOW, SETTINGS, looked_at=NOW)

    sizes = [len(one.instances) for one in commands(steps) if isinstance(one, StartReturn)]
    assert sizes == [100, 100, 50]


def unknown(state: RequestState = RequestState.INTENDED) -> Inventory:
    entry = RequestEntry(
        id="R1",
        provider="cloud",
        kind=Kind.HOST,
        template="c4",
        amount=2,
        state=state,
        asked_at=NOW,
        deadline=NOW + HOUR,
    )
    return Inventory(requests=(entry,))


@pytest.mark.parametrize(
    ("able", "call"),
    [
        (
            Capabilities(request_tag=True),
            [AskCall("cloud", Ask("R1", Kind.HOST, "c4", 2), again=True)],
        ),
        (Capabilities(listing=True), [ListCall("cloud")]),
        (Capabilities(), []),
    ],
)
def test_f04_an_intent_without_an_outcome_is_looked_up_as_its_provider_makes_possible(
    able: Capabilities, call: list[object]
) -> None:
    steps = provisioner().poll(
        unknown(), NOW, SETTINGS, looked_at=NOW, capabilities={"cloud": able}
    )

    assert [type(command) for command in commands(steps)] == [LoseTrack]
    assert [one for step in steps for one in step.calls] == call


def test_an_ask_that_this_process_is_at_is_no_lost_one() -> None:
    ours = Underway(asks={"R1"})

    assert (
        commands(provisioner().poll(unknown(), NOW, SETTINGS, looked_at=NOW, underway=ours)) == []
    )


def test_what_was_never_found_out_is_reported_when_it_is_given_up() -> None:
    late = unknown(RequestState.UNKNOWN)
    past = late.requests[0].model_copy(update={"deadline": NOW})

    _, (step,) = provisioner().round(inputs(Inventory(requests=(past,))))

    assert [type(command) for command in step.commands] == [
        GiveUpRequest,
        RecordDecision,
        ReportOrphan,
    ]


def test_an_ask_that_this_process_is_at_is_given_up_without_an_orphan() -> None:
    past = unknown().requests[0].model_copy(update={"deadline": NOW})

    _, (step,) = provisioner().round(inputs(Inventory(requests=(past,))), asking={"R1"})

    assert [type(command) for command in step.commands] == [GiveUpRequest, RecordDecision]


def test_a_failed_ask_of_a_request_that_was_given_up_meanwhile_is_reported() -> None:
    (step,) = provisioner().failed(ASK, "timeout")

    (report,) = step.otherwise
    assert isinstance(report, ReportOrphan)
    assert report.theirs == "R1"


def test_f19_a_suspect_id_is_recorded_and_asked_after() -> None:
    lost = provisioner().failed(ASK, "exit code 1", suspect="add-9")

    assert commands(lost) == [LoseTrack("R1", "exit code 1"), AcceptRequest("R1", "add-9")]
