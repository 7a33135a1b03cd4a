"""What a session says about small snapshots, worked out by hand from docs/reference/session.md: a sentence each."""

import random
from typing import cast

import pytest
import yaml

from tests.conftest import ROOT
from tests.unit.scheduling.hand_worked import Document, differences, session, snapshot_of

FOLDER = ROOT / "tests" / "data" / "hand_worked"


def cases() -> dict[str, Document]:
    """Return the cases by their sentence."""
    found: dict[str, Document] = {}
    for file in sorted(FOLDER.glob("*.yaml")):
        for sentence, case in yaml.safe_load(file.read_text(encoding="utf-8")).items():
            assert sentence not in found, sentence
            found[sentence] = case or {}
    return found


CASES = cases()


@pytest.mark.parametrize("sentence", CASES)
def test_a_case_worked_out_by_hand(sentence: str) -> None:
    case = CASES[sentence]

    result = session(snapshot_of(case))

    assert differences(result, case) == {}


@pytest.mark.parametrize("sentence", CASES)
def test_the_order_of_lists_and_keys_in_a_snapshot_says_nothing(sentence: str) -> None:
    document = snapshot_of(CASES[sentence])
    in_order = session(document).to_json()

    for seed in range(3):
        assert session(shuffled(document, random.Random(seed))).to_json() == in_order


def shuffled(document: Document, chance: random.Random) -> Document:
    """Return a document with all its lists and keys in another order."""
    return cast("Document", _shuffled(document, chance))


def _shuffled(value: object, chance: random.Random) -> object:
    if isinstance(value, dict):
        items = list(cast("dict[str, object]", value).items())
        chance.shuffle(items)
        return {key: _shuffled(child, chance) for key, child in items}
    if isinstance(value, list):
        members = [_shuffled(child, chance) for child in cast("list[object]", value)]
        if not any(isinstance(member, int) for member in members):  # pairs of numbers stay
            chance.shuffle(members)
        return members
    return value


def test_there_are_many_cases_and_no_key_that_means_nothing() -> None:
    known = {
        "settings", "queues", "groups", "quotas", "hosts", "pending", "running", "limits", "shared", "templates",
        "countable", "coming", "counts", "starts", "waits", "new", "order", "more", "parts", "never", "not_now", "past",
        "idle", "warnings",
    }  # fmt: skip

    assert len(CASES) > 150
    assert {key for case in CASES.values() for key in case} <= known
