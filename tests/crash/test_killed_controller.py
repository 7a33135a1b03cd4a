"""kill -9 of a real controller under load of four clients: what was acknowledged is there, once; nothing else is half there."""

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.service.running import TOKENS, write_tokens
from xce.adapters.client import Client
from xce.adapters.store.open import open_log
from xce.adapters.store.verify import verify
from xce.domain.engine.commands import OpenRequest, PauseProvider, RefuseRequest, TakeLease
from xce.domain.engine.messages import Role
from xce.domain.formats.provider import Kind, ProviderDescription, TemplateOffer
from xce.domain.provisioning.provider import Provider
from xce.domain.provisioning.request import Request

KILLS = int(os.environ.get("XCE_KILLS", "4"))
CLIENTS = 4
UP_WITHIN_S = 30.0
LATER = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)


@dataclass
class Load:
    """One client that opens and closes requests and pauses its provider, one order after the other, until it is told to stop."""

    number: int
    address: str
    stop: threading.Event
    opened: list[str] = field(default_factory=list[str])
    pauses: int = 0
    failure: Exception | None = None

    def run(self) -> None:
        try:
            self._run()
        except Exception as error:  # noqa: BLE001 - shown by the test
            self.failure = error

    def _run(self) -> None:
        provider = f"c{self.number}"
        with Client(
            self.address,
            token=TOKENS[Role.ADMIN],
            attempts=500,
            timeout_s=5.0,
            sleep=lambda seconds: time.sleep(min(seconds, 0.05)),
        ) as client:
            client.describe(
                ProviderDescription(name=provider, templates=(TemplateOffer(template_id="c4"),))
            )
            client.command(TakeLease(provider, "p1", timedelta(hours=1)))
            while not self.stop.is_set():
                name = f"R{self.number}-{len(self.opened)}"
                client.command(
                    OpenRequest(name, provider, Kind.HOST, "c4", 1, None, LATER, "load", (), 0),
                    RefuseRequest(name, "no"),
                )
                self.opened.append(name)
                client.command(
                    PauseProvider(
                        provider,
                        None,
                        LATER + timedelta(seconds=self.pauses),
                        f"pause {self.pauses}",
                    )
                )
                self.pauses += 1


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def start(config: Path, address: str) -> subprocess.Popen[bytes]:
    with (config.parent / "controller.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "xce.adapters.cli.main", "controller", "--config", str(config)],
            stderr=log,
            stdout=subprocess.DEVNULL,
        )
    deadline = time.monotonic() + UP_WITHIN_S
    with Client(address, attempts=1, token=TOKENS[Role.ADMIN]) as client:
        while time.monotonic() < deadline:
            assert process.poll() is None, (config.parent / "controller.log").read_text()
            try:
                client.status()
                return process
            except Exception:  # noqa: BLE001 - it is not up yet
                time.sleep(0.02)
    raise AssertionError("the controller did not come up")


def test_killed_at_any_moment_it_has_all_that_it_acknowledged_and_each_once(
    tmp_path: Path,
) -> None:
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    write_tokens(tmp_path)
    config = tmp_path / "controller.yaml"
    config.write_text(
        f"log: events.db\ntokens: tokens.txt\nlisten: {{port: {port}}}\nrequest_log: false\n"
        "limits: {calls_per_second: 100000, calls_burst: 100000}\n"
    )
    process = start(config, address)
    stop = threading.Event()
    loads = [Load(number, address, stop) for number in range(CLIENTS)]
    threads = [threading.Thread(target=load.run) for load in loads]
    for thread in threads:
        thread.start()
    moments = random.Random(7)
    try:
        for _ in range(KILLS):
            time.sleep(moments.uniform(0.05, 0.5))
            process.send_signal(signal.SIGKILL)
            process.wait()
            process = start(config, address)
        time.sleep(0.2)
        stop.set()
        for thread in threads:
            thread.join(UP_WITHIN_S)
    finally:
        stop.set()
        process.send_signal(signal.SIGTERM)
        ended = process.wait(UP_WITHIN_S)

    assert [load.failure for load in loads] == [None] * CLIENTS
    assert ended == 0, "a stop by SIGTERM is a good end"
    intents, refused, pauses = Counter[str](), Counter[str](), Counter[str]()
    with open_log(tmp_path / "events.db", read_only=True) as log:
        for recorded in log.read():
            name = recorded.event.originator_id.partition(":")[2]
            match recorded.event:
                case Request.Intended():
                    intents[name] += 1
                case Request.Closed():
                    refused[name] += 1
                case Provider.Paused():
                    pauses[name] += 1
                case _:
                    pass
        report = verify(log)
    assert report.passed, [str(f) for check in report.checks for f in check.findings]
    for load in loads:
        assert load.opened, "it did something between the kills"
        assert {name: intents[name] for name in load.opened} == dict.fromkeys(load.opened, 1)
        assert pauses[f"c{load.number}"] == load.pauses
    assert intents == refused, "an order is there whole or not at all"
