"""``xce config check``: what it prints, and how it ends."""

import json
from pathlib import Path

import pytest
import typer

from tests.conftest import ROOT
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


def test_providers_of_a_misspelt_kind_and_of_nothing_are_fit_and_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, "cluster: {}\nproviders: [{name: pool, kinds: [licence]}]\n")

    check(file)

    assert capsys.readouterr().err == (
        "warning: providers[0].kinds: 'licence' is ignored; this release knows host, countable\n"
        "warning: providers[0]: pool offers nothing: it has no templates and no resources\n"
    )


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


EXAMPLES = ROOT / "examples"


@pytest.mark.parametrize(
    ("file", "kind"),
    [("small.yaml", "simulation"), ("controller/controller.yaml", "controller"), ("live/provisioner.yaml", "provisioner"),
     ("live/scheduler.yaml", "scheduler"), ("pool.yaml", "licence pool"), ("scenarios/a-price-falls.yaml", "scenario")],
)  # fmt: skip
def test_what_a_configuration_is_for_is_found_by_its_keys(
    file: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check(str(EXAMPLES / file), as_json=True)

    answer = json.loads(capsys.readouterr().out)
    assert (answer["kind"], answer["fit"]) == (kind, True)


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.yaml")), ids=lambda path: path.name)
def test_every_example_that_is_shipped_is_fit(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check(str(path))

    assert "is fit for use" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "what"),
    [("evening.json", "is a snapshot and no configuration; see: xce session FILE"),
     ("round.json", "is the input of a round of the policy and no configuration; see: xce policy FILE")],
)  # fmt: skip
def test_a_document_that_is_no_configuration_is_called_by_its_name(file: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        check(str(EXAMPLES / file))

    (problem,) = caught.value.problems
    assert problem.message == what


def test_a_mistake_in_a_daemons_configuration_is_told_as_that_daemon_would(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="log"):
        check(written(tmp_path, "logg: x.db\ntokens: t\nlisten: {port: 1}\n"))
    with pytest.raises(InputError, match=r"alerts\.webhooks\[0\]\.url: wanted url or url_variable"):
        check(written(tmp_path, "log: x.db\ntokens: t\nalerts: {webhooks: [{name: pager}]}\n"))
