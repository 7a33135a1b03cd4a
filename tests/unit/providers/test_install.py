"""Providers that come with the package are installed over a folder without a loss of what a person has written there."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from xce.adapters.cli.provider import app
from xce.adapters.providers.install import Comes, install


def said(*words: str) -> str:
    result = CliRunner().invoke(app, ["install", *words])
    assert result.exit_code == 0, (result.output, result.exception)
    return " ".join(result.stdout.split())


@pytest.mark.parametrize("what", list(Comes))
def test_a_configuration_that_is_there_is_kept_and_it_is_said(tmp_path: Path, what: Comes) -> None:
    folder = tmp_path / "p"
    place = folder / "conf" / f"{what}.json"
    assert "kept" not in said(str(what), str(folder))
    place.write_text('{"mine": 1}')

    text = said(str(what), str(folder))

    assert f"configuration in {place}: kept as it was" in text
    assert place.read_text() == '{"mine": 1}'


def test_a_start_script_for_ec2_is_kept_also_where_the_configuration_is_gone(
    tmp_path: Path,
) -> None:
    install(Comes.EC2, tmp_path)
    mine = tmp_path / "conf" / "cloud-init.sh"
    mine.write_text("#!/bin/sh\n# mine\n")
    (tmp_path / "conf" / "ec2.json").unlink()

    install(Comes.EC2, tmp_path)

    assert mine.read_text() == "#!/bin/sh\n# mine\n"
    assert (tmp_path / "conf" / "ec2.json").is_file()
