"""Opening a log: one clear error for each way that can fail, and a new file is whole or not there."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest

from tests.stories import Story
from xce.adapters.store import open as opening
from xce.adapters.store.open import open_log
from xce.adapters.store.verify import verify
from xce.domain.errors import InputError, PermanentError, XceError


@cache
def story() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.db"
        with open_log(path) as log:
            Story(log).tell()
        return path.read_bytes()


def told(path: Path) -> Path:
    path.write_bytes(story())
    return path


def other_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x)")


def header(pragma: str, value: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        told(path)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA {pragma} = {value}")

    return make


def without(table: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        told(path)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"DROP TABLE {table}")

    return make


def garbage_behind_the_header(path: Path) -> None:
    told(path)
    path.write_bytes(path.read_bytes()[:100] + b"\xa5" * 4000)


NOT_LOGS: list[tuple[Callable[[Path], object], str]] = [
    (lambda p: p.mkdir(), "is a directory"),
    (lambda p: os.mkfifo(p), "is not a regular file"),
    (lambda p: p.write_bytes(b""), "is empty"),
    (lambda p: p.write_text("2026-03-01 host h1 launched\n"), "it is not an SQLite file"),
    (lambda p: p.write_bytes(os.urandom(5000)), "it is not an SQLite file"),
    (lambda p: p.write_bytes(b"SQLite format 3\x00"), "cannot be read as a log"),
    (lambda p: p.symlink_to(p.parent / "nowhere"), "No such file"),
    (other_database, "the SQLite file of another program"),
    (header("application_id", 0), "the SQLite file of another program"),
    (header("user_version", 2), "its schema is 2, this release reads 1 to 1"),
    (header("user_version", 0), "its schema is 0"),
    (without("stored_events"), "no such table: stored_events"),
    (without("log_head"), "no such table: log_head"),
    (without("fences"), "no such table: fences"),
    (garbage_behind_the_header, "cannot be read as a log"),
]


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(("make", "message"), NOT_LOGS, ids=[message for _, message in NOT_LOGS])
def test_what_is_not_a_log_is_named(
    tmp_path: Path, make: Callable[[Path], object], message: str, read_only: bool
) -> None:
    path = tmp_path / "log.db"
    make(path)

    with pytest.raises(InputError, match=message) as caught:
        open_log(path, read_only=read_only)

    assert caught.value.source == str(path)


def test_a_missing_file_is_not_made_by_a_reader(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        open_log(tmp_path / "log.db", read_only=True)

    assert list(tmp_path.iterdir()) == []


def test_a_name_that_no_file_can_have_is_refused() -> None:
    with pytest.raises(XceError, match="null"):
        open_log("a\x00b", read_only=True)


def test_a_file_without_permission_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the tests run as root no permission is missing, so the refusal is put in place of it."""
    path = told(tmp_path / "log.db")
    path.chmod(0)
    if os.geteuid() == 0:

        def refuse(*_: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(opening, "open", refuse, raising=False)

    with pytest.raises(InputError, match="Permission denied"):
        open_log(path, read_only=True)


def test_a_new_file_where_none_can_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match="a new log cannot be made"):
        open_log(tmp_path / "no folder" / "log.db")


def test_a_new_log_leaves_nothing_beside_it(tmp_path: Path) -> None:
    with open_log(tmp_path / "log.db") as log:
        Story(log).tell()

    assert [path.name for path in tmp_path.iterdir()] == ["log.db"]


def test_a_name_with_special_characters_is_a_name(tmp_path: Path) -> None:
    path = tmp_path / "my log?mode=memory#1 100%.db"

    with open_log(path) as log:
        Story(log).tell()
        head = log.head()
    with open_log(path, read_only=True) as log:
        assert log.head() == head


def test_a_log_is_durable_by_settings_of_ours(tmp_path: Path) -> None:
    with open_log(tmp_path / "log.db") as log:
        Story(log).tell()
        with closing(sqlite3.connect(tmp_path / "log.db")) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        factory = log._application.factory  # pyright: ignore[reportPrivateUsage]
        recorder = factory.application_recorder()
        writer = vars(recorder)["_writer"]
        assert tuple(writer.execute("PRAGMA synchronous").fetchone()) == (2,)


def test_reading_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = told(tmp_path / "log.db")
    before = path.read_bytes()

    with open_log(path, read_only=True) as log:
        assert verify(log).passed
        with pytest.raises(PermanentError, match="open for reading only"):
            log.take_primary()
        with pytest.raises(PermanentError, match="open for reading only"):
            Story(log, "-b").describe()

    assert path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["log.db"]


def test_a_reader_sees_what_a_writer_left_in_its_wal(tmp_path: Path) -> None:
    """As a killed process leaves it: the file, and a WAL that nobody wrote back."""
    with open_log(tmp_path / "log.db") as log:
        Story(log).tell()
        head = log.head()
        for name in ("log.db", "log.db-wal"):
            shutil.copy(tmp_path / name, tmp_path / f"copy-{name}")
    (tmp_path / "copy-log.db").rename(tmp_path / "killed.db")
    (tmp_path / "copy-log.db-wal").rename(tmp_path / "killed.db-wal")

    before = {name: (tmp_path / name).read_bytes() for name in ("killed.db", "killed.db-wal")}

    with open_log(tmp_path / "killed.db", read_only=True) as left:
        assert left.head() == head
        assert verify(left).passed

    assert {name: (tmp_path / name).read_bytes() for name in before} == before
