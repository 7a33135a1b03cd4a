"""Making many models of values that are known to be right, without validation.

``model_construct`` does the same for any model; it looks at defaults, aliases and extra fields of each
instance and keeps a set of its own in each. Sessions make tens of thousands of small models.
"""

from collections import deque
from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any, Final, TypeVar

from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)

_set = object.__setattr__
#: What sets each slot of a model; a name that pydantic does not have any more is an error here and not later.
_SETTERS: Final[tuple[Callable[[object, Any], None], ...]] = tuple(
    vars(BaseModel)[name].__set__
    for name in (
        "__dict__",
        "__pydantic_fields_set__",
        "__pydantic_extra__",
        "__pydantic_private__",
    )
)
_fields_of: dict[type[BaseModel], set[str]] = {}


def all_built(model: type[M], values: Iterable[dict[str, Any]]) -> list[M]:
    """Return many models as ``built`` makes them, each step for all of them at once."""
    rows = list(values)
    if not rows:
        return []
    fields = _fields(model, rows[0])
    made: list[M] = list(map(object.__new__, repeat(model, len(rows))))
    given: tuple[Iterable[Any], ...] = (rows, repeat(fields), repeat(None), repeat(None))
    for setter, column in zip(_SETTERS, given, strict=True):
        deque(map(setter, made, column), maxlen=0)
    return made


def built(model: type[M], values: dict[str, Any]) -> M:
    """Return a model of these values: every field of it, in declared order, and nothing else.

    The dictionary becomes the model's own. The set of given fields is shared by all models of a class.
    """
    fields = _fields_of.get(model)
    if fields is None:
        fields = _fields(model, values)
    made = model.__new__(model)
    _set(made, "__dict__", values)
    _set(made, "__pydantic_fields_set__", fields)
    _set(made, "__pydantic_extra__", None)
    _set(made, "__pydantic_private__", None)
    return made


def _fields(model: type[BaseModel], values: dict[str, Any]) -> set[str]:
    """Return the names of all fields of a class; its first model shows whether they are given."""
    fields = _fields_of.get(model)
    if fields is None:
        assert list(values) == list(model.model_fields), f"all fields of {model.__name__}, in order"
        fields = _fields_of[model] = set(model.model_fields)
    return fields
