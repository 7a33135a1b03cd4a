"""Kinds of hosts: what all hosts with the same attributes and totals have in common.

Whether a host is what ``select`` asks for depends on its kind alone, so it is found out once for a kind.
"""

from collections.abc import Hashable, Mapping
from typing import Final

from xce.domain.formats.snapshot import Attribute

#: Kinds that are remembered; with more all are forgotten, which costs time and changes nothing.
_KINDS_MAX: Final = 50_000


class HostKind:
    """Attributes and totals of equal hosts; compared by identity, which ``kind_of`` makes unique."""

    __slots__ = ("attributes", "totals")

    def __init__(self, attributes: Mapping[str, Attribute], totals: Mapping[str, int]) -> None:
        self.attributes = attributes
        self.totals = totals

    def value(self, name: str) -> Attribute | None:
        """Return an attribute, else a total, else None."""
        value = self.attributes.get(name)
        return self.totals.get(name) if value is None else value


_kinds: dict[Hashable, HostKind] = {}


def kind_of(attributes: Mapping[str, Attribute], totals: Mapping[str, int]) -> HostKind:
    """Return the kind of a host; the same object for equal arguments, as long as it is remembered."""
    key = (
        tuple([(name, value.__class__, value) for name, value in attributes.items()]),
        tuple(totals.items()),
    )
    kind = _kinds.get(key)
    if kind is None:
        if len(_kinds) >= _KINDS_MAX:
            _kinds.clear()
        kind = _kinds[key] = HostKind(dict(attributes), dict(totals))
    return kind
