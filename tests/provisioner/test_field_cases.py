"""Field cases at the level of the daemon's parts, in virtual time: attempts are counted, nothing is timed."""

from collections.abc import Iterator
from datetime import timedelta
from typing import TypeVar

import pytest

from tests.provisioner.rig import TERM, Process, Site, pass_time
from tests.provisioner.truth import AWAY, Cloud, DyingCloud, Fate, Killed, Means
from xce.adapters.providers.errors import OutcomeUnknownError
from xce.domain.engine.messages import Role
from xce.domain.events.base import DomainEvent
from xce.domain.formats.config import PolicyConfig
from xce.domain.formats.lifecycle import LifecycleSettings
from xce.domain.ports import Accepted, Ask, Refused, TakeBack
from xce.domain.provisioning.decision import Decision
from xce.domain.provisioning.drain import AtDeadline, Drain
from xce.domain.provisioning.instance import Instance, InstanceState
from xce.domain.provisioning.request import Request, RequestState

E = TypeVar("E", bound=DomainEvent)


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


def all_of(site: Site, kind: type[E]) -> list[E]:
    return [event for event in site.events() if isinstance(event, kind)]


def filled(site: Site, cloud: Cloud, hosts: int, process: Process | None = None) -> Process:
    """Return a provisioner whose hosts have all joined."""
    process = process or Process(site, cloud)
    process.begin()
    site.say(hosts)
    process.tick()
    process.tick()
    for machine in cloud.present():
        site.join(machine.machine)
    site.say()
    return process


def test_f01_a_host_on_its_way_is_supply(site: Site) -> None:
    cloud = Cloud(Means.NEITHER)
    cloud.stuck = True
    process = Process(site, cloud)
    process.begin()

    for _ in range(5):
        site.say(3 if not cloud.machines else 0)
        process.tick()
        pass_time(site)

    assert len(cloud.machines) == 3


def test_f01_demand_that_did_not_see_the_ask_does_not_ask_again(site: Site) -> None:
    cloud = Cloud(Means.NEITHER)
    process = Process(site, cloud)
    process.begin()
    site.say(3)

    for _ in range(3):
        process.rounds.once()
        process.work()

    assert len(cloud.machines) == 3


def test_f03_a_host_that_does_not_join_is_given_back_and_paid_for_until_it_is(site: Site) -> None:
    cloud = Cloud(Means.NEITHER)
    process = Process(site, cloud)
    process.begin()
    site.say(1)
    process.tick()

    for _ in range(20):
        pass_time(site)
        site.say()
        process.tick()

    assert cloud.returned == {"m1": 1}
    assert [type(event).__name__ for event in site.events() if event.originator_id == "instance:cloud/m1"] == [
        "Granted", "JoinMissed", "ReturnIntended", "ReturnAccepted", "Returned",
    ]  # fmt: skip


def test_a_host_whose_join_nobody_could_report_is_kept_until_somebody_looks(site: Site) -> None:
    """The scheduler daemon is away, the batch system places jobs on the host all the same."""
    cloud = Cloud(Means.NEITHER)
    process = Process(site, cloud)
    process.begin()
    site.say(1)
    process.tick()

    for _ in range(40):
        pass_time(site)
        process.tick()
    assert not cloud.returned

    site.join("m1")
    site.say()
    process.tick()
    assert [one.state for one in site.inventory.instances] == [InstanceState.JOINED]
    assert not cloud.returned


@pytest.mark.parametrize("means", [Means.TAG, Means.LISTING])
@pytest.mark.parametrize("boundary", ["before ask", "after ask"])
def test_f04_after_a_death_at_the_call_the_ask_is_looked_up_before_anything_is_asked(
    site: Site, means: Means, boundary: str
) -> None:
    fate = Fate()
    cloud = DyingCloud(means, lambda: fate)
    process = Process(site, cloud, fate)
    process.begin()
    site.say(2)
    fate.die_at = fate.passed + (3 if boundary == "before ask" else 4)
    with pytest.raises(Killed, match=boundary):
        process.tick()

    again = Process(site, cloud)
    again.begin()
    for _ in range(6):
        again.tick()
        pass_time(site)
        (coming,) = [len(site.inventory.instances)]
        site.say(2 if not coming and not _open(site) else 0)

    assert len(cloud.machines) == 2
    assert [entry.machine for entry in site.inventory.instances] == ["m1", "m2"]
    assert set(cloud.asks.values()) == {1}


