"""The live driver between a controller and a Slurm made up here: hosts join by name and boot time, are drained through Slurm, and jobs that slip in stay."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.service.running import TOKENS, Running, running
from tests.service.test_rest import good, open_request, order, status_of
from tests.slurm.made import Slurm, job, node
from tests.slurm.made import running as running_job
from xce.adapters.client import Client
from xce.adapters.clock import SystemClock
from xce.adapters.schedulers.driver import LiveScheduler, Round
from xce.adapters.schedulers.slurm.reader import Reader
from xce.adapters.schedulers.slurm.source import SlurmScheduler
from xce.domain.engine.messages import Role
from xce.domain.formats.scheduler_config import SchedulerConfig
from xce.domain.formats.snapshot import HostState

CLOUD = {
    "name": "cloud",
    "templates": [
        {
            "templateId": "c4",
            "maxNumber": 5,
            "provides": {"slots": 4, "mem": 4000},
            "pricePerHour": "0.17",
        }
    ],
}


class Living(Slurm):
    """It drains and opens nodes as it is told; a job may land on one just before that."""

    lands: dict[str, Any] | None = None

    def __call__(self, command: Sequence[str]) -> bytes:
        if command[:2] == ("scontrol", "update"):
            names = command[2].removeprefix("nodename=").split(",")
            if self.lands is not None:
                self.jobs, self.lands = [*self.jobs, self.lands], None
            drains = "state=drain" in command
            reason = command[-1].removeprefix("reason=") if drains else ""
            for one in self.nodes:
                if one["name"] in names:
                    one.update(state_flags=["DRAIN"] if drains else [], reason=reason)
        return super().__call__(command)


@dataclass
class Site:
    """A controller, a Slurm with one full node of its own, and the driver between them."""

    slurm: Living
    driver: LiveScheduler
    cloud: Any

    def round(self) -> Round:
        done = self.driver.round()
        assert done is not None
        return done

    def instance(self) -> Any:
        return good(self.cloud.get("/v1/instances/cloud/m1"))

    def state(self) -> HostState:
        view = self.slurm.view().snapshot
        return next(host.state for host in view.hosts if host.name == "n-m1")

    def grant(self) -> None:
        """Do the provisioner's part, up to the granted machine."""
        order(self.cloud, open_request("R1", amount=1))
        theirs = {"request": "R1", "provider_request_id": "add-R1"}
        order(self.cloud, {"command": "accept-request", **theirs})
        order(self.cloud, status_of("R1", "m1"))

    def boot(self, *, after_s: int = 1) -> None:
        """Let the node appear, booted so long after now."""
        at = int(time.time()) + after_s
        self.slurm.nodes.append(node("n-m1", boot_time=at, slurmd_start_time=at, last_busy=at))

    def join(self) -> None:
        """Grant a machine and let its node appear, booted after it was asked for."""
        self.grant()
        self.boot()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with running(tmp_path) as service:
        yield from _site(service, tmp_path)


def _site(service: Running, folder: Path) -> Iterator[Site]:
    cloud = service.as_(Role.PROVISIONER)
    good(cloud.put("/v1/providers/cloud", json=CLOUD))
    good(cloud.post("/v1/leases/cloud/take", json={"holder": "provisioner-1", "term": "30s"}))
    token = folder / "token"
    token.write_text(TOKENS[Role.SCHEDULER] + "\n")
    config = SchedulerConfig.model_validate(
        {
            "controller": {"addresses": [service.address], "token_file": str(token)},
            "source": {"slurm": {}},
        }
    )
    slurm = Living([running_job(1, "own", 4), job(2, state_reason="Resources")], [node("own")])
    clock = SystemClock()
    with Client(service.address, token=TOKENS[Role.SCHEDULER]) as client:
        source = SlurmScheduler(Reader(slurm), slurm, clock, wait=lambda _: None)
        yield Site(slurm, LiveScheduler(config, client, source, clock=clock), cloud)


def test_waiting_jobs_are_demand_until_their_host_has_joined(site: Site) -> None:
    first = site.round()
    assert first.result.demand.order == (("c4", 1),)

    site.join()
    joined = site.round()

    assert joined.snapshot.catalog.in_flight.hosts == ()
    assert [host.instance for host in joined.snapshot.hosts] == [None, "cloud/m1"]
    assert joined.result.demand.order == ()
    assert (site.instance()["state"], site.instance()["host"]) == ("joined", "n-m1")
    assert not [call for call in site.slurm.called if call[1] in ("update", "delete", "requeue")]


def test_a_node_that_booted_before_it_was_asked_for_is_the_machine_of_before(site: Site) -> None:
    """Field case F21: the name is the same, the machine another."""
    site.grant()
    site.boot(after_s=-3600)

    done = site.round()

    assert [one.expected_name for one in done.snapshot.catalog.in_flight.hosts] == ["n-m1"]
    assert [host.name for host in done.snapshot.hosts] == ["own"]
    assert site.instance()["state"] == "starting"


def test_an_empty_host_is_drained_through_slurm_and_found_empty(site: Site) -> None:
    site.slurm.jobs = site.slurm.jobs[:1]
    site.join()
    site.round()
    site.round()
    order(site.cloud, {"command": "start-drain", "instance": "cloud/m1", "why": "idle"})

    site.round()
    assert site.state() is HostState.DRAINING
    site.round()

    (drain,) = good(site.cloud.get("/v1/drains"))["items"]
    assert (drain["host"], drain["state"]) == ("n-m1", "empty")


def test_a_job_that_lands_between_idle_and_drain_keeps_its_host(site: Site) -> None:
    site.slurm.jobs = site.slurm.jobs[:1]
    site.join()
    site.round()
    site.round()
    order(site.cloud, {"command": "start-drain", "instance": "cloud/m1", "why": "idle"})
    site.slurm.lands = running_job(3, "n-m1")

    site.round()
    assert site.state() is HostState.DRAINING
    site.round()
    site.round()

    assert site.instance()["state"] == "joined"
    assert site.state() is HostState.OPEN


def test_a_job_that_is_hidden_from_us_keeps_its_host_as_well(site: Site) -> None:
    site.slurm.jobs = site.slurm.jobs[:1]
    site.join()
    site.round()
    site.round()
    site.slurm.nodes[1].update(alloc_cpus=2)
    order(site.cloud, {"command": "start-drain", "instance": "cloud/m1", "why": "idle"})

    for _ in range(3):
        site.round()

    assert site.instance()["state"] == "joined"
