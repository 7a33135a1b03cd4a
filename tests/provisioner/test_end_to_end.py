"""All three daemons: jobs wait in a batch system, hosts of a cloud made of scripts come for them, run them, and go back."""

import threading
from datetime import timedelta
from pathlib import Path

from tests.provisioner.test_daemon import PATIENCE_S, RHYTHM, provisioning, until
from tests.service.running import TOKENS, Running, running
from xce.adapters.client import Client
from xce.adapters.clock import SystemClock
from xce.adapters.providers.install import SIMULATED_CONF, Comes, install
from xce.adapters.schedulers import fake_state
from xce.adapters.schedulers.fake import FakeFile
from xce.adapters.schedulers.service import SchedulerService
from xce.adapters.store.open import open_log
from xce.adapters.store.verify import verify
from xce.domain.engine.messages import Role
from xce.domain.formats.provisioner_config import ProvisionerConfig
from xce.domain.formats.scheduler_config import SchedulerConfig
from xce.domain.formats.snapshot import Host, PendingJob, Settings

JOBS = 3


def batch_system(folder: Path) -> FakeFile:
    """Return a batch system without a free slot, in which hosts are idle at once."""
    file = FakeFile(folder / "batch.json")
    own = Host(name="own-1", total={"slots": 0})
    settings = Settings(idle_host_after=timedelta(0))
    file.change(
        lambda state: fake_state.with_host(state, own),
        lambda state: state.model_copy(update={"settings": settings}),
    )
    return file


def scheduler_of(controller: Running, folder: Path, file: FakeFile) -> SchedulerService:
    token = folder / "scheduler.token"
    token.write_text(TOKENS[Role.SCHEDULER])
    return SchedulerService(
        SchedulerConfig.model_validate(
            {
                "controller": {"addresses": [controller.address], "token_file": str(token)},
                "source": {"fake": {"path": str(file.path), "boot_time": "0s"}},
                "session_interval": "1s",
                "session_spacing": "1s",
            }
        )
    )


def provisioner_of(controller: Running, folder: Path) -> ProvisionerConfig:
    install(Comes.SIMULATED, folder / "cloud", conf=SIMULATED_CONF | {"resources": []})
    token = folder / "p.token"
    token.write_text(TOKENS[Role.PROVISIONER])
    config = ProvisionerConfig.model_validate(
        {
            "name": "provisioner-1",
            "controller": {"addresses": [controller.address], "token_file": str(token)},
            "state": str(folder / "state"),
            "scripts": [{"name": "cloud", "folder": str(folder / "cloud")}],
        }
    )
    return config.model_copy(update={"rhythm": RHYTHM})


def test_jobs_that_wait_get_hosts_run_and_the_hosts_go_back(tmp_path: Path) -> None:
    file = batch_system(tmp_path)
    now = SystemClock().now()
    jobs = [PendingJob(id="new", resreq="")] * JOBS
    file.change(lambda state: fake_state.submitted(state, jobs, timedelta(seconds=1), now))
    with running(tmp_path) as controller:
        scheduler = scheduler_of(controller, tmp_path, file)
        thread = threading.Thread(target=lambda: scheduler.run(signals=False), daemon=True)
        with (
            Client(controller.address, token=TOKENS[Role.VIEWER]) as client,
            provisioning(provisioner_of(controller, tmp_path)),
        ):
            thread.start()
            until("all jobs to have run", lambda: len(file.read().ended) == JOBS)
            hosts = {host for one in file.read().ended for host in one.hosts}
            assert "own-1" not in hosts
            until("all hosts to have gone back", lambda: not list(client.instances()))
            until(
                "the batch system to be as before",
                lambda: [host.name for host in file.read().hosts] == ["own-1"],
            )
            assert list(client.orphans()) == []
            assert {one.deed.value for one in client.decisions()} >= {"request", "return"}
            scheduler.stop()
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
    with open_log(tmp_path / "events.db", read_only=True) as log:
        report = verify(log)
    assert report.passed, [str(f) for check in report.checks for f in check.findings]
