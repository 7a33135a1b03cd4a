"""The state of an aggregate as a plain document: the same JSON for equal states, whoever asks and whenever."""

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any, cast

from pydantic_core import to_json

from xce.domain.events.base import Aggregate
from xce.domain.values import write_duration


def document_of(aggregate: Aggregate[Any]) -> bytes:
    """Return all that an aggregate holds, as one JSON object.

    First ``id``, ``version`` (number of its events), ``created_at`` and ``changed_at`` (times of the first and the last of them), then
    its own fields by their names. Times are RFC 3339 UTC, durations texts such as ``1h30m``, money decimal texts. A key that is
    nothing in the program (the pause of a whole provider) is the empty text.
    """
    fields: dict[str, object] = {
        "id": aggregate.id,
        "version": aggregate.version,
        "created_at": aggregate.created_on,
        "changed_at": aggregate.modified_on,
    }
    for name, value in vars(aggregate).items():
        if not name.startswith("_"):
            fields[name] = _plain(value)
    return to_json(fields, by_alias=False, inf_nan_mode="strings")


def _plain(value: object) -> object:
    """Return a field as JSON has it, where the serializer alone would not say it in one way or in our way."""
    match value:
        case timedelta():
            return write_duration(value)
        case Decimal():
            return f"{value:f}"
        case set() | frozenset():
            return sorted(cast("frozenset[str]", value))
        case dict() if None in value:
            mapping = cast("Mapping[str | None, object]", value)
            return {"" if key is None else key: item for key, item in mapping.items()}
        case _:
            return value
