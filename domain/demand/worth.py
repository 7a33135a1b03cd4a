"""What a unit of each resource is worth: the dual prices of buying what jobs need from templates by the fraction.

Only proposals are made from these numbers; what is demanded is decided by placing jobs. They are floating
point, from additions, multiplications and divisions in a fixed order, so they are the same everywhere.
"""

from collections.abc import Sequence
from typing import Final

#: Smaller than any real price or amount that counts here.
_EPSILON: Final = 1e-12
_PIVOTS_MAX: Final = 1_000


def dual_prices(
    need: Sequence[float], provides: Sequence[Sequence[float]], prices: Sequence[float]
) -> list[float]:
    """Return, for each resource, the price of one unit more in the cheapest fractional mix of templates.

    ``provides`` has a row for each template. A resource that no template provides is worth nothing here.

    The mix is found by the dual simplex method on one row for each resource. Prices are not negative, so
    buying nothing is a start that only lacks supply, and each step buys the resource that lacks most.
    """
    columns = len(prices)
    wanted = [
        r for r, amount in enumerate(need) if amount > 0 and any(row[r] > 0 for row in provides)
    ]
    # One row a resource: what is provided, minus what is too much, must be what is needed. Scaled to need 1.
    rows: list[list[float]] = []
    for number, r in enumerate(wanted):
        row = [-provided[r] / need[r] for provided in provides]
        row += [1.0 if other == number else 0.0 for other in range(len(wanted))]
        row.append(-1.0)
        rows.append(row)
    costs = [*prices, *([0.0] * len(wanted))]
    for _ in range(_PIVOTS_MAX):
        lacking = min(range(len(rows)), key=lambda number: (rows[number][-1], number), default=None)
        if lacking is None or rows[lacking][-1] >= -_EPSILON:
            break
        pivot_row = rows[lacking]
        entering, best = -1, 0.0
        for column in range(columns + len(wanted)):
            if pivot_row[column] < -_EPSILON:
                ratio = costs[column] / -pivot_row[column]
                if entering < 0 or ratio < best - _EPSILON:
                    entering, best = column, ratio
        if entering < 0:
            break
        factor = pivot_row[entering]
        pivot_row = rows[lacking] = [value / factor for value in pivot_row]
        for number, row in enumerate(rows):
            if number != lacking and abs(row[entering]) > 0:
                times = row[entering]
                rows[number] = [a - times * b for a, b in zip(row, pivot_row, strict=True)]
        times = costs[entering]
        costs = [a - times * b for a, b in zip(costs, pivot_row, strict=False)]
    worth = [0.0] * len(need)
    for number, r in enumerate(wanted):
        worth[r] = max(0.0, costs[columns + number]) / need[r]
    return worth
