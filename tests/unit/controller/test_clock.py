"""Stamps: never back, also where the wall clock is set back, and then at the pace of real time (field case F22)."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from xce.adapters.clock import SystemClock

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


class Hands:
    """A wall clock that can be set, and one that cannot."""

    def __init__(self) -> None:
        self.wall = NOON
        self.elapsed_s = 1000.0
        self.clock = SystemClock(wall=lambda: self.wall, monotonic_s=lambda: self.elapsed_s)

    def pass_time(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.elapsed_s += seconds


def test_stamps_are_those_of_the_wall_clock() -> None:
    hands = Hands()
    hands.clock.now()
    hands.pass_time(60)

    assert hands.clock.now() == NOON + timedelta(seconds=60)


def test_f22_where_the_clock_is_set_back_stamps_go_on_at_the_pace_of_real_time() -> None:
    hands = Hands()
    hands.clock.now()
    hands.wall -= timedelta(minutes=10)

    for _ in range(5):
        before = hands.clock.now()
        hands.pass_time(60)
        assert hands.clock.now() - before == timedelta(seconds=60)
    assert hands.clock.elapsed_s() == 1300.0


def test_a_clock_that_was_set_back_and_right_again_is_followed_again() -> None:
    hands = Hands()
    hands.clock.now()
    hands.wall -= timedelta(minutes=10)
    hands.pass_time(60)
    hands.clock.now()
    hands.wall += timedelta(minutes=11)

    assert hands.clock.now() == hands.wall


def test_stamps_come_after_one_that_was_given_elsewhere() -> None:
    hands = Hands()
    hands.clock.not_before(NOON + timedelta(minutes=5))
    hands.pass_time(60)

    assert hands.clock.now() == NOON + timedelta(minutes=6)


CHANGES = st.tuples(st.sampled_from(["set", "pass", "told"]), st.integers(-900, 900))


@given(st.lists(CHANGES, max_size=12))
def test_whatever_is_done_to_the_clock_stamps_do_not_go_back_nor_stand(
    changes: list[tuple[str, int]],
) -> None:
    hands = Hands()
    last, last_s = hands.clock.now(), hands.elapsed_s
    for change, seconds in changes:
        if change == "set":
            hands.wall += timedelta(seconds=seconds)
        elif change == "pass":
            hands.pass_time(abs(seconds))
        else:
            hands.clock.not_before(hands.wall + timedelta(seconds=seconds))
        stamp = hands.clock.now()
        assert stamp - last >= timedelta(seconds=hands.elapsed_s - last_s)
        last, last_s = stamp, hands.elapsed_s
