"""docs/reference/field-cases.md has every field case, and what it names is there and is about the case."""

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGE = ROOT / "docs" / "reference" / "field-cases.md"
ROW = re.compile(r"^\| (?P<case>F\d\d) \|(?P<what>[^|]*)\|(?P<daemons>[^|]*)\|(?P<rule>[^|]*)\|(?P<files>[^|]*)\|$")  # fmt: skip
#: Cases that are about what daemons do over time.
WITH_DAEMONS = {1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 17, 19, 20, 21, 22, 23, 24, 29}


def rows() -> dict[str, re.Match[str]]:
    found = map(ROW.match, PAGE.read_text(encoding="utf-8").splitlines())
    return {match["case"]: match for match in found if match}


def paths(cell: str) -> list[Path]:
    return [ROOT / name for name in re.findall(r"`([^`]+)`", cell)]


def test_every_case_has_a_row() -> None:
    assert list(rows()) == [f"F{number:02}" for number in range(1, 30)]


def test_the_cases_are_those_of_the_collection(shared: Path) -> None:
    text = (shared / "cases" / "field_cases.md").read_text(encoding="utf-8")

    assert re.findall(r"^## (F\d\d)\b", text, re.MULTILINE) == list(rows())


@pytest.mark.parametrize("case", sorted(rows()))
def test_what_a_row_names_is_there_and_is_about_the_case(case: str) -> None:
    row, number = rows()[case], int(case[1:])
    tests = paths(row["daemons"]) + paths(row["rule"])

    assert [path for path in tests + paths(row["files"]) if not path.exists()] == []
    assert tests
    assert not (number in WITH_DAEMONS and not paths(row["daemons"])), "it needs the daemons"
    about = re.compile(rf"def test_f{number:02}|\b{case}\b")
    own = [path for path in paths(row["daemons"]) if about.search(path.read_text(encoding="utf-8"))]
    assert own or number not in WITH_DAEMONS
    for path in paths(row["files"]):
        assert path.name.lower().startswith(f"f{number:02}")