def _open(site: Site) -> bool:
    return any(
        one.state in (RequestState.INTENDED, RequestState.UNKNOWN, RequestState.ACCEPTED)
        for one in site.inventory.requests
    )


def test_f05_a_request_that_runs_for_ever_is_given_up_and_what_comes_late_is_ours(
    site: Site,
) -> None:
    cloud = Cloud(Means.NEITHER)
    cloud.stuck = True
    process = Process(site, cloud)
    process.begin()
    site.say(5)
    process.tick()
    site.say()
    for _ in range(16):
        pass_time(site)
        process.tick()
    (entry,) = site.inventory.requests
    assert (entry.state, entry.granted) == (RequestState.TIMED_OUT, 0)

    cloud.stuck = False
    process.tick()

    assert len(site.inventory.instances) == 5
    assert len(all_of(site, Request.Settled)) == 1


def test_f05_after_a_day_a_request_is_not_asked_about_any_more(site: Site) -> None:
    cloud = Cloud(Means.NEITHER)
    cloud.stuck = True
    process = Process(site, cloud)
    process.begin()
    site.say(1)
    process.tick()
    site.say()
    pass_time(site, 16)
    process.tick()
    pass_time(site, 25 * 60)
    process.tick()

    assert site.inventory.requests == ()


class Suspicious(Cloud):
    """Says an id, and fails."""

    def ask(self, ask: Ask, now: object) -> Accepted | Refused:
        super().ask(ask, now)  # type: ignore[arg-type]  # the time
        raise OutcomeUnknownError("exit code 1", suspect=f"add-{ask.tag}")


def test_f19_an_id_that_came_with_a_failure_is_asked_after_and_nothing_is_asked_again(
    site: Site,
) -> None:
    cloud = Suspicious(Means.NEITHER)
    process = Process(site, cloud)
    process.begin()
    site.say(2)
    process.tick()

    assert len(cloud.machines) == 2
    assert len(site.inventory.instances) == 2
    assert [type(e).__name__ for e in site.events() if e.originator_id == "request:R1"][:3] == [
        "Intended", "OutcomeUnknown", "Accepted",
    ]  # fmt: skip


def test_f10_a_job_that_slipped_in_before_the_closing_wins(site: Site) -> None:
    cloud = Cloud(Means.NEITHER)
    process = filled(site, cloud, 2)
    site.say(idle=site.idle())
    process.tick()

    site.look_at_drains({"host-m1": ("j9",)})
    site.say()
    for _ in range(3):
        process.tick()
        site.look_at_drains({"host-m1": ("j9",)})

    assert cloud.returned == {"m2": 1}
    (left,) = site.inventory.instances
    assert (left.machine, left.state) == ("m1", InstanceState.JOINED)


def test_f21_a_new_machine_with_the_name_of_a_dead_one_is_another_one(site: Site) -> None:
    cloud = Cloud(Means.LISTING)
    process = filled(site, cloud, 1)
    cloud.machines["m1"].gone = True  # it died
    for _ in range(3):
        pass_time(site)
        process.keeper.step()
        process.driver.reconcile()
    site.say(1)
    process.tick()
    process.tick()
    site.join("m2")
    site.say(idle=site.idle())
    for _ in range(4):
        process.tick()
        site.look_at_drains()

    assert cloud.returned == {"m2": 1}, "the return names the living one"
    assert [e.originator_id for e in all_of(site, Instance.Lost)] == ["instance:cloud/m1"]
    assert cloud.present() == []


def test_f22_a_clock_that_is_set_back_costs_no_lease() -> None:
    """The lease runs by the monotonic clock: stamps play no part in it."""
    site = Site()
    process = Process(site, Cloud(Means.TAG))
    process.begin()
    for _ in range(10):
        pass_time(site)
        process.keeper.step()
        assert process.leases.epoch("cloud") == 1
    site.close()


