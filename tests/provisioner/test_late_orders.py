"""Orders that nobody answered and that arrive late, and decisions that outlive the lease epoch they were made in: neither asks for anything twice.

They were found by seeds of the fault campaign: 10680, 7798, 14633, 79353.
"""

from collections.abc import Callable, Iterator

import pytest

from tests.provisioner.rig import TERM, Process, Site, all_of, filled, pass_time
from tests.provisioner.truth import Cloud, Fate, Means
from xce.domain.engine.calls import Step
from xce.domain.engine.commands import ReportOrphan, TakeLease
from xce.domain.engine.messages import Role
from xce.domain.errors import StaleEpochError, TransientError
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.orphan import OrphanKind
from xce.domain.provisioning.request import Request, RequestState


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


def asked(site: Site) -> list[int]:
    return [event.amount for event in all_of(site, Request.Intended)]


def with_a_lost_intent(site: Site, cloud: Cloud) -> Process:
    """Return a provisioner whose intent for one host was not answered."""
    process = Process(site, cloud)
    process.begin()
    site.say(hosts=1)
    process.books.loses = True
    process.rounds.once()
    process.books.loses = False
    assert len(process.books.on_their_way) == 1
    return process


# ----------------------------------------------------------- orders that come late
def test_an_intent_that_was_not_answered_and_arrives_after_a_newer_one_is_refused(
    site: Site,
) -> None:
    process = with_a_lost_intent(site, Cloud(Means.TAG))
    site.say(hosts=2)
    process.keeper.step()
    process.rounds.once()

    with pytest.raises(StaleEpochError):
        process.books.on_their_way[0]()

    assert asked(site) == [2]


def test_nothing_new_is_decided_while_an_intent_may_be_on_its_way(site: Site) -> None:
    process = with_a_lost_intent(site, Cloud(Means.TAG))
    site.say(hosts=2)

    assert process.rounds.once() is False

    assert asked(site) == []
    process.keeper.step()
    assert process.rounds.once() is True
    assert asked(site) == [2]


def test_an_intent_that_arrives_late_but_before_anything_else_is_seen_by_the_next_round(
    site: Site,
) -> None:
    cloud = Cloud(Means.TAG)
    process = with_a_lost_intent(site, cloud)
    process.books.on_their_way[0]()
    process.keeper.step()
    process.rounds.once()
    assert asked(site) == [1], "it is the one that was wanted"

    for _ in range(3):
        pass_time(site)
        process.tick()

    assert len(cloud.machines) == 1, "its ask is made in the end"


def test_after_an_order_without_an_answer_the_other_steps_of_the_round_wait(site: Site) -> None:
    process = Process(site, Cloud(Means.TAG))
    process.begin()
    site.say(hosts=25, jobs=25)
    process.books.loses = True

    process.rounds.once()

    assert len(process.books.on_their_way) == 1


def test_while_the_controller_is_away_the_lease_stays_in_doubt_and_is_taken_anew_after(
    site: Site,
) -> None:
    process = with_a_lost_intent(site, Cloud(Means.TAG))
    site.away = True
    process.keeper.step()
    assert process.driver.in_doubt
    assert process.leases.epoch("cloud") == 1, "answers are still recorded, and calls made"
    site.away = False

    process.keeper.step()

    assert not process.driver.in_doubt
    assert process.leases.epoch("cloud") == 2


def test_an_answer_is_recorded_under_the_epoch_that_began_while_it_was_insisted_on(
    site: Site,
) -> None:
    """The lease was taken anew for an order in doubt, by another thread, while the answer to an ask was on its way."""
    cloud = Cloud(Means.NEITHER)

    def pause(seconds: float) -> bool:
        process.books.loses = False
        process.leases.doubt("cloud", 1)
        process.keeper.step()
        return True

    process = Process(site, cloud, pause=pause)
    process.begin()
    site.say(hosts=1)
    process.rounds.once()
    process.books.loses = True

    process.work()

    (request,) = site.inventory.requests
    assert request.state is RequestState.ACCEPTED
    assert process.leases.epoch("cloud") == 2
    with pytest.raises(StaleEpochError):
        process.books.on_their_way[0]()


