"""The controller: given commands, when a command, then what one append must store."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.engine.source import Streams
from xce.domain.engine.commands import (
    AcceptRequest,
    Command,
    ConfirmGrantReturn,
    ConfirmReturn,
    DeclareShared,
    DescribeProvider,
    GiveUpRequest,
    MissJoin,
    OpenRequest,
    RecordJoin,
    RecordStatus,
    RefuseGrantReturn,
    RefuseRequest,
    ReportBookings,
    StartDrain,
    StartGrantReturn,
    StartReturn,
    TakeLease,
)
from xce.domain.engine.controller import Controller
from xce.domain.errors import NotFoundError, RejectedError
from xce.domain.events.base import DomainEvent
from xce.domain.formats.provider import Kind, ProviderDescription, ResourceOffer, TemplateOffer
from xce.domain.ports import (
    GrantReport,
    MachineReport,
    MachineResult,
    RequestStatus,
    StatusAnswer,
)
from xce.domain.provisioning.request import Request, RequestState

AT = datetime(2026, 3, 1, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)

CLOUD = ProviderDescription(name="cloud", templates=(TemplateOffer(template_id="c4"),))
POOL = ProviderDescription(
    name="pool", kinds=("countable",), resources=(ResourceOffer(name="lic", capacity=50),)
)
OPEN_HOSTS = OpenRequest(
    request="R1",
    provider="cloud",
    kind=Kind.HOST,
    item="c4",
    amount=10,
    price_per_hour=Decimal("0.17"),
    deadline=AT + HOUR,
    reason="10 jobs wait",
    jobs=("1", "2"),
    demand_position=7,
)
OPEN_TOKENS = replace(OPEN_HOSTS, request="R2", provider="pool", kind=Kind.COUNTABLE, item="lic")
SET_UP: tuple[Command, ...] = (
    DescribeProvider(CLOUD),
    DescribeProvider(POOL),
    TakeLease("cloud", "p1", HOUR),
    TakeLease("pool", "p1", HOUR),
    DeclareShared("lic", 20, "pool", 50, 1, HOUR, timedelta(0)),
)


class Rig:
    """A controller over streams in memory."""

    def __init__(self, *commands: Command) -> None:
        self.streams = Streams()
        self.controller = Controller(self.streams)
        self.at = AT
        self.do(*SET_UP, *commands)

    def do(self, *commands: Command) -> list[DomainEvent]:
        """Handle commands in one batch, append, and return the new events."""
        for command in commands:
            self.controller.handle(command, at=self.at, by="test")
        new = self.streams.save(self.controller.take())
        self.controller.appended()
        return new

    def request(self, name: str) -> Request:
        return self.streams.get(Request, f"request:{name}")


def names(events: list[DomainEvent]) -> list[str]:
    return [f"{event.originator_id.partition(':')[0]}.{type(event).__name__}" for event in events]


def machines(
    numbers: range, result: MachineResult = MachineResult.SUCCEED, message: str = ""
) -> tuple[MachineReport, ...]:
    return tuple(MachineReport(f"m{i}", f"n{i}", result, message=message) for i in numbers)


def answer(status: RequestStatus, *reports: MachineReport, message: str = "") -> StatusAnswer:
    return StatusAnswer(status, tuple(reports), message=message)


def test_an_intent_is_written_under_the_lease_epoch_and_fenced_by_it() -> None:
    rig = Rig()

    new = rig.do(OPEN_HOSTS)

    assert names(new) == ["request.Intended"]
    assert rig.streams.fences == {"lease:cloud": 1}


def test_the_same_intent_again_records_nothing() -> None:
    rig = Rig(OPEN_HOSTS)

    assert rig.do(OPEN_HOSTS) == []


def test_the_same_request_id_for_something_else_is_refused() -> None:
    rig = Rig(OPEN_HOSTS)

    with pytest.raises(RejectedError, match="R1 was opened before"):
        rig.do(replace(OPEN_HOSTS, amount=11))


def test_facts_of_a_provider_that_nobody_leases_are_refused() -> None:
    rig = Rig()
    rig.do(DescribeProvider(CLOUD.model_copy(update={"name": "other"})))

    with pytest.raises(RejectedError, match="nobody holds the lease of provider other"):
        rig.do(replace(OPEN_HOSTS, provider="other"))


def test_asked_ten_got_seven_is_partial_and_three_are_known_not_to_come() -> None:
    rig = Rig(OPEN_HOSTS, AcceptRequest("R1", "add-1"))

    final = answer(
        RequestStatus.COMPLETE_WITH_ERROR, *machines(range(1, 8)), message="3 failed, capacity"
    )
    new = rig.do(RecordStatus("R1", final))

    request = rig.request("R1")
    assert (request.state, request.granted, request.failed) == (RequestState.PARTIAL, 7, 3)
    assert request.open_amount == 0
    assert names(new).count("instance.Granted") == 7


def test_the_same_answer_again_changes_nothing() -> None:
    rig = Rig(OPEN_HOSTS, AcceptRequest("R1", "add-1"))
    final = answer(RequestStatus.COMPLETE_WITH_ERROR, *machines(range(1, 8)), message="capacity")
    rig.do(RecordStatus("R1", final))

    assert rig.do(RecordStatus("R1", final)) == []


def test_an_answer_that_grows_counts_each_machine_once() -> None:
    rig = Rig(OPEN_HOSTS, AcceptRequest("R1", "add-1"))
    rig.do(RecordStatus("R1", answer(RequestStatus.RUNNING, *machines(range(1, 5)))))
    assert rig.request("R1").open_amount == 6

    rig.do(RecordStatus("R1", answer(RequestStatus.COMPLETE, *machines(range(1, 11)))))

    request = rig.request("R1")
    assert (request.state, request.granted, request.failed) == (RequestState.COMPLETE, 10, 0)


def test_a_surplus_machine_is_recorded_as_ours() -> None:
    rig = Rig(OPEN_HOSTS, AcceptRequest("R1", "add-1"))

    new = rig.do(RecordStatus("R1", answer(RequestStatus.COMPLETE, *machines(range(1, 12)))))

    assert rig.request("R1").granted == 11
    assert names(new).count("instance.Granted") == 11


def test_a_machine_that_failed_is_owned_to_be_returned_and_counted_as_failed() -> None:
    rig = Rig(OPEN_HOSTS, AcceptRequest("R1", "add-1"))
    reports = (*machines(range(1, 8)), *machines(range(8, 11), MachineResult.FAIL, "no power"))

    new = rig.do(RecordStatus("R1", answer(RequestStatus.COMPLETE_WITH_ERROR, *reports)))

    request = rig.request("R1")
    assert (request.state, request.granted, request.failed) == (RequestState.PARTIAL, 7, 3)
    assert names(new).count("instance.Granted") == 10
    assert names(new).count("instance.JoinMissed") == 3
    back = [f"cloud/m{i}" for i in (8, 9, 10)]
    assert (
        names(rig.do(StartReturn("B1", tuple(back), "failed"))) == ["instance.ReturnIntended"] * 3
    )


def test_a_machine_still_starting_is_recorded_when_its_request_ends() -> None:
    rig = Rig(OPEN_HOSTS, AcceptRequest("R1", "add-1"))
    starting = machines(range(1, 11), MachineResult.EXECUTING)
    assert rig.do(RecordStatus("R1", answer(RequestStatus.RUNNING, *starting))) == []

    new = rig.do(RecordStatus("R1", answer(RequestStatus.COMPLETE, *starting)))

    assert names(new).count("instance.Granted") == 10


def test_a_late_machine_of_a_request_given_up_is_still_ours() -> None:
    rig = Rig(OPEN_HOSTS, AcceptRequest("R1", "add-1"), GiveUpRequest("R1", "15 min are over"))
    assert rig.request("R1").open_amount == 0

    new = rig.do(RecordStatus("R1", answer(RequestStatus.COMPLETE, *machines(range(1, 2)))))

    assert names(new) == ["request.InstanceGranted", "request.Settled", "instance.Granted"]
    assert rig.request("R1").state is RequestState.TIMED_OUT


def test_a_refused_request_has_nothing_in_flight() -> None:
    rig = Rig(OPEN_HOSTS)

    rig.do(RefuseRequest("R1", "InsufficientCapacity"))

    request = rig.request("R1")
    assert (request.state, request.failed, request.open_amount) == (RequestState.FAILED, 10, 0)


def granted_tokens(amount: int = 10, hold: timedelta = timedelta(0)) -> Rig:
    rig = Rig(OPEN_TOKENS, AcceptRequest("R2", "add-2"))
    report = GrantReport("g1", "lic", amount, hold_until=AT + hold)
    rig.do(RecordStatus("R2", StatusAnswer(RequestStatus.COMPLETE, grants=(report,))))
    rig.do(ReportBookings({"lic": 0}))
    return rig


def test_a_grant_comes_into_the_total_in_the_same_append() -> None:
    rig = Rig(OPEN_TOKENS, AcceptRequest("R2", "add-2"))
    report = GrantReport("g1", "lic", 10)

    new = rig.do(RecordStatus("R2", StatusAnswer(RequestStatus.COMPLETE, grants=(report,))))

    assert {"grant.Granted", "shared.Borrowed", "request.AmountGranted"} <= set(names(new))


def test_an_amount_leaves_the_total_before_the_provider_is_told_and_comes_back_if_it_refuses() -> (
    None
):
    rig = granted_tokens()

    assert set(names(rig.do(StartGrantReturn("B1", "pool/g1", 4)))) == {
        "grant.ReturnStarted",
        "shared.GivenBack",
    }
    assert set(names(rig.do(RefuseGrantReturn("B1", "pool/g1", "hold")))) == {
        "grant.ReturnRefused",
        "shared.PutBack",
    }


@pytest.mark.parametrize("occupied", [27, 30, None])
def test_what_is_occupied_or_unknown_does_not_go_back_and_nothing_is_recorded(
    occupied: int | None,
) -> None:
    rig = granted_tokens()
    rig.do(ReportBookings({"lic": occupied}))

    with pytest.raises(RejectedError, match="occupied"):
        rig.do(StartGrantReturn("B1", "pool/g1", 4))

    assert not rig.controller.take()


def test_a_refused_command_takes_back_only_its_own_part_of_the_batch() -> None:
    rig = granted_tokens()
    handle = rig.controller.handle
    handle(ReportBookings({"lic": 24}), at=AT, by="test")
    handle(StartGrantReturn("B1", "pool/g1", 4), at=AT, by="test")

    with pytest.raises(RejectedError):
        handle(StartGrantReturn("B2", "pool/g1", 4), at=AT, by="test")

    new = rig.streams.save(rig.controller.take())
    assert sorted(names(new)) == ["grant.ReturnStarted", "shared.GivenBack"]


def test_what_does_not_exist_is_named() -> None:
    with pytest.raises(NotFoundError, match="there is no request R9"):
        Rig().do(AcceptRequest("R9", "add"))


def test_after_a_failed_append_nothing_of_the_batch_is_left() -> None:
    rig = Rig(OPEN_HOSTS)
    rig.controller.handle(AcceptRequest("R1", "add-1"), at=AT, by="test")

    rig.controller.forget()

    assert not rig.controller.take()
    assert names(rig.do(AcceptRequest("R1", "add-2"))) == ["request.Accepted"]


def test_a_returned_instance_leaves_memory_and_a_repeat_still_records_nothing() -> None:
    rig = Rig(OPEN_HOSTS, AcceptRequest("R1", "add-1"))
    rig.do(RecordStatus("R1", answer(RequestStatus.COMPLETE, *machines(range(1, 11)))))
    rig.do(
        RecordJoin("cloud/m1", "n1", AT, {}, {"slots": 4}),
        StartDrain("cloud/m1", "idle"),
        StartReturn("B1", ("cloud/m1",), "drained"),
        ConfirmReturn("B1", "cloud/m1"),
    )

    assert rig.do(ConfirmReturn("B1", "cloud/m1")) == []


COMMANDS: list[Command] = [
    OPEN_HOSTS,
    OPEN_TOKENS,
    AcceptRequest("R1", "add-1"),
    AcceptRequest("R2", "add-2"),
    RefuseRequest("R1", "no"),
    GiveUpRequest("R1", "late"),
    RecordStatus("R1", answer(RequestStatus.RUNNING, *machines(range(1, 3)))),
    RecordStatus("R1", answer(RequestStatus.COMPLETE, *machines(range(1, 12)))),
    RecordStatus(
        "R2", StatusAnswer(RequestStatus.COMPLETE, grants=(GrantReport("g1", "lic", 10),))
    ),
    RecordStatus("R2", StatusAnswer(RequestStatus.RUNNING, grants=(GrantReport("g1", "lic", 9),))),
    RecordStatus("R2", StatusAnswer(RequestStatus.RUNNING, grants=(GrantReport("g2", "xxx", 9),))),
    RecordJoin("cloud/m1", "n1", AT, {}, {"slots": 4}),
    MissJoin("cloud/m2", "late"),
    StartDrain("cloud/m1", "idle"),
    StartReturn("B1", ("cloud/m1", "cloud/m2"), "back"),
    ConfirmReturn("B1", "cloud/m1"),
    ReportBookings({"lic": 25}),
    ReportBookings({"lic": 0}),
    StartGrantReturn("B2", "pool/g1", 5),
    StartGrantReturn("B3", "pool/g1", 5),
    ConfirmGrantReturn("B2", "pool/g1"),
    RefuseGrantReturn("B3", "pool/g1", "no"),
]


def state_of(rig: Rig) -> dict[str, Any]:
    return {
        event.originator_id: rig.streams.get(type(event).AGGREGATE, event.originator_id).__dict__
        for event in rig.streams.events
    }


@given(st.lists(st.tuples(st.sampled_from(COMMANDS), st.booleans()), max_size=40))
def test_batching_and_refusals_do_not_change_what_is_recorded(
    steps: list[tuple[Command, bool]],
) -> None:
    """One append a command, and any other cut into batches, give the same events in each stream."""
    single, batched = Rig(), Rig()
    for command, cut in steps:
        outcomes: list[str] = []
        for rig in (single, batched):
            try:
                rig.controller.handle(command, at=AT, by="test")
                outcomes.append("done")
            except RejectedError as error:
                outcomes.append(str(error))
            if cut or rig is single:
                rig.streams.save(rig.controller.take())
                rig.controller.appended()
        assert outcomes[0] == outcomes[1]
    batched.streams.save(batched.controller.take())
    assert state_of(single) == state_of(batched)
