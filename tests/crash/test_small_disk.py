"""A real file system that is full, and one that is read-only: a clear error, nothing acknowledged is lost, and it goes on when it can."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.conftest import ROOT


@pytest.fixture(scope="module")
def happened(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("disk")
    mount = ["mount", "-t", "tmpfs", "small", str(folder)]
    for apart in (["unshare", "--user", "--map-root-user", "--mount"], ["unshare", "--mount"]):
        if not subprocess.run([*apart, *mount], capture_output=True, check=False).returncode:
            break
    else:
        pytest.skip("this machine lets nobody mount a file system of its own")
    done = subprocess.run(
        [*apart, sys.executable, "-m", "tests.crash.small_disk", str(folder)],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_service_on_a_full_disk_says_so_loses_nothing_and_goes_on_when_there_is_room(
    happened: dict[str, Any],
) -> None:
    full = happened["full"]

    assert "full" in full["refused"]
    assert full["read while it was full"]
    assert (full["lost"], full["twice"], full["passed"]) == ([], False, True)


def test_a_new_log_on_a_full_disk_may_be_tried_again_and_leaves_nothing(
    happened: dict[str, Any],
) -> None:
    assert happened["full"]["new"].startswith("TransientError: ")
    assert "a new log cannot be made" in happened["full"]["new"]
    assert happened["full"]["left"] == ["ballast"]


def test_a_log_on_a_read_only_file_system_can_be_verified_and_says_that_it_cannot_be_written(
    happened: dict[str, Any],
) -> None:
    found = happened["read_only"]

    assert found["verify"] == 0, found["said"]
    assert "cannot be written: Read-only file system" in found["writing"]
    assert found["new"].startswith("PermanentError: ")
    assert "a new log cannot be made" in found["new"]
