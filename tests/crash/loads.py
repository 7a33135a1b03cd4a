"""Clients that give a controller orders one after the other, and what must be in its log afterwards."""

import threading
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.service.running import TOKENS
from xce.adapters.client import Client
from xce.adapters.store.open import open_log
from xce.adapters.store.verify import verify
from xce.domain.engine.commands import OpenRequest, PauseProvider, RefuseRequest, TakeLease
from xce.domain.engine.messages import Role
from xce.domain.formats.provider import Kind, ProviderDescription, TemplateOffer
from xce.domain.provisioning.provider import Provider
from xce.domain.provisioning.request import Request

CLIENTS = 4
END_WITHIN_S = 120.0
LATER = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)


@dataclass
class Load:
    """One client that opens and closes requests and pauses its provider, until it is told to stop. Its calls never give up."""

    number: int
    addresses: Sequence[str]
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
            self.addresses,
            token=TOKENS[Role.ADMIN],
            attempts=2000,
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
                until = LATER + timedelta(seconds=self.pauses)
                client.command(PauseProvider(provider, None, until, f"pause {self.pauses}"))
                self.pauses += 1


@contextmanager
def four_clients(addresses: Sequence[str]) -> Generator[list[Load]]:
    """Run four clients as long as the block lasts; what they have begun then, they end."""
    stop = threading.Event()
    loads = [Load(number, addresses, stop) for number in range(CLIENTS)]
    threads = [threading.Thread(target=load.run, daemon=True) for load in loads]
    for thread in threads:
        thread.start()
    try:
        yield loads
    finally:
        stop.set()
        for thread in threads:
            thread.join(END_WITHIN_S)
    assert not any(thread.is_alive() for thread in threads), "each call ended"


def assert_all_of_it_is_there_once(place: str | Path, loads: Sequence[Load]) -> int:
    """Look for all that was acknowledged, in a log that verifies; return the number of its events."""
    assert [load.failure for load in loads] == [None] * len(loads)
    intents, refused, pauses = Counter[str](), Counter[str](), Counter[str]()
    with open_log(place, read_only=True) as log:
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
        events = log.head().position
    assert report.passed, [str(f) for check in report.checks for f in check.findings]
    for load in loads:
        assert load.opened, "it did something between the kills"
        assert {name: intents[name] for name in load.opened} == dict.fromkeys(load.opened, 1)
        assert pauses[f"c{load.number}"] == load.pauses
    assert intents == refused, "an order is there whole or not at all"
    return events
