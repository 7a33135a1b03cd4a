"""What a projection has folded, as JSON, so that a fold can be resumed from a position instead of from the first event.

Only what was folded is kept: what is made from it when somebody asks is made again.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Annotated, Any, Generic, TypeVar, cast

from pydantic import BeforeValidator, Field, PlainSerializer, TypeAdapter

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

#: Marks a field that is made from others and is not kept.
NOT_KEPT = Field(exclude=True)


def _pairs(mapping: dict[Any, Any]) -> list[tuple[Any, Any]]:
    return list(mapping.items())


def _mapping(pairs: object) -> object:
    if not isinstance(pairs, list):
        return pairs
    return {
        tuple(cast("Iterable[object]", key)) if isinstance(key, list) else key: value
        for key, value in cast("list[tuple[object, object]]", pairs)
    }


#: A mapping whose keys are no texts: JSON has it as a list of pairs.
Pairs = Annotated[dict[K, V], BeforeValidator(_mapping), PlainSerializer(_pairs)]


class Keeper(Generic[T]):
    """Turns the parts of a projection, given as a dataclass, into JSON and back."""

    def __init__(self, parts: type[T]) -> None:
        self._parts = parts

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self._parts)  # when first needed: most programs never resume

    def dump(self, parts: T) -> bytes:
        """Return the parts as JSON."""
        return self._adapter.dump_json(parts)

    def load(self, kept: bytes) -> T:
        """Return the parts again.

        Raises:
            ValueError: this is not what ``dump`` returned in this release.
        """
        return self._adapter.validate_json(kept)
