"""A table of wrong configurations: each is one clear error with its line, and never a traceback."""

import pytest

from xce.adapters.settings.load import read_config
from xce.domain.errors import InputError

#: A configuration without a mistake; the cases change one thing of it.
GOOD = """\
cluster:
  hosts:
    - name: node[1-4]
      attributes: {type: X86_64}
      total: {slots: 8, mem: 32GiB}
  shared:
    - {name: lic, owned: 4, provider: pool, max_borrow: 8, step: 2}
  queues:
    - {name: normal, priority: 10}
  limits:
    - {name: slots-of-users, resource: slots, amount: 64, per: user}
providers:
  - name: cloud
    templates:
      - {template_id: c8, price_per_hour: 0.34, provides: {slots: 8}}
    simulation:
      lead_time: {lag: 20s, boot: {p50: 2min, p95: 4min}}
      partial: 0.1
  - name: pool
    kinds: [countable]
    resources:
      - {name: lic, capacity: 10}
workload:
  licences:
    - {feature: lic, share: 0.5}
session: {order: skip}
policy:
  budgets:
    - {name: site, max_cost_per_hour: 10}
driver: {seed: 3, session_interval: 30s}
"""

#: What is replaced by what, the line that the message must name, and what it must say.
CHANGES: list[tuple[str, str, str, int, str]] = [
    ("misspelt key", "queues:", "queus:", 8, "cluster.queus: unknown key; did you mean queues?"),
    ("misspelt key of a provider", "kinds: [countable]", "kind: [countable]", 20, "providers[1].kind: unknown key; did you mean kinds?"),
    ("misspelt key of a template", "price_per_hour", "price_pr_hour", 15, "did you mean price_per_hour?"),
    ("a key nothing is like", "workload:", "weather:", 23, "weather: unknown key; known are cluster, driver, lifecycle, policy"),
    ("a key of another part", "driver: {seed: 3", "driver: {order: skip, seed: 3", 30, "driver.order: unknown key"),
    ("missing name", "- name: cloud", "- region: north", 13, "providers[0].name: required field is missing"),
    ("missing owned", "owned: 4, ", "", 7, "cluster.shared[0].owned: required field is missing"),
    ("a provider's name that leaves no room for ids", "- name: cloud", f"- name: {'c' * 65}", 13, "providers[0].name: String should have at most 64 characters"),
    ("a template's name that leaves no room for names of hosts", "template_id: c8", f"template_id: {'c' * 129}", 15, "template_id: String should have at most 128 characters"),
    ("text for a number", "priority: 10", "priority: high", 9, "cluster.queues[0].priority: Input should be a valid integer, found 'high'"),
    ("fraction for a count", "owned: 4", "owned: 4.5", 7, "owned: Input should be a valid integer"),
    ("flag for a number", "seed: 3", "seed: true", 30, "driver.seed: Input should be a valid integer, found true"),
    ("negative count", "owned: 4", "owned: -4", 7, "greater than or equal to 0"),
    ("unknown unit", "mem: 32GiB", "mem: 32XiB", 5, "unknown unit 'XiB'"),
    ("part of a slot", "slots: 8, mem", "slots: 8.5, mem", 5, "'8.5' is not a whole number"),
    ("no duration", "lag: 20s", "lag: soon", 17, "lead_time.lag: 'soon' is not a duration"),
    ("an interval of 0", "session_interval: 30s", "session_interval: 0s", 30, "driver.session_interval: wanted at least 1s"),
    ("polls without an interval", "session_interval: 30s", "poll_interval: 0", 30, "driver.poll_interval: wanted at least 1s"),
    ("duration below 0", "session_interval: 30s", "session_interval: -5", 30, "out of range"),
    ("percentiles in the wrong order", "p95: 4min", "p95: 1min", 17, "boot: p95 is below p50"),
    ("a share above 1", "partial: 0.1", "partial: 1.1", 18, "less than or equal to 1"),
    ("a negative price", "price_per_hour: 0.34", "price_per_hour: -0.34", 15, "is not money"),
    ("price with a currency", "price_per_hour: 0.34", "price_per_hour: 0.34 EUR", 15, "is not money"),
    ("unknown order", "order: skip", "order: fifo", 26, "'skip' or 'strict', found 'fifo'"),
    ("unknown scope", "per: user", "per: person", 11, "cluster.limits[0].per"),
    ("list for a mapping", "session: {order: skip}", "session: [skip]", 26, "session: Input should be an object"),
    ("mapping for a list", "    - {name: normal, priority: 10}\n", "    name: normal\n", 8, "cluster.queues"),
    ("range that goes down", "node[1-4]", "node[4-1]", 3, "the range '4-1' goes down"),
    ("bracket without partner", "node[1-4]", "node[1-4", 3, "has a bracket without its partner"),
    ("too many hosts", "node[1-4]", "node[1-999999]", 3, "more than 100000 hosts"),
    ("list as an attribute", "type: X86_64", "type: [a]", 4, "is not an attribute; wanted a text, a number, true or false"),
    ("unknown provider", "provider: pool", "provider: pol", 7, "no provider is named 'pol'; there is cloud, pool"),
    ("provider that lends it not", "provider: pool", "provider: cloud", 7, "provider 'cloud' does not lend 'lic'"),
    ("nothing to borrow from", "provider: pool, ", "", 7, "nobody lends it"),
    ("less than a step", "max_borrow: 8, step: 2", "max_borrow: 8, step: 20", 7, "below one step"),
    ("unknown feature", "feature: lic", "feature: lik", 25, "no shared resource is named 'lik'"),
    ("resource nobody declared", "- {name: lic, capacity: 10}", "- {name: lik, capacity: 10}", 22, "no shared resource is named 'lik'"),
    ("budget of nobody", "{name: site, ", "{name: site, provider: none, ", 29, "no provider is named 'none'"),
    ("kinds that do not fit", "    kinds: [countable]\n", "", 19, 'must list "countable"'),
    ("a provider twice", "- name: pool", "- name: cloud", 19, "'cloud' is there twice"),
    ("a queue twice", "    - {name: normal, priority: 10}\n", "    - {name: a}\n    - {name: a}\n", 10, "'a' is there twice"),
    ("a host twice", "    - name: node[1-4]\n", "    - {name: node2}\n    - name: node[1-4]\n", 4, "host 'node2' is also in the group 'node2'"),
    ("a licence on a host", "slots: 8, mem", "lic: 1, slots: 8, mem", 5, "'lic' is a shared resource"),
    ("a licence of a template", "provides: {slots: 8}", "provides: {slots: 8, lic: 1}", 15, "'lic' is a shared resource"),
    ("refusals of nothing", "partial: 0.1", "refusals: [{items: [c9]}]", 18, "no template or resource is named 'c9'"),
    ("half a window", "partial: 0.1", 'refusals: [{start: "08:00"}]', 18, "start and end belong together"),
    ("no time of day", "partial: 0.1", "refusals: [{start: 8:00, end: 25:00}]", 18, "'8:00' is not a time of day"),
    ("no day", "partial: 0.1", "refusals: [{days: [monday]}]", 18, "refusals[0].days[0]"),
    ("no time", "seed: 3", "time_zero: yesterday", 30, "driver.time_zero: Input should be a valid datetime"),
    ("time without a zone", "seed: 3", "time_zero: 2013-01-01T00:00:00", 30, "timezone"),
]  # fmt: skip

