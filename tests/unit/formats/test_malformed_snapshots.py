"""Every malformed snapshot gives one error that says where, what was found and what was wanted; never a traceback."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xce.domain.errors import InputError
from xce.domain.formats.snapshot import Snapshot

Document = dict[str, Any]
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

GOOD: Document = {
    "format": "xce.snapshot/1",
    "now": "2026-03-01T10:00:00Z",
    "position": 120,
    "hosts": [
        {
            "name": "h1",
            "state": "open",
            "attributes": {"type": "X86_64", "ssd": True, "rev": 2.5},
            "total": {"slots": 8, "mem": "32GiB"},
            "instance": "i-1",
            "idle_since": "2026-03-01T09:10:00Z",
            "available_until": None,
            "rank": -1,
        }
    ],
    "shared": [{"name": "lic", "total": 20, "used_elsewhere": None, "owned": 14, "borrowed": 6}],
    "queues": [{"name": "normal", "priority": 10, "demand_threshold": [[5, 10], [1, 60]]}],
    "limits": [
        {
            "name": "run",
            "resource": "jobs",
            "amount": 6,
            "queues": ["normal"],
            "per": ["user", "host"],
        }
    ],
    "quotas": [{"name": "q", "group": "g", "resource": "slots", "guaranteed": 2, "maximum": 9}],
    "groups": [{"name": "g", "users": ["u1"]}],
    "running": [
        {
            "id": "101",
            "user": "u1",
            "hosts": [{"name": "h1", "tasks": 4, "uses": {"slots": 4, "mem": 8192}}],
            "shared": {"lic": 2},
            "run_limit": "1h",
        }
    ],
    "pending": [
        {
            "id": "102",
            "submitted": "2026-03-01T09:59:00Z",
            "tasks": {"min": 1, "max": 2},
            "resreq": "select[type==X86_64] rusage[mem=2048,lic=1]",
            "waits_for": ["101"],
            "array": {"id": "102", "index": 1, "limit": 2},
        }
    ],
    "catalog": {
        "templates": [
            {
                "id": "c4",
                "provides": {"slots": 4},
                "allowed": 10,
                "price_per_hour": "0.17",
                "draws": [{"capacity": "aws", "most": 9}, {"capacity": None, "most": 1}],
            }
        ],
        "capacities": [{"name": "aws", "room": 5}],
        "countable": [{"name": "lic", "headroom": 6, "price_per_hour": None}],
        "in_flight": {
            "hosts": [{"id": "i-9", "template": "c4", "expected_name": None}],
            "counts": [{"name": "lic", "amount": 2}],
        },
    },
    "settings": {"idle_host_after": "1h", "order": "skip", "units": {"mem": "KiB"}},
}


def put(path: str, value: object) -> Callable[[Document], None]:
    """Return a change that puts a value at a path; a number is an index, ``+`` adds to a list."""

    def change(document: Document) -> None:
        target: Any = document
        *steps, last = path.split(".")
        for step in steps:
            target = target[int(step) if step.isdigit() else step]
        if last == "+":
            target.append(value)
        else:
            target[int(last) if last.isdigit() else last] = value

    return change


def again(path: str) -> Callable[[Document], None]:
    """Return a change that repeats the first entry of a list."""

    def change(document: Document) -> None:
        target: Any = document
        for step in path.split("."):
            target = target[step]
        target.append(copy.deepcopy(target[0]))

    return change


def drop(path: str) -> Callable[[Document], None]:
    """Return a change that removes what is at a path."""

    def change(document: Document) -> None:
        target: Any = document
        *steps, last = path.split(".")
        for step in steps:
            target = target[int(step) if step.isdigit() else step]
        del target[last]

    return change


HOST = {"name": "h2"}

#: What is changed in the good snapshot, the path that the error names, and a part of its message.
MALFORMED: list[tuple[Callable[[Document], None], str, str]] = [
    (put("bogus", 1), "bogus", "unknown field"),
    (put("hosts.0.naem", "h"), "hosts[0].naem", "unknown field"),
    (put("settings.units", {"mem": "kB"}), "settings.units.mem", "found 'kB'"),
    (put("hosts", {"name": "h1"}), "hosts", "found an object"),
    (put("hosts.0", "h1"), "hosts[0]", "found 'h1'"),
    (put("hosts.0", None), "hosts[0]", "found null"),
    (put("hosts.0.name", 1), "hosts[0].name", "found 1"),
    (put("pending.0.id", ""), "pending[0].id", "at least 1 character"),
    (put("pending.0.user", "a\nb"), "pending[0].user", r"found 'a\nb'"),
    (put("pending.0.id", "x" * 257), "pending[0].id", "at most 256 characters, found 'xxx"),
    (put("hosts.0.state", "opened"), "hosts[0].state", "found 'opened'"),
    (put("settings.order", "fifo"), "settings.order", "found 'fifo'"),
    (put("limits.0.per", "usr"), "limits[0].per", "'usr' is not one of user, project"),
    (put("limits.0.per", ["user", "x"]), "limits[0].per", "'x'"),
    (put("hosts.0.attributes", {"a": [1]}), "hosts[0].attributes.a", "[1] is not an attribute"),
    (put("hosts.0.attributes", {"a": None}), "hosts[0].attributes.a", "None is not an attribute"),
    (put("hosts.0.attributes", {"": "x"}), "hosts[0].attributes", "found ''"),
    (put("hosts.0.attributes", {"a\x07": "x"}), "hosts[0].attributes", "name:"),
    (put("hosts.0.attributes", {"a": 10**30}), "hosts[0].attributes.a", "out of range"),
    (put("hosts.0.total.slots", -1), "hosts[0].total.slots", "-1 is out of range"),
    (put("hosts.0.total.slots", 4.0), "hosts[0].total.slots", "4.0 is not an amount"),
    (put("hosts.0.total.slots", True), "hosts[0].total.slots", "True is not an amount"),
    (put("hosts.0.total.slots", 10**30), "hosts[0].total.slots", "out of range"),
    (put("hosts.0.total.mem", "8 XB"), "hosts[0].total.mem", "unknown unit 'XB'"),
    (put("hosts.0.total.mem", "-8GiB"), "hosts[0].total.mem", "'-8GiB' is not an amount"),
    (put("hosts.0.total.mem", "8,5GiB"), "hosts[0].total.mem", "'8,5GiB' is not an amount"),
    (put("hosts.0.total.mem", "9" * 5000), "hosts[0].total.mem", "is not an amount"),
    (put("hosts.0.rank", 1.5), "hosts[0].rank", "found 1.5"),
    (put("hosts.0.rank", 10**30), "hosts[0].rank", "less than or equal"),
    (put("hosts.0.idle_since", "2026-03-01T09:10:00"), "hosts[0].idle_since", "timezone"),
    (put("now", "yesterday"), "now", "found 'yesterday'"),
    (put("now", 1772359200), "now", "found 1772359200"),
    (put("now", "2026-02-30T10:00:00Z"), "now", "day value"),
    (put("now", "9999-12-31T23:59:59-12:00"), "now", "out of range"),
    (drop("now"), "now", "required field is missing"),
    (drop("format"), "format", "required field is missing"),
    (put("format", "xce.snapshot/2"), "format", "found 'xce.snapshot/2'"),
    (put("position", -1), "position", "found -1"),
    (put("position", "120"), "position", "found '120'"),
    (put("shared.0.total", None), "shared[0].total", "found null"),
    (put("shared.0.total", 19), "shared[0].total", "19 is not owned 14 + borrowed 6"),
    (put("queues.0.demand_threshold", [[5]]), "queues[0].demand_threshold[0][1]", "missing"),
    (put("queues.0.demand_threshold", [[5, 1, 1]]), "queues[0].demand_threshold[0]", "2 items"),
    (put("queues.0.demand_threshold", 5), "queues[0].demand_threshold", "found 5"),
    (put("running.0.hosts.0.name", "h9"), "running[0].hosts[0].name", "no host is named 'h9'"),
    (
        put("running.0.hosts.0.uses", {"gpu": 1}),
        "running[0].hosts[0].uses.gpu",
        "'h1' has no 'gpu'",
    ),
    (put("running.0.shared", {"tok": 1}), "running[0].shared.tok", "no shared resource"),
    (put("running.0.run_limit", "5 parsecs"), "running[0].run_limit", "'5 parsecs' is not"),
    (put("running.0.run_limit", -5), "running[0].run_limit", "-5 is out of range"),
    (put("running.0.run_limit", "9" * 400 + "h"), "running[0].run_limit", "out of range"),
    (put("pending.0.tasks", {"min": 0}), "pending[0].tasks.min", "found 0"),
    (put("pending.0.tasks", {"min": 3, "max": 2}), "pending[0].tasks", "max 2 is below min 3"),
    (put("pending.0.tasks", 4), "pending[0].tasks", "found 4"),
    (put("pending.0.held", "yes"), "pending[0].held", "found 'yes'"),
    (put("pending.0.waits_for", "101"), "pending[0].waits_for", "found '101'"),
    (put("pending.0.array.limit", 0), "pending[0].array.limit", "found 0"),
    (put("limits.0.groups", ["x"]), "limits[0].groups", "no group is named 'x'"),
    (drop("limits.0.amount"), "limits[0].amount", "required field is missing"),
    (put("quotas.0.group", "x"), "quotas[0].group", "no group is named 'x'"),
    (put("quotas.0.maximum", 1), "quotas[0]", "maximum 1 is below guaranteed 2"),
    (put("quotas.0.resource", "jobs"), "quotas[0].resource", "cannot be guaranteed"),
    (again("hosts"), "hosts[1].name", "'h1' is there twice"),
    (again("shared"), "shared[1].name", "'lic' is there twice"),
    (again("queues"), "queues[1].name", "'normal' is there twice"),
    (again("running"), "running[1].id", "'101' is there twice"),
    (again("pending"), "pending[1].id", "'102' is there twice"),
    (again("catalog.templates"), "catalog.templates[1].id", "'c4' is there twice"),
    (put("running.0.hosts.+", {"name": "h1"}), "running[0].hosts[1].name", "'h1' is there twice"),
    (
        put("catalog.templates.0.price_per_hour", 0.17),
        "catalog.templates[0].price_per_hour",
        "0.17 is not money",
    ),
    (
        put("catalog.templates.0.price_per_hour", "free"),
        "catalog.templates[0].price_per_hour",
        "'free'",
    ),
    (put("catalog.templates.0.allowed", 1e3), "catalog.templates[0].allowed", "found 1000.0"),
    (
        put("catalog.templates.0.provides", {"lic": 1}),
        "catalog.templates[0].provides.lic",
        "shared resource",
    ),
    (again("catalog.capacities"), "catalog.capacities[1].name", "'aws' is there twice"),
    (
        put("catalog.templates.0.draws.0.capacity", "gcp"),
        "catalog.templates[0].draws[0].capacity",
        "no capacity is named 'gcp'",
    ),
    (
        put("catalog.templates.0.draws.1.capacity", "aws"),
        "catalog.templates[0].draws[1].capacity",
        "'aws' is there twice",
    ),
    (put("hosts.0.total.lic", 1), "hosts[0].total.lic", "is a shared resource"),
    (drop("catalog.countable.0.headroom"), "catalog.countable[0].headroom", "missing"),
    (put("catalog.countable.0.name", "tok"), "catalog.countable[0].name", "no shared resource"),
    (put("catalog.in_flight.hosts.0.template", "x"), "catalog.in_flight.hosts[0].template", "'x'"),
    (put("catalog.in_flight.counts.0.name", "tok"), "catalog.in_flight.counts[0].name", "'tok'"),
]


def one_problem(text: str | bytes) -> tuple[str, str]:
    """Return path and message of the single problem of a text; the error is one line."""
    with pytest.raises(InputError) as caught:
        Snapshot.from_json(text, "s.json")
    (problem,) = caught.value.problems
    assert len(caught.value.lines()) == 1
    assert str(caught.value).startswith("s.json")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    return problem.path, problem.message


def test_the_good_snapshot_is_read_and_written_back_unchanged() -> None:
    snapshot = Snapshot.from_json(json.dumps(GOOD))

    assert Snapshot.from_json(snapshot.to_json()) == snapshot
    assert snapshot.hosts[0].total["mem"] == 32768


@pytest.mark.parametrize(
    ("change", "path", "part"), MALFORMED, ids=[f"{path}: {part}" for _, path, part in MALFORMED]
)
def test_a_mistake_gives_one_problem_with_its_path_and_the_value(
    change: Callable[[Document], None], path: str, part: str
) -> None:
    document = copy.deepcopy(GOOD)
    change(document)

    found, message = one_problem(json.dumps(document))

    assert found == path
    assert part in message


TEXT = json.dumps(GOOD)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "is empty"),
        (b"", "is empty"),
        (" \n", "is empty"),
        ("[]", "found an array"),
        ("null", "found null"),
        ('"xce.snapshot/1"', "found 'xce.snapshot/1'"),
        ("hosts: []", "is not JSON"),
        (TEXT[:-1], "is not JSON: EOF"),
        (TEXT[: len(TEXT) // 2], "is not JSON: EOF"),
        (TEXT + "}", "is not JSON: trailing"),
        (TEXT.replace('"now"', "'now'"), "is not JSON"),
        (TEXT.encode("utf-16"), "is not UTF-8 text: byte 0xff at offset 0"),
        (TEXT.replace("X86_64", "Z\u00fcrich").encode("latin-1"), "is not UTF-8"),
        (TEXT.replace("X86_64", r"Z\u00fcrich").replace(r"\u00fc", "\udcfc"), "lone surrogate"),
        (TEXT.replace("X86_64", r"\ud800"), "is not JSON"),
        ("\ufeff" + TEXT, "byte order mark"),
        (b"\xef\xbb\xbf" + TEXT.encode(), "byte order mark"),
        ("[" * 100_000, "recursion limit"),
        ('{"a":' * 100_000, "recursion limit"),
        (TEXT.replace("120", "1" * 5000), "number out of range"),
    ],
)
def test_a_text_that_is_no_json_object_gives_one_problem_about_the_whole(
    text: str | bytes, part: str
) -> None:
    path, message = one_problem(text)

    assert path == ""
    assert part in message


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400"])
@pytest.mark.parametrize(
    ("old", "path"),
    [
        ('"slots": 8', "hosts[0].total.slots"),
        ('"rev": 2.5', "hosts[0].attributes.rev"),
        ('"position": 120', "position"),
        ('"rank": -1', "hosts[0].rank"),
        ('"allowed": 10', "catalog.templates[0].allowed"),
        ('"run_limit": "1h"', "running[0].run_limit"),
    ],
)
def test_what_is_no_number_is_refused_wherever_a_number_is_wanted(
    number: str, old: str, path: str
) -> None:
    key = old.split(":")[0]
    assert TEXT.count(old) == 1

    found, message = one_problem(TEXT.replace(old, f"{key}: {number}"))

    assert found == path
    assert "inf" in message or "nan" in message


def test_minus_zero_is_zero() -> None:
    snapshot = Snapshot.from_json(
        TEXT.replace('"rev": 2.5', '"rev": -0.0').replace('"rank": -1', '"rank": -0')
    )

    assert (snapshot.hosts[0].attributes["rev"], snapshot.hosts[0].rank) == (0, 0)
    assert '"rev":0' in snapshot.to_json()


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ('"position": 120', '"position": 1, "position": 120', "position"),
        ('"slots": 8', '"slots": 8, "slots": 8', "hosts[0].total.slots"),
        ('"lic": 2', '"lic": 2, "lic": 3', "running[0].shared.lic"),
        ('"rev": 2.5', '"a b": 1, "a b": 2', 'hosts[0].attributes["a b"]'),
    ],
)
def test_a_key_that_is_there_twice_is_refused(old: str, new: str, path: str) -> None:
    assert one_problem(TEXT.replace(old, new, 1)) == (path, "the key is there twice")


def test_all_mistakes_are_told_at_once() -> None:
    document = copy.deepcopy(GOOD)
    document["hosts"].append({"name": "h2", "total": {"slots": -1}, "state": "off"})

    with pytest.raises(InputError) as caught:
        Snapshot.from_json(json.dumps(document))

    assert [problem.path for problem in caught.value.problems] == [
        "hosts[1].state",
        "hosts[1].total.slots",
    ]


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["h1", "lic", "u1", "102", "8GiB", "1h", "0.17", "2026-03-01T10:00:00Z", ""])
    | st.text(max_size=5),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3)
    ),
    max_leaves=5,
)


def places(value: Json, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the paths of everything inside a document."""
    found: list[tuple[str | int, ...]] = [path] if path else []
    if isinstance(value, dict):
        for key, child in value.items():
            found += places(child, (*path, key))
    elif isinstance(value, list):
        for i, child in enumerate(value):
            found += places(child, (*path, i))
    return found


