"""Rounds of the policy in recordings: what was given comes back, and a rule that decides otherwise is found at its round."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import ROOT
from xce.domain.errors import InputError, RejectedError
from xce.domain.formats.inventory import InstanceEntry, Inventory, RequestEntry
from xce.domain.formats.policy import (
    Budget,
    Decision,
    DecisionKind,
    FailureEntry,
    Pause,
    PolicyInput,
)
from xce.domain.formats.provider import Kind, ProviderDescription
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import Snapshot
from xce.domain.policy.decide import decide
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.request import RequestState
from xce.domain.scheduling.session import run_session
from xce.replay.anonymous import anonymised
from xce.replay.recording import RecordedSession, RecordingReader, RecordingWriter
from xce.replay.rounds import SESSIONS_BACK, RecordedRound
from xce.replay.verification import verify

AT = datetime(2026, 3, 1, 10, tzinfo=UTC)
CLOUD = ProviderDescription.from_json(
    json.dumps(
        {
            "name": "cloud",
            "templates": [
                {"templateId": "t", "maxNumber": 9, "pricePerHour": "1", "provides": {"slots": 2}}
            ],
        }
    )
)


def snapshot(jobs: int, minute: int = 0) -> Snapshot:
    """No host, and a cloud; so many jobs wait."""
    document = {
        "format": "xce.snapshot/1",
        "now": (AT + timedelta(minutes=minute)).isoformat(),
        "pending": [
            {"id": f"bobs-{n}", "user": "bob", "queue": "q", "resreq": ""} for n in range(jobs)
        ],
        "catalog": {"templates": [{"id": "t", "provides": {"slots": 2}, "allowed": 9}]},
    }
    return Snapshot.from_json(json.dumps(document))


def request(number: int, **more: object) -> RequestEntry:
    document = {
        "id": f"R{number}", "provider": "cloud", "kind": Kind.HOST, "template": "t", "amount": 1,
        "state": RequestState.ACCEPTED, "asked_at": AT,
    }  # fmt: skip
    return RequestEntry.model_validate(document | more)


def instance(number: int) -> InstanceEntry:
    return InstanceEntry(
        id=f"I{number}",
        provider="cloud",
        template="t",
        state=InstanceState.JOINED,
        granted_at=AT,
    )


class Tape:
    """A recording that is being made."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.writer = RecordingWriter(self.lines.append, by="a test", release="1", at=AT, config={})
        self.result: SessionResult | None = None

    def session(self, jobs: int, minute: int = 0) -> None:
        shown = snapshot(jobs, minute)
        self.result = run_session(shown)
        self.writer.session(shown, self.result)

    def inputs(self, minute: int = 0, **more: object) -> PolicyInput:
        result = self.result
        known: dict[str, object] = {"providers": (CLOUD,)}
        if result is not None:
            known |= {"demand": result.demand, "idle": result.idle}
        return PolicyInput(now=AT + timedelta(minutes=minute)).model_copy(update=known | more)

    def round(self, inputs: PolicyInput, session: int | None = None) -> tuple[Decision, ...]:
        decisions = decide(inputs).decisions
        self.writer.round(inputs, decisions, session=session)
        return decisions


def rounds(lines: list[str]) -> Iterator[RecordedRound]:
    for entry in RecordingReader("x").entries(lines):
        if isinstance(entry, RecordedRound):
            yield entry


# -------------------------------------------------------------------- round trip
def test_a_round_comes_back_with_what_it_was_given_and_what_it_decided() -> None:
    tape = Tape()
    tape.session(3)
    given = tape.inputs(budgets=(Budget(name="b", max_hosts=5),))
    decided = tape.round(given, session=1)

    (found,) = rounds(tape.lines)

    assert found.inputs == given
    assert found.inputs.to_json() == given.to_json()
    assert found.decisions == decided
    assert [one.kind for one in decided] == [DecisionKind.REQUEST]


def test_demand_that_a_session_said_is_not_written_again() -> None:
    tape = Tape()
    tape.session(50)
    tape.round(tape.inputs(), session=1)

    assert "bobs-1" not in json.dumps(json.loads(tape.lines[-1])["input"])


def test_a_round_in_which_nothing_is_new_is_a_short_line() -> None:
    tape = Tape()
    inventory = Inventory(instances=tuple(map(instance, range(100))))
    tape.session(3)
    for minute in range(3):
        tape.round(tape.inputs(minute, inventory=inventory), session=1)

    assert len(tape.lines[-2]) > 10_000 or len(tape.lines[2]) > 10_000
    assert len(tape.lines[-1]) < 200


requests = st.builds(
    request,
    st.integers(1, 6),
    granted=st.integers(0, 1),
    price_per_hour=st.sampled_from([None, "0.1", "0.10"]),
)
inventories = st.builds(
    Inventory,
    requests=st.lists(requests, unique_by=lambda one: one.id).map(tuple),
    instances=st.lists(st.integers(1, 9).map(instance), unique_by=lambda one: one.id).map(tuple),
)
pauses = st.sampled_from(
    [(), (Pause(provider="cloud", until=AT, why="x"),), (Pause(provider="c", until=AT, why="y"),)]
)
failures = st.sampled_from(
    [(), (FailureEntry(provider="cloud", item="t", in_a_row=2, last_at=AT, why="full"),)]
)


