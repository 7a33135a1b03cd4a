"""Reading configurations: what YAML means here, files, and what any text at all leads to."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.settings.test_malformed_configurations import GOOD
from xce.adapters.controller.service import read_controller_config
from xce.adapters.provisioner.service import read_provisioner_config
from xce.adapters.schedulers.service import read_scheduler_config
from xce.adapters.settings import load_config
from xce.adapters.settings.kinds import KINDS, Kind
from xce.adapters.settings.load import MONEY_KEYS, load_scenario, read_config, read_scenario
from xce.adapters.settings.yaml_tree import read_tree
from xce.domain.errors import InputError
from xce.domain.formats.config import SimulationConfig
from xce.domain.formats.snapshot import Host

ROOT = Path(__file__).parents[3]


def read(text: str) -> SimulationConfig:
    return read_config(text.encode(), "site.yaml")


def test_a_whole_configuration_is_read() -> None:
    config = read(GOOD)

    assert [host.name for host in config.cluster.all_hosts()] == [
        "node1",
        "node2",
        "node3",
        "node4",
    ]
    assert config.cluster.all_hosts()[0].total == {"slots": 8, "mem": 32768}
    assert config.cluster.shared[0].elastic
    cloud = config.providers[0]
    assert cloud.templates[0].price_per_hour == Decimal("0.34")
    assert cloud.simulation.lead_time.boot.p95 == timedelta(minutes=4)
    assert cloud.description().templates == cloud.templates
    assert "simulation" not in type(cloud.description()).model_fields
    assert config.policy.budgets[0].max_cost_per_hour == Decimal(10)
    assert config.policy.settings().max_per_request == config.policy.max_per_request


def test_the_name_of_a_host_can_stand_in_its_attributes() -> None:
    config = read(
        'cluster: {hosts: [{name: "n[1-2]", attributes: {hostname: "{name}", rack: "r-{name}"}}]}'
    )

    assert [host.attributes for host in config.cluster.all_hosts()] == [
        {"hostname": "n1", "rack": "r-n1"},
        {"hostname": "n2", "rack": "r-n2"},
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("off", "off"),
        ("true", True),
        ("010", "010"),
        ("0x1F", "0x1F"),
        ("10:30", "10:30"),
        ("2013-01-01", "2013-01-01"),
        ("1_000", "1_000"),
        ("12", 12),
        ("-3", -3),
        ("2.50", Decimal("2.50")),
        ("1e3", "1e3"),
        (".inf", ".inf"),
        ('"12"', "12"),
        ("~", None),
        ("", None),
    ],
)
def test_a_plain_word_means_what_it_looks_like(text: str, value: object) -> None:
    assert read_tree(f"key: {text}\n".encode(), "f").value == {"key": value}


def test_money_and_shares_are_exact_and_attributes_are_numbers() -> None:
    config = read(
        "cluster: {hosts: [{name: a, attributes: {rev: 2.5, cores: 8, gpu: true}}]}\n"
        "providers: [{name: p, cost: 3, simulation: {partial: 0.1}}]"
    )

    assert config.cluster.hosts[0].attributes == {"rev": Decimal("2.5"), "cores": 8, "gpu": True}
    assert config.providers[0].cost == Decimal(3)
    assert config.providers[0].simulation.partial == Decimal("0.1")


def _money_fields(schema: object, name: str = "") -> Iterator[str]:
    """Yield the names of all fields of a schema, at any depth, whose value is money."""
    if isinstance(schema, list):
        for part in cast("list[object]", schema):
            yield from _money_fields(part, name)
    elif isinstance(schema, dict):
        parts = cast("dict[str, object]", schema)
        if (
            parts.get("description") == 'a decimal string, such as "0.17"'
            or parts.get("pattern") == r"^\d+(\.\d+)?$"
        ):
            yield name
        for key, part in parts.items():
            if key in ("properties", "$defs") and isinstance(part, dict):
                for inner, value in cast("dict[str, object]", part).items():
                    yield from _money_fields(value, inner)
            else:
                yield from _money_fields(part, name)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_money_of_any_configuration_needs_quotes_or_decimals(kind: Kind) -> None:
    found = set(_money_fields(kind.model.model_json_schema(by_alias=False)))

    assert found <= MONEY_KEYS
    if kind.name in ("simulation", "provisioner"):
        assert {"max_cost_per_hour", "max_cost_per_day", "max_cost_per_month"} <= found


def test_a_budget_of_a_day_is_a_whole_number() -> None:
    config = read("cluster: {}\npolicy: {budgets: [{name: day, max_cost_per_day: 5}]}")

    assert config.policy.budgets[0].max_cost_per_day == Decimal(5)


def test_a_scenario_in_the_place_of_a_configuration_is_told_apart_and_the_other_way_round() -> None:
    scenario = ROOT / "examples/scenarios/a-price-falls.yaml"
    with pytest.raises(InputError, match="is a scenario and no configuration; see: xce sim run"):
        load_config(scenario)
    with pytest.raises(InputError, match=r"is a configuration and no scenario.*xce sim swf"):
        load_scenario(ROOT / "examples/small.yaml")
    with pytest.raises(InputError, match="name: unknown key"):
        read("name: a\ncluster: {}")
    with pytest.raises(InputError, match="name: required field is missing"):
        read_scenario(b"cluster: {}\nuntil: 2h", "s")


@pytest.mark.parametrize(
    ("act", "says"),
    [
        ("do: unfreze", "timeline[0]: do: 'unfreze' is unknown; did you mean unfreeze?"),
        ("do: 7up", "timeline[0]: do: '7up' is unknown; wanted one of set-template, set-behaviour, "),
        ("why: no act", "timeline[0]: do: required field is missing"),
    ],
)  # fmt: skip
def test_an_act_that_is_not_known_is_said_in_our_words(act: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        read_scenario(f"name: a\ntimeline:\n  - {{at: 1min, {act}}}\n".encode(), "s.yaml")

    assert any(says in line for line in caught.value.lines()), caught.value.lines()
    assert "found an object" not in str(caught.value)


def test_a_time_needs_no_quotes() -> None:
    config = read("cluster: {}\ndriver: {time_zero: 2013-01-01T00:00:00Z}")

    assert config.driver.time_zero == datetime(2013, 1, 1, tzinfo=UTC)


def test_anchors_save_writing() -> None:
    config = read(
        "cluster:\n  hosts:\n    - {name: a, total: &t {slots: 4}}\n    - {name: b, total: *t}\n"
    )

    assert [host.total for host in config.cluster.all_hosts()] == [{"slots": 4}, {"slots": 4}]


def test_a_byte_order_mark_is_no_mistake() -> None:
    assert read_config(b"\xef\xbb\xbfcluster: {}\n", "f") == read("cluster: {}")


def test_what_is_left_out_has_its_default() -> None:
    assert read("cluster: {}") == SimulationConfig.model_validate({"cluster": {}})


def test_own_hosts_come_before_provisioned_ones_unless_said_otherwise() -> None:
    provisioned = Host(name="a1", instance="cloud/vm-1", idle_since=None, available_until=None)
    (own,) = read("cluster: {hosts: [{name: z9}]}").cluster.all_hosts()

    assert own.rank < provisioned.rank


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.yaml: cannot be read: No such file"):
        load_config(tmp_path / "none.yaml")


def test_a_name_with_a_zero_byte_is_an_input_error() -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_config(Path("a\0b"))


@given(
    st.binary(max_size=200)
    | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass"))
)
def test_any_bytes_at_all_are_a_configuration_or_an_input_error(raw: bytes) -> None:
    with suppress(InputError):
        read_config(raw, "f")


SCALARS = st.none() | st.booleans() | st.integers(-5, 10**6) | st.text(max_size=8) | st.sampled_from(
    ["cloud", "lic", "8GiB", "2min", "0.5", "node[1-3]", "c8", "host", "countable", "10:00"]
)  # fmt: skip
KEYS = st.sampled_from(
    ["cluster", "providers", "workload", "session", "policy", "driver", "hosts", "shared", "queues", "name", "total",
     "attributes", "owned", "provider", "templates", "template_id", "simulation", "lead_time", "lag", "p50", "p95",
     "refusals", "items", "capacity", "outside_use", "resources", "licences", "feature", "share", "budgets", "x"]
)  # fmt: skip
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)


@given(TREES)
def test_any_tree_of_known_keys_is_a_configuration_or_an_input_error(tree: object) -> None:
    # JSON is YAML.
    with suppress(InputError):
        read(json.dumps(tree, indent=1))


@given(st.integers(0, len(GOOD) - 1), st.sampled_from(list(" :-[]{}#&*!|>'\"%@`\t\n\x00x0")))
def test_a_good_configuration_with_one_wrong_character_is_read_or_is_an_input_error(
    at: int, char: str
) -> None:
    with suppress(InputError):
        read(GOOD[:at] + char + GOOD[at + 1 :])


@pytest.mark.parametrize(
    "path",
    # A pool is no cluster: tests/unit/pool reads that one.
    sorted(set((ROOT / "examples").glob("*.yaml")) - {ROOT / "examples" / "pool.yaml"}),
    ids=lambda path: path.name,
)
def test_every_example_is_fit(path: Path) -> None:
    assert load_config(path).cluster.all_hosts()


def test_the_examples_have_what_they_are_meant_to_show() -> None:
    metacentrum = load_config(ROOT / "examples" / "metacentrum.yaml")
    kth = load_config(ROOT / "examples" / "kth.yaml")

    for config in (metacentrum, kth):
        offers = [offer for provider in config.providers for offer in provider.templates]
        assert len(offers) == 3
        assert all(offer.price_per_hour is not None for offer in offers)
    (pool,) = metacentrum.cluster.shared
    (rule,) = metacentrum.workload.licences
    assert pool.owned > 0
    assert pool.elastic
    assert (rule.feature, 0 < rule.share < 1) == (pool.name, True)


@pytest.mark.parametrize(
    "read",
    [
        load_config,
        load_scenario,
        read_controller_config,
        read_provisioner_config,
        read_scheduler_config,
    ],
)
def test_a_file_without_end_is_no_configuration(read: Callable[[Path], object]) -> None:
    with pytest.raises(InputError, match="/dev/zero: is larger than 1 MiB; no configuration is"):
        read(Path("/dev/zero"))
