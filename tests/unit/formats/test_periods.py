"""Days and months of time zones: one follows the other, whatever the clocks do."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from xce.domain.formats.periods import Period

#: Where clocks change at midnight, by half an hour, twice a year, or where a whole day was left out.
ZONES = (
    "UTC", "Europe/Berlin", "America/Havana", "Asia/Beirut", "Africa/Cairo", "America/Santiago", "America/Asuncion", "Asia/Gaza",
    "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Chatham", "Asia/Kathmandu", "Atlantic/Azores", "America/Scoresbysund",
)  # fmt: skip


@pytest.mark.parametrize(
    ("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-07-01", 24)]
)
def test_a_day_is_as_long_as_its_clocks_make_it(day: str, hours: int) -> None:
    noon = datetime.fromisoformat(f"{day}T12:00+00:00")

    length = Period.DAY.end(noon, "Europe/Berlin") - Period.DAY.start(noon, "Europe/Berlin")

    assert length == timedelta(hours=hours)


@given(
    st.sampled_from(list(Period)),
    st.sampled_from(ZONES),
    st.integers(5 * 365 * 86_400, 66 * 365 * 86_400).map(lambda s: datetime.fromtimestamp(s, UTC)),
)
@example(Period.DAY, "Pacific/Apia", datetime(2011, 12, 30, 9, 59, tzinfo=UTC))
@example(Period.DAY, "Asia/Beirut", datetime(2026, 3, 28, 21, 59, tzinfo=UTC))
@example(Period.DAY, "America/Havana", datetime(2026, 11, 1, 4, 30, tzinfo=UTC))
@example(Period.MONTH, "Europe/Berlin", datetime(2026, 3, 31, 21, 59, 59, tzinfo=UTC))
def test_a_moment_is_in_one_period_and_the_next_begins_where_it_ends(
    period: Period, zone: str, at: datetime
) -> None:
    start, end = period.start(at, zone), period.end(at, zone)

    assert start <= at < end
    assert period.start(end, zone) == end
    assert period.end(start, zone) == end
    assert period.start(end - timedelta(microseconds=1), zone) == start


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("period", list(Period))
@pytest.mark.parametrize("at", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
def test_at_the_ends_of_the_calendar_there_are_periods_too(
    period: Period, zone: str, at: datetime
) -> None:
    assert period.start(at, zone) <= at <= period.end(at, zone)
