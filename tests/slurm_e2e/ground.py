"""Where a real Slurm runs for a test, or why there is none."""

import os
import socket
import tempfile
from pathlib import Path

import pytest
from tools.slurm_lab.lab import lacking

#: A lab takes a few hundred ports.
_SPAN = 400
_LOOKED_AT = (1, 2, 5, 10, 21, 60, 70, 110)


def need_slurm(*, database: bool) -> None:
    """Skip where Slurm cannot be had; fail where it was required."""
    if why := lacking(database=database):
        assert not os.environ.get("XCE_REQUIRE_SLURM"), why
        pytest.skip(f"no Slurm here: {why}")


def free_span() -> int:
    """Return the first of a few hundred ports of which those that are used are free."""
    for first in range(20000 + os.getpid() % 50 * _SPAN, 60000, _SPAN):
        try:
            for offset in _LOOKED_AT:
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", first + offset))
        except OSError:
            continue
        return first
    raise AssertionError("no free ports")


def passable(folder: Path) -> Path:
    """Let everybody pass into a folder of a test: munged wants that."""
    top = Path(tempfile.gettempdir()).resolve()
    for above in (folder, *folder.parents):
        if above == top or top not in above.parents:
            break
        above.chmod(above.stat().st_mode | 0o011)
    return folder
