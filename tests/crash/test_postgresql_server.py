"""PostgreSQL stopped, started, unreachable, and answers that never arrive: nothing acknowledged is lost, nothing is saved twice."""

from collections.abc import Iterator
from contextlib import closing
from threading import Thread
from urllib.parse import quote

import pytest

from tests.contract.test_event_log import names, request_of
from tests.postgresql import PASSWORD, Server
from tests.proxy import Proxy
from tests.stories import Story
from tests.unit.aggregates import FACT
from xce.adapters.store.log import StoredLog
from xce.adapters.store.open import open_log
from xce.adapters.store.postgresql.recorder import PostgresqlLogRecorder
from xce.adapters.store.verify import verify
from xce.domain.errors import ConflictError, InputError, PermanentError, TransientError, XceError
from xce.domain.provisioning.request import Request


@pytest.fixture
def log(postgresql: Server) -> Iterator[StoredLog]:
    with open_log(postgresql.address()) as opened:
        yield opened


# --------------------------------------------------------------------- the server goes and comes
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_server_that_stops_and_starts_again_has_all_that_was_acknowledged(
    log: StoredLog, postgresql: Server, mode: str
) -> None:
    Story(log).tell()
    head = log.head()
    pending = request_of("R9")

    postgresql.stop(mode)
    try:
        for attempt in range(2):
            with pytest.raises(TransientError, match=r"@127\.0\.0\.1:"):
                log.append([pending])
            with pytest.raises(TransientError, match=r"@127\.0\.0\.1:"):
                log.head()
            assert len(pending.pending_events) == 1, attempt
    finally:
        postgresql.start()

    assert log.head() == head
    log.append([pending])
    assert log.head().position == head.position + 1
    assert all(verify(log).check(name).passed for name in ("chain", "head"))


def test_a_session_that_was_ended_by_somebody_is_opened_again(
    log: StoredLog, postgresql: Server
) -> None:
    log.append([request_of("R1")])
    assert log.head().position == 1
    with closing(postgresql.connect()) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name LIKE 'xce %'"
        )

    log.append([request_of("R2")])

    assert [position for position, _ in names(log)] == [1, 2]


# --------------------------------------------------------------------- lost answers
@pytest.fixture
def relayed(postgresql: Server) -> Iterator[tuple[StoredLog, Proxy]]:
    """A log behind a proxy, with an event in it so that the writer's session is open."""
    proxy = Proxy(postgresql.port)
    address = postgresql.address().replace(str(postgresql.port), str(proxy.port))
    with open_log(address) as log:
        log.append([request_of("R1")])
        yield log, proxy
    proxy.close()


def test_an_append_whose_answer_is_lost_is_found_in_the_log(
    relayed: tuple[StoredLog, Proxy],
) -> None:
    log, proxy = relayed
    request = request_of("R2")
    proxy.lose_answer()

    recorded = log.append([request])

    assert proxy.lost.is_set()
    assert [r.position for r in recorded] == [2]
    assert not request.pending_events
    assert names(log) == [(1, "request:R1"), (2, "request:R2")]


def test_while_nobody_can_be_asked_the_outcome_is_unknown_and_the_repeated_call_finds_out(
    relayed: tuple[StoredLog, Proxy],
) -> None:
    log, proxy = relayed
    request = request_of("R2")
    proxy.lose_answer(then_unreachable=True)

    for _ in range(2):
        with pytest.raises(TransientError, match="cannot be reached"):
            log.append([request])
    proxy.unreachable = False
    recorded = log.append([request])

    assert [r.position for r in recorded] == [2]
    assert names(log) == [(1, "request:R1"), (2, "request:R2")]


def test_what_was_saved_unknown_is_a_conflict_for_a_decision_that_differs(
    relayed: tuple[StoredLog, Proxy],
) -> None:
    log, proxy = relayed
    proxy.lose_answer(then_unreachable=True)
    with pytest.raises(TransientError):
        log.append([request_of("R2", 3)])
    proxy.unreachable = False

    with pytest.raises(ConflictError):
        log.append([request_of("R2", 4)])

    assert log.get(Request, "request:R2").amount == 3
    changed = log.get(Request, "request:R2")
    changed.accept(provider_request_id="add-1", **FACT)
    assert [r.position for r in log.append([changed])] == [3]


def test_a_request_that_arrives_after_its_session_was_given_up_does_nothing(
    relayed: tuple[StoredLog, Proxy],
) -> None:
    log, proxy = relayed
    proxy.hold_request()

    recorded = log.append([request_of("R2")])
    proxy.deliver_held()

    assert [r.position for r in recorded] == [2]
    assert names(log) == [(1, "request:R1"), (2, "request:R2")]
    assert verify(log).check("chain").passed


def test_a_fence_moves_although_an_answer_is_lost(relayed: tuple[StoredLog, Proxy]) -> None:
    log, proxy = relayed
    proxy.lose_answer()

    epoch = log.take_primary()

    assert log.fence("primary") == epoch
    log.append([request_of("R2")], fences={"primary": epoch})


# --------------------------------------------------------------------- waiting has an end
def test_an_append_does_not_wait_for_ever_for_another_writer(postgresql: Server) -> None:
    place = postgresql.address("waits")
    with open_log(place, lock_timeout_s=0) as log, closing(postgresql.connect()) as other:
        log.append([request_of("R1")])
        with other.transaction():
            other.execute("SELECT * FROM waits.log_head FOR UPDATE")
            with pytest.raises(TransientError, match="lock timeout"):
                log.append([request_of("R2")])
        log.append([request_of("R2")])
        assert log.head().position == 2


