"""The round on the reference page gives the decisions that the page shows."""

import re

from tests.conftest import ROOT
from xce.domain.policy.checks import read_policy_input
from xce.domain.policy.decide import decide

PAGE = ROOT / "docs" / "reference" / "policy.md"


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
