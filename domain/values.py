"""Reading and writing of plain values: amounts, durations, names in order.

Amounts are integers in base units: slots and tokens are counts, memory and disk are MiB.
"""

import re
from datetime import timedelta
from typing import Final

#: Size suffixes. K, KB and KiB are all 1024 bytes, as in LSF and Slurm.
BYTES_OF_UNIT: Final[dict[str, int]] = {
    name: 1024**power
    for power, letter in enumerate("kmgtpe", start=1)
    for name in (letter, f"{letter}b", f"{letter}ib")
} | {"b": 1}

MIB: Final = 1024**2

_AMOUNT = re.compile(r"(?P<number>\d{1,40}(?:\.\d{1,40})?)\s*(?P<unit>[A-Za-z]*)", re.ASCII)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.ASCII)
_SECONDS_OF_UNIT: Final[dict[str, int]] = {
    "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800,
}  # fmt: skip
#: More than any amount that exists, and small enough for SQLite and JSON readers.
AMOUNT_MAX: Final = 2**53 - 1


def bytes_of_unit(unit: str) -> int:
    """Return the bytes of a size suffix such as ``GiB``, upper or lower case.

    Raises:
        ValueError: the suffix is not known; the message lists those that are.
    """
    try:
        return BYTES_OF_UNIT[unit.lower()]
    except KeyError:
        raise ValueError(
            f"unknown unit {unit!r}; wanted one of KiB, MiB, GiB, TiB, PiB, EiB"
        ) from None


def scale(number: str, unit_bytes: int, *, round_up: bool) -> int:
    """Return decimal ``number`` units as whole MiB, exact, rounded in the stated direction."""
    whole, _, part = number.partition(".")
    numerator = int(whole + part) * unit_bytes
    denominator = int(f"1{'0' * len(part)}") * MIB
    return -(-numerator // denominator) if round_up else numerator // denominator


def read_amount(value: object, *, round_up: bool) -> int:
    """Return an amount in base units from an integer or from text such as ``"8GiB"``.

    Args:
        value: an integer >= 0, or digits with an optional size suffix; with a suffix the result is MiB.
        round_up: what to do with a part of a MiB: up for a need, down for a total.

    Raises:
        ValueError: anything else; the message names the value and what was wanted.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        amount = value
    elif isinstance(value, str) and (match := _AMOUNT.fullmatch(value.strip())):
        number, unit = match["number"], match["unit"]
        if unit:
            amount = scale(number, bytes_of_unit(unit), round_up=round_up)
        elif "." in number:
            raise ValueError(f"{value!r} is not a whole number and has no unit")
        else:
            amount = int(number)
    else:
        raise ValueError(f"{value!r} is not an amount; wanted an integer, or a text such as '8GiB'")
    if not 0 <= amount <= AMOUNT_MAX:
        raise ValueError(f"{value!r} is out of range; wanted 0 to {AMOUNT_MAX}")
    return amount


_TEN_YEARS: Final = timedelta(days=10 * 365)
#: The longest time that there is.
LONGEST: Final = timedelta(days=999_999_999)


def read_duration(value: object) -> timedelta:
    """Return a duration >= 0 from text such as ``"90s"``, ``"1h30m"``, ``"2d"``, or from whole seconds.

    Units: s, sec, m, min, h, d, w. Kept to whole seconds.

    Raises:
        ValueError: anything else.
    """
    return _duration(value, _TEN_YEARS, "ten years")


def read_total_time(value: object) -> timedelta:
    """Return the time of many things together, which a hundred hosts make a year of in four days: a duration of any length.

    Raises:
        ValueError: anything else.
    """
    return _duration(value, LONGEST, "a billion days")


def _duration(value: object, most: timedelta, in_words: str) -> timedelta:
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, int) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str) and value.strip():
        seconds, rest = 0.0, value.strip().lower()
        while rest:
            match = _DURATION.match(rest)
            if match is None or match[2] not in _SECONDS_OF_UNIT:
                raise ValueError(
                    f"{value!r} is not a duration; wanted a text such as '90s', '15min', '1h30m' or '2d'"
                )
            seconds += float(match[1]) * _SECONDS_OF_UNIT[match[2]]
            rest = rest[match.end() :]
    else:
        raise ValueError(
            f"{value!r} is not a duration; wanted a text such as '90s', '15min', '1h30m' or '2d'"
        )
    if not 0 <= seconds <= most.total_seconds():
        raise ValueError(f"{value!r} is out of range; wanted 0 to {in_words}")
    return timedelta(seconds=round(seconds))


def write_duration(value: timedelta) -> str:
    """Return the shortest text that ``read_duration`` reads back: ``1h30m``, ``45s``, ``0s``."""
    rest = round(value.total_seconds())
    parts: list[str] = []
    for unit in ("d", "h", "m", "s"):
        count, rest = divmod(rest, _SECONDS_OF_UNIT[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


_DIGITS = re.compile(r"(\d+)", re.ASCII)


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key in which runs of digits compare as numbers: h2 before h10.

    The order is total: two names have the same key only if they are equal.
    """
    return tuple(
        (0, int(part), part) if part.isdigit() and part.isascii() else (1, 0, part)
        for part in _DIGITS.split(name)
        if part
    )