def test_f23_who_could_not_renew_stops_by_itself_and_its_intents_are_refused(site: Site) -> None:
    cloud = Cloud(Means.TAG)
    one, two = Process(site, cloud, name="a"), Process(site, cloud, name="b")
    one.begin()
    assert (one.leases.epoch("cloud"), two.leases.epoch("cloud")) == (1, None)
    two.keeper.step()
    assert two.leases.epoch("cloud") is None, "it is held, and its term is not over"
    site.clock.at += TERM
    two.begin()
    assert two.leases.epoch("cloud") == 2
    site.say(3)
    two.tick()

    site.clock.at += timedelta(seconds=3)
    assert one.leases.epoch("cloud") is None, "its own clock says so"
    one.leases.holds("cloud", 1, one.site.clock.elapsed_s() + 60)  # had it not looked
    site.say(3)
    one.rounds.once()
    one.work()

    assert len(cloud.machines) == 3
    assert one.leases.epoch("cloud") is None, "it was told"
    assert {e.by for e in all_of(site, Request.Intended)} == {"provisioner/b"}


def test_f23_calls_that_waited_while_the_lease_was_lost_are_not_made(site: Site) -> None:
    cloud = Cloud(Means.TAG)
    one = Process(site, cloud, name="a")
    one.begin()
    site.say(3)
    one.rounds.once()
    assert one.driver.waiting == 1

    site.clock.at += TERM
    one.work()

    assert not cloud.machines


def test_f24_while_a_listing_fails_nothing_is_concluded_and_after_it_all_are_known(
    site: Site,
) -> None:
    policy = PolicyConfig(max_per_request=200)
    cloud = Cloud(Means.LISTING)
    filled(site, cloud, 200, Process(site, cloud, policy=policy))
    assert len(site.inventory.instances) == 200

    restarted = Process(site, cloud, policy=policy)
    cloud.fail = AWAY
    restarted.keeper.step()
    for _ in range(5):
        pass_time(site)
        restarted.driver.reconcile()
        restarted.driver.poll()
        restarted.work()
    assert len(site.inventory.instances) == 200
    cloud.fail = None
    site.say(4)
    restarted.tick()
    for _ in range(3):
        restarted.tick()

    assert len(cloud.machines) == 204
    assert not cloud.returned
    assert len(site.inventory.instances) == 204


def test_f24_an_empty_listing_takes_nothing_away_until_it_has_been_repeated(site: Site) -> None:
    cloud = Cloud(Means.LISTING)
    process = filled(site, cloud, 10)
    pass_time(site, 10)
    process.keeper.step()
    cloud.hidden = set(cloud.machines)

    for _ in range(3):
        process.driver.reconcile()
    assert len(site.inventory.instances) == 10
    cloud.hidden = set()
    process.driver.reconcile()
    cloud.hidden = set(cloud.machines)
    process.driver.reconcile()

    assert len(site.inventory.instances) == 10


def test_f29_more_than_one_ask_can_hold_is_asked_in_steps(site: Site) -> None:
    cloud = Cloud(Means.NEITHER)
    process = Process(site, cloud)
    process.begin()
    site.say(625, jobs=625)
    process.tick()

    assert [e.amount for e in all_of(site, Request.Intended)] == [100, 100, 100]
    assert len(cloud.machines) == 300


def test_a_stuck_return_does_not_block_the_others(site: Site) -> None:
    cloud = Cloud(Means.NEITHER)
    process = filled(site, cloud, 3)
    cloud.returns_refused = frozenset({"m2"})
    site.say(idle=site.idle())
    for _ in range(5):
        process.tick()
        site.look_at_drains()

    assert [one.machine for one in cloud.present()] == ["m2"]
    cloud.returns_refused = frozenset()
    for _ in range(4):
        site.look_at_drains()
        process.tick()
    assert cloud.present() == []


