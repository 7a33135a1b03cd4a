"""Who decides what: every instance decides over all providers, and each acts on, records and logs what concerns its own."""

from collections.abc import Iterator

import pytest

from tests.provisioner.rig import TERM, Process, Site, pass_time
from tests.provisioner.truth import Cloud, Means
from xce.adapters.provisioner import rounds
from xce.domain.engine.commands import TakeLease
from xce.domain.engine.messages import Role
from xce.domain.formats.config import PolicyConfig
from xce.domain.formats.policy import Budget
from xce.domain.provisioning.decision import Decision
from xce.domain.provisioning.request import Request


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


class Log:
    """Keeps what is logged as decided."""

    def __init__(self) -> None:
        self.decided: list[object] = []

    def info(self, event: str, **fields: object) -> None:
        if event == "decided":
            self.decided.append(fields["decision"])


def decided(process: Process, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return what a round of a process logs as decided."""
    log = Log()
    monkeypatch.setattr("xce.adapters.provisioner.rounds._LOG", log)
    process.rounds.once()
    return log.decided


def test_what_concerns_a_provider_that_another_one_acts_on_is_neither_recorded_nor_logged_as_decided(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = Cloud(Means.TAG)
    first, second = Process(site, cloud, name="p1"), Process(site, cloud, name="p2")
    first.begin()
    site.say(hosts=2)

    assert decided(second, monkeypatch) == []
    assert not any(isinstance(event, Decision.Made | Request.Intended) for event in site.events())
    assert decided(first, monkeypatch) == ["request"]
    assert [e.by for e in site.events() if isinstance(e, Decision.Made)] == ["provisioner/p1"]


def test_a_decision_on_a_lease_that_was_taken_away_meanwhile_leaves_no_trace(site: Site) -> None:
    """The old holder does not know yet: its record is refused as a whole, the decision with the intent."""
    cloud = Cloud(Means.TAG)
    first = Process(site, cloud, name="p1")
    first.begin()
    site.say(hosts=2)
    site.do(Role.ADMIN, TakeLease("cloud", "p2", TERM, force=True), name="ann")

    first.rounds.once()
    first.work()

    assert not any(isinstance(event, Decision.Made | Request.Intended) for event in site.events())
    assert cloud.most_at_once == 0


def test_losses_that_are_not_believed_yet_are_told_to_the_controller_until_they_are_settled(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = Cloud(Means.TAG)
    process = Process(site, cloud)
    process.begin()
    site.say(hosts=4)
    for _ in range(6):
        process.tick()
        pass_time(site)
    assert len(site.inventory.instances) == 4
    pass_time(site, 30)
    process.keeper.step()
    cloud.hidden = set(cloud.machines)
    process.driver.reconcile()
    process.rounds.once()
    (held,) = process.told[-1].held_back
    cloud.hidden = set()
    process.driver.reconcile()
    process.rounds.once()

    assert (held.provider, held.why) == (
        "cloud",
        "4 of 4 are missing at once: asked again before it is believed",
    )
    assert process.told[-1].held_back == ()


def test_of_more_bounds_than_a_report_takes_the_controller_is_told_the_fullest(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "BUDGETS_TOLD", 2)
    budgets = tuple(Budget(name=f"b{limit}", max_hosts=limit) for limit in (40, 10, 20))
    process = Process(site, Cloud(Means.TAG), policy=PolicyConfig(budgets=budgets))
    process.begin()
    site.say(5)

    process.rounds.once()
    process.work()
    process.rounds.once()

    told = [(one.budget, int(one.used)) for one in process.told[-1].budgets]
    assert told == [("b10", 5), ("b20", 5)]
