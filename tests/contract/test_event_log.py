"""What every backend of the log promises (``EventLog`` in ``domain/ports.py``). A backend is one more line in ``PLACES``."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.stories import Story
from tests.unit.aggregates import AT, FACT, HOUR, STAMP, Fact
from xce.adapters.store.log import StoredLog
from xce.adapters.store.open import MEMORY, open_log
from xce.adapters.store.recorder import NO_FENCING, PAGE_ROWS, NewRow
from xce.adapters.store.verify import verify
from xce.domain.errors import BrokenLogError, ConflictError, NotFoundError, StaleEpochError
from xce.domain.events import ids
from xce.domain.events.base import Aggregate, applies, fold
from xce.domain.events.digest import GENESIS
from xce.domain.events.recorded import Head
from xce.domain.events.stored import EVENTS, EventRegistry
from xce.domain.events.transitions import starts
from xce.domain.formats.base import Money, Time
from xce.domain.formats.provider import Billing, Kind
from xce.domain.provisioning.instance import Instance, InstanceState
from xce.domain.provisioning.lease import ProviderLease
from xce.domain.provisioning.request import Request, RequestState
from xce.domain.sharing.elastic_resource import ElasticResource

TERM = timedelta(seconds=30)

#: Where a new log can be, by backend.
PLACES: dict[str, Callable[[pytest.FixtureRequest, Path], str]] = {
    "memory": lambda _, folder: MEMORY,
    "sqlite": lambda _, folder: str(folder / "log.db"),
    "postgresql": lambda request, _: request.getfixturevalue("postgresql").address(),
}


def place_of(backend: str, request: pytest.FixtureRequest) -> str:
    return PLACES[backend](request, request.getfixturevalue("tmp_path"))


@pytest.fixture(params=PLACES)
def log(request: pytest.FixtureRequest) -> Iterator[StoredLog]:
    with open_log(place_of(request.param, request)) as opened:
        yield opened


@pytest.fixture(params=[backend for backend in PLACES if backend != "memory"])
def place(request: pytest.FixtureRequest) -> str:
    """Where a log is kept, for tests that open it more than once."""
    return place_of(request.param, request)


def request_of(name: str, amount: int = 1, fact: Fact = FACT) -> Request:
    return Request.intend(
        request=name, provider="aws", kind=Kind.HOST, item="c4", amount=amount, price_per_hour=None,
        deadline=AT + HOUR, reason="", jobs=[], demand_position=0, hold=timedelta(0), **fact,
    )  # fmt: skip


def lease(holder: str = "A") -> ProviderLease:
    return ProviderLease.grant(provider="aws", holder=holder, term=TERM, **STAMP)


def names(log: StoredLog, after: int = 0, upto: int | None = None) -> list[tuple[int, str]]:
    return [(r.position, r.event.originator_id) for r in log.read(after, upto)]


# ------------------------------------------------------------------ saving, loading
def test_a_new_log_is_empty(log: StoredLog) -> None:
    assert log.head() == Head(0, GENESIS)
    assert list(log.read()) == []


def test_what_is_saved_is_read_back_in_order_and_loaded(log: StoredLog) -> None:
    one, two = request_of("R1"), request_of("R2")
    one.accept(provider_request_id="add-1", **FACT)

    recorded = log.append([one, two])

    assert [r.position for r in recorded] == [1, 2, 3]
    assert list(log.read()) == list(recorded)
    assert log.head() == Head(3, recorded[-1].digest)
    assert log.get(Request, "request:R1") == one
    assert log.get(Request, "request:R2") == two


def test_each_load_gives_another_object(log: StoredLog) -> None:
    log.append([request_of("R1")])

    assert log.get(Request, "request:R1") is not log.get(Request, "request:R1")


def test_saving_nothing_changes_nothing(log: StoredLog) -> None:
    request = request_of("R1")
    log.append([request])

    assert log.append([request]) == ()
    assert log.append([]) == ()
    assert log.head().position == 1


def test_what_was_never_saved_is_not_found(log: StoredLog) -> None:
    with pytest.raises(NotFoundError, match="request:R9"):
        log.get(Request, "request:R9")


def test_a_part_of_the_log_is_read(log: StoredLog) -> None:
    log.append([request_of(f"R{number}") for number in range(1, 6)])

    assert [p for p, _ in names(log, after=2)] == [3, 4, 5]
    assert [p for p, _ in names(log, after=1, upto=3)] == [2, 3]
    assert names(log, after=5) == []
    assert names(log, after=3, upto=2) == []


def test_more_than_a_page_is_read_whole(log: StoredLog) -> None:
    count = PAGE_ROWS + 3
    log.append([request_of(f"R{number}") for number in range(count)])

    assert [p for p, _ in names(log)] == list(range(1, count + 1))


def test_a_reader_sees_what_is_written_while_it_reads(log: StoredLog) -> None:
    log.append([request_of("R1")])
    reading = log.read()
    first = next(reading)

    log.append([request_of("R2")])

    assert [first.position, *(r.position for r in reading)] == [1, 2]


def test_closing_twice_is_not_an_error(log: StoredLog) -> None:
    log.close()
    log.close()


# ------------------------------------------------------------------ all or nothing
def test_of_two_writers_one_must_load_again(log: StoredLog) -> None:
    log.append([request_of("R1")])
    mine, theirs = (log.get(Request, "request:R1") for _ in range(2))
    theirs.accept(provider_request_id="add-1", **FACT)
    mine.lose_track(why="timeout", **FACT)
    log.append([theirs])
    before = log.head()

    with pytest.raises(ConflictError, match="request:R1"):
        log.append([request_of("R2"), mine])

    assert log.head() == before
    with pytest.raises(NotFoundError):
        log.get(Request, "request:R2")
    again = log.get(Request, "request:R1")
    again.lose_track(why="timeout", **FACT)
    log.append([again])
    assert [p for p, _ in names(log)] == [1, 2, 3]


def test_a_request_is_created_once(log: StoredLog) -> None:
    log.append([request_of("R1")])

    with pytest.raises(ConflictError):
        log.append([request_of("R1", amount=9)])

    assert log.get(Request, "request:R1").amount == 1


def test_a_failed_save_keeps_what_is_pending_and_a_good_one_does_not(log: StoredLog) -> None:
    request = request_of("R1")

    with pytest.raises(StaleEpochError):
        log.append([request], fences={"primary": 1})
    assert len(request.pending_events) == 1

    log.append([request], fences={"primary": 0})
    assert not request.pending_events


# ------------------------------------------------------------------ fences
def test_each_primary_has_an_epoch_of_its_own(log: StoredLog) -> None:
    assert log.fence("primary") == 0
    assert [log.take_primary(), log.take_primary()] == [1, 2]
    assert log.fence("primary") == 2


def test_an_old_primary_writes_nothing(log: StoredLog) -> None:
    old = log.take_primary()
    new = log.take_primary()

    with pytest.raises(StaleEpochError, match="primary: epoch 1 was superseded by epoch 2"):
        log.append([request_of("R1")], fences={"primary": old})
    assert log.head().position == 0

    log.append([request_of("R1")], fences={"primary": new})
    assert log.head().position == 1


def test_a_lease_moves_its_fence_in_the_save_that_grants_it(log: StoredLog) -> None:
    held = lease()
    assert log.fence("lease:aws") == 0

    log.append([held])
    seen = [log.fence("lease:aws")]
    held.take_over(holder="B", epoch=2, term=TERM, **STAMP)
    log.append([held])
    seen.append(log.fence("lease:aws"))

    assert seen == [1, 2]


@pytest.mark.parametrize("end", ["release", "lapse"])
def test_under_a_lease_that_nobody_holds_nothing_is_written(log: StoredLog, end: str) -> None:
    held = lease()
    log.append([held])
    getattr(held, end)(epoch=1, **STAMP)
    log.append([held])

    with pytest.raises(StaleEpochError):
        log.append([request_of("R1")], fences={"lease:aws": 1})

    held.regrant(holder="A", epoch=2, term=TERM, **STAMP)
    log.append([held])
    log.append([request_of("R1", fact={**FACT, "epoch": 2})], fences={"lease:aws": 2})
    assert log.head().position == 4


def test_a_refused_save_moves_no_fence(log: StoredLog) -> None:
    log.append([lease()])
    held = log.get(ProviderLease, "lease:aws")
    held.take_over(holder="B", epoch=2, term=TERM, **STAMP)

    with pytest.raises(StaleEpochError):
        log.append([held], fences={"primary": 7})

    assert log.fence("lease:aws") == 1


def test_fences_are_compared_before_the_save_moves_them(log: StoredLog) -> None:
    held = lease()
    log.append([held])
    held.take_over(holder="B", epoch=2, term=TERM, **STAMP)

    log.append([request_of("R1"), held], fences={"lease:aws": 1})

    assert log.fence("lease:aws") == 2


def test_a_leader_that_does_not_know_it_lost_cannot_ask(log: StoredLog) -> None:
    """F23, at the store: A holds epoch 4, B takes epoch 5 and asks 3 hosts, then A tries to ask 3 hosts."""
    held = lease("A")
    log.append([held])
    for epoch in (2, 3, 4):
        held.take_over(holder="A", epoch=epoch, term=TERM, **STAMP)
    log.append([held])
    by_a = log.get(ProviderLease, "lease:aws")
    by_b = log.get(ProviderLease, "lease:aws")
    by_b.take_over(holder="B", epoch=5, term=TERM, **STAMP)
    log.append([by_b])
    log.append([request_of("RB", 3, {**FACT, "epoch": 5})], fences={"lease:aws": 5})

    with pytest.raises(StaleEpochError, match="lease:aws: epoch 4 was superseded by epoch 5"):
        log.append([request_of("RA", 3, {**FACT, "epoch": 4})], fences={"lease:aws": 4})
    by_a.take_over(holder="A", epoch=5, term=TERM, **STAMP)
    with pytest.raises(ConflictError):
        log.append([by_a])

    asked = [r.event for r in log.read() if isinstance(r.event, Request.Intended)]
    assert [(event.originator_id, event.amount) for event in asked] == [("request:RB", 3)]


# ------------------------------------------------------------------ field cases
def test_a_repeated_answer_is_not_in_the_log(log: StoredLog) -> None:
    """F08: 7 of 10 come; the same answer read again, by a process that loaded anew, saves nothing."""

    def read_answer() -> Request:
        request = log.get(Request, "request:R1")
        for number in range(1, 8):
            request.grant_instance(instance_id=f"I{number}", machine=f"m{number}", **FACT)
        request.fall_short(failed=3, why="capacity", **FACT)
        request.close(outcome=request.outcome, why="", **FACT)
        return request

    log.append([request_of("R1", 10)])
    log.append([read_answer()])
    before = log.head()

    log.append([read_answer()])

    assert log.head() == before
    request = log.get(Request, "request:R1")
    assert request.state is RequestState.PARTIAL
    assert (request.granted, request.failed, request.open_amount) == (7, 3, 0)


def test_a_surplus_machine_is_in_the_log(log: StoredLog) -> None:
    """F08, variation b: asked 10, got 11."""
    log.append([request_of("R1", 10)])
    request = log.get(Request, "request:R1")
    for number in range(1, 12):
        request.grant_instance(instance_id=f"I{number}", machine=f"m{number}", **FACT)

    log.append([request])

    assert log.get(Request, "request:R1").granted == 11


def test_an_unknown_event_stops_with_its_position(place: str) -> None:
    """F26: it is not skipped; and what stands before it has been read."""
    without = EventRegistry(
        [c for c in EVENTS.event_classes() if c is not Request.Accepted],
    )
    with open_log(place) as writer:
        request = request_of("R1")
        request.accept(provider_request_id="add-1", **FACT)
        writer.append([lease(), request])
    with open_log(place, registry=without) as older:
        reading = older.read()
        seen = [next(reading).position, next(reading).position]

        with pytest.raises(
            BrokenLogError, match=r"event 3 .*request:R1.*'xce.request.accepted'"
        ) as caught:
            next(reading)
        with pytest.raises(BrokenLogError, match="does not know the event"):
            older.get(Request, "request:R1")

    assert (seen, caught.value.position) == ([1, 2], 3)


class HostLaunched(Instance.Event):
    """``Instance.Granted`` as a later release has it: another name in another place, and a field more."""

    TOPIC: ClassVar[str] = "xce.instance.host-launched"
    VERSION: ClassVar[int] = 2
    FORMER_TOPICS: ClassVar[tuple[str, ...]] = ("xce.instance.granted",)
    UPCASTS: ClassVar[Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]] = {
        1: lambda document: {**document, "region": "unknown"}
    }
    request_id: str
    provider: str
    template: str
    machine: str
    name: str | None
    price_per_hour: Money | None
    billing: Billing
    hold_until: Time | None
    project: str | None = None
    region: str
    zone: str = "none"


@applies(HostLaunched)
def launched(instance: Instance, event: HostLaunched) -> None:
    assert (event.region, event.zone) == ("unknown", "none")
    old = event.model_dump(exclude={"region", "zone"})
    vars(Instance)["_granted"](instance, Instance.Granted.model_validate(old))


def test_a_log_of_a_thousand_events_reads_under_a_later_release(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F26: the class of "host launched" moved and was renamed, and has a field "zone" with a default."""
    with open_log(MEMORY) as told, open_log(place) as written:
        for number in range(31):
            Story(told, f"-{number}").tell()
        written.recorder.append([NewRow(*row[1:5]) for row in told.recorder.rows()], NO_FENCING)
        assert written.head() == told.head()
        before = states_of(written)

    monkeypatch.setattr(HostLaunched, "AGGREGATE", Instance, raising=False)
    monkeypatch.setattr(
        Instance,
        "TRANSITIONS",
        {**Instance.TRANSITIONS, "HostLaunched": starts(InstanceState.STARTING)},
    )
    classes = [HostLaunched if c is Instance.Granted else c for c in EVENTS.event_classes()]
    with open_log(place, registry=EventRegistry(classes)) as later:
        assert later.head().position == 31 * 33 >= 1000
        assert states_of(later) == before
        assert verify(later).check("invariant-8").passed


