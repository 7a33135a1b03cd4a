"""The live driver with a real controller and the fake batch system: hosts join, jobs run, drains are obeyed, hosts go."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.service.running import TOKENS, Running
from tests.service.test_rest import good, open_request, order, status_of
from xce.adapters.cli.operators.main import app as operators
from xce.adapters.client import Client
from xce.adapters.clock import SystemClock
from xce.adapters.recordings import read_lines
from xce.adapters.schedulers import fake_state
from xce.adapters.schedulers.driver import LiveScheduler, Round
from xce.adapters.schedulers.fake import FakeFile, FakeScheduler
from xce.adapters.schedulers.service import SchedulerService
from xce.domain.engine.messages import Role
from xce.domain.errors import ForbiddenError, RejectedError, TransientError
from xce.domain.formats.scheduler_config import SchedulerConfig
from xce.domain.formats.snapshot import Host, HostState, PendingJob, Snapshot
from xce.replay.verification import verify

HOUR = timedelta(hours=1)
CLOUD = {
    "name": "cloud",
    "templates": [
        {"templateId": "c4", "maxNumber": 5, "provides": {"slots": 4}, "pricePerHour": "0.17"}
    ],
}


def config_of(address: str, path: Path, **changes: Any) -> SchedulerConfig:
    token = path.with_name("token")
    token.write_text(TOKENS[Role.SCHEDULER] + "\n")
    document = {
        "controller": {"addresses": [address], "token_file": str(token)},
        "source": {"fake": {"path": str(path), "boot_time": "0s"}},
        "session_interval": "1s",
    }
    return SchedulerConfig.model_validate({**document, **changes})


@dataclass
class Site:
    """A controller, a fake batch system with one own host of one slot, and the driver between them."""

    running: Running
    file: FakeFile
    driver: LiveScheduler
    cloud: Any

    def round(self) -> Round:
        done = self.driver.round()
        assert done is not None
        return done

    def submit(self, count: int, resreq: str = "") -> None:
        jobs = [PendingJob(id="new", resreq=resreq)] * count
        now = SystemClock().now()
        self.file.change(lambda state: fake_state.submitted(state, jobs, HOUR, now))

    def end_all(self) -> None:
        now = SystemClock().now()
        self.file.change(
            lambda state: fake_state.ended(state, {run.job.id: now for run in state.running})
        )

    def hosts(self) -> dict[str, HostState]:
        return {host.name: host.state for host in self.file.read().hosts}

    def jobs_on(self, host: str) -> list[str]:
        return [
            run.job.id
            for run in self.file.read().running
            if any(use.name == host for use in run.job.hosts)
        ]

    def obtain(self, request: str, machine: str, **more: Any) -> None:
        """The provisioner's part, up to the granted machine."""
        order(self.cloud, open_request(request, amount=1, **more))
        theirs = {"request": request, "provider_request_id": f"add-{request}"}
        order(self.cloud, {"command": "accept-request", **theirs})
        order(self.cloud, status_of(request, machine))


@pytest.fixture
def site(service: Running, tmp_path: Path) -> Iterator[Site]:
    cloud = service.as_(Role.PROVISIONER)
    good(cloud.put("/v1/providers/cloud", json=CLOUD))
    good(cloud.post("/v1/leases/cloud/take", json={"holder": "provisioner-1", "term": "30s"}))
    file = FakeFile(tmp_path / "batch.json")
    own = Host(name="own-1", total={"slots": 1})
    file.change(lambda state: fake_state.with_host(state, own))
    config = config_of(service.address, file.path)
    clock = SystemClock()
    with Client(service.address, token=TOKENS[Role.SCHEDULER]) as client:
        source = FakeScheduler(file, clock, boot_time=timedelta(0), wait=lambda _: None)
        yield Site(service, file, LiveScheduler(config, client, source, clock=clock), cloud)


def test_jobs_start_on_own_hosts_and_the_others_are_demand_at_the_controller(site: Site) -> None:
    site.submit(3)

    site.round()

    assert site.jobs_on("own-1") == ["1"]
    message = good(site.cloud.get("/v1/session"))
    assert message["result"]["demand"]["order"] == [["c4", 1]]
    assert message["by"] == "scheduler/scheduler-1"
    snapshot = good(site.cloud.get("/v1/snapshot"))
    assert snapshot["position"] == message["result"]["position"]


def test_a_host_is_in_flight_then_joined_and_never_both(site: Site) -> None:
    site.submit(3)
    site.round()
    site.obtain("R1", "m1")

    first = site.round()
    assert [one.id for one in first.snapshot.catalog.in_flight.hosts] == ["cloud/m1"]
    assert [host.name for host in first.snapshot.hosts] == ["own-1"]
    assert first.result.demand.order == ()

    second = site.round()
    assert second.snapshot.catalog.in_flight.hosts == ()
    assert [host.instance for host in second.snapshot.hosts] == [None, "cloud/m1"]
    (provisioned,) = [host.name for host in second.snapshot.hosts if host.instance]
    assert len(site.jobs_on(provisioned)) == 2
    instance = good(site.cloud.get("/v1/instances/cloud/m1"))
    assert (instance["state"], instance["host"]) == ("joined", provisioned)


