"""What may exist and is not counted on leaves no room for as much, until it is owned, gone, settled or dismissed."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.policy.makers import (
    NOW,
    asks,
    demand,
    holds,
    hosts,
    instance,
    minutes,
    of_kind,
    provider,
    request,
    resource,
    round_of,
    template,
    units,
)
from xce.domain.formats.inventory import InstanceEntry, RequestEntry, UnownedEntry
from xce.domain.formats.periods import Period, Spent
from xce.domain.formats.policy import Budget, DecisionKind, PolicyInput
from xce.domain.formats.provider import Kind
from xce.domain.policy.decide import decide
from xce.domain.policy.unaccounted import unaccounted
from xce.domain.provisioning.request import RequestState

WANTED = demand(hosts("c4", 9, *((f"j{number}", number, 1) for number in range(1, 10))))
UNSETTLED = request("R1", amount=2, state=RequestState.TIMED_OUT)


def orphan(theirs: str = "m-1", of: str = "aws", **fields: Any) -> UnownedEntry:
    return UnownedEntry(id=f"{of}/{theirs}", provider=of, **fields)


def ask_orphan(name: str = "R1", amount: int = 2, **fields: Any) -> UnownedEntry:
    return orphan(name, request=name, amount=amount, template="c4", **fields)


def with_unowned(inputs: PolicyInput, *unowned: UnownedEntry) -> PolicyInput:
    inventory = inputs.inventory.model_copy(update={"unowned": unowned})
    return inputs.model_copy(update={"inventory": inventory})


def test_an_orphan_takes_room_of_its_providers_capacity_and_the_reason_says_so() -> None:
    inputs = round_of(provider("aws", template(), capacity=3), wants=WANTED)

    decided = with_unowned(inputs, orphan())

    assert asks(inputs) == [("aws", "c4", 3)]
    assert asks(decided) == [("aws", "c4", 2)]
    assert any("capacity in hosts: 3 of 3 used (1 of it unaccounted for)" in h for h in holds(decided))  # fmt: skip


def test_an_ask_that_was_given_up_counts_until_it_is_settled() -> None:
    aws = provider("aws", template(), capacity=3)
    settled = UNSETTLED.model_copy(update={"settled": True})

    assert asks(round_of(aws, wants=WANTED, requests=[UNSETTLED])) == [("aws", "c4", 1)]
    assert asks(round_of(aws, wants=WANTED, requests=[settled])) == [("aws", "c4", 3)]


def test_an_ask_that_is_reported_and_not_settled_yet_counts_once() -> None:
    inputs = round_of(provider("aws", template(), capacity=3), wants=WANTED, requests=[UNSETTLED])

    assert asks(with_unowned(inputs, ask_orphan())) == [("aws", "c4", 1)]


@pytest.mark.parametrize(
    ("budget", "says"),
    [
        (Budget(name="b", max_hosts=3), "hosts of budget b: 3 of 3 used (2 of it unaccounted for)"),
        (
            Budget(name="b", max_cost_per_hour=Decimal("0.51")),
            "budget b: 0.51 of 0.51 per hour used (2 of it unaccounted for)",
        ),
        (
            Budget(name="b", max_cost_per_day=Decimal("0.51"), committed_for=minutes(60)),
            "0.51 counted on of 0.51 (2 of it unaccounted for)",
        ),
    ],
    ids=["hosts", "cost per hour", "cost per day"],
)
def test_it_takes_room_of_each_kind_of_budget(budget: Budget, says: str) -> None:
    today = Spent(period=Period.DAY, since=NOW.replace(hour=0), lines=())
    inputs = round_of(provider("aws", template()), wants=WANTED, budgets=[budget], spent=[today])

    decided = with_unowned(inputs, ask_orphan())

    assert asks(decided) == [("aws", "c4", 1)]
    assert any(says in hold for hold in holds(decided)), holds(decided)


def test_what_nobody_knows_counts_as_the_dearest_of_its_provider() -> None:
    aws = provider("aws", template("c4"), template("m8", price="1.50"), template("x", price=None))
    (found,) = unaccounted(
        with_unowned(round_of(aws), orphan()).inventory,
        [aws, provider("other", template("huge", price="9.00"))],
    )

    assert (found.item, found.price, found.amount) == ("m8", Decimal("1.50"), 1)


def test_without_any_price_a_cost_budget_allows_nothing() -> None:
    bare = provider("bare", template("odd", price=None))
    inputs = round_of(
        provider("aws", template()),
        bare,
        wants=WANTED,
        budgets=[Budget(name="b", max_cost_per_hour=Decimal(100))],
    )

    assert asks(inputs) == [("aws", "c4", 9)]
    assert asks(with_unowned(inputs, orphan(of="bare"))) == []


def test_a_grant_that_nobody_owns_takes_room_of_its_resource_alone() -> None:
    pool = provider("pool", resources=[resource(capacity=10), resource("tok", capacity=10)])
    wanted = demand(units("lic", 9, ("j", 1, 9)), units("tok", 9, ("k", 2, 9)))
    lost = orphan("g-1", "pool", kind=Kind.COUNTABLE, resource="lic", amount=4)

    assert asks(round_of(pool, wants=wanted)) == [("pool", "lic", 9), ("pool", "tok", 9)]
    assert asks(with_unowned(round_of(pool, wants=wanted), lost)) == [("pool", "tok", 9)]


def test_nothing_is_expected_of_it() -> None:
    """It serves no job: with room for it beside them, as much is asked as without it."""
    inputs = round_of(provider("aws", template(), capacity=20), wants=WANTED)

    assert asks(with_unowned(inputs, ask_orphan())) == asks(inputs) == [("aws", "c4", 9)]


# ------------------------------------------------------------------ in the long run
LIMIT = 6


@dataclass
class Site:
    """Asks whose answers are lost, and what they have really made."""

    requests: list[RequestEntry] = field(default_factory=list[RequestEntry])
    instances: list[InstanceEntry] = field(default_factory=list[InstanceEntry])
    unowned: list[UnownedEntry] = field(default_factory=list[UnownedEntry])
    #: Machines that exist, by the ask that made them.
    truth: dict[str, int] = field(default_factory=dict[str, int])
    asked: int = 0

    def round(self, number: int) -> None:
        limits = [
            Budget(name="hosts", max_hosts=LIMIT),
            Budget(name="cost", max_cost_per_hour=Decimal("0.17") * LIMIT),
        ]
        inputs = with_unowned(
            round_of(
                provider("aws", template(), capacity=LIMIT),
                wants=WANTED,
                requests=self.requests,
                instances=self.instances,
                budgets=limits,
                position=10_000 * (number + 1),
            ),
            *self.unowned,
        )
        for decision in of_kind(decide(inputs), DecisionKind.REQUEST):
            assert decision.count is not None
            self.asked += 1
            self.requests.append(
                request(f"R{self.asked}", amount=decision.count, state=RequestState.INTENDED)
            )

    def fate(self, draw: st.DataObject, entry: RequestEntry) -> None:
        """What becomes of an ask next."""
        if entry.state is RequestState.INTENDED and entry.id not in self.truth:
            self.truth[entry.id] = draw.draw(st.integers(0, entry.amount), label="made")
        made = self.truth[entry.id]
        match draw.draw(st.sampled_from(["waits", "lost", "heard", "reported"]), label="fate"):
            case "lost" if entry.state is RequestState.INTENDED:
                self._is(entry, state=RequestState.UNKNOWN)
            case "lost" if entry.state is RequestState.UNKNOWN:
                self._is(entry, state=RequestState.TIMED_OUT)
            case "heard" if entry.state is not RequestState.TIMED_OUT:
                self.requests.remove(entry)
                self.instances += [instance(f"{entry.id}-{n}") for n in range(made)]
            case "reported" if entry.state is RequestState.TIMED_OUT:
                self.requests.remove(entry)
                self.unowned.append(ask_orphan(entry.id, entry.amount, price_per_hour="0.17"))
            case _:
                pass

    def person(self, draw: st.DataObject) -> None:
        """Somebody looks at a report: the ask is found as its machines, or as nothing."""
        for one in list(self.unowned):
            if one.request is not None and draw.draw(st.booleans(), label="looked at"):
                self.unowned.remove(one)
                machines = range(self.truth[one.request])
                self.unowned += [orphan(f"{one.request}-{n}") for n in machines]

    def _is(self, entry: RequestEntry, **fields: Any) -> None:
        at = self.requests.index(entry)
        self.requests[at] = entry.model_copy(update=fields)


@given(data=st.data(), rounds=st.integers(2, 8))
@settings(max_examples=80)
def test_whatever_becomes_of_asks_no_more_exists_than_the_limits_allow(
    data: st.DataObject, rounds: int
) -> None:
    site = Site()
    for number in range(rounds):
        site.round(number)
        for entry in list(site.requests):
            site.fate(data, entry)
        site.person(data)
        unheard = sum(one.amount for one in site.requests if one.id not in site.truth)

        assert sum(site.truth.values()) + unheard <= LIMIT
