"""Walking through a recording or a log: it shows what the run itself showed, forwards and back."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from tests.unit.prompt.sites import Talk, lines_of
from xce.domain.errors import InputError
from xce.domain.events.recorded import Recorded
from xce.replay.anonymous import anonymised
from xce.replay.prompt.answers import Answer
from xce.replay.prompt.info import EVERYWHERE
from xce.replay.prompt.walk import Kept, KeptLog, KeptRecording, Walk
from xce.replay.prompt.walker import COMMANDS, Walker


class Stroll:
    """A walker that is talked to line by line."""

    def __init__(self, kept: Kept, patience: int | None = None) -> None:
        self.patience = patience
        self.walker = Walker(kept, self._is_interrupted)

    def say(self, line: str) -> Answer:
        answer = self.walker.carry_out(line)
        assert answer is not None
        return answer

    def ask(self, line: str) -> str:
        lines: list[str] = []
        for part in self.say(line).parts:
            lines += [part] if isinstance(part, str) else lines_of(part)
        return "\n".join(lines)

    def wrong(self, line: str) -> str:
        with pytest.raises(InputError) as caught:
            self.say(line)
        return str(caught.value)

    def _is_interrupted(self) -> bool:
        if self.patience is None:
            return False
        self.patience -= 1
        return self.patience < 0


@pytest.fixture(scope="module")
def talk() -> Talk:
    """Return a run that is over and was recorded."""
    return Talk("run", "record day")


@pytest.fixture(scope="module")
def recording(talk: Talk) -> KeptRecording:
    lines = talk.hands.recordings["day"]
    return KeptRecording("day.rec.gz", lambda: lines)


@pytest.fixture(scope="module")
def log(talk: Talk) -> KeptLog:
    return KeptLog("events.db", talk.prompt.play("test").log.read)


def at_sessions(talk: Talk, most: int) -> Iterator[int]:
    """Let a run go on from session to session."""
    for number in range(1, most + 1):
        talk.say("run until session")
        yield number


# ----------------------------------------------------- the same as in the run itself
def test_each_session_says_what_it_said_in_the_run(recording: KeptRecording) -> None:
    live, walk = Talk(), Stroll(recording)

    for number in at_sessions(live, 14):
        walk.say(f"goto {number}")
        waiting = [one.id for one in walk_of(walk).pending]
        for line in ("info demand", "info idle", *(f"trace {job}" for job in waiting)):
            assert walk.ask(line) == live.ask(line), (number, line)


@pytest.mark.parametrize("topic", ["requests", "instances", "grants", "leases", "decisions", "events"])  # fmt: skip
@pytest.mark.parametrize("kind", ["recording", "log"])
def test_at_the_end_the_books_are_those_of_the_run(
    talk: Talk, topic: str, kind: str, request: pytest.FixtureRequest
) -> None:
    walk = Stroll(request.getfixturevalue(kind))
    walk.say("run")

    assert walk.ask(f"info {topic}") == talk.ask(f"info {topic}")


def test_costs_at_a_time_are_those_of_the_run_then(log: KeptLog) -> None:
    live, walk = Talk("run until 1h"), Stroll(log)
    walk.say("run until instance.returned")
    live = Talk(f"run until {walk.walker.now:%H:%M:%S}")

    assert walk.ask("info costs") == live.ask("info costs")


# ---------------------------------------------------------------------------- moving
def test_going_back_is_where_one_was(recording: KeptRecording) -> None:
    walk = Stroll(recording)
    walk.say("step 6")
    before = walk.ask("info"), walk.ask("info hosts"), walk.ask("info jobs")
    walk.say("step 5")
    walk.say("back 5")

    assert (walk.ask("info"), walk.ask("info hosts"), walk.ask("info jobs")) == before
    assert walk.ask("goto 6").splitlines()[-1].startswith("session 6, 2026-03-01 10:")
    assert walk.ask("back 6") == "before the first moment"
    assert walk.walker.now is None


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("run until session", "; session"),
        ("run until start b1", "; job b1 starts"),
        ("run until request.closed outcome=complete", "; request.closed outcome=complete"),
        ("run until waiting >= 2", "; waiting >= 2"),
        ("run until owned>=3", "; owned>=3"),
        ("run until 10:30", "; 2026-03-01 10:30:00"),
        ("run until 30min", "; 2026-03-01 10:30:00"),
        ("run", "; it ends here"),
    ],
)
def test_it_goes_on_until_something_is_so(recording: KeptRecording, line: str, says: str) -> None:
    walk = Stroll(recording)
    walk.say("step")

    assert walk.ask(line).endswith(says)


def test_a_length_of_time_is_gone_on_for(recording: KeptRecording) -> None:
    walk = Stroll(recording)
    walk.say("step")
    began = walk.walker.now
    walk.say("run 20min")

    assert began is not None
    assert walk.walker.now is not None
    assert 20 * 60 <= (walk.walker.now - began).total_seconds() < 25 * 60


def test_at_the_end_nothing_more_happens(log: KeptLog) -> None:
    walk = Stroll(log)
    walk.say("run")

    assert walk.ask("step").endswith(": 0 moments, 0 events; it ends here")


def test_an_interrupt_stops_it_where_it_is(recording: KeptRecording) -> None:
    walk = Stroll(recording, patience=3)

    assert walk.say("run").document["moments"] == 4
    assert "interrupted; you stand where you stood" in walk.wrong("goto 9")


# ------------------------------------------------------------------------- comparing
def test_two_sessions_are_compared_thing_by_thing(recording: KeptRecording) -> None:
    walk = Stroll(recording)
    walk.say("run until start b1")
    here = walk.walker.current.removeprefix("session ")
    answer = walk.say("diff 1")
    what = {one["what"]: (one["left"], one["right"]) for one in answer.document["differences"]}

    assert answer.document["left"]["session"] == 1
    assert answer.document["right"]["session"] == int(here)
    assert what["job b1"][0] is None
    assert str(what["job b1"][1]).startswith("starts on ")
    assert walk.say(f"diff 1 {here}").document["differences"] == answer.document["differences"]
    assert "nothing else differs" in walk.ask(f"diff {here}")
    assert walk.walker.current == f"session {here}", "one stands where one stood"


def test_two_positions_of_a_log_are_compared(log: KeptLog) -> None:
    walk = Stroll(log)
    said = walk.ask("diff 4 40")

    assert "MEASURE position " in said
    assert "request R1 " in said


# ------------------------------------------------------------------ what is not there
def test_a_log_has_no_sessions_and_says_so(log: KeptLog) -> None:
    walk = Stroll(log)
    walk.say("run until request.intended")
    (job, *_) = (job for use in walk_of(walk).history.requests.values() for job in use.jobs)

    for line in (f"trace {job}", "info demand", "info hosts", "run until session"):
        assert "a log has no sessions, only what came of them; a recording has" in walk.wrong(line)
    assert f"job {job} is known only by what was asked for it" in walk.ask(f"why {job}")
    assert "  asked: " in walk.ask(f"why {job}")


def walk_of(walk: Stroll) -> Walk:
    return walk.walker._walk  # pyright: ignore[reportPrivateUsage]


def test_what_came_of_a_request_is_told_with_its_host(log: KeptLog) -> None:
    walk = Stroll(log)
    walk.say("run until instance.joined")
    requests = walk_of(walk).history.requests.values()
    (job, *_) = (job for use in requests if use.granted for job in use.jobs)

    assert " is joined, host " in walk.ask(f"why {job}")


@pytest.mark.parametrize("line", ["info", "info jobs", "run 5min"])
def test_before_the_first_moment_it_says_what_to_do(recording: KeptRecording, line: str) -> None:
    assert "try: " in Stroll(recording).wrong(line)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("goto 9999", "there is no session 9999; the last is session "),
        ("goto", "wanted: goto N"),
        ("back 7", "there are 1 moments before this one"),
        ("diff", "wanted: diff A [B]"),
        ("diff 1 0", "'0' is no number"),
        ("set price small 1", "'set' is no command here"),
        ("info request", "did you mean requests?"),
        ("why nobody", "'nobody' is no job here"),
        ("run until waitin >= 1", "did you mean waiting?"),
        ("run until waiting", "wanted a bound after waiting"),
        ("run until", "wanted a time, session, start JOB"),
    ],
)
def test_what_is_typed_wrongly_is_told(recording: KeptRecording, line: str, says: str) -> None:
    walk = Stroll(recording)
    walk.say("step")

    assert says in walk.wrong(line)


def test_of_events_that_begin_in_the_middle_there_are_no_books(log: KeptLog) -> None:
    tail = [one for one in log.events(0) if one.position > 10]
    walk = Stroll(KeptLog("tail", lambda after: [one for one in tail if one.position > after]))
    walk.say("step")

    assert "no books: the events before 11 were not kept" in walk.ask("info")
    assert "is not known: the events before 11 were not kept" in walk.wrong("info requests")


def test_an_event_of_another_release_stops_it_with_its_position(recording: KeptRecording) -> None:
    lines = [
        line.replace("xce.request.accepted", "xce.request.welcomed") for line in recording.lines()
    ]
    walk = Stroll(KeptRecording("newer", lambda: lines))

    assert "does not know the event 'xce.request.welcomed'" in walk.wrong("run")


def test_a_recording_without_names_is_walked_through_too(recording: KeptRecording) -> None:
    lines: list[str] = []
    anonymised(recording.lines, "day", lines.append)
    named, walk = Stroll(recording), Stroll(KeptRecording("day", lambda: lines))
    named.say("run until waiting >= 2")
    walk.say("run until waiting >= 2")

    assert walk.ask("info") == named.ask("info").replace("day.rec.gz", "day")
    assert " ann " not in walk.ask("info jobs")


# ------------------------------------------------------------------------ help, tab
def test_every_command_has_its_help_and_is_offered(recording: KeptRecording) -> None:
    walk = Stroll(recording)
    walk.say("step 8")

    assert [one.text for one in walk.walker.candidates("")] == list(COMMANDS)
    assert "jobs" in [one.text for one in walk.walker.candidates("info ")]
    assert set(EVERYWHERE) <= {one.text for one in walk.walker.candidates("info ")}
    assert "waiting" in [one.text for one in walk.walker.candidates("run until wa")]
    for name, one in COMMANDS.items():
        told = walk.ask(f"help {name}").splitlines()
        assert told[:2] == [f"{one.usage}: {one.about}", f"example: {one.example}"]
    assert walk.say("quit").over


def test_moments_of_a_log_are_what_was_written_at_one_time(log: KeptLog) -> None:
    events: list[Recorded] = []
    times: list[datetime] = []
    moments = log.moments()
    while (moment := moments.following()) is not None:
        assert {one.event.timestamp for one in moment.events} == {moment.at}
        assert moment.at is not None
        times.append(moment.at)
        events += moment.events

    assert times == sorted(set(times))
    assert [one.position for one in events] == list(range(1, len(events) + 1))
    assert all(at.utcoffset() == timedelta(0) for at in times)
