"""General rules of the requirement language, on generated requirements and texts."""

import re

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cluster.strategies import REQUIREMENTS
from xce.domain.cluster.requirement import Requirement
from xce.domain.cluster.resreq import parse, write
from xce.domain.errors import InputError

WORDS = (
    "select[ rusage[ span[ same[ order[ exclusive defined( ( ) [ ] { } || && ! == != <= > = , : / - + * "
    "mem a.b x-1 hosts ptile task host job true 1 -1 4 2GiB 0.5 9XB 4*{ "
    "\"a'b\" 'c' \" ' \\ # é \x00 \n"
)
PIECES = st.sampled_from(WORDS.split(" "))
TERMINAL_NAMES = re.compile(r"_[A-Z]+|QUOTED|LPAR|\$END")


def check(text: str) -> None:
    """A text is read and written back, or refused with one problem at a place in it."""
    try:
        requirement = parse(text)
    except InputError as error:
        refusal = error
    else:
        assert parse(write(requirement)) == requirement
        return
    assert refusal.source == "resource requirement"
    (problem,) = refusal.problems
    assert problem.column is not None
    assert 1 <= problem.column <= len(text) + 1
    assert problem.message.isprintable()
    assert set(TERMINAL_NAMES.findall(problem.message)) <= set(TERMINAL_NAMES.findall(text))


@given(REQUIREMENTS)
def test_every_requirement_reads_back_as_it_was_written(requirement: Requirement) -> None:
    written = write(requirement)

    assert parse(written) == requirement
    assert write(parse(written)) == written


@given(REQUIREMENTS, st.data())
def test_spaces_between_words_mean_nothing(requirement: Requirement, data: st.DataObject) -> None:
    words = re.findall(
        r'"(?:[^"\\]|\\.)*"|[A-Za-z0-9_.:/@+-]+(?=[\]), })])|\w+|[=!<>&|]+|.', write(requirement)
    )
    assert "".join(words) == write(requirement)
    spaced = data.draw(st.sampled_from([" ", "\n", "\t  "]))
    brackets = ("[", "]", "(", ")", "{", "}", "&&", "||")
    loose = "".join(spaced + word + spaced if word in brackets else word for word in words)

    assert parse(loose) == requirement


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    check(text)


@given(st.lists(PIECES, max_size=14), st.sampled_from(["", " "]))
def test_any_pieces_of_the_language_are_read_or_refused(pieces: list[str], glue: str) -> None:
    check(glue.join(pieces))


@given(REQUIREMENTS, st.data())
def test_a_text_with_a_slip_is_read_or_refused(
    requirement: Requirement, data: st.DataObject
) -> None:
    text = write(requirement)
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 3)))
        text = text[:start] + data.draw(st.just("") | PIECES | st.characters()) + text[end:]

    check(text)


@given(REQUIREMENTS, st.data())
def test_a_text_cut_short_is_read_or_refused(requirement: Requirement, data: st.DataObject) -> None:
    text = write(requirement)

    check(text[: data.draw(st.integers(0, len(text)))])
