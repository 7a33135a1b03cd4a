"""Costs as the controller tells them."""

from datetime import timedelta
from decimal import Decimal

from xce.adapters.controller.questions import cost_line
from xce.domain.formats.provider import Kind
from xce.domain.formats.rest import CostLine
from xce.domain.policy import money
from xce.projections.spending import SpendingLine


def test_sums_beyond_what_a_format_holds_are_told_as_the_most_and_stop_no_list() -> None:
    many = 2**60
    line = SpendingLine(
        provider="pool",
        kind=Kind.COUNTABLE,
        item="lic",
        live=many,
        ended=many,
        used=timedelta(days=1),
        billed=timedelta(days=1),
        cost=money.MOST + 1,
        per_hour=Decimal("0.50"),
        unpriced=many,
    )

    told = cost_line(line)

    assert (told.live, told.ended, told.unpriced) == (2**53 - 1,) * 3
    assert told.cost == money.MOST
    assert CostLine.from_json(told.to_json()) == told
