"""Exact fractions to decimal numbers, rounded once."""

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction


def rounded(value: Fraction, places: int) -> Decimal:
    """Return the decimal number of so many places next to an exact one, halves to even."""
    return Decimal(round(value * 10**places)).scaleb(-places)


def ratio(part: int, whole: int) -> Decimal | None:
    """Return a part of a whole to 4 places, None of nothing."""
    return rounded(Fraction(part, whole), 4) if whole else None


def money(parts: Iterable[Fraction | None]) -> Decimal | None:
    """Return the sum of exact costs, rounded once to the smallest money; None if one is unknown."""
    known: list[Fraction] = []
    for part in parts:
        if part is None:
            return None
        known.append(part)
    return rounded(sum(known, Fraction(0)), 6)
