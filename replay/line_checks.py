"""What the lines of a recording must hold before anybody builds on them: texts, objects, and times with their zone."""

from datetime import UTC, datetime
from typing import Any, Final, cast

#: As much of a wrong value as an error shows.
_SHOWN_MAX: Final = 40


def text(value: object, what: str) -> str:
    """Return a text.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(value, str):
        raise TypeError(f"{what}: wanted a text")
    return value


def document(value: object, what: str) -> dict[str, Any]:
    """Return an object.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(value, dict):
        raise TypeError(f"{what}: wanted an object")
    return cast("dict[str, Any]", value)


def time(value: object, what: str) -> str:
    """Return a time as it was written.

    Raises:
        TypeError: it is none, or says no zone.
    """
    written = text(value, what)
    try:
        at = datetime.fromisoformat(written)
        if at.tzinfo is not None:
            at.astimezone(UTC)
            return written
    except (ValueError, OverflowError):
        pass
    raise TypeError(f"{what}: {written[:_SHOWN_MAX]!r} is no time with a zone")


def event(value: object) -> dict[str, Any]:
    """Return an event that has its place and its time.

    Raises:
        KeyError: one of them is missing.
        TypeError: it is no event.
    """
    made = document(value, "event")
    if type(made["position"]) is not int:
        raise TypeError("event.position: wanted a number")
    time(made["at"], "event.at")
    return made


def answer(line: dict[str, Any]) -> dict[str, Any]:
    """Return what a provider answered, when, and to what.

    Raises:
        KeyError: a part is missing.
        TypeError: a part is something else.
    """
    time(line["at"], "at")
    text(line["provider"], "provider")
    document(line["call"], "call")
    document(line["answer"], "answer")
    return {key: value for key, value in line.items() if key != "kind"}
