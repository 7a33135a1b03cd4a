"""What a controller says while it works, and when it cannot."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.service.running import Running, config_of, running
from xce.adapters.controller.service import ControllerService, set_up_logging
from xce.domain.engine.messages import Role
from xce.domain.errors import PermanentError


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def calls(found: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
    return [
        (one["level"], one["operation"], one["status"]) for one in found if one["event"] == "call"
    ]


def some_calls(service: Running) -> None:
    """What daemons do all the time, something that a person changes, and two mistakes."""
    scheduler, admin = service.as_(Role.SCHEDULER), service.admin
    assert scheduler.get("/v1/supply").is_success
    assert scheduler.put("/v1/bookings", json={"occupied": {}, "reports": {}}).is_success
    assert admin.get("/v1/status").is_success
    assert admin.post("/v1/freeze", json={"why": "audit week"}).is_success
    assert service.as_(Role.VIEWER).post("/v1/unfreeze", json={}).status_code == 403
    assert scheduler.get("/v1/shared/none").status_code == 404


def test_a_console_shows_what_people_change_and_what_goes_wrong_and_not_each_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up_logging(pretty=False)
    with running(tmp_path) as service:
        some_calls(service)
        port = service.service.port
    found = lines(capsys)

    assert [status for _, _, status in calls(found)] == [200, 403]
    assert {one["event"] for one in found} == {"primary", "serving", "call", "stopped"}
    (serving,) = [one for one in found if one["event"] == "serving"]
    assert serving["port"] == port > 0


def test_with_debug_it_shows_each_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(pretty=False, debug=True)
    with running(tmp_path) as service:
        some_calls(service)

    statuses = [(level, status) for level, _, status in calls(lines(capsys))]
    assert statuses == [
        ("debug", 200), ("debug", 200), ("debug", 200), ("info", 200), ("info", 403), ("debug", 404),
    ]  # fmt: skip


def test_a_port_that_is_taken_is_named_with_what_to_do_and_nothing_was_begun(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        service = ControllerService(config_of(tmp_path, listen={"port": port}))
        with pytest.raises(PermanentError) as refused:
            service.run()
    printed = capfd.readouterr()

    assert str(refused.value) == (
        f"cannot listen on 127.0.0.1 port {port}: address already in use: another program listens there, perhaps a controller"
        " that runs already: end it, or give this one another listen.port"
    )
    assert printed.out + printed.err == ""
    assert not (tmp_path / "events.db").exists()


def test_an_address_that_is_not_of_this_machine_is_named(tmp_path: Path) -> None:
    config = config_of(tmp_path, listen={"host": "192.0.2.7", "port": 0, "insecure": True})

    with pytest.raises(
        PermanentError, match=r"192\.0\.2\.7 port 0: .*; see listen\.host|does not have"
    ):
        ControllerService(config).run()
