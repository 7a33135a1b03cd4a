"""The small parts of the language: limits, reserved words, names, numbers and quoted texts."""

import re
from fractions import Fraction
from typing import Final

from xce.domain.cluster.requirement import Number
from xce.domain.values import BYTES_OF_UNIT

TEXT_MAX: Final = 65_536  # characters of a whole requirement
DEPTH_MAX: Final = 50  # levels of ( ) and ! in a selection
DIGITS_MAX: Final = 18  # digits of a number
COUNT_MAX: Final = 1_000_000  # tasks of a part, or of a host
NAME_MAX: Final = 256  # characters of a name

SECTIONS: Final = ("select", "rusage", "span", "same", "order", "exclusive")
#: Words that are names only in quotes.
RESERVED: Final = frozenset((*SECTIONS, "defined", "true", "false"))
#: Options of LSF's rusage that would read as resources; names there only in quotes.
LSF_OPTIONS: Final = frozenset(("duration", "decay"))

UNITS_TEXT: Final = "B, KiB, MiB, GiB, TiB, PiB, EiB (K, KB and KiB are the same)"

#: Names and texts that need no quotes.
BARE_NAME: Final = re.compile(r"[A-Za-z_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?", re.ASCII)
BARE_TEXT: Final = re.compile(r"[A-Za-z_](?:[A-Za-z0-9_.+:/@-]*[A-Za-z0-9_+])?", re.ASCII)
_NUMBER: Final = re.compile(r"(-?)([0-9]+(?:\.[0-9]+)?)([A-Za-z]*)", re.ASCII)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


class WordError(ValueError):
    """A word that cannot be what its place asks for; ``offset`` is where in the word."""

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


def read_number(field: str, text: str) -> Number | None:
    """Return the number that a bare word is, None if it does not look like one.

    Args:
        field: the name that the number is for, for the messages.
        text: the whole word.

    Raises:
        WordError: it looks like a number and is none: an unknown unit, too many digits.
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    sign, digits, unit = match.groups()
    if unit and unit.lower() not in BYTES_OF_UNIT:
        raise WordError(
            f'{field}: unknown unit "{shortened(unit)}"; wanted one of {UNITS_TEXT}', match.start(3)
        )
    if (count := len(digits) - digits.count(".")) > DIGITS_MAX:
        raise WordError(f"{field}: a number has at most {DIGITS_MAX} digits, found {count}")
    return Number(Fraction(sign + digits), unit)


def write_number(number: Number) -> str:
    """Return the shortest text of a number.

    Raises:
        ValueError: it is not a decimal number of so few digits.
    """
    for places in range(DIGITS_MAX):
        scaled = number.value * 10**places
        if scaled.denominator == 1:
            digits = str(abs(scaled.numerator)).rjust(places + 1, "0")
            whole, part = digits[: len(digits) - places], digits[len(digits) - places :]
            sign = "-" if number.value < 0 else ""
            return sign + whole + ("." + part if part else "") + number.unit
    raise ValueError(f"{number.value} is not a decimal number of at most {DIGITS_MAX} digits")


def unquote(text: str) -> str:
    """Return what stands between the quotes, with its escapes resolved."""
    inner = text[1:-1]
    return _ESCAPE.sub(r"\1", inner) if "\\" in inner else inner


def quote(text: str) -> str:
    """Return the text in double quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def shortened(text: str) -> str:
    """Return a text for a message: at most 40 characters, others escaped that do not print."""
    shown = text if len(text) <= 40 else text[:37] + "..."
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in shown)
