"""The rounds in ``examples/policies``: each gives the decisions that its situation calls for."""

from typing import Final

import pytest

from tests.conftest import ROOT
from xce.domain.formats.policy import Decision
from xce.domain.policy.checks import read_policy_input
from xce.domain.policy.decide import decide

FOLDER: Final = ROOT / "examples" / "policies"

#: Kind, provider, amount, and a part of the reason.
WANTED: Final[dict[str, list[tuple[str, str | None, int | None, str]]]] = {
    "f01_starting_hosts_are_supply": [],
    "f03_never_joined_twice": [
        ("pause", "cloud", None, "2 asks in a row came to nothing"),
        ("hold", "cloud", 1, "paused until 2026-03-01T10:30:00Z"),
    ],
    "f05_given_up_at_the_deadline": [("cancel", "a", 5, "5 of 5 have not come 15m after the ask")],
    "f05_the_next_after_the_deadline": [
        ("pause", "a", None, "1 ask came to nothing"),
        ("request", "b", 5, "as the others failed of late (a)"),
    ],
    "f06_each_has_its_turn": [("request", "b", 1, "as the others failed of late (a1, a2)")],
    "f07_errored_hosts_count": [
        ("request", "cloud", 1, "2 hosts of T wanted"),
        ("hold", "cloud", 1, "template T: 4 of 4 used"),
    ],
    "f07_probe_after_a_pause": [
        ("request", "cloud", 1, "2 hosts of T wanted"),
        ("hold", "cloud", 1, "probe (3 asks in a row failed"),
    ],
    "f08_asked_ten_got_seven": [("request", "other", 3, "as the others failed of late (cloud)")],
    "f11_late_in_the_hour": [("return", "cloud", 1, "idle for 32m or longer")],
    "f11_paid_until_the_hour": [("hold", "cloud", 1, "paid until 2026-03-01T11:00:00Z")],
    "f12_list_order_is_no_price_list": [("request", "p2", 1, "first by name")],
    "f24_demand_too_old": [("hold", None, None, "the demand is 10m old")],
    "f29_asked_in_steps": [
        ("request", "cloud", 100, "600 hosts of T wanted"),
        ("request", "cloud", 100, "600 hosts of T wanted"),
        ("request", "cloud", 100, "600 hosts of T wanted"),
        ("hold", "cloud", 300, "template T: 300 of 300 used"),
    ],
    "lsf_policy": [
        ("request", "cloud", 2, "the cheapest of its priority"),
        ("request", "other", 4, "next after cloud (budget fine: 5 of 5 asked within 10m)"),
        ("hold", None, 3, "hosts of budget both: 6 of 6 used"),
    ],
    "spot_share": [
        ("request", "cloud", 6, "spot before on demand"),
        ("request", "cloud", 4, "spot share of c4-spot: 6 of 6 used"),
    ],
    "day_and_project": [
        ("request", "cloud", 1, "1 for project chip1 from cloud"),
        ("request", "cloud", 2, "2 from cloud"),
        ("hold", "cloud", 2, "for project chip1: cloud: hosts of budget chip1: 1 of 1 used"),
        ("hold", "cloud", 1, "44.00 spent and 6.00 counted on of 50.00, and one more costs 2.00"),
    ],
    "standing_minimum": [("request", "cloud", 2, "2 of them by a standing minimum")],
}


def test_every_round_in_the_folder_is_tested_and_explained() -> None:
    names = {path.stem for path in FOLDER.glob("*.json")}
    page = (FOLDER / "README.md").read_text(encoding="utf-8")

    assert names == WANTED.keys()
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []


@pytest.mark.parametrize("name", sorted(WANTED))
def test_a_round_gives_the_decisions_that_it_calls_for(name: str) -> None:
    path = FOLDER / f"{name}.json"

    decisions = decide(read_policy_input(path.read_bytes(), path.name)).decisions

    shown = [(one.kind.value, one.provider, _amount(one)) for one in decisions]
    assert shown == [wanted[:3] for wanted in WANTED[name]]
    for decision, wanted in zip(decisions, WANTED[name], strict=True):
        assert wanted[3] in decision.reason


def _amount(decision: Decision) -> int | None:
    return decision.count if decision.count is not None else decision.amount
