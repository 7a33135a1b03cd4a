"""Field cases about what is asked, kept and given back, with jobs, sessions and a scripted cloud: attempts are counted, nothing is timed."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.provisioner.rig import Site
from tests.provisioner.town import Kind, ScriptedCloud, Town
from xce.domain.formats.config import PolicyConfig
from xce.domain.formats.policy import StandingMinimum
from xce.domain.formats.provider import Billing, BillingUnit
from xce.domain.formats.snapshot import Settings
from xce.domain.provisioning.instance import InstanceState

MINUTE = timedelta(minutes=1)
GIB = 1024


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


def idle_after(town: Town, idle: timedelta) -> Town:
    town.batch = town.batch.with_(settings=Settings(idle_host_after=idle))
    return town


# ------------------------------------------------------------------------- F09
def test_f09_a_spare_host_that_a_rule_keeps_is_neither_given_back_nor_asked_again(
    site: Site,
) -> None:
    policy = PolicyConfig(standing=(StandingMinimum(template="T", hosts=4),))
    town = idle_after(Town(site, ScriptedCloud(Kind("T", slots=4)), policy), 10 * MINUTE)
    town.submit("rusage[slots=4]", count=3)
    town.live(5)
    assert town.asked_of("T") == 4

    town.live(125)

    assert town.asked_of("T") == 4
    assert town.cloud.sent_back() == {}


def test_f09b_a_host_that_the_next_job_will_want_is_not_given_back_in_between(site: Site) -> None:
    town = idle_after(Town(site, ScriptedCloud(Kind("T", boots=4 * MINUTE))), 10 * MINUTE)
    town.live(120, on={at: lambda: town.submit(run=6 * MINUTE) for at in range(0, 120, 12)})

    assert town.asks() == [(0, "T", 1)]
    assert town.cloud.sent_back() == {}
    assert len(town.batch.ended) == 10


# ------------------------------------------------------------------------- F11
def hourly(site: Site, billing: Billing) -> Town:
    policy = PolicyConfig(release_lead=3 * MINUTE)
    cloud = ScriptedCloud(Kind("H", price="6.00"), billing=billing)
    cloud.returns_take = 3 * MINUTE
    town = idle_after(Town(site, cloud, policy), 5 * MINUTE)
    town.submit(run=20 * MINUTE)
    return town


def test_f11_a_host_whose_hour_is_paid_goes_back_late_in_it_and_in_time(site: Site) -> None:
    town = hourly(site, Billing(unit=BillingUnit.HOUR))

    town.live(70)

    (sent,) = town.cloud.sent_back().values()
    assert 50 <= sent <= 57
    assert site.live.read(lambda views: views.projections.spending.cost_at(site.clock.now())) == 6


def test_f11b_a_job_that_comes_within_the_paid_hour_runs_on_the_host(site: Site) -> None:
    town = hourly(site, Billing(unit=BillingUnit.HOUR))

    town.live(52, on={40: lambda: town.submit(run=10 * MINUTE)})

    assert town.asks() == [(0, "H", 1)]
    assert len(town.batch.ended) == 2


def test_f11c_a_host_that_is_paid_by_the_second_goes_back_when_it_is_idle(site: Site) -> None:
    town = hourly(site, Billing(unit=BillingUnit.SECOND, minimum=MINUTE))

    town.live(40)

    (sent,) = town.cloud.sent_back().values()
    assert 25 <= sent <= 27, "a minute to close it and a minute to look again"


# ------------------------------------------------------------------------- F12
def listed(order: str, a_priority: int = 10, b_price: str = "1.05") -> ScriptedCloud:
    kinds = {
        "A": Kind("A", slots=16, mem=64 * GIB, price="1.30", priority=a_priority),
        "B": Kind("B", slots=16, mem=32 * GIB, price=b_price),
        "C": Kind("C", slots=16, mem=32 * GIB, price="0.30"),
        "D": Kind("D", slots=4, mem=8 * GIB, price="0.09"),
    }
    return ScriptedCloud(*(kinds[name] for name in order))


@pytest.mark.parametrize(
    ("jobs", "memory", "a_priority", "wanted"),
    [
        (1, "17GiB", 10, [(0, "C", 1)]),
        (1, "8GiB", 10, [(0, "D", 1)]),
        (4, "8GiB", 10, [(0, "C", 1)]),
        (1, "17GiB", 20, [(0, "A", 1)]),
    ],
)
@pytest.mark.parametrize("order", ["ABCD", "DCBA"])
def test_f12_priority_then_the_cost_of_the_whole_decide_and_the_listing_order_does_not(
    site: Site,
    jobs: int,
    memory: str,
    a_priority: int,
    wanted: list[tuple[int, str, int]],
    order: str,
) -> None:
    town = Town(site, listed(order, a_priority))
    town.submit(f"rusage[slots=4,mem={memory}]", count=jobs)

    town.live(10)

    assert town.asks() == wanted


def test_f12_between_equals_the_choice_is_the_same_whatever_the_order_and_after_a_restart() -> None:
    chosen: set[str] = set()
    for order in ("ABCD", "DCBA", "CBDA"):
        site = Site()
        town = Town(site, listed(order, b_price="0.30"))
        for _ in range(3):
            town.submit("rusage[slots=16,mem=20GiB]")
            town.live(int((site.clock.at - town.began).total_seconds() // 60))
            town.restart()
        chosen |= {item for _, item, _ in town.asks()}
        assert len(town.asks()) == 3
        site.close()

    assert len(chosen) == 1


# ------------------------------------------------------------------------- F16
def test_f16_an_impossible_gang_stops_nobody_and_is_judged_again_when_the_cap_is_raised(
    site: Site,
) -> None:
    cloud = ScriptedCloud(Kind("T", slots=2, cap=2))
    town = Town(site, cloud)
    different = "rusage[slots=2] span[hosts=-1]"
    town.submit_gang(3, different)
    town.submit_gang(2, different)

    town.live(99)

    assert town.asks() == [(0, "T", 2)]
    assert town.running_on("host-m1") == town.running_on("host-m2") == ["2"]

    cloud.kinds["T"].cap = 5
    town.live(110)
    assert town.asks() == [(0, "T", 2), (100, "T", 3)]
    assert len(town.batch.running) == 2


# ------------------------------------------------------------------------- F17
def test_f17_what_a_host_really_has_wins_over_what_its_template_promised(site: Site) -> None:
    cloud = ScriptedCloud(
        Kind("T", mem=448 * GIB, price="3.00", really={"slots": 4, "mem": 440 * GIB}),
        Kind("U", mem=512 * GIB, price="3.50"),
    )
    town = idle_after(Town(site, cloud), 10 * MINUTE)
    town.submit("rusage[mem=445GiB]")

    town.live(5)
    assert [(item, amount) for _, item, amount in town.asks()] == [("T", 1), ("U", 1)]
    assert town.running_on("host-m2") == ["1"]
    town.live(40)
    assert list(town.cloud.sent_back()) == ["m1"], "it serves nobody, and goes back"

    town.restart()
    town.submit("rusage[mem=445GiB]")
    town.live(45)
    assert (town.asked_of("T"), town.asked_of("U")) == (1, 2), "it is known after a restart too"


# ------------------------------------------------------------------------- F22
def test_f22_where_the_clock_is_set_back_what_is_due_is_due_in_real_time(site: Site) -> None:
    policy = PolicyConfig(
        join_limit=10 * MINUTE, failures_before_pause=1, pause_after_refusal=5 * MINUTE
    )
    town = Town(site, ScriptedCloud(Kind("T", joins=False)), policy)
    town.submit()
    town.live(1)

    site.clock.set_back = 10 * MINUTE
    town.live(9)
    assert [one.state for one in town.inventory.instances] == [InstanceState.STARTING]
    town.live(14)
    assert town.cloud.sent_back() == {"m1": 10}, "ten minutes after the ask"
    assert len(town.asks()) == 1
    town.live(20)

    assert [minute for minute, _, _ in town.asks()] == [0, 15], "five minutes after its start"
    stamps = [event.timestamp for event in site.events()]
    assert stamps == sorted(stamps)


# ------------------------------------------------------------------------- F29
def test_f29b_many_jobs_are_served_in_asks_of_a_bounded_size_up_to_the_cap(site: Site) -> None:
    town = Town(site, ScriptedCloud(Kind("T", slots=16, cap=300, boots=60 * MINUTE)))
    town.submit(count=10_000)

    town.live(3)

    assert town.asks() == [(0, "T", 100)] * 3
    assert len(town.cloud.present()) == 300
