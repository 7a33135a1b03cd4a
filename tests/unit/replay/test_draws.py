"""Chance by seed and purpose."""

from datetime import timedelta
from decimal import Decimal, getcontext, localcontext
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from xce.domain.formats.simulated_provider import Delay
from xce.replay.draws import chance, delay, draw

MINUTE = timedelta(minutes=1)


def test_a_draw_is_the_same_on_every_machine() -> None:
    # The first 64 bits of a SHA-256, written down: another number would change every recorded simulation.
    assert draw(7, "boot") == Fraction(0xE8BABAD95097836C, 2**64)


@given(st.integers(0, 2**53), st.lists(st.text(max_size=5), min_size=1, max_size=3))
def test_a_draw_is_from_0_up_to_1(seed: int, purpose: list[str]) -> None:
    assert 0 <= draw(seed, *purpose) < 1


def test_purposes_are_kept_apart() -> None:
    assert draw(1, "ab", "c") != draw(1, "a", "bc")


def test_draws_are_spread_evenly() -> None:
    tenths = [0] * 10
    for n in range(5000):
        tenths[int(draw(1, "x", str(n)) * 10)] += 1

    assert all(400 < count < 600 for count in tenths)


def test_nothing_never_happens_and_all_always_does() -> None:
    assert not any(chance(Decimal(0), 1, str(n)) for n in range(100))
    assert all(chance(Decimal(1), 1, str(n)) for n in range(100))


def test_a_constant_delay_draws_nothing() -> None:
    assert delay(Delay(p50=MINUTE, p95=MINUTE), 1, "x") == MINUTE


@given(st.integers(1, 600), st.integers(0, 3600), st.text(max_size=4))
def test_a_delay_is_in_whole_seconds_and_within_its_tails(
    median: int, more: int, purpose: str
) -> None:
    spread = Delay(p50=timedelta(seconds=median), p95=timedelta(seconds=median + more))

    found = delay(spread, 1, purpose)

    ratio = (median + more) / median
    assert found.microseconds == 0
    assert int(median / ratio**1.9) - 1 <= found.total_seconds() <= median * ratio**1.9 + 1


def test_a_delay_does_not_depend_on_the_callers_decimal_context() -> None:
    spread = Delay(p50=MINUTE, p95=5 * MINUTE)
    usual = [delay(spread, 1, str(n)) for n in range(50)]
    with localcontext() as context:
        context.prec = 3
        strange = [delay(spread, 1, str(n)) for n in range(50)]

    assert strange == usual
    assert getcontext().prec == 28
