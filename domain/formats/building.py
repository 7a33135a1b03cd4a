"""Making many models of values that are known to be right, without validation.

``model_construct`` does the same for any model; it looks at defaults, aliases and extra fields of each
instance and keeps a set of its own in each. Sessions make tens of thousands of small models.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)

_set = object.__setattr__
_fields_of: dict[type[BaseModel], set[str]] = {}


def all_built(model: type[M], values: Iterable[dict[str, Any]]) -> list[M]:
    """Return many models as ``built`` makes them."""
    made: list[M] = []
    new, set_ = model.__new__, _set
    fields = _fields(model)
    for one in values:
        each = new(model)
        set_(each, "__dict__", one)
        set_(each, "__pydantic_fields_set__", fields)
        set_(each, "__pydantic_extra__", None)
        set_(each, "__pydantic_private__", None)
        made.append(each)
    return made


def _fields(model: type[BaseModel]) -> set[str]:
    fields = _fields_of.get(model)
    if fields is None:
        fields = _fields_of[model] = set(model.model_fields)
    return fields


def built(model: type[M], values: dict[str, Any]) -> M:
    """Return a model of these values: every field of it, in declared order, and nothing else.

    The dictionary becomes the model's own. The set of given fields is shared by all models of a class.
    """
    fields = _fields_of.get(model)
    if fields is None:
        assert list(values) == list(model.model_fields), f"all fields of {model.__name__}, in order"
        fields = _fields_of[model] = set(model.model_fields)
    made = model.__new__(model)
    _set(made, "__dict__", values)
    _set(made, "__pydantic_fields_set__", fields)
    _set(made, "__pydantic_extra__", None)
    _set(made, "__pydantic_private__", None)
    return made
