"""Primaries killed, or frozen and woken, while four clients give orders: the standby serves, clients lose nothing and see nothing twice."""

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from tests.crash.loads import END_WITHIN_S, LATER, assert_all_of_it_is_there_once, four_clients
from tests.crash.nursery import Child, Nursery, wait_until_it_serves
from tests.crash.test_killed_controller import free_port, place, store_of, write_config
from tests.service.running import TOKENS, write_tokens
from xce.adapters.client import Client
from xce.adapters.store.open import open_log
from xce.domain.alerts.alert import Alert, AlertKind
from xce.domain.engine.commands import DeclareShared
from xce.domain.engine.messages import Role
from xce.domain.errors import XceError

__all__ = ["place"]

FAILOVERS = int(os.environ.get("XCE_FAILOVERS", "5"))
DETECTION_S = 2.0
HOUR = timedelta(hours=1)


@dataclass
class Reader:
    """Follows the stream from the beginning, wherever it is served."""

    addresses: list[str]
    upto: int | None = None
    positions: list[int] = field(default_factory=list[int])
    failure: Exception | None = None

    def run(self) -> None:
        try:
            with Client(self.addresses, token=TOKENS[Role.ADMIN], attempts=2000) as client:
                for pushed in client.follow(0, session=False):
                    assert pushed.event is not None
                    self.positions.append(pushed.event.position)
                    if self.upto is not None and self.positions[-1] >= self.upto:
                        return
        except Exception as error:  # noqa: BLE001 - shown by the test
            self.failure = error


def stands_by(address: str) -> None:
    """Wait until a controller answers that it stands by."""
    deadline = time.monotonic() + END_WITHIN_S
    while time.monotonic() < deadline:
        try:
            answer = httpx.get(f"{address}/readyz", timeout=5.0)
        except httpx.TransportError:
            time.sleep(0.02)
            continue
        assert answer.status_code == 503, "there is a primary"
        assert answer.json()["code"] == "not-primary"
        assert answer.headers["retry-after"] == "1"
        assert httpx.get(f"{address}/healthz", timeout=5.0).status_code == 200
        return
    raise AssertionError("it does not answer")


def try_to_write(address: str, name: str) -> None:
    """Order something of a controller that is not the primary any more; it must not say yes."""
    with (
        Client(address, token=TOKENS[Role.ADMIN], attempts=1, timeout_s=5.0) as client,
        pytest.raises(XceError),
    ):
        client.command(DeclareShared(name, 1, None, 0, 1, HOUR, HOUR))


@pytest.mark.parametrize("way", ["kill", "freeze"])
def test_whatever_befalls_the_primary_its_clients_lose_nothing_and_see_nothing_twice(
    tmp_path: Path, place: str, way: str, record_property: Callable[[str, object], None]
) -> None:
    write_tokens(tmp_path)
    ports = [free_port(), free_port()]
    addresses = [f"http://127.0.0.1:{port}" for port in ports]
    configs = [
        write_config(tmp_path, f"controller-{i}", place, port, f"detection: {DETECTION_S:g}s\n")
        for i, port in enumerate(ports)
    ]
    took: list[float] = []
    living: list[Child] = []
    reader = Reader(addresses)
    reading = threading.Thread(target=reader.run, daemon=True)
    with Nursery() as nursery:
        try:
            living.append(nursery.start(configs[0]))
            wait_until_it_serves(addresses[0])
            reading.start()
            with four_clients(addresses) as loads:
                for number in range(FAILOVERS):
                    primary, here, there = living[0], number % 2, (number + 1) % 2
                    living.append(nursery.start(configs[there]))
                    stands_by(addresses[there])
                    begun = time.monotonic()
                    primary.signal(signal.SIGKILL if way == "kill" else signal.SIGSTOP)
                    took.append(wait_until_it_serves(addresses[there]) - begun)
                    if way == "freeze" and store_of(place) == "postgresql":
                        primary.signal(signal.SIGCONT)
                        try_to_write(addresses[here], f"woken-{number}")
                        assert primary.wait() == 75, configs[here].with_suffix(".log").read_text()
                    else:  # on SQLite the standby has ended the frozen one
                        assert primary.wait() == -signal.SIGKILL
                    del living[0]
            with open_log(place, read_only=True) as log:
                reader.upto = log.head().position
            with Client(addresses, token=TOKENS[Role.ADMIN]) as client:
                client.pause("c0", LATER + timedelta(days=9), "the last event")
            reading.join(END_WITHIN_S)
            assert not reading.is_alive(), "the reader got to the end"
        finally:
            for child in living:
                child.signal(signal.SIGCONT)
                child.signal(signal.SIGTERM)
                assert child.wait() == 0
    print(f"{store_of(place)}, {way}: took {[round(one, 2) for one in took]} s")
    record_property("took_s", took)

    assert reader.failure is None
    with open_log(place, read_only=True) as log:
        recorded = list(log.read())
    stored = [one.position for one in recorded if one.position <= reader.positions[-1]]
    assert reader.positions == stored, "each event once, in order"
    assert not [one for one in recorded if "woken" in one.event.originator_id]
    alerts = [one.event for one in recorded if isinstance(one.event, Alert.Raised)]
    taken = [one.subject for one in alerts if one.kind is AlertKind.TAKEN_OVER]
    assert taken == [f"epoch {number}" for number in range(2, FAILOVERS + 2)], "each once"
    loads[0].pauses += 1
    assert_all_of_it_is_there_once(place, loads)
