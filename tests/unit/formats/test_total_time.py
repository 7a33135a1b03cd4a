"""Times of many things together: a hundred hosts use ten years in five weeks."""

from datetime import timedelta
from decimal import Decimal

import pytest

from xce.domain.formats.provider import Kind
from xce.domain.formats.rest import CostLine
from xce.domain.values import LONGEST, read_total_time


@pytest.mark.parametrize("used", [timedelta(days=3_700), timedelta(days=365_000), LONGEST])
def test_what_many_hosts_used_is_said_and_read_however_long_it_is(used: timedelta) -> None:
    line = CostLine(
        provider="cloud",
        kind=Kind.HOST,
        item="c8",
        live=0,
        ended=100,
        used=used,
        billed=used,
        cost=Decimal(1),
        per_hour=Decimal(0),
        unpriced=0,
    )

    assert CostLine.from_json(line.to_json(), "costs") == line


@pytest.mark.parametrize("value", ["1000000000d", -1, "9" * 400 + "d", "soon", None, True])
def test_what_is_no_time_or_longer_than_any_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"out of range|not a duration"):
        read_total_time(value)
