"""Hosts of EC2 beside a Slurm, as the page says: the user data that a machine is given is run, and its node joins, works and goes.

EC2 is a stand-in, and the machine is this one: ``curl`` and ``hostname`` say what they would say there, and slurmd reads its slurm.conf here.
"""

import base64
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.slurm_lab.lab import Cluster, Lab, wait_for

from tests.cloud import ec2, moto
from tests.cloud.ec2 import Ec2
from tests.cloud.moto import Moto
from tests.conftest import ROOT
from tests.slurm_e2e.ground import free_span, need_slurm, short_folder
from xce.adapters.clock import SystemClock
from xce.adapters.providers.slurm_local.settings import records
from xce.adapters.schedulers.slurm.commands import Commands
from xce.adapters.schedulers.slurm.reader import Reader
from xce.adapters.schedulers.slurm.source import SlurmScheduler
from xce.domain.formats.snapshot import HostState
from xce.domain.ports import SchedulerOrders

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs/how-to/slurm.md").read_text(encoding="utf-8")
#: Hosts that do not exist yet, on machines of their own: these records only let jobs in.
RECORDS = {"templates": [{"templateId": "large", "nodes": "record[1-2]", "cpus": 1, "memory": 500, "features": ["large"]}]}  # fmt: skip


@pytest.fixture
def lab() -> Iterator[Lab]:
    need_slurm(database=False)
    with short_folder() as folder, free_span() as port:
        made = Lab(folder / "lab", port, (Cluster("ca", lines=tuple(records(RECORDS))),))
        made.start()
        try:
            yield made
        finally:
            made.stop()


@pytest.fixture
def stand_in() -> Iterator[Moto]:
    with moto.running() as made:
        yield made


@pytest.fixture
def provider(stand_in: Moto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ec2:
    for name, value in moto.CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    shown = re.search(r"`cloud-init\.sh` is:\n\n```sh\n(.*?)```", PAGE, re.DOTALL)
    assert shown is not None
    (tmp_path / "cloud-init.sh").write_text(shown[1], encoding="utf-8")
    conf = ec2.conf(stand_in.url)
    conf["templates"][0] |= {"userDataFile": "cloud-init.sh", "attributes": {"large": True}}
    return Ec2(tmp_path, conf)


def user_data(stand_in: Moto, machine: str) -> str:
    """Return what EC2 gives a machine to run."""
    told = stand_in.act("DescribeInstanceAttribute", InstanceId=machine, Attribute="userData")
    found = re.search(r"<userData>\s*<value>([^<]+)</value>", told)
    assert found is not None, told
    return base64.b64decode(found[1]).decode()


def boot(lab: Lab, folder: Path, machine: str, name: str, script: str) -> None:
    """Run the user data of a machine here."""
    shims = folder / "bin"
    shims.mkdir()
    for program, says in (
        ("curl", f'case "$*" in *PUT*) echo a-token;; *a-token*instance-id*) echo {machine};; *) exit 22;; esac'),
        ("hostname", f"echo {name}"),
        ("slurmd", 'exec "$SLURMD" "$@"'),
    ):  # fmt: skip
        (shims / program).write_text(f"#!/bin/sh\n{says}\n")
        (shims / program).chmod(0o755)
    conf = str(lab.conf("ca"))
    told = re.sub(r"--conf-server \S+", f"-f {conf}", script)  # no munged of this machine's own
    assert told != script
    slurmd = lab.program("slurmd")
    environment = {**lab.environment("ca"), "PATH": f"{shims}:{os.environ['PATH']}", "SLURMD": slurmd}  # fmt: skip
    subprocess.run(["sh", "-c", told], env=environment, stdin=subprocess.DEVNULL, timeout=60, check=True)  # fmt: skip


def test_a_machine_of_ec2_makes_its_node_works_and_is_forgotten(
    lab: Lab, stand_in: Moto, provider: Ec2, tmp_path: Path
) -> None:
    run = Commands(conf=str(lab.conf("ca")))
    source = SlurmScheduler(Reader(run), run, SystemClock(), wait=lambda _: None)
    job = lab.submit("ca", "sleep 1", "-C", "large", "-n1")
    assert {one.id for one in source.view().pending} == {job}, "the records let it in"

    request = provider.request()
    (machine,) = provider.machines(request)
    (told,) = provider.status(request)["machines"]
    name = told["name"].split(".")[0]
    boot(lab, tmp_path, machine, name, user_data(stand_in, machine))

    def host() -> HostState | None:
        found = [one for one in source.view().hosts if one.name == name]
        assert not found or found[0].attributes["large"] is True
        return found[0].state if found and found[0].instance == machine else None

    wait_for(lambda: host() is HostState.OPEN, "its node says which machine it is")
    wait_for(lambda: lab.jobs("ca").get(job) == "COMPLETED", "the job has run")
    source.obey(SchedulerOrders(position=1, close=(name,)))
    assert host() is HostState.DRAINING
    wait_for(lambda: not [one for one in source.view().running if one.hosts[0].name == name], "it is empty")  # fmt: skip
    lab.kill(f"ca/pids/slurmd-{name}", "slurmd")
    provider.give_back([machine])

    source.obey(SchedulerOrders(position=2, remove=(name,)))
    assert name not in lab.run("ca", "scontrol", "--future", "-o", "show", "node")
    lab.run("ca", "scontrol", "reconfigure")
    wait_for(lambda: set(lab.nodes("ca")) == {"caown1"}, "slurmctld has survived that")
