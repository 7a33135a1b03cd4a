"""Invariant 5: what is asked beyond a budget is found, whichever bound it passes; what only comes beyond one is not held against us."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.aggregates import AT, HOUR
from tests.unit.invariants.forger import Forger, assert_found, findings
from xce.domain.events.base import DomainEvent
from xce.domain.formats.policy import AskRate, Budget
from xce.domain.formats.provider import Kind
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.request import Request, RequestState
from xce.projections.invariants.budgets import Budgets

MINUTE = timedelta(minutes=1)


def budgets(**bounds: Any) -> Budgets:
    return Budgets([Budget(name="all", **bounds)])


class Books(Forger):
    """Makes asks with prices, at other times and by others."""

    def ask(self, name: str, amount: int = 1, price: str | None = "0.50", **parts: Any) -> "Books":
        document: dict[str, Any] = {
            "provider": "aws",
            "kind": Kind.HOST,
            "item": "c4",
            "project": None,
        }
        self.add(
            Request.Intended, f"request:{name}", amount=amount, deadline=AT + 9 * HOUR, reason="", jobs=(),
            price_per_hour=None if price is None else Decimal(price), demand_position=0, hold=MINUTE,
            **document | parts,
        )  # fmt: skip
        return self

    def came(self, name: str, request: str, price: str | None = "0.50") -> "Books":
        self.add(Request.InstanceGranted, f"request:{request}", instance_id=name, machine=name)
        self.instance(name, request, name)
        made: DomainEvent = self.events[-1]
        assert isinstance(made, Instance.Granted)
        priced = None if price is None else Decimal(price)
        self.events[-1] = made.model_copy(update={"price_per_hour": priced})
        return self


def test_asking_up_to_a_budget_is_right() -> None:
    books = Books().ask("R1", 2).came("I1", "R1").ask("R2", 1)

    assert findings(budgets(max_hosts=3), books.events) == []


def test_one_host_more_than_a_budget_has_is_found() -> None:
    books = Books().ask("R1", 2).came("I1", "R1").ask("R2", 2)

    assert_found(budgets(max_hosts=3), books, 4, "2 hosts are asked with 2 of 3 of budget all used")


def test_what_is_gone_or_is_known_not_to_come_does_not_count() -> None:
    books = Books().ask("R1", 3).came("I1", "R1")
    books.add(Request.FellShort, "request:R1", amount=1, why="")
    books.add(Request.Closed, "request:R1", outcome=RequestState.FAILED, why="")
    books.add(Instance.Lost, "instance:I1", why="").ask("R2", 3)  # type: ignore[attr-defined]

    assert findings(budgets(max_hosts=3), books.events) == []


def test_a_host_that_goes_back_counts_until_it_is_gone() -> None:
    books = Books().ask("R1").came("I1", "R1")
    books.add(Instance.ReturnIntended, "instance:I1", return_id="X1", why="")
    books.ask("R2")

    assert_found(budgets(max_hosts=1), books, 5, "1 of 1 of budget all used")


def test_a_surplus_is_not_ours_but_an_ask_on_top_of_it_is() -> None:
    books = Books().ask("R1").came("I1", "R1").came("I2", "R1")
    assert findings(budgets(max_hosts=1), books.events) == []

    assert_found(budgets(max_hosts=1), books.ask("R2"), 6, "2 of 1 of budget all used")


def test_what_another_provisioner_asks_at_the_same_time_is_not_known() -> None:
    def both(after: timedelta) -> Books:
        books = Books().ask("R1", 2, by="provisioner/p1")
        return books.ask("R2", 2, by="provisioner/p2", provider="azure", at=AT + after)

    assert findings(budgets(max_hosts=2), both(MINUTE).events) == []
    assert_found(budgets(max_hosts=2), both(3 * MINUTE), 2, "2 of 2 of budget all used")


def test_a_budget_looks_at_what_it_covers() -> None:
    books = Books().ask("R1", 2, project="a").ask("R2", 2, project="b")
    of_a = Budget(name="a", projects=("a",), max_hosts=2)
    of_aws = Budget(name="aws", provider="aws", max_hosts=3)

    assert findings(Budgets([of_a]), books.events) == []
    assert_found(Budgets([of_a, of_aws]), books, 2, "of budget aws")


def test_more_per_hour_than_a_budget_has_is_found() -> None:
    books = Books().ask("R1").came("I1", "R1").ask("R2")
    assert findings(budgets(max_cost_per_hour=Decimal("1.00")), books.events) == []

    books.ask("R3", price="0.01")
    assert_found(
        budgets(max_cost_per_hour=Decimal("1.00")), books, 5, "costs 1.01 per hour; budget all allows 1.00"
    )  # fmt: skip


def test_something_unpriced_under_a_bound_on_cost_is_found() -> None:
    books = Books().ask("R1", price=None)

    assert_found(budgets(max_cost_per_hour=Decimal(1)), books, 1, "something unpriced is asked")


def test_units_count_against_the_cost_until_they_are_back() -> None:
    books = Books().ask("R1", 2, kind=Kind.COUNTABLE, item="lic")
    books.add(Request.AmountGranted, "request:R1", grant_id="G1", amount=2)
    books.grant("G1", 2)
    made = books.events[-1]
    books.events[-1] = made.model_copy(update={"price_per_hour": Decimal("0.50")})
    books.add(Grant.ReturnStarted, "grant:G1", return_id="X1", amount=1)
    assert findings(budgets(max_cost_per_hour=Decimal("1.00")), books.events) == []
    early = Books()
    early.events = [*books.events]
    early.ask("R2", kind=Kind.COUNTABLE, item="lic")
    assert_found(budgets(max_cost_per_hour=Decimal("1.00")), early, 5, "costs 1.50 per hour")

    books.add(Grant.ReturnConfirmed, "grant:G1", return_id="X1")
    books.ask("R2", kind=Kind.COUNTABLE, item="lic")

    assert findings(budgets(max_cost_per_hour=Decimal("1.00")), books.events) == []


@pytest.mark.parametrize(("after", "right"), [(9, False), (10, True)])
def test_asking_faster_than_a_budget_allows_is_found(after: int, right: bool) -> None:
    rate = AskRate(hosts=2, within=10 * MINUTE)
    books = Books().ask("R1", 2).ask("R2", 1, at=AT + after * MINUTE)

    assert (findings(budgets(max_asked=rate), books.events) == []) is right


@pytest.mark.parametrize("period", ["day", "month"])
def test_asking_with_the_money_of_a_period_spent_is_found(period: str) -> None:
    books = Books().ask("R1").came("I1", "R1", "2.00")
    books.ask("R2", at=AT + 2 * HOUR)
    limits = {f"max_cost_per_{period}": Decimal("4.00")}
    assert findings(budgets(**limits), books.events) == []

    books.ask("R3", at=AT + 3 * HOUR)

    assert_found(budgets(**limits), books, 5, f"6.00 of 4.00 of budget all of the {period} spent")
