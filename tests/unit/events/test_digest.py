"""The digest chain: every part of an event counts, and none can be moved into another."""

from hypothesis import given
from hypothesis import strategies as st

from xce.domain.events.digest import GENESIS, link

TEXT = st.text(max_size=6)
ROWS = st.tuples(st.integers(0, 50), TEXT, st.integers(0, 50), TEXT, st.binary(max_size=6))


def test_the_chain_is_the_one_that_recorded_logs_carry() -> None:
    """A change of these bytes makes every existing log fail."""
    assert GENESIS.hex() == "f8c70b8b9820395ff4a736898312e5794710d11fcb8caa16d1b9a18a3ab7b528"
    assert link(GENESIS, 1, "lease:aws", 1, "xce.lease.granted", b"{}").hex() == (
        "fb9fbbc954d273a2fb60e760090cfe014b461f808a6ac122908af1f8525a2a08"
    )


@given(ROWS, ROWS)
def test_two_events_have_one_digest_only_if_they_are_equal(
    one: tuple[int, str, int, str, bytes], other: tuple[int, str, int, str, bytes]
) -> None:
    assert (link(GENESIS, *one) == link(GENESIS, *other)) == (one == other)


@given(ROWS)
def test_the_digest_before_counts(row: tuple[int, str, int, str, bytes]) -> None:
    assert link(GENESIS, *row) != link(link(GENESIS, *row), *row)