def test_a_host_past_the_age_limit_goes_back_when_its_jobs_have_ended(site: Site) -> None:
    cloud = Cloud(Means.NEITHER)
    aged = LifecycleSettings(host_age_limit=timedelta(hours=1))
    process = filled(site, cloud, 1, Process(site, cloud, lifecycle=aged))
    pass_time(site, 61)

    for _ in range(3):
        process.tick()
        site.look_at_drains({"host-m1": ("j1",)})
    assert cloud.returned == {}
    assert len(all_of(site, Instance.DrainStarted)) == 1, "it is not opened for its own job"

    site.look_at_drains()
    process.tick()
    assert cloud.returned == {"m1": 1}


def test_a_machine_that_its_provider_takes_back_is_drained_and_its_jobs_requeued_at_the_end_of_the_grace(
    site: Site,
) -> None:
    cloud = Cloud(Means.NEITHER)
    process = filled(site, cloud, 2)
    cloud.notices = (TakeBack("m1", 120), TakeBack("unknown", 5))
    process.tick()

    (asked,) = all_of(site, Drain.Asked)
    assert (asked.instance, asked.at_deadline) == ("cloud/m1", AtDeadline.REQUEUE)
    assert asked.deadline == site.clock.now() + timedelta(seconds=120)


def test_a_frozen_site_asks_nothing_drains_nothing_and_gives_nothing_back(site: Site) -> None:
    from xce.domain.engine.commands import Freeze

    cloud = Cloud(Means.NEITHER)
    process = filled(site, cloud, 1)
    site.do(Role.ADMIN, Freeze("maintenance"))
    site.say(3, idle=site.idle())
    pass_time(site, 30)
    process.tick()
    process.tick()

    assert len(cloud.machines) == 1
    assert cloud.returned == {}
    assert [one.state for one in site.inventory.instances] == [InstanceState.JOINED]


def test_every_change_has_a_decision_that_names_it(site: Site) -> None:
    cloud = Cloud(Means.NEITHER)
    process = filled(site, cloud, 2)
    site.say(idle=site.idle())
    process.tick()

    led = [(one.deed, one.led_to) for one in all_of(site, Decision.Made)]
    assert led == [
        ("request", ("request:R1",)),
        ("return", ("instance:cloud/m1",)),
        ("return", ("instance:cloud/m2",)),
    ]


def test_what_waits_when_it_stops_is_ended_as_never_asked(site: Site) -> None:
    cloud = Cloud(Means.NEITHER)
    process = Process(site, cloud)
    process.begin()
    site.say(2)
    process.rounds.once()

    process.driver.withdraw()

    assert not cloud.machines
    (closed,) = all_of(site, Request.Closed)
    assert "before it asked" in closed.why
    assert site.orphans() == []


@pytest.mark.parametrize(("epoch", "closed"), [(2, 1), (3, 0)])
def test_asks_that_waited_while_nobody_else_can_have_acted_are_ended_as_never_asked(
    site: Site, epoch: int, closed: int
) -> None:
    cloud = Cloud(Means.NEITHER)
    process = Process(site, cloud)
    process.begin()
    site.say(2)
    process.rounds.once()
    site.clock.at += TERM
    if epoch == 3:
        Process(site, cloud, name="other").keeper.step()
        site.clock.at += TERM
    process.keeper.step()
    assert process.leases.epoch("cloud") == epoch

    process.driver.begin(1, epoch)
    process.work()

    assert not cloud.machines
    assert len(all_of(site, Request.Closed)) == closed


def test_an_ask_that_waited_past_its_deadline_is_not_made(site: Site) -> None:
    cloud = Cloud(Means.NEITHER)
    process = Process(site, cloud)
    process.begin()
    site.say(2)
    process.rounds.once()
    site.say()
    for _ in range(16):  # the provider's thread is busy for so long
        pass_time(site)
        process.keeper.step()
    process.rounds.once()

    process.work()

    assert not cloud.machines
    assert site.orphans() == []


def test_while_the_controller_is_away_nothing_is_asked_and_nothing_is_lost(site: Site) -> None:
    cloud = Cloud(Means.TAG)
    process = Process(site, cloud)
    process.begin()
    site.say(2)
    site.away = True
    with pytest.raises(Exception, match="away"):
        process.rounds.once()
    process.keeper.step()
    assert not cloud.machines

    site.away = False
    process.tick()
    assert len(cloud.machines) == 2
