"""What a script of the provider ``ec2`` says when it cannot even begin: always one line of JSON, and exit code 1."""

import json
from pathlib import Path

import pytest

from tests.cloud import ec2
from tests.cloud.moto import CREDENTIALS
from xce.adapters.providers.ec2 import __main__ as program


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PRO_CONF_DIR", str(tmp_path))
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    conf = ec2.conf("http://127.0.0.1:9", attempts=1)
    (tmp_path / "ec2.json").write_text(json.dumps(conf))
    (tmp_path / "in.json").write_text("{}")
    return tmp_path


def run(folder: Path, script: str = "getProviderDescription") -> int:
    return program.main([script, "-f", str(folder / "in.json")])


def said(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the reason of a failure."""
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    return str(json.loads(out)["message"])


def test_a_script_answers_on_standard_output(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder) == 0

    out, log = capsys.readouterr()
    assert json.loads(out)["capabilities"] == {"requestTag": True, "listing": True}
    assert log == ""


@pytest.mark.parametrize("arguments", [[], ["requestMachines"], ["noSuch", "-f", "x"]])
def test_a_call_that_is_none_is_a_usage_error(arguments: list[str]) -> None:
    assert program.main(arguments) == 2


def test_a_missing_library_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def found(_name: str) -> None:
        return None

    monkeypatch.setattr(program, "find_spec", found)

    assert run(folder) == 1
    assert "pip install 'xce[ec2]'" in said(capsys)


def test_a_missing_folder_and_a_wrong_configuration_are_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "ec2.json").write_text("{")
    assert run(folder) == 1
    assert said(capsys).startswith("Error Code: InvalidConfiguration: ec2.json")

    monkeypatch.delenv("PRO_CONF_DIR")
    assert run(folder) == 1
    assert "PRO_CONF_DIR" in said(capsys)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"template": {}}', '{"template": {"templateId": [], "x": 1}}']
)
def test_an_input_that_is_none_is_a_failure(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (folder / "in.json").write_text(text)

    assert run(folder, "requestMachines") == 1
    assert "input" in said(capsys)


def test_missing_credentials_are_a_failure_of_authentication(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    conf = ec2.conf("http://127.0.0.1:9", profile="no-such-profile")
    (folder / "ec2.json").write_text(json.dumps(conf))

    assert run(folder, "listMachines") == 1
    assert said(capsys).startswith("Error Code: AuthFailure")


def test_an_api_that_is_away_says_when_to_come_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, "listMachines") == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["retryAfter"] == 30
    assert answer["message"].startswith("Error Code: Unreachable")
