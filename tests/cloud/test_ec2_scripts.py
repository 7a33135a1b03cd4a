"""The provider ``ec2`` as programs: installed, checked, and through a full cycle behind the port."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cloud import ec2
from tests.cloud.ec2 import TEMPLATE
from tests.cloud.moto import CREDENTIALS, Moto
from tests.cloud.proxy import ApiProxy, Fault
from xce.adapters.providers.check import check_provider
from xce.adapters.providers.ec2.settings import CONF, Ec2Settings, read_settings
from xce.adapters.providers.evidence import Evidence
from xce.adapters.providers.install import Comes, install
from xce.adapters.providers.script_provider import ScriptProvider
from xce.domain.errors import InputError
from xce.domain.formats.provider import Kind
from xce.domain.formats.script_provider import ScriptSettings
from xce.domain.ports import Accepted, Ask, MachineResult, Refused, RequestStatus

NO_TYPE: dict[str, object] = {"templateId": "t", "launch": {"ImageId": "ami-1"}}
NOW = datetime(2026, 3, 2, 10, tzinfo=UTC)


@pytest.fixture
def settings(api: ApiProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScriptSettings:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    install(Comes.EC2, tmp_path / "p", conf=ec2.conf(api.url, attempts=2))
    return ScriptSettings(
        name="aws",
        folder=str(tmp_path / "p"),
        secrets=tuple(CREDENTIALS),
        call_limit=timedelta(seconds=240),
    )


def ask(tag: str, amount: int = 1, item: str = TEMPLATE) -> Ask:
    return Ask(tag=tag, kind=Kind.HOST, item=item, amount=amount)


def test_a_full_cycle_behind_the_port(
    settings: ScriptSettings, api: ApiProxy, stand_in: Moto, tmp_path: Path
) -> None:
    calls: list[Evidence] = []
    provider = ScriptProvider(settings, tmp_path / "kept", on_call=calls.append)

    described = provider.describe(NOW)
    assert described is not None
    assert [one.template_id for one in described.templates] == [TEMPLATE, ec2.SPOT]
    assert described.templates[0].provides == {"slots": 2, "mem": 8192}
    assert described.capabilities.request_tag
    assert described.capabilities.listing

    # The first answer is lost on its way, and the second call finds what was launched.
    api.befall(Fault("RunInstances", times=2, silent=True, acts=True))
    with pytest.raises(Exception, match="unknown outcome"):
        provider.ask(ask("R1", 2), NOW)
    accepted = provider.ask(ask("R1", 2), NOW)
    assert isinstance(accepted, Accepted)
    status = provider.status(accepted.provider_request_id, NOW)
    assert status.status is RequestStatus.COMPLETE
    machines = {one.machine: one.name for one in status.machines}
    assert [one.result for one in status.machines] == [MachineResult.SUCCEED] * 2
    assert machines.keys() == stand_in.alive()
    holdings = provider.holdings(NOW)
    assert holdings is not None
    assert {(one.theirs, one.tag, one.item) for one in holdings} == {
        (one, "R1", TEMPLATE) for one in machines
    }

    api.befall(Fault("RunInstances", code="InsufficientInstanceCapacity", status=500))
    refused = provider.ask(ask("R2"), NOW)
    assert isinstance(refused, Refused)
    assert refused.code == "InsufficientInstanceCapacity"
    assert provider.take_backs(machines, NOW) == ()

    returned = provider.give_back("return-1", tuple(machines), (), NOW, names=machines)
    assert isinstance(returned, Accepted)
    ended = provider.return_status("return-1", NOW, theirs=returned.provider_request_id)
    assert ended.gone == machines.keys()
    assert stand_in.alive() == set()

    kept = "".join(one.output + one.log + str(one.arguments) for one in calls)
    assert not [one for one in CREDENTIALS.values() if one in kept]
    assert all(one.log == "" for one in calls)


def test_the_check_finds_it_fit_and_leaves_nothing(
    settings: ScriptSettings, stand_in: Moto, tmp_path: Path
) -> None:
    (tmp_path / "kept").mkdir()

    report = check_provider(settings, tmp_path / "kept", wait_s=240, tag="check-1")

    assert report.fit, report.findings
    assert {"hosts", "request tags", "listing", "take-backs"} <= set(report.supports)
    assert report.left == ()
    assert stand_in.alive() == set()


def test_what_is_installed_is_a_configuration_to_begin_with(tmp_path: Path) -> None:
    names = install(Comes.EC2, tmp_path)

    read, folder = read_settings(tmp_path)
    assert read == Ec2Settings.model_validate(CONF)
    assert (folder / str(read.templates[0].user_data_file)).is_file()
    assert {path.name for path in (tmp_path / "scripts").iterdir()} == {f"{n}.sh" for n in names}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"regoin": "x"}, "regoin: unknown field"),
        ({"owner": "a*"}, "owner"),
        ({"tags": {"xce:owner": "x"}}, "are not for sites"),
        ({"endpointUrl": "https://user:secret@host"}, "without user and password"),
        ({"templates": []}, "templates"),
        ({"templates": [NO_TYPE]}, "wanted InstanceType"),
        (
            {"templates": [{"templateId": "t", "launch": {"InstanceType": "a", "MaxCount": 1}}]},
            "MaxCount is set by the provider",
        ),
        ({"templates": [CONF["templates"][0]] * 2}, "c7i-xlarge is there twice"),
    ],
)
def test_a_wrong_configuration_says_where(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    (tmp_path / "ec2.json").write_text(json.dumps({**CONF, **change}))

    with pytest.raises(InputError) as error:
        read_settings(tmp_path)

    assert said in str(error.value)
    assert "secret" not in str(error.value)


def test_a_missing_configuration_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ec2\.json"):
        read_settings(tmp_path)