def check_hosts(site: Site) -> None:
    """Let the cloud check its hosts before they open."""
    checking = {**CLOUD, "capabilities": {"healthCheck": True}}
    good(site.cloud.put("/v1/providers/cloud", json=checking))


def test_a_host_that_is_checked_opens_after_the_provisioner_says_that_it_is_in_order(
    site: Site,
) -> None:
    check_hosts(site)
    site.submit(3)
    site.round()
    site.obtain("R1", "m1")
    site.round()

    closed = site.round()
    (name,) = [host for host in site.hosts() if host != "own-1"]
    assert site.hosts()[name] is HostState.DRAINING
    assert [host.name for host in closed.snapshot.hosts] == ["own-1"]
    site.round()
    entry = good(site.cloud.get("/v1/instances/cloud/m1"))
    assert (entry["state"], entry["host"], entry["reported_as"]) == ("starting", None, name)
    assert site.round().result.demand.order == ()
    assert site.jobs_on(name) == []

    order(site.cloud, {"command": "pass-check", "instance": "cloud/m1"})
    site.round()
    assert site.hosts()[name] is HostState.OPEN
    assert len(site.jobs_on(name)) == 2


def test_a_host_that_fails_its_check_stays_closed_and_is_removed_when_it_is_gone(
    site: Site,
) -> None:
    check_hosts(site)
    site.submit(3)
    site.round()
    site.obtain("R1", "m1")
    for _ in range(3):
        site.round()
    (name,) = [host for host in site.hosts() if host != "own-1"]

    order(site.cloud, {"command": "miss-join", "instance": "cloud/m1", "why": "no scratch disk"})
    again = site.round()
    assert again.result.demand.order == (("c4", 1),)
    assert site.hosts()[name] is HostState.DRAINING

    back = {"return_id": "B1", "instances": ["cloud/m1"], "why": "its health check did not pass"}
    order(site.cloud, {"command": "start-return", **back})
    site.round()
    assert site.hosts()[name] is HostState.DRAINING
    order(site.cloud, {"command": "confirm-return", "return_id": "B1", "instance": "cloud/m1"})
    site.round()
    assert name not in site.hosts()
    assert site.jobs_on(name) == []


def with_an_idle_host(site: Site) -> str:
    """A provisioned host without a job; its name."""
    site.obtain("R1", "m1")
    site.round()
    done = site.round()
    (name,) = [host.name for host in done.snapshot.hosts if host.instance]
    return name


def start_drain(site: Site) -> None:
    order(site.cloud, {"command": "start-drain", "instance": "cloud/m1", "why": "idle"})


def test_a_drained_host_is_closed_looked_at_returned_and_only_then_removed(site: Site) -> None:
    name = with_an_idle_host(site)
    start_drain(site)

    site.round()
    assert site.hosts()[name] is HostState.DRAINING
    site.round()
    (drain,) = good(site.cloud.get("/v1/drains"))["items"]
    assert (drain["host"], drain["state"]) == (name, "empty")

    back = {"return_id": "B1", "instances": ["cloud/m1"], "why": "drained"}
    order(site.cloud, {"command": "start-return", **back})
    site.round()
    assert name in site.hosts()
    order(site.cloud, {"command": "confirm-return", "return_id": "B1", "instance": "cloud/m1"})
    site.round()
    assert name not in site.hosts()
    assert good(site.cloud.get("/v1/drains"))["items"] == []
    assert site.round().snapshot.hosts[0].name == "own-1"


def test_a_job_that_slipped_in_keeps_the_host(site: Site) -> None:
    name = with_an_idle_host(site)
    site.submit(2)
    before = site.round()
    assert site.jobs_on(name)
    start_drain(site)

    site.round()
    site.round()

    instance = good(site.cloud.get("/v1/instances/cloud/m1"))
    assert instance["state"] == "joined"
    site.round()
    assert site.hosts()[name] is HostState.OPEN
    assert before.result.allocations


def test_a_host_that_is_drained_takes_no_job_even_before_the_batch_system_knows(site: Site) -> None:
    name = with_an_idle_host(site)
    start_drain(site)
    site.submit(4)

    site.round()

    assert site.jobs_on(name) == []
    assert site.jobs_on("own-1") == ["1"]


def test_an_own_host_is_drained_by_hand_and_its_jobs_requeued_at_the_deadline(site: Site) -> None:
    site.submit(1)
    site.round()
    wish = {"deadline": "2026-01-01T00:00:00Z", "at_deadline": "requeue"}
    good(site.running.admin.post("/v1/hosts/own-1/drain", json=wish))

    for _ in range(4):
        site.round()

    (drain,) = good(site.cloud.get("/v1/drains"))["items"]
    assert (drain["state"], site.jobs_on("own-1")) == ("empty", [])
    assert [one.job.id for one in site.file.read().waiting] == ["1"]
    good(site.running.admin.post("/v1/hosts/own-1/open", json={}))
    site.round()
    site.round()
    assert site.jobs_on("own-1") == ["1"]


