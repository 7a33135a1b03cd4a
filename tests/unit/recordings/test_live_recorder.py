"""The recorder of a live driver, and that of a provisioner: what goes wrong costs a part of the recording, never the daemon."""

import errno
import io
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from tests.unit.recordings.test_rounds import AT, CLOUD, snapshot
from tests.unit.recordings.test_views import supply, view
from xce.adapters import recordings
from xce.adapters.client import Client
from xce.adapters.provisioner.recording import ProvisionerRecorder, RecordedCalls
from xce.adapters.recordings import LiveRecorder, RecordingFile, read_lines
from xce.domain.errors import TransientError
from xce.domain.formats.policy import PolicyInput
from xce.domain.formats.provider import Kind
from xce.domain.formats.rest import EventEntry
from xce.domain.policy.decide import decide
from xce.domain.ports import (
    Accepted,
    Ask,
    FullProvider,
    Holding,
    RequestStatus,
    ReturnStatus,
    StatusAnswer,
    TakeBack,
)  # fmt: skip
from xce.domain.scheduling.session import run_session
from xce.replay.recording import Entry, Line, Other, RecordedSession, RecordingReader
from xce.replay.verification import verify
from xce.replay.views import Seen

ASK = Ask("R1", Kind.HOST, "t", 1)


class Log:
    """Plays the controller: it has three events, and may be away."""

    def __init__(self) -> None:
        self.away = False

    def events(self, after: int = 0, limit: int = 1000) -> Iterator[EventEntry]:
        for position in range(after + 1, 4):
            if self.away:
                raise TransientError("away")
            yield EventEntry(
                position=position, name="xce.x", aggregate="x:1", version=position, at=AT, by="x", data={}
            )  # fmt: skip


def opened(path: Path) -> RecordingFile:
    return RecordingFile(path, by="a test", at=AT, config={})


def entries(path: Path) -> list[Entry]:
    return list(RecordingReader("x").entries(read_lines(path)))


def look(recorder: LiveRecorder, position: int) -> None:
    shown = snapshot(2, position).model_copy(update={"position": position})
    recorder.session(shown, run_session(shown))


def events_in(path: Path) -> list[int]:
    return [
        entry.document["position"]
        for entry in entries(path)
        if isinstance(entry, Other) and entry.kind == "event"
    ]


# ------------------------------------------------------------------------ driver
def test_events_that_the_controller_does_not_give_follow_later(tmp_path: Path) -> None:
    path, log = tmp_path / "a.rec.gz", Log()
    with opened(path) as file:
        recorder = LiveRecorder(file, cast(Client, log))
        look(recorder, 1)
        log.away = True
        look(recorder, 2)
        log.away = False
        look(recorder, 3)

    kinds = "".join(
        "S" if isinstance(entry, RecordedSession) else "e"
        for entry in entries(path)
        if isinstance(entry, RecordedSession | Other)
    )
    assert kinds == "eSSeeS"
    assert events_in(path) == [1, 2, 3]


def test_only_the_first_thing_seen_begins(tmp_path: Path) -> None:
    path = tmp_path / "a.rec.gz"
    with opened(path) as file:
        recorder = LiveRecorder(file, cast(Client, Log()))
        for minute in range(3):
            recorder.seen(view(minute, 4), supply(minute), None)

    found = [entry.begins for entry in entries(path) if isinstance(entry, Seen)]
    assert found == [True, False, False]


def test_a_full_disk_ends_the_recording_and_not_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.rec.gz"
    with opened(path) as file:
        recorder = LiveRecorder(file, cast(Client, Log()))
        look(recorder, 1)

        def full(recording: RecordingFile) -> None:
            raise TransientError("no space left on device")

        monkeypatch.setattr(RecordingFile, "flush", full)
        look(recorder, 2)
        monkeypatch.undo()
        look(recorder, 3)

    assert len([entry for entry in entries(path) if isinstance(entry, RecordedSession)]) == 2


class SmallDisk(io.FileIO):
    """A file on a disk that is full after so many bytes, with a part of what was written last."""

    room = 0

    def write(self, data: Any, /) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        part = memoryview(data)[: self.room]
        self.room -= len(part)
        return super().write(part)


@pytest.fixture
def small_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def room(size: int) -> None:
        def made(path: Path) -> SmallDisk:
            file = SmallDisk(path, "x")
            file.room = size
            return file

        monkeypatch.setattr(recordings, "new_file", made)

    return room


@pytest.mark.parametrize("room", [0, 50, 900, 1200, 1700])
def test_a_disk_that_is_full_in_the_middle_of_a_block_leaves_what_was_before_it_readable(
    tmp_path: Path, small_disk: Callable[[int], None], room: int
) -> None:
    path = tmp_path / "a.rec.gz"
    small_disk(room)
    file = opened(path)
    recorder = LiveRecorder(file, cast(Client, Log()))
    for position in range(1, 30):
        look(recorder, position)

    recorder.close()

    assert path.stat().st_size == room
    if room >= 900:
        found = [one for one in entries(path) if isinstance(one, RecordedSession)]
        assert 0 < len(found) < 29


