"""Files that people asked for: whole or not there, and each with a name of its own."""

import resource
import signal
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.replay.worlds import demo_config
from xce.adapters.cli.simulate import new_log, new_recording
from xce.adapters.files import gone_after_error, require_place, write_file
from xce.domain.errors import InputError, TransientError


@contextmanager
def files_of_at_most(size: int) -> Generator[None]:
    """Let no file of this process be longer."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_half_a_file_is_not_left_behind(tmp_path: Path) -> None:
    with files_of_at_most(1000), pytest.raises(InputError, match="cannot be written"):
        write_file(tmp_path / "starts.csv", "a" * 2000)

    assert list(tmp_path.iterdir()) == []


def test_a_device_stays(tmp_path: Path) -> None:
    full = Path("/dev/full")

    with pytest.raises(TransientError, match="No space left"):
        write_file(full, "a" * 2000)

    assert full.exists()


def test_a_recording_that_cannot_be_written_to_its_end_is_not_left_behind(tmp_path: Path) -> None:
    config, start = demo_config(), datetime(2026, 3, 2, tzinfo=UTC)
    with (
        files_of_at_most(10),
        pytest.raises(InputError, match="cannot be written"),
        new_recording(tmp_path / "a.rec.gz", config, start) as writer,
    ):
        assert writer is not None

    assert list(tmp_path.iterdir()) == []


def test_a_log_of_a_run_that_failed_is_not_left_behind(tmp_path: Path) -> None:
    with (
        pytest.raises(TransientError, match="full"),
        new_log(tmp_path / "log.db"),
    ):
        raise TransientError("the disk is full")

    assert list(tmp_path.iterdir()) == []


def test_what_has_another_name_stays(tmp_path: Path) -> None:
    (tmp_path / "log.db.bak").write_text("mine")

    (tmp_path / "log.db").write_text("half")
    (tmp_path / "log.db-wal").write_text("half")

    with pytest.raises(TransientError), gone_after_error(tmp_path / "log.db", "-wal"):
        raise TransientError("the disk is full")

    assert [path.name for path in tmp_path.iterdir()] == ["log.db.bak"]


def test_two_files_of_one_name_are_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()

    with pytest.raises(InputError, match="is to be two files at once"):
        require_place(tmp_path / "a", None, tmp_path / "folder" / ".." / "a")


def test_a_device_may_be_two_files() -> None:
    require_place(Path("/dev/null"), Path("/dev/null"))


def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="File name too long"):
        require_place(tmp_path / ("a" * 300))
