"""Exact arithmetic with money: no rounding, whatever decimal context the caller's thread has."""

from collections.abc import Iterable
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Final

#: Wide enough for any price (20 digits) times any amount (16 digits), summed; a rounding would be an error.
_EXACT: Final = Context(prec=60, traps=[Inexact, InvalidOperation])

ZERO: Final = Decimal(0)
_BEYOND: Final = Decimal(10**14)
#: The most that a format holds, in whole units of money.
MOST: Final = Decimal(10**14 - 1)


def times(price: Decimal, amount: int) -> Decimal:
    """Return the price of ``amount``."""
    return _EXACT.multiply(price, Decimal(amount))


def plus(first: Decimal, second: Decimal) -> Decimal:
    """Return the exact sum of two."""
    return _EXACT.add(first, second)


def cost_of(parts: Iterable[tuple[Decimal | None, int]]) -> Decimal | None:
    """Return the cost of amounts at their prices, as a decision shows it.

    None if any price is unknown, or if the sum has more than the 14 digits before the point that the format holds.
    """
    result = ZERO
    for price, amount in parts:
        if price is None:
            return None
        result = plus(result, times(price, amount))
    return result if result < _BEYOND else None


def at_most(amount: Decimal) -> Decimal:
    """Return an amount as a format can hold it: of more, the most."""
    return min(amount, MOST)


def millionths(number: int) -> Decimal:
    """Return so many millionths, exactly, whatever the decimal context."""
    return Decimal((0, tuple(map(int, str(number))), -6))


def how_many(money: Decimal, price: Decimal) -> int:
    """Return how many of a price above 0 the money pays for, 0 where there is none left."""
    return int(_EXACT.divide_int(money, price)) if money > 0 else 0


def plain(money: Decimal | None) -> str:
    """Return an amount for people: at least two decimals, no exponent, ``unknown`` where it is."""
    if money is None:
        return "unknown"
    whole, _, part = format(money, "f").partition(".")
    return f"{whole}.{part.rstrip('0').ljust(2, '0')}"
