"""Random requirements of jobs, with the task counts that go with them."""

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


@st.composite
def requirements(
    draw: st.DrawFn, *, spans: bool, compounds: bool, most_tasks: int = 4
) -> tuple[Requirement, int]:
    """Draw a requirement and the least number of tasks of its job."""
    tasks = draw(st.sampled_from([1, 2]) | st.integers(1, most_tasks))
    alternatives: list[Alternative] = [draw(_alternative(tasks, spans=spans, compounds=compounds))]
    if compounds and draw(st.integers(0, 5)) == 5:
        alternatives.append(draw(_alternative(tasks, spans=spans, compounds=compounds)))
    return Requirement(tuple(alternatives)), tasks


@st.composite
def _alternative(draw: st.DrawFn, tasks: int, *, spans: bool, compounds: bool) -> Alternative:
    if not compounds or tasks == 1 or draw(st.integers(0, 3)) < 3:
        return draw(_primary(None, spans=spans))
    first = draw(st.integers(1, tasks - 1))
    return Compound(
        (draw(_primary(first, spans=spans)), draw(_primary(tasks - first, spans=spans)))
    )


@st.composite
def _primary(draw: st.DrawFn, tasks: int | None, *, spans: bool) -> Primary:
    span, same, order, exclusive = Span(), tuple[str, ...](), tuple[OrderKey, ...](), False
    if spans:
        span = draw(
            st.sampled_from(
                [
                    Span(),
                    Span(),
                    Span(one_host=True),
                    Span(ptile=1),
                    Span(ptile=2),
                    Span(one_task_a_host=True),
                ]
            )
        )
        same = draw(st.sampled_from([(), (), (), ("zone",), ("gen",), ("zone", "type")]))
        keys = [
            (),
            (),
            (),
            (OrderKey("slots"),),
            (OrderKey("mem", descending=True),),
            (OrderKey("zone"),),
        ]
        order = draw(st.sampled_from(keys))
        exclusive = draw(st.integers(0, 14)) == 14
    return Primary(
        select=draw(_selections()),
        rusage=draw(_usages()),
        span=span,
        same=same,
        order=order,
        exclusive=exclusive,
        tasks=tasks,
    )


@st.composite
def _usages(draw: st.DrawFn) -> tuple[Usage, ...]:
    usages: list[Usage] = []
    pers = st.sampled_from([Per.TASK, Per.TASK, Per.HOST, Per.JOB])
    if draw(st.integers(0, 2)) == 2:
        usages.append(
            Usage("slots", Number(Fraction(draw(st.sampled_from([2, 1, 3, 0])))), draw(pers))
        )
    if draw(st.integers(0, 2)) == 2:
        usages.append(Usage("mem", draw(_sizes()), draw(pers)))
    if draw(st.integers(0, 7)) == 7:
        usages.append(Usage("gpu", Number(Fraction(1)), draw(pers)))
    for name, one_in in (("lic", 3), ("tok", 6)):
        if draw(st.integers(1, one_in)) == one_in:
            usages.append(
                Usage(name, Number(Fraction(draw(st.sampled_from([1, 2, 0])))), draw(pers))
            )
    return tuple(usages)


def _sizes() -> st.SearchStrategy[Number]:
    """Draw amounts of memory of a few MiB, with and without a unit, also such that must be rounded up."""
    return st.sampled_from(
        [
            Number(Fraction(2)),
            Number(Fraction(1)),
            Number(Fraction(4)),
            Number(Fraction(3), "MiB"),
            Number(Fraction(1500), "K"),
            Number(Fraction(5, 2), "MB"),
        ]
    )


def _selections() -> st.SearchStrategy[Selection | None]:
    simple: list[Selection] = [
        Compare("type", Comparison.EQ, "x"),
        Compare("type", Comparison.NE, "x"),
        Compare("gen", Comparison.GE, Number(Fraction(2))),
        Compare("gen", Comparison.LT, Number(Fraction(5, 2))),
        Compare("mem", Comparison.GE, Number(Fraction(2), "MiB")),
        Compare("mem", Comparison.GT, Number(Fraction(2))),
        Compare("ssd", Comparison.EQ, True),
        Flag("ssd"),
        Flag("gpu"),
        Defined("gpu"),
        Not(Flag("ssd")),
    ]
    one = st.sampled_from(simple)
    two = st.tuples(one, one)
    some = st.one_of(one, one, two.map(All), two.map(AnyOf))
    return st.integers(0, 4).flatmap(lambda n: some if n == 4 else st.none())
