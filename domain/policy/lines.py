"""Names of catalog lines: one line for each template and price.

A line has the template's own id as long as all its providers state one price. Where prices differ, each price is a line of its
own, ``c4@0.17`` and ``c4@0.25``, so that a session that counts money sees both; ``c4@?`` is the line of unknown price. A demand
for ``c4`` itself may be served at any price.
"""

from collections.abc import Iterable
from decimal import Decimal


def line_id(template: str, price: Decimal | None) -> str:
    """Return the name of the line of a template at one of its several prices."""
    return f"{template}@{'?' if price is None else format(price.normalize(), 'f')}"


def line_ids(template: str, prices: Iterable[Decimal | None]) -> dict[Decimal | None, str]:
    """Return the name of the line of each price at which a template is offered."""
    distinct = set(prices)
    if len(distinct) <= 1:
        return dict.fromkeys(distinct, template)
    return {price: line_id(template, price) for price in distinct}
