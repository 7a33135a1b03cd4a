"""kill -9 of a real controller under load of four clients: what was acknowledged is there, once; nothing else is half there."""

import os
import random
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.loads import assert_all_of_it_is_there_once, four_clients
from tests.crash.nursery import Nursery, wait_until_it_serves
from tests.postgresql import Server
from tests.service.running import write_tokens

KILLS = int(os.environ.get("XCE_KILLS", "20"))


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def write_config(folder: Path, name: str, place: str, port: int, more: str = "") -> Path:
    config = folder / f"{name}.yaml"
    config.write_text(
        f"log: {place}\ntokens: tokens.txt\nlisten: {{port: {port}}}\nrequest_log: false\n"
        f"url: http://127.0.0.1:{port}\n"
        f"limits: {{calls_per_second: 100000, calls_burst: 100000}}\n{more}"
    )
    return config


def store_of(place: str) -> str:
    return "postgresql" if "://" in place else "sqlite"


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "events.db")
    server: Server = request.getfixturevalue("postgresql")
    return server.address()


def test_killed_at_any_moment_it_has_all_that_it_acknowledged_and_each_once(
    tmp_path: Path, place: str, record_property: Callable[[str, object], None]
) -> None:
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    write_tokens(tmp_path)
    config = write_config(tmp_path, "controller", place, port, "detection: 60s\n")
    moments = random.Random(7)
    with Nursery() as nursery:
        process = nursery.start(config)
        try:
            wait_until_it_serves(address)
            with four_clients([address]) as loads:
                for _ in range(KILLS):
                    time.sleep(moments.uniform(0.02, 0.3))
                    process.signal(signal.SIGKILL)
                    assert process.wait() == -signal.SIGKILL, config.with_suffix(".log").read_text()
                    process = nursery.start(config)
                    wait_until_it_serves(address)
        finally:
            process.signal(signal.SIGTERM)
            ended = process.wait()

    assert ended == 0, "a stop by SIGTERM is a good end"
    events = assert_all_of_it_is_there_once(place, loads)
    record_property("events", events)
    print(f"{store_of(place)}: {KILLS} kills, {events} events")
