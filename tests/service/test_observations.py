"""Observations from an observer to the scheduler and to people, over a real controller."""

from collections.abc import Callable, Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.service.running import TOKENS, running
from xce.adapters.client import Client
from xce.domain.engine.messages import Role
from xce.domain.engine.scheduler import SchedulerMemory, merged
from xce.domain.errors import RejectedError
from xce.domain.formats.observation import Observation, Quality
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.shared_report import SharedReport
from xce.domain.formats.snapshot import RunningJob, Snapshot
from xce.domain.sharing.display import shared_rows

Make = Callable[[str, Role], Client]

POOL = {
    "name": "lic", "owned": 10, "observer": "server", "settle_time": "1min",
    "idle_return_after": "30min",
}  # fmt: skip


@pytest.fixture
def client() -> Generator[Callable[[str, Role], Client]]:
    """Makes clients, and closes them."""
    made: list[Client] = []

    def make(address: str, role: Role) -> Client:
        made.append(Client((address,), token=TOKENS[role]))
        return made[-1]

    yield make
    for one in made:
        one.close()


def look(in_use: int, now: datetime, sequence: int, **values: object) -> Observation:
    return Observation.model_validate(
        {
            "resource": "lic", "source": "server", "sequence": sequence, "quality": Quality.OK,
            "in_use": in_use, "observed_at": now, "received_at": now, **values,
        }
    )  # fmt: skip


def test_what_a_server_sees_lowers_what_is_free_for_sessions_and_shows_to_people(
    tmp_path: Path, client: Make
) -> None:
    with running(tmp_path, shared=(POOL,)) as service:
        observer = client(service.address, Role.PROVISIONER)
        scheduler = client(service.address, Role.SCHEDULER)
        now = scheduler.supply().now
        observer.report_observations([look(7, now, 5)])
        observer.report_observations([look(1, now - timedelta(minutes=1), 4)])  # late
        (kept,) = scheduler.observations().observations
        assert kept.in_use == 7

        view = Snapshot(
            format="xce.snapshot/1",
            now=now,
            running=(RunningJob(id="j", started=now - timedelta(hours=1), shared={"lic": 4}),),
        )
        memory = SchedulerMemory()
        supply = scheduler.supply()
        memory.see(view, supply, now, scheduler.observations())
        snapshot = merged(view, supply, memory)
        (shared,) = snapshot.shared
        assert (shared.total, shared.used_elsewhere) == (10, 3)
        assert memory.occupied(snapshot, SessionResult(position=0)) == {"lic": 7}

        scheduler.report_bookings({"lic": 7})
        (row,) = shared_rows(scheduler.shared(), scheduler.observations(), now, booked={"lic": 4})
        assert (row.in_use, row.unbooked, row.free) == (7, 3, 3)


def test_what_the_scheduler_reports_of_a_resource_is_shown_and_is_in_the_metrics(
    tmp_path: Path, client: Make
) -> None:
    with running(tmp_path, shared=(POOL,)) as service:
        scheduler = client(service.address, Role.SCHEDULER)
        now = scheduler.supply().now
        report = SharedReport(
            wanted=4, wanted_since=now, booked=5, drift=3, drift_since=now - timedelta(hours=1)
        )
        scheduler.report_bookings({"lic": 8}, {"lic": report})
        assert scheduler.bookings().reports == {"lic": report}
        supply = scheduler.supply()
        (entry,) = supply.shared
        assert (entry.occupied, entry.report) == (8, report)
        assert [(one.name, one.observer) for one in supply.pools] == [("lic", "server")]
        metrics = service.admin.get("/metrics").text
        assert 'xce_shared_drift{resource="lic"} 3.0' in metrics
        for part, amount in (("occupied", 8.0), ("booked", 5.0), ("wanted", 4.0)):
            assert f'xce_shared_units{{part="{part}",resource="lic"}} {amount}' in metrics
        scheduler.report_bookings({"lic": None}, {"lic": SharedReport()})
        metrics = service.admin.get("/metrics").text
        assert "xce_shared_drift{" not in metrics
        assert 'part="occupied"' not in metrics


def test_while_nothing_was_seen_the_idle_window_is_unknown_and_nothing_is_idle(
    tmp_path: Path, client: Make
) -> None:
    with running(tmp_path, shared=(POOL,)) as service:
        scheduler = client(service.address, Role.SCHEDULER)
        supply = scheduler.supply()
        view = Snapshot(format="xce.snapshot/1", now=supply.now)
        memory = SchedulerMemory()
        memory.see(view, supply, supply.now, scheduler.observations())
        (shared,) = merged(view, supply, memory).shared
        assert (shared.peak_need, shared.used_elsewhere) == (None, 0)


def test_an_observation_of_what_nobody_declared_is_refused(tmp_path: Path, client: Make) -> None:
    with running(tmp_path) as service:
        observer = client(service.address, Role.PROVISIONER)
        with pytest.raises(RejectedError, match="no shared resource is named lic"):
            observer.report_observations([look(1, datetime(2026, 3, 1, tzinfo=UTC), 1)])
        assert observer.observations().observations == ()
