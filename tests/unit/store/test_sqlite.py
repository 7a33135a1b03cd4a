"""The log on one SQLite file that others write too, on a disk that is full, under a lock."""

import sqlite3
import subprocess
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import cast

import pytest

from tests.conftest import ROOT
from tests.contract.test_event_log import lease, request_of
from tests.stories import Story
from tests.unit.aggregates import FACT, STAMP
from xce.adapters.store.backup import backup
from xce.adapters.store.election import Role
from xce.adapters.store.log import StoredLog
from xce.adapters.store.open import open_log
from xce.adapters.store.standby import Standby
from xce.adapters.store.verify import verify
from xce.domain.errors import (
    BrokenLogError,
    ConflictError,
    InputError,
    PermanentError,
    StaleEpochError,
    TransientError,
)
from xce.domain.provisioning.lease import ProviderLease
from xce.domain.provisioning.request import Request
from xce.domain.sharing.elastic_resource import ElasticResource


def writer_of(log: StoredLog) -> sqlite3.Connection:
    """The connection that appends; made by the first append."""
    return cast("sqlite3.Connection", vars(log.recorder)["_writer"])


def assert_intact(log: StoredLog) -> None:
    """The log is what was written. (That these requests have no provider is another matter.)"""
    report = verify(log)
    for name in ("storage", "chain", "head", "fences", "readable", "invariant-8"):
        assert report.check(name).passed, report.check(name).findings


@contextmanager
def locked(path: Path) -> Generator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


# ------------------------------------------------------------------ two logs, one file
def test_two_processes_write_in_turns(tmp_path: Path) -> None:
    with open_log(tmp_path / "log.db") as one, open_log(tmp_path / "log.db") as two:
        for number in range(4):
            log = (one, two)[number % 2]
            (recorded,) = log.append([request_of(f"R{number}")])
            assert recorded.position == number + 1
        assert one.head() == two.head()
        assert_intact(one)


def test_of_two_processes_one_is_right(tmp_path: Path) -> None:
    with open_log(tmp_path / "log.db") as one, open_log(tmp_path / "log.db") as two:
        one.append([lease("A")])
        mine, theirs = one.get(ProviderLease, "lease:aws"), two.get(ProviderLease, "lease:aws")
        theirs.take_over(holder="B", epoch=2, term=timedelta(seconds=30), **STAMP)
        two.append([theirs])

        mine.take_over(holder="C", epoch=2, term=timedelta(seconds=30), **STAMP)
        with pytest.raises(ConflictError):
            one.append([mine])
        with pytest.raises(StaleEpochError):
            one.append([request_of("R1")], fences={"lease:aws": 1})

        assert one.fence("lease:aws") == 2
        assert [r.position for r in one.read()] == [1, 2]


def test_many_threads_lose_nothing_and_leave_no_gap(tmp_path: Path) -> None:
    """F28: a reader that follows the log sees every position once, in order, whoever was slow."""
    writers, each = 4, 25
    done = Event()
    seen: list[int] = []

    with open_log(tmp_path / "log.db") as log, open_log(tmp_path / "log.db") as reader:

        def write(writer: int) -> None:
            for number in range(each):
                log.append([request_of(f"R{writer}-{number}")])

        def follow() -> None:
            finished = False
            while not finished:
                finished = done.is_set()
                seen.extend(r.position for r in reader.read(after=seen[-1] if seen else 0))

        with ThreadPoolExecutor(writers + 1) as pool:
            following = pool.submit(follow)
            for future in [pool.submit(write, writer) for writer in range(writers)]:
                future.result()
            done.set()
            following.result()

        assert seen == list(range(1, writers * each + 1))
        assert_intact(reader)


def test_a_plan_sees_its_own_last_decision(tmp_path: Path) -> None:
    """F28, variation c: what an append returned is at once in every read, also of another process."""
    with open_log(tmp_path / "log.db") as log, open_log(tmp_path / "log.db") as other:
        (recorded,) = log.append([request_of("R1", 3)])

        assert list(other.read(after=recorded.position - 1)) == [recorded]
        assert other.head().position == recorded.position


# ------------------------------------------------------------------ failures
@pytest.mark.parametrize("by", ["nobody", "a copy of before"])
def test_nothing_is_written_into_a_file_that_is_gone(tmp_path: Path, by: str) -> None:
    """What is acknowledged would be lost with the last process that has it open."""
    path, copy = tmp_path / "log.db", tmp_path / "copy.db"
    with open_log(path) as log:
        log.append([request_of("R1")])
        backup(str(path), str(copy), check=False)
        path.unlink()
        if by != "nobody":
            copy.rename(path)

        for name in ("R2", "R3"):
            with pytest.raises(PermanentError, match="was removed, or another one is in its place"):
                log.append([request_of(name)])


def test_a_log_that_was_there_is_not_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with open_log(path) as log, Standby(log, name="a") as a:
        assert a.step() is Role.PRIMARY
    path.unlink()

    with pytest.raises(InputError, match=r"is gone.*its companion log\.db\.primary is still there"):
        open_log(path)

    assert not path.exists()
    Path(f"{path}.primary").unlink()
    open_log(path).close()


def test_a_locked_log_is_tried_again_later(tmp_path: Path) -> None:
    with open_log(tmp_path / "log.db", lock_timeout_s=0) as log:
        log.append([request_of("R1")])
        request = request_of("R2")
        with locked(tmp_path / "log.db"):
            with pytest.raises(TransientError, match="locked"):
                log.append([request])
            with pytest.raises(TransientError, match="locked"):
                log.take_primary()
            assert [r.position for r in log.read()] == [1]

        log.append([request])

        assert log.head().position == 2
        assert_intact(log)


