"""What texts of the requirement language mean."""

from fractions import Fraction

import pytest

from xce.domain.cluster.requirement import (
    All,
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
from xce.domain.cluster.resreq import parse, write
from xce.domain.errors import InputError

EQ, NE, LT, LE, GT, GE = Comparison


def number(value: int | str, unit: str = "") -> Number:
    return Number(Fraction(value), unit)


def one(primary: Primary) -> Requirement:
    return Requirement((primary,))


A, B, C, D = Flag("a"), Flag("b"), Flag("c"), Flag("d")

SELECTIONS: list[tuple[str, Selection]] = [
    ("a", A),
    ("mem>5", Compare("mem", GT, number(5))),
    ("mem>=8GiB", Compare("mem", GE, number(8, "GiB"))),
    ("mem<0.5tb", Compare("mem", LT, number("1/2", "tb"))),
    ("mem <= 007.50K", Compare("mem", LE, number("15/2", "K"))),
    ("temp>-4.25", Compare("temp", GT, number("-17/4"))),
    ("temp!=-0", Compare("temp", NE, number(0))),
    ("n==999999999999999999", Compare("n", EQ, number(10**18 - 1))),
    ("type==X86_64", Compare("type", EQ, "X86_64")),
    ("zone!=eu-west-1a", Compare("zone", NE, "eu-west-1a")),
    ("gpu==gpu:a100", Compare("gpu", EQ, "gpu:a100")),
    ("os==linux/amd64", Compare("os", EQ, "linux/amd64")),
    ("lang==c++", Compare("lang", EQ, "c++")),
    ("host==zewura12.cerit-sc.cz", Compare("host", EQ, "zewura12.cerit-sc.cz")),
    ('v=="10.2"', Compare("v", EQ, "10.2")),
    ("v=='8GiB'", Compare("v", EQ, "8GiB")),
    ('v==""', Compare("v", EQ, "")),
    (r'v=="a\"b\\c\'"', Compare("v", EQ, "a\"b\\c'")),
    (r"v=='a\'b\"'", Compare("v", EQ, "a'b\"")),
    ('v=="] || x"', Compare("v", EQ, "] || x")),
    ("gpu==true", Compare("gpu", EQ, True)),
    ("gpu!=false", Compare("gpu", NE, False)),
    ('gpu=="true"', Compare("gpu", EQ, "true")),
    ("gpu==True", Compare("gpu", EQ, "True")),
    ("cl_zewura", Flag("cl_zewura")),
    ("x86-64.v3", Flag("x86-64.v3")),
    ('"gpu:a100"', Flag("gpu:a100")),
    ("'2xlarge'", Flag("2xlarge")),
    ('"order"==3', Compare("order", EQ, number(3))),
    ("selected", Flag("selected")),
    ("exclusive-x", Flag("exclusive-x")),
    ("hosts", Flag("hosts")),
    ("task", Flag("task")),
    ("defined(gpu)", Defined("gpu")),
    ("defined ( 'a b' )", Defined("a b")),
    ("!a", Not(A)),
    ("!!a", Not(Not(A))),
    ("!a==1", Not(Compare("a", EQ, number(1)))),
    ("!(a||b)", Not(AnyOf((A, B)))),
    ("((a))", A),
    ("a&&b&&c", All((A, B, C))),
    ("a||b||c", AnyOf((A, B, C))),
    ("a||b&&c||d", AnyOf((A, All((B, C)), D))),
    ("(a||b)&&(c||d)", All((AnyOf((A, B)), AnyOf((C, D))))),
    ("a&&(b&&c)", All((A, All((B, C))))),
    ("(a||b)||c", AnyOf((AnyOf((A, B)), C))),
    ("!a&&b", All((Not(A), B))),
]

WHOLE: list[tuple[str, Requirement]] = [
    ("", Requirement()),
    (" \t\r\n ", Requirement()),
    ("exclusive", one(Primary(exclusive=True))),
    (
        "rusage[a=1, b=2GiB/host, c=1/job]",
        one(
            Primary(
                rusage=(
                    Usage("a", number(1)),
                    Usage("b", number(2, "GiB"), Per.HOST),
                    Usage("c", number(1), Per.JOB),
                )
            )
        ),
    ),
    ("rusage[a=1:b=2/task]", one(Primary(rusage=(Usage("a", number(1)), Usage("b", number(2)))))),
    ("rusage[mem=0]", one(Primary(rusage=(Usage("mem", number(0)),)))),
    ("rusage['gpu:a100'=1]", one(Primary(rusage=(Usage("gpu:a100", number(1)),)))),
    ("rusage['duration'=1]", one(Primary(rusage=(Usage("duration", number(1)),)))),
    ("rusage[task=1/task]", one(Primary(rusage=(Usage("task", number(1)),)))),
    ("span[hosts=1]", one(Primary(span=Span(one_host=True)))),
    ("span[hosts=-1]", one(Primary(span=Span(one_task_a_host=True)))),
    ("span [ ptile = 16 ]", one(Primary(span=Span(ptile=16)))),
    ("same[a]", one(Primary(same=("a",)))),
    ("same[a:b]", one(Primary(same=("a", "b")))),
    ("order[a:-b]", one(Primary(order=(OrderKey("a"), OrderKey("b", descending=True))))),
    (
        "exclusive order[-mem] same[zone] span[hosts=1] rusage[mem=1] select[a]",
        one(
            Primary(
                select=A,
                rusage=(Usage("mem", number(1)),),
                span=Span(one_host=True),
                same=("zone",),
                order=(OrderKey("mem", descending=True),),
                exclusive=True,
            )
        ),
    ),
    ("select[a]rusage[b=1]exclusive", parse("select[a] rusage[b=1] exclusive")),
    ("type==X86_64 && mem>100", parse("select[type==X86_64 && mem>100]")),
    ("a rusage[mem=1]", parse("select[a] rusage[mem=1]")),
    ("!(exclusivity) exclusive", one(Primary(select=Not(Flag("exclusivity")), exclusive=True))),
    ("a exclusive", one(Primary(select=A, exclusive=True))),
    ("{select[a]}", one(Primary(select=A))),
    ("{}", Requirement()),
    ("{} || {a}", Requirement((Primary(), Primary(select=A)))),
    ("4*{a}", Requirement((Compound((Primary(select=A, tasks=4),)),))),
    (
        "2*{select[a]}+1*{exclusive}",
        Requirement((Compound((Primary(select=A, tasks=2), Primary(exclusive=True, tasks=1))),)),
    ),
    (
        "2 * { a } + 03 * { }",
        Requirement((Compound((Primary(select=A, tasks=2), Primary(tasks=3))),)),
    ),
    (
        "{a || b} || {2*{a} + 1*{b}} || {}",
        Requirement(
            (
                Primary(select=AnyOf((A, B))),
                Compound((Primary(select=A, tasks=2), Primary(select=B, tasks=1))),
                Primary(),
            )
        ),
    ),
]


@pytest.mark.parametrize(("text", "selection"), SELECTIONS)
def test_a_selection_means(text: str, selection: Selection) -> None:
    assert parse(f"select[{text}]") == one(Primary(select=selection))


@pytest.mark.parametrize(("text", "requirement"), WHOLE)
def test_a_text_means(text: str, requirement: Requirement) -> None:
    assert parse(text) == requirement


@pytest.mark.parametrize(
    "text", [f"select[{text}]" for text, _ in SELECTIONS] + [t for t, _ in WHOLE]
)
def test_what_is_written_reads_back_and_is_written_the_same(text: str) -> None:
    written = write(parse(text))

    assert parse(written) == parse(text)
    assert write(parse(written)) == written


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        ("{}", ""),
        (
            "type == 'X86_64'   rusage[mem=2048:lic_spice=1/task]",
            "select[type==X86_64] rusage[mem=2048,lic_spice=1]",
        ),
        ("select[((a)) && (b || !(c))]", "select[a && (b || !c)]"),
        (
            "exclusive span[hosts=1] select[mem>08.50GiB]",
            "select[mem>8.5GiB] span[hosts=1] exclusive",
        ),
        ("2*{a}+1*{}", "2*{select[a]} + 1*{}"),
        ("{a}||{rusage[m=.0]}".replace(".0", "0.0"), "{select[a]} || {rusage[m=0]}"),
        ("order[a:-'b c'] same['true']", 'same["true"] order[a:-"b c"]'),
    ],
)
def test_the_canonical_text_is_the_plainest(text: str, canonical: str) -> None:
    assert write(parse(text)) == canonical


