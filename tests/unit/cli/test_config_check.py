"""``xce config check``: what it prints, and how it ends."""

import json
from pathlib import Path

import pytest
import typer

from tests.unit.settings.test_malformed_configurations import GOOD
from xce.adapters.cli.config import check
from xce.domain.errors import InputError


def written(folder: Path, text: str) -> str:
    path = folder / "site.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_fit_configuration_is_summed_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check(written(tmp_path, GOOD))

    out = capsys.readouterr().out
    assert "is fit for use" in out
    assert "4 hosts, 32 slots, 1 queues" in out
    assert "cloud, pool" in out


def test_a_fit_configuration_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, GOOD)

    check(file, as_json=True)

    answer = json.loads(capsys.readouterr().out)
    assert (answer["file"], answer["fit"], answer["problems"]) == (file, True, [])
    assert answer["summary"]["templates"] == ["c8"]


def test_an_unfit_configuration_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean queues"):
        check(written(tmp_path, GOOD.replace("queues:", "queus:")))


def test_an_unfit_configuration_as_json_lists_its_problems_and_ends_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as caught:
        check(written(tmp_path, GOOD.replace("owned: 4", "owned: x")), as_json=True)

    answer = json.loads(capsys.readouterr().out)
    assert caught.value.exit_code == 2
    assert (answer["fit"], answer["summary"]) == (False, None)
    (problem,) = answer["problems"]
    assert (problem["line"], problem["path"]) == (7, "cluster.shared[0].owned")


def test_hosts_without_slots_are_fit_and_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, "cluster: {hosts: [{name: n1, total: {slot: 8}}]}\n")

    check(file)
    captured = capsys.readouterr()
    assert "is fit for use" in captured.out
    assert captured.err == "warning: cluster.hosts[0]: n1 has no slots in total\n"

    check(file, as_json=True)
    assert json.loads(capsys.readouterr().out)["warnings"] == [
        "cluster.hosts[0]: n1 has no slots in total"
    ]
