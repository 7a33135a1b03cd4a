"""Field cases at the level of the daemon's parts, in virtual time: attempts are counted, nothing is timed."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.provisioner.rig import TERM, Process, Site, all_of, filled, pass_time
from tests.provisioner.truth import AWAY, Cloud, DyingCloud, Fate, Killed, Means
from xce.adapters.providers.errors import OutcomeUnknownError
from xce.domain.formats.config import PolicyConfig
from xce.domain.ports import Accepted, Ask, Refused
from xce.domain.provisioning.instance import Instance, InstanceState
from xce.domain.provisioning.request import Request, RequestState


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


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


class Unreadable(Cloud):
    """Does what it is asked, and answers nothing that can be read."""

    def ask(self, ask: Ask, now: object) -> Accepted | Refused:
        super().ask(ask, now)  # type: ignore[arg-type]  # the time
        raise OutcomeUnknownError("no object on standard output")


@pytest.mark.parametrize("means", Means)
def test_f19_after_an_answer_that_cannot_be_read_it_is_looked_up_and_not_asked_again(
    site: Site, means: Means
) -> None:
    cloud = Unreadable(means)
    process = Process(site, cloud)
    process.begin()
    site.say(2)
    for _ in range(14):
        process.tick()
        pass_time(site)
        site.say(0 if site.inventory.instances or _open(site) else 2)

    assert set(cloud.asks.values()) == {1}
    if means is Means.NEITHER:
        assert [one.state for one in site.inventory.requests] == [RequestState.UNKNOWN]
    else:
        assert {one.machine for one in site.inventory.instances} == set(cloud.machines)
        assert len(cloud.machines) == 2


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
