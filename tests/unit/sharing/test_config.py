"""What is wrong with the configuration of an elastic resource is refused by line, with the reason."""

import pytest

from xce.adapters.settings.load import read_config
from xce.domain.errors import InputError

TEXT = """cluster:
  shared:
    - name: lic
      owned: 10
      provider: pool
      max_borrow: 10
      {line}
providers:
  - name: pool
    kinds: [countable]
    resources: [{{name: lic, capacity: 100}}]
"""


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("owned_more: 3", "unknown key; did you mean owned?"),
        ("step: 0", "greater than or equal to 1"),
        ("headroom: 21", "headroom 21 is above all that there can be: 20"),
        ("observation_scope: pool", "pool_size must say how much that is"),
        ("pool_size: 9", "pool_size 9 is below the 10 owned"),
        ("observation_ttl: 1min", "observer is not set"),
        ("return_when_blind: true", "observer is not set"),
        ("drift_alert: 2", "observer is not set"),
        ("step: 11", "max_borrow 10 is below one step of 11"),
        ("borrow_after: soon", "borrow_after"),
    ],
)
def test_a_wrong_setting_is_named_with_its_line(line: str, why: str) -> None:
    with pytest.raises(InputError) as found:
        read_config(TEXT.format(line=line).encode(), "c.yaml")
    (problem,) = found.value.lines()
    assert problem.startswith(("c.yaml:7: ", "c.yaml:6: "))
    assert why in problem


def test_all_settings_together_are_fit() -> None:
    line = (
        "step: 5\n      observer: keys\n      observation_scope: pool\n      pool_size: 100\n      headroom: 2\n"
        "      borrow_after: 1min\n      drift_alert: 3\n      linger_guard: 5min"
    )
    (pool,) = read_config(TEXT.format(line=line).encode(), "c.yaml").cluster.shared
    assert (pool.pool_size, pool.headroom, pool.time_to_live.total_seconds()) == (100, 2, 180)
