"""Field cases about asks and what comes of them, with jobs, sessions and a scripted cloud: attempts are counted, nothing is timed."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from tests.provisioner.rig import Site
from tests.provisioner.town import Kind, ScriptedCloud, Town, minute_of
from tests.provisioner.truth import Means
from xce.domain.formats.config import PolicyConfig
from xce.domain.ports import MachineReport, MachineResult, RequestStatus, StatusAnswer
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.request import RequestState

MINUTE = timedelta(minutes=1)


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


def test_f01_starting_hosts_and_the_free_room_of_joined_ones_cover_what_waits(site: Site) -> None:
    town = Town(site, ScriptedCloud(Kind("T", slots=4, cap=6, boots=5 * MINUTE)))
    town.submit(count=12)

    town.live(5, on={3: lambda: town.submit(count=2)})

    assert town.asks() == [(0, "T", 3), (3, "T", 1)]
    assert len(town.cloud.present()) == 4


def test_f03_hosts_that_never_join_are_asked_for_twice_and_then_their_template_rests(
    site: Site,
) -> None:
    policy = PolicyConfig(
        join_limit=10 * MINUTE, failures_before_pause=2, pause_after_refusal=30 * MINUTE
    )
    town = Town(site, ScriptedCloud(Kind("T", price="2.00", cap=10, joins=False)), policy)
    town.submit()

    town.live(49)

    assert town.asks() == [(0, "T", 1), (10, "T", 1)]
    assert town.cloud.sent_back() == {"m1": 10, "m2": 20}
    assert town.most_live == 1
    cost = site.live.read(lambda views: views.projections.spending.cost_at(site.clock.now()))
    assert 0.66 < cost < 0.74, "it is paid until it is gone, which is known a minute later"
    town.live(50)
    assert len(town.asks()) == 3, "its rest is over"


class Stuck(ScriptedCloud):
    """Requests for A run for ever and show nothing; in minute 18 one machine turns up."""

    def status(self, provider_request_id: str, now: datetime) -> StatusAnswer:
        answer = super().status(provider_request_id, now)
        if self._asks[provider_request_id][0].item != "A":
            return answer
        shown = answer.machines[:1] if minute_of(now) >= 18 else ()
        return StatusAnswer(RequestStatus.RUNNING, shown)

    def make(self, template: str, amount: int) -> int:
        return 1 if template == "A" else amount


def test_f05_at_its_deadline_a_request_is_given_up_and_the_next_template_is_asked(
    site: Site,
) -> None:
    policy = PolicyConfig(request_deadline=15 * MINUTE)
    cloud = Stuck(
        Kind("A", slots=1, priority=20),
        Kind("B", slots=1, boots=10 * MINUTE),
        means=Means.NEITHER,
    )
    town = Town(site, cloud, policy)
    town.submit(count=5)

    town.live(14)
    assert town.asks() == [(0, "A", 5)]
    town.live(17)
    assert town.asks() == [(0, "A", 5), (15, "B", 5)]
    states = [one.state for one in town.inventory.requests if one.template == "A"]
    assert states == [RequestState.TIMED_OUT]
    town.live(19)

    owned = {one.machine for one in town.inventory.instances if one.template == "A"}
    assert owned == {"m1"}, "what comes late is ours"
    town.live(120)
    assert len(town.asks()) == 2
    assert town.cloud.returned["m1"] + len(town.running_on("host-m1")) == 1, "used, or given back"


def test_f06_while_one_piece_of_demand_waits_each_eligible_template_has_its_turn(
    site: Site,
) -> None:
    policy = PolicyConfig(pause_after_refusal=5 * MINUTE)
    town = Town(
        site,
        ScriptedCloud(
            Kind("A1", priority=50, no_capacity_after=5 * MINUTE),
            Kind("A2", priority=50, no_capacity_after=5 * MINUTE),
            Kind("B", priority=40),
        ),
        policy,
    )
    town.submit()

    town.live(60)

    assert town.asks() == [(0, "A1", 1), (5, "A2", 1), (10, "B", 1)]
    assert [one.template for one in town.cloud.present()] == ["B"]


def test_f07_errored_machines_count_against_the_cap_and_a_template_that_fails_rests(
    site: Site,
) -> None:
    policy = PolicyConfig(failures_before_pause=3, pause_after_refusal=30 * MINUTE)
    cloud = ScriptedCloud(Kind("T", slots=1, cap=4, fails=MINUTE))
    cloud.returns_take = 2 * MINUTE
    town = Town(site, cloud, policy)
    town.submit(count=2)

    town.live(59)

    amounts = [amount for _, _, amount in town.asks()]
    assert amounts[:3] == [2, 2, 2]
    assert amounts[3:] in ([], [1]), "one probe after the pause"
    assert sum(amounts) <= 7
    assert town.most_live <= 4
    assert set(cloud.returned.values()) == {1}
    assert len(cloud.returned) == len(cloud.machines), "every errored machine is deleted"


class Short(ScriptedCloud):
    """Of ten that are asked of A, seven come; or eleven."""

    comes = 7

    def make(self, template: str, amount: int) -> int:
        return self.comes if template == "A" else amount

    def status(self, provider_request_id: str, now: datetime) -> StatusAnswer:
        answer = super().status(provider_request_id, now)
        if self._asks[provider_request_id][0].item == "A" and self.comes < 10:
            return StatusAnswer(
                RequestStatus.COMPLETE_WITH_ERROR,
                answer.machines,
                message="3 failed: Error Code: InsufficientInstanceCapacity",
            )
        return answer


def test_f08_asked_ten_got_seven_three_are_asked_of_the_next_template(site: Site) -> None:
    cloud = Short(Kind("A", slots=1, priority=20, boots=5 * MINUTE), Kind("B", slots=1))
    town = Town(site, cloud)
    town.submit(count=10)

    town.live(30)

    assert town.asks() == [(0, "A", 10), (0, "B", 3)] or town.asks() == [(0, "A", 10), (1, "B", 3)]
    assert len(town.inventory.instances) == 10
    assert len(cloud.present()) == 10


def test_f08b_asked_ten_got_eleven_all_of_them_are_ours(site: Site) -> None:
    cloud = Short(Kind("A", slots=1))
    cloud.comes = 11
    town = Town(site, cloud)
    town.submit(count=10, run=300 * MINUTE)

    town.live(30)
    assert town.asks() == [(0, "A", 10)]
    assert {one.machine for one in town.inventory.instances} == set(cloud.machines)

    town.live(100)
    assert len(cloud.present()) == 10, "the one too many has gone back"
    assert len(town.asks()) == 1


class Errored(ScriptedCloud):
    """Half of what it makes fails at once."""

    def _report(self, report: MachineReport, at: datetime, now: datetime) -> MachineReport:
        bad = int(report.machine.removeprefix("m")) % 2 == 0
        result = MachineResult.FAIL if bad else MachineResult.SUCCEED
        return MachineReport(report.machine, report.name, result)


def test_f08_what_failed_among_what_came_is_given_back_and_asked_again(site: Site) -> None:
    town = Town(site, Errored(Kind("T", slots=1)))
    town.submit(count=4)

    town.live(60)

    up = [one for one in town.inventory.instances if one.state is InstanceState.JOINED]
    assert len(up) == len(town.cloud.present()) == 4
    assert sum(amount for _, _, amount in town.asks()) == len(town.cloud.machines)
