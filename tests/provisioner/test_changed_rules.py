"""Rules and providers that change while requests, hosts and drains are under way: what is there is followed to its end."""

from collections.abc import Iterator
from datetime import datetime

import pytest

from tests.provisioner.rig import Process, Site, all_of, filled, pass_time
from tests.provisioner.truth import Cloud, Means
from xce.domain.formats.config import PolicyConfig
from xce.domain.formats.policy import Budget
from xce.domain.formats.provider import ProviderDescription, TemplateOffer
from xce.domain.provisioning.request import Request


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


class Changing(Cloud):
    """Says of itself what it is told to say."""

    def __init__(self, means: Means) -> None:
        super().__init__(means)
        self.capacity: int | None = None
        self.templates: tuple[str, ...] = ("c4",)

    def describe(self, now: datetime) -> ProviderDescription | None:
        said = super().describe(now)
        assert said is not None
        offers = tuple(TemplateOffer(template_id=one) for one in self.templates)
        return said.model_copy(update={"capacity": self.capacity, "templates": offers})


def _give_all_back(site: Site, process: Process) -> None:
    site.say(idle=site.idle())
    for _ in range(5):
        process.tick()
        site.look_at_drains()


@pytest.mark.parametrize("means", list(Means))
@pytest.mark.parametrize("change", ["capacity", "template", "budget"])
def test_what_was_asked_before_a_rule_changed_comes_joins_and_goes_back(
    site: Site, means: Means, change: str
) -> None:
    """The change comes with a new process, between the ask and its answer."""
    cloud = Changing(means)
    cloud.stuck = True
    process = Process(site, cloud)
    process.begin()
    site.say(3)
    process.tick()

    policy = PolicyConfig()
    match change:
        case "capacity":
            cloud.capacity = 1
        case "template":
            cloud.templates = ("other",)
        case _:
            policy = PolicyConfig(budgets=(Budget(name="b", max_hosts=1),))
    process = Process(site, cloud, policy=policy)
    process.begin()
    cloud.stuck = False
    for _ in range(3):
        pass_time(site)
        process.tick()
    assert len(site.inventory.instances) == 3
    for machine in cloud.present():
        site.join(machine.machine)
    site.say(5)
    for _ in range(3):
        pass_time(site)
        process.tick()
    assert len(all_of(site, Request.Intended)) == 1, "nothing more is asked"

    _give_all_back(site, process)
    assert cloud.present() == []
    assert not site.inventory.instances
    assert site.orphans() == []


@pytest.mark.parametrize("change", ["capacity", "template", "budget"])
def test_drains_under_way_when_a_rule_changes_end_in_returns(site: Site, change: str) -> None:
    cloud = Changing(Means.LISTING)
    process = filled(site, cloud, 3, Process(site, cloud))
    site.say(idle=site.idle())
    process.tick()  # drains
    policy = PolicyConfig()
    match change:
        case "capacity":
            cloud.capacity = 0
        case "template":
            cloud.templates = ("other",)
        case _:
            policy = PolicyConfig(budgets=(Budget(name="b", max_hosts=0),))
    process = Process(site, cloud, policy=policy)
    process.begin()
    for _ in range(4):
        site.look_at_drains()
        pass_time(site)
        process.tick()
    assert cloud.present() == []
    assert not site.inventory.instances
