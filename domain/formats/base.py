"""What all models of files and messages share: frozen, closed, exact; and errors with paths."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Self

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
from xce.domain.values import read_amount, read_duration, write_duration


def _utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("the time is outside the calendar once it is in UTC") from None


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
#: What something has: a part of a MiB is dropped.
Total = Annotated[int, BeforeValidator(_total), _AMOUNT_SCHEMA]
#: What something takes: a part of a MiB counts as one.
Need = Annotated[int, BeforeValidator(_need), _AMOUNT_SCHEMA]
#: A count that has no unit.
Count = Annotated[int, Field(ge=0, le=2**53 - 1)]
#: An exact amount of money in the controller's one currency; a decimal string in JSON.
Money = Annotated[
    Decimal,
    BeforeValidator(_money),
    Field(ge=0, max_digits=20, decimal_places=6),
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


class Format(BaseModel):
    """Base of the models of files and messages: a value, with no field unknown."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @classmethod
    def from_json(cls, text: str | bytes, source: str = "<text>") -> Self:
        """Return the model of a JSON document; numbers and texts are not taken for one another.

        Raises:
            InputError: not JSON, or not this format; it lists every problem with its path.
        """
        try:
            return cls.model_validate_json(text, strict=True)
        except ValidationError as error:
            raise InputError(source, problems_of(error)) from None

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the canonical JSON text: fields in declared order, the same bytes for equal values."""
        return self.model_dump_json(indent=indent)


def path_of(loc: tuple[int | str, ...]) -> str:
    """Return ``hosts[2].total.mem`` for ``("hosts", 2, "total", "mem")``."""
    text = ""
    for step in loc:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def problems_of(error: ValidationError) -> list[Problem]:
    """Return the problems of a pydantic error, each with its path."""
    return [_problem(item) for item in error.errors(include_url=False, include_input=True)]


def _problem(item: Any) -> Problem:
    message: str = item["msg"].removeprefix("Value error, ")
    kind: str = item["type"]
    value = item.get("input")
    if kind not in ("value_error", "missing", "extra_forbidden", "json_invalid") and isinstance(
        value, (str, int, float, bool, type(None))
    ):
        shown = repr(value) if len(repr(value)) <= 80 else repr(value)[:77] + "..."
        message = f"{message}, found {shown}"
    if kind == "extra_forbidden":
        message = "unknown field"
    elif kind == "missing":
        message = "required field is missing"
    return Problem(message, path_of(item["loc"]))
