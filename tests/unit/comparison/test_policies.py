"""What is varied: axes, combinations, and what they are called."""

from datetime import timedelta
from pathlib import Path

import pytest

from xce.adapters.comparison.policies import read_axis, read_policies
from xce.domain.errors import InputError

BASE = """\
cluster:
  hosts:
    - {name: h1, total: {slots: 4}}
  shared:
    - {name: lic, owned: 4}
workload:
  licences:
    - {feature: lic, share: 0.5}
policy:
  budgets:
    - {name: site, max_cost_per_hour: 10}
"""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    path = tmp_path / "base.yaml"
    path.write_text(BASE, encoding="utf-8")
    return path


def test_all_combinations_are_made_in_the_order_they_were_named(base: Path) -> None:
    axes = [read_axis("policy.minimum_hold=10min,1h"), read_axis("session.order=skip,strict")]

    policies = read_policies([base], axes)

    assert [policy.name for policy in policies] == [
        "minimum_hold=10min, order=skip",
        "minimum_hold=10min, order=strict",
        "minimum_hold=1h, order=skip",
        "minimum_hold=1h, order=strict",
    ]
    assert [policy.config.policy.minimum_hold for policy in policies[::2]] == [
        timedelta(minutes=10),
        timedelta(hours=1),
    ]
    assert [(one.key, one.value) for one in policies[1].settings] == [
        ("policy.minimum_hold", "10min"),
        ("session.order", "strict"),
    ]


def test_without_axes_the_file_is_the_policy(base: Path) -> None:
    (policy,) = read_policies([base], [])

    assert policy.name == "base"


def test_several_files_are_told_apart_by_their_names(base: Path) -> None:
    other = base.with_name("other.yaml")
    other.write_text(BASE, encoding="utf-8")

    policies = read_policies([base, other], [read_axis("driver.seed=1,2")])

    assert [policy.name for policy in policies] == [
        "base, seed=1", "base, seed=2", "other, seed=1", "other, seed=2",
    ]  # fmt: skip


def test_elements_of_lists_are_named_by_what_they_are_called_or_by_their_place(base: Path) -> None:
    for key in ("policy.budgets.site", "policy.budgets.0"):
        (policy,) = read_policies([base], [read_axis(f"{key}.max_cost_per_hour=7")])
        assert policy.config.policy.budgets[0].max_cost_per_hour == 7
    (policy,) = read_policies([base], [read_axis("workload.licences.lic.share=0.25")])
    assert str(policy.config.workload.licences[0].share) == "0.25"


def test_a_value_may_be_a_list_or_a_mapping(base: Path) -> None:
    axis = read_axis("cluster.queues=[{name: a, priority: 2}, {name: b}],[]")

    with_queues, without = read_policies([base], [axis])

    assert [queue.name for queue in with_queues.config.cluster.queues] == ["a", "b"]
    assert not without.config.cluster.queues


def test_keys_with_equal_ends_keep_as_much_as_tells_them_apart(base: Path) -> None:
    axes = [read_axis("driver.session_interval=1s"), read_axis("cluster.shared.lic.owned=4"),
            read_axis("workload.licences.lic.share=0.5"), read_axis("workload.scale.arrivals=1")]  # fmt: skip
    (policy,) = read_policies([base], axes)

    assert policy.name == "session_interval=1s, owned=4, share=0.5, arrivals=1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("policy", "wanted KEY=VALUE"),
        ("=1", "wanted KEY=VALUE"),
        ("a..b=1", "wanted KEY=VALUE"),
        ("a=1,", "a value is missing"),
        ("a=", "a value is missing"),
        ("a=1,1", "a value is there twice"),
    ],
)
def test_an_axis_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_axis(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("policy.minimum_hol=1h", "did you mean minimum_hold"),
        ("policy.minimum_hold=soon", "base.yaml with policy.minimum_hold=soon"),
        ("cluster.shared.other.owned=1", "no element is called 'other'; there are lic"),
        ("policy.minimum_hold.x=1", "policy.minimum_hold"),
        ("cluster.hosts.h1.name.x=1", "which holds no keys"),
    ],
)
def test_what_makes_no_fit_configuration_is_named(base: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_policies([base], [read_axis(text)])

    assert message in str(caught.value)


def test_more_policies_than_anybody_looks_at_are_refused(base: Path) -> None:
    axis = read_axis("driver.seed=" + ",".join(map(str, range(1, 1002))))

    with pytest.raises(InputError, match="makes 1001 policies"):
        read_policies([base], [axis])
    with pytest.raises(InputError, match="a key is there twice"):
        read_policies([base], [read_axis("driver.seed=1"), read_axis("driver.seed=2")])
