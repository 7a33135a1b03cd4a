"""When what has ended was paid: by quarters of an hour for a month, by days of UTC before that.

All clocks of the world are whole quarters of an hour apart, so that days and months of any zone come out exactly.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from xce.domain.formats.provider import Billing, Kind
from xce.domain.policy.billing import due
from xce.projections.kept import Pairs

#: Provider, kind, template or resource, and project.
Account = tuple[str, Kind, str | None, str | None]

_SECOND: Final = timedelta(seconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
QUARTER_S: Final = 900
DAY_S: Final = 86_400
#: Quarters are kept for so long: the longest month, and what clocks differ by.
EXACT_FOR: Final = timedelta(days=33)


@dataclass(slots=True)
class Paid:
    """What falls due in one stretch of time. ``cost`` is in millionths times seconds; ``unpriced``: what ended and had no price."""

    cost: int = 0
    unpriced: int = 0

    def add(self, other: "Paid") -> None:
        """Count another one."""
        self.cost += other.cost
        self.unpriced += other.unpriced


@dataclass(frozen=True, slots=True)
class Use:
    """Some hosts or units of one kind, over a time: what falls due of them when.

    Attributes:
        price: of one, in millionths per hour; None: unknown.
        until: when it ended; None: it goes on.
    """

    amount: int
    price: int | None
    billing: Billing
    since: datetime
    until: datetime | None = None

    def paid(self, start: datetime, stop: datetime) -> Paid:
        """Return what falls due from a moment on and before another one."""
        if self.price is None:
            gone = self.until is not None and start <= self.until < stop
            return Paid(0, self.amount if gone else 0)
        time = due(self.since, self.until, self.billing, stop) - due(
            self.since, self.until, self.billing, start
        )
        return Paid(time // _SECOND * self.amount * self.price)


@dataclass(slots=True)
class Ledger:
    """What has ended, by the number of the quarter of an hour since 1970, or of the day."""

    quarters: Pairs[Account, dict[int, Paid]] = field(
        default_factory=dict[Account, dict[int, Paid]]
    )
    days: Pairs[Account, dict[int, Paid]] = field(default_factory=dict[Account, dict[int, Paid]])
    #: The first day of which the quarters are kept.
    exact_from: int = 0

    def enter(self, account: Account, use: Use) -> None:
        """Count a use that has ended; what it ends at is not before what was counted last."""
        assert use.until is not None, "it has ended"
        self._age(use.until)
        first = _number(use.since, QUARTER_S)
        last = max(first, _number(use.until, QUARTER_S))
        exact = self.exact_from * DAY_S // QUARTER_S
        for day in range(first * QUARTER_S // DAY_S, self.exact_from):
            if day * DAY_S // QUARTER_S > last:
                break
            _count(self.days, account, day, use, DAY_S)
        for quarter in range(max(first, exact), last + 1):
            _count(self.quarters, account, quarter, use, QUARTER_S)

    def since(self, start: datetime) -> Iterator[tuple[Account, Paid]]:
        """Yield what has fallen due from a moment on, by account; the moment is within what is exact."""
        first = _number(start, QUARTER_S)
        for account, rows in self.quarters.items():
            total = Paid()
            for number, paid in rows.items():
                if number >= first:
                    total.add(paid)
            yield account, total

    def rows(self) -> Iterator[tuple[Account, datetime, Paid]]:
        """Yield everything, by account and the moment at which the quarter or the day of UTC begins."""
        for kept, length_s in ((self.days, DAY_S), (self.quarters, QUARTER_S)):
            for account, rows in kept.items():
                for number, paid in rows.items():
                    yield account, _EPOCH + timedelta(seconds=number * length_s), paid

    def _age(self, now: datetime) -> None:
        """Put quarters that are too old into their days."""
        oldest = _number(now - EXACT_FOR, DAY_S)
        if oldest <= self.exact_from:
            return
        self.exact_from = oldest
        for account, rows in self.quarters.items():
            for number in [n for n in rows if n * QUARTER_S < oldest * DAY_S]:
                days = self.days.setdefault(account, {})
                days.setdefault(number * QUARTER_S // DAY_S, Paid()).add(rows.pop(number))


def _count(
    kept: dict[Account, dict[int, Paid]], account: Account, number: int, use: Use, length_s: int
) -> None:
    start = _EPOCH + timedelta(seconds=number * length_s)
    paid = use.paid(start, start + timedelta(seconds=length_s))
    if paid.cost or paid.unpriced:
        kept.setdefault(account, {}).setdefault(number, Paid()).add(paid)


def _number(at: datetime, length_s: int) -> int:
    return (at - _EPOCH) // timedelta(seconds=length_s)
