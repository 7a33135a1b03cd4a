"""A controller inside another program takes the seat of its log, wherever the log is kept."""

from pathlib import Path

import pytest

from tests.postgresql import Server
from xce import Controller
from xce.adapters.controller.errors import NotPrimaryError, ServedError
from xce.adapters.store.election import Role
from xce.adapters.store.open import open_log
from xce.adapters.store.standby import Standby
from xce.domain.engine.commands import DescribeProvider
from xce.domain.formats.provider import ProviderDescription


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "events.db")
    server: Server = request.getfixturevalue("postgresql")
    return server.address()


def describe(name: str) -> DescribeProvider:
    return DescribeProvider(ProviderDescription(name=name))


def test_while_it_is_open_nobody_else_serves_the_log_and_afterwards_somebody_may(
    place: str,
) -> None:
    with Controller.open(place) as controller:
        with open_log(place) as log, Standby(log, name="daemon") as standby:
            assert standby.step() is Role.STANDBY
            assert controller.command(describe("a")).changed
            assert standby.step() is Role.STANDBY
            assert standby.primary is not None
            assert standby.primary.name.endswith(", embedded")
        with pytest.raises(ServedError, match="embedded serves this log"):
            Controller.open(place)
    with open_log(place) as log, Standby(log, name="daemon") as standby:
        assert standby.step() is Role.PRIMARY
        with pytest.raises(ServedError, match="the controller daemon serves this log"):
            Controller.open(place)


def test_one_that_was_fenced_off_writes_nothing_more(place: str) -> None:
    with Controller.open(place) as controller, open_log(place) as log:
        controller.command(describe("a"))
        log.take_primary()

        with pytest.raises(NotPrimaryError):
            controller.command(describe("b"))
        assert log.head().position == 1
