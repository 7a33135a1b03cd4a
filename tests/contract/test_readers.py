"""F28 on PostgreSQL: a reader never passes a position that may still be filled, never waits for ever, and a planner sees its own last decision."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from threading import Thread

import psycopg
import pytest

from tests.contract.test_event_log import lease, names, request_of
from tests.postgresql import Server
from tests.stories import AWS
from tests.unit.aggregates import STAMP
from xce.adapters.store.follower import Follower
from xce.adapters.store.log import StoredLog
from xce.adapters.store.open import open_log
from xce.adapters.store.recorder import NewRow, chain
from xce.adapters.store.verify import verify
from xce.domain.errors import BrokenLogError, TransientError
from xce.domain.events.stored import EVENTS, EventRegistry
from xce.domain.provisioning.provider import Provider
from xce.domain.provisioning.request import Request

Session = psycopg.Connection[tuple[object, ...]]
SCHEMA = "gaps"


class SlowWriter:
    """W1: has taken position 9 and does not say whether it will commit. Speaks SQL, as a process that was stopped at this point has."""

    def __init__(self, log: StoredLog, session: Session) -> None:
        self._session = session
        head = log.head()
        (row,) = chain(head, rows_of(request_of("W1")))
        session.execute(b"BEGIN")
        session.execute(
            f"UPDATE {SCHEMA}.log_head SET position = %s, digest = %s".encode(),
            (row.position, row.digest),
        )
        session.execute(
            f"INSERT INTO {SCHEMA}.stored_events VALUES (%s, %s, %s, %s, %s, %s)".encode(), row
        )

    def commit(self) -> None:
        self._session.execute(b"COMMIT")

    def die(self, killer: Session) -> None:
        killer.execute("SELECT pg_terminate_backend(%s, 5000)", (self._session.info.backend_pid,))


def rows_of(request: Request) -> list[NewRow]:
    return [
        NewRow(event.originator_id, event.originator_version, *EVENTS.encode(event))
        for event in request.new_events()
    ]


class LateWriter(Thread):
    """W2: appends three events while W1 is at work."""

    def __init__(self, log: StoredLog) -> None:
        super().__init__()
        self._log = log

    def run(self) -> None:
        self._log.append([request_of(f"W2-{number}") for number in range(3)])


def wait_until_somebody_waits(session: Session) -> None:
    while session.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone() == (0,):
        pass


@pytest.fixture
def log(postgresql: Server) -> Iterator[StoredLog]:
    """A log of eight events."""
    with closing(postgresql.connect()) as session:
        session.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE".encode())
    with open_log(postgresql.address(SCHEMA)) as opened:
        opened.append([Provider.describe_first(description=AWS, **STAMP), lease()])
        opened.append([request_of(f"R{number}") for number in range(6)])
        yield opened


@pytest.fixture
def sessions(postgresql: Server) -> Iterator[Sequence[Session]]:
    with closing(postgresql.connect()) as one, closing(postgresql.connect()) as two:
        yield one, two


def test_a_reader_does_not_pass_a_position_that_may_still_be_filled(
    log: StoredLog, sessions: Sequence[Session]
) -> None:
    follower = Follower(log)
    follower.catch_up()
    slow, late = SlowWriter(log, sessions[0]), LateWriter(log)
    late.start()
    wait_until_somebody_waits(sessions[1])

    follower.catch_up()
    assert follower.position == 8
    slow.commit()
    late.join()
    follower.catch_up()

    assert follower.position == 12
    assert [name for _, name in names(log, 8)] == [
        "request:W1", "request:W2-0", "request:W2-1", "request:W2-2",
    ]  # fmt: skip
    assert verify(log).check("chain").passed


def test_a_writer_that_dies_leaves_no_gap(log: StoredLog, sessions: Sequence[Session]) -> None:
    """Variation b: nobody has to be waited for, since a position is only given away with its commit."""
    follower = Follower(log)
    slow, late = SlowWriter(log, sessions[0]), LateWriter(log)
    late.start()
    wait_until_somebody_waits(sessions[1])

    slow.die(sessions[1])
    late.join()
    follower.catch_up()

    assert [position for position, _ in names(log)] == list(range(1, 12))
    assert follower.position == 11
    assert verify(log).check("chain").passed


def test_a_writer_that_is_frozen_is_ended_by_the_server(
    log: StoredLog, sessions: Sequence[Session]
) -> None:
    """Variation b: the limit is that of our sessions, shorter."""
    sessions[0].execute("SET idle_in_transaction_session_timeout = 100")
    SlowWriter(log, sessions[0])

    log.append([request_of("W2")])

    assert names(log, 8) == [(9, "request:W2")]


def test_a_plan_is_not_made_without_its_own_last_decision(log: StoredLog) -> None:
    """Variation c: event 12 is "asked 3 hosts"."""
    follower = Follower(log)
    follower.catch_up()
    log.append([request_of(f"X{number}") for number in range(3)])
    (asked,) = log.append([request_of("R12", 3)])
    assert asked.position == 12
    assert follower.projections.inventory.request("R12") is None

    seen = follower.at_least(12)

    assert seen.inventory.request("R12") is not None
    with pytest.raises(TransientError, match="position 13 cannot be read yet"):
        follower.at_least(13)


def test_what_an_append_returned_is_folded_behind_what_others_wrote(log: StoredLog) -> None:
    follower, other = Follower(log), Follower(log)
    follower.catch_up()
    log.append([request_of("by another")])

    mine = log.append([request_of("mine")])
    follower.appended(mine)
    follower.appended(mine)
    other.catch_up()

    assert follower.head == other.head == log.head()
    assert follower.projections.difference(other.projections) is None


def test_a_follower_stops_at_an_event_that_it_does_not_know(
    log: StoredLog, postgresql: Server
) -> None:
    """F26: what is before it is folded; it is not skipped."""
    request = log.get(Request, "request:R0")
    request.accept(provider_request_id="add-1", at=STAMP["at"], by=STAMP["by"], epoch=1)
    log.append([request, request_of("R9")])
    older = EventRegistry([c for c in EVENTS.event_classes() if c is not Request.Accepted])
    with open_log(postgresql.address(SCHEMA), registry=older, read_only=True) as opened:
        follower = Follower(opened)
        for _ in range(2):
            with pytest.raises(BrokenLogError, match=r"event 9 .*does not know the event"):
                follower.catch_up()
            assert follower.position == 8
            assert len(follower.projections.inventory.view().requests) == 6
