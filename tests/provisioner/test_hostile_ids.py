"""Providers that use an id again, give one machine twice, or name machines by what no record can hold: nothing is lost track of."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from tests.provisioner.rig import START, Process, Site, all_of, pass_time
from tests.provisioner.truth import Cloud, Means, TrueMachine
from xce.domain.engine.accounting import stand_in
from xce.domain.events.base import WHY_MAX
from xce.domain.formats.config import PolicyConfig
from xce.domain.formats.policy import Budget
from xce.domain.ports import (
    Accepted,
    Ask,
    Holding,
    MachineReport,
    MachineResult,
    Refused,
    RequestStatus,
    ReturnStatus,
    StatusAnswer,
)
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.request import Request


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


class Shelf(Cloud):
    """Machines that stand on a shelf: the same ones, with the same ids, are lent again and again."""

    def __init__(self, means: Means, ids: tuple[str, ...]) -> None:
        super().__init__(means)
        self.ids = ids
        self.given: dict[str, tuple[str, ...]] = {}

    def ask(self, ask: Ask, now: datetime) -> Accepted | Refused:
        theirs = f"add-{ask.tag}"
        self.asks[ask.tag] += 1
        present = {one.machine for one in self.present()}
        free = [one for one in self.ids if one not in present][: ask.amount]
        if not free:
            return Refused("Empty", "the shelf is empty", 0)
        for one in free:
            self.machines[one] = TrueMachine(one, ask.tag, ask.item, now)
        self.given[theirs] = tuple(free)
        self.most_at_once = max(self.most_at_once, len(self.present()))
        return Accepted(theirs)

    def status(self, provider_request_id: str, now: datetime) -> StatusAnswer:
        return StatusAnswer(
            RequestStatus.COMPLETE,
            tuple(
                MachineReport(one, one, MachineResult.SUCCEED)
                for one in self.given[provider_request_id]
            ),
        )


def _give_all_back(site: Site, process: Process) -> None:
    site.say(idle=site.idle())
    for _ in range(4):
        process.tick()
        site.look_at_drains()


@pytest.mark.parametrize("means", list(Means))
def test_a_machine_id_that_is_used_again_is_a_machine_again(site: Site, means: Means) -> None:
    shelf = Shelf(means, ("rack-1",))
    process = Process(site, shelf)
    process.begin()
    for _ in range(3):
        pass_time(site)
        site.say(1)
        process.tick()
        process.tick()
        assert [one.state for one in site.inventory.instances] == [InstanceState.STARTING]
        site.join("rack-1")
        assert [one.state for one in site.inventory.instances] == [InstanceState.JOINED]
        _give_all_back(site, process)
        assert shelf.present() == []
        assert site.inventory.instances == ()
    assert shelf.returned == {"rack-1": 3}
    assert len(all_of(site, Request.Intended)) == 3
    assert site.orphans() == []


class SlowShelf(Shelf):
    """Lends a machine again before it says that its return is over."""

    def __init__(self, means: Means, ids: tuple[str, ...]) -> None:
        super().__init__(means, ids)
        self.is_slow = True

    def return_status(
        self, return_id: str, now: datetime, *, theirs: str | None = None
    ) -> ReturnStatus:
        if self.is_slow:
            return ReturnStatus(RequestStatus.RUNNING)
        return super().return_status(return_id, now, theirs=theirs)


@pytest.mark.parametrize("means", list(Means))
def test_a_machine_that_is_lent_again_before_its_return_is_over_is_another_one(
    site: Site, means: Means
) -> None:
    shelf = SlowShelf(means, ("rack-1",))
    process = Process(site, shelf)
    process.begin()
    site.say(1)
    process.tick()
    process.tick()
    site.join("rack-1")
    _give_all_back(site, process)
    pass_time(site)
    site.say(1)
    for _ in range(5):
        process.tick()
        pass_time(site)
    assert {one.id: one.state for one in site.inventory.instances} == {
        "cloud/rack-1": InstanceState.RETURNING,
        "cloud/rack-1~R2": InstanceState.STARTING,
    }

    shelf.is_slow = False
    process.tick()
    process.tick()
    assert [one.id for one in site.inventory.instances] == ["cloud/rack-1~R2"]
    site.join("rack-1")
    _give_all_back(site, process)
    assert shelf.returned == {"rack-1": 2}
    assert site.inventory.instances == ()
    assert site.orphans() == []


class Unsayable(Cloud):
    """Names its machines by what no record can hold."""

    def __init__(self, means: Means, name: str) -> None:
        super().__init__(means)
        self.named = name

    def status(self, provider_request_id: str, now: datetime) -> StatusAnswer:
        answer = super().status(provider_request_id, now)
        machines = tuple(
            MachineReport(self.named + one.machine, "n", MachineResult.SUCCEED)
            for one in answer.machines
        )
        return replace(answer, machines=machines)

    def holdings(self, now: datetime) -> tuple[Holding, ...] | None:
        found = super().holdings(now)
        return found and tuple(replace(one, theirs=self.named + one.theirs) for one in found)


@pytest.mark.parametrize("means", list(Means))
@pytest.mark.parametrize("name", ["\x1b[2J", "x" * 1_000_000, "a\n", "\x00"])
def test_machines_under_ids_that_no_record_can_hold_are_reported_one_by_one(
    site: Site, means: Means, name: str
) -> None:
    cloud = Unsayable(means, name)
    process = Process(site, cloud)
    process.begin()
    site.say(2)
    for _ in range(6):
        process.tick()
        pass_time(site)

    made = cloud.machines.values()
    assert {one for one, _, _ in site.orphans()} == {stand_in(name + one.machine) for one in made}
    assert all(len(why) <= WHY_MAX for _, _, why in site.orphans())
    assert site.inventory.instances == ()


class Double(Cloud):
    """Says of every request that it brought the first machine."""

    def status(self, provider_request_id: str, now: datetime) -> StatusAnswer:
        machine = MachineReport("m1", "m1", MachineResult.SUCCEED)
        return StatusAnswer(RequestStatus.COMPLETE, (machine, machine))


def test_a_machine_that_two_requests_bring_is_owned_by_the_first_and_goes_back_once(
    site: Site,
) -> None:
    cloud = Double(Means.NEITHER)
    process = Process(site, cloud)
    process.begin()
    site.say(1)
    process.tick()
    process.tick()
    site.join("m1")
    pass_time(site)
    site.say(1)
    process.tick()
    process.tick()

    assert [one.id for one in site.inventory.instances] == ["cloud/m1"]
    assert "m1 was brought by another request" in all_of(site, Request.Closed)[-1].why
    _give_all_back(site, process)
    assert cloud.returned == {"m1": 1}
    assert site.orphans() == []


def test_a_machine_that_is_older_than_its_request_is_a_machine(site: Site) -> None:
    class Stopped(Cloud):
        """Starts machines that it had stopped long ago."""

        def status(self, provider_request_id: str, now: datetime) -> StatusAnswer:
            answer = super().status(provider_request_id, now)
            long_ago = START - timedelta(days=900)
            return replace(
                answer,
                machines=tuple(replace(one, launched_at=long_ago) for one in answer.machines),
            )

    cloud = Stopped(Means.LISTING)
    process = Process(site, cloud)
    process.begin()
    site.say(1)
    process.tick()
    process.tick()
    for _ in range(4):
        pass_time(site)
        process.tick()

    assert [(one.id, one.state) for one in site.inventory.instances] == [
        ("cloud/m1", InstanceState.STARTING)
    ]
    assert site.inventory.instances[0].granted_at >= START, "its limits begin with our knowing it"


@pytest.mark.parametrize("means", list(Means))
def test_machines_under_ids_that_no_record_can_hold_use_their_budget(
    site: Site, means: Means
) -> None:
    """Nothing of them can be owned, so their request fails and the jobs wait on: a budget must end that."""
    cloud = Unsayable(means, "\x1b")
    budget = Budget(name="b", max_hosts=3)
    process = Process(site, cloud, policy=PolicyConfig(budgets=(budget,)))
    process.begin()
    for _ in range(90):
        site.say(2)
        process.tick()
        pass_time(site, 15)

    assert 2 <= len(cloud.machines) <= 3
    assert len(site.orphans()) == len(cloud.machines)