def test_an_answer_waits_while_the_lease_is_being_taken_anew(site: Site) -> None:
    """The controller has given the new epoch; the answer that says so is still on its way."""
    cloud = Cloud(Means.NEITHER)
    heard: list[float] = []

    def pause(seconds: float) -> bool:
        heard.append(seconds)
        if len(heard) == 2:
            process.leases.holds("cloud", 2, site.clock.elapsed_s() + 60)
        return len(heard) < 5

    process = Process(site, cloud, pause=pause)
    process.begin()
    site.say(hosts=1)
    process.rounds.once()
    process.leases.doubt("cloud", 1)
    site.do(Role.PROVISIONER, TakeLease("cloud", "p1", TERM), name="p1")

    process.work()

    (request,) = site.inventory.requests
    assert request.state is RequestState.ACCEPTED
    assert len(heard) == 2


def test_an_answer_is_let_go_when_the_lease_is_somebody_elses(site: Site) -> None:
    process = Process(site, Cloud(Means.NEITHER), pause=lambda seconds: True)
    process.begin()
    site.say(hosts=1)
    process.rounds.once()
    site.do(Role.ADMIN, TakeLease("cloud", "p2", TERM, force=True), name="ann")

    process.work()

    assert process.leases.epoch("cloud") is None
    (request,) = site.inventory.requests
    assert request.state is RequestState.INTENDED


# -------------------------------------------------- decisions of an earlier epoch
def give_the_lease_to(process: Process) -> None:
    """An administrator hands the provider over, and the new holder hears of it."""
    order = TakeLease("cloud", process.books.name, TERM, force=True)
    epochs = process.site.do(Role.ADMIN, order, name="ann").epochs
    until_s = process.site.clock.elapsed_s() + TERM.total_seconds()
    process.leases.holds("cloud", epochs["cloud"], until_s)


def test_a_round_that_read_what_is_known_before_another_one_asked_asks_for_nothing(
    site: Site,
) -> None:
    cloud = Cloud(Means.TAG)
    process, other = Process(site, cloud), Process(site, cloud, name="p2")
    process.begin()
    site.say(hosts=2)

    def meanwhile() -> None:
        give_the_lease_to(other)
        other.rounds.once()
        give_the_lease_to(process)

    process.books.meanwhile = meanwhile

    process.rounds.once()

    assert process.leases.epoch("cloud") == 3, "it is ours again"
    assert asked(site) == [2]
    assert [event.by for event in all_of(site, Request.Intended)] == ["provisioner/p2"]


def test_a_round_that_began_before_the_lease_was_ours_asks_for_nothing(site: Site) -> None:
    cloud = Cloud(Means.TAG)
    process, other = Process(site, cloud), Process(site, cloud, name="p2")
    other.begin()
    site.say(hosts=2)

    def meanwhile() -> None:
        other.rounds.once()
        give_the_lease_to(process)

    process.books.meanwhile = meanwhile

    process.rounds.once()

    assert process.driver.acts
    assert [event.by for event in all_of(site, Request.Intended)] == ["provisioner/p2"]


def test_a_poll_that_read_what_is_known_under_an_earlier_epoch_gives_nothing_back(
    site: Site,
) -> None:
    cloud = Cloud(Means.TAG)
    process, other = filled(site, cloud, 1), Process(site, cloud, name="p2")
    site.say(idle=site.idle())
    process.rounds.once()
    site.look_at_drains()

    def meanwhile() -> None:
        give_the_lease_to(other)
        give_the_lease_to(process)

    process.books.meanwhile = meanwhile
    process.driver.poll()
    assert all_of(site, Instance.ReturnIntended) == []

    process.driver.poll()

    assert len(all_of(site, Instance.ReturnIntended)) == 1, "the next one does"


# ----------------------------------------------- what comes while a round is held
class Generous(Cloud):
    """Makes one more than asked."""

    def make(self, template: str, amount: int) -> int:
        return amount + 1


def test_a_round_does_not_ask_on_what_it_read_before_more_came_than_was_asked(site: Site) -> None:
    """Found by seed 43726: a surplus and the ask of such a round passed the capacity."""
    process = Process(site, Generous(Means.TAG))
    process.begin()
    site.say(hosts=1)
    process.rounds.once()
    process.work()
    site.say(hosts=2)

    def meanwhile() -> None:
        process.driver.poll()
        process.work()
        assert len(site.inventory.instances) == 2

    process.books.meanwhile = meanwhile

    assert process.rounds.once() is False

    assert asked(site) == [1]
    assert process.rounds.once() is True
    assert asked(site) == [1, 2], "the demand of then had not seen them"


