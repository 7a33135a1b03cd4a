"""Numbers as people read them. Everything here loses precision; the exact figures are in the JSON."""

from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Final

from xce.domain.values import write_duration

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400
UNKNOWN: Final = "unknown"
#: Where there is nothing to say: a dash.
NOTHING: Final = "\u2013"


def count(value: int) -> str:
    """Return a count with its thousands apart."""
    return f"{value:,}".replace(",", "\u202f")


def number(value: Decimal | Fraction, places: int) -> str:
    """Return a number with so many places and its thousands apart."""
    return f"{Decimal(round(value * 10**places)).scaleb(-places):,}".replace(",", "\u202f")


def money(value: Decimal | None) -> str:
    """Return an amount of money to two places."""
    return UNKNOWN if value is None else number(value, 2)


def price(value: Decimal | None) -> str:
    """Return a price as it was given, with at least two places."""
    if value is None:
        return UNKNOWN
    whole, _, part = format(value, "f").partition(".")
    return f"{whole}.{part.rstrip('0').ljust(2, '0')}"


def hours(seconds: int) -> str:
    """Return hours to one place."""
    return number(Fraction(seconds, _HOUR), 1)


def percent(value: Decimal | None) -> str:
    """Return a ratio in per cent to one place."""
    return NOTHING if value is None else f"{number(value * 100, 1)}\u202f%"


def span(seconds: int | Decimal | None) -> str:
    """Return a length of time as everywhere else, rounded so that no more than two units say it."""
    if seconds is None:
        return NOTHING
    whole = round(seconds)
    for above, unit in ((_DAY, _HOUR), (_HOUR, _MINUTE)):
        rounded = (whole + unit // 2) // unit * unit
        if whole >= above:
            return write_duration(timedelta(seconds=rounded))
    return write_duration(timedelta(seconds=whole))


def length(seconds: int) -> str:
    """Return how long a whole run is: days to one place where there are several."""
    return f"{number(Fraction(seconds, _DAY), 1)} days" if seconds > 2 * _DAY else span(seconds)


def time(at: datetime | None) -> str:
    """Return a time in UTC, to the second."""
    return NOTHING if at is None else f"{at:%Y-%m-%d %H:%M:%S}"


def some(names: tuple[str, ...], shown: int = 3) -> str:
    """Return the first names and how many more there are."""
    listed = ", ".join(names[:shown])
    return listed if len(names) <= shown else f"{listed} and {count(len(names) - shown)} more"