def test_numbers_are_exact_and_keep_their_unit_as_written() -> None:
    assert parse("rusage[mem=0.1gIb]") == one(
        Primary(rusage=(Usage("mem", number("1/10", "gIb")),))
    )


def test_names_remember_their_column_counted_over_lines() -> None:
    requirement = parse("select[a &&\n mem>5] rusage[\n  mem=1]")

    primary = requirement.alternatives[0]
    assert isinstance(primary, Primary)
    assert isinstance(primary.select, All)
    compare = primary.select.operands[1]
    assert isinstance(compare, Compare)
    assert compare.column == 14
    assert primary.rusage[0].column == 31


def test_columns_do_not_make_requirements_different() -> None:
    assert parse("select[mem>5] rusage[mem=1]") == parse("rusage[ mem=1] select[ mem>5]")
    assert hash(parse("select[mem>5] rusage[mem=1]")) == hash(
        parse("rusage[ mem=1] select[ mem>5]")
    )


def test_a_short_text_is_read_once() -> None:
    assert parse("rusage[mem=12345]") is parse("rusage[mem=12345]")


@pytest.mark.parametrize("opening", ["(", "!"])
def test_fifty_levels_are_read_and_fifty_one_are_not(opening: str) -> None:
    closing = ")" if opening == "(" else ""
    fifty = "select[" + opening * 50 + "a" + closing * 50 + "]"

    assert parse(write(parse(fifty))) == parse(fifty)
    with pytest.raises(InputError) as raised:
        parse("select[" + opening * 51 + "a" + closing * 51 + "]")
    assert raised.value.problems[0].column == 8
    assert "one level too many" in raised.value.problems[0].message