def is_read_or_refused(text: str | bytes) -> None:
    try:
        snapshot = Snapshot.from_json(text)
    except InputError as error:
        refusal = error
    else:
        assert Snapshot.from_json(snapshot.to_json()) == snapshot
        return
    assert all(problem.message for problem in refusal.problems)
    assert len(str(refusal).splitlines()) == len(refusal.problems)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    is_read_or_refused(raw)


@given(st.text(st.characters(), max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    is_read_or_refused(text)


@given(st.data())
def test_a_snapshot_with_values_dropped_or_replaced_is_read_or_refused(data: st.DataObject) -> None:
    document = copy.deepcopy(GOOD)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places(document) or [("format",)]))
        target: Any = document
        for step in path[:-1]:
            target = target[step]
        match data.draw(st.sampled_from(["replace", "drop", "insert"])):
            case "replace":
                target[path[-1]] = data.draw(JSON_VALUES)
            case "insert" if isinstance(target, dict):
                target[data.draw(st.text(max_size=5))] = data.draw(JSON_VALUES)
            case "insert":
                target.insert(0, data.draw(JSON_VALUES))
            case _:
                del target[path[-1]]
    is_read_or_refused(json.dumps(document))


@given(st.data())
def test_a_snapshot_with_bytes_changed_is_read_or_refused(data: st.DataObject) -> None:
    raw = bytearray(TEXT.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(raw)))
        end = min(len(raw), start + data.draw(st.integers(0, 3)))
        raw[start:end] = data.draw(st.binary(max_size=3))
    is_read_or_refused(bytes(raw))
