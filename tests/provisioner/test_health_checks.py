"""Health checks with jobs, sessions and a scripted cloud: a host opens when its check has passed, else it is a failure and goes back."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.provisioner.rig import Process, Site, all_of, pass_time
from tests.provisioner.town import Kind, ScriptedCloud, Town, minute_of, only
from tests.provisioner.truth import Cloud, Fate, Killed, Means
from xce.domain.engine.commands import RecordJoin
from xce.domain.engine.messages import Role
from xce.domain.errors import TransientError
from xce.domain.formats.config import PolicyConfig
from xce.domain.formats.provider import ProviderDescription
from xce.domain.formats.snapshot import HostState
from xce.domain.ports import Checked, MachineResult, ReportedMachine
from xce.domain.provisioning.instance import Instance, InstanceState

MINUTE = timedelta(minutes=1)
FINE, SICK, UNCLEAR = MachineResult.SUCCEED, MachineResult.FAIL, MachineResult.EXECUTING


class Doctor(ScriptedCloud):
    """Looks at machines as it is told to: what it finds at the first look, at the second, and from the last on."""

    def __init__(self, *kinds: Kind, finds: Sequence[MachineResult | None] = (FINE,), **more: Any):
        super().__init__(*kinds, **more)
        self.finds = finds
        self.looks: Counter[str] = Counter()
        self.seen: list[ReportedMachine] = []

    def check(self, machines: tuple[ReportedMachine, ...], now: Any) -> Checked:
        self.seen.extend(machines)
        results: list[tuple[str, MachineResult, str]] = []
        for one in machines:
            found = self.finds[min(self.looks[one.machine], len(self.finds) - 1)]
            self.looks[one.machine] += 1
            if found is None:
                raise TransientError("no end after 60 s")
            results.append((one.machine, found, "" if found is FINE else "no scratch disk"))
        return Checked(tuple(results))

    def describe(self, now: Any) -> ProviderDescription:
        said = super().describe(now)
        able = said.capabilities.model_copy(update={"health_check": True})
        return said.model_copy(update={"capabilities": able})


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


def story(site: Site) -> list[str]:
    """Return what happened to instances, in order, after they were granted."""
    return [
        type(one).__name__
        for one in site.events()
        if isinstance(one, Instance.Event) and not isinstance(one, Instance.Granted)
    ]


def test_a_host_that_reports_is_closed_checked_and_then_takes_work(site: Site) -> None:
    town = Town(site, Doctor(Kind("T"), finds=[UNCLEAR, UNCLEAR, FINE]))
    town.submit()

    town.live(4)

    assert story(site) == ["CheckStarted", "Joined"]
    assert town.running_on("host-m1"), "its job runs"
    assert town.asks() == [(0, "T", 1)], "while it is checked it is on its way"
    assert only(set(town.cloud.seen)) == ReportedMachine("m1", "m1", "host-m1", "T")  # type: ignore[attr-defined]


def test_no_job_starts_on_a_host_before_its_check_has_passed(site: Site) -> None:
    town = Town(site, Doctor(Kind("T"), finds=[UNCLEAR]))
    town.submit()

    town.live(5)

    (entry,) = town.inventory.instances
    assert (entry.state, entry.reported_as, entry.host) == (
        InstanceState.STARTING, "host-m1", None,
    )  # fmt: skip
    assert entry.reported_at is not None
    assert not town.running_on("host-m1")
    assert only(town.batch.hosts).state is not HostState.OPEN


def test_a_host_that_fails_its_check_goes_back_and_its_template_rests_as_after_other_failures(
    site: Site,
) -> None:
    policy = PolicyConfig(failures_before_pause=2, pause_after_refusal=30 * MINUTE)
    town = Town(site, Doctor(Kind("T"), finds=[SICK]), policy)
    town.submit()

    town.live(25)

    assert [amount for _, _, amount in town.asks()] == [1, 1], "after two of them it rests"
    assert set(town.cloud.returned) == {"m1", "m2"}
    assert story(site)[:5] == [
        "CheckStarted", "JoinMissed", "ReturnIntended", "ReturnAccepted", "Returned",
    ]  # fmt: skip
    whys = {one.why for one in all_of(site, Instance.JoinMissed)}
    assert whys == {"its health check failed: no scratch disk"}
    backs = {one.why for one in all_of(site, Instance.ReturnIntended)}
    assert backs == {"its health check did not pass"}
    assert not all_of(site, Instance.Joined)
    failure = only(site.supply().failures)
    assert (failure.item, failure.in_a_row) == ("T", 2)


def test_what_a_sick_host_measured_is_not_learned(site: Site) -> None:
    kind = Kind("T", slots=4, really={"slots": 2})
    policy = PolicyConfig(failures_before_pause=1, pause_after_refusal=30 * MINUTE)
    town = Town(site, Doctor(kind, finds=[SICK]), policy)
    town.submit()

    town.live(5)

    (offer,) = site.supply().catalog.templates
    assert offer.provides == {"slots": 4}


@pytest.mark.parametrize("finds", [UNCLEAR, None], ids=["never known", "no answer"])
def test_a_check_without_an_end_is_a_failure_when_the_join_limit_is_over_again(
    site: Site, finds: MachineResult | None
) -> None:
    policy = PolicyConfig(
        join_limit=10 * MINUTE, failures_before_pause=1, pause_after_refusal=30 * MINUTE
    )
    town = Town(site, Doctor(Kind("T", boots=3 * MINUTE), finds=[finds]), policy)
    town.submit()

    town.live(20)

    reported = only(all_of(site, Instance.CheckStarted)).timestamp
    assert town.cloud.sent_back() == {"m1": minute_of(reported) + 10}
    why = only(all_of(site, Instance.JoinMissed)).why
    assert why == "its health check has not passed within 10 min"


def test_a_host_that_boots_again_and_again_is_not_waited_for_without_end(site: Site) -> None:
    policy = PolicyConfig(
        join_limit=10 * MINUTE, failures_before_pause=1, pause_after_refusal=30 * MINUTE
    )
    town = Town(site, Doctor(Kind("T"), finds=[UNCLEAR]), policy)
    town.submit()

    def boot() -> None:
        hosts = tuple(
            host.model_copy(update={"booted_at": site.clock.now()}) for host in town.batch.hosts
        )
        town.batch = town.batch.model_copy(update={"hosts": hosts})

    town.live(20, on={4: boot, 8: boot})

    assert len(all_of(site, Instance.CheckStarted)) == 3
    assert town.cloud.sent_back() == {"m1": 10}


def test_a_job_that_was_faster_than_the_closing_wins_and_the_host_is_not_checked(
    site: Site,
) -> None:
    """A batch system that starts jobs by itself may do so before it is told to close the host."""
    process = Process(site, DyingDoctor(Fate()))
    process.begin()
    site.say(1)
    process.tick()
    process.tick()
    site.join("m1")
    assert story(site) == ["CheckStarted"]

    site.do(
        Role.SCHEDULER,
        RecordJoin("cloud/m1", "host-m1", site.clock.now(), {}, {"slots": 4}, busy=True),
    )
    process.tick()

    assert story(site) == ["CheckStarted", "Joined"]


def test_a_template_can_be_left_unchecked(site: Site) -> None:
    class Choosy(Doctor):
        def describe(self, now: Any) -> ProviderDescription:
            said = super().describe(now)
            offers = [one.model_copy(update={"health_check": False}) for one in said.templates]
            return said.model_copy(update={"templates": tuple(offers)})

    town = Town(site, Choosy(Kind("T"), finds=[SICK]))
    town.submit()

    town.live(2)

    assert story(site) == ["Joined"]


def test_hosts_that_are_checked_when_checking_is_given_up_open(site: Site) -> None:
    cloud = Doctor(Kind("T"), finds=[UNCLEAR])
    town = Town(site, cloud)
    town.submit()
    town.live(2)
    assert story(site) == ["CheckStarted"]

    cloud.describe = super(Doctor, cloud).describe  # type: ignore[method-assign]
    town.live(4)

    assert story(site) == ["CheckStarted", "Joined"]
    assert town.running_on("host-m1")


class DyingDoctor(Cloud):
    """Dies around each check."""

    def __init__(self, fate: Fate) -> None:
        super().__init__(Means.LISTING)
        self.fate = fate
        self.result = FINE

    def check(self, machines: tuple[ReportedMachine, ...], now: Any) -> Checked:
        self.fate.pass_by("before check")
        found = tuple((one.machine, self.result, "x") for one in machines)
        self.fate.pass_by("after check")
        return Checked(found)

    def describe(self, now: Any) -> ProviderDescription:
        said = super().describe(now)
        assert said is not None
        able = said.capabilities.model_copy(update={"health_check": True})
        return said.model_copy(update={"capabilities": able})


@pytest.mark.parametrize("result", [FINE, SICK])
def test_a_provisioner_may_die_at_each_boundary_of_a_check(result: MachineResult) -> None:
    """Its successor looks again: the host opens once, or goes back once."""
    deaths = 0
    for die_at in range(1, 40):
        site, fate = Site(), Fate()
        cloud = DyingDoctor(fate)
        cloud.result = result
        process = Process(site, cloud, fate, name="p1")
        process.begin()
        site.say(1)
        process.tick()
        process.tick()
        site.join("m1")
        site.say()
        fate.passed, fate.die_at = 0, die_at
        try:
            process.tick()
            process.tick()
            died = False
        except Killed:
            died = True
        deaths += died
        fate.die_at = 0
        pass_time(site, 6)
        heir = Process(site, cloud, fate, name="p2")
        heir.begin()
        site.say()
        heir.tick()
        heir.tick()

        happened = story(site)
        if result is FINE:
            assert happened == ["CheckStarted", "Joined"], (die_at, fate.names)
        else:
            assert happened.count("JoinMissed") == 1, die_at
            assert happened[-1] == "Returned", (die_at, happened)
            assert cloud.returned["m1"] >= 1
        assert site.orphans() == []
        site.close()
        if not died:
            break
    assert deaths >= 4, "before and after the check, and before and after the append"
