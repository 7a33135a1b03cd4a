"""Chance without a generator: a draw depends on the seed and on what it is for, never on what was drawn before."""

from dataclasses import dataclass
from datetime import timedelta
from decimal import Context, Decimal
from fractions import Fraction
from hashlib import sha256
from typing import Final

from xce.domain.formats.simulated_provider import Delay

#: Enough digits that the rounding to seconds never depends on them.
_CONTEXT: Final = Context(prec=28)
#: Standard normal quantiles; between two of them z is taken as linear. Tails end at one in a thousand.
_NORMAL: Final[tuple[tuple[Fraction, Decimal], ...]] = tuple(
    (Fraction(u), Decimal(z))
    for u, z in (
        ("0.001", "-3.0902"), ("0.01", "-2.3263"), ("0.05", "-1.6449"), ("0.1", "-1.2816"), ("0.2", "-0.8416"),
        ("0.3", "-0.5244"), ("0.4", "-0.2533"), ("0.5", "0"), ("0.6", "0.2533"), ("0.7", "0.5244"), ("0.8", "0.8416"),
        ("0.9", "1.2816"), ("0.95", "1.6449"), ("0.99", "2.3263"), ("0.999", "3.0902"),
    )
)  # fmt: skip
_Z95: Final = Decimal("1.6449")


def draw(seed: int, *purpose: str) -> Fraction:
    """Return a number from 0 up to but not including 1; the same arguments give the same number, everywhere."""
    text = "\x1f".join((str(seed), *purpose)).encode()
    return Fraction(int.from_bytes(sha256(text).digest()[:8]), 2**64)


def chance(share: Decimal, seed: int, *purpose: str) -> bool:
    """Return whether something that happens to ``share`` of all cases happens to this one."""
    return share > 0 and draw(seed, *purpose) < Fraction(share)


def delay(spread: Delay, seed: int, *purpose: str) -> timedelta:
    """Return one length of time of a spread, in whole seconds.

    Decimal logarithm and exponential are correctly rounded, so that the answer does not depend on the machine.
    """
    if spread.p95 == spread.p50:
        return spread.p50
    median, high = (Decimal(round(part.total_seconds())) for part in (spread.p50, spread.p95))
    sigma = _CONTEXT.divide(_CONTEXT.ln(_CONTEXT.divide(high, median)), _Z95)
    factor = _CONTEXT.exp(_CONTEXT.multiply(sigma, _normal(draw(seed, *purpose))))
    return timedelta(seconds=round(_CONTEXT.multiply(median, factor)))


def _normal(u: Fraction) -> Decimal:
    """Return the standard normal quantile of ``u``, by the table."""
    low_u, low_z = _NORMAL[0]
    if u <= low_u:
        return low_z
    for high_u, high_z in _NORMAL[1:]:
        if u <= high_u:
            part = (u - low_u) / (high_u - low_u)
            step = _CONTEXT.divide(Decimal(part.numerator), Decimal(part.denominator))
            return _CONTEXT.add(low_z, _CONTEXT.multiply(step, _CONTEXT.subtract(high_z, low_z)))
        low_u, low_z = high_u, high_z
    return low_z


@dataclass(frozen=True, slots=True)
class Luck:
    """The chance of one actor under one seed."""

    seed: int
    actor: str

    def draw(self, purpose: str, key: str) -> Fraction:
        """See ``draw``."""
        return draw(self.seed, self.actor, purpose, key)

    def chance(self, share: Decimal, purpose: str, key: str) -> bool:
        """See ``chance``."""
        return chance(share, self.seed, self.actor, purpose, key)

    def delay(self, spread: Delay, purpose: str, key: str) -> timedelta:
        """See ``delay``."""
        return delay(spread, self.seed, self.actor, purpose, key)
