"""What a number of a requirement is in base units: MiB for sizes, the resource's own unit for counts.

``slots`` and shared resources are counts: a size suffix on them is an error, and ``settings.units`` says
nothing about them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Self

from xce.domain.cluster.requirement import (
    All,
    AnyOf,
    Compare,
    Defined,
    Flag,
    Not,
    Number,
    Primary,
    Requirement,
    Selection,
)
from xce.domain.errors import Problem, XceError
from xce.domain.formats.snapshot import MemoryUnit, Settings
from xce.domain.values import AMOUNT_MAX, MIB, bytes_of_unit

SLOTS: Final = "slots"
MEM: Final = "mem"


class UnitError(XceError):
    """An amount cannot be taken as it was written: a suffix on a count, or out of range."""

    code = "unit"


class UnitUnknownError(XceError):
    """A bare number of a resource whose unit setting could not be read; it is never guessed."""

    code = "unit-unknown"

    def __init__(self, resource: str) -> None:
        super().__init__(f"the unit of a bare number of {resource} is not known")
        self.resource = resource


@dataclass(frozen=True, slots=True)
class UnitSettings:
    """What bare numbers mean, and which names are counts without a unit.

    Attributes:
        bare: ``settings.units`` of the snapshot: the unit of a bare number, None where it could not be read.
        shared: names of the shared resources.
    """

    bare: Mapping[str, MemoryUnit | None] = field(default_factory=dict[str, MemoryUnit | None])
    shared: frozenset[str] = frozenset()

    @classmethod
    def of(cls, settings: Settings, shared: Iterable[str]) -> Self:
        """Return the settings of a snapshot, ``shared`` being the names of its shared resources."""
        return cls(settings.units, frozenset(shared))

    def is_count(self, resource: str) -> bool:
        """Return whether the resource is counted and never has a size suffix."""
        return resource == SLOTS or resource in self.shared


def exact(resource: str, number: Number, units: UnitSettings) -> Fraction:
    """Return a number of ``resource`` in its base unit, exact: what ``select`` compares with.

    Raises:
        UnitUnknownError: the number is bare and the resource's setting could not be read.
        UnitError: a suffix on ``slots`` or on a shared resource.
    """
    if number.unit:
        if units.is_count(resource):
            raise UnitError(f'{resource} is a count and takes no unit, found "{number.unit}"')
        return number.value * bytes_of_unit(number.unit) / MIB
    if units.is_count(resource):
        return number.value
    unit = units.bare.get(resource, MemoryUnit.MIB if resource == MEM else "")
    if unit is None:
        raise UnitUnknownError(resource)
    return number.value * bytes_of_unit(unit) / MIB if unit else number.value


def need(resource: str, number: Number, units: UnitSettings) -> int:
    """Return an amount of ``rusage`` in base units, a part of a unit counting as one.

    Raises:
        UnitUnknownError: the number is bare and the resource's setting could not be read.
        UnitError: a suffix on ``slots`` or on a shared resource, or an amount out of range.
    """
    value = exact(resource, number, units)
    amount = -(-value.numerator // value.denominator)
    if not 0 <= amount <= AMOUNT_MAX:
        raise UnitError(f"{resource} is {amount}, out of range; wanted 0 to {AMOUNT_MAX}")
    return amount


def written(resource: str, amount: int) -> str:
    """Return an amount of a resource of hosts for people: memory with its unit, as a configuration has it; others are counts."""
    if resource != MEM or amount == 0:
        return str(amount)
    return f"{amount // 1024}GiB" if amount % 1024 == 0 else f"{amount}MiB"


def unknown_units(requirement: Requirement, units: UnitSettings) -> tuple[str, ...]:
    """Return the resources of which the requirement has a bare number that cannot be read, by name.

    A job with any of them pends with ``unit_unknown``; without, ``exact`` and ``need`` never raise
    ``UnitUnknownError`` for it.
    """
    unreadable = {name for name, unit in units.bare.items() if unit is None}
    unreadable = {name for name in unreadable if not units.is_count(name)}
    if not unreadable:
        return ()
    return tuple(
        sorted(
            {
                name
                for name, number, _, _ in _numbers(requirement)
                if not number.unit and name in unreadable
            }
        )
    )


def unit_problems(requirement: Requirement, units: UnitSettings) -> tuple[Problem, ...]:
    """Return what is wrong with the requirement's units in a snapshot, with columns; the path is the caller's.

    After an empty answer ``exact`` and ``need`` never raise ``UnitError`` for it.
    """
    problems: list[Problem] = []
    for name, number, column, is_need in _numbers(requirement):
        try:
            (need if is_need else exact)(name, number, units)
        except UnitError as error:
            problems.append(Problem(str(error), column=column or None))
        except UnitUnknownError:
            pass  # not wrong: the job pends with that reason
    return tuple(problems)


def primaries(requirement: Requirement) -> Iterator[Primary]:
    """Yield every primary request of a requirement, in the order written."""
    for alternative in requirement.alternatives:
        if isinstance(alternative, Primary):
            yield alternative
        else:
            yield from alternative.parts


def _numbers(requirement: Requirement) -> Iterator[tuple[str, Number, int, bool]]:
    """Yield name, number, column and whether it is a need, for each number of ``select`` and ``rusage``."""
    for primary in primaries(requirement):
        if primary.select is not None:
            for compare in _comparisons(primary.select):
                if isinstance(compare.literal, Number):
                    yield compare.name, compare.literal, compare.column, False
        for usage in primary.rusage:
            yield usage.name, usage.amount, usage.column, True


def _comparisons(selection: Selection) -> Iterator[Compare]:
    match selection:
        case Compare():
            yield selection
        case Flag() | Defined():
            pass
        case Not(operand):
            yield from _comparisons(operand)
        case All(operands) | AnyOf(operands):
            for operand in operands:
                yield from _comparisons(operand)
