"""The daemon with its threads, against a real controller service: demand comes in, hosts come and go; nothing is timed."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.service.running import TOKENS, Running, running
from xce.adapters.client import Client
from xce.adapters.provisioner.service import ProvisionerService
from xce.domain.engine.messages import Role
from xce.domain.formats.provisioner_config import ProvisionerConfig, Rhythm
from xce.domain.formats.rest import JoinReport
from xce.domain.formats.session_result import (
    Demand,
    HostDemand,
    Idle,
    IdleHost,
    JobHosts,
    SessionResult,
)
from xce.domain.provisioning.instance import InstanceState

PATIENCE_S = 90.0
#: Faster than a configuration allows.
RHYTHM = Rhythm.model_construct(
    lease_term=timedelta(seconds=5),
    poll=timedelta(seconds=0.1),
    reconcile=timedelta(seconds=1),
    describe=timedelta(minutes=30),
    round=timedelta(seconds=0.1),
    review=timedelta(seconds=0.3),
)


def config_of(folder: Path, address: str, name: str = "p1", **changes: Any) -> ProvisionerConfig:
    token = folder / f"{name}.token"
    token.write_text(TOKENS[Role.ADMIN])
    document: dict[str, Any] = {
        "name": name,
        "controller": {"addresses": [address], "token_file": str(token)},
        "state": str(folder / f"state-{name}"),
        "simulated": [
            {
                "name": "cloud",
                "templates": [
                    {"template_id": "c4", "price_per_hour": "0.17", "provides": {"slots": 4}}
                ],
                "simulation": {
                    "lead_time": {"lag": "0s", "boot": "0s", "join": "0s"},
                    "return_time": "0s",
                },
            }
        ],
    }
    config = ProvisionerConfig.model_validate(document | changes)
    return config.model_copy(update={"rhythm": RHYTHM})


@contextmanager
def provisioning(config: ProvisionerConfig, **more: Any) -> Iterator[ProvisionerService]:
    service = ProvisionerService(config, **more)
    failure: list[BaseException] = []

    def run() -> None:
        try:
            service.run()
        except BaseException as error:
            failure.append(error)
            raise

    thread = threading.Thread(target=run, name="provisioner", daemon=True)
    thread.start()
    try:
        yield service
    finally:
        service.stop()
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "the provisioner did not stop"
        assert not failure, failure


def until(what: str, true: Callable[[], bool]) -> None:
    """Wait for something; how long it takes says nothing."""
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, f"waited for: {what}"
        time.sleep(0.02)


def demand_for(count: int, position: int) -> SessionResult:
    demand = Demand(
        hosts=(
            HostDemand(template="c4", count=count, jobs=(JobHosts(job="7", order=1, hosts=count),)),
        ),
        order=(("c4", count),),
    )
    return SessionResult(position=position, demand=demand)


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as made:
        yield made


@pytest.fixture
def client(controller: Running) -> Iterator[Client]:
    with Client(controller.address, token=TOKENS[Role.ADMIN]) as made:
        yield made


def test_demand_becomes_hosts_and_idle_hosts_go_back(
    tmp_path: Path, controller: Running, client: Client
) -> None:
    with provisioning(config_of(tmp_path, controller.address)):
        until("the provider is described", lambda: bool(list(client.providers())))
        client.publish_session(demand_for(2, client.status().position))
        until("two instances", lambda: len(list(client.instances())) == 2)
        assert len(list(client.decisions())) == 1

        for entry in client.instances():
            assert entry.machine is not None
            client.join(
                JoinReport(
                    host=f"h-{entry.machine}".lower(),
                    booted_at=datetime.now(UTC),
                    machine=entry.machine,
                )
            )
        joined = list(client.instances())
        idle = Idle(
            hosts=tuple(
                IdleHost(
                    instance=entry.id,
                    host=entry.host or "",
                    idle_since=datetime.now(UTC) - timedelta(hours=2),
                )
                for entry in joined
            )
        )
        position = client.status().position
        client.publish_session(SessionResult(position=position, idle=idle))
        until(
            "both drain",
            lambda: all(e.state is InstanceState.DRAINING for e in client.instances()),
        )
        for entry in joined:
            assert entry.host is not None
            client.looked(entry.host, ())
        until("both have gone back", lambda: not list(client.instances()))

    assert client.costs().cost >= Decimal(0)
    assert [lease.state for lease in client.leases()] == ["released"]
