"""``xce session``: what goes where, for people and for programs."""

import io
import json
from pathlib import Path

import pytest

from tests.conftest import ROOT
from xce.adapters.cli import main
from xce.adapters.cli.session import session
from xce.domain.errors import InputError
from xce.domain.formats.session_result import SessionResult

CASES = ROOT / "examples" / "field-cases"
CASE = str(CASES / "f13_tick1.json")


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr("sys.argv", ["xce", "session", *words])
    with pytest.raises(SystemExit) as ended:
        main.main()
    code = ended.value.code
    assert isinstance(code, int)
    return code


def test_with_json_one_document_goes_to_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, CASE, "--json") == 0

    said = capsys.readouterr().out
    assert SessionResult.from_json(said).demand.order == (("T", 1),)
    assert said.count("\n") == 1


def test_a_hyphen_reads_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path(CASE).read_bytes())))

    assert run(monkeypatch, "-", "--json") == 0
    assert json.loads(capsys.readouterr().out)["format"] == "xce.session/1"


def test_expand_writes_every_reason_at_its_job(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, CASE, "--json", "--expand")

    said = json.loads(capsys.readouterr().out)
    assert said["reason_sets"] == []
    assert {each["reasons"] for each in said["pending"]} == {None}
    assert said["pending"][0]["expanded"][0]["resource"] == "slots"


def test_for_people_there_are_tables_that_fold_equal_jobs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, CASE, "--trace") == 0

    said = capsys.readouterr().out
    assert "j3, j4, j5, j6 and 24 more" in said
    assert "hosts of T" in said
    assert "job j1: would fit on template T (1 host)" in said


def test_a_requirement_that_cannot_be_read_is_named_with_the_file_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    document = json.loads(Path(CASE).read_text())
    document["pending"][2]["resreq"] = "rusage[simA=1G]"
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps(document))

    assert run(monkeypatch, str(file)) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"xce: {file}: pending[2].resreq: column 8: simA is a count")
    assert said.count("\n") == 1


def test_a_document_of_another_format_is_named_with_the_command_that_reads_it() -> None:
    text = (ROOT / "examples/round.json").read_bytes()

    with pytest.raises(InputError) as caught:
        session(text, "round.json")

    (line,) = caught.value.lines()
    assert line == (
        "round.json: format: Input should be 'xce.snapshot/1', found 'xce.policy/1': "
        "it is the input of a round of the policy; see: xce policy FILE"
    )


def test_a_format_that_is_none_of_ours_is_named_as_it_is() -> None:
    with pytest.raises(InputError) as caught:
        session('{"format": "swf/2"}', "x")

    assert caught.value.lines() == ["x: format: Input should be 'xce.snapshot/1', found 'swf/2'"]
