"""Every example and every error message of ``docs/reference/resreq.md`` is true."""

import re
from pathlib import Path

import pytest

from xce.domain.cluster.resreq import parse, write
from xce.domain.cluster.resreq.words import RESERVED, SECTIONS
from xce.domain.errors import InputError

PAGE = (Path(__file__).parents[3] / "docs/reference/resreq.md").read_text(encoding="utf-8")


def cells(header: str) -> list[list[str]]:
    """Return the rows of all tables whose last column has this header, their pipes unescaped."""
    rows: list[list[str]] = []
    inside = False
    for line in PAGE.splitlines():
        row = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not row:
            inside = False
        elif row[-1] == header:
            inside = True
        elif inside and not row[0].startswith("---"):
            rows.append(row)
    return rows


EXAMPLES = [
    line
    for block in re.findall(r"```resreq\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
] + [text for row in cells("examples") for text in re.findall(r"`([^`]+)`", row[-1])]


@pytest.mark.parametrize("text", EXAMPLES)
def test_an_example_is_read(text: str) -> None:
    assert parse(write(parse(text))) == parse(text) != parse("")


def test_the_page_has_an_example_of_every_section() -> None:
    assert len(EXAMPLES) > 25
    for section in SECTIONS:
        assert any(section in text for text in EXAMPLES)


@pytest.mark.parametrize("row", cells("error"), ids=lambda row: row[0])
def test_an_error_is_told_as_the_page_says(row: list[str]) -> None:
    column, _, message = row[1].partition(": ")

    with pytest.raises(InputError) as raised:
        parse(row[0].strip("`"))

    assert raised.value.lines() == [f"resource requirement:{column}: {message}"]


def test_the_two_ways_to_write_a_selection_are_the_same() -> None:
    start = EXAMPLES.index("type==X86_64 && mem>100 rusage[mem=50]")

    assert parse(EXAMPLES[start]) == parse(EXAMPLES[start + 1])


def test_the_page_names_every_reserved_word() -> None:
    listed = re.search(r"of the language: ([a-z, ]+)\.", PAGE)

    assert listed is not None
    assert set(listed[1].split(", ")) == RESERVED
