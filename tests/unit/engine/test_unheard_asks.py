"""An ask that a process was at when its request was given up, and of which nobody heard any more: that process has died since."""

from datetime import UTC, datetime, timedelta

from xce.domain.engine.calls import Step
from xce.domain.engine.commands import ReportOrphan, SettleRequest
from xce.domain.engine.polling import Underway
from xce.domain.engine.provisioner import Provisioner
from xce.domain.formats.inventory import Inventory, RequestEntry
from xce.domain.formats.policy import PolicySettings
from xce.domain.formats.provider import Kind
from xce.domain.provisioning.orphan import OrphanKind
from xce.domain.provisioning.request import RequestState
from xce.replay.agenda import CountedIds

NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)
GIVEN_UP = RequestEntry(
    id="R4",
    provider="pool",
    kind=Kind.COUNTABLE,
    resource="lic",
    amount=2,
    state=RequestState.TIMED_OUT,
    asked_at=NOW - timedelta(minutes=20),
    deadline=NOW - timedelta(minutes=5),
)


def poll(entry: RequestEntry, underway: Underway | None = None) -> list[Step]:
    steps = Provisioner(CountedIds()).poll(
        Inventory(requests=(entry,)),
        NOW,
        PolicySettings(),
        looked_at=NOW,
        underway=underway or Underway(),
    )
    return [step for step in steps if step.commands]


def test_people_are_told_of_an_ask_that_was_given_up_and_that_nobody_is_at_any_more() -> None:
    (step,) = poll(GIVEN_UP)

    settle, report = step.commands
    assert isinstance(settle, SettleRequest)
    assert isinstance(report, ReportOrphan)
    assert (report.provider, report.theirs, report.tag) == ("pool", "R4", "R4")
    assert report.kind is OrphanKind.UNKNOWN_TO_US
    assert "2 of lic" in report.why
    assert step.otherwise == (settle,), "a person has looked at it before"


def test_as_long_as_this_process_is_at_the_ask_its_answer_is_waited_for() -> None:
    assert poll(GIVEN_UP, Underway(asks={"R4"})) == []


def test_what_is_settled_or_was_found_is_not_reported() -> None:
    assert poll(GIVEN_UP.model_copy(update={"settled": True})) == []
    assert poll(GIVEN_UP.model_copy(update={"granted": 1})) == []


def test_what_its_provider_knows_is_asked_for_late_answers() -> None:
    assert poll(GIVEN_UP.model_copy(update={"provider_request_id": "add-R4"})) == []


def test_people_are_told_of_what_its_provider_never_ended() -> None:
    long_ago = {"provider_request_id": "add-R4", "deadline": NOW - timedelta(days=2)}

    (step,) = poll(GIVEN_UP.model_copy(update=long_ago))

    settle, report = step.commands
    assert isinstance(settle, SettleRequest)
    assert isinstance(report, ReportOrphan)
    assert step.otherwise == (settle,)
