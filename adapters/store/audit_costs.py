"""The table ``spending``: what each host and each part of a grant costs, from its grant until the provider has it back; and orphans."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from xce.adapters.store.audit_cache import TableRows, Values
from xce.domain.formats.provider import Billing, BillingUnit
from xce.domain.policy.billing import billed

_SECOND: Final = timedelta(seconds=1)
_MICROSECOND: Final = timedelta(microseconds=1)


class Costs:
    """Folds what begins and ends to cost. What lives is at hand; it is as large as the supply."""

    def __init__(self, table: TableRows) -> None:
        self._table = table
        self._live = {row["of"]: row for row in table.load('"until" IS NULL')}

    def begin(
        self,
        of: str,
        *,
        request: str | None,
        provider: str,
        kind: str,
        item: str | None,
        amount: int,
        price: Decimal | None,
        billing: Billing,
        at: str,
        position: int,
        part: int = 0,
    ) -> None:
        """Something was granted, or found."""
        row: Values = {
            "of": of,
            "part": part,
            "request": request,
            "provider": provider,
            "kind": kind,
            "item": item,
            "amount": amount,
            "price_per_hour": money(price),
            "billing_unit": billing.unit.value,
            "billing_minimum_s": billing.minimum // _SECOND,
            "since": at,
            "until": None,
            "position": position,
        }
        self._live[of] = self._table.touch(priced(row, at))

    def end(self, of: str, *, amount: int | None, at: str, position: int) -> None:
        """An amount of it has ended; None: all that was left."""
        row = self._live[of]
        if amount is not None and amount < row["amount"]:
            ended = row | {"part": position, "amount": amount, "until": at, "position": position}
            self._table.touch(priced(ended, at))
            row |= {"amount": row["amount"] - amount, "position": position}
            self._table.touch(row)
            return
        row |= {"until": at, "position": position}
        self._table.touch(priced(self._live.pop(of), at))

    def end_orphan(self, of: str, *, at: str, position: int, ours: bool = True) -> None:
        """An orphan has ended, if it is one that costs; it has cost nothing where it is none of ours."""
        row = self._live.get(of)
        if row is not None:
            self.end(of, amount=None, at=at, position=position)
            if not ours:
                self._table.touch(priced(row | {"amount": 0}, at))

    def bring_up_to(self, at: str) -> None:
        """Say what all that lives has cost by now."""
        for row in self._live.values():
            self._table.touch(priced(row, at))


def priced(row: Values, until: str) -> Values:
    """Put into a row what its amount was used, billed and cost up to a time, and return it.

    The cost is rounded to the millionth, half to even; each row for itself.
    """
    amount: int = row["amount"]
    used = datetime.fromisoformat(until) - datetime.fromisoformat(row["since"])
    billing = _BILLINGS.get((row["billing_unit"], row["billing_minimum_s"]))
    if billing is None:
        unit, minimum = BillingUnit(row["billing_unit"]), row["billing_minimum_s"] * _SECOND
        billing = _BILLINGS.setdefault(
            (row["billing_unit"], row["billing_minimum_s"]), Billing(unit=unit, minimum=minimum)
        )
    paid = billed(used, billing) // _SECOND * amount
    price: str | None = row["price_per_hour"]
    # As whole numbers: a time of so many would be too long for a timedelta.
    row["used_s"] = max(0, used // _MICROSECOND) * amount // 1_000_000
    row["billed_s"] = paid
    row["cost_millionths"] = None if price is None else _rounded(_millionths(price) * paid, 3600)
    return row


#: By unit and minimum: making a model for each row would take longer than all the rest.
_BILLINGS: dict[tuple[str, int], Billing] = {}


def money(price: Decimal | None) -> str | None:
    """Return a price as decimal text."""
    return None if price is None else f"{price:f}"


def _millionths(price: str) -> int:
    return int(Decimal(price).scaleb(6))


def _rounded(dividend: int, divisor: int) -> int:
    whole, rest = divmod(dividend, divisor)
    return whole + (2 * rest > divisor or (2 * rest == divisor and whole % 2 == 1))


def provider_billing(row: Any) -> Billing:
    """Return how a provider bills, from its row in ``providers``; None: it never described itself."""
    if row is None:
        return Billing()
    return Billing(
        unit=BillingUnit(row["billing_unit"]), minimum=row["billing_minimum_s"] * _SECOND
    )
