"""A log that cannot be written costs its lines, and nothing else."""

import errno
import io
from pathlib import Path
from typing import cast

import structlog

from xce.adapters.log_lines import LogLines


class Disk(io.StringIO):
    """Takes lines, unless it is full."""

    full = False

    def write(self, text: str, /) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(text)


def test_lines_that_cannot_be_written_are_counted_and_harm_nobody() -> None:
    disk = Disk()
    log = structlog.PrintLogger(cast(io.StringIO, LogLines(disk)))
    log.msg("one")
    disk.full = True
    log.msg("two")
    log.msg("three")
    disk.full = False
    log.msg("four")
    log.msg("five")

    assert disk.getvalue().splitlines() == [
        "one",
        '{"event": "log lines are missing here", "level": "error", "lines": 2}',
        "four",
        "five",
    ]


def test_a_stream_that_was_closed_is_one_that_takes_no_lines() -> None:
    disk = Disk()
    log = structlog.PrintLogger(cast(io.StringIO, LogLines(disk)))
    disk.close()

    log.msg("one")


def test_lines_reach_a_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("w") as file:
        structlog.PrintLogger(cast(io.StringIO, LogLines(file))).msg("one\udcff")

        assert path.read_bytes() == b"one\\udcff\n"
