"""The election of a primary, on a clock of the test's own: who takes over when, and who finds out that its time is over."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from xce.adapters.store.election import Election, Role
from xce.adapters.store.seat import Sign
from xce.domain.errors import PermanentError, TransientError


class Place:
    """What all seats of one log share."""

    def __init__(self) -> None:
        self.holder: FakeSeat | None = None
        self.sign: Sign | None = None
        self.away = False
        self.epoch = 0
        self.evicted: list[str] = []
        self.cannot_end: Exception | None = None


class FakeSeat:
    """A seat in memory whose holder can be killed or frozen."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.before_look: Callable[[], None] = lambda: None

    def _reach(self) -> None:
        if self._place.away:
            raise TransientError("the store is away")

    def sign(self) -> Sign | None:
        self._reach()
        return self._place.sign

    def claim(self) -> bool:
        self.before_look()
        self._reach()
        if self._place.holder in (None, self):
            self._place.holder = self
        return self._place.holder is self

    def evict(self, sign: Sign) -> None:
        self._reach()
        if self._place.cannot_end is not None:
            raise self._place.cannot_end
        self._place.evicted.append(sign.name)
        self._place.holder = None

    def clear(self, sign: Sign) -> None:
        self._reach()

    def sit(self, *, epoch: int, name: str, url: str) -> None:
        self._reach()
        self._place.sign = Sign(epoch, 0, name, url, name)

    def beat(self) -> bool:
        self._reach()
        if self._place.holder is not self or self._place.sign is None:
            return False
        self._place.sign = replace(self._place.sign, beat=self._place.sign.beat + 1)
        return True

    def leave(self) -> None:
        self._reach()
        if self._place.holder is self:
            self._place.holder = None
            self._place.sign = None

    def close(self) -> None:
        if self._place.holder is self:
            self._place.holder = None


