"""Many hosts in one word."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xce.domain.cluster.host_names import expand


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("h1", ("h1",)),
        ("node[1-3]", ("node1", "node2", "node3")),
        ("zewura[2,8-10]", ("zewura2", "zewura8", "zewura9", "zewura10")),
        ("n[008-011]", ("n008", "n009", "n010", "n011")),
        ("n[9-11]", ("n9", "n10", "n11")),
        ("r[1-2]c[3-4].site", ("r1c3.site", "r1c4.site", "r2c3.site", "r2c4.site")),
        ("n[5]", ("n5",)),
        ("n[1, 3]", ("n1", "n3")),
    ],
)
def test_a_pattern_stands_for_its_names(pattern: str, names: tuple[str, ...]) -> None:
    assert expand(pattern) == names


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("n[1-3", "a bracket without its partner"),
        ("n1-3]", "a bracket without its partner"),
        ("n[[1]]", "bracket"),
        ("n[]", "'' is not a number or a range"),
        ("n[a-b]", "'a-b' is not a number or a range"),
        ("n[1-]", "'1-' is not a number"),
        ("n[-1]", "'-1' is not a number"),
        ("n[1-2-3]", "'1-2-3' is not a number"),
        ("n[3-1]", "goes down"),
        ("n[1,1]", "names a host twice"),
        ("n[1-3,2]", "names a host twice"),
        ("n[1-100001]", "more than 100000"),
        ("n[1-999]m[1-999]", "more than 100000"),
    ],
)
def test_a_wrong_pattern_says_what_is_wrong(pattern: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)) as caught:
        expand(pattern)

    assert pattern in str(caught.value)


@given(st.integers(0, 9999), st.integers(0, 300))
def test_a_range_has_every_number_once_in_order(first: int, more: int) -> None:
    names = expand(f"h[{first}-{first + more}]")

    assert names == tuple(f"h{n}" for n in range(first, first + more + 1))


@given(st.text(alphabet="ab[]0123456789-,", max_size=14))
def test_any_text_is_names_or_a_value_error(pattern: str) -> None:
    with suppress(ValueError):
        names = expand(pattern)
        assert len(set(names)) == len(names) > 0