def test_a_round_does_not_ask_while_it_is_being_recorded_what_came(site: Site) -> None:
    """The controller has saved it, perhaps, and does not show it yet."""
    rounds: list[bool] = []

    def pause(seconds: float) -> bool:
        process.books.loses = False
        rounds.append(process.rounds.once())
        return True

    process = Process(site, Cloud(Means.TAG), pause=pause)
    process.begin()
    site.say(hosts=1)
    process.rounds.once()
    process.work()
    site.say(hosts=2)
    process.driver.poll()
    process.books.loses = True

    process.work()

    assert rounds == [False]
    assert asked(site) == [1]


def test_a_round_does_not_ask_on_what_it_read_before_something_was_found_that_nobody_owns(
    site: Site,
) -> None:
    process = Process(site, Cloud(Means.TAG))
    process.begin()
    site.say(hosts=1)
    found = ReportOrphan("cloud", "m77", OrphanKind.UNKNOWN_TO_US, None, "listed twice", item="c4")

    def meanwhile() -> None:
        driver = process.driver
        assert driver.submit((Step((found,)),), under=driver.decides_under)

    process.books.meanwhile = meanwhile

    assert process.rounds.once() is False

    assert asked(site) == []
    assert len(site.inventory.unowned) == 1
    assert process.rounds.once() is True
    assert asked(site) == [1]


# --------------------------------------------------------- calls of an ended lease
def test_an_ask_is_not_begun_when_the_lease_ends_while_it_is_looked_whether_it_is_wanted(
    site: Site,
) -> None:
    cloud = Cloud(Means.TAG)
    process = Process(site, cloud)
    process.begin()
    site.say(hosts=1)
    process.rounds.once()

    def meanwhile() -> None:
        site.clock.at += TERM

    process.books.meanwhile = meanwhile

    process.work()

    assert not cloud.asks


def test_an_ask_is_not_begun_when_that_look_is_not_answered_before_the_lease_ends(
    site: Site,
) -> None:
    cloud = Cloud(Means.TAG)
    process = Process(site, cloud)
    process.begin()
    site.say(hosts=1)
    process.rounds.once()

    def meanwhile() -> None:
        site.clock.at += TERM
        raise TransientError("no answer")

    process.books.meanwhile = meanwhile

    process.work()

    assert not cloud.asks


class Slow(Fate):
    """Something happens while an intent is on its way."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], None] = lambda: None

    def pass_by(self, name: str) -> None:
        super().pass_by(name)
        if name == "before OpenRequest":
            self.meanwhile()


def test_what_came_is_not_recorded_while_something_decided_without_it_is_on_its_way(
    site: Site,
) -> None:
    fate = Slow()
    process = Process(site, Generous(Means.TAG), fate)
    process.begin()
    site.say(hosts=1)
    process.rounds.once()
    process.work()
    site.say(hosts=2)

    def meanwhile() -> None:
        process.driver.poll()
        process.work()

    fate.meanwhile = meanwhile
    process.rounds.once()
    assert len(asked(site)) == 2
    assert all_of(site, Instance.Granted) == [], "the intent was decided without them"

    fate.meanwhile = lambda: None
    process.driver.poll()
    process.work()
    assert len(all_of(site, Instance.Granted)) == 2, "it is recorded when it is said again"


def test_what_came_is_not_recorded_while_an_intent_without_an_answer_may_be_on_its_way(
    site: Site,
) -> None:
    process = Process(site, Generous(Means.TAG))
    process.begin()
    site.say(hosts=1)
    process.rounds.once()
    process.work()
    site.say(hosts=2)
    process.books.loses = True
    process.rounds.once()
    process.books.loses = False

    process.driver.poll()
    process.work()
    assert all_of(site, Instance.Granted) == []

    process.keeper.step()
    process.driver.poll()
    process.work()
    assert len(all_of(site, Instance.Granted)) == 2
