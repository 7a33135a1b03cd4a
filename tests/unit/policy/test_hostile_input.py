"""Whatever a file says, reading and deciding end with decisions or with an input error."""

import copy
import json
from collections.abc import Sequence
from typing import Any, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.policy.test_properties import rounds
from xce.domain.errors import InputError
from xce.domain.formats.policy import Decisions, PolicyInput
from xce.domain.policy.checks import read_policy_input
from xce.domain.policy.decide import decide

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

#: Values at and past the edges of what the fields hold.
EDGES: tuple[Any, ...] = (
    None, True, 0, 1, -1, 2**53 - 1, 2**53, 10**30, 1.5, "", "c4", "0", "99999999999999.999999",
    "0.000001", "1e9", "10y", "3650d", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "\ud7ff\u0000", [], {}, [[]],
)  # fmt: skip


def _places(value: Json, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    children: Sequence[tuple[str | int, Json]] = ()
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = list(enumerate(value))
    return [path, *(place for key, child in children for place in _places(child, (*path, key)))]


@st.composite
def damaged(draw: st.DrawFn) -> str:
    whole: Any = json.loads(draw(rounds()).to_json())
    for _ in range(draw(st.integers(1, 4))):
        path = draw(st.sampled_from(_places(whole)))
        if not path:
            continue
        parent = whole
        for key in path[:-1]:
            parent = parent[key]
        parent[path[-1]] = copy.deepcopy(draw(st.sampled_from(EDGES)))
    return json.dumps(whole)


def _read(text: str | bytes) -> PolicyInput | None:
    """Return the input, or None where it is refused; nothing else may happen."""
    try:
        return read_policy_input(text)
    except InputError:
        return None


@given(damaged())
@settings(max_examples=150)
def test_a_damaged_round_is_refused_or_decided(text: str) -> None:
    inputs = _read(text)
    if inputs is None:
        return
    decisions = decide(inputs)

    assert Decisions.from_json(decisions.to_json()) == decisions


@given(st.text() | st.binary())
def test_any_text_is_refused(text: str | bytes) -> None:
    assert _read(text) is None


@given(rounds())
def test_a_round_is_read_back_as_it_was_written(inputs: PolicyInput) -> None:
    assert read_policy_input(inputs.to_json()) == inputs
