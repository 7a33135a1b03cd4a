"""Snapshot files that another scheduler writes: whole, in part, wrong, and in turn."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from xce.adapters.schedulers.watched import WatchedFiles, require_folder
from xce.domain.errors import PermanentError, TransientError
from xce.domain.formats.snapshot import Snapshot
from xce.domain.ports import SchedulerOrders


def text(minute: int) -> str:
    return json.dumps({"format": "xce.snapshot/1", "now": f"2026-03-01T10:{minute:02d}:00Z"})


def put(path: Path, content: str, at: int) -> None:
    path.write_text(content)
    os.utime(path, (at, at))


def watching(
    path: Path, orders: Path | None = None, wait: Callable[[float], object] = lambda _: None
) -> WatchedFiles:
    return WatchedFiles(path, orders, 1.0, wait)


def minute_of(view: Snapshot | None) -> int:
    assert view is not None
    return view.now.minute


def test_nothing_is_seen_before_the_first_file(tmp_path: Path) -> None:
    assert watching(tmp_path).view() is None
    assert watching(tmp_path / "later.json").view() is None


def test_the_newest_file_of_a_folder_counts(tmp_path: Path) -> None:
    source = watching(tmp_path)
    put(tmp_path / "b.json", text(1), 100)
    put(tmp_path / "a.json", text(2), 200)
    assert minute_of(source.view()) == 2

    put(tmp_path / "c.json", text(3), 300)

    assert minute_of(source.view()) == 3


def test_a_half_written_file_is_named_once_and_read_when_it_is_whole(tmp_path: Path) -> None:
    source = watching(tmp_path)
    put(tmp_path / "a.json", text(1), 100)
    put(tmp_path / "b.json", text(2)[:30], 200)

    with capture_logs() as logs:
        assert minute_of(source.view()) == 1
        assert minute_of(source.view()) == 1
    assert [(log["event"], Path(log["file"]).name) for log in logs] == [
        ("snapshot skipped", "b.json")
    ]
    put(tmp_path / "b.json", text(2), 201)
    assert minute_of(source.view()) == 2


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "\x00\x01",
        '{"format": "xce.session/1", "position": 1}',
        '{"format": "xce.snapshot/1"}',
    ],
)
def test_a_wrong_file_is_skipped_with_the_reason(tmp_path: Path, content: str) -> None:
    put(tmp_path / "a.json", content, 100)

    with capture_logs() as logs:
        assert watching(tmp_path).view() is None

    assert "a.json" in logs[0]["why"]


def test_files_that_are_being_written_and_other_files_are_not_looked_at(tmp_path: Path) -> None:
    for name in (".a.json", "a.json.tmp", "b.json.part", "notes.txt"):
        put(tmp_path / name, text(1), 100)

    with capture_logs() as logs:
        assert watching(tmp_path).view() is None

    assert logs == []


def test_one_file_is_replaced_again_and_again(tmp_path: Path) -> None:
    source = watching(tmp_path / "now.json")
    for minute in (1, 2):
        put(tmp_path / "now.json", text(minute), 100 * minute)
        assert minute_of(source.view()) == minute


def test_orders_are_a_document_that_is_replaced_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "orders.json"
    source = watching(tmp_path, path)

    source.obey(SchedulerOrders(position=7, close=("h1",)))
    first = path.stat().st_ino
    source.obey(SchedulerOrders(position=7, close=("h1",)))

    document: dict[str, Any] = json.loads(path.read_text())
    assert (document["format"], document["position"]) == ("xce.scheduler-orders/1", 7)
    assert document["close"] == ["h1"]
    assert path.stat().st_ino == first
    assert watching(tmp_path, path).view() is None  # it is not taken for a snapshot


def test_orders_that_cannot_be_written_are_tried_again_later(tmp_path: Path) -> None:
    source = watching(tmp_path, tmp_path / "missing" / "orders.json")

    with pytest.raises(TransientError, match="cannot be written"):
        source.obey(SchedulerOrders(position=1))


def test_waiting_ends_with_a_new_file_or_the_time(tmp_path: Path) -> None:
    waits: list[float] = []

    def wait(length: float) -> None:
        waits.append(length)
        if len(waits) == 5:
            put(tmp_path / "a.json", text(1), 100)

    source = watching(tmp_path, wait=wait)
    source.wait(3.5)
    assert waits == [1.0, 1.0, 1.0, 0.5]
    source.wait(60)
    assert len(waits) == 5


def test_a_folder_that_is_missing_is_told_at_the_start(tmp_path: Path) -> None:
    require_folder(tmp_path / "now.json")
    with pytest.raises(PermanentError, match="no folder"):
        require_folder(tmp_path / "missing" / "now.json")
