"""A controller in another program beside daemons on one log: one of them serves, the others are refused or stand by."""

import time
from pathlib import Path

import pytest

from tests.service.running import running
from xce import Controller
from xce.adapters.controller.errors import ServedError
from xce.adapters.store.seat_file import FileSeat
from xce.domain.engine.commands import DescribeProvider
from xce.domain.formats.provider import ProviderDescription

WITHIN_S = 60.0


def describe(name: str) -> DescribeProvider:
    return DescribeProvider(ProviderDescription(name=name))


def test_beside_a_daemon_it_is_refused_and_the_daemon_goes_on(tmp_path: Path) -> None:
    with running(tmp_path, name="daemon", url="http://here:8470") as service:
        with pytest.raises(ServedError, match="the controller daemon at http://here:8470 serves"):
            Controller.open(tmp_path / "events.db")

        assert service.admin.put("/v1/providers/aws", json={"name": "aws"}).is_success
        assert service.service.live.epoch == 1


def test_beside_another_one_it_is_refused_until_that_one_is_closed(tmp_path: Path) -> None:
    with Controller.open(tmp_path / "events.db") as first:
        with pytest.raises(ServedError, match="embedded serves this log"):
            Controller.open(tmp_path / "events.db")
        assert first.command(describe("a")).changed
    with Controller.open(tmp_path / "events.db") as second:
        assert second.command(describe("b")).changed


def test_a_daemon_beside_it_stands_by_and_takes_over_when_it_is_closed(tmp_path: Path) -> None:
    embedded = Controller.open(tmp_path / "events.db")
    embedded.command(describe("before"))
    with running(tmp_path, detection="3s") as service:
        answer = service.admin.get("/readyz")
        assert answer.status_code == 503
        assert "embedded" in answer.json()["detail"]
        assert embedded.command(describe("meanwhile")).changed
        embedded.close()
        deadline = time.monotonic() + WITHIN_S
        while service.admin.get("/readyz").status_code != 200:
            assert time.monotonic() < deadline, "nobody took over"
            time.sleep(0.05)
        names = [one["name"] for one in service.admin.get("/v1/providers").json()["items"]]

    assert names == ["before", "meanwhile"]


def test_after_one_that_was_killed_the_next_one_serves(tmp_path: Path) -> None:
    with Controller.open(tmp_path / "events.db") as first:
        first.command(describe("a"))
    killed = FileSeat(str(tmp_path / "events.db"))
    assert killed.claim()
    killed.sit(epoch=1, name="killed", url="")
    killed.close()  # as a kill does: its lock is gone, its sign stands

    with Controller.open(tmp_path / "events.db") as second:
        assert second.live.epoch == 2
        assert second.command(describe("b")).changed


def test_whose_seat_is_taken_away_it_takes_nothing_any_more(tmp_path: Path) -> None:
    with Controller.open(tmp_path / "events.db") as controller:
        Path(f"{tmp_path}/events.db.primary").unlink()
        deadline = time.monotonic() + WITHIN_S
        while controller.live.ready:
            assert time.monotonic() < deadline, "it did not notice"
            time.sleep(0.05)


def test_a_log_in_memory_has_a_seat_of_its_own() -> None:
    with Controller.open(":memory:") as one, Controller.open(":memory:") as other:
        assert one.command(describe("a")).changed
        assert other.command(describe("a")).changed
