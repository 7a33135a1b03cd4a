"""What changed between two documents, and that nothing that changed is missed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.stories import Story
from xce.adapters.store.open import MEMORY, open_log
from xce.domain.errors import NotFoundError
from xce.replay.differences import ABSENT, Change, changes_of, difference, patched
from xce.replay.time_travel import TimeTravel

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, "", "a", "1"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["a", "b", "a.b", ""]), inner, max_size=3)
    ),
    max_leaves=8,
)
documents = st.dictionaries(st.sampled_from(["x", "y", "z"]), json_values, max_size=3)


@given(documents, documents)
def test_applied_to_the_one_they_give_the_other(before: Any, after: Any) -> None:
    changes = list(changes_of(before, after))

    result = patched(before, changes)

    assert repr_of(result) == repr_of(after)
    assert bool(changes) == (repr_of(before) != repr_of(after))


@given(documents, documents)
def test_they_leave_the_document_itself_alone(before: Any, after: Any) -> None:
    text = repr_of(before)

    patched(before, changes_of(before, after))

    assert repr_of(before) == text


def repr_of(value: Any) -> Any:
    """1, 1.0 and true are told apart; the order of keys is not."""
    if isinstance(value, dict):
        return {key: repr_of(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return repr(value)


def test_null_is_not_absent() -> None:
    assert list(changes_of({"a": None}, {"b": None})) == [
        Change(("a",), None, ABSENT),
        Change(("b",), ABSENT, None),
    ]


def test_a_path_is_one_text() -> None:
    (change,) = changes_of({"a": {"request:R1": {"b c": 1}}}, {"a": {"request:R1": {"b c": 2}}})

    assert change.what == 'a.request:R1["b c"]'


def test_the_events_in_between_are_counted_by_kind() -> None:
    with open_log(MEMORY) as log:
        Story(log).tell()
        travel = TimeTravel(log)

        found = difference(travel.at(5), travel.at(12))

        assert found.events == {
            "xce.instance.granted": 2,
            "xce.request.accepted": 1,
            "xce.request.closed": 1,
            "xce.request.instance-granted": 2,
            "xce.request.intended": 1,
        }
        changed = {change.path[:2]: change for change in found.changes()}
        assert changed["aggregates", "instance:I1"].before is ABSENT
        assert changed["aggregates", "instance:I1"].after["state"] == "starting"


def test_the_later_one_comes_second() -> None:
    with open_log(MEMORY) as log:
        Story(log).tell()
        travel = TimeTravel(log)

        with pytest.raises(NotFoundError, match="position 5 is before 12; wanted the earlier one"):
            difference(travel.at(12), travel.at(5))
