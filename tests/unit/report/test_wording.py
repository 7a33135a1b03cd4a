"""Numbers as people read them."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from xce.adapters.report import wording


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (119, "1m59s"), (120, "2m"), (470, "7m50s"), (3599, "59m59s"), (3600, "1h"), (4600, "1h17m"),
     (86_399, "1d"), (90_000, "1d1h"), (90_000 + 1800, "1d2h"), (Decimal("179.6"), "3m"), (None, wording.NOTHING)],
)  # fmt: skip
def test_a_length_of_time_is_said_in_two_units_at_most_and_rounded(
    seconds: int | Decimal | None, text: str
) -> None:
    assert wording.span(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(13_140, "3h39m"), (172_800, "2d"), (7_800_000, "90.3 days")]
)
def test_a_long_run_is_said_in_days(seconds: int, text: str) -> None:
    assert wording.length(seconds) == text


def test_thousands_stand_apart() -> None:
    assert wording.count(1234567) == "1\u202f234\u202f567"
    assert wording.money(Decimal("1234.565")) == "1\u202f234.56"
    assert wording.hours(3_600_000) == "1\u202f000.0"


def test_what_is_unknown_is_said_to_be() -> None:
    assert wording.money(None) == "unknown"
    assert wording.price(None) == "unknown"
    assert wording.percent(None) == wording.NOTHING
    assert wording.time(None) == wording.NOTHING


def test_a_price_keeps_its_places() -> None:
    assert wording.price(Decimal("0.3400")) == "0.34"
    assert wording.price(Decimal("0.0525")) == "0.0525"
    assert wording.price(Decimal(3)) == "3.00"


def test_ratios_and_times() -> None:
    assert wording.percent(Decimal("0.8765")) == "87.6\u202f%"
    assert wording.time(datetime(2026, 3, 2, 10, 5, 7, tzinfo=UTC)) == "2026-03-02 10:05:07"


def test_many_names_are_shortened() -> None:
    assert wording.some(("a", "b")) == "a, b"
    assert wording.some(tuple("abcdef")) == "a, b, c and 3 more"
