"""Daemons on machines whose clocks are minutes apart: what is measured between two clocks is measured with one."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from tests.provisioner.rig import Process, Site, all_of, filled, pass_time
from tests.provisioner.truth import Cloud, Means
from xce.adapters.clock import SystemClock
from xce.adapters.providers.errors import OutcomeUnknownError
from xce.domain.ports import Accepted, Ask, Holding, Refused
from xce.domain.provisioning.instance import Instance, InstanceState
from xce.domain.provisioning.provider import Provider
from xce.domain.provisioning.request import Request

APART = [timedelta(minutes=minutes) for minutes in (-20, -3, 3, 20)]


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


def skewed(site: Site, by: timedelta) -> SystemClock:
    return SystemClock(wall=lambda: site.clock.at + by, monotonic_s=site.clock.elapsed_s)


class Slow(Cloud):
    """Loses its answers, and shows in its listing what it made a minute ago or earlier."""

    def ask(self, ask: Ask, now: datetime) -> Accepted | Refused:
        super().ask(ask, now)
        raise OutcomeUnknownError("the answer was lost")

    def __init__(self, site: Site, by: timedelta) -> None:
        super().__init__(Means.LISTING)
        self._site = site
        self._by = by
        self._since: dict[str, datetime] = {}

    def holdings(self, now: datetime) -> tuple[Holding, ...] | None:
        found = super().holdings(now)
        assert found is not None
        true = self._site.clock.at
        since = {one.theirs: self._since.setdefault(one.theirs, true) for one in found}
        shown = [one for one in found if since[one.theirs] < true - timedelta(seconds=50)]
        return tuple(replace(one, launched_at=true) for one in shown)


@pytest.mark.parametrize("by", APART)
def test_an_ask_is_looked_up_no_sooner_whatever_the_provisioners_clock_says(
    site: Site, by: timedelta
) -> None:
    cloud = Slow(site, by)
    process = Process(site, cloud, clock=skewed(site, by))
    process.begin()
    site.say(2)
    for _ in range(4):
        process.tick()
        process.driver.reconcile()
        process.work()
        site.clock.at += timedelta(seconds=30)
    assert len(cloud.machines) == 2, "nothing is asked a second time"
    assert len(site.inventory.instances) == 2


@pytest.mark.parametrize("by", APART)
def test_hosts_that_a_listing_shows_late_are_not_lost_whatever_the_provisioners_clock_says(
    site: Site, by: timedelta
) -> None:
    cloud = Cloud(Means.LISTING)
    process = Process(site, cloud, clock=skewed(site, by))
    process.begin()
    site.say(2)
    process.tick()
    process.tick()
    cloud.hidden = set(cloud.machines)
    for _ in range(3):
        process.driver.reconcile()
        process.work()
        site.clock.at += timedelta(seconds=10)

    assert all_of(site, Instance.Lost) == []
    assert [one.state for one in site.inventory.instances] == [InstanceState.STARTING] * 2


@pytest.mark.parametrize("by", APART)
def test_a_pause_has_its_length_whatever_the_provisioners_clock_says(
    site: Site, by: timedelta
) -> None:
    cloud = Cloud(Means.NEITHER)
    cloud.refuse = Refused("InsufficientInstanceCapacity", "none left", None)
    process = Process(site, cloud, clock=skewed(site, by))
    process.begin()
    site.say(1)
    process.tick()

    (paused,) = all_of(site, Provider.Paused)
    length = paused.until - site.clock.at
    assert timedelta(minutes=9) < length <= timedelta(minutes=11)
    asked = len(all_of(site, Request.Intended))
    pass_time(site, 5)
    process.tick()
    assert len(all_of(site, Request.Intended)) == asked


@pytest.mark.parametrize("by", APART)
def test_two_provisioners_whose_clocks_are_apart_take_turns_and_lose_nothing(
    site: Site, by: timedelta
) -> None:
    cloud = Cloud(Means.LISTING)
    first = filled(site, cloud, 2, Process(site, cloud, name="p1", clock=skewed(site, by)))
    second = Process(site, cloud, name="p2", clock=skewed(site, -by))
    second.keeper.step()
    assert not second.driver.acts
    pass_time(site, 10)
    second.begin()
    for _ in range(4):
        pass_time(site)
        second.tick()
        first.driver.poll()
        first.work()

    assert {one.state for one in site.inventory.instances} == {InstanceState.JOINED}
    assert len(cloud.machines) == 2
