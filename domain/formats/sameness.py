"""Whether two values are written the same."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import cast

from xce.domain.formats.base import Format


def is_same(one: object, other: object) -> bool:
    """Return whether two values are written the same: more than equal, for True is 1 and 0.1 is 0.10."""
    if one is other:
        return True
    kind = type(one)
    if kind is not type(other):
        return False
    match one:
        case str() | int():
            return one == other
        case Format():
            theirs = other.__dict__
            return all(
                mine is theirs[name] or is_same(mine, theirs[name])
                for name, mine in one.__dict__.items()
            )
        case tuple():
            return _are_same(cast(Sequence[object], one), cast(Sequence[object], other))
        case dict():
            mine, others = cast(Mapping[str, object], one), cast(Mapping[str, object], other)
            return list(mine) == list(others) and all(
                is_same(value, others[name]) for name, value in mine.items()
            )
        case Decimal():
            return one.as_tuple() == cast(Decimal, other).as_tuple()
        case _:
            return one == other


def _are_same(some: Sequence[object], others: Sequence[object]) -> bool:
    return len(some) == len(others) and all(map(is_same, some, others))
