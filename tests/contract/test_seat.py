"""What every seat of a primary promises (``adapters/store/seat.py``), and standbys over real stores in one process."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contract.test_event_log import lease, request_of
from tests.postgresql import Server
from tests.stories import Story
from xce.adapters.store.election import Role
from xce.adapters.store.follower import Follower
from xce.adapters.store.log import StoredLog
from xce.adapters.store.open import MEMORY, open_log
from xce.adapters.store.processes import Process
from xce.adapters.store.seat_file import seat_path
from xce.adapters.store.standby import Standby
from xce.domain.errors import BrokenLogError, PermanentError, StaleEpochError
from xce.domain.events.stored import EVENTS, EventRegistry
from xce.domain.provisioning.request import Request


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "log.db")
    server: Server = request.getfixturevalue("postgresql")
    return server.address()


@pytest.fixture
def logs(place: str) -> Iterator[tuple[StoredLog, StoredLog]]:
    with open_log(place) as one, open_log(place) as two:
        yield one, two


def test_a_seat_has_one_holder(logs: tuple[StoredLog, StoredLog]) -> None:
    with closing(logs[0].recorder.seat()) as one, closing(logs[1].recorder.seat()) as two:
        assert one.sign() is None
        assert [one.claim(), one.claim(), two.claim()] == [True, True, False]
        one.sit(epoch=4, name="a", url="https://a")
        sign = two.sign()
        assert sign is not None
        assert (sign.epoch, sign.beat, sign.name, sign.url) == (4, 0, "a", "https://a")

        assert one.beat()
        assert not two.beat()
        assert two.sign() == replace(sign, beat=1)

        one.leave()
        one.leave()
        assert two.sign() is None
        assert two.claim()
        assert not one.beat()


def test_the_lock_goes_with_its_holder_and_the_sign_stays(
    logs: tuple[StoredLog, StoredLog],
) -> None:
    with closing(logs[0].recorder.seat()) as one, closing(logs[1].recorder.seat()) as two:
        one.claim()
        one.sit(epoch=1, name="a", url="")
        one.close()

        while not two.claim():  # PostgreSQL notices a moment later
            pass
        sign = two.sign()
        assert sign is not None
        assert sign.name == "a"
        two.clear(sign)
        two.sit(epoch=2, name="b", url="")
        assert two.beat()
        assert not one.beat()


def test_nobody_ends_itself(logs: tuple[StoredLog, StoredLog]) -> None:
    with closing(logs[0].recorder.seat()) as one:
        one.claim()
        one.sit(epoch=1, name="a", url="")
        sign = one.sign()
        assert sign is not None
        with pytest.raises(PermanentError, match="this process itself"):
            one.evict(sign)
        assert one.beat()


# --------------------------------------------------------------------- standbys
def test_a_standby_takes_over_where_the_primary_leaves(logs: tuple[StoredLog, StoredLog]) -> None:
    with Standby(logs[0], name="a") as a, Standby(logs[1], name="b") as b:
        assert [a.step(), b.step()] == [Role.PRIMARY, Role.STANDBY]
        assert b.primary is not None
        assert b.primary.name == "a"
        logs[0].append([lease(), request_of("R1")], fences={"primary": a.epoch})
        assert b.step() is Role.STANDBY
        assert b.follower.position == 2
        logs[0].append([request_of("R2")], fences={"primary": a.epoch})

        a.close()

        assert b.step() is Role.PRIMARY
        assert (b.epoch, b.follower.position) == (2, 3)
        assert a.step() is Role.LOST
        with pytest.raises(StaleEpochError, match="primary: epoch 1 was superseded by epoch 2"):
            logs[0].append([request_of("R3")], fences={"primary": a.epoch})
        logs[1].append([request_of("R3")], fences={"primary": b.epoch})


def test_two_standbys_at_one_position_are_equal(logs: tuple[StoredLog, StoredLog]) -> None:
    """F27: one has followed event by event, the other reads it all later; neither asks what time it is."""
    early, late = Follower(logs[0]), Follower(logs[1])
    for step in Story(logs[0]).steps():
        step()
        early.catch_up()
    late.catch_up()

    assert early.head == late.head == logs[0].head()
    assert early.projections.difference(late.projections) is None
    assert early.projections.keep() == late.projections.keep()


def test_a_release_that_does_not_know_an_event_never_serves(
    place: str, logs: tuple[StoredLog, StoredLog]
) -> None:
    """F26: it says so, and whoever can read the log serves."""
    request = request_of("R1")
    request.accept(provider_request_id="add-1", at=request.created_on, by="p", epoch=1)
    logs[0].append([lease(), request])
    older = EventRegistry([c for c in EVENTS.event_classes() if c is not Request.Accepted])
    with open_log(place, registry=older) as log, Standby(log, name="older") as standby:
        for _ in range(2):
            with pytest.raises(BrokenLogError, match="does not know the event"):
                standby.step()
        assert (standby.role, standby.epoch) == (Role.STANDBY, 0)
        with Standby(logs[1], name="newer") as newer:
            assert newer.step() is Role.PRIMARY


def test_a_log_in_memory_has_one_primary() -> None:
    with open_log(MEMORY) as log, Standby(log, name="a") as standby:
        assert [standby.step(), standby.step()] == [Role.PRIMARY, Role.PRIMARY]
        log.append([request_of("R1")], fences={"primary": standby.epoch})


# --------------------------------------------------------------------- one store each
def test_a_primary_whose_seat_file_is_gone_stops(tmp_path: Path) -> None:
    """A lock on a removed file locks nothing: somebody else may sit on the new one."""
    place = tmp_path / "log.db"
    with (
        open_log(place) as log,
        open_log(place) as other,
        Standby(log, name="a") as a,
        Standby(other, name="b") as b,
    ):
        a.step()
        os.unlink(seat_path(str(place)))
        assert b.step() is Role.PRIMARY
        assert a.step() is Role.LOST


def test_a_primary_whose_log_is_gone_stops(tmp_path: Path) -> None:
    place = tmp_path / "log.db"
    with open_log(place) as log, Standby(log, name="a") as a:
        assert a.step() is Role.PRIMARY
        place.rename(tmp_path / "moved.db")

        assert a.step() is Role.LOST


def test_a_session_that_is_lost_is_opened_again_and_the_seat_kept(postgresql: Server) -> None:
    with open_log(postgresql.address()) as log, Standby(log, name="a") as a:
        a.step()
        with closing(postgresql.connect()) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name LIKE 'xce %'"
            )
        assert a.step() is Role.PRIMARY
        assert a.problem is not None
        assert a.step() is Role.PRIMARY
        assert a.problem is None


def test_a_server_that_is_started_again_keeps_its_primary(postgresql: Server) -> None:
    with open_log(postgresql.address()) as log, Standby(log, name="a") as a:
        a.step()
        postgresql.stop()
        a.step()
        problem = a.problem
        assert problem is not None
        postgresql.start()
        assert a.step() is Role.PRIMARY
        log.append([request_of("R1")], fences={"primary": a.epoch})


def test_a_process_is_ended_only_by_its_number_and_its_start() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with child:
        mine = Process.of_self()
        started = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19])
        found = replace(mine, pid=child.pid, started=started)

        replace(found, started=started + 1).end()
        replace(found, boot="another").end()
        with pytest.raises(PermanentError, match="another container"):
            replace(found, namespace="pid:[1]").end()
        assert child.poll() is None

        found.end()
        assert child.wait() == -9
        found.end()
