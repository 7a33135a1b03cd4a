"""The scripts of the simulated provider: what they say of a configuration that is wrong."""

import json
import subprocess
from pathlib import Path

import pytest

from xce.adapters.providers.install import Comes, install


def called(folder: Path, text: str) -> tuple[int, str, str]:
    """What a script does with a text as its configuration: exit code, message, standard error."""
    install(Comes.SIMULATED, folder)
    (folder / "conf" / "simulated.json").write_text(text)
    (folder / "input.json").write_text("{}")
    done = subprocess.run(
        [folder / "scripts" / "getAvailableTemplates.sh", "-f", folder / "input.json"],
        env={"PRO_CONF_DIR": str(folder), "PRO_DATA_DIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, json.loads(done.stdout).get("message"), done.stderr


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ("[7]", "faults[0]: wanted an object such as"),
        ('["lost"]', "faults[0]: wanted an object such as"),
        ("[{}]", "faults[0]: fault: wanted one of refuse, throttled,"),
        ('[{"fault": "lost"}, {"fault": "lots"}]', "faults[1]: fault: wanted one of"),
        ('[{"fault": ["lost"]}]', "faults[0]: fault: wanted one of"),
        ('[{"fault": "lost", "script": "ask"}]', "faults[0]: script: wanted one of"),
        ('[{"fault": "lost", "calls": 2}]', "faults[0]: calls: wanted a list of numbers"),
        ('[{"fault": "lost", "calls": ["2"]}]', "faults[0]: calls: wanted a list of numbers"),
        ('[{"fault": "slow", "seconds": "long"}]', "faults[0]: seconds: wanted a number"),
        ('[{"fault": "slow", "seconds": -1}]', "faults[0]: seconds: wanted a number"),
        ('[{"fault": "slow", "seconds": NaN}]', "faults[0]: seconds: wanted a number"),
        ('{"fault": "lost"}', "faults: wanted a list"),
        ("null", "faults: wanted a list"),
    ],
)
def test_a_fault_that_is_none_is_named_and_nothing_is_done(
    tmp_path: Path, faults: str, said: str
) -> None:
    code, message, errors = called(tmp_path, f'{{"faults": {faults}}}')

    assert (code, errors) == (1, "")
    assert message.startswith(f"simulated.json: {said}")
    assert not (tmp_path / "simulated.json").exists(), "the call is not counted"


@pytest.mark.parametrize(
    ("text", "said"), [("{", "Expecting property name"), ("[]", "wanted an object")]
)
def test_a_configuration_that_is_no_object_is_said_to_be_none(
    tmp_path: Path, text: str, said: str
) -> None:
    code, message, errors = called(tmp_path, text)

    assert (code, errors) == (1, "")
    assert message.startswith(f"simulated.json: {said}")


def test_faults_that_do_not_strike_change_nothing(tmp_path: Path) -> None:
    slow = '{"fault": "slow", "seconds": 0.5, "calls": []}'
    other = '{"fault": "hang", "script": "listMachines"}'

    assert called(tmp_path, f'{{"faults": [{slow}, {other}]}}') == (0, "", "")
