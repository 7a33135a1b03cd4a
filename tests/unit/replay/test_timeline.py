"""Values over time, and what is left of them when there is room for few."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xce.replay.timeline import Timeline, TimelineBuilder

START = datetime(2026, 3, 2, tzinfo=UTC)


def at(second: int) -> datetime:
    return START + timedelta(seconds=second)


def built(*points: tuple[int, dict[str, int]]) -> Timeline:
    builder = TimelineBuilder()
    for second, values in points:
        builder.add(at(second), values)
    return builder.build()


def test_a_series_that_comes_later_or_is_missing_is_0_there() -> None:
    timeline = built((0, {"a": 1}), (5, {"a": 2, "b": 7}), (9, {"b": 8}))

    assert timeline.times == (at(0), at(5), at(9))
    assert timeline.values == {"a": (1, 2, 0), "b": (0, 7, 8)}


def test_a_point_at_the_time_of_the_last_one_replaces_it() -> None:
    assert built((0, {"a": 1, "b": 1}), (0, {"a": 2})).values == {"a": (2,), "b": (0,)}


def test_times_do_not_go_back() -> None:
    with pytest.raises(AssertionError):
        built((5, {"a": 1}), (4, {"a": 1}))


def test_a_timeline_that_fits_stays_as_it_is() -> None:
    timeline = built((0, {"a": 1}), (7, {"a": 2}))

    assert timeline.thinned(2) is timeline


def test_a_thinned_timeline_keeps_the_peak() -> None:
    timeline = built(*((n, {"a": 90 if n == 533 else n % 3}) for n in range(1000)))

    thin = timeline.thinned(10)

    assert len(thin.times) == 10
    assert thin.values["a"][5] == 90
    assert thin.largest("a") == timeline.largest("a") == 90


@given(
    st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 50)), min_size=2, max_size=80),
    st.integers(2, 30),
)
def test_a_thinned_timeline_is_never_below_what_held_at_its_times(
    steps: list[tuple[int, int]], count: int
) -> None:
    second, points = 0, list[tuple[int, dict[str, int]]]()
    for gap, value in steps:
        second += gap
        points.append((second, {"a": value}))
    timeline = built(*points)

    thin = timeline.thinned(count)

    assert len(thin.times) <= max(count, len(timeline.times))
    assert list(thin.times) == sorted(set(thin.times))
    assert thin.largest("a") == timeline.largest("a")
    for time, most in zip(thin.times, thin.values["a"], strict=True):
        held = [v for t, v in zip(timeline.times, timeline.values["a"], strict=True) if t <= time]
        assert most >= held[-1]


def test_the_largest_of_nothing_is_0() -> None:
    assert Timeline((), {"a": ()}).largest("a") == 0
