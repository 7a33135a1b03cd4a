"""What a wrong text is told: the column, what was expected, what was found, and how to write it."""

import pytest

from xce.domain.cluster.resreq import parse
from xce.domain.errors import InputError

SECTION = "a section (select, rusage, span, same, order, exclusive)"
SECTION_NAMES = "select, rusage, span, same, order, exclusive"
AFTER_NAME = 'a comparison (==, !=, <, <=, >, >=), "&&", "||"'
TERM = 'a name, "!", defined(...) or "("'
VALUE = "a number, a text or true/false"
UNITS = "wanted one of B, KiB, MiB, GiB, TiB, PiB, EiB (K, KB and KiB are the same)"
IN_QUOTES = "is written in quotes"
NESTING = "braces nest no deeper than alternatives that hold a compound"

WRONG: list[tuple[str, int, str]] = [
    # selections
    ("select[mem>]", 12, f'expected {VALUE}, found "]"'),
    ("select[mem>=", 13, f"expected {VALUE}, found the end"),
    ("select[mem> >5]", 13, f'expected {VALUE}, found ">"'),
    ("select[mem=5]", 11, f'expected {AFTER_NAME} or "]", found "="; a comparison is written =='),
    ("select[a===b]", 11, f'expected {VALUE}, found "="'),
    ("select[a=>5]", 9, f'expected {AFTER_NAME} or "]", found "="; a comparison is written =='),
    ("select[]", 8, f'expected {TERM}, found "]"'),
    ("select[&& a]", 8, f'expected {TERM}, found "&&"'),
    ("select[a || ]", 13, f'expected {TERM}, found "]"'),
    ("select[!]", 9, f'expected {TERM}, found "]"'),
    ("select[(a || b]", 15, f'expected {AFTER_NAME} or ")", found "]"'),
    ("select[(a) b]", 12, 'expected "&&", "||" or "]", found "b"'),
    ("select[a)]", 9, f'expected {AFTER_NAME} or "]", found ")"'),
    ("select[mem>5", 13, 'expected "&&", "||" or "]", found the end'),
    ("select[mem>5 rusage[mem=1]", 14, 'expected "&&", "||" or "]", found "rusage"'),
    ("select[a, b]", 9, f'expected {AFTER_NAME} or "]", found ","'),
    ("select[a and b]", 10, f'expected {AFTER_NAME} or "]", found "and"; it is written &&'),
    ("select[a & b]", 10, f'expected {AFTER_NAME} or "]", found "&"; it is written &&'),
    ("select[a or b]", 10, f'expected {AFTER_NAME} or "]", found "or"; it is written ||'),
    ("select[a | b]", 10, f'expected {AFTER_NAME} or "]", found "|"; it is written ||'),
    ("select[not a]", 12, f'expected {AFTER_NAME} or "]", found "a"; negation is written !'),
    ("select[5>mem]", 8, f'expected {TERM}, found "5"; a name that begins with a digit {IN_QUOTES}'),
    ("select[2xlarge]", 8, f'expected {TERM}, found "2xlarge"; a name that begins with a digit {IN_QUOTES}'),
    ("select[gpu:a100]", 11, f'expected {AFTER_NAME} or "]", found ":"; a name with ":" in this place {IN_QUOTES}'),
    ("select[a-]", 9, f'expected {AFTER_NAME} or "]", found "-"; a name with "-" in this place {IN_QUOTES}'),
    ("select[x==a%b]", 12, f'expected "&&", "||" or "]", found "%"; a text with "%" in it {IN_QUOTES}'),
    ("select[é==1]", 8, f'expected {TERM}, found "é"; names and texts with other characters than plain letters are written in quotes'),
    ("select[x==é]", 11, f'expected {VALUE}, found "é"; names and texts with other characters than plain letters are written in quotes'),
    ("select[a\u00a0]", 9, f'expected {AFTER_NAME} or "]", found the character U+00A0; a name with "\\u00a0" in this place {IN_QUOTES}'),
    ("select[true]", 8, f'expected a name, found "true", a word of the language; an attribute of that name {IN_QUOTES}'),
    ("select[order==3]", 8, f'expected a name, found "order", a word of the language; an attribute of that name {IN_QUOTES}'),
    ('select[""]', 8, "expected a name, found an empty text"),
    ("select[" + "a" * 257 + "]", 8, "a name has at most 256 characters, found 257"),
    ("select[defined]", 15, 'expected "(", found "]"'),
    ("select[defined()]", 16, 'expected a name, found ")"'),
    ("select[defined(a==1)]", 17, 'expected ")", found "=="'),
    ("select[type<abc]", 12, 'expected == or != before a text, found "<"'),
    ("select[gpu>=true]", 11, 'expected == or != before a flag, found ">="'),
    # numbers and texts
    ("select[mem>5XB]", 13, f'mem: unknown unit "XB"; {UNITS}; a text that begins with a digit {IN_QUOTES}'),
    ("select[cpu==4node]", 14, f'cpu: unknown unit "node"; {UNITS}; a text that begins with a digit {IN_QUOTES}'),
    ("select[v==10.2.1]", 11, f'expected {VALUE}, found "10.2.1"; a number is written like 5, 0.5 or 8GiB, and a text like this in quotes'),
    ("select[v>+5]", 10, f'expected {VALUE}, found "+5"; a number is written like 5, 0.5 or 8GiB, and a text like this in quotes'),
    ("select[v>.5]", 10, f'expected {VALUE}, found ".5"; a number is written like 5, 0.5 or 8GiB, and a text like this in quotes'),
    ("select[v>--5]", 10, f'expected {VALUE}, found "--5"; a number is written like 5, 0.5 or 8GiB, and a text like this in quotes'),
    ("select[mem>5 GiB]", 14, 'expected "&&", "||" or "]", found "GiB"; a unit follows its number without a space'),
    ("select[n>1234567890.123456789]", 10, f"n: a number has at most 18 digits, found 19; a text that begins with a digit {IN_QUOTES}"),
    ('select[x=="abc]', 11, 'expected a closing " for the text that begins here, found the end'),
    ("select[x=='it's']", 15, 'expected "&&", "||" or "]", found "s"'),
    (r'select[x=="a\qc"]', 14, r'expected "\" or a quote after "\", found "q"'),
    ('select[x=="a\\', 14, r'expected "\" or a quote after "\", found the end'),
    ('select[x=="a\tb"]', 13, "expected no control character in quotes, found the character U+0009"),
    ("select[x==\x07]", 11, f"expected {VALUE}, found the character U+0007"),
    # rusage
    ("rusage[]", 8, 'expected a name, found "]"'),
    ("rusage[mem]", 11, 'expected "=", found "]"'),
    ("rusage[mem=]", 12, 'expected an amount such as 4 or 2GiB, found "]"'),
    ("rusage[mem==5]", 11, 'expected "=", found "=="; here it is written ='),
    ("rusage[mem>5]", 11, 'expected "=", found ">"'),
    ("rusage[mem=x]", 12, 'mem: expected an amount such as 4 or 2GiB, found "x"'),
    ("rusage[mem=-1]", 12, "mem: an amount is not negative, found -1"),
    ('rusage[mem="5"]', 12, "expected an amount such as 4 or 2GiB, found a text in quotes"),
    ("rusage[mem=5QB]", 13, f'mem: unknown unit "QB"; {UNITS}'),
    ("rusage[a=1,mem=2.5GIG]", 19, f'mem: unknown unit "GIG"; {UNITS}'),
    ("rusage[mem=5 GB]", 14, 'expected "/", ",", ":" or "]", found "GB"; a unit follows its number without a space'),
    ("rusage[mem=5,mem=6]", 14, "rusage names mem twice"),
    ("rusage[mem=5:'mem'=6]", 14, "rusage names mem twice"),
    ("rusage[mem=5/core]", 14, 'expected task, host or job, found "core"'),
    ("rusage[mem=5/]", 14, 'expected task, host or job, found "]"'),
    ("rusage[mem=5/host/job]", 18, 'expected ",", ":" or "]", found "/"'),
    ("rusage[mem=5,]", 14, 'expected a name, found "]"'),
    ("rusage[mem=5;swp=3]", 13, 'expected "/", ",", ":" or "]", found ";"'),
    ("rusage[mem=5 || swp=3]", 14, 'expected "/", ",", ":" or "]", found "||"; alternatives are whole requests in braces: {...} || {...}'),
    ("rusage[mem=5:duration=10]", 14, f"duration of LSF is not in this language: amounts hold for the whole run; a resource of that name {IN_QUOTES}"),
    ("rusage[gpu:a100=1]", 11, f'expected "=", found ":"; a name with ":" in this place {IN_QUOTES}'),
    ("rusage(mem=1)", 7, 'expected "[", found "("'),
    # span, same, order
    ("span[]", 6, 'expected hosts=1, hosts=-1 or ptile=n, found "]"'),
    ("span[block=4]", 6, 'expected hosts=1, hosts=-1 or ptile=n, found "block"'),
    ("span[hosts]", 11, 'expected "=", found "]"'),
    ("span[hosts=]", 12, 'expected a whole number, found "]"'),
    ("span[hosts=2]", 12, 'expected 1 (all tasks on one host) or -1 (one task a host), found "2"'),
    ("span[ptile=0]", 12, 'expected a count of tasks a host, 1 to 1000000, found "0"'),
    ("span[ptile=1000001]", 12, 'expected a count of tasks a host, 1 to 1000000, found "1000001"'),
    ("span[ptile=2.5]", 12, 'expected a count of tasks a host, 1 to 1000000, found "2.5"'),
    ("span[ptile=4,hosts=1]", 13, 'expected "]", found ","'),
    ("same[]", 6, 'expected a name, found "]"'),
    ("same[a,b]", 7, 'expected ":" or "]", found ","'),
    ("same[a:b:a]", 10, "same names a twice"),
    ("order[]", 7, 'expected a name or "-", found "]"'),
    ("order[a:-]", 10, 'expected a name, found "]"'),
    ("order[a:-a]", 10, "order names a twice"),
    # sections
    ("selct[mem>5]", 1, f'unknown section "selct"; wanted one of {SECTION_NAMES}; did you mean select?'),
    ("SELECT[mem>5]", 1, f'unknown section "SELECT"; wanted one of {SECTION_NAMES}; did you mean select?'),
    ("cu[type=rack]", 1, f'unknown section "cu"; wanted one of {SECTION_NAMES}'),
    ("exclusive affinity[core]", 11, f'expected {SECTION} or the end, found "affinity"'),
    ("select mem>5", 8, 'expected "[", found "mem"'),
    ("order==3", 6, f'expected "[", found "=="; an attribute named order {IN_QUOTES}'),
    ("exclusive && a", 11, f'expected {SECTION} or the end, found "&&"; an attribute named exclusive {IN_QUOTES}'),
    ("select[a] rusage[b=1] select[c]", 23, "select is there twice; a request has each section once"),
    ("exclusive exclusive", 11, "exclusive is there twice; a request has each section once"),
    ("a select[b]", 3, "a selection is there twice: the one at the start is a select section without its word"),
    ("select[a]]", 10, f'expected {SECTION} or the end, found "]"'),
    ("select[a], rusage[b=1]", 10, f'expected {SECTION} or the end, found ","; sections follow one another without ","'),
    ("a b", 3, f'expected {SECTION}, {AFTER_NAME} or the end, found "b"'),
    (";", 1, f'expected {SECTION}, a selection such as mem>4GiB, a count as in 4*{{...}}, "{{" or the end, found ";"'),
    # compounds and alternatives
    ("select[a] || select[b]", 11, f'expected {SECTION} or the end, found "||"; alternatives are whole requests in braces: {{...}} || {{...}}'),
    ("{select[a]} || select[b]", 16, 'expected "{", found "select"'),
    ("{select[a]} && {b}", 13, 'expected "||" or the end, found "&&"'),
    ("{select[a]} + {b}", 13, 'expected "||" or the end, found "+"; the parts of a compound have counts: 2*{...} + 1*{...}'),
    ("{select[a]", 11, f'expected {SECTION} or "}}", found the end'),
    ("{a} }", 5, 'expected "||" or the end, found "}"'),
    ("{{a} || {b}} || {c}", 2, f'expected {SECTION}, a selection such as mem>4GiB, a count as in 4*{{...}} or "}}", found "{{"; {NESTING}'),
    ("4*{{a} || {b}}", 4, f'expected {SECTION}, a selection such as mem>4GiB or "}}", found "{{"; {NESTING}'),
    ("4*{2*{a}}", 4, f'expected {SECTION}, a selection such as mem>4GiB or "}}", found "2"; a part of a compound is one request'),
    ("4*{a} + {b}", 9, 'expected a count as in 4*{...}, found "{"'),
    ("4*{a} || 2*{b}", 7, 'expected "+" or the end, found "||"; an alternative with several parts has braces of its own: {2*{...} + 1*{...}} || {...}'),
    ("0*{a}", 1, 'expected a count of tasks, 1 to 1000000, found "0"'),
    ("2*{a} + 1000001*{b}", 9, 'expected a count of tasks, 1 to 1000000, found "1000001"'),
    ("4{a}", 2, 'expected "*", found "{"'),
    ("4*select[a]", 3, 'expected "{", found "select"'),
    ("2xlarge", 2, f'expected "*", found "xlarge"; a name that begins with a digit {IN_QUOTES}'),
    ("4*", 3, 'expected "{", found the end'),
    # several lines count as one
    ("select[a]\nrusage[mem=1,\n mem=2]", 26, "rusage names mem twice"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "column", "message"), WRONG, ids=[text[:40] for text, _, _ in WRONG]
)
def test_a_wrong_text_is_told(text: str, column: int, message: str) -> None:
    with pytest.raises(InputError) as raised:
        parse(text)

    (problem,) = raised.value.problems
    assert (problem.column, problem.message) == (column, message)
    assert problem.line is None
    assert problem.path == ""
    assert str(raised.value) == f"resource requirement:{column}: {message}"


def test_long_words_are_cut_in_messages() -> None:
    with pytest.raises(InputError) as raised:
        parse("rusage[mem=" + "x" * 1000 + "]")

    assert raised.value.problems[0].message.endswith(f'found "{"x" * 37}..."')


def test_the_same_wrong_text_is_told_the_same_again() -> None:
    messages: set[str] = set()
    for _ in range(2):
        with pytest.raises(InputError) as raised:
            parse("select[mem>]")
        messages.add(str(raised.value))

    assert len(messages) == 1
