"""A real controller service on loopback, in a thread, with a token for each role."""

import logging
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import structlog

from xce.adapters.controller.access import token_line
from xce.adapters.controller.service import ControllerService
from xce.domain.engine.messages import Caller, Role
from xce.domain.formats.controller_config import ControllerConfig

#: Tokens are made up, and equal in all tests.
TOKENS = {role: f"xce_token-of-the-{role}" for role in Role}
NAMES = {role: f"{role}-1" for role in Role}
STARTED_WITHIN_S = 20.0


@dataclass
class Running:
    """A service that answers."""

    service: ControllerService
    address: str
    verify: Any = True
    clients: list[httpx.Client] = field(default_factory=list[httpx.Client])

    def as_(self, role: Role | None, **more: Any) -> httpx.Client:
        """Return a client of a role; None: of nobody."""
        headers = {} if role is None else {"authorization": f"Bearer {TOKENS[role]}"}
        client = httpx.Client(
            base_url=self.address, headers=headers, timeout=10.0, verify=self.verify, **more
        )
        self.clients.append(client)
        return client

    @property
    def admin(self) -> httpx.Client:
        return self.as_(Role.ADMIN)


def write_tokens(folder: Path) -> Path:
    path = folder / "tokens.txt"
    lines = [token_line(Caller(role, NAMES[role]), TOKENS[role]) for role in Role]
    path.write_text("# of tests\n" + "\n".join(lines) + "\n")
    return path


def config_of(folder: Path, **changes: Any) -> ControllerConfig:
    document: dict[str, Any] = {
        "log": str(folder / "events.db"),
        "tokens": str(write_tokens(folder)),
        "listen": {"port": 0},
        "limits": {"calls_per_second": 100_000, "calls_burst": 100_000},
        "request_log": False,
        "detection": "60s",
    }
    return ControllerConfig.model_validate(document | changes)


#: How log lines are made while nobody has said how: tests are collected before any does.
_UNSAID: Final = structlog.get_config()["processors"]


@contextmanager
def logs_apart() -> Generator[None]:
    """Have what a service in this process logs go to the real stderr, and not among what a command under test prints.

    A test that has set logging up as a daemon does is left alone.
    """
    before = structlog.get_config() if structlog.is_configured() else None
    if before is not None and before["processors"] != _UNSAID:
        yield
        return
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=lambda *_: structlog.PrintLogger(sys.__stderr__),
    )
    try:
        yield
    finally:
        if before is None:
            structlog.reset_defaults()
        else:
            structlog.configure(**before)


@contextmanager
def running(folder: Path, **changes: Any) -> Generator[Running]:
    """Run a service until the block ends; it must stop by itself then."""
    with logs_apart():
        yield from _running(folder, changes)


def _running(folder: Path, changes: dict[str, Any]) -> Generator[Running]:
    service = ControllerService(config_of(folder, **changes))
    failure: list[BaseException] = []

    def run() -> None:
        try:
            service.run()
        except BaseException as error:
            failure.append(error)
            raise

    thread = threading.Thread(target=run, name="service", daemon=True)
    thread.start()
    deadline = time.monotonic() + STARTED_WITHIN_S
    while not service.port and thread.is_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert service.port, f"the service did not start: {failure}"
    scheme = "http" if service.config.tls is None else "https"
    made = Running(service, f"{scheme}://127.0.0.1:{service.port}")
    try:
        yield made
    finally:
        for client in made.clients:
            client.close()
        service.stop()
        thread.join(STARTED_WITHIN_S)
        assert not thread.is_alive(), "the service did not stop"
