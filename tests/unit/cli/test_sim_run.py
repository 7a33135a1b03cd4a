"""``xce sim run``: what it keeps, and that what it cannot keep whole it does not keep."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.conftest import ROOT
from xce.adapters.cli import sim_run
from xce.adapters.cli.main import app
from xce.domain.errors import TransientError

SCENARIO = str(ROOT / "examples" / "scenarios" / "f16-an-impossible-job-stops-nobody.yaml")


def test_a_folder_that_could_not_be_filled_is_not_there_and_the_run_can_be_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["sim", "run", SCENARIO, "--quiet", "--out", str(tmp_path / "out")]

    def full(path: Path, text: str) -> None:
        raise TransientError(f"{path}: cannot be written: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(sim_run, "write_file", full)
        failed = CliRunner().invoke(app, words)
    assert isinstance(failed.exception, TransientError)
    assert list(tmp_path.iterdir()) == []

    assert CliRunner().invoke(app, words).exit_code == 0
    assert (tmp_path / "out" / "result.json").exists()
