"""What everything cost so far, and what it costs per hour now.

A host costs from its grant to its confirmed end, a unit from its grant until the lender has it back; in the units its provider
bills. What nobody owns costs as well, from when its provider says that it began (else from when it was first seen) until it is gone or
a record owns it; if a person says that it is none of ours, it has cost us nothing. Its item and price are what it counts as
(``domain/policy/unaccounted.py``). An unknown price is not zero: what has none is counted beside the cost. By day and month it counts when it falls due: each
paid unit when it begins.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import reduce
from typing import Final
from zoneinfo import ZoneInfo

from xce.domain.events.base import DomainEvent
from xce.domain.formats.periods import Period, Spent, SpentLine
from xce.domain.formats.provider import Billing, Kind
from xce.domain.policy import money
from xce.domain.policy.billing import billed
from xce.domain.policy.unaccounted import counts_as, stated_prices
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.orphan import Orphan
from xce.domain.provisioning.provider import Provider
from xce.domain.values import LONGEST, natural_key
from xce.projections.kept import Keeper, Pairs
from xce.projections.ledger import DAY_S, Account, Ledger, Paid, Use
from xce.projections.projection import Projection, State

_SECOND: Final = timedelta(seconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

#: Provider, kind, template or resource, and whether a record of ours owns it.
_Key = tuple[str, Kind, str | None, bool]


@dataclass(frozen=True, slots=True)
class SpendingLine:
    """What one provider's template or resource cost.

    Attributes:
        item: None: unknown, of something that nobody owns and whose provider offers none.
        live: hosts or units that cost now.
        ended: hosts or units that have ended.
        used: host or unit time, up to now.
        billed: the time that is paid for, up to now.
        cost: of all that has a known price; in the controller's currency, to the millionth.
        per_hour: what the live part with a known price costs.
        unpriced: hosts or units, live or ended, of unknown price.
        owned: whether records of ours own them; else nobody does.
    """

    provider: str
    kind: Kind
    item: str | None
    live: int
    ended: int
    used: timedelta
    billed: timedelta
    cost: Decimal
    per_hour: Decimal
    unpriced: int
    owned: bool = True


@dataclass(slots=True)
class _Ended:
    """What has ended of one line. ``cost`` is in millionths times seconds."""

    amount: int = 0
    used: timedelta = timedelta(0)
    billed: int = 0
    cost: int = 0
    unpriced: int = 0


@dataclass(slots=True)
class _Live:
    """One host, or one grant, that costs. ``price`` is in millionths per hour; None: unknown."""

    key: _Key
    amount: int
    price: int | None
    since: datetime
    billing: Billing
    project: str | None = None
    returns: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def account(self) -> Account:
        """Whom it counts for."""
        return (*self.key[:3], self.project)

    def use(self, amount: int, until: datetime | None) -> Use:
        """Return the use of a part of it."""
        return Use(amount, self.price, self.billing, self.since, until)


@dataclass(slots=True)
class _Kept:
    ended: Pairs[_Key, _Ended]
    live: dict[str, _Live]
    billing: dict[str, Billing]
    stated: Pairs[tuple[str, Kind], dict[str, Decimal | None]]
    ledger: Ledger


_KEEPER: Final = Keeper(_Kept)


class Spending(Projection):
    """Costs at the position reached."""

    def __init__(self) -> None:
        super().__init__()
        self._ended: dict[_Key, _Ended] = {}
        self._live: dict[str, _Live] = {}
        self._billing: dict[str, Billing] = {}
        #: What providers offer of each kind, with the price of each; of prices, what is said now.
        self._stated: dict[tuple[str, Kind], dict[str, Decimal | None]] = {}
        self._ledger = Ledger()
        self._on(Provider.Described, self._described)
        self._on(Instance.Granted, self._instance_granted)
        self._on(Instance.Returned, self._all_ended)
        self._on(Instance.Lost, self._all_ended)
        self._on(Grant.Granted, self._grant_granted)
        self._on(Grant.ReturnStarted, self._return_started)
        self._on(Grant.ReturnConfirmed, self._return_confirmed)
        self._on(Grant.ReturnRefused, self._return_refused)
        self._on(Grant.PartLost, self._part_lost)
        self._on(Grant.Lost, self._all_ended)
        self._on(Orphan.Found, self._orphan_found)
        self._on(Orphan.Adopted, self._orphan_ended)
        self._on(Orphan.Vanished, self._orphan_ended)
        self._on(Orphan.Dismissed, self._orphan_dismissed)

    # -------------------------------------------------------------------- views
    def lines(self, now: datetime) -> tuple[SpendingLine, ...]:
        """Return what each provider's templates and resources cost up to ``now``, by provider and name; what nobody owns of each by itself."""
        live: dict[_Key, list[_Live]] = {}
        for part in self._live.values():
            live.setdefault(part.key, []).append(part)
        keys = sorted(
            self._ended.keys() | live.keys(),
            key=lambda key: (natural_key(key[0]), key[1], natural_key(key[2] or ""), not key[3]),
        )
        nothing = _Ended()
        return tuple(
            _line(key, self._ended.get(key, nothing), live.get(key, []), now) for key in keys
        )

    def cost_at(self, now: datetime, provider: str | None = None) -> Decimal:
        """Return what all lines, or those of one provider, cost up to ``now``: the exact sum of the lines."""
        return reduce(money.plus, (line.cost for line in self._of(provider, now)), money.ZERO)

    def per_hour(self, now: datetime, provider: str | None = None) -> Decimal:
        """Return what everything that lives and has a known price costs per hour."""
        return reduce(money.plus, (line.per_hour for line in self._of(provider, now)), money.ZERO)

    def spent(self, period: Period, zone: str, now: datetime) -> Spent:
        """Return what was spent since the day or month of ``now`` began; its costs are rounded up to the millionth."""
        start = period.start(now, zone)
        found: dict[Account, Paid] = {}
        for account, paid in self._ledger.since(start):
            found.setdefault(account, Paid()).add(paid)
        for part in self._live.values():
            found.setdefault(part.account, Paid()).add(part.use(part.amount, None).paid(start, now))
        return Spent(period=period, zone=zone, since=start, lines=_lines(found))

    def this_far(self, zones: Iterable[str], now: datetime) -> tuple[Spent, ...]:
        """Return what was spent today and this month, by the clocks of each zone."""
        return tuple(self.spent(period, zone, now) for zone in zones for period in Period)

    def periods(self, period: Period, zone: str, now: datetime) -> tuple[Spent, ...]:
        """Return what was spent in each day or month, the oldest first; none of those without costs.

        What ended over a month ago is known by days of UTC only; it counts by their dates.
        """
        exact_from = _EPOCH + self._ledger.exact_from * timedelta(seconds=DAY_S)
        found: dict[datetime, dict[Account, Paid]] = {}
        starts: dict[datetime, datetime] = {}
        for account, at, paid in self._ledger.rows():
            if at not in starts:
                starts[at] = period.start(_noon(at, zone) if at < exact_from else at, zone)
            found.setdefault(starts[at], {}).setdefault(account, Paid()).add(paid)
        for part in self._live.values():
            use = part.use(part.amount, None)
            start = period.start(part.since, zone)
            while start <= now:
                end = period.end(start, zone)
                paid = use.paid(start, min(end, now))
                found.setdefault(start, {}).setdefault(part.account, Paid()).add(paid)
                start = end
        return tuple(
            Spent(period=period, zone=zone, since=start, lines=_lines(found[start]))
            for start in sorted(found)
        )

    def _of(self, provider: str | None, now: datetime) -> Iterator[SpendingLine]:
        return (line for line in self.lines(now) if provider in (None, line.provider))

    def state(self) -> State:
        """Return all that was folded as a comparable value."""
        return {
            "ended": {
                key: (row.amount, row.used, row.billed, row.cost, row.unpriced)
                for key, row in self._ended.items()
            },
            "live": {
                name: (
                    row.account,
                    row.amount,
                    row.price,
                    row.since,
                    row.billing,
                    dict(row.returns),
                )
                for name, row in self._live.items()
            },
            "billing": dict(self._billing),
            "stated": {key: dict(prices) for key, prices in self._stated.items()},
            "quarters": {account: dict(rows) for account, rows in self._ledger.quarters.items()},
            "days": {account: dict(rows) for account, rows in self._ledger.days.items()},
            "exact": {"from": self._ledger.exact_from},
        }

    def keep(self) -> bytes:
        """Return all that was folded as JSON, for ``resume``."""
        return _KEEPER.dump(
            _Kept(self._ended, self._live, self._billing, self._stated, self._ledger)
        )

    def resume(self, kept: bytes) -> None:
        """Stand where ``keep`` was called."""
        parts = _KEEPER.load(kept)
        self._ended = parts.ended
        self._live = parts.live
        self._billing = parts.billing
        self._stated = parts.stated
        self._ledger = parts.ledger

    # -------------------------------------------------------------------- folds
    def _described(self, event: Provider.Described, position: int) -> None:
        provider = event.description
        self._billing[provider.name] = provider.billing
        for kind in Kind:
            self._stated[provider.name, kind] = stated_prices(provider, kind)

    def _instance_granted(self, event: Instance.Granted, position: int) -> None:
        key = (event.provider, Kind.HOST, event.template, True)
        self._start(event, key, 1, event.billing)

    def _grant_granted(self, event: Grant.Granted, position: int) -> None:
        key = (event.provider, Kind.COUNTABLE, event.resource, True)
        billing = self._billing.get(event.provider) or Billing()
        self._start(event, key, event.amount, billing)

    def _start(
        self, event: Instance.Granted | Grant.Granted, key: _Key, amount: int, billing: Billing
    ) -> None:
        self._live[event.originator_id] = _Live(
            key, amount, _millionths(event.price_per_hour), event.timestamp, billing, event.project
        )

    def _return_started(self, event: Grant.ReturnStarted, position: int) -> None:
        self._live[event.originator_id].returns[event.return_id] = event.amount

    def _return_refused(self, event: Grant.ReturnRefused, position: int) -> None:
        del self._live[event.originator_id].returns[event.return_id]

    def _return_confirmed(self, event: Grant.ReturnConfirmed, position: int) -> None:
        part = self._live[event.originator_id]
        self._end(event, part, part.returns.pop(event.return_id))

    def _part_lost(self, event: Grant.PartLost, position: int) -> None:
        self._end(event, self._live[event.originator_id], event.amount)

    def _all_ended(self, event: DomainEvent, position: int) -> None:
        part = self._live[event.originator_id]
        self._end(event, part, part.amount)

    def _end(self, event: DomainEvent, part: _Live, amount: int) -> None:
        _add(self._ended.setdefault(part.key, _Ended()), part, amount, event.timestamp)
        self._ledger.enter(part.account, part.use(amount, event.timestamp))
        part.amount -= amount
        if not part.amount:
            del self._live[event.originator_id]

    def _orphan_found(self, event: Orphan.Found, position: int) -> None:
        since = event.costs_since
        if since is None or not event.amount:
            return
        stated = self._stated.get((event.provider, event.of), {})
        item, price = counts_as(event.item, event.price_per_hour, stated)
        self._live[event.originator_id] = _Live(
            (event.provider, event.of, item, False),
            event.amount,
            _millionths(price),
            since,
            self._billing.get(event.provider) or Billing(),
            event.project,
        )

    def _orphan_ended(self, event: Orphan.Adopted | Orphan.Vanished, position: int) -> None:
        if event.originator_id in self._live:
            self._all_ended(event, position)

    def _orphan_dismissed(self, event: Orphan.Dismissed, position: int) -> None:
        self._live.pop(event.originator_id, None)


