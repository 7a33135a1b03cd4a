"""What all models of files and messages share: frozen, closed, exact; and errors with paths."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from difflib import get_close_matches
from typing import Annotated, Any, Self, cast

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
)

from xce.domain.errors import InputError, Problem
from xce.domain.values import read_amount, read_duration, read_total_time, write_duration


def _utc(value: datetime) -> datetime:
    if not _YEARS[0] < value.year < _YEARS[1]:  # also leaves room for sums with durations
        raise ValueError(f"{value.isoformat()} is out of range; wanted a year from 1901 to 2998")
    return value.astimezone(UTC)


def _rfc3339(value: datetime) -> str:
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _need(value: object) -> int:
    return read_amount(value, round_up=True)


def _total(value: object) -> int:
    return read_amount(value, round_up=False)


def _money(value: object) -> object:
    if isinstance(value, Decimal):
        return value
    if not isinstance(value, str) or not _MONEY.fullmatch(value):
        raise ValueError(f'{value!r} is not money; wanted a decimal string such as "0.17"')
    return Decimal(value)


def _plain_decimal(value: Decimal) -> str:
    return format(value, "f")


_YEARS = (1900, 2999)
_MONEY = re.compile(r"\d{1,14}(\.\d{1,6})?", re.ASCII)

_AMOUNT_SCHEMA = WithJsonSchema(
    {
        "anyOf": [
            {"type": "integer", "minimum": 0},
            {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*[A-Za-z]*\s*$"},
        ],
        "description": 'an integer in base units (slots, tokens, MiB), or text with a unit, such as "8GiB"',
    }
)

#: A point in time, always UTC once read; written as RFC 3339 with Z.
Time = Annotated[AwareDatetime, AfterValidator(_utc), PlainSerializer(_rfc3339, when_used="json")]
#: A length of time; written as ``1h30m``.
Duration = Annotated[
    timedelta,
    BeforeValidator(read_duration),
    PlainSerializer(write_duration, when_used="json"),
    WithJsonSchema(
        {"type": ["string", "integer"], "description": 'a text such as "15min" or "1h", or seconds'}
    ),
]
#: The time of many things together, which is not bounded.
TotalTime = Annotated[
    timedelta,
    BeforeValidator(read_total_time),
    PlainSerializer(write_duration, when_used="json"),
    WithJsonSchema(
        {"type": ["string", "integer"], "description": 'a text such as "15min" or "1h", or seconds'}
    ),
]
#: What something has: a part of a MiB is dropped.
Total = Annotated[int, BeforeValidator(_total), _AMOUNT_SCHEMA]
#: What something takes: a part of a MiB counts as one.
Need = Annotated[int, BeforeValidator(_need), _AMOUNT_SCHEMA]
#: A count that has no unit.
Count = Annotated[int, Field(ge=0, le=2**53 - 1)]
#: A count of hosts or units, at least one.
Amount = Annotated[int, Field(ge=1, le=2**53 - 1)]
#: What one grant lends: so little that thousands of them, and what is owned, are a count still.
Lent = Annotated[int, Field(ge=1, le=10**12)]
#: An exact amount of money in the controller's one currency; a decimal string in JSON.
Money = Annotated[
    Decimal,
    # First, so that pydantic checks it where it makes the Decimal, and not in Python.
    Field(ge=0, max_digits=20, decimal_places=6),
    BeforeValidator(_money),
    PlainSerializer(_plain_decimal, return_type=str, when_used="json"),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": r"^\d+(\.\d+)?$",
            "description": 'a decimal string, such as "0.17"',
        }
    ),
]
#: A name of a host, job, resource, user, template...
Name = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]+$")]


#: A whole number of either sign that every reader of JSON keeps exact.
Whole = Annotated[int, Field(strict=True, ge=-(2**53) + 1, le=2**53 - 1)]


class Format(BaseModel):
    """Base of the models of files and messages: a value, with no field unknown."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @classmethod
    def from_json(cls, text: str | bytes, source: str = "<text>") -> Self:
        """Return the model of a JSON document; numbers and texts are not taken for one another.

        Raises:
            InputError: not JSON, or not this format; it lists every problem with its path.
        """
        document = _decoded(text, source)
        try:
            model = cls.model_validate_json(document, strict=True)
        except ValidationError as error:
            raise InputError(source, _of_another_format(error) or problems_of(error)) from None
        if problems := list(repeated_keys(document)):
            raise InputError(source, problems)
        return model

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the canonical JSON text: fields in declared order, the same bytes for equal values."""
        return self.model_dump_json(indent=indent)


def _decoded(text: str | bytes, source: str) -> str:
    """Return a document as text: UTF-8, without a byte order mark, not empty."""
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            where = f"byte 0x{error.object[error.start]:02x} at offset {error.start}"
            raise InputError.of(source, f"is not UTF-8 text: {where}") from None
    elif surrogate := _SURROGATE.search(text):
        found = f"{surrogate[0]!r} at offset {surrogate.start()}"
        raise InputError.of(source, f"is not Unicode text: lone surrogate {found}")
    if text.startswith("\ufeff"):
        raise InputError.of(source, "starts with a byte order mark; wanted UTF-8 without", line=1)
    if not text.strip():
        raise InputError.of(source, "is empty; wanted one JSON document")
    return text


def repeated_keys(document: str) -> Iterator[Problem]:
    """Yield a problem for each key that a JSON object of a readable document has more than once.

    Readers disagree on which of the values counts, so a document that says two things says nothing.
    """
    if not _has_repeated_keys(document):
        return
    todo: list[tuple[tuple[int | str, ...], object]] = [
        ((), json.loads(document, object_pairs_hook=_Pairs))
    ]
    while todo:
        loc, value = todo.pop()
        if isinstance(value, _Pairs):
            counts = Counter(key for key, _ in value)
            yield from (
                Problem("the key is there twice", path_of((*loc, key)))
                for key in counts
                if counts[key] > 1
            )
            todo += reversed([((*loc, key), child) for key, child in value])
        elif isinstance(value, list):
            todo += reversed(
                [((*loc, i), child) for i, child in enumerate(cast(list[object], value))]
            )


class _Pairs(list[tuple[str, object]]):
    """A JSON object with all its keys."""


def _has_repeated_keys(document: str) -> bool:
    found = False

    def note(pairs: list[tuple[str, object]]) -> None:
        nonlocal found
        if len(pairs) > 1:
            found = found or len(dict(pairs)) < len(pairs)

    json.loads(document, object_pairs_hook=note)
    return found


def path_of(loc: tuple[int | str, ...]) -> str:
    """Return ``hosts[2].total.mem`` for ``("hosts", 2, "total", "mem")``.

    A name that is no plain word is quoted, so that a path is one line: ``units["a b"]``.
    """
    text = ""
    for step in loc:
        if isinstance(step, int):
            text += f"[{step}]"
        elif not _PLAIN_STEP.fullmatch(step):
            text += f"[{json.dumps(step) if len(step) <= 80 else json.dumps(step[:77] + '...')}]"
        else:
            text += f".{step}" if text else step
    return text


def _of_another_format(error: ValidationError) -> list[Problem]:
    """Return the one problem of a document that says it is something else: its fields say nothing then."""
    return [
        _problem(item)
        for item in error.errors(include_url=False, include_input=True)
        if item["loc"] == ("format",) and item["type"] == "literal_error"
    ]


def problems_of(error: ValidationError) -> list[Problem]:
    """Return the problems of a pydantic error, each with its path: one for one, in its order."""
    return [_problem(item) for item in error.errors(include_url=False, include_input=True)]


def _problem(item: Any) -> Problem:
    message: str = item["msg"].removeprefix("Value error, ")
    kind: str = item["type"]
    loc: tuple[int | str, ...] = item["loc"]
    if kind == "json_invalid":
        found = _JSON_PLACE.fullmatch(message)
        assert found is not None, message
        return Problem(f"is not JSON: {found[1]}", "", int(found[2]), int(found[3]))
    if kind == "extra_forbidden":
        message = "unknown field"
    elif kind == "missing":
        message = "required field is missing"
    elif kind == "union_tag_not_found":
        message = f"{_bare(item['ctx']['discriminator'])}: required field is missing"
    elif kind == "union_tag_invalid":
        message = _unknown_tag(item["ctx"])
    elif kind != "value_error":
        message = f"{message}, found {_shown(item.get('input'))}"
    if loc and loc[-1] == "[key]":  # a name in an object is wrong, not the value under it
        loc = loc[:-2]
        message = f"name: {message}"
    if len(message) > _MESSAGE_MAX:
        message = f"{message[: _MESSAGE_MAX // 2]} ... {message[-_MESSAGE_MAX // 2 :]}"
    return Problem(message, path_of(loc))


def _unknown_tag(context: Mapping[str, Any]) -> str:
    """Return the message for a field that says which of several objects is meant, and says none of them."""
    tag, known = str(context["tag"]), _bare(context["expected_tags"]).split(", ")
    near = get_close_matches(tag, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"wanted one of {', '.join(known)}"
    return f"{_bare(context['discriminator'])}: {_shown(tag)} is unknown; {hint}"


def _bare(quoted: object) -> str:
    return str(quoted).replace("'", "")


def _shown(value: object) -> str:
    """Return a value for a message: texts and numbers as they are, shortened; others by their kind."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "an array"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


_MESSAGE_MAX = 300
_PLAIN_STEP = re.compile(r"[^\s.\[\]\"\x00-\x1f\x7f]{1,80}")
_JSON_PLACE = re.compile(r"(?:Invalid JSON: )?(.*) at line (\d+) column (\d+)", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
