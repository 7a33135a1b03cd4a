"""What the reference page of the policy shows is what the policy decides: its round to try, and every example, in all its rounds."""

import json
import re
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT
from tests.unit.policy.test_hand_worked_rounds import document_of
from xce.domain.formats.policy import Decision, DecisionKind
from xce.domain.policy.checks import read_policy_input
from xce.domain.policy.decide import decide

PAGE = ROOT / "docs" / "reference" / "policy.md"
FILE = ROOT / "tests" / "data" / "policy_page_rounds.yaml"
EXAMPLES: dict[str, list[dict[str, Any]]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))


def told(decision: Decision) -> str:
    """Return a decision as ``request aws c4*2``, ``return aws c4*1 [i-1]`` or ``pause aws c4 until 10:08``."""
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
    if decision.kind is DecisionKind.PAUSE:
        words.append(f"until {decision.until:%H:%M}")
    return " ".join(words)


def test_the_example_of_the_page_is_what_the_policy_decides() -> None:
    text = PAGE.read_text(encoding="utf-8")
    document, table = re.findall(r"```(?:json|text)\n(.*?)```", text, re.DOTALL)

    decisions = decide(read_policy_input(document, PAGE.name)).decisions

    shown = [re.split(r"\s{2,}", line.strip()) for line in table.strip().splitlines()]
    found = [
        [
            decision.kind.value,
            *([decision.provider] if decision.provider else []),
            str(decision.count if decision.count is not None else decision.amount),
            decision.reason,
        ]
        for decision in decisions
    ]
    assert shown == found


def test_every_example_of_the_page_has_its_rounds_and_no_others_are_kept() -> None:
    text = re.sub(r"```.*?```", "", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    found = [" ".join(each.split()) for each in re.findall(r"(?<![*\w])\*(?!\*)([^*]+)\*", text)]

    assert sorted(found) == sorted(EXAMPLES)
    assert all(EXAMPLES.values())


@pytest.mark.parametrize(
    ("example", "place"),
    [(example, place) for example in EXAMPLES for place in range(len(EXAMPLES[example]))],
)
def test_an_example_of_the_page_is_what_the_policy_decides(example: str, place: int) -> None:
    case = dict(EXAMPLES[example][place])
    jobs = case.pop("jobs", None)
    wanted = [text.partition(" ~ ") for text in case["decisions"]]

    decisions = decide(read_policy_input(json.dumps(document_of(case)))).decisions

    assert [told(decision) for decision in decisions] == [text for text, _, _ in wanted]
    for decision, (_, _, why) in zip(decisions, wanted, strict=True):
        assert why in decision.reason
    assert jobs is None or [list(decision.jobs) for decision in decisions] == jobs
