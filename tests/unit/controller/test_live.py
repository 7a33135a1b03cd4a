"""The live controller over a log in memory: batches, failures of the log, a lost primary, and what readers see."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from datetime import timedelta
from typing import Any

import pytest

from xce.adapters.controller.embedded import Controller
from xce.adapters.controller.errors import NotPrimaryError, StoppingError
from xce.adapters.controller.feed import Feed
from xce.adapters.controller.live import LiveController, LiveSettings
from xce.adapters.store.log import StoredLog
from xce.adapters.store.open import open_log
from xce.domain.engine.commands import Command, DescribeProvider, SetOwned, TakeLease
from xce.domain.engine.messages import Answer, Caller, Role
from xce.domain.errors import BrokenLogError, ConflictError, NotFoundError, TransientError
from xce.domain.events.base import Aggregate
from xce.domain.events.recorded import Recorded
from xce.domain.formats.provider import ProviderDescription
from xce.domain.formats.session_result import SessionResult

ADMIN = Caller(Role.ADMIN, "alice")
TERM = timedelta(seconds=30)


def describe(capacity: int, name: str = "cloud") -> Command:
    return DescribeProvider(ProviderDescription(name=name, capacity=capacity))


class Faulty:
    """A log in memory whose next appends go wrong as told, instead of saving or (``lost``) after it."""

    def __init__(self) -> None:
        self.log: StoredLog = open_log(":memory:")
        self.faults: list[Exception] = []
        self.lost: list[Exception] = []
        self.gate = threading.Event()
        self.gate.set()
        self.at_gate = threading.Event()
        self.appends: list[int] = []

    def append(
        self, aggregates: Sequence[Aggregate[Any]], *, fences: Mapping[str, int] | None = None
    ) -> Sequence[Recorded]:
        self.at_gate.set()
        self.gate.wait(10)
        if self.faults:
            raise self.faults.pop(0)
        recorded = self.log.append(aggregates, fences=fences)
        self.appends.append(len(recorded))
        if self.lost:
            raise self.lost.pop(0)
        return recorded

    def __getattr__(self, name: str) -> Any:
        return getattr(self.log, name)


class Rig:
    """A live controller over a faulty log."""

    def __init__(self) -> None:
        self.log = Faulty()
        log: Any = self.log
        self.live = LiveController(log, settings=LiveSettings(gather_s=0.0, tick_s=0.01))
        self.live.start()

    def submit(self, *commands: Command, **more: Any) -> "Future[Answer]":
        return self.live.submit(ADMIN, *commands, **more)

    def do(self, *commands: Command, **more: Any) -> Answer:
        return self.submit(*commands, **more).result(10)

    def together(self, *orders: Command) -> list["Future[Answer]"]:
        """Submit orders so that they share an append."""
        self.log.gate.clear()
        first = self.submit(describe(0, "first"))
        futures = [self.submit(order) for order in orders]
        self.log.gate.set()
        first.result(10)
        return futures


@pytest.fixture
def rig() -> Any:
    made = Rig()
    yield made
    made.live.close()


def test_orders_that_wait_share_an_append_and_are_all_answered(rig: Rig) -> None:
    futures = rig.together(*(describe(n, f"c{n}") for n in range(50)))

    assert all(future.result(10).changed for future in futures)
    assert max(rig.log.appends) > 1
    assert sum(rig.log.appends) == 51


def test_a_refused_order_does_not_touch_its_neighbours(rig: Rig) -> None:
    good, bad, other = rig.together(describe(1, "a"), SetOwned("nothing", 1), describe(1, "b"))

    assert good.result(10).changed
    assert other.result(10).changed
    with pytest.raises(NotFoundError):
        bad.result(10)


def test_while_the_disk_is_full_orders_fail_for_now_and_then_it_goes_on(rig: Rig) -> None:
    rig.log.faults = [TransientError("database or disk is full")]

    with pytest.raises(TransientError, match="full"):
        rig.do(describe(1), key="k1")
    assert rig.live.read(lambda views: views.projections.position) == 0

    assert rig.do(describe(1), key="k1").changed


def test_what_an_append_saved_although_it_seemed_to_fail_is_shown_and_a_lease_has_its_term(
    rig: Rig,
) -> None:
    rig.do(describe(1))
    feed = threading.Event()
    rig.live.feed.watch(feed.set)
    rig.log.lost = [TransientError("the answer is lost")]
    take = TakeLease("cloud", "p1", TERM)

    with pytest.raises(TransientError, match="lost"):
        rig.do(take, key="k1")

    assert feed.wait(60), "the views follow by themselves"
    left = rig.live.read(lambda views: views.lease_left_s["cloud"])
    assert 0 < left <= TERM.total_seconds()
    again = rig.do(take, key="k1")
    assert (again.epochs, again.changed) == ({"cloud": 1}, False)
    assert [recorded.position for recorded in rig.live.events_after(0, 100)] == [1, 2, 3]


def test_another_writer_in_between_is_decided_again(rig: Rig) -> None:
    rig.log.faults = [ConflictError("cloud has changed")]

    assert rig.do(describe(1)).changed


def test_a_defect_that_one_order_meets_does_not_stop_the_others(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine: Any = vars(rig.live)["_machine"]
    perform: Callable[..., Answer] = machine.perform

    def sometimes(order: Any) -> Answer:
        if order.commands == (describe(666),):
            raise ZeroDivisionError
        return perform(order)

    monkeypatch.setattr(machine, "perform", sometimes)
    good, bad, other = rig.together(describe(1, "a"), describe(666), describe(1, "b"))

    assert good.result(10).changed
    assert other.result(10).changed
    with pytest.raises(ZeroDivisionError):
        bad.result(10)
    assert rig.live.ready


def test_an_old_primary_writes_nothing_and_says_so(rig: Rig) -> None:
    rig.do(describe(1))
    rig.log.log.take_primary()

    with pytest.raises(NotPrimaryError):
        rig.do(describe(2))
    with pytest.raises(NotPrimaryError):
        rig.do(describe(3))

    assert not rig.live.ready
    assert rig.log.log.head().position == 1


def test_whoever_waits_for_it_is_told_that_the_log_is_lost() -> None:
    told = threading.Event()
    with open_log(":memory:") as log:
        live = LiveController(log, on_lost=told.set)
        live.start()
        log.take_primary()
        with pytest.raises(NotPrimaryError):
            live.submit(ADMIN, describe(1)).result(10)
        live.close()

    assert told.is_set()


def test_f26_who_cannot_read_all_of_the_log_does_not_become_its_primary() -> None:
    with Controller.open(":memory:") as controller:
        controller.command(describe(1))
        log: Any = controller.live.log

        class Newer:
            def read(self, after: int = 0, upto: int | None = None) -> Any:
                raise BrokenLogError("event 1: this release does not know the event", 1)

            def __getattr__(self, name: str) -> Any:
                return getattr(log, name)

        newer: Any = Newer()
        with pytest.raises(BrokenLogError):
            LiveController(newer).start()

        assert controller.command(describe(2)).changed, "the one that can read it goes on"


def test_views_that_cannot_follow_stop_it_rather_than_do_it_twice(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(batch: object) -> None:
        raise KeyError("a view")

    monkeypatch.setattr(vars(rig.live)["_follower"].projections, "apply", broken)

    with pytest.raises(NotPrimaryError):
        rig.do(describe(1))
    assert rig.log.log.head().position == 1
    assert not rig.live.ready


def test_after_the_answer_every_reader_sees_it(rig: Rig) -> None:
    for capacity in range(20):
        rig.do(describe(capacity))
        seen = rig.live.read(lambda views: views.projections.catalog.descriptions()[0].capacity)
        assert seen == capacity


def test_a_client_that_went_away_before_its_order_began_does_nothing(rig: Rig) -> None:
    rig.log.gate.clear()
    first = rig.submit(describe(0))
    assert rig.log.at_gate.wait(10)
    gone = rig.submit(describe(1))
    cancelled = gone.cancel()
    rig.log.gate.set()
    first.result(10)
    rig.do(describe(2))

    assert cancelled
    assert sum(rig.log.appends) == 2


def test_what_waits_when_it_closes_is_still_done() -> None:
    rig = Rig()
    futures = [rig.submit(describe(n)) for n in range(10)]

    rig.live.close()

    assert all(future.result(0).changed for future in futures)
    with pytest.raises(StoppingError):
        rig.submit(describe(99))


def test_leases_have_a_full_term_after_a_start_and_lapse_then(rig: Rig) -> None:
    rig.do(TakeLease("cloud", "p1", TERM))
    again = LiveController(rig.log.log, settings=LiveSettings(tick_s=0.01))
    again.start()
    try:
        left = again.read(lambda views: views.lease_left_s["cloud"])
    finally:
        again.close()

    assert 25 < left <= 30


def test_a_reader_behind_what_is_kept_is_sent_to_the_log() -> None:
    with Controller.open(":memory:") as controller:
        for capacity in range(10):
            controller.command(describe(capacity))
        events = controller.live.events_after(0, 100)
    feed = Feed(0, kept_max=4)
    feed.add(events)

    assert feed.after(5, 100) is None
    found = feed.after(6, 2)
    assert found is not None
    assert [recorded.position for recorded in found] == [7, 8]
    assert feed.after(10, 5) == []


def test_a_controller_that_starts_on_a_log_reads_all_of_it(tmp_path: Any) -> None:
    with Controller.open(tmp_path / "events.db") as controller:
        controller.command(describe(7))
    with Controller.open(tmp_path / "events.db") as controller:
        subscription = controller.subscribe(0)
        assert [recorded.position for recorded in subscription.next()] == [1]
        assert controller.query(lambda v: v.projections.catalog.descriptions()[0].capacity) == 7
        controller.publish(SessionResult(position=1))
        assert controller.query(lambda v: v.session is not None)
        subscription.close()
        assert list(subscription) == []
