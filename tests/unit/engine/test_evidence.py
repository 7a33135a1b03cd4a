"""Evidence: given an order that ends with what was said, then it is kept beside what the order changed, and not alone."""

from datetime import timedelta

from tests.unit.engine.test_controller import AT, OPEN_HOSTS, SET_UP
from xce.adapters.store.open import open_log
from xce.domain.engine.commands import AcceptRequest, Command, RecordEvidence, RecordStatus
from xce.domain.engine.controller import Controller
from xce.domain.engine.messages import Caller, Order, Role
from xce.domain.events.base import DomainEvent
from xce.domain.ports import RequestStatus, StatusAnswer
from xce.domain.provisioning.evidence import Evidence

ADMIN = Caller(Role.ADMIN, "alice")


def said(name: str = "E1") -> RecordEvidence:
    return RecordEvidence(
        name, "cloud", "requestMachines", "R1", ("/x/requestMachines.sh", "-f", "in.json"),
        0, 1250, "ab" * 32, '{"requestId": "add-1"}', "", "json", "",
    )  # fmt: skip


class Desk:
    def __init__(self) -> None:
        self.log = open_log(":memory:")
        self.controller = Controller(self.log)
        self.give(*SET_UP, OPEN_HOSTS)

    def give(self, *commands: Command) -> list[DomainEvent]:
        """Carry out one order."""
        self.controller.perform(Order(commands=commands, caller=ADMIN, at=AT, elapsed_s=0.0))
        change = self.controller.take()
        recorded = self.log.append(change.aggregates, fences=change.fences) if change else ()
        self.controller.appended()
        return [entry.event for entry in recorded]


def test_what_was_said_is_kept_in_the_append_of_what_it_led_to() -> None:
    accepted, kept = Desk().give(AcceptRequest("R1", "add-1"), said())

    assert accepted.originator_id == "request:R1"
    assert isinstance(kept, Evidence.Kept)
    assert (kept.originator_id, kept.provider, kept.epoch) == ("evidence:E1", "cloud", 1)
    assert timedelta(milliseconds=kept.milliseconds or 0) == timedelta(seconds=1.25)


def test_where_nothing_changed_nothing_is_kept() -> None:
    desk = Desk()
    desk.give(AcceptRequest("R1", "add-1"), said())

    assert desk.give(AcceptRequest("R1", "add-1"), said("E2")) == []
    running = RecordStatus("R1", StatusAnswer(RequestStatus.RUNNING))
    assert desk.give(running, said("E3")) == []
