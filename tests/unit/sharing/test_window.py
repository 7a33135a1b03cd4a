"""The idle window over the need: what is unknown, what counts, when it falls."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from xce.domain.sharing.window import PeakWindow

START = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
LENGTH = 30


def at(minute: int) -> datetime:
    return START + timedelta(minutes=minute)


def window(*notes: tuple[int, int | None], length: int = LENGTH) -> PeakWindow:
    made = PeakWindow(timedelta(minutes=length))
    for minute, need in notes:
        made.note(at(minute), need)
    return made


def test_before_the_first_note_the_peak_is_unknown_and_stays_so() -> None:
    assert window().peak(at(99)) is None
    assert window().next_fall(at(99)) is None


def test_until_the_window_is_full_the_peak_is_unknown() -> None:
    assert window((0, 7), (20, 2)).peak(at(29)) is None
    assert window((0, 7), (20, 2)).next_fall(at(20)) == at(30)
    assert window((0, 7), (20, 2)).peak(at(30)) == 7


def test_a_need_counts_until_the_window_begins_after_its_end() -> None:
    noted = window((0, 7), (20, 2))

    assert noted.next_fall(at(30)) == at(50)
    assert noted.peak(at(49)) == 7
    assert noted.peak(at(50)) == 2
    assert noted.next_fall(at(50)) is None


def test_a_lower_need_in_between_does_not_lengthen_the_higher_one_before() -> None:
    noted = window((0, 10), (5, 2), (8, 4))

    assert noted.peak(at(34)) == 10
    assert noted.peak(at(35)) == 4


def test_a_short_need_is_remembered_for_the_whole_window() -> None:
    noted = window((0, 1), (40, 9), (40, 1))

    assert noted.peak(at(69)) == 9
    assert noted.peak(at(70)) == 1


def test_an_unknown_need_makes_the_window_begin_again() -> None:
    noted = window((0, 7), (60, None))

    assert noted.peak(at(61)) is None
    noted.note(at(62), 3)
    assert noted.peak(at(91)) is None
    assert noted.peak(at(92)) == 3


def test_a_clock_set_back_changes_nothing() -> None:
    noted = window((40, 5), (10, 1))

    assert noted.peak(at(69)) is None
    assert noted.peak(at(70)) == 1, "the need of 5 ended when it began, at 40"


def test_demand_that_flaps_faster_than_the_window_never_lets_the_peak_fall() -> None:
    noted = window(*((minute, 8 if minute % 20 == 0 else 0) for minute in range(0, 200, 10)))

    assert noted.peak(at(195)) == 8


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20) | st.none()), max_size=30),
    st.integers(0, 25),
    st.integers(0, 40),
)
def test_the_peak_is_the_largest_need_that_lasted_into_the_window(
    steps: list[tuple[int, int | None]], length: int, wait: int
) -> None:
    noted = PeakWindow(timedelta(minutes=length))
    minute = 0
    needs: list[tuple[int, int | None]] = []  # (from, need), each until the next
    for pause, need in steps:
        minute += pause
        noted.note(at(minute), need)
        needs.append((minute, need))
    now = minute + wait

    unknown = [index for index, (_, need) in enumerate(needs) if need is None]
    known = needs[unknown[-1] + 1 :] if unknown else needs
    ends = [*(start for start, _ in known[1:]), now + 1]
    lasted = [
        need
        for (_, need), end in zip(known, ends, strict=False)
        if need is not None and end > now - length
    ]
    full = bool(known) and now - known[0][0] >= length
    assert noted.peak(at(now)) == (max(lasted) if full else None)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 20)), min_size=1, max_size=30))
def test_between_two_notes_the_peak_falls_exactly_when_it_was_said(
    steps: list[tuple[int, int]],
) -> None:
    minute = 0
    noted = PeakWindow(timedelta(minutes=LENGTH))
    for pause, need in steps:
        minute += pause
        noted.note(at(minute), need)
    seen = noted.peak(at(minute))
    for later in range(minute, minute + 3 * LENGTH):
        due = noted.next_fall(at(later))
        assert due is None or due > at(later)
        after = noted.peak(at(later + 1))
        assert (after != seen) == (due == at(later + 1))
        seen = after
    assert seen == steps[-1][1]