@given(st.lists(st.tuples(inventories, pauses, failures, st.integers(0, 3)), max_size=8))
def test_any_rounds_one_after_the_other_come_back_byte_for_byte(
    drawn: list[tuple[Inventory, tuple[Pause, ...], tuple[FailureEntry, ...], int]],
) -> None:
    tape = Tape()
    given: list[PolicyInput] = []
    for minute, (inventory, paused, failed, jobs) in enumerate(drawn):
        if jobs:
            tape.session(jobs, minute)
        inputs = tape.inputs(minute, inventory=inventory, pauses=paused, failures=failed)
        given.append(inputs)
        tape.round(inputs, session=tape.writer.counts.sessions if jobs else None)

    found = list(rounds(tape.lines))

    assert [one.inputs.to_json() for one in found] == [one.to_json() for one in given]
    assert verify(tape.lines, "x").mismatch is None


def test_every_field_of_an_input_comes_back_and_goes_again() -> None:
    """Whatever a later release adds to the input, its rounds are recorded whole."""
    text = (ROOT / "examples" / "round.json").read_text(encoding="utf-8")
    full = PolicyInput.from_json(text)
    tape = Tape()
    for inputs in (tape.inputs(), full, full, tape.inputs(1)):
        tape.round(inputs)

    found = [one.inputs.to_json() for one in rounds(tape.lines)]

    assert found[1] == found[2] == full.to_json()
    assert found[3] == tape.inputs(1).to_json()


# ------------------------------------------------------------------ verification
def two_rounds() -> Tape:
    tape = Tape()
    tape.session(3)
    tape.round(tape.inputs(), session=1)
    tape.session(9, 1)
    tape.round(tape.inputs(1), session=2)
    tape.writer.end()
    return tape


def test_a_recording_with_rounds_decides_the_same_again() -> None:
    verdict = verify(two_rounds().lines, "x")

    assert verdict.mismatch is None
    assert verdict.whole
    assert (verdict.counts.sessions, verdict.counts.rounds) == (2, 2)


def test_a_decision_that_is_another_now_is_named_with_round_session_job_and_field() -> None:
    lines = two_rounds().lines
    last = json.loads(lines[-2])
    last["decisions"][0]["count"] = 7
    forged = [*lines[:-2], json.dumps(last) + "\n", lines[-1]]

    found = verify(forged, "x").mismatch

    assert found is not None
    assert (found.round, found.session, found.job) == (2, 2, "bobs-0")
    assert (found.path, found.recorded, found.found) == ("decisions[0].count", "7", "5")


def test_a_decision_that_is_missing_is_named_by_the_job_it_serves() -> None:
    lines = two_rounds().lines
    first = json.loads(lines[2])
    first["decisions"] = []

    found = verify([*lines[:2], json.dumps(first) + "\n"], "x").mismatch

    assert found is not None
    assert (found.round, found.job, found.path) == (1, "bobs-0", "decisions[0]")
    assert found.recorded is None


def test_a_round_about_a_session_of_long_ago_is_no_recording() -> None:
    tape = Tape()
    for minute in range(SESSIONS_BACK + 1):
        tape.session(1, minute)
    tape.round(tape.inputs(), session=1)

    with pytest.raises(InputError, match="session 1 is not just before its round"):
        verify(tape.lines, "x")


def test_a_recording_from_before_rounds_were_recorded_is_read() -> None:
    tape = Tape()
    tape.session(2)
    tape.lines.append('{"kind":"end","sessions":1,"events":0,"answers":0}\n')

    assert verify(tape.lines, "x").whole


def test_a_round_that_is_missing_is_told() -> None:
    lines = two_rounds().lines

    with pytest.raises(InputError, match="round 1 is missing"):
        verify([*lines[:2], *lines[3:]], "x")


# --------------------------------------------------------------------- anonymous
def without_names(lines: list[str]) -> list[str]:
    out: list[str] = []
    anonymised(lambda: lines, "x", out.append)
    return out


def test_rounds_without_names_decide_the_same_and_name_nobody() -> None:
    tape = two_rounds()

    out = without_names(tape.lines)

    assert "bob" not in "".join(out)
    assert verify(out, "x").mismatch is None
    old, new = rounds(tape.lines), rounds(out)
    assert [[d.count for d in one.decisions] for one in old] == [
        [d.count for d in one.decisions] for one in new
    ]


def test_rounds_of_a_provisioner_alone_lose_their_names_too() -> None:
    tape = Tape()
    tape.session(3)
    alone = Tape()
    alone.result = tape.result
    alone.round(alone.inputs(pauses=(Pause(provider="x", until=AT, why="for bobs-1"),)))

    out = without_names(alone.lines)

    assert "bob" not in "".join(out)
    (found,) = rounds(out)
    assert found.decisions[0].jobs == ("job1", "job2", "job3")


def test_a_round_that_says_something_else_is_not_passed_on() -> None:
    lines = two_rounds().lines
    first = json.loads(lines[2])
    first["decisions"][0]["reason"] = "because of bob"

    with pytest.raises(RejectedError, match=r"round 1 says something else now, at decisions\[0\]"):
        without_names([*lines[:2], json.dumps(first) + "\n"])


def test_sessions_are_still_found_between_rounds() -> None:
    entries = RecordingReader("x").entries(two_rounds().lines)

    assert [entry.number for entry in entries if isinstance(entry, RecordedSession)] == [1, 2]
