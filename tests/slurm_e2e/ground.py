"""Where a real Slurm runs for a test, or why there is none."""

import os
import socket
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from tools.slurm_lab.lab import lacking

#: A lab takes a few hundred ports: those of its clusters, of their nodes, and of records.
_SPAN: Final = 400
_LOOKED_AT: Final = (1, 2, 5, 10, 11, 12, 21, 22, 60, 70, 71, 72, 73, 110, 121)


def need_slurm(*, database: bool) -> None:
    """Skip where Slurm cannot be had; fail where it was required."""
    if why := lacking(database=database):
        assert not os.environ.get("XCE_REQUIRE_SLURM"), why
        pytest.skip(f"no Slurm here: {why}")


@contextmanager
def free_span() -> Generator[int]:
    """Give the first of a few hundred ports of which those that are used are free.

    The first itself is not used by a lab: it is bound for as long as the lab lives, so that tests beside this one look further. All of them
    are below those that the system gives to outgoing connections.
    """
    for first in range(10000, 32000, _SPAN):
        with socket.socket() as claim:
            try:
                claim.bind(("127.0.0.1", first))
                for offset in _LOOKED_AT:
                    with socket.socket() as probe:
                        probe.bind(("127.0.0.1", first + offset))
            except OSError:
                continue
            yield first
            return
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
