"""Checkpoints: never trusted, thrown away rather than believed, never in the way."""

import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.stories import Story
from tests.unit.time_travel.test_moments import same
from xce.adapters.store import side_files
from xce.adapters.store.checkpoints import CheckpointFile, checkpoints_of
from xce.adapters.store.log import StoredLog
from xce.adapters.store.open import open_log
from xce.domain.errors import BrokenLogError, TransientError
from xce.replay.time_travel import Moment, TimeTravel

EVERY = 10


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "log.db"
    with open_log(path) as log:
        Story(log).tell()
    return path


def checkpoints(path: Path) -> Path:
    return Path(checkpoints_of(str(path)))


def at(path: Path, position: int = 33) -> Moment:
    """Return a moment that outlives its files: all of it is read."""
    with open_log(path, read_only=True) as log, CheckpointFile(log, str(checkpoints(path))) as file:
        moment = TimeTravel(log, file, every=EVERY).at(position)
        assert file.problem is None
        with open_log(path, read_only=True) as again:
            assert same(moment, TimeTravel(again).at(position))
        return moment


def positions(path: Path) -> list[int]:
    with closing(sqlite3.connect(checkpoints(path))) as connection:
        rows = connection.execute("SELECT position FROM checkpoints ORDER BY position")
        return [row[0] for row in rows]


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount != 0


def test_they_are_made_on_the_way(path: Path) -> None:
    at(path, 25)
    assert positions(path) == [10, 20]
    at(path, 33)
    assert positions(path) == [10, 20, 30]
    at(path, 15)
    assert positions(path) == [10, 20, 30]


def test_a_short_log_gets_none(path: Path) -> None:
    at(path, 9)

    assert not checkpoints(path).exists()


def test_reading_leaves_nothing_else_behind(path: Path) -> None:
    at(path)

    assert sorted(p.name for p in path.parent.iterdir()) == ["log.db", "log.db.checkpoints"]


def test_who_may_not_read_the_log_may_not_read_them(path: Path) -> None:
    os.chmod(path, 0o640)
    at(path)

    assert stat.S_IMODE(checkpoints(path).stat().st_mode) == 0o640


def test_another_history_of_the_log_is_noticed_by_its_digest(path: Path) -> None:
    at(path)
    path.unlink()
    with open_log(path) as log:
        Story(log).tell()
    with open_log(path, read_only=True) as log:
        end = TimeTravel(log).at(33)
    path.unlink()
    with open_log(path) as log:
        Story(log, "-b").tell()

    moment = at(path)

    assert moment.head != end.head
    assert positions(path) == [10, 20, 30]


def test_of_a_log_that_was_put_back_only_what_it_still_has_is_used(path: Path) -> None:
    before = path.parent / "copy.db"
    with open_log(before) as log:
        for step in list(Story(log).steps())[:4]:
            step()
    at(path)
    before.replace(path)
    with open_log(path) as log:
        story = Story(log, "-b")
        story.tell()

    at(path, 25)

    assert positions(path) == [10, 20]
    with open_log(path, read_only=True) as log:
        (_, twentieth) = log.read(18, 20)
    with closing(sqlite3.connect(checkpoints(path))) as connection:
        rows = connection.execute("SELECT digest FROM checkpoints WHERE position = 20").fetchall()
    assert rows == [(twentieth.digest,)]


def test_other_code_makes_them_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at(path)
    change(checkpoints(path), "UPDATE made_by SET code = 'older'", "DELETE FROM aggregates")

    at(path, 25)

    assert positions(path) == [10, 20]


def test_the_code_that_counts_is_all_that_a_fold_runs_through() -> None:
    """What is left out of the digest must not be reached from events and projections."""
    import subprocess
    import sys

    program = (
        "import sys, xce.projections.all, xce.projections.document, xce.domain.events.stored, xce.domain.events.document;"
        "print(*[m for m in sys.modules if m.startswith(('xce.domain.', 'xce.projections.'))])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    parts = {tuple(name.split(".")[2:]) for name in found.stdout.split()}

    assert ("events", "stored") in parts
    assert not {part[0] for part in parts} & side_files.WITHOUT_A_SAY


def _garbage(file: Path) -> None:
    file.write_bytes(b"nonsense" * 1000)


def _nothing(file: Path) -> None:
    file.write_bytes(b"")


def _stranger(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE t (x)")


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:5000])