def test_tokens_that_jobs_hold_are_reported_with_those_that_start_now(site: Site) -> None:
    lic = {"owned": 2, "provider": None, "max_borrow": 0, "step": 1, "idle_return_after": "1h", "min_hold": "0s"}  # fmt: skip
    good(site.running.admin.put("/v1/shared/lic", json=lic))
    site.submit(1, "rusage[lic=2]")

    done = site.round()

    assert [one.name for one in done.snapshot.shared] == ["lic"]
    assert good(site.cloud.get("/v1/bookings"))["occupied"] == {"lic": 2}


def test_a_view_that_does_not_fit_runs_no_session_and_the_driver_goes_on(site: Site) -> None:
    site.submit(1, "select[type ==")

    assert site.driver.round() is None

    assert good(site.cloud.get("/v1/session"))["result"] is None


def test_a_requirement_that_cannot_be_read_is_told_with_its_job_until_there_is_a_session_again(
    site: Site,
) -> None:
    site.submit(1)
    site.round()
    site.submit(1, "rusage[mem=1]")
    site.submit(1, "select[mem >")

    assert site.driver.round() is None

    status = good(site.cloud.get("/v1/status"))
    assert status["no_session"] == (
        "the requirement of job 3 cannot be read, 'select[mem >': column 13: expected a number, a text or"
        " true/false, found the end"
    )
    known = {"XCE_ADDRESS": site.running.address, "XCE_TOKEN": TOKENS[Role.VIEWER]}
    shown = CliRunner().invoke(operators, ["status"], env=known)
    assert "no session now: the requirement of job 3 cannot be read" in shown.output

    site.file.change(lambda state: state.model_copy(update={"waiting": state.waiting[:-1]}))
    site.round()
    assert good(site.cloud.get("/v1/status"))["no_session"] is None


def test_a_snapshot_that_is_not_taken_keeps_the_demand_from_nobody(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(client: Client, snapshot: Snapshot) -> None:
        raise RejectedError("the snapshot is too large")

    monkeypatch.setattr(Client, "post_snapshot", refuse)
    site.submit(3)

    site.round()

    assert good(site.cloud.get("/v1/session"))["result"]["demand"]["order"] == [["c4", 1]]


# ---------------------------------------------------------------------- the process
def test_the_daemon_runs_rounds_and_stops(service: Running, tmp_path: Path) -> None:
    config = config_of(service.address, tmp_path / "batch.json", session_spacing="1s")

    SchedulerService(config).run(signals=False, rounds_max=1)

    assert good(service.admin.get("/v1/session"))["number"] == 1


def test_what_the_daemon_saw_and_said_is_recorded_and_says_the_same_again(
    service: Running, tmp_path: Path
) -> None:
    good(service.admin.put("/v1/providers/cloud", json=CLOUD))
    file = FakeFile(tmp_path / "batch.json")
    jobs = [PendingJob(id="new", resreq="")] * 3
    now = SystemClock().now()
    file.change(lambda state: fake_state.submitted(state, jobs, HOUR, now))
    config = config_of(
        service.address, file.path, record=str(tmp_path / "r.rec.gz")
    )  # fmt: skip

    for _ in range(2):  # started again, it records on in another file
        SchedulerService(config).run(signals=False, rounds_max=2)

    for name in ("r.rec.gz", "r.2.rec.gz"):
        verdict = verify(read_lines(tmp_path / name), name)
        assert verdict.mismatch is None
        assert (verdict.counts.sessions, verdict.counts.events, verdict.whole) == (2, 1, True)


def test_a_caller_without_the_role_is_told_and_ends(service: Running, tmp_path: Path) -> None:
    config = config_of(service.address, tmp_path / "batch.json")
    (tmp_path / "token").write_text(TOKENS[Role.VIEWER])

    with pytest.raises(ForbiddenError, match="viewer may not"):
        SchedulerService(config).run(signals=False, rounds_max=1)


def test_a_controller_that_is_away_costs_rounds_only(tmp_path: Path) -> None:
    config = config_of("http://127.0.0.1:1", tmp_path / "batch.json")
    client = Client("http://127.0.0.1:1", token="x", sleep=lambda _: None)
    clock = SystemClock()
    source = FakeScheduler(
        FakeFile(tmp_path / "batch.json"), clock, boot_time=None, wait=lambda _: None
    )
    driver = LiveScheduler(config, client, source, clock=clock)
    waits: list[float] = []

    with pytest.raises(TransientError):
        driver.round()
    driver.run(wait=waits.append, rounds_max=3)

    assert waits == [1.0, 2.0]
