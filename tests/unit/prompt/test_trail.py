"""Going back from the end: what was noted on the way gives what going there from the beginning gives, and is bounded."""

import random
from functools import partial

import pytest

from tests.unit.prompt.sites import Talk
from tests.unit.prompt.test_walk import Stroll
from xce.replay.prompt import trail
from xce.replay.prompt.trail import Trail
from xce.replay.prompt.walk import Kept, KeptLog, KeptRecording, Moment, Moments, Place, Walk

TOPICS = ("info", "info jobs", "info demand", "info requests", "info instances", "info costs")


@pytest.fixture(scope="module")
def talk() -> Talk:
    """Return a run that is over and was recorded."""
    return Talk("run", "record day")


@pytest.fixture(scope="module", params=["recording", "log"])
def kept(talk: Talk, request: pytest.FixtureRequest) -> Kept:
    if request.param == "log":
        return KeptLog("events.db", talk.prompt.play("test").log.read)
    lines = talk.hands.recordings["day"]
    return KeptRecording("day.rec.gz", lambda: lines)


def seen(walk: Stroll, kept: Kept) -> list[object]:
    topics = TOPICS if kept.has_sessions else ("info", "info requests", "info costs")
    return [walk.say(topic).document for topic in topics]


def last_of(kept: Kept) -> int:
    walk = Walk(kept)
    while walk.step():
        pass
    return walk.seen.sessions if kept.has_sessions else walk.position


def test_each_place_is_what_it_is_from_the_beginning(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trail, "APART", 2)
    monkeypatch.setattr(trail, "PLACES_MAX", 4)
    last = last_of(kept)
    goals = [random.Random(7).randint(1, last) for _ in range(12)]
    walk = Stroll(kept)
    walk.say("run")

    for goal in (last, *goals, 1):
        fresh = Stroll(kept)
        told = walk.say(f"goto {goal}").document
        assert told == fresh.say(f"goto {goal}").document
        assert seen(walk, kept) == seen(fresh, kept)


def test_back_and_diff_say_the_same_as_from_the_beginning(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = last_of(kept)
    monkeypatch.setattr(trail, "APART", 2)
    walk, fresh = Stroll(kept), Stroll(kept)
    for one in (walk, fresh):
        one.say(f"goto {last}")
    monkeypatch.setattr(fresh.walker, "_trail", Trail(kept))

    for line in ("back 3", "step 2", "back", f"diff {last // 2}", f"diff 1 {last}", "back 2"):
        assert walk.say(line).document == fresh.say(line).document
        assert seen(walk, kept) == seen(fresh, kept)


class Counted:
    """Counts the moments that are read."""

    def __init__(self, number: int) -> None:
        self.name = "counted"
        self.has_sessions = False
        self.read = 0
        self._number = number

    def moments(self) -> Moments:
        return CountedMoments(self, 0)

    def following(self, after: int) -> Moment | None:
        self.read += 1
        return None if after == self._number else Moment()


class CountedMoments:
    def __init__(self, kept: Counted, after: int) -> None:
        self._kept = kept
        self._after = after

    def following(self) -> Moment | None:
        moment = self._kept.following(self._after)
        self._after += 1
        return moment

    def mark(self) -> "MakesMoments":
        return MakesMoments(self._kept, self._after)


class MakesMoments:
    def __init__(self, kept: Counted, after: int) -> None:
        self._kept = kept
        self._after = after

    def __call__(self) -> CountedMoments:
        return CountedMoments(self._kept, self._after)


def is_upto(goal: int, place: Place) -> bool:
    return place.steps <= goal


def test_going_back_reads_little_and_what_is_noted_is_bounded() -> None:
    kept = Counted(50_000)
    noted, walk = Trail(kept), Walk(kept)
    while walk.step():
        noted.note(walk)
    kept.read = 0

    for goal, most in ((49_999, trail.APART), (25_000, 2048), (100, 2048)):
        before = noted.walk(walk, partial(is_upto, goal))
        assert goal - most <= before.steps <= goal
    assert kept.read == 0
    assert len(noted._places) <= trail.PLACES_MAX  # pyright: ignore[reportPrivateUsage]
    assert len(noted._late) <= trail.LATE_MAX  # pyright: ignore[reportPrivateUsage]


def test_nothing_is_noted_twice() -> None:
    kept = Counted(300)
    noted = Trail(kept)
    for _ in range(2):
        walk = Walk(kept)
        while walk.step():
            noted.note(walk)

    steps = [one.steps for one in noted._places]  # pyright: ignore[reportPrivateUsage]
    assert steps == sorted(set(steps)) == [64, 128, 192, 256]