@pytest.mark.parametrize("op", ["&&", "||"])
def test_the_deepest_operand_decides_the_depth(op: str) -> None:
    parse("select[" + f"a {op} (" * 50 + "b" + ")" * 50 + "]")
    with pytest.raises(InputError, match="one level too many"):
        parse("select[" + f"a {op} (" * 51 + "b" + ")" * 51 + "]")


@pytest.mark.parametrize(
    "bomb",
    [
        "(" * 65_000,
        "!" * 65_000,
        "{" * 65_000,
        "select[" + "(" * 60_000,
        "!(" * 30_000 + "a" + ")" * 5_000,
        "(" * 32_000 + "a" + ")" * 32_000,
        "1*" * 30_000,
        '"' * 65_001,
        "a." * 30_000 + ".",
        "x==" + "9" * 60_000,
    ],
)
def test_a_bomb_is_one_error(bomb: str) -> None:
    with pytest.raises(InputError) as raised:
        parse(bomb)
    (problem,) = raised.value.problems
    assert problem.column is not None
    assert len(problem.message) < 500


def test_a_long_flat_text_is_read() -> None:
    text = "select[" + " || ".join(f"(a{i}>={i} && !b)" for i in range(2400)) + "]"
    assert 50_000 < len(text) <= 65_536

    assert write(parse(text)) == text.replace("(", "").replace(")", "")


def test_a_text_of_64_ki_characters_is_read_and_one_more_is_not() -> None:
    text = "select[a" + " " * 65_527 + "]"
    assert len(text) == 65_536

    assert parse(text) == parse("select[a]")
    with pytest.raises(InputError, match="at most 65536 characters, found 65537"):
        parse(text + " ")


def test_what_no_text_says_is_not_written() -> None:
    malformed = [
        Requirement(()),
        one(Primary(tasks=4)),
        Requirement((Compound((Primary(),)),)),
        Requirement((Compound((Primary(tasks=0),)),)),
        Requirement((Compound(()),)),
        one(Primary(select=All((A,)))),
        one(Primary(select=AnyOf(()))),
        one(Primary(select=Flag(""))),
        one(Primary(select=Flag("a\nb"))),
        one(Primary(select=Flag("a" * 257))),
        one(Primary(select=Compare("a", LT, "b"))),
        one(Primary(select=Compare("a", EQ, "\x00"))),
        one(Primary(select=Compare("a", EQ, number("1/3")))),
        one(Primary(select=Compare("a", EQ, number(10**18)))),
        one(Primary(select=Compare("a", EQ, number(1, "XB")))),
        one(Primary(rusage=(Usage("a", number(-1)),))),
        one(Primary(rusage=(Usage("a", number(1)), Usage("a", number(2))))),
        one(Primary(span=Span(one_host=True, ptile=2))),
        one(Primary(span=Span(ptile=0))),
        one(Primary(same=("a", "a"))),
        one(Primary(select=Compare("a", EQ, "x" * 65_536))),
    ]
    deep: Selection = A
    for _ in range(2_000):
        deep = Not(deep)

    for requirement in [*malformed, one(Primary(select=deep))]:
        with pytest.raises(ValueError, match=r"no text says|decimal|levels"):
            write(requirement)