def _add(row: _Ended, part: _Live, amount: int, until: datetime) -> None:
    """Count the use of ``amount`` up to a time."""
    used = max(timedelta(0), until - part.since)
    paid = billed(used, part.billing) // _SECOND * amount
    row.amount += amount
    row.used = _together(row.used, used, amount)
    row.billed += paid
    if part.price is None:
        row.unpriced += amount
    else:
        row.cost += part.price * paid


def _together(used: timedelta, each: timedelta, amount: int) -> timedelta:
    """Return a use with that of so many more; what is longer than any time is the longest one: an event is never too large to be folded."""
    if each and amount > (LONGEST - used) // each:
        return LONGEST
    return used + each * amount


def _line(key: _Key, ended: _Ended, live: list[_Live], now: datetime) -> SpendingLine:
    row = _Ended(ended.amount, ended.used, ended.billed, ended.cost, ended.unpriced)
    for part in live:
        _add(row, part, part.amount, now)
    per_hour = sum(part.amount * part.price for part in live if part.price is not None)
    return SpendingLine(
        provider=key[0],
        kind=key[1],
        item=key[2],
        live=row.amount - ended.amount,
        ended=ended.amount,
        used=row.used,
        billed=_together(timedelta(0), _SECOND, row.billed),
        cost=money.millionths(_rounded(row.cost, 3600)),
        per_hour=money.millionths(per_hour),
        unpriced=row.unpriced,
        owned=key[3],
    )


def _lines(found: Mapping[Account, Paid]) -> tuple[SpentLine, ...]:
    accounts = sorted(
        (account for account, paid in found.items() if paid.cost or paid.unpriced),
        key=lambda account: tuple(natural_key(part or "") for part in account),
    )
    return tuple(
        SpentLine(
            provider=account[0],
            kind=account[1],
            item=account[2],
            project=account[3],
            cost=money.at_most(money.millionths(-(-found[account].cost // 3600))),
            unpriced=found[account].unpriced,
        )
        for account in accounts
    )


def _millionths(price: Decimal | None) -> int | None:
    return None if price is None else int(price.scaleb(6))


def _noon(at: datetime, zone: str) -> datetime:
    """Return the middle of the zone's own day of the same date."""
    return datetime(at.year, at.month, at.day, 12, tzinfo=ZoneInfo(zone))


def _rounded(dividend: int, divisor: int) -> int:
    """Return the quotient, rounded half to even."""
    whole, rest = divmod(dividend, divisor)
    return whole + (2 * rest > divisor or (2 * rest == divisor and whole % 2 == 1))
