"""Amounts of several resources in one integer, to compare and subtract them at once.

Each resource has a field of ``BITS`` bits, the top one of which is a guard: it stands in what is free, and
falls where more is taken than there is. Fields are wide enough for the sum of all hosts of a demand.
"""

from collections.abc import Mapping, Sequence
from typing import Final

BITS: Final = 96
#: The most that a field can hold.
FIELD: Final = (1 << (BITS - 1)) - 1


class Packing:
    """The fields of some resources."""

    __slots__ = ("guard", "resources", "too_much")

    def __init__(self, resources: Sequence[str]) -> None:
        self.resources = list(resources)
        fields = range(len(self.resources))
        self.guard = sum(1 << (BITS * number + BITS - 1) for number in fields)
        #: More than anything has of every resource.
        self.too_much = sum(FIELD << (BITS * number) for number in fields)

    def pack(self, amounts: Mapping[str, int]) -> int:
        """Return amounts as one integer, without guards; resources without a field are left out."""
        return sum(
            amounts.get(name, 0) << (BITS * number) for number, name in enumerate(self.resources)
        )

    def fits(self, wanted: int, free: int) -> bool:
        """Return whether every amount that is wanted is free."""
        return ((free | self.guard) - wanted) & self.guard == self.guard
