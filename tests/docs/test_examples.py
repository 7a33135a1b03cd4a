"""The files in ``examples/`` are what the pages say they are."""

import re

import pytest

from tests.conftest import ROOT
from xce.adapters.settings.load import read_config
from xce.domain.formats.snapshot import Snapshot
from xce.domain.policy.checks import read_policy_input
from xce.domain.scheduling.session import run_session

EXAMPLES = ROOT / "examples"


@pytest.mark.parametrize("name", ["evening.json", "filling.json"])
def test_an_example_of_a_snapshot_shows_every_part_of_a_result(name: str) -> None:
    result = run_session(Snapshot.from_json((EXAMPLES / name).read_bytes(), name))

    assert result.allocations
    assert result.demand.hosts
    assert result.demand.countable
    assert result.demand.impossible
    assert result.demand.not_counted
    assert not result.warnings


def test_the_round_is_the_one_on_the_page_of_the_policy() -> None:
    page = (ROOT / "docs" / "reference" / "policy.md").read_text(encoding="utf-8")
    (document,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)

    example = (EXAMPLES / "round.json").read_text(encoding="utf-8")
    assert read_policy_input(example, "round.json") == read_policy_input(document, "policy.md")


def test_the_configuration_of_the_small_trace_is_fit() -> None:
    config = read_config((EXAMPLES / "small.yaml").read_bytes(), "small.yaml")

    assert [provider.name for provider in config.providers] == ["cloud"]
