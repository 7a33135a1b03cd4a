"""Hypothesis strategies for everything that the requirement language can say."""

from fractions import Fraction

from hypothesis import strategies as st

from xce.domain.cluster.requirement import (
    All,
    Alternative,
    AnyOf,
    Compare,
    Comparison,
    Compound,
    Defined,
    Flag,
    Not,
    Number,
    OrderKey,
    Per,
    Primary,
    Requirement,
    Selection,
    Span,
    Usage,
)
from xce.domain.values import BYTES_OF_UNIT

COUNTS = st.integers(1, 1_000_000)
COMMON_NAMES = st.sampled_from(
    ["mem", "slots", "type", "lic_spice", "cl_zewura", "select", "true", "and"]
)
PRINTABLE = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])
NAMES = COMMON_NAMES | st.text(PRINTABLE, min_size=1, max_size=12)
TEXTS = (
    COMMON_NAMES
    | st.sampled_from(["", "8GiB", "-5", "12.5", "a:b/c", "1e5"])
    | st.text(PRINTABLE, max_size=12)
)


@st.composite
def _units(draw: st.DrawFn) -> str:
    unit = draw(st.sampled_from(["", *BYTES_OF_UNIT]))
    return draw(st.sampled_from([unit, unit.upper(), unit.capitalize()]))


@st.composite
def numbers(draw: st.DrawFn, *, low: int = 0) -> Number:
    digits = draw(st.integers(low, 10**18 - 1) | st.integers(max(low, -99), 9999))
    return Number(Fraction(digits, 10 ** draw(st.integers(0, 17))), draw(_units()))


@st.composite
def _comparisons(draw: st.DrawFn) -> Compare:
    name = draw(NAMES)
    number = draw(st.none() | numbers(low=1 - 10**18))
    if number is not None:
        return Compare(name, draw(st.sampled_from(Comparison)), number)
    op = draw(st.sampled_from([Comparison.EQ, Comparison.NE]))
    return Compare(name, op, draw(TEXTS | st.booleans()))


def _wider(inner: st.SearchStrategy[Selection]) -> st.SearchStrategy[Selection]:
    several = st.lists(inner, min_size=2, max_size=4).map(tuple)
    return st.builds(Not, inner) | st.builds(All, several) | st.builds(AnyOf, several)


SELECTIONS: st.SearchStrategy[Selection] = st.recursive(
    _comparisons() | st.builds(Flag, NAMES) | st.builds(Defined, NAMES), _wider, max_leaves=8
)
USAGES = st.lists(
    st.builds(Usage, NAMES, numbers(), st.sampled_from(Per)),
    max_size=4,
    unique_by=lambda usage: usage.name,
)
SPANS = (
    st.just(Span())
    | st.just(Span(one_host=True))
    | st.just(Span(one_task_a_host=True))
    | st.builds(Span, ptile=COUNTS)
)
ORDERS = st.lists(
    st.builds(OrderKey, NAMES, st.booleans()), max_size=3, unique_by=lambda key: key.name
)


def _primaries(tasks: st.SearchStrategy[int | None]) -> st.SearchStrategy[Primary]:
    return st.builds(
        Primary,
        select=st.none() | SELECTIONS,
        rusage=USAGES.map(tuple),
        span=SPANS,
        same=st.lists(NAMES, max_size=3, unique=True).map(tuple),
        order=ORDERS.map(tuple),
        exclusive=st.booleans(),
        tasks=tasks,
    )


COMPOUNDS = st.builds(Compound, st.lists(_primaries(COUNTS), min_size=1, max_size=3).map(tuple))
ALTERNATIVES: st.SearchStrategy[Alternative] = _primaries(st.none()) | COMPOUNDS
REQUIREMENTS = st.builds(Requirement, st.lists(ALTERNATIVES, min_size=1, max_size=3).map(tuple))
