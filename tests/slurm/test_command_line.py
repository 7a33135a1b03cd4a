"""``xce snapshot slurm`` and the configuration of the source, with commands that print what a test put there."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.slurm.made import CONFIG, job, node, running
from xce.adapters.cli.main import app
from xce.adapters.cli.scheduler import app as scheduler
from xce.adapters.clock import SystemClock
from xce.adapters.schedulers.service import read_scheduler_config, source_of
from xce.adapters.schedulers.slurm.source import SlurmScheduler
from xce.domain.errors import InputError
from xce.domain.formats.snapshot import Snapshot

RUNNER = CliRunner()
RULES = {
    "show config": CONFIG,
    "-o show partition": "PartitionName=main State=UP\n",
    "-o show lic": "LicenseName=sim Total=4 Used=0 Free=4 Reserved=0 Remote=no\n",
    "-o show reservation": "No reservations in the system\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def install(folder: Path, jobs: list[dict[str, Any]], nodes: list[dict[str, Any]]) -> Path:
    """Write commands of a Slurm into a folder."""
    made = folder / "commands"
    made.mkdir()
    cases = "\n".join(f"\"{words}\") cat <<'END'\n{text}END\n;;" for words, text in RULES.items())
    scripts = {
        "squeue": f"cat <<'END'\n{json.dumps({'jobs': jobs})}\nEND",
        "sinfo": f"cat <<'END'\n{json.dumps({'nodes': nodes})}\nEND",
        "scontrol": f'case "$*" in\n{cases}\n*) echo "$*" >> "{folder}/written" ;;\nesac',
        "sacctmgr": "echo Name",
    }
    for name, script in scripts.items():
        path = made / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    return made


def test_the_snapshot_is_printed_and_what_is_not_used_named(folder: Path) -> None:
    made = install(folder, [job(1), job(2, features="[a*1&b*1]")], [node("n1")])

    done = RUNNER.invoke(app, ["snapshot", "slurm", "--commands", str(made)])

    assert done.exit_code == 0
    snapshot = Snapshot.from_json(done.stdout)
    assert [(one.id, one.held) for one in snapshot.pending] == [("1", False), ("2", True)]
    assert "not used: job 2: features" in done.stderr
    assert not (folder / "written").exists()


def test_the_snapshot_goes_into_a_file_that_a_session_reads(folder: Path) -> None:
    made = install(folder, [job(1)], [node("n1")])
    out = folder / "now.json"

    done = RUNNER.invoke(app, ["snapshot", "slurm", "--commands", str(made), "--out", str(out)])
    session = RUNNER.invoke(app, ["session", str(out), "--json"])

    assert (done.exit_code, done.stdout) == (0, "")
    assert [one["job"] for one in json.loads(session.stdout)["allocations"]] == ["1"]


def test_differences_are_shown_one_a_line(folder: Path) -> None:
    made = install(
        folder, [job(1, state_reason="Resources")], [node("n1", state_flags=["PLANNED"])]
    )

    done = RUNNER.invoke(app, ["snapshot", "slurm", "--commands", str(made), "--differences"])

    assert done.stdout == (
        "job 1 would start on n1; Slurm says Resources: node n1 is planned for another job\n"
    )


def test_a_wrong_type_is_told_with_command_and_field(folder: Path) -> None:
    made = install(folder, [running(1, "n1") | {"cpus": "many"}], [node("n1")])

    done = RUNNER.invoke(app, ["snapshot", "slurm", "--commands", str(made)])

    assert isinstance(done.exception, InputError)
    assert "squeue --json: jobs[0].cpus: found 'many', wanted a whole number" in str(done.exception)


CONFIGURED = """
controller: {addresses: ["http://127.0.0.1:1"], token_file: token}
source: {slurm: {conf: etc/slurm.conf, commands: commands, observe_only: true}}
"""


def test_the_driver_makes_the_source_with_names_beside_its_configuration(folder: Path) -> None:
    install(folder, [job(1)], [node("n1")])
    path = folder / "scheduler.yaml"
    path.write_text(CONFIGURED)
    config = read_scheduler_config(path)

    assert config.source.slurm is not None
    assert config.source.slurm.conf == str(folder / "etc/slurm.conf")
    source = source_of(config, SystemClock(), lambda _: None)
    assert isinstance(source, SlurmScheduler)
    assert [one.id for one in source.view().pending] == ["1"]


def test_observe_only_is_for_a_slurm(folder: Path) -> None:
    path = folder / "scheduler.yaml"
    path.write_text(CONFIGURED.replace("slurm: {conf: etc/slurm.conf, commands: commands, observe_only: true}", "fake: {path: batch.json}"))  # fmt: skip

    done = RUNNER.invoke(scheduler, ["--config", str(path), "--observe-only"])

    assert isinstance(done.exception, InputError)
    assert "is for a source slurm" in str(done.exception)


@pytest.mark.parametrize("wrong", ["timeout: 0s", "colour: red", "json_output: 3"])
def test_a_wrong_configuration_is_told_with_its_line(folder: Path, wrong: str) -> None:
    path = folder / "scheduler.yaml"
    path.write_text(CONFIGURED.replace("observe_only: true", wrong))

    with pytest.raises(InputError, match=r"scheduler\.yaml:3"):
        read_scheduler_config(path)