def test_a_full_disk_refuses_the_save_and_harms_nothing(tmp_path: Path) -> None:
    with open_log(tmp_path / "log.db") as log:
        log.append([request_of("R1")])
        writer = writer_of(log)
        (pages,) = writer.execute("PRAGMA page_count").fetchone()
        writer.execute(f"PRAGMA max_page_count = {pages}")
        many = [request_of(f"S{number}") for number in range(200)]
        before = log.head()

        with pytest.raises(TransientError, match="full"):
            log.append(many, fences={"primary": 0})

        assert log.head() == before
        assert_intact(log)
        writer.execute("PRAGMA max_page_count = 1000000")
        log.append(many, fences={"primary": 0})
        assert log.head().position == 201
        assert_intact(log)


FILL = """
import resource, signal, sys
from tests.contract.test_event_log import request_of
from xce.adapters.store.open import open_log
from xce.domain.errors import TransientError

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open_log(sys.argv[1]) as log:
    log.append([request_of("R0")])
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
    number = 1
    while True:
        request = request_of(f"R{number}")
        try:
            log.append([request])
        except TransientError as error:
            print("refused", error)
            break
        number += 1
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    log.append([request])
    print("saved", number + 1)
"""


def test_a_file_that_must_not_grow_is_a_full_disk(tmp_path: Path) -> None:
    """The kernel refuses to let the WAL grow; once there is room the same save works."""
    done = subprocess.run(
        [sys.executable, "-c", FILL, str(tmp_path / "log.db")],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    refused, saved = done.stdout.splitlines()

    assert refused.startswith("refused")
    with open_log(tmp_path / "log.db", read_only=True) as log:
        assert log.head().position == int(saved.split()[1])
        assert_intact(log)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("DELETE FROM log_head", "the row with the head is missing"),
        ("UPDATE log_head SET position = 3", "there are events behind the head, position 3"),
    ],
)
def test_a_log_whose_head_was_changed_takes_no_more_events(
    tmp_path: Path, damage: str, message: str
) -> None:
    with open_log(tmp_path / "log.db") as log:
        Story(log).tell()
    with closing(sqlite3.connect(tmp_path / "log.db", isolation_level=None)) as other:
        other.execute(damage)

    with open_log(tmp_path / "log.db") as log:
        with pytest.raises(BrokenLogError, match=message):
            log.append([request_of("R9")])
        assert len(list(log.read())) == 33


def test_a_refused_save_leaves_no_transaction_open(tmp_path: Path) -> None:
    with open_log(tmp_path / "log.db") as log:
        log.append([request_of("R1")])
        with pytest.raises(ConflictError):
            log.append([request_of("R1")])
        with pytest.raises(StaleEpochError):
            log.append([request_of("R2")], fences={"primary": 1})

        assert not writer_of(log).in_transaction
        with open_log(tmp_path / "log.db", lock_timeout_s=0) as other:
            other.append([request_of("R3")])
        log.append([request_of("R4")])
        assert_intact(log)


def test_a_killed_save_rolls_back(tmp_path: Path) -> None:
    """Whatever ends a save, also what no handler should eat, leaves the log as it was."""

    class Killed(BaseException):
        """Dies in the middle of the transaction."""

    with open_log(tmp_path / "log.db") as log:
        log.append([request_of("R1")])

        def die(*_: object) -> bool:
            raise Killed

        vars(log.recorder)["_insert"] = die
        with pytest.raises(Killed):
            log.append([request_of("R2")])
        del vars(log.recorder)["_insert"]

        log.append([request_of("R3")])
        assert [r.event.originator_id for r in log.read()] == ["request:R1", "request:R3"]
        assert_intact(log)


def test_snapshots_and_other_parts_of_the_library_find_their_tables(tmp_path: Path) -> None:
    """The application is a whole one: what the library saves and reads goes through the same rows."""
    with open_log(tmp_path / "log.db") as log:
        application = log._application  # pyright: ignore[reportPrivateUsage]
        resource = ElasticResource.declare(
            resource="lic", owned=1, provider=None, max_borrow=0, step=1, **STAMP
        )
        request = request_of("R1")
        request.accept(provider_request_id="add-1", **FACT)

        recordings = application.save(resource, request)

        assert [r.notification.id for r in recordings] == [1, 2, 3]
        assert [n.id for n in application.recorder.select_notifications(2, 10)] == [2, 3]
        assert application.recorder.max_notification_id() == 3
        assert [n.id for n in application.notification_log.select(1, 2)] == [1, 2]
        assert log.get(Request, "request:R1").provider_request_id == "add-1"
        assert_intact(log)
        snapshots = application.factory.aggregate_recorder("snapshots")
        assert snapshots.select_events("request:R1") == []


def test_a_commit_that_fails_is_forgotten(tmp_path: Path) -> None:
    """A deferred constraint makes the commit itself fail; the writer does not go on from the head it never reached."""
    with open_log(tmp_path / "log.db") as log:
        log.append([request_of("R1")])
        writer = writer_of(log)
        writer.execute("PRAGMA foreign_keys = ON")
        writer.execute("CREATE TABLE parent (id INTEGER PRIMARY KEY)")
        writer.execute(
            "CREATE TABLE child (id REFERENCES parent(id) DEFERRABLE INITIALLY DEFERRED)"
        )
        writer.execute(
            "CREATE TRIGGER t AFTER INSERT ON stored_events WHEN NEW.originator_id = 'request:R2'"
            " BEGIN INSERT INTO child VALUES (NEW.position); END"
        )

        with pytest.raises(BrokenLogError, match="FOREIGN KEY"):
            log.append([request_of("R2")])

        assert not writer.in_transaction
        log.append([request_of("R3")])
        assert [r.event.originator_id for r in log.read()] == ["request:R1", "request:R3"]
        assert_intact(log)