def _wrong_sum_of_summary(file: Path) -> None:
    change(file, "UPDATE checkpoints SET sum = sum + 1")


def _wrong_summary(file: Path) -> None:
    change(file, "UPDATE checkpoints SET summary = CAST(replace(summary, '2026', '2025') AS BLOB)")


def _wrong_projection(file: Path) -> None:
    change(
        file,
        "UPDATE projections SET kept = CAST(replace(kept, 'c4', 'c5') AS BLOB) WHERE name = 'spending'",
    )


def _no_projections(file: Path) -> None:
    change(file, "DELETE FROM projections")


@pytest.mark.parametrize(
    "damage",
    [_garbage, _nothing, _stranger, _cut, _wrong_sum_of_summary, _wrong_summary, _wrong_projection, _no_projections],
)  # fmt: skip
def test_what_is_damaged_is_made_anew(path: Path, damage: Callable[[Path], None]) -> None:
    at(path)
    damage(checkpoints(path))

    at(path)

    assert positions(path) == [10, 20, 30]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE aggregates SET document = CAST(replace(document, 'complete', 'partial!') AS BLOB)",
        "UPDATE aggregates SET version = version - 1 WHERE id = 'request:R1'",
        "UPDATE aggregates SET id = 'request:R9' WHERE id = 'request:R1'",
    ],
)
def test_a_changed_document_is_not_shown(path: Path, statement: str) -> None:
    at(path)
    change(checkpoints(path), statement)

    with open_log(path, read_only=True) as log, CheckpointFile(log, str(checkpoints(path))) as file:
        moment = TimeTravel(log, file, every=EVERY).at(33)
        with pytest.raises(TransientError, match="thrown away; ask again"):
            list(moment.aggregates("request"))

    assert not checkpoints(path).exists()
    at(path)


def test_a_folder_that_cannot_be_written_makes_no_difference(path: Path) -> None:
    class Elsewhere(CheckpointFile):
        """Root may write everywhere; there is no folder at all here."""

    with (
        open_log(path, read_only=True) as log,
        Elsewhere(log, str(path.parent / "missing" / "c")) as file,
    ):
        moment = TimeTravel(log, file, every=EVERY).at(33)
        assert same(moment, TimeTravel(log).at(33))
        assert file.problem is not None
        assert "missing" in file.problem


def test_two_at_once_keep_the_same(path: Path) -> None:
    with (
        open_log(path, read_only=True) as log,
        CheckpointFile(log, str(checkpoints(path))) as one,
        CheckpointFile(log, str(checkpoints(path))) as other,
    ):
        first = TimeTravel(log, one, every=EVERY).at(15)
        second = TimeTravel(log, other, every=EVERY).at(33)
        third = TimeTravel(log, one, every=EVERY).at(33)
        assert same(second, third)
        assert first.head.position == 15
        assert (one.problem, other.problem) == (None, None)
    assert positions(path) == [10, 20, 30]


def test_an_event_that_is_gone_from_the_log_is_noticed(path: Path) -> None:
    at(path)
    change(path, "DELETE FROM stored_events WHERE originator_id = 'instance:I1' AND position < 20")

    with (
        open_log(path, read_only=True) as log,
        CheckpointFile(log, str(checkpoints(path))) as file,
        pytest.raises(BrokenLogError, match="instance:I1 had 2 events at position 20"),
    ):
        TimeTravel(log, file, every=EVERY).at(25)


def test_long_documents_are_kept_compressed(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with open_log(path) as log:
        Story(log).tell()
        for number in range(60):
            Story(log, "x" * 32 + f"-{number}").describe()

        def shown(log: StoredLog) -> bytes:
            with CheckpointFile(log, str(checkpoints(path))) as file:
                TimeTravel(log, file, every=30).at(120)
                return TimeTravel(log, file, every=30).at(120).aggregate("shared:lic") or b""

        assert shown(log) == TimeTravel(log).at(120).aggregate("shared:lic")
