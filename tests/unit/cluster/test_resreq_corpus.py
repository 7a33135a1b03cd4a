"""The corpus of good and bad requirements in ``tests/data/resreq``."""

from pathlib import Path

import pytest

from xce.domain.cluster.resreq import parse, write
from xce.domain.errors import InputError

FOLDER = Path(__file__).parents[2] / "data" / "resreq"


def lines(name: str) -> list[str]:
    text = (FOLDER / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("# ")]


@pytest.mark.parametrize("line", lines("good.txt"))
def test_a_good_text_is_read_and_written_in_its_canonical_form(line: str) -> None:
    text, tab, canonical = line.partition("\t")

    assert write(parse(text)) == (canonical if tab else text)


@pytest.mark.parametrize("line", lines("bad.txt"))
def test_a_bad_text_is_refused_at_its_column(line: str) -> None:
    column, _, text = line.partition("\t")

    with pytest.raises(InputError) as raised:
        parse(text)
    assert raised.value.problems[0].column == int(column)
