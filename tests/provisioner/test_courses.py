"""What befalls requests, hosts and the provisioner itself, in virtual time."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from threading import Event

import pytest

from tests.provisioner.rig import TERM, Process, Site, all_of, filled, pass_time
from tests.provisioner.truth import Cloud, Means
from xce.adapters.provisioner.worker import Worker
from xce.domain.engine.messages import Role
from xce.domain.errors import TransientError
from xce.domain.formats.lifecycle import LifecycleSettings
from xce.domain.formats.provider import ProviderDescription
from xce.domain.formats.provisioner_config import Rhythm
from xce.domain.ports import Accepted, Ask, Refused, TakeBack
from xce.domain.provisioning.decision import Decision
from xce.domain.provisioning.drain import AtDeadline, Drain
from xce.domain.provisioning.instance import Instance, InstanceState
from xce.domain.provisioning.request import Request, RequestState


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


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


class Shy(Cloud):
    """Does not say what it offers when it is first asked."""

    def __init__(self) -> None:
        super().__init__(Means.NEITHER)
        self.described: list[datetime] = []

    def describe(self, now: datetime) -> ProviderDescription | None:
        self.described.append(now)
        return None if len(self.described) < 3 else super().describe(now)


def test_a_provider_that_does_not_say_what_it_offers_is_asked_again_soon(site: Site) -> None:
    cloud, rhythm = Shy(), Rhythm()
    process = Process(site, cloud)
    worker = Worker(
        process.driver, process.leases, rhythm, elapsed_s=site.clock.elapsed_s, stopping=Event()
    )
    until = site.clock.at + timedelta(hours=1)

    while site.clock.at < until:
        process.keeper.step()
        while worker.step() == 0:
            pass
        site.clock.at += timedelta(seconds=10)

    gaps = [later - one for one, later in pairwise(cloud.described)]
    assert gaps[:2] == [rhythm.poll, rhythm.poll]
    assert gaps[2:] == [rhythm.describe]
    assert [one.name for one in site.supply().providers] == ["cloud"]


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
    from xce.domain.engine.site_commands import Freeze

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


class Mute(Cloud):
    """Does what it is asked, and its answer is lost."""

    def ask(self, ask: Ask, now: datetime) -> Accepted | Refused:
        super().ask(ask, now)
        raise TransientError("no answer")


def stops(process: Process) -> None:
    process.driver.withdraw()


def begins_anew(process: Process) -> None:
    process.driver.begin(1, 2)


@pytest.mark.parametrize("end", [stops, begins_anew])
def test_an_ask_that_waits_to_be_made_again_is_not_ended_as_never_asked(
    site: Site, end: Callable[[Process], None]
) -> None:
    cloud = Mute(Means.TAG)
    process = Process(site, cloud)
    process.begin()
    site.say(1)
    process.rounds.once()
    process.work()
    process.driver.poll()
    assert process.driver.waiting

    end(process)

    assert len(cloud.machines) == 1
    assert all_of(site, Request.Closed) == []
    assert [one.state for one in site.inventory.requests] == [RequestState.UNKNOWN]


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
