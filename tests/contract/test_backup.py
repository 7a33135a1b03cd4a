"""A copy of a log while others write it: whole as of one moment, verified, never in the place of a file."""

import json
import multiprocessing
import os
import sqlite3
import stat
from contextlib import closing
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.stories import Story
from xce.adapters.cli import audit as cli
from xce.adapters.cli import exit_codes
from xce.adapters.store import audit, backup
from xce.adapters.store.open import open_log
from xce.adapters.store.verify import verify
from xce.domain.errors import BrokenLogError, InputError, PermanentError, TransientError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    path = folder / "log.db"
    with open_log(path) as log:
        Story(log).tell()
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "there"
    folder.mkdir()
    return folder / "copy.db"


def left(target: Path) -> list[str]:
    return sorted(p.name for p in target.parent.iterdir())


def rows(path: Path) -> list[tuple[Any, ...]]:
    with open_log(path, read_only=True) as log:
        return list(log.recorder.rows())


def test_a_copy_is_the_log(path: Path, target: Path) -> None:
    head = backup.backup(str(path), str(target))

    assert rows(target) == rows(path)
    assert head.position == 33
    assert left(target) == ["copy.db"]
    assert left(path) == ["log.db"]


def test_a_copy_that_is_put_back_is_a_log_to_write(path: Path, target: Path) -> None:
    backup.backup(str(path), str(target))
    with open_log(path) as log:
        Story(log, "-lost").tell()
    audit_file = audit.database_of(str(path))
    with open_log(path, read_only=True) as log:
        audit.catch_up(log, audit_file)

    target.replace(path)

    with open_log(path) as log:
        story = Story(log, "-b")
        story.tell()
        assert verify(log).passed
        assert log.head().position == 66
        assert log.fence("lease:aws") == 2
        assert audit.catch_up(log, audit_file).rebuilt


def write(path: str, started: Event, stop: Event) -> None:
    with open_log(path) as log:
        number = 0
        while not stop.is_set():
            Story(log, f"-{number}").tell()
            number += 1
            started.set()


def test_copies_are_made_while_another_process_writes(path: Path, target: Path) -> None:
    context = multiprocessing.get_context("spawn")
    started, stop = context.Event(), context.Event()
    writer = context.Process(target=write, args=(str(path), started, stop))
    writer.start()
    try:
        assert started.wait(timeout=60)
        heads = [
            backup.backup(str(path), str(target.with_name(f"copy-{number}.db")))
            for number in range(5)
        ]
    finally:
        stop.set()
        writer.join(timeout=60)
    assert writer.exitcode == 0

    whole = rows(path)
    positions = [head.position for head in heads]
    assert positions == sorted(positions)
    assert positions[-1] > positions[0] > 33, "the writer went on meanwhile"
    for number, head in enumerate(heads):
        assert rows(target.with_name(f"copy-{number}.db")) == whole[: head.position]
    assert left(target) == [f"copy-{number}.db" for number in range(5)]


@pytest.mark.parametrize("there", ["file", "folder", "link"])
def test_nothing_is_replaced(path: Path, target: Path, there: str) -> None:
    if there == "file":
        target.write_bytes(b"precious")
    elif there == "folder":
        target.mkdir()
    else:
        target.symlink_to("nowhere")

    with pytest.raises(InputError, match="is there already"):
        backup.backup(str(path), str(target))

    assert left(target) == ["copy.db"]
    assert there != "file" or target.read_bytes() == b"precious"


def test_a_log_that_does_not_verify_is_not_copied_unless_asked(path: Path, target: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(
            "UPDATE stored_events SET state = CAST(replace(state, 'alice', 'mallo') AS BLOB) WHERE position = 2"
        )

    with pytest.raises(BrokenLogError, match=r"does not verify \(chain\).*nothing was kept"):
        backup.backup(str(path), str(target))
    assert left(target) == []

    assert backup.backup(str(path), str(target), check=False).position == 33
    assert rows(target) == rows(path)


def test_who_may_not_read_the_log_may_not_read_the_copy(path: Path, target: Path) -> None:
    os.chmod(path, 0o640)

    backup.backup(str(path), str(target))

    assert stat.S_IMODE(target.stat().st_mode) == 0o640


@pytest.mark.parametrize("name", ["missing/copy.db", "a\0b"])
def test_a_place_that_cannot_be_written_is_named(path: Path, target: Path, name: str) -> None:
    with pytest.raises((PermanentError, InputError), match="copy"):
        backup.backup(str(path), str(target.parent / name))

    assert left(target) == []


def test_what_is_no_log_is_not_copied(tmp_path: Path, target: Path) -> None:
    (tmp_path / "other").write_text("text")

    for name in ("other", "missing"):
        with pytest.raises(InputError):
            backup.backup(str(tmp_path / name), str(target))

    assert left(target) == []


def test_a_copy_that_fails_in_the_middle_leaves_nothing(
    path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(backup, "_sync", full)

    with pytest.raises(TransientError, match="No space left"):
        backup.backup(str(path), str(target))
    assert left(target) == []


def test_the_command_prints_the_head_which_is_an_anchor(path: Path, target: Path) -> None:
    run = CliRunner().invoke
    result = run(cli.app, ["backup", str(path), str(target), "--json"])

    assert result.exit_code == exit_codes.DONE
    document = json.loads(result.stdout)
    assert (document["file"], document["position"]) == (str(target), 33)
    anchor = f"{document['position']}:{document['digest']}"
    assert run(cli.app, ["verify", str(path), "--anchor", anchor]).exit_code == exit_codes.DONE
    again = run(cli.app, ["backup", str(path), str(target)])
    assert isinstance(again.exception, InputError)
    text = run(cli.app, ["backup", str(path), str(target.with_name("two.db"))]).stdout
    assert anchor in text.replace("\n", "")
