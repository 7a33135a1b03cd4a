"""What a live driver made its snapshots of: it comes back, and a driver that would make another snapshot of it now is found."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.snapshots import EVERYTHING, snapshots
from xce.domain.engine import scheduler
from xce.domain.engine.scheduler import SchedulerMemory
from xce.domain.formats.inventory import InstanceEntry, Inventory
from xce.domain.formats.rest import LeaseEntry, Observations, SharedEntry, Supply
from xce.domain.formats.snapshot import Catalog, Snapshot
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.lease import LeaseState
from xce.domain.scheduling.session import run_session
from xce.domain.sharing.window import PeakWindow
from xce.replay.anonymous import anonymised
from xce.replay.joined import joined
from xce.replay.recording import RecordingReader, RecordingWriter
from xce.replay.verification import verify
from xce.replay.views import Seen

AT = datetime(2026, 3, 1, 10, tzinfo=UTC)


def supply(minute: int, *, borrowed: int = 2, joined_hosts: tuple[str, ...] = ("h2",)) -> Supply:
    """Some tokens are lent, and some hosts are of a cloud."""
    instances = tuple(
        InstanceEntry(
            id=f"i-{name}", provider="cloud", template="t", state=InstanceState.JOINED, host=name,
            granted_at=AT,
        )
        for name in joined_hosts
    )  # fmt: skip
    tokens = SharedEntry(
        name="lic", total=2 + borrowed, owned=2, borrowed=borrowed, in_flight=0, returning=0,
        occupied=None, headroom=0, provider="pool", max_borrow=9, step=1,
        idle_return_after=timedelta(minutes=3), min_hold=timedelta(0),
    )  # fmt: skip
    lease = LeaseEntry(
        provider="cloud", holder="p", epoch=1, state=LeaseState.HELD, term=timedelta(seconds=30),
        since=AT, left_s=17.25 + minute,
    )  # fmt: skip
    return Supply(
        position=minute,
        now=AT + timedelta(minutes=minute, seconds=1),
        catalog=Catalog(),
        shared=(tokens,),
        inventory=Inventory(instances=instances),
        providers=(),
        leases=(lease,),
    )


def view(minute: int, jobs: int) -> Snapshot:
    """Two hosts; the first of so many jobs runs, with a token."""
    running = [
        {"id": "j0", "user": "bob", "queue": "q", "shared": {"lic": 1},
         "hosts": [{"name": "h1", "tasks": 1, "uses": {"slots": 1}}]}
    ] if jobs else []  # fmt: skip
    document = {
        "format": "xce.snapshot/1",
        "now": (AT + timedelta(minutes=minute)).isoformat(),
        "hosts": [
            {"name": "h1", "total": {"slots": 1}},
            {"name": "h2", "total": {"slots": 1}, "instance": "i-h2"},
        ],
        "running": running,
        "pending": [
            {"id": f"j{n}", "user": "bob", "queue": "q", "resreq": "rusage[lic=1,slots=5]"}
            for n in range(1, jobs)
        ],
    }
    return Snapshot.model_validate_json(json.dumps(document))  # the log alone declares lic


class Life:
    """A driver's life, recorded as it goes."""

    def __init__(self, lines: list[str]) -> None:
        self.memory = SchedulerMemory()
        self.begins = True
        self.writer = RecordingWriter(
            lines.append, by="xce scheduler", release="1", at=AT, config={}
        )

    def round(self, minute: int, jobs: int, *, session: bool = True) -> None:
        shown, known = view(minute, jobs), supply(minute)
        seen = Observations(observations=(), pools=())
        snapshot = self.memory.look(shown, known, seen)
        self.writer.seen(shown, known, seen, begins=self.begins)
        self.begins = False
        if session:
            result = run_session(snapshot)
            self.memory.note_needs(snapshot, result)
            self.writer.session(snapshot, result)


def lived(*jobs: int) -> list[str]:
    """Return the recording of a life: a session a minute, over so many jobs."""
    lines: list[str] = []
    life = Life(lines)
    for minute, number in enumerate(jobs):
        life.round(minute, number)
    life.writer.end()
    return lines


