"""A catch-up, a rebuild and a backup that are killed in the middle: what was there stays, and the next one makes it whole."""

import multiprocessing
import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.stories import Story
from xce.adapters.store import audit, backup
from xce.adapters.store.audit_rows import AuditRows
from xce.adapters.store.audit_tables import TABLES
from xce.adapters.store.checkpoints import CheckpointFile, checkpoints_of
from xce.adapters.store.open import open_log
from xce.replay.time_travel import TimeTravel


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "log.db"
    with open_log(path) as log:
        Story(log).tell()
    return path


def content(database: str) -> dict[str, list[tuple[Any, ...]]]:
    with closing(sqlite3.connect(database)) as connection:
        return {
            table.name: connection.execute(
                f'SELECT * FROM "{table.name}" ORDER BY {", ".join(table.key)}'
            ).fetchall()
            for table in TABLES
        }


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_for(_: str) -> None:
    die()


def catch_up_and_die(path: str) -> None:
    finish = AuditRows.finish

    def finished(rows: AuditRows) -> None:
        finish(rows)  # all is written, nothing is committed
        die()

    with (
        mock.patch.object(AuditRows, "finish", finished),
        open_log(path, read_only=True) as log,
    ):
        audit.catch_up(log, audit.database_of(path))


def back_up_and_die(path: str) -> None:
    with mock.patch.object(backup, "_sync", side_effect=die_for):
        backup.backup(path, f"{path}.copy")


def travel_and_die(path: str) -> None:
    write = CheckpointFile._write  # pyright: ignore[reportPrivateUsage]

    def written(*arguments: Any) -> None:
        write(*arguments)
        if arguments[2].position == 20:
            die()

    with (
        mock.patch.object(CheckpointFile, "_write", written),
        open_log(path, read_only=True) as log,
        CheckpointFile(log, checkpoints_of(path)) as file,
    ):
        TimeTravel(log, file, every=10).at(33)


def killed(work: Any, path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=work, args=(str(path),))
    process.start()
    process.join(timeout=60)
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize("before", ["nothing", "an earlier state"])
def test_a_killed_catch_up_changes_nothing_and_the_next_one_is_whole(
    path: Path, before: str
) -> None:
    database = audit.database_of(str(path))
    if before != "nothing":
        with open_log(path) as log:
            audit.catch_up(log, database)
            Story(log, "-b").tell()

    killed(catch_up_and_die, path)

    with open_log(path, read_only=True) as log:
        assert not audit.is_current(log, database)
        caught = audit.catch_up(log, database)
        assert caught.rebuilt == (before == "nothing")
        assert caught.added == 33
        whole = f"{path}.whole"
        audit.rebuild(log, whole)
    assert content(database) == content(whole)


def test_a_killed_backup_leaves_no_file_of_that_name(path: Path) -> None:
    killed(back_up_and_die, path)

    copy = Path(f"{path}.copy")
    assert not copy.exists()
    assert backup.backup(str(path), str(copy)).position == 33


def test_checkpoints_of_a_killed_fold_are_whole_or_not_there(path: Path) -> None:
    killed(travel_and_die, path)

    with (
        open_log(path, read_only=True) as log,
        CheckpointFile(log, checkpoints_of(str(path))) as file,
    ):
        base = file.latest(33)
        assert base is not None
        assert base.summary.position == 10
        found = TimeTravel(log, file, every=10).at(33)
        assert found.document() == TimeTravel(log).at(33).document()
