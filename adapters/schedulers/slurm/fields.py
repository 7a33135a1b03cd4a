"""Fields of what Slurm prints, over its versions: numbers with and without a wrapper, texts with and without a list around them.

A field that is missing, null or not set is its default; one that is not known is never looked at; one of a wrong type is an error that names
the command and the field.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, cast

from xce.domain.errors import Problem
from xce.domain.formats.base import path_of

Path = tuple[str | int, ...]

_CONTROL: Final = dict.fromkeys((*range(32), 127), "?")
#: Nothing of a cluster is later than this, in the year 2900.
_SECONDS_MAX: Final = 29_379_110_400

#: Slurm's words for "not set" and "no limit" in 32 and 64 bits.
_NOT_SET: Final = frozenset({0xFFFFFFFE, 0xFFFFFFFF, 2**64 - 2, 2**64 - 1})


class WrongFieldError(Exception):
    """A field has a type that no version of Slurm gives it."""

    def __init__(self, path: Path, found: object, wanted: str) -> None:
        shown = repr(found)
        if len(shown) > 60:
            shown = f"{shown[:57]}..."
        self.problem = Problem(f"found {shown}, wanted {wanted}", path_of(path))
        super().__init__(str(self.problem))


class Fields:
    """One record, and where it stands."""

    __slots__ = ("path", "values")

    def __init__(self, values: Mapping[str, object], path: Path) -> None:
        self.values = values
        self.path = path

    def whole(self, name: str) -> int | None:
        """Return a number that is not negative; None: not there, not set, or without limit."""
        value = self.values.get(name)
        if type(value) is int:
            return None if value < 0 or value in _NOT_SET else value
        return None if value is None else _whole(value, (*self.path, name))

    def text(self, name: str) -> str:
        """Return a text; "" where there is none. Control characters, which no name has, become question marks."""
        value = self.values.get(name)
        if type(value) is str:
            return value if value.isprintable() else value.translate(_CONTROL)
        if value is None:
            return ""
        raise WrongFieldError((*self.path, name), value, "a text")

    def words(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; one text alone is a list of one."""
        value = self.values.get(name)
        if value is None or value == "":
            return ()
        if type(value) is str:
            return (self.text(name),)
        if isinstance(value, list):
            found = cast("list[object]", value)
            for place, one in enumerate(found):
                if type(one) is not str:
                    raise WrongFieldError((*self.path, name, place), one, "a text")
            return tuple(one.translate(_CONTROL) for one in cast("list[str]", found))
        raise WrongFieldError((*self.path, name), value, "a text or a list of texts")

    def yes(self, name: str) -> bool:
        """Return a flag; False where there is none."""
        value = self.values.get(name)
        if value is None or type(value) is bool:
            return bool(value)
        raise WrongFieldError((*self.path, name), value, "true or false")

    def time(self, name: str) -> datetime | None:
        """Return a point in time from seconds since 1970; None: not known."""
        seconds = self.whole(name)
        if not seconds:
            return None
        if seconds > _SECONDS_MAX:
            raise WrongFieldError((*self.path, name), seconds, "seconds since 1970")
        return datetime.fromtimestamp(seconds, UTC)

    def record(self, name: str) -> "Fields":
        """Return a record within this one; an empty one where there is none."""
        value = self.values.get(name)
        if value is None:
            return Fields({}, (*self.path, name))
        if isinstance(value, dict):
            return Fields(cast("dict[str, object]", value), (*self.path, name))
        raise WrongFieldError((*self.path, name), value, "an object")

    def records(self, name: str) -> "list[Fields]":
        """Return a list of records; an empty one where there is none."""
        value = self.values.get(name)
        return [] if value is None else records_of(value, (*self.path, name))

    def has(self, name: str) -> bool:
        """Return whether there is a field of this name that is not null."""
        return self.values.get(name) is not None


def document_of(value: object) -> Fields:
    """Return the fields of a whole JSON document.

    Raises:
        WrongFieldError: it is no object.
    """
    if not isinstance(value, dict):
        raise WrongFieldError((), value, "an object")
    return Fields(cast("dict[str, object]", value), ())


def listed(document: object, name: str) -> list[Fields]:
    """Return the records of a whole JSON document: one that tells of errors in place of records is none.

    Raises:
        WrongFieldError: it is no object with a list of that name, or the list is empty because something failed.
    """
    top = document_of(document)
    found = records_of(top.values.get(name), (name,))
    failed = top.values.get("errors")
    if not found and failed:
        raise WrongFieldError(("errors",), failed, f"{name}, and no errors")
    return found


def records_of(value: object, path: Path) -> list[Fields]:
    """Return the records of a list.

    Raises:
        WrongFieldError: it is no list of objects.
    """
    if not isinstance(value, list):
        raise WrongFieldError(path, value, "a list")
    found: list[Fields] = []
    for place, one in enumerate(cast("Sequence[object]", value)):
        if not isinstance(one, dict):
            raise WrongFieldError((*path, place), one, "an object")
        found.append(Fields(cast("dict[str, object]", one), (*path, place)))
    return found


def _whole(value: object, path: Path) -> int | None:
    if isinstance(
        value, dict
    ):  # {"set": true, "infinite": false, "number": 5}, from Slurm 23.02 on
        wrapped = Fields(cast("dict[str, object]", value), path)
        if "number" not in wrapped.values:
            raise WrongFieldError(path, cast(object, value), "a whole number")
        is_set = wrapped.yes("set") if wrapped.has("set") else True
        return wrapped.whole("number") if is_set and not wrapped.yes("infinite") else None
    if isinstance(value, float) and value.is_integer():
        number = int(value)
        return None if number < 0 or number in _NOT_SET else number
    raise WrongFieldError(path, value, "a whole number")