def states_of(log: StoredLog) -> dict[str, Aggregate[Any]]:
    states: dict[str, Aggregate[Any]] = {}
    for recorded in log.read():
        event = recorded.event
        after = event.mutate(states.get(event.originator_id))
        assert after is not None
        states[event.originator_id] = after
    return states


def test_a_replay_gives_the_same_state_whenever_it_is_done(log: StoredLog) -> None:
    """F27: nothing in a replay knows what time it is; two standbys at one position are equal."""
    Story(log).tell()
    standbys = [states_of(log) for _ in range(2)]

    assert standbys[0] == standbys[1]
    joined = standbys[0]["instance:I2"]
    assert isinstance(joined, Instance)
    assert joined.state is InstanceState.JOINED
    assert joined.joined_at == joined.modified_on
    for aggregate_id, state in standbys[0].items():
        assert log.get(type(state), aggregate_id) == state


# ------------------------------------------------------------------ equal logs
def test_the_same_run_gives_the_same_head_on_every_backend(request: pytest.FixtureRequest) -> None:
    heads: dict[str, Head] = {}
    for backend in PLACES:
        with open_log(place_of(backend, request)) as log:
            Story(log).tell()
            heads[backend] = log.head()

    assert len(set(heads.values())) == 1, heads
    assert heads["memory"].position == 33


def test_a_run_that_differs_in_one_value_gives_another_head() -> None:
    heads: set[bytes] = set()
    for owned in (14, 15):
        log = open_log(MEMORY)
        log.append(
            [
                ElasticResource.declare(
                    resource="lic", owned=owned, provider=None, max_borrow=0, step=1, **STAMP
                )
            ]
        )
        heads.add(log.head().digest)

    assert len(heads) == 2


def test_the_story_keeps_all_promises(log: StoredLog) -> None:
    Story(log).tell()

    report = verify(log)

    assert report.passed, [str(f) for check in report.checks for f in check.findings]


def test_folding_the_stream_of_one_aggregate_is_loading_it(log: StoredLog) -> None:
    Story(log).tell()
    aggregate_id = ids.shared_id("lic")

    stream = [r.event for r in log.read() if r.event.originator_id == aggregate_id]

    assert fold(None, stream) == log.get(ElasticResource, aggregate_id)
