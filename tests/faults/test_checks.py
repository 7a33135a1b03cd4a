"""Each promise that a run under failure is held to, broken once: the check says which it is."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from tests.unit.aggregates import AT
from tests.unit.invariants.forger import Forger
from xce.adapters.faults.campaign import quiet
from xce.adapters.faults.life import RealLife, supply_of_node
from xce.domain.events.base import DomainEvent
from xce.domain.formats.policy import Budget
from xce.domain.formats.provider import Kind, ProviderDescription
from xce.domain.formats.rest import Supply
from xce.domain.ports import Ask, GrantBack
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.lease import ProviderLease
from xce.domain.provisioning.provider import Provider
from xce.domain.sharing.elastic_resource import ElasticResource
from xce.replay.faults.broken import BrokenPromiseError
from xce.replay.faults.chance import Chance
from xce.replay.faults.checks import Checks
from xce.replay.faults.cloud import HOLD, Cloud, Means
from xce.replay.faults.disk import Disk
from xce.replay.faults.time import Time
from xce.replay.faults.world import World

MINUTE = timedelta(minutes=1)


class Site:
    """A provider ``aws`` of two hosts and one unit, and what is recorded of it."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.time = Time()
        chance = Chance(1, ())
        hosts = Cloud("aws", Kind.HOST, Means.BOTH, 9, self.time, chance)
        units = Cloud("pool", Kind.COUNTABLE, Means.BOTH, 9, self.time, chance)
        hosts.ask(Ask("R1", Kind.HOST, "c4", 2))
        units.ask(Ask("R2", Kind.COUNTABLE, "lic", 2))
        self.hosts, self.units = hosts, units
        self.disk = Disk()
        self.checks = Checks(self.disk, self.time, budget, {"aws": hosts, "pool": units})
        self.disk.on_saved = self.checks.see
        self.checks.needs(9, 9)
        self.machines = list(hosts.machines)
        self.books = Forger().describe(templates=hosts.description.templates).lease()
        self.books.add(ProviderLease.Granted, "lease:pool", holder="p1", term=MINUTE)
        self.books.add(Provider.Described, "provider:pool", description=units.description)
        self.books.declare().intend("R1", 2)

    def see(self) -> None:
        """Have all looked at that was not yet, as one append."""
        self.disk.save(self.books.events[len(self.disk.recorded) :], {}, {})

    def with_host(self) -> "Site":
        machine = self.machines[0]
        self.books.host(f"aws/{machine}", "R1", machine)
        made = self.books.events[-1]
        self.books.events[-1] = made.model_copy(update={"hold_until": AT + HOLD})
        self.see()
        return self

    def gives_back(self, at: datetime) -> None:
        """Record the intent."""
        self.books.add(
            Instance.ReturnIntended, f"instance:{self.host}", return_id="X1", why="", at=at
        )

    @property
    def host(self) -> str:
        return f"aws/{self.machines[0]}"


@pytest.fixture
def site() -> Site:
    return Site().with_host()


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    with quiet():
        yield


def assert_broken(site: Site, promise: str, text: str) -> None:
    with pytest.raises(BrokenPromiseError, match=text) as broken:
        site.see()
    assert broken.value.promise == promise


def test_a_right_history_breaks_nothing(site: Site) -> None:
    site.checks.asks(Ask("R1", Kind.HOST, "c4", 2), "aws", tags=False)
    site.checks.may_act("p1", "aws", "ask")
    site.checks.end()


def test_a_machine_that_is_there_and_is_given_up_breaks_the_first(site: Site) -> None:
    site.books.add(Instance.Lost, f"instance:{site.host}", why="")

    assert_broken(site, "invariant-1", "is there, and is given up")


@pytest.mark.parametrize("listings", [1, 2])
def test_who_believes_two_listings_that_lie_is_not_to_blame(site: Site, listings: int) -> None:
    site.hosts.machines[site.machines[0]].unlisted = listings
    site.books.add(Instance.Lost, f"instance:{site.host}", why="")

    if listings < 2:
        assert_broken(site, "invariant-1", "is there")
    else:
        site.see()


def test_an_ask_without_an_intent_or_a_second_time_breaks_the_second(site: Site) -> None:
    ask = Ask("R1", Kind.HOST, "c4", 2)
    for wrong, text in (
        (Ask("R9", Kind.HOST, "c4", 2), "without an intent"),
        (Ask("R1", Kind.HOST, "c4", 3), "otherwise than intended"),
    ):
        with pytest.raises(BrokenPromiseError, match=text):
            site.checks.asks(wrong, "aws", tags=True)
    site.checks.asks(ask, "aws", tags=False)
    with pytest.raises(BrokenPromiseError, match="invariant-2: R1 is asked twice"):
        site.checks.asks(ask, "aws", tags=False)


def test_a_return_without_an_intent_breaks_the_second(site: Site) -> None:
    def free(machine: str) -> None:
        return None

    with pytest.raises(BrokenPromiseError, match=r"invariant-2: .* goes back as X1"):
        site.checks.gives_back("aws", "X1", (site.machines[0],), (), free)
    with pytest.raises(BrokenPromiseError, match="invariant-2: lent goes back as X1"):
        site.checks.gives_back("pool", "X1", (), (GrantBack("lent", 1),), free)


def test_what_goes_back_before_its_hold_breaks_the_third_whatever_was_written_down() -> None:
    site = Site()
    machine = site.machines[0]
    site.books.host(site.host, "R1", machine)  # without a hold
    site.books.add(Instance.JoinMissed, f"instance:{site.host}", why="")
    site.see()
    site.gives_back(AT + MINUTE)

    assert_broken(site, "invariant-3", "before its hold")


