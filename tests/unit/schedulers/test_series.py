"""Sessions on whole snapshots, one after the other: nobody can tell from the bytes that only what differs is worked on."""

import json
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.snapshots import EVERYTHING, snapshots
from xce.domain.errors import InputError
from xce.domain.formats.snapshot import Snapshot
from xce.domain.scheduling.kept import Scheduler
from xce.domain.scheduling.plans import Allocator
from xce.domain.scheduling.series import Series
from xce.domain.scheduling.session import run_session

NOW = "2026-03-01T10:00:00Z"


def snapshot(jobs: Sequence[str], minute: int = 0, resreq: str = "") -> Snapshot:
    document = {
        "format": "xce.snapshot/1",
        "now": NOW.replace("00:00Z", f"{minute:02}:00Z"),
        "hosts": [{"name": "h1", "total": {"slots": 2}}],
        "pending": [{"id": job, "user": "u", "queue": "q", "resreq": resreq} for job in jobs],
    }
    return Snapshot.from_json(json.dumps(document))


@given(st.lists(snapshots(EVERYTHING), min_size=1, max_size=2), st.booleans())
def test_any_snapshots_give_the_bytes_of_fresh_sessions(shown: list[Snapshot], trace: bool) -> None:
    series = Series()
    for one in (*shown, shown[0], shown[0]):
        same, result = series.run(one, trace=trace)

        assert same.to_json() == one.to_json()
        assert result.to_json() == run_session(one, trace=trace).to_json()


def test_what_has_not_changed_is_kept_and_not_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Snapshot] = []

    class Counted(Scheduler):
        def __init__(self, shown: Snapshot, *, allocators: Iterable[Allocator] = ()) -> None:
            made.append(shown)
            super().__init__(shown, allocators=allocators)

    monkeypatch.setattr("xce.domain.scheduling.series.Scheduler", Counted)
    series = Series()
    first, _ = series.run(snapshot(["1", "2"]))
    second, _ = series.run(snapshot(["1", "2", "3"], 1))

    assert len(made) == 1
    assert second.pending[0] is first.pending[0]


def test_after_a_requirement_that_cannot_be_read_the_next_session_is_right() -> None:
    series = Series()
    series.run(snapshot(["1"]))
    with pytest.raises(InputError):
        series.run(snapshot(["1"], 1, "rusage["))

    _, result = series.run(snapshot(["1", "2"], 2))

    assert result.to_json() == run_session(snapshot(["1", "2"], 2)).to_json()


def test_a_time_that_goes_back_changes_nothing_else() -> None:
    series = Series()
    series.run(snapshot(["1", "2", "3"], 5))

    _, result = series.run(snapshot(["1", "2", "3"], 1))

    assert result.to_json() == run_session(snapshot(["1", "2", "3"], 1)).to_json()
