"""The provider ``command``: any command that prints JSON, as a provider."""

import json
from datetime import timedelta
from pathlib import Path

from tests.unit.providers.scripts import NOW
from xce.adapters.providers.command import arguments_of
from xce.adapters.providers.install import Comes, install
from xce.adapters.providers.script_provider import ScriptProvider
from xce.domain.formats.provider import Kind
from xce.domain.formats.script_provider import ScriptSettings
from xce.domain.ports import Accepted, Ask, Refused, RequestStatus

CLOUD = """#!/bin/sh
case "$1" in
create) [ "$2" = small ] || { echo "no type $2"; exit 1; }; echo '{"job": {"id": 17}, "count": '"$3"'}' ;;
show) echo '[{"vm": "vm-1", "host": "n1", "state": "up"}]' ;;
delete) shift; echo '{"job": {"id": "del-'"$*"'"}}' ;;
esac
"""


def made(tmp_path: Path) -> ScriptProvider:
    cloud = tmp_path / "cloud"
    cloud.write_text(CLOUD)
    cloud.chmod(0o755)
    conf = {
        "requestMachines": {
            "run": [str(cloud), "create", "{template.templateId}", "{template.machineCount}"],
            "answer": {"requestId": "job.id", "message": "=asked"},
        },
        "getRequestStatus": {
            "run": [str(cloud), "show", "{requests.0.requestId}"],
            "each": "requests",
            "list": "",
            "as": "machines",
            "answer": {"machineId": "vm", "name": "host", "result": "=succeed"},
        },
        "requestReturnMachines": {
            "run": [str(cloud), "delete", "{machines.*.machineId}"],
            "answer": {"requestId": "job.id"},
        },
    }
    install(Comes.COMMAND, tmp_path / "p", conf=conf)
    settings = ScriptSettings(
        name="p", folder=str(tmp_path / "p"), call_limit=timedelta(seconds=60)
    )
    return ScriptProvider(settings, tmp_path / "kept")


def test_a_command_that_prints_json_is_a_provider(tmp_path: Path) -> None:
    provider = made(tmp_path)

    asked = provider.ask(Ask("R1", Kind.HOST, "small", 2), NOW)
    status = provider.status("17", NOW)
    returned = provider.give_back("B1", ("vm-1", "vm-2"), (), NOW)

    assert asked == Accepted("17")
    assert status.status is RequestStatus.COMPLETE
    assert [(one.machine, one.name) for one in status.machines] == [("vm-1", "n1")]
    assert returned == Accepted("del-vm-1 vm-2")


def test_what_the_command_says_when_it_fails_is_the_reason(tmp_path: Path) -> None:
    answer = made(tmp_path).ask(Ask("R1", Kind.HOST, "large", 2), NOW)

    assert answer == Refused("Failed", "no type large")


def test_words_in_braces_are_paths_into_the_input() -> None:
    given = json.loads('{"a": {"b": 3}, "list": [{"x": "1"}, {"x": "2 3"}]}')

    made = arguments_of(
        ["--b={a.b}", "{list.*.x}", "{list.1.x}", "{input}", "{a.none}"], given, "/f"
    )

    assert made == ["--b=3", "1", "2 3", "2 3", "/f", ""]