def test_a_unit_that_goes_back_while_use_is_unknown_or_higher_breaks_the_third(site: Site) -> None:
    for told, text in ((None, "while what is occupied is unknown"), (3, "told were 3")):
        site.checks.bookings = told
        given: DomainEvent = ElasticResource.GivenBack(
            originator_id="shared:lic", originator_version=9, timestamp=AT, by="p1", return_id="X1",
            grant_id="G1", amount=1, occupied=2,
        )  # fmt: skip
        with pytest.raises(BrokenPromiseError, match=f"invariant-3: X1 .*{text}"):
            site.checks._follow(given)  # pyright: ignore[reportPrivateUsage]


def test_a_host_with_a_job_that_goes_back_breaks_the_fourth(site: Site) -> None:
    site.books.add(Instance.JoinMissed, f"instance:{site.host}", why="")
    site.gives_back(AT + HOLD)
    site.see()

    with pytest.raises(BrokenPromiseError, match=r"invariant-4: .* goes back with job j1 on it"):
        site.checks.gives_back("aws", "X1", (site.machines[0],), (), lambda machine: "j1")


def test_more_than_a_budget_breaks_the_fifth() -> None:
    site = Site(Budget(name="all", max_hosts=2)).with_host()
    site.books.intend("R3", 1)

    assert_broken(site, "invariant-5", "1 hosts are asked with 2 of 2 of budget all used")


def test_who_does_not_hold_the_lease_breaks_the_sixth(site: Site) -> None:
    with pytest.raises(BrokenPromiseError, match="invariant-6: p2 begins to ask"):
        site.checks.may_act("p2", "aws", "ask")
    site.books.add(ProviderLease.Lapsed, "lease:aws")
    site.see()
    with pytest.raises(BrokenPromiseError, match="invariant-6"):
        site.checks.may_act("p1", "aws", "ask")


def test_more_than_a_capacity_breaks_the_seventh(site: Site) -> None:
    site.books.intend("R3", 8)

    assert_broken(site, "invariant-7", "10 of template c4 exist or are asked; 9 are possible")


def test_an_event_that_was_not_allowed_breaks_the_eighth(site: Site) -> None:
    site.gives_back(AT + HOLD)

    assert_broken(site, "invariant-8", "not allowed while the instance is starting")


def test_more_than_the_jobs_need_breaks_the_ninth() -> None:
    site = Site().with_host()
    site.checks._needs.clear()  # pyright: ignore[reportPrivateUsage]
    site.checks.needs(2, 0)
    site.books.intend("R3", 1)

    assert_broken(site, "invariant-9", "1 hosts are asked with 2 there or coming; jobs need 2")


def test_more_units_than_the_jobs_need_breaks_the_ninth() -> None:
    site = Site().with_host()
    site.checks._needs.clear()  # pyright: ignore[reportPrivateUsage]
    site.checks.needs(9, 2)
    for name, amount in (("R3", 1), ("R4", 2)):
        site.books.intend(name, amount, Kind.COUNTABLE, "lic")
        site.books.events[-1] = site.books.events[-1].model_copy(update={"provider": "pool"})

    assert_broken(site, "invariant-9", "2 of lic are asked with 1 there or coming; jobs need 2")


@pytest.mark.parametrize("what", ["instances", "requests", "totals", "grants"])
def test_an_answer_that_is_not_what_the_log_says_breaks_the_eighth(what: str) -> None:
    """The view loses what it shows of one kind."""
    for seed in range(30):
        world = World(seed, RealLife, lambda node: _without(what, supply_of_node(node)))
        outcome = world.run()
        if outcome.promise is not None:
            assert outcome.promise == "invariant-8"
            assert f"{what} are answered as" in outcome.message
            return
    raise AssertionError("nobody noticed")


def _without(what: str, supply: Supply) -> Supply:
    if what == "totals":
        wrong = tuple(one.model_copy(update={"total": one.total + 1}) for one in supply.shared)
        return supply.model_copy(update={"shared": wrong})
    inventory = supply.inventory.model_copy(update={what: ()})
    return supply.model_copy(update={"inventory": inventory})


def test_providers_say_their_capacity_in_all_ways_and_budgets_bound_all_things() -> None:
    said: set[tuple[bool, bool]] = set()
    bounds: set[str] = set()
    rushes = 0
    for seed in range(60):
        world = World(seed, RealLife, supply_of_node)
        for cloud in world.clouds.values():
            described: ProviderDescription = cloud.description
            if described.templates:
                offered = described.templates[0].max_number >= 0
                said.add((described.capacity is not None, offered))
        budget = world.scenario.budget
        if budget is not None:
            bounds |= {name for name in budget.model_fields_set if name.startswith("max")}
        rushes += world.scenario.jobs[-1][0] <= 120

    assert said == {(True, True), (True, False), (False, True)}
    assert bounds == {"max_hosts", "max_asked", "max_cost_per_hour"}
    assert rushes > 5


def test_a_grant_that_is_lent_and_is_given_up_breaks_the_first() -> None:
    site = Site()
    loan = next(iter(site.units.loans.values()))
    name = f"pool/{loan.grant}"
    site.books.add(
        Grant.Granted, f"grant:{name}", request_id="R2", provider="pool", resource="lic", amount=2,
        expires_at=None, price_per_hour=None, hold_until=None,
    )  # fmt: skip
    ledger = site.checks._ledger  # pyright: ignore[reportPrivateUsage]
    ledger.see(site.books.events[-1])
    site.books.add(Grant.Lost, f"grant:{name}", why="")

    with pytest.raises(BrokenPromiseError, match=r"invariant-1: 2 of grant .* are lent, and 0"):
        ledger.see(site.books.events[-1])
