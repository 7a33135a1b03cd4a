"""What the policy decides in small rounds, worked out by hand from docs/reference/policy.md: a sentence each."""

import json
import random
from typing import Any, cast

import pytest
import yaml

from tests.conftest import ROOT
from xce.domain.policy.checks import read_policy_input
from xce.domain.policy.decide import decide

Document = dict[str, Any]

FILE = ROOT / "tests" / "data" / "hand_worked_rounds.yaml"
ROUNDS: dict[str, Document] = yaml.safe_load(FILE.read_text(encoding="utf-8"))


def told(document: Document) -> list[str]:
    """Return the decisions as ``request aws c4*2`` and ``return aws c4*1 [i-1]``."""
    texts: list[str] = []
    for decision in decide(read_policy_input(json.dumps(document))).decisions:
        amount = decision.count if decision.count is not None else decision.amount
        which = [
            *decision.requests,
            *decision.instances,
            *(f"{part.grant}:{part.amount}" for part in decision.grants),
        ]
        words = [decision.kind.value, decision.provider or "-"]
        if item := decision.template or decision.resource:
            words.append(item if amount is None else f"{item}*{amount}")
        if which:
            words.append(f"[{', '.join(which)}]")
        texts.append(" ".join(words))
    return texts


def document_of(case: Document) -> Document:
    """Return the round of a case: at 10:00, with demand of position 100, and a job ``jN`` for each host or unit wanted."""
    made = {"format": "xce.policy/1", "now": "2026-03-01T10:00:00Z", "position": 100, **case}
    made.pop("decisions", None)
    wanted = cast("dict[str, int]", made.pop("wanted", {}))
    units = cast("dict[str, int]", made.pop("units", {}))
    if wanted or units:
        made["demand"] = {
            "hosts": [{"template": t, "count": n, "jobs": _jobs(n, "hosts")} for t, n in wanted.items()],
            "order": [[t, n] for t, n in wanted.items()],
            "countable": [
                {"name": name, "amount": n, "wanted": n, "jobs": _jobs(n, "amount")}
                for name, n in units.items()
            ],
        }  # fmt: skip
    return made


def _jobs(count: int, field: str) -> list[Document]:
    return [{"job": f"j{place}", "order": place, field: 1} for place in range(1, count + 1)]


@pytest.mark.parametrize("sentence", ROUNDS)
def test_a_round_worked_out_by_hand(sentence: str) -> None:
    case = ROUNDS[sentence]

    assert told(document_of(case)) == case.get("decisions", [])


@pytest.mark.parametrize("sentence", ROUNDS)
def test_the_order_of_the_lists_of_a_round_says_nothing(sentence: str) -> None:
    document = document_of(ROUNDS[sentence])
    in_order = told(document)

    for seed in range(3):
        chance = random.Random(seed)
        turned = json.loads(json.dumps(document))
        inventory = turned.get("inventory", {})
        lists = [turned.get(key, []) for key in ("providers", "budgets", "pauses")]
        lists += [inventory.get(key, []) for key in ("requests", "instances", "grants")]
        lists += [turned.get("idle", {}).get(key, []) for key in ("hosts", "counts")]
        for each in lists:
            chance.shuffle(each)
        assert told(turned) == in_order
