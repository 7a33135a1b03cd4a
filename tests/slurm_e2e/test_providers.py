"""The providers for Slurm, against a real one: the check of the contract, and licences of slurm.conf."""

import json
import os
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tools.slurm_lab.lab import Cluster, Lab, wait_for

from tests.slurm_e2e.ground import free_span, need_slurm, short_folder
from xce.adapters.providers.check import check_provider
from xce.adapters.providers.install import Comes, install
from xce.adapters.providers.slurm_local.settings import records
from xce.domain.formats.script_provider import ScriptSettings

pytestmark = pytest.mark.slow


@pytest.fixture
def lab() -> Iterator[Lab]:
    need_slurm(database=False)
    with short_folder() as folder, free_span() as port:
        lines = tuple(records(templates(port)))
        cluster = Cluster("ca", own_cpus=4, lines=lines, licences="other:1,tool:2")
        made = Lab(folder / "lab", port, (cluster,))
        made.start()
        try:
            yield made
        finally:
            made.stop()


def templates(port: int) -> dict[str, Any]:
    one = {
        "templateId": "small",
        "nodes": "small[1-3]",
        "port": port + 60,
        "cpus": 2,
        "memory": 500,
    }
    return {"templates": [one]}


def test_hosts_pass_the_check_of_the_contract_and_slurmctld_survives_it(
    lab: Lab, tmp_path: Path
) -> None:
    folder = tmp_path / "hosts"
    conf = {**templates(lab.port), "slurmConf": str(lab.conf("ca"))}
    install(Comes.SLURM_LOCAL, folder, conf=conf)
    settings = ScriptSettings(
        name="hosts", folder=str(folder), call_limit=timedelta(seconds=60), path=os.environ["PATH"]
    )

    report = check_provider(settings, tmp_path / "kept", wait_s=60.0, tag="check")

    assert report.fit, report
    assert not report.left
    lab.run("ca", "scontrol", "reconfigure")
    wait_for(lambda: set(lab.nodes("ca")) == {"caown1"}, "only the own node is left")


def test_a_host_that_a_killed_slurmctld_has_forgotten_comes_back(lab: Lab, tmp_path: Path) -> None:
    conf = {**templates(lab.port), "slurmConf": str(lab.conf("ca"))}
    install(Comes.SLURM_LOCAL, tmp_path, conf=conf)
    call = partial(call_script, tmp_path)
    template = {"templateId": "small", "machineCount": 1}
    asked = call("requestMachines", template=template, requestTag="R1")
    (machine,) = call("getRequestStatus", requests=[asked])["requests"][0]["machines"]
    wait_for(lambda: lab.nodes("ca").get("small1") == "idle", "it has joined")

    lab.kill("ca/pids/slurmctld", "slurmctld")
    for place in (lab.folder / "ca" / "state").glob("node_state*"):  # it was not saved
        place.unlink()
    lab.start_slurmctld("ca")
    wait_for(lambda: "caown1" in lab.run("ca", "sinfo", "-h", "-N", check=False), "it serves again")
    assert "small1" not in lab.nodes("ca")

    def is_back() -> bool:
        (listed,) = call("listMachines")["machines"]
        assert listed["machineId"] == machine["machineId"]
        return lab.nodes("ca").get("small1") == "idle"

    wait_for(is_back, "it has registered again")
    comment = f"Comment=xce:{machine['machineId']}"
    wait_for(
        lambda: bool(call("listMachines")) and comment in lab.run("ca", "scontrol", "show", "node", "small1"),
        "it says again which machine it is",
    )  # fmt: skip
    back = call("requestReturnMachines", machines=[{"machineId": machine["machineId"]}])
    assert call("getRequestStatus", requests=[back])["requests"][0]["status"] == "complete"
    wait_for(lambda: set(lab.nodes("ca")) == {"caown1"}, "only the own node is left")


def call_script(folder: Path, script: str, **given: Any) -> dict[str, Any]:
    """Call an installed script as the caller of scripts does; its state is below the same folder."""
    data = folder / "data"
    data.mkdir(exist_ok=True)
    place = folder / "input.json"
    place.write_text(json.dumps(given))
    ran = subprocess.run(
        [folder / "scripts" / f"{script}.sh", "-f", place],
        env={"PATH": os.environ["PATH"], "PRO_CONF_DIR": str(folder), "PRO_DATA_DIR": str(data)},
        capture_output=True, check=True,
    )  # fmt: skip
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


def test_licences_of_slurm_conf_follow_what_is_lent(lab: Lab, tmp_path: Path) -> None:
    conf = {"licences": [{"name": "tool", "slurmConf": str(lab.conf("ca")), "capacity": 5}]}
    install(Comes.SLURM_LICENCES, tmp_path, conf=conf)
    call = partial(call_script, tmp_path)
    jobs = [lab.submit("ca", "sleep 300", "-L", "tool:1") for _ in range(3)]

    def running() -> int:
        return sum(lab.jobs("ca").get(job) == "RUNNING" for job in jobs)

    wait_for(lambda: running() == 2, "two have a token")
    asked = call("requestResources", resource="tool", amount=1, requestTag="R1")
    (grant,) = call("getRequestStatus", requests=[asked])["requests"][0]["grants"]
    wait_for(lambda: running() == 3, "the third has one too")
    assert call("observeResources")["resources"] == [{"name": "tool", "issued": 3, "inUse": 3}]

    back = {"grants": [{"grantId": grant["grantId"], "amount": 1}]}
    refused = call("requestReturnResources", **back, requestTag="B1")
    (status,) = call("getRequestStatus", requests=[refused])["requests"]
    assert (status["status"], status["grants"][0]["message"]) == ("complete_with_error", "jobs hold it")  # fmt: skip
    lab.run("ca", "scancel", jobs[0])
    wait_for(lambda: call("observeResources")["resources"][0]["inUse"] == 2, "one is free")
    taken = call("requestReturnResources", **back, requestTag="B2")
    assert call("getRequestStatus", requests=[taken])["requests"][0]["status"] == "complete"
    assert "Licenses=other:1,tool:2\n" in lab.conf("ca").read_text()
    assert call("listGrants") == {"grants": []}
