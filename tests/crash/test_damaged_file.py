"""A log cut at every page, a WAL cut at every frame: a clear word, and never a part taken for the whole."""

import shutil
from pathlib import Path

import pytest

from tests.stories import Story
from xce.adapters.store.open import open_log
from xce.adapters.store.verify import verify
from xce.domain.errors import BrokenLogError, InputError
from xce.domain.events.recorded import Head

PAGE = 4096


def outcome(path: Path) -> str:
    """What verification makes of a file: holds, broken, or not a log; any other error is a defect."""
    try:
        with open_log(path, read_only=True) as log:
            report = verify(log)
    except InputError:
        return "not a log"
    return "holds" if report.passed else "broken"


def zeroed(content: bytes, page: int) -> bytes:
    return content[: page * PAGE] + bytes(PAGE) + content[(page + 1) * PAGE :]


@pytest.fixture(scope="module")
def long_log(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("log") / "log.db"
    with open_log(path) as log:
        for number in range(12):
            Story(log, f"-{number}").tell()
    return path.read_bytes()


def test_a_log_cut_at_any_page_is_never_taken_for_whole(long_log: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut.db"
    outcomes: list[str] = []
    for size in range(0, len(long_log), PAGE):
        path.write_bytes(long_log[:size])
        outcomes.append(outcome(path))

    assert set(outcomes) == {"not a log"}
    path.write_bytes(long_log)
    assert outcome(path) == "holds"


@pytest.mark.parametrize("cut", [1, 100, 511, 4095, 5000, 40_000])
def test_a_log_cut_within_a_page_is_never_taken_for_whole(
    long_log: bytes, tmp_path: Path, cut: int
) -> None:
    path = tmp_path / "cut.db"
    path.write_bytes(long_log[:-cut])

    assert outcome(path) in ("broken", "not a log")


def test_a_page_of_zeros_is_found(long_log: bytes, tmp_path: Path) -> None:
    path = tmp_path / "zeros.db"
    outcomes: list[str] = []
    for page in range(1, len(long_log) // PAGE):
        path.write_bytes(zeroed(long_log, page))
        outcomes.append(outcome(path))

    assert "holds" not in outcomes
    assert outcomes.count("broken") > len(outcomes) // 2


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Head]]:
    """A log whose events are all in the WAL still, and the heads it had after each append."""
    folder = tmp_path_factory.mktemp("wal")
    heads: list[Head] = []
    with open_log(folder / "log.db") as log:
        heads.append(log.head())
        for step in Story(log).steps():
            step()
            heads += [Head(r.position, r.digest) for r in log.read(after=heads[-1].position)]
        for name in ("log.db", "log.db-wal"):
            shutil.copy(folder / name, folder / f"left-{name}")
    return folder, heads


def test_a_torn_wal_gives_back_whole_saves_up_to_some_point(
    unfinished: tuple[Path, list[Head]], tmp_path: Path
) -> None:
    folder, heads = unfinished
    wal = (folder / "left-log.db-wal").read_bytes()
    frame = 24 + PAGE
    sizes = sorted(
        {
            size
            for start in range(32, len(wal) + 1, frame)
            for size in (start, start - 7, start + 100)
        }
    )
    path = tmp_path / "torn.db"
    positions: list[int] = []
    for size in sizes:
        shutil.copy(folder / "left-log.db", path)
        Path(f"{path}-shm").unlink(missing_ok=True)
        Path(f"{path}-wal").write_bytes(wal[: max(0, size)])
        with open_log(path, read_only=True) as log:
            report = verify(log)
            assert report.passed
            assert log.head() in heads
            positions.append(log.head().position)

    assert positions == sorted(positions)
    assert positions[-1] == heads[-1].position


def test_a_wal_with_a_wrong_bit_stops_there(
    unfinished: tuple[Path, list[Head]], tmp_path: Path
) -> None:
    folder, heads = unfinished
    wal = bytearray((folder / "left-log.db-wal").read_bytes())
    wal[len(wal) // 2] ^= 0x10
    shutil.copy(folder / "left-log.db", tmp_path / "flip.db")
    (tmp_path / "flip.db-wal").write_bytes(wal)

    with open_log(tmp_path / "flip.db", read_only=True) as log:
        assert verify(log).passed
        assert log.head() in heads
        assert log.head() != heads[-1]
        lost = log.head().position
        missing = verify(log, anchor=heads[-1])

    assert [c.name for c in missing.checks if not c.passed] == ["anchor"]
    assert lost < heads[-1].position


def test_reading_a_damaged_log_gives_what_is_before_the_damage(
    long_log: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "zeros.db"
    path.write_bytes(zeroed(long_log, len(long_log) // PAGE // 2))
    with open_log(path, read_only=True) as log:
        report = verify(log)
        (first_lost,) = [f.position for f in report.check("storage").findings if f.position]
        readable = [r.position for r in log.read(upto=first_lost - 1)]

        with pytest.raises(BrokenLogError, match="malformed"):
            list(log.read())

    assert readable == list(range(1, first_lost))
    assert report.events == len(readable) > 0
