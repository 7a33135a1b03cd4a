"""The daemon with its threads, against a real controller service: demand comes in, hosts come and go; nothing is timed."""

import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.provisioner.truth import Cloud, Means
from tests.service.running import TOKENS, Running, running
from tests.service.test_operators import Operator
from xce.adapters.client import Client
from xce.adapters.provisioner.rounds import Rounds
from xce.adapters.provisioner.service import (
    ClientDesk,
    ProvisionerService,
    read_provisioner_config,
)
from xce.domain.engine.messages import Role
from xce.domain.errors import InputError
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
from xce.domain.ports import Holding
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
def provisioning(config: ProvisionerConfig, **more: Any) -> Generator[ProvisionerService]:
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


def test_what_a_budget_holds_and_how_far_it_is_used_is_told_to_the_controller(
    tmp_path: Path, controller: Running, client: Client
) -> None:
    """The day's money is spent in no time by what is asked first: the second demand is held, with its reason."""
    budget = {"name": "day", "max_cost_per_day": "0.000001", "zone": "Europe/Berlin"}
    config = config_of(tmp_path, controller.address, policy={"budgets": [budget]})
    with provisioning(config):
        until("the provider is described", lambda: bool(list(client.providers())))
        client.publish_session(demand_for(2, client.status().position))
        until(
            "the hold is told",
            lambda: any(report.holds for report in client.standing().reports.values()),
        )

        (report,) = client.standing().reports.values()
        (hold,) = report.holds
        (use,) = report.budgets
        assert "budget day of the day: 0.00 spent and 0.00 counted on of 0.00" in hold.reason
        assert (hold.template, hold.count, hold.jobs) == ("c4", 2, ("7",))
        assert (use.budget, use.bound, use.used) == ("day", "max_cost_per_day", Decimal(0))
        assert not list(client.requests())
        admin = Operator(controller.address)
        assert "max_cost_per_day" in admin.says("costs")
        held = " ".join(admin.says("decisions", "--held", "--job", "7").split())
        assert "2 of 2 hosts of c4 not asked" in held


class Gated(Cloud):
    """Its listing waits for a gate, and says that it does."""

    def __init__(self, name: str) -> None:
        super().__init__(Means.LISTING, name)
        self.gate = threading.Event()
        self.inside = threading.Event()
        self.polls = 0

    def holdings(self, now: datetime) -> tuple[Holding, ...] | None:
        self.inside.set()
        assert self.gate.wait(PATIENCE_S)
        self.polls += 1
        return super().holdings(now)


def declaring(config: ProvisionerConfig, *names: str) -> ProvisionerConfig:
    (one,) = config.simulated
    simulated = tuple(one.model_copy(update={"name": name}) for name in names)
    return config.model_copy(update={"simulated": simulated})


def test_f20_a_provider_whose_calls_hang_delays_no_other_one(
    tmp_path: Path, controller: Running
) -> None:
    slow, quick = Gated("slow"), Gated("quick")
    quick.gate.set()
    config = declaring(config_of(tmp_path, controller.address), "slow", "quick")
    with provisioning(config, providers={"slow": slow, "quick": quick}):
        until("a call that hangs", slow.inside.is_set)
        until("five listings of the other one", lambda: quick.polls >= 5)
        assert slow.polls == 0
        slow.gate.set()


def test_f29_the_lease_is_renewed_while_a_round_takes_long(
    tmp_path: Path, controller: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewals: list[Mapping[str, int]] = []
    renew = ClientDesk.renew

    def counted(desk: ClientDesk, epochs: Mapping[str, int], holder: str) -> None:
        renew(desk, epochs, holder)
        renewals.append(epochs)

    monkeypatch.setattr(ClientDesk, "renew", counted)
    began, end = threading.Event(), threading.Event()

    def long_round(rounds: Rounds) -> None:
        began.set()
        assert end.wait(PATIENCE_S)

    monkeypatch.setattr(Rounds, "once", long_round)
    with provisioning(config_of(tmp_path, controller.address)) as service:
        until("a round to begin", began.is_set)
        before = len(renewals)
        until("more renewals than fit into one term", lambda: len(renewals) >= before + 4)
        assert service.leases.epoch("cloud") == 1
        end.set()


class Defective(Cloud):
    """Its first listing meets a defect."""

    def __init__(self) -> None:
        super().__init__(Means.LISTING)
        self.listings = 0

    def holdings(self, now: datetime) -> tuple[Holding, ...] | None:
        self.listings += 1
        if self.listings == 1:
            raise ValueError("a defect")
        return super().holdings(now)


def test_a_worker_that_met_a_defect_goes_on(tmp_path: Path, controller: Running) -> None:
    cloud = Defective()
    with provisioning(
        config_of(tmp_path, controller.address), providers={"cloud": cloud}
    ) as service:
        until("another listing", lambda: cloud.listings >= 2)
        assert service.workers["cloud"].restarts == 1
        assert service.workers["cloud"].alive


def test_metrics_say_what_is_held_and_called(tmp_path: Path, controller: Running) -> None:
    config = config_of(tmp_path, controller.address, monitor={"port": 0})
    with provisioning(config, providers={"cloud": Cloud(Means.LISTING)}) as service:
        until("a port", lambda: service.port > 0)

        def text() -> str:
            return httpx.get(f"http://127.0.0.1:{service.port}/metrics").text

        until("the lease", lambda: 'xce_lease_held{provider="cloud"} 1.0' in text())
        until(
            "a listing",
            lambda: 'call="ListCall",outcome="listed",provider="cloud"} ' in text(),
        )


def test_one_instance_goes_on_where_another_one_stopped(
    tmp_path: Path, controller: Running, client: Client
) -> None:
    cloud = Cloud(Means.TAG)
    one = config_of(tmp_path, controller.address, "p1")
    two = config_of(tmp_path, controller.address, "p2")
    with provisioning(two, providers={"cloud": cloud}) as second:
        until("p2 to hold it", lambda: second.leases.epoch("cloud") == 1)
        with provisioning(one, providers={"cloud": cloud}) as first:
            client.publish_session(demand_for(2, client.status().position))
            until("two instances", lambda: len(list(client.instances())) == 2)
            assert first.leases.epoch("cloud") is None
            second.stop()
            until("p1 to hold it", lambda: first.leases.epoch("cloud") == 2)
    assert len(cloud.machines) == 2
    assert set(cloud.asks.values()) == {1}


def test_a_configuration_with_mistakes_names_each_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "provisioner.yaml"
    path.write_text(
        "name: p1\nscripts:\n  - {name: a, folder: x}\n  - {name: a, folder: y}\nrythm: {poll: 0s}\n"
    )

    with pytest.raises(InputError) as caught:
        read_provisioner_config(path)
    assert str(caught.value).splitlines() == [
        f"{path}:5: rythm: unknown key; did you mean rhythm?",
    ]

    path.write_text(
        "name: p1\nscripts:\n  - {name: a, folder: x}\n  - {name: a, folder: y}\nrhythm: {lease_term: 1s}\n"
    )
    with pytest.raises(InputError) as caught:
        read_provisioner_config(path)
    assert [line.removeprefix(str(path)) for line in str(caught.value).splitlines()] == [
        ":3: scripts[0].name: a is there twice",
        ":4: scripts[1].name: a is there twice",
        ":5: rhythm.lease_term: wanted at least 3 s",
    ]
