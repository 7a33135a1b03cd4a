"""The page on EC2 says what the provider does: permissions, configuration, tags and codes."""

import json
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from xce.adapters.providers.ec2 import cloud, scripts
from xce.adapters.providers.ec2.errors import PAUSING, SAME
from xce.adapters.providers.ec2.settings import Ec2Settings, Ec2Template
from xce.domain.formats.error_codes import CAPACITY_CODES
from xce.domain.formats.provider import ProviderDescription

PAGE = (ROOT / "docs/how-to/ec2.md").read_text(encoding="utf-8")


def block(name: str) -> str:
    """Return a file that the page shows."""
    match = re.search(rf"<!-- file: {re.escape(name)} -->\n```json\n(.*?)```", PAGE, re.DOTALL)
    assert match is not None
    return match[1]


def test_the_policy_allows_what_the_provider_calls_and_nothing_else() -> None:
    source = Path(cloud.__file__).read_text(encoding="utf-8")
    called = set(re.findall(r'self\._(?:read|changed)\(\s*"(\w+)"', source))
    allowed: set[str] = set()
    for statement in json.loads(block("policy.json"))["Statement"]:
        actions = statement["Action"]
        allowed |= {actions} if isinstance(actions, str) else set(actions)

    assert len(called) >= 7
    assert allowed == {f"ec2:{action}" for action in called}


def test_the_configuration_that_is_shown_is_one() -> None:
    shown = Ec2Settings.from_json(block("ec2.json"), "ec2.json")

    described = {"name": "aws", **shown.description}
    assert ProviderDescription.model_validate(described).capacity == 100


@pytest.mark.parametrize("model", [Ec2Settings, Ec2Template])
def test_every_key_of_the_configuration_is_there(
    model: type[Ec2Settings] | type[Ec2Template],
) -> None:
    keys = {str(field.alias) for field in model.model_fields.values()}

    assert {key for key in keys if key not in PAGE} == set()


def test_every_code_is_there() -> None:
    assert {code for code in (*SAME, *SAME.values()) if f"`{code}`" not in PAGE} == set()


def test_every_tag_is_there() -> None:
    tags = set(re.findall(r'"(xce:[\w-]+)"', Path(scripts.__file__).read_text(encoding="utf-8")))

    assert len(tags) >= 5
    assert {tag for tag in tags if f"`{tag}`" not in PAGE} == set()


def test_the_capacity_codes_of_the_contract_that_are_of_ec2_pause_a_template() -> None:
    assert {code for code in CAPACITY_CODES if code.startswith("Insufficient")} <= PAUSING
