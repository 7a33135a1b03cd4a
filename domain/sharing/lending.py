"""How much is borrowed, and which borrowed amounts go back: the arithmetic, without who asks or why.

All amounts are units of one resource. The rules are those of ``docs/explanation/licence-arithmetic.md``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from xce.domain.values import natural_key

_ZERO = Decimal(0)


def amount_to_ask(
    *,
    occupied: int,
    wanted: int,
    headroom: int,
    total: int,
    open_asks: int,
    owed: int,
    max_borrow: int,
    step: int,
) -> int:
    """Return how much to ask now: what is missing, rounded up to steps, within ``max_borrow`` rounded down to them.

    Without demand at most the headroom is asked for: what is occupied may count a fresh booking and its checkout both.

    Args:
        occupied: what nothing may fall below.
        wanted: what startable waiting jobs want, gross.
        headroom: what is kept free beyond that.
        total: what may be booked against.
        open_asks: asked and not answered.
        owed: lent to us and not confirmed back, what is on its way back included.
        max_borrow: most that may be owed and asked together.
        step: every ask is a multiple of it.
    """
    missing = max(0, occupied + wanted + headroom - total - open_asks)
    if not wanted:
        missing = min(missing, headroom)
    room = max(0, max_borrow - owed - open_asks)
    return min(-(-missing // step), room // step) * step


def unused(*, owned: int, borrowed: int, peak: int) -> int:
    """Return what stayed unused for the whole idle window: at most what is borrowed."""
    return max(0, owned + borrowed - max(peak, owned))


@dataclass(frozen=True, slots=True)
class Lent:
    """A grant that could go back.

    Attributes:
        usable: what of it is in the total now.
        held_until: nothing goes back before.
        price: per hour of one unit; None: unknown.
        step: parts that go back are multiples of it.
        parts: whether its lender takes parts.
    """

    grant: str
    lender: str
    usable: int
    granted_at: datetime
    held_until: datetime | None
    price: Decimal | None
    step: int = 1
    parts: bool = False


@dataclass(frozen=True, slots=True)
class Kept:
    """Why a grant, or a part of it, stays."""

    grant: str
    why: str


def choose(
    lent: Sequence[Lent],
    amount: int,
    *,
    now: datetime,
    idle_return_after: timedelta = timedelta(0),
    recalled: bool = False,
) -> tuple[list[tuple[Lent, int]], list[Kept]]:
    """Return which parts of which grants go back, together at most ``amount``, and why the others stay.

    The dearest go first, then the oldest. ``recalled``: the lender wants it, so that it need not have been idle; a hold it keeps all
    the same.
    """
    chosen: list[tuple[Lent, int]] = []
    kept: list[Kept] = []
    left = amount
    for each in sorted(lent, key=_dearest_first):
        if each.usable <= 0:
            continue
        why = _too_young(each, now, timedelta(0) if recalled else idle_return_after)
        if why is not None:
            kept.append(Kept(each.grant, why))
            continue
        part = _part(each, left)
        if part:
            chosen.append((each, part))
            left -= part
        if left and part < each.usable:
            kept.append(Kept(each.grant, _why_no_part(each, left)))
    return chosen, kept


def _too_young(lent: Lent, now: datetime, idle_return_after: timedelta) -> str | None:
    if lent.held_until is not None and now < lent.held_until:
        return f"grant {lent.grant} is held until {_clock(lent.held_until)}"
    if now - lent.granted_at < idle_return_after:
        idle_until = lent.granted_at + idle_return_after
        return f"grant {lent.grant} is not old enough to be idle before {_clock(idle_until)}"
    return None


def _part(lent: Lent, left: int) -> int:
    """Return how much of a grant goes back: steps of it, or, where parts are not taken or make no step, all or nothing."""
    if lent.usable <= left and (not lent.parts or lent.usable < lent.step):
        return lent.usable
    if not lent.parts:
        return 0
    return min(lent.usable, left) // lent.step * lent.step


def _why_no_part(lent: Lent, left: int) -> str:
    if lent.parts:
        return f"{left} of grant {lent.grant} are less than a step of {lent.step}"
    return f"grant {lent.grant} of {lent.usable} goes back as a whole only"


def _dearest_first(lent: Lent) -> tuple[object, ...]:
    """Known prices first, the dearest of them first; then the oldest grant, then its id."""
    unknown = lent.price is None
    return (unknown, -(lent.price or _ZERO), lent.granted_at, natural_key(lent.grant))


def _clock(time: datetime) -> str:
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")
