"""The lines of ``lmstat`` one by one: what each kind looks like, and what it says.

User, host and display columns may hold anything, blanks and parentheses too, so a session is read from its right-hand end.
"""

import re
from datetime import date, datetime
from typing import Final, NamedTuple

#: What stands in a session between the columns of the client and the time it began, or the number it waits for.
STARTS: Final = "), start "
WAITS: Final = ") queued for "

SERVER_BLOCK: Final = re.compile(r"\s*License server status:\s*(.*\S)")
SERVER_FILES: Final = re.compile(r"\s*License files?(?:\(s\))? on ")
NO_STATUS: Final = re.compile(r"\s*Error getting status\b")
VENDOR_BLOCK: Final = re.compile(r"\s*Vendor daemon status\b")
FEATURE_BLOCK: Final = re.compile(r"\s*Feature usage info\b")
#: Between the blocks of two servers.
RULE: Final = re.compile(r"\s*-{20,}$")
#: A host or a vendor daemon, and how it is.
STATUS: Final = re.compile(r"\s*([^\s:]+):\s+(.*)$")
SERVER_UP: Final = re.compile(r"license server UP\b")
MASTER: Final = "(MASTER)"
VENDOR_UP: Final = re.compile(r"UP\b")

USERS_OF: Final = re.compile(r"\s*Users of ")
_COUNTED = re.compile(
    r"\s*Users of (.+):\s+\(Total of (\d{1,15}) licenses? issued;\s*Total of (\d{1,15}) licenses? in use\)"
)
_UNCOUNTED = re.compile(r"\s*Users of (.+):\s+\(Uncounted\b")
_ERROR = re.compile(r"\s*Users of (.+):\s+\(Error:\s*(?:(\d{1,15}) licenses?,\s*)?(.*?)\)?$")
_CANNOT = re.compile(r"\s*Users of (.+):\s+Cannot get users of \1:\s*(.*)$")
_OTHER = re.compile(r"\s*Users of (.+?):(?:\s+(.*))?$")

DETAIL: Final = re.compile(
    r'\s*"([^"]*)" (v\S*?), vendor: ([^\s,]+)(?:, pool: [^,]*)?(?:, expir\w*: (.*))?'
)
NODELOCKED: Final = re.compile(r"(?:uncounted )?node-?locked license\b")
FLOATING: Final = re.compile(r"floating license\b")
VENDOR_STRING: Final = re.compile(r"\s*vendor_string:")
RESERVATION: Final = re.compile(r"\s*(\d{1,15}) RESERVATIONs? for ")

#: The rest of a session behind ``STARTS``: date, licences, what lingers.
SESSION_END: Final = re.compile(
    r"(?:\S+ +)?(\d{1,2})/(\d{1,2}) +(\d{1,2}):(\d\d)(?:, (\d{1,15}) licenses?)?(?:, PID: \d+)?"
    r" *(?:\(linger: (?:(\d{1,15}) / )?(\d{1,15})\))?(?:,? *PID: \d+)?\s*$"
)
_COUNT = re.compile(r",\s*(\d{1,15}) licenses?\b")
_LINGER = re.compile(r"\(linger:\s*(?:(\d{1,15})\s*/\s*)?(\d{1,15})\)")
QUEUE_END: Final = re.compile(r"(\d{1,15}) licenses?\b")

_STATUS_TIME = re.compile(
    r"status on .*?(\d{1,4})([/.-])(\d{1,2})\2(\d{1,4})\.?,?\s+(\d{1,2}):(\d\d)(?::\d\d)?\s*([AaPp]\.?[Mm]\b)?"
)
_EXPIRY = re.compile(r"(\d{1,2})-([a-z]{3})-(\d{1,4})\b", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


class Header(NamedTuple):
    """A line "Users of": ``counted`` with its numbers, or ``uncounted``, or why the count is unknown."""

    name: str
    issued: int | None = None
    in_use: int | None = None
    uncounted: bool = False
    error: str | None = None


class SessionEnd(NamedTuple):
    """What stands behind ``STARTS``."""

    licences: int
    lingers: bool


def header_of(line: str) -> Header:
    """Return what a line that matches ``USERS_OF`` says; what is not understood is an error, never a number."""
    if found := _COUNTED.match(line):
        return Header(found[1], issued=int(found[2]), in_use=int(found[3]))
    if found := _UNCOUNTED.match(line):
        return Header(found[1], uncounted=True)
    if found := _CANNOT.match(line):
        return Header(found[1], error=found[2].strip() or "cannot get users")
    if found := _ERROR.match(line):
        issued = None if found[2] is None else int(found[2])
        return Header(found[1], issued=issued, error=found[3].strip() or "error")
    found = _OTHER.match(line)
    if found is None:
        return Header(line.strip().removeprefix("Users of "), error="not understood")
    return Header(found[1], error=(found[2] or "").strip() or "not understood")


def odd_session_end(rest: str) -> SessionEnd:
    """Return what stands behind ``STARTS`` where the date is written in another way."""
    count, linger = _COUNT.search(rest), _LINGER.search(rest)
    lingers = linger is not None and int(linger[1] or linger[2]) > 0
    return SessionEnd(1 if count is None else int(count[1]), lingers)


def status_time(line: str) -> datetime | None:
    """Return the "status on" time of a line, local to the machine that ran the tool; None: it has none."""
    found = _STATUS_TIME.search(line)
    if found is None:
        return None
    first, second, third = int(found[1]), int(found[3]), int(found[4])
    if len(found[1]) == 4:
        year, month, day = first, second, third
    elif found[2] == "." or first > 12:
        day, month, year = first, second, third
    else:
        month, day, year = first, second, third
    hour = int(found[5])
    if found[7]:
        hour = hour % 12 + (12 if found[7][0] in "Pp" else 0)
    try:
        return datetime(year, month, day, hour, int(found[6]))  # noqa: DTZ001 - the text has no zone
    except ValueError:
        return None


def expiry_of(text: str | None) -> date | None:
    """Return the end of a licence; None: it has none (year 0, "permanent"), or it is not understood."""
    found = None if text is None else _EXPIRY.search(text)
    if found is None or found[2].lower() not in _MONTHS or not int(found[3]):
        return None
    try:
        return date(int(found[3]), _MONTHS.index(found[2].lower()) + 1, int(found[1]))
    except ValueError:
        return None


def start_of(month: int, day: int, hour: int, minute: int, before: datetime) -> datetime | None:
    """Return the latest time with these numbers that is not after ``before``; None: there is none in eight years."""
    for year in range(before.year, max(1, before.year - 9), -1):
        try:
            start = datetime(year, month, day, hour, minute)  # noqa: DTZ001 - the text has no zone
        except ValueError:
            continue
        if start <= before:
            return start
    return None
