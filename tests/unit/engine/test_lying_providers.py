"""What a provider says is no fact yet: what cannot be one keeps nothing else out of the books, and no text is too long."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.engine.test_controller import AT, OPEN_HOSTS, OPEN_TOKENS, SET_UP, names
from tests.unit.engine.test_provisioner import provisioner
from xce.adapters.store.log import StoredLog
from xce.adapters.store.open import MEMORY, open_log
from xce.domain.engine.commands import (
    AcceptRequest,
    Command,
    LoseGrant,
    LoseTrack,
    PauseProvider,
    RecordStatus,
    RefuseRequest,
    RefuseReturn,
)
from xce.domain.engine.controller import Controller
from xce.domain.engine.provisioner import AskCall, GiveBackCall, ReturnStatusCall, Step
from xce.domain.events.base import WHY_MAX, DomainEvent
from xce.domain.formats.policy import PolicySettings
from xce.domain.formats.provider import Kind
from xce.domain.ports import (
    Accepted,
    Ask,
    GrantReport,
    MachineReport,
    MachineResult,
    Refused,
    RequestStatus,
    ReturnStatus,
    StatusAnswer,
)
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.orphan import Orphan
from xce.domain.provisioning.request import Request

SETTINGS = PolicySettings()
ASK = AskCall("cloud", Ask("R1", Kind.HOST, "c4", 10))


class Books:
    """A controller over a log that knows the versions of its streams."""

    def __init__(self, log: StoredLog) -> None:
        self.log = log
        self.controller = Controller(log)
        self.do(*SET_UP)
        self.do(OPEN_HOSTS, replace(OPEN_HOSTS, request="RB"), AcceptRequest("R1", "add-1"))
        self.do(OPEN_TOKENS, replace(OPEN_TOKENS, request="RT"), AcceptRequest("R2", "lend-2"))

    def do(self, *commands: Command) -> list[DomainEvent]:
        for command in commands:
            self.controller.handle(command, at=AT, by="test")
        change = self.controller.take()
        recorded = self.log.append(change.aggregates, fences=change.fences)
        self.controller.appended()
        return [entry.event for entry in recorded]

    def says(self, request: str, *reports: MachineReport | GrantReport, ended: bool = False, message: str = "") -> list[str]:  # fmt: skip
        status = RequestStatus.COMPLETE_WITH_ERROR if ended else RequestStatus.RUNNING
        machines = tuple(report for report in reports if isinstance(report, MachineReport))
        grants = tuple(report for report in reports if isinstance(report, GrantReport))
        return names(self.do(RecordStatus(request, StatusAnswer(status, machines, grants, message))))  # fmt: skip

    def why_closed(self, request: str) -> str:
        events = [entry.event for entry in self.log.read()]
        (why,) = [
            event.why
            for event in events
            if isinstance(event, Request.Closed) and event.originator_id == f"request:{request}"
        ]
        return why


@pytest.fixture
def books() -> Iterator[Books]:
    with open_log(MEMORY) as log:
        yield Books(log)


def machine(name: str, message: str = "", *, fails: bool = False) -> MachineReport:
    result = MachineResult.FAIL if fails else MachineResult.SUCCEED
    return MachineReport(name, f"n-{name}"[:200], result, message=message)


def grant(name: str, amount: int) -> GrantReport:
    return GrantReport(name, "lic", amount)


def test_a_machine_that_another_request_brought_is_passed_over_and_the_others_are_recorded(
    books: Books,
) -> None:
    books.says("R1", machine("m1"))

    assert books.says("RB", machine("m1"), machine("m2")) == [
        "request.InstanceGranted",
        "instance.Granted",
    ]
    books.says("RB", ended=True, message="no capacity")
    assert books.log.get(Instance, "instance:cloud/m1").request_id == "R1"


def test_what_was_passed_over_is_said_when_the_request_ends(books: Books) -> None:
    books.says("R1", machine("m1"))

    books.says("RB", machine("m1"), machine("m\x1b2"), ended=True, message="no capacity")

    assert books.why_closed("RB") == (
        "no capacity; m1 was brought by another request; an id that cannot be recorded: 'm\\x1b2'"
    )


@pytest.mark.parametrize("bad", ["", "m\x1b[31m", "a\nb", "x" * 257, "x" * 251])
def test_a_machine_whose_id_no_event_can_hold_keeps_no_other_out_of_the_books(
    books: Books, bad: str
) -> None:
    recorded = books.says("R1", machine("m1"), machine(bad), machine("m3"))

    assert recorded.count("instance.Granted") == 2


@pytest.mark.parametrize("name", ["", "a\x00b", "n" * 300])
def test_a_machine_with_a_name_that_no_event_can_hold_is_recorded_without(
    books: Books, name: str
) -> None:
    books.says("R1", MachineReport("m1", name, MachineResult.SUCCEED))

    assert books.log.get(Instance, "instance:cloud/m1").provider_name is None


def test_a_grant_that_another_request_brought_is_not_borrowed_twice(books: Books) -> None:
    books.says("R2", grant("g1", 5))

    assert books.says("RT", grant("g1", 5), grant("g2", 1)) == [
        "request.AmountGranted",
        "shared.Borrowed",
        "grant.Granted",
    ]


def test_a_grant_under_the_id_of_one_that_is_over_is_reported_with_its_amount(books: Books) -> None:
    """It cannot be booked a second time; somebody must hear that it is lent."""
    books.says("R2", grant("g1", 5), ended=True)
    books.do(LoseGrant("pool/g1", "its term has ended"))

    recorded = books.do(RecordStatus("RT", StatusAnswer(RequestStatus.COMPLETE, (), (grant("g1", 3),), "")))  # fmt: skip

    (found,) = [event for event in recorded if isinstance(event, Orphan.Found)]
    assert (found.theirs, found.of, found.item, found.amount) == ("g1", Kind.COUNTABLE, "lic", 3)
    assert "a grant that is over" in found.why


def test_messages_of_any_length_are_cut_and_lose_no_machine(books: Books) -> None:
    long = "Traceback\n" * 10_000

    recorded = books.says(
        "R1", machine("m1"), machine("m2", long, fails=True), ended=True, message=long
    )

    assert recorded.count("instance.Granted") == 2
    assert len(books.why_closed("R1")) == WHY_MAX


def commands(steps: tuple[Step, ...]) -> list[Command]:
    return [command for step in steps for command in step.commands]


def test_a_long_refusal_is_cut_and_a_time_beyond_the_calendar_is_a_year() -> None:
    answer = Refused("Busy", "x" * 9000, retry_after_s=10**15)

    refused, paused = commands(provisioner().answered(ASK, answer, AT, SETTINGS))

    assert isinstance(refused, RefuseRequest)
    assert len(refused.why) == WHY_MAX
    assert isinstance(paused, PauseProvider)
    assert paused.until == AT + timedelta(days=365)


def test_a_retry_time_in_the_past_is_no_pause() -> None:
    answer = Refused("Busy", "now", retry_after_s=-5)

    assert [type(command) for command in commands(provisioner().answered(ASK, answer, AT, SETTINGS))] == [
        RefuseRequest
    ]  # fmt: skip


def test_an_acceptance_under_an_id_that_no_event_can_hold_has_an_unknown_outcome() -> None:
    (lost,) = commands(provisioner().answered(ASK, Accepted("a\nb"), AT, SETTINGS))

    assert isinstance(lost, LoseTrack)


def test_a_return_that_was_refused_without_a_reason_is_not_taken_for_done() -> None:
    call = ReturnStatusCall("cloud", "B1", (("cloud/m1", "m1"),))
    answer = ReturnStatus(RequestStatus.COMPLETE, frozenset(), (("m1", ""),))

    assert commands(provisioner().answered(call, answer, AT, SETTINGS)) == [
        RefuseReturn("B1", "cloud/m1", "the provider did not say why")
    ]


def test_a_refused_return_has_a_reason_that_an_event_can_hold() -> None:
    call = GiveBackCall("cloud", "B1", (("cloud/m1", "m1"),))

    (refused,) = commands(provisioner().answered(call, Refused("No", "x" * 9000), AT, SETTINGS))

    assert isinstance(refused, RefuseReturn)
    assert len(refused.why) == WHY_MAX
