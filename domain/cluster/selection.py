"""Whether a host is what ``select[...]`` asks for.

Names are looked up among the attributes, then among the totals. Evaluation goes from left to right and stops
as soon as the answer is known, so ``type==arm && rev>3`` never looks at ``rev`` of a host of another type.
"""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

from xce.domain.cluster.requirement import (
    All,
    AnyOf,
    Compare,
    Comparison,
    Defined,
    Flag,
    Not,
    Number,
    Selection,
)
from xce.domain.cluster.units import UnitSettings, exact
from xce.domain.errors import XceError
from xce.domain.formats.snapshot import Attribute


class SelectionTypeError(XceError):
    """A comparison of values of different kinds, or of texts or flags by more than ``==`` and ``!=``.

    Attributes:
        column: 1-based place of the name in the requirement's text; 0 where it was not read from a text.
        message: what was compared with what.
    """

    code = "selection-type"

    def __init__(self, column: int, message: str) -> None:
        super().__init__(message)
        self.column = column
        self.message = message


def matches(
    selection: Selection | None,
    attributes: Mapping[str, Attribute],
    totals: Mapping[str, int],
    units: UnitSettings,
) -> bool:
    """Return whether a host with these attributes and totals is selected; no selection selects every host.

    Raises:
        SelectionTypeError: two kinds of values were compared.
        UnitUnknownError, UnitError: see ``units.exact``; not after ``unknown_units`` and ``unit_problems``
            found nothing.
    """
    match selection:
        case None:
            return True
        case Compare():
            return _compare(selection, attributes, totals, units)
        case Flag(name):
            value = attributes.get(name, totals.get(name, False))
            return not isinstance(value, str) and value > 0
        case Defined(name):
            return name in attributes or name in totals
        case Not(operand):
            return not matches(operand, attributes, totals, units)
        case All(operands):
            return all(matches(operand, attributes, totals, units) for operand in operands)
        case AnyOf(operands):
            return any(matches(operand, attributes, totals, units) for operand in operands)


def names_in(selection: Selection | None) -> frozenset[str]:
    """Return all names that a selection looks at."""
    match selection:
        case None:
            return frozenset()
        case Compare(name=name) | Flag(name) | Defined(name):
            return frozenset((name,))
        case Not(operand):
            return names_in(operand)
        case All(operands) | AnyOf(operands):
            return frozenset[str]().union(*map(names_in, operands))


def _compare(
    compare: Compare,
    attributes: Mapping[str, Attribute],
    totals: Mapping[str, int],
    units: UnitSettings,
) -> bool:
    value = attributes.get(compare.name, totals.get(compare.name))
    if value is None:
        return False
    literal = compare.literal
    if isinstance(literal, Number):
        if isinstance(value, (bool, str)):
            raise _wrong_kind(compare, value)
        return _holds(compare.op, value, exact(compare.name, literal, units))
    if type(value) is not type(literal):
        raise _wrong_kind(compare, value)
    if compare.op is Comparison.EQ:
        return value == literal
    if compare.op is Comparison.NE:
        return value != literal
    kind = "flag" if isinstance(literal, bool) else "text"
    raise SelectionTypeError(
        compare.column,
        f"{compare.name} is a {kind}, which compares by == and != only, not by {compare.op}",
    )


def _holds(op: Comparison, value: int | Decimal, literal: Fraction) -> bool:
    """Compare exactly: Python compares int, Decimal and Fraction by value, without rounding."""
    match op:
        case Comparison.EQ:
            return value == literal
        case Comparison.NE:
            return value != literal
        case Comparison.LT:
            return literal > value
        case Comparison.LE:
            return literal >= value
        case Comparison.GT:
            return literal < value
        case Comparison.GE:
            return literal <= value


def _wrong_kind(compare: Compare, value: Attribute) -> SelectionTypeError:
    return SelectionTypeError(
        compare.column, f"{compare.name} is {_kind(value)}, compared with {_kind(compare.literal)}"
    )


def _kind(value: Attribute | Number) -> str:
    match value:
        case bool():
            return f"the flag {str(value).lower()}"
        case str():
            return f'the text "{value}"'
        case Number():
            return f"the number {value.value}{value.unit}"
        case _:
            return f"the number {value}"