def seen_in(lines: list[str]) -> Iterator[Seen]:
    return (e for e in RecordingReader("x").entries(lines) if isinstance(e, Seen))


def test_what_was_seen_comes_back() -> None:
    found = list(seen_in(lived(3, 5, 0)))

    for minute, (one, jobs) in enumerate(zip(found, (3, 5, 0), strict=True)):
        assert one.view is not None
        assert one.view.to_json() == view(minute, jobs).to_json()
        assert one.supply.to_json() == supply(minute).to_json()
        assert one.observations == Observations(observations=(), pools=())
    assert [one.begins for one in found] == [True, False, False]


@given(st.lists(snapshots(EVERYTHING), min_size=2, max_size=2))
def test_any_views_come_back(views: list[Snapshot]) -> None:
    lines: list[str] = []
    writer = RecordingWriter(lines.append, by="x", release="1", at=AT, config={})
    for minute, one in enumerate(views):
        writer.seen(one, supply(minute, borrowed=minute % 2), None, begins=minute == 0)

    found = [one.view.to_json() for one in seen_in(lines) if one.view is not None]

    assert found == [one.to_json() for one in views]


def test_what_is_as_before_is_not_written_again() -> None:
    lines = [line for line in lived(40, 40, 40) if '"kind":"seen"' in line]

    assert len(lines[1]) < len(lines[0]) / 4
    assert "inventory" not in lines[1]


def test_a_life_verifies_with_rounds_that_had_no_session_and_a_successor() -> None:
    parts: list[list[str]] = [[], []]
    for part, start in zip(parts, (0, 10), strict=True):
        life = Life(part)
        life.round(start, 5)
        life.round(start + 1, 2, session=False)
        life.round(start + 2, 4)
        life.writer.end()
    both: list[str] = []
    joined([("1", parts[0]), ("2", parts[1])], both.append)

    for lines in (*parts, both):
        verdict = verify(lines, "x")
        assert verdict.mismatch is None
        assert verdict.whole
    assert [one.begins for one in seen_in(both)] == [True, False, False] * 2


@pytest.mark.parametrize(
    ("name", "path"),
    [("window", "snapshot.shared[0].peak_need"), ("draining", "snapshot.hosts[1].state"),
     ("idle", "snapshot.hosts[1].idle_since")],
)  # fmt: skip
def test_a_rule_of_the_driver_that_is_changed_is_found_in_its_snapshot(
    name: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = lived(5, 1, 1, 1, 1, 1)

    def one_more(window: PeakWindow, now: datetime) -> int | None:
        return 1 + (peak(window, now) or 0)

    def all_of_them(supply: Supply) -> set[str]:
        return {"h2"}

    def later(memory: SchedulerMemory, view: Snapshot, *more: object) -> None:
        see(memory, view, *more)  # type: ignore[arg-type]  # as they came
        memory.idle_since = dict.fromkeys(memory.idle_since, view.now)

    peak, see = PeakWindow.peak, SchedulerMemory.see
    if name == "window":
        monkeypatch.setattr(PeakWindow, "peak", one_more)
    elif name == "draining":
        monkeypatch.setattr(scheduler, "_draining", all_of_them)
    else:
        monkeypatch.setattr(SchedulerMemory, "see", later)

    found = verify(lines, "x").mismatch

    assert found is not None
    assert found.path == path
    assert found.round is None


def test_a_view_with_a_name_twice_is_left_out_and_what_follows_is_not_judged_by_it() -> None:
    lines: list[str] = []
    life = Life(lines)
    life.round(0, 5)
    twice = view(1, 3).model_copy(update={"hosts": view(1, 3).hosts * 2})
    life.writer.seen(twice, supply(1), None)
    life.memory = SchedulerMemory()  # nobody knows what it remembers of that
    life.round(2, 5)
    life.writer.end()

    found = list(seen_in(lines))

    assert [one.view is None for one in found] == [False, True, False]
    assert verify(lines, "x").mismatch is None


def test_without_names_nothing_is_left_of_what_was_seen() -> None:
    lines, out = lived(5, 3), list[str]()

    anonymised(lambda: lines, "x", out.append)

    assert not list(seen_in(out))
    assert "bob" not in "".join(out)
    assert verify(out, "x").mismatch is None