#: Texts that are no YAML of ours at all: line and message.
BROKEN: list[tuple[str, bytes, int | None, str]] = [
    ("empty", b"", 1, "is empty"),
    ("only a comment", b"# nothing\n", 1, "is empty"),
    ("not UTF-8", b"cluster:\n  hosts: [\xff]\n", 2, "is not UTF-8 text: byte 0xff"),
    ("tab", b"cluster:\n\thosts: []\n", 2, "a tab where blanks are needed"),
    ("open bracket", b"cluster: {hosts: [}\n", 1, "expected the node content"),
    ("bad indentation", b"cluster:\n  hosts: []\n shared: []\n", 3, "expected <block end>"),
    ("open quote", b'cluster: "x\n', 2, "unexpected end of stream"),
    ("two documents", b"cluster: {}\n---\ncluster: {}\n", 2, "expected a single document"),
    ("a key twice", b"cluster: {}\ndriver: {}\ncluster: {}\n", 3, "the key is there twice, first in line 1"),
    ("a list", b"- cluster\n", 1, "wanted a mapping"),
    ("a word", b"cluster\n", 1, "wanted a mapping"),
    ("nothing in it", b"cluster:\n", 1, "cluster: Input should be an object"),
    ("a tag", b"cluster: !!python/object/apply:os.system [ls]\n", 1, "is not allowed"),
    ("a tag of our own", b"cluster: !include other.yaml\n", 1, "is not allowed"),
    ("a list as a key", b"cluster: {}\n? [a]\n: b\n", 2, "a key is a list"),
    ("an alias of nothing", b"cluster: *none\n", 1, "undefined alias"),
    ("an alias inside itself", b"cluster: &a {hosts: *a}\n", 1, "an alias stands inside what it stands for"),
    ("a zero byte", b"cluster: {}\nx: \x00\n", 2, "special characters are not allowed"),
    ("half a character", b'cluster: {"a\\ud800": 1}\n', 1, "half a character"),
    ("nested for ever", b"[" * 5000, 1, "is nested more than 32 levels"),
    ("too large", b"#" * 1_100_000, None, "is larger than 1 MiB"),
]  # fmt: skip


def error_of(raw: bytes) -> InputError:
    with pytest.raises(InputError) as caught:
        read_config(raw, "site.yaml")
    return caught.value


def test_the_configuration_that_the_cases_change_is_fit() -> None:
    assert read_config(GOOD.encode(), "site.yaml").driver.seed == 3


@pytest.mark.parametrize(
    ("old", "new", "line", "says"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES]
)
def test_a_mistake_is_said_with_its_line(old: str, new: str, line: int, says: str) -> None:
    assert GOOD.count(old) == 1
    error = error_of(GOOD.replace(old, new).encode())

    assert any(p.line == line and says in str(p) for p in error.problems), str(error)
    assert str(error).startswith("site.yaml:")


@pytest.mark.parametrize(
    ("raw", "line", "says"), [b[1:] for b in BROKEN], ids=[b[0] for b in BROKEN]
)
def test_a_text_that_is_no_configuration_is_one_error(
    raw: bytes, line: int | None, says: str
) -> None:
    error = error_of(raw)

    assert any(p.line == line and says in str(p) for p in error.problems), str(error)


def test_aliases_that_multiply_are_stopped() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]

    assert "more than 200000 values" in str(error_of("\n".join(lines).encode()))


def test_all_mistakes_are_said_at_once_in_the_order_of_the_file() -> None:
    text = (
        GOOD.replace("owned: 4", "owned: x")
        .replace("lag: 20s", "lag: x")
        .replace("order: skip", "order: x")
    )

    assert [problem.line for problem in error_of(text.encode()).problems] == [7, 17, 26]
