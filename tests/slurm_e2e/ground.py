"""Where a real Slurm runs for a test, or why there is none."""

import os
import socket
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
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


@contextmanager
def short_folder() -> Generator[Path]:
    """Give a folder for a lab and take it away again.

    Its name is short, for sockets of Slurm lie below it and their paths may have 108 characters; and everybody may pass, since
    munged wants that. The folders of pytest are neither.
    """
    with tempfile.TemporaryDirectory(prefix="xce-slurm-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o711)
        yield folder
