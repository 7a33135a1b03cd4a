"""docs/requirements.md names every requirement, and what it names exists."""

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGE = ROOT / "docs" / "requirements.md"
ROW = re.compile(
    r"^\| (?P<id>[A-Z]+\d*(?: \d+(?:\.\d+)?)?) \| (?P<what>[^|]+) \| (?P<state>[^|]+) \| (?P<code>[^|]*) \| (?P<tests>[^|]*) \|$"
)
STATES = {"done", "part", "later"}
COUNTS = {"M": 6, "A": 6, "D": 12, "S": 5, "H": 4, "P": 10, "C": 11, "R": 7, "V": 3, "N": 5, "I": 9}


def rows() -> dict[str, re.Match[str]]:
    matches = [ROW.match(line) for line in PAGE.read_text(encoding="utf-8").splitlines()]
    return {match["id"]: match for match in matches if match}


def paths(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_requirement_has_a_row() -> None:
    wanted = {f"{letter}{i}" for letter, count in COUNTS.items() for i in range(1, count + 1)}
    wanted |= {f"AR {i}" for i in range(1, 8)}

    assert wanted - rows().keys() == set()
    assert {key for key in rows() if not key.startswith("F")} == wanted


@pytest.mark.parametrize("requirement", sorted(rows()))
def test_what_a_row_names_exists(requirement: str) -> None:
    row = rows()[requirement]

    assert row["state"].strip() in STATES
    missing = [
        path for path in paths(row["code"]) + paths(row["tests"]) if not (ROOT / path).exists()
    ]
    assert not missing
    if row["state"].strip() != "later":
        assert paths(row["code"]), "what is done or begun names its code"
    if row["state"].strip() == "done":
        assert paths(row["tests"]), "what is done names its tests"


def test_the_specification_has_no_requirement_that_the_page_forgot(shared: Path) -> None:
    text = (shared / "SPEC.md").read_text(encoding="utf-8")

    assert set(re.findall(r"\*\*([A-Z]\d+)\b", text)) <= rows().keys()
