"""The push stream: newest demand at once, every event once, slow readers in nobody's way."""

import contextlib
import json
import socket
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import httpx

from tests.service.running import TOKENS, Running, running
from tests.service.test_rest import good, session
from xce.adapters.client import Client
from xce.domain.engine.messages import Role


@contextlib.contextmanager
def following(client: httpx.Client, query: str = "") -> Generator[Iterator[tuple[str, Any]]]:
    with client.stream("GET", f"/v1/stream?{query}") as response:
        assert response.status_code == 200
        yield messages(response.iter_lines())


def messages(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    kind = ""
    for line in lines:
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield kind, json.loads(line.removeprefix("data: "))


def describe(service: Running, number: int) -> None:
    body = {"name": "cloud", "capacity": number}
    good(service.as_(Role.PROVISIONER).put("/v1/providers/cloud", json=body))


def test_who_comes_gets_the_newest_demand_at_once_and_then_each_newer_one(
    service: Running,
) -> None:
    scheduler = service.as_(Role.SCHEDULER)
    good(scheduler.put("/v1/session", json=session(0, "old")))
    good(scheduler.put("/v1/session", json=session(0, "new")))

    with following(service.as_(Role.PROVISIONER), "events=false") as stream:
        kind, first = next(stream)
        good(scheduler.put("/v1/session", json=session(0, "newer")))
        _, second = next(stream)

    templates = [m["result"]["demand"]["hosts"][0]["template"] for m in (first, second)]
    assert (kind, first["number"], second["number"]) == ("session", 2, 3)
    assert templates == ["new", "newer"]


def test_events_come_in_order_from_where_the_reader_is(service: Running) -> None:
    for number in range(5):
        describe(service, number)

    with following(service.admin, "after=2&session=false") as stream:
        known = [next(stream)[1]["position"] for _ in range(3)]
        describe(service, 99)
        new = next(stream)[1]

    assert known == [3, 4, 5]
    assert (new["position"], new["data"]["description"]["capacity"]) == (6, 99)


def test_a_slow_reader_holds_nobody_up_and_is_cut_off(tmp_path: Path) -> None:
    with running(tmp_path, limits={"stream_stall": "1s", "calls_per_second": 100_000, "calls_burst": 100_000}) as service:  # fmt: skip
        port = int(service.address.rpartition(":")[2])
        big = session(0) | {"warnings": ["w" * 1_000_000]}
        scheduler = service.as_(Role.SCHEDULER)
        with socket.create_connection(("127.0.0.1", port)) as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            head = f"GET /v1/stream?after=0 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKENS[Role.ADMIN]}\r\n\r\n"
            slow.sendall(head.encode())  # and reads nothing
            begun = time.monotonic()
            for _ in range(30):
                good(scheduler.put("/v1/session", json=big))
            took = time.monotonic() - begun
            with following(service.as_(Role.PROVISIONER), "events=false") as stream:
                assert next(stream)[1]["number"] == 30
            ended = False
            for _ in range(200):
                if "xce_streams 0.0" in service.admin.get("/metrics").text:
                    ended = True
                    break
                time.sleep(0.05)

    assert ended
    assert took < 20


def test_there_are_only_so_many_streams(tmp_path: Path) -> None:
    with running(tmp_path, limits={"streams": 1}) as service, following(service.admin):
        assert service.admin.get("/v1/stream").status_code == 429


def test_a_stop_ends_the_streams(tmp_path: Path) -> None:
    with running(tmp_path) as service, following(service.admin) as stream:
        next(stream)
        begun = time.monotonic()
        service.service.stop()
        assert list(stream) == []
    assert time.monotonic() - begun < 5


def test_the_client_library_follows_across_a_restart_without_a_gap(tmp_path: Path) -> None:
    positions: list[int] = []
    with running(tmp_path) as service:
        port = int(service.address.rpartition(":")[2])
        client = Client(service.address, token=TOKENS[Role.ADMIN], sleep=lambda s: time.sleep(0.02))
        for number in range(3):
            describe(service, number)
        stream = client.follow(0, session=False)
        for _ in range(3):
            pushed = next(stream)
            assert pushed.event is not None
            positions.append(pushed.event.position)
    with running(tmp_path, listen={"port": port}) as service:
        for number in range(3, 6):
            describe(service, number)
        for _ in range(3):
            pushed = next(stream)
            assert pushed.event is not None
            positions.append(pushed.event.position)
        client.close()

    assert positions == [1, 2, 3, 4, 5, 6]
