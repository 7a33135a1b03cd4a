"""A provider of others, as it comes from its registry: Open Resource Broker in its host factory mode, behind our caller."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cloud.moto import IMAGE, REGION, Moto
from tests.cloud.proxy import ApiProxy
from xce.adapters.providers.script_provider import ScriptProvider
from xce.domain.formats.provider import Kind
from xce.domain.formats.script_provider import ScriptSettings
from xce.domain.ports import Accepted, Ask, MachineResult, RequestStatus

NOW = datetime(2026, 3, 2, 10, tzinfo=UTC)
TEMPLATE = "small"


@pytest.fixture
def broker(api: ApiProxy, stand_in: Moto, tmp_path: Path) -> ScriptSettings:
    """Set it up with its own command, as its manual says, with one template."""
    home = tmp_path / "orb"
    programs = Path(sys.executable).parent
    environment = {
        "ORB_CONFIG_DIR": str(home / "conf"),
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": api.url,
    }
    path = f"{programs}:/usr/local/bin:/usr/bin:/bin"
    words = ["--non-interactive", "--scheduler", "hostfactory", "--provider-type", "aws"]
    words += ["--config-dir", str(home / "conf"), "--scripts-dir", str(home / "scripts")]
    words += ["--aws-region", REGION]
    words += ["--subnet-ids", stand_in.first("DescribeSubnets", "subnetId")]
    words += ["--security-group-ids", stand_in.first("DescribeSecurityGroups", "groupId")]
    home.mkdir()
    subprocess.run(
        [programs / "orb", "init", *words],
        cwd=home,
        env={**environment, "PATH": path, "HOME": str(home)},
        check=True,
        capture_output=True,
        timeout=300,
    )
    template = {
        "templateId": TEMPLATE,
        "maxNumber": 10,
        "imageId": IMAGE,
        "vmTypes": {"t3.medium": 2},
        "priceType": "ondemand",
        "providerApi": "RunInstances",
        "providerType": "aws",
    }
    (home / "conf" / "aws_templates.json").write_text(json.dumps({"templates": [template]}))
    return ScriptSettings(
        name="orb",
        folder=str(home),
        path=path,
        environment=environment,
        call_limit=timedelta(seconds=240),
    )


def test_a_full_cycle_through_an_unmodified_broker(
    broker: ScriptSettings, stand_in: Moto, tmp_path: Path
) -> None:
    provider = ScriptProvider(broker, tmp_path / "kept")

    described = provider.describe(NOW)
    assert described is not None
    assert described.contract == 1
    assert [one.template_id for one in described.templates] == [TEMPLATE]

    accepted = provider.ask(Ask(tag="R1", kind=Kind.HOST, item=TEMPLATE, amount=2), NOW)
    assert isinstance(accepted, Accepted)
    status = provider.status(accepted.provider_request_id, NOW)
    for _ in range(20):
        if status.status is not RequestStatus.RUNNING:
            break
        status = provider.status(accepted.provider_request_id, NOW)
    machines = {one.machine: one.name for one in status.machines}
    assert len(machines) == 2
    assert machines.keys() == stand_in.alive()
    assert not [one for one in status.machines if one.result is MachineResult.FAIL]
    assert provider.take_backs(machines, NOW) == ()

    returned = provider.give_back("return-1", tuple(machines), (), NOW, names=machines)
    assert isinstance(returned, Accepted)
    theirs = returned.provider_request_id
    ended = provider.return_status("return-1", NOW, theirs=theirs)
    for _ in range(20):
        if ended.status is not RequestStatus.RUNNING:
            break
        ended = provider.return_status("return-1", NOW, theirs=theirs)
    assert ended.gone == machines.keys()
    assert stand_in.alive() == set()
