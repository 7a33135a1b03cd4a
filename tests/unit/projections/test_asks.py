"""The record of asks: given requests, then what was asked within the last day, as short as that can be said."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.projections.run import Run, at, cloud, hosts, pool, template, units
from xce.domain.formats.policy import LONGEST_RATE
from xce.projections.all import Projections

DAY_MIN = LONGEST_RATE // timedelta(minutes=1)


def run_of(*asks: tuple[float, int]) -> Run:
    """Return a run in which hosts were asked: (minute, hosts)."""
    run = Run(cloud("aws", template("c4")), pool())
    for number, (minute, amount) in enumerate(asks):
        run.do(hosts(f"R{number}", amount, "c4"), at=at(minute))
    return run


def shown(run: Run, minute: float) -> list[tuple[int, float]]:
    """Return (hosts, minute of the last ask) of each entry."""
    view = run.projections.asks.view(at(minute))
    return [(entry.hosts, (entry.asked_at - at(0)) / timedelta(minutes=1)) for entry in view]


def test_asks_of_one_minute_are_one_entry_that_goes_by_the_last() -> None:
    assert shown(run_of((0, 3), (0.5, 2), (1, 4)), 2) == [(5, 0.5), (4, 1)]


def test_older_asks_are_shown_by_quarters_of_an_hour() -> None:
    run = run_of((1, 1), (3, 1), (14, 1), (15, 1))

    assert shown(run, 20) == [(1, 1), (1, 3), (1, 14), (1, 15)]
    assert shown(run, 90) == [(3, 14), (1, 15)]


def test_an_ask_is_forgotten_after_a_day() -> None:
    run = run_of((0, 7))

    assert shown(run, DAY_MIN - 1) == [(7, 0)]
    assert shown(run, DAY_MIN) == []
    run.do(hosts("late", 1, "c4"), at=at(DAY_MIN))
    assert len(run.projections.asks.state()["asks"]) == 1


def test_units_are_not_recorded() -> None:
    run = run_of()
    run.do(units("R1", 3))

    assert shown(run, 0) == []


def test_what_was_kept_is_the_same_record() -> None:
    run = run_of((0, 3), (5, 2))
    projections = run.projections

    again = Projections.resumed(projections.position, projections.keep())

    assert again.asks.state() == projections.asks.state()
    assert again.asks.view(at(6)) == projections.asks.view(at(6))


@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(1, 9)), max_size=25),
    st.integers(0, 300),
    st.integers(1, DAY_MIN),
)
def test_never_less_is_counted_than_was_asked_and_at_most_a_quarter_of_an_hour_more(
    steps: list[tuple[int, int]], after: int, within: int
) -> None:
    asks: list[tuple[float, int]] = []
    minute = 0
    for pause, amount in steps:
        minute += pause
        asks.append((minute, amount))
    now = minute + after

    def within_last(length: int) -> int:
        return sum(amount for when, amount in asks if when > now - length)

    view = run_of(*asks).projections.asks.view(at(now))
    counted = sum(e.hosts for e in view if e.asked_at > at(now) - timedelta(minutes=within))

    assert within_last(within) <= counted <= within_last(within + 15)