def test_a_disk_that_is_full_at_the_very_end_is_no_bad_end(
    tmp_path: Path, small_disk: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.rec.gz"
    small_disk(100_000)
    recorder = LiveRecorder(opened(path), cast(Client, Log()))
    look(recorder, 1)
    monkeypatch.setattr(SmallDisk, "room", property(lambda self: 0))

    recorder.close()

    assert len([one for one in entries(path) if isinstance(one, RecordedSession)]) == 1


@pytest.mark.parametrize("room", [0, 900, 2000])
def test_what_a_provisioner_recorded_before_the_disk_was_full_is_readable_when_it_has_ended(
    tmp_path: Path, small_disk: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    path = tmp_path / "a.rec.gz"
    small_disk(room)
    recorder = ProvisionerRecorder(lambda: opened(path))
    recorder.begin()
    cloud = Cloud()
    calls = RecordedCalls("cloud", cast(FullProvider, cloud), recorder)
    for number in range(20):
        cloud.held = tuple(Holding(f"m{number}-{one}", Kind.HOST) for one in range(60))
        calls.holdings(AT)
        recorder.decided(PolicyInput(now=AT), None, ())
    monkeypatch.setattr(SmallDisk, "write", io.FileIO.write)  # there is room again

    recorder.close()

    assert path.stat().st_size == room
    if room:
        assert 0 < len(entries(path)) < 40


def test_a_disk_that_is_full_at_the_start_costs_the_recording_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path) -> io.FileIO:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(recordings, "new_file", full)
    recorder = ProvisionerRecorder(lambda: opened(tmp_path / "a.rec.gz"))

    recorder.begin()

    recorder.decided(PolicyInput(now=AT), None, ())
    recorder.close()


# ------------------------------------------------------------------- provisioner
class Cloud:
    """Answers, or not."""

    def __init__(self) -> None:
        self.held: tuple[Holding, ...] = (Holding("m1", Kind.HOST), Holding("m2", Kind.HOST))
        self.answers = True

    def ask(self, ask: Ask, now: object) -> Accepted:
        if not self.answers:
            raise TransientError("no answer")
        return Accepted("add-1")

    def statuses(self, ids: tuple[str, ...], now: object) -> Mapping[str, object]:
        known = StatusAnswer(RequestStatus.RUNNING)
        return {one: known if one == "add-1" else TransientError("lost") for one in ids}

    def return_status(
        self, return_id: str, now: object, *, theirs: str | None = None
    ) -> ReturnStatus:
        return ReturnStatus(RequestStatus.COMPLETE, frozenset({"m2", "m1"}))

    def describe(self, now: object) -> object:
        return CLOUD

    def holdings(self, now: object) -> tuple[Holding, ...]:
        return self.held

    def take_backs(self, machines: object, now: object) -> tuple[TakeBack, ...]:
        return (TakeBack("m1", 120),)


def test_what_a_provider_answers_is_recorded_once_and_what_it_does_not_too(tmp_path: Path) -> None:
    path, cloud = tmp_path / "p.rec.gz", Cloud()
    recorder = ProvisionerRecorder(lambda: opened(path))
    recorder.begin()
    calls = RecordedCalls("cloud", cast(FullProvider, cloud), recorder)
    for minute in range(2):  # the second time says nothing new
        now = AT + timedelta(minutes=minute)
        calls.ask(ASK, now)
        calls.statuses(["add-1", "add-2"], now)
        calls.return_status("B1", now)
        calls.describe(now)
        calls.holdings(now)
        calls.take_backs({"m1": "a"}, now)
    cloud.answers, cloud.held = False, cloud.held[1:]
    with pytest.raises(TransientError):
        calls.ask(ASK, AT)
    calls.holdings(AT)
    recorder.close()
    calls.take_backs({}, AT)  # nobody listens any more

    found: list[Line] = [entry.document for entry in entries(path) if isinstance(entry, Other)]
    assert [one["call"]["call"] for one in found] == [
        "ask", "status", "status", "return_status", "describe", "list", "take_back", "ask", "list",
    ]  # fmt: skip
    assert found[2]["answer"]["error"] == found[7]["answer"]["error"] == "transient"
    assert found[3]["answer"]["gone"] == ["m1", "m2"]
    assert [one["theirs"] for one in found[5]["answer"]["new"]] == ["m1", "m2"]
    assert found[8]["answer"] == {"new": [], "gone": [["host", "m1"]]}


def test_rounds_are_recorded_until_the_disk_is_full_and_nobody_is_hindered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.rec.gz"
    recorder = ProvisionerRecorder(lambda: opened(path))
    inputs = PolicyInput(now=AT, providers=(CLOUD,), demand=run_session(snapshot(7)).demand)
    decisions = decide(inputs).decisions
    recorder.decided(inputs, None, decisions)  # before it begins: nobody listens
    recorder.begin()
    recorder.decided(inputs, "d" * 64, decisions)

    def full(recording: RecordingFile) -> None:
        raise TransientError("no space left on device")

    monkeypatch.setattr(RecordingFile, "flush", full)
    for _ in range(3):
        recorder.decided(inputs, "d" * 64, decisions)
    recorder.close()

    verdict = verify(read_lines(path), "p")
    assert verdict.mismatch is None
    assert 1 <= verdict.counts.rounds <= 2
    assert not verdict.whole