class World:
    """One log, several candidates, one clock that all of them read."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.place = Place()
        self.seats: dict[str, FakeSeat] = {}
        self.take_fails: Exception | None = None

    def candidate(self, name: str) -> Election:
        seat = self.seats[name] = FakeSeat(self.place)
        return Election(
            seat, self.take, name=name, url=f"https://{name}", detection_s=3.0, monotonic=lambda: self.now_s
        )  # fmt: skip

    def take(self) -> int:
        if self.take_fails is not None:
            raise self.take_fails
        self.place.epoch += 1
        return self.place.epoch

    def steps(self, seconds: float, *candidates: Election) -> None:
        for _ in range(round(seconds / 0.25)):
            self.now_s += 0.25
            for candidate in candidates:
                candidate.step()


@pytest.fixture
def world() -> World:
    return World()


def test_the_first_one_serves_and_the_second_stands_by(world: World) -> None:
    a, b = world.candidate("a"), world.candidate("b")

    assert [a.step(), b.step()] == [Role.PRIMARY, Role.STANDBY]
    world.steps(60, a, b)

    assert [a.role, b.role] == [Role.PRIMARY, Role.STANDBY]
    assert (a.epoch, a.leads, b.leads) == (1, True, False)
    assert b.primary is not None
    assert (b.primary.name, b.primary.url) == ("a", "https://a")


def test_whose_process_died_is_followed_at_the_next_step(world: World) -> None:
    a, b = world.candidate("a"), world.candidate("b")
    a.step()
    b.step()
    world.place.holder = None

    world.steps(0.25, b)

    assert (b.role, b.epoch) == (Role.PRIMARY, 2)
    assert world.place.evicted == []


def test_whose_count_stands_still_is_ended_after_the_detection_time_and_not_before(
    world: World,
) -> None:
    a, b = world.candidate("a"), world.candidate("b")
    a.step()
    world.steps(3, a, b)

    world.steps(2.75, b)
    assert (b.role, world.place.evicted) == (Role.STANDBY, [])
    world.steps(0.5, b)

    assert (b.role, world.place.evicted) == (Role.PRIMARY, ["a"])
    assert a.step() is Role.LOST
    assert not a.leads


def test_who_was_stopped_itself_does_not_take_the_time_it_missed_for_the_others(
    world: World,
) -> None:
    """Stopped between two looks, or between reading the clock and reading the seat."""
    a, b = world.candidate("a"), world.candidate("b")
    a.step()
    world.steps(3, a, b)
    a.step()
    world.now_s += 60
    a.step()
    b.step()
    assert b.role is Role.STANDBY

    def stopped() -> None:
        world.now_s += 60

    world.seats["b"].before_look = stopped
    b.step()
    assert (b.role, world.place.evicted) == (Role.STANDBY, [])
    world.seats["b"].before_look = lambda: None
    a.step()
    world.steps(2.75, b)
    assert (b.role, world.place.evicted) == (Role.STANDBY, [])


def test_nothing_depends_on_what_the_clock_shows(world: World) -> None:
    """F22: only differences of a clock that does not go back are used; it may start anywhere."""
    world.now_s = -5_000_000.0
    a, b = world.candidate("a"), world.candidate("b")
    a.step()
    world.steps(60, a, b)
    assert [a.role, b.role] == [Role.PRIMARY, Role.STANDBY]


def test_a_primary_that_cannot_show_itself_stops_leading_by_its_own_clock(world: World) -> None:
    """F23: counted from when the last sign that arrived was sent."""
    a = world.candidate("a")
    a.step()
    world.steps(3, a)
    world.place.away = True
    for _ in range(11):
        world.now_s += 0.25
        with pytest.raises(TransientError):
            a.step()
        assert a.leads
    world.now_s += 0.25

    assert not a.leads
    b = world.candidate("b")
    world.place.away = False
    world.steps(3.5, b)
    assert b.role is Role.PRIMARY
    assert a.step() is Role.LOST
    assert not a.leads


def test_a_primary_that_was_cut_off_leads_again_where_nobody_was_faster(world: World) -> None:
    a = world.candidate("a")
    a.step()
    world.place.away = True
    world.now_s += 60
    with pytest.raises(TransientError):
        a.step()
    assert not a.leads
    world.place.away = False

    assert a.step() is Role.PRIMARY
    assert a.leads


def test_a_store_that_comes_back_in_time_changes_nothing(world: World) -> None:
    a, b = world.candidate("a"), world.candidate("b")
    a.step()
    world.steps(3, a, b)
    world.place.away = True
    for _ in range(5):
        world.now_s += 0.25
        for candidate in (a, b):
            with pytest.raises(TransientError):
                candidate.step()
    world.place.away = False

    world.steps(30, a, b)

    assert [a.role, b.role] == [Role.PRIMARY, Role.STANDBY]


def test_of_three_only_one_follows(world: World) -> None:
    a, b, c = (world.candidate(name) for name in "abc")
    a.step()
    world.steps(3, a, b, c)

    world.steps(6, b, c)

    assert sorted([b.role, c.role]) == [Role.PRIMARY, Role.STANDBY]
    assert world.place.evicted == ["a"]
    assert a.step() is Role.LOST


def test_who_resigns_is_followed_at_once(world: World) -> None:
    a, b = world.candidate("a"), world.candidate("b")
    a.step()
    b.step()

    a.resign()
    world.steps(0.25, b)

    assert [a.role, b.role] == [Role.LOST, Role.PRIMARY]
    assert world.place.evicted == []
    a.close()
    assert b.step() is Role.PRIMARY


def test_one_that_cannot_be_ended_stays_and_is_tried_again_after_the_detection_time(
    world: World,
) -> None:
    a, b = world.candidate("a"), world.candidate("b")
    a.step()
    world.steps(0.25, b)
    world.place.cannot_end = PermanentError("process 7 belongs to another user")
    failures = 0
    for _ in range(26):
        world.now_s += 0.25
        try:
            b.step()
        except PermanentError:
            failures += 1
    assert (failures, b.role) == (2, Role.STANDBY)

    world.place.cannot_end = None
    world.steps(3.25, b)
    assert b.role is Role.PRIMARY


def test_who_cannot_read_the_log_lets_go_of_the_seat(world: World) -> None:
    """F26: an unknown event; another release may do better."""
    a, b = world.candidate("a"), world.candidate("b")
    world.take_fails = TransientError("event 9 is not known")
    with pytest.raises(TransientError, match="event 9"):
        a.step()
    assert a.role is Role.STANDBY
    world.take_fails = None

    assert b.step() is Role.PRIMARY
