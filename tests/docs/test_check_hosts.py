"""The program of the page about health checks does what the page says, with an ssh that plays the hosts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.console import WrittenFile, read_page

PAGE = ROOT / "docs/how-to/check-hosts.md"
SSH = """#!/bin/sh
host=$5
case $host in
sick) echo "/scratch is not mounted"; exit 1 ;;
away) exit 255 ;;
esac
"""


def test_the_program_of_the_page_tells_fine_hosts_from_sick_and_unreachable_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = read_page(PAGE.read_text("utf-8"))
    (program,) = [part for part in page.steps if isinstance(part, WrittenFile)]
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:/usr/bin:/bin")
    (tmp_path / "check.py").write_text(program.text)
    machines = [{"machineId": f"i-{host}", "host": host} for host in ("fine", "sick", "away")]
    (tmp_path / "input.json").write_text(json.dumps({"machines": machines}))

    made = subprocess.run(
        [sys.executable, str(tmp_path / "check.py"), "-f", str(tmp_path / "input.json")],
        capture_output=True,
        check=True,
        timeout=60,
    )

    said = {one["machineId"]: one for one in json.loads(made.stdout)["machines"]}
    assert {name: one["result"] for name, one in said.items()} == {
        "i-fine": "succeed", "i-sick": "fail", "i-away": "executing",
    }  # fmt: skip
    assert said["i-sick"]["message"] == "/scratch is not mounted"