def test_a_disk_that_is_full_is_said_and_passes(postgresql: Server) -> None:
    """No disk is filled for it: the server refuses as it does then."""
    with open_log(postgresql.address("crowded")) as log, closing(postgresql.connect()) as other:
        log.append([request_of("R1")])
        other.execute(
            "CREATE FUNCTION crowded.refuse() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE 'No space left on device' USING ERRCODE = 'disk_full'; END $$;"
            "CREATE TRIGGER full_disk BEFORE INSERT ON crowded.stored_events EXECUTE FUNCTION crowded.refuse()"
        )
        with pytest.raises(TransientError, match="No space left on device"):
            log.append([request_of("R2")])
        other.execute("DROP TRIGGER full_disk ON crowded.stored_events")
        log.append([request_of("R2")])
        assert log.head().position == 2


# --------------------------------------------------------------------- opening
def test_many_who_open_a_new_log_at_once_make_one(postgresql: Server) -> None:
    place = postgresql.address()
    failures: list[XceError] = []

    def write(number: int) -> None:
        try:
            with open_log(place) as log:
                for turn in range(5):
                    log.append([request_of(f"R{number}-{turn}")])
        except XceError as error:
            failures.append(error)

    threads = [Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    with open_log(place, read_only=True) as log:
        assert [position for position, _ in names(log)] == list(range(1, 41))
        report = verify(log)
        assert report.check("chain").passed
        assert report.check("head").passed


def test_a_reader_makes_no_tables(postgresql: Server) -> None:
    with pytest.raises(InputError, match="holds no log") as caught:
        open_log(postgresql.address(), read_only=True)

    assert PASSWORD not in str(caught.value)


def test_a_reader_writes_nothing(postgresql: Server) -> None:
    place = postgresql.address()
    with open_log(place) as log:
        Story(log).tell()
    with open_log(place, read_only=True) as log:
        assert log.head().position == 33
        with pytest.raises(PermanentError, match="open for reading only"):
            log.append([request_of("R9")])
        with pytest.raises(PermanentError, match="open for reading only"):
            log.take_primary()


def with_secret(postgresql: Server, **changes: str) -> str:
    parts = {
        "user": "tester",
        "password": PASSWORD,
        "port": str(postgresql.port),
        "database": "postgres",
    }
    parts |= changes
    return f"postgresql://{parts['user']}:{quote(parts['password'], safe='')}@127.0.0.1:{parts['port']}/{parts['database']}"


def test_a_password_in_the_address_opens_and_is_not_shown(
    postgresql: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGPASSWORD")
    with open_log(with_secret(postgresql) + "?schema=secret") as log:
        Story(log).tell()
        assert (
            log.source == f"postgresql://tester@127.0.0.1:{postgresql.port}/postgres?schema=secret"
        )
        assert verify(log).source == log.source


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"password": "wr0ng-s3cret"}, InputError, "password authentication failed"),
        ({"database": "nowhere"}, InputError, 'database "nowhere" does not exist'),
        ({"user": "nobody"}, InputError, "password authentication failed"),
        ({"port": "1"}, TransientError, "cannot be reached"),
    ],
)
def test_an_address_that_does_not_open_is_named_without_its_password(
    postgresql: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    changes: dict[str, str], kind: type[XceError], message: str,
) -> None:  # fmt: skip
    monkeypatch.delenv("PGPASSWORD")
    place = with_secret(postgresql, **changes)

    with pytest.raises(kind, match=message) as caught:
        open_log(place)

    text = f"{caught.value!r} {caught.value} {caplog.text}"
    assert f"@127.0.0.1:{changes.get('port', postgresql.port)}/" in text
    for secret in (PASSWORD, "wr0ng-s3cret", place):
        assert secret not in text


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE {0}.about SET version = 2", "its schema is 2, this release reads 1"),
        ("DROP TABLE {0}.about", "the tables in its schema '{0}' are of another program"),
        ("DROP TABLE {0}.fences", "no table {0}.fences"),
        ("DELETE FROM {0}.about", "{0}.about has 0 rows"),
        ("ALTER TABLE {0}.about RENAME version TO release", 'column "version" does not exist'),
    ],
)
@pytest.mark.parametrize("read_only", [True, False])
def test_what_is_not_a_log_of_this_release_is_named(
    postgresql: Server, statement: str, message: str, read_only: bool
) -> None:
    place = postgresql.address()
    schema = place.partition("schema=")[2]
    open_log(place).close()
    with closing(postgresql.connect()) as other:
        other.execute(statement.format(schema).encode())

    with pytest.raises(InputError) as caught:
        open_log(place, read_only=read_only)

    assert message.format(schema) in str(caught.value)


def test_durability_is_not_left_to_the_settings_of_the_database(
    postgresql: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The function mode of the library loses events; no setting of the environment switches it on."""
    monkeypatch.setenv("POSTGRES_ENABLE_DB_FUNCTIONS", "y")
    with closing(postgresql.connect()) as other:
        other.execute("CREATE DATABASE hasty")
        other.execute("ALTER DATABASE hasty SET synchronous_commit = off")
    with (
        open_log(postgresql.address(database="hasty")) as log,
        closing(postgresql.connect()) as other,
    ):
        log.append([request_of("R1")])
        recorder = log.recorder
        assert isinstance(recorder, PostgresqlLogRecorder)
        assert recorder.settings() == {
            "synchronous_commit": "on", "lock_timeout": "10s", "statement_timeout": "30s",
            "idle_in_transaction_session_timeout": "10s", "default_transaction_isolation": "read committed",
        }  # fmt: skip
        functions = other.execute(
            "SELECT count(*) FROM pg_proc JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname LIKE 'log%'"
        ).fetchall()
        assert functions == [(0,)]
