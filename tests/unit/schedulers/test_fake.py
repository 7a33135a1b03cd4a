"""The fake batch system: what may happen to it, and its file."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from xce.adapters.schedulers import fake_state as fakes
from xce.adapters.schedulers.fake import FakeFile, FakeScheduler
from xce.adapters.schedulers.fake_state import FakeState
from xce.domain.errors import NotFoundError, PermanentError, RejectedError
from xce.domain.formats.session_result import Allocation, PlacedOn
from xce.domain.formats.snapshot import Host, HostState, PendingJob
from xce.domain.ports import ExpectedHost, SchedulerOrders

AT = datetime(2026, 3, 1, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class Hands:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at = AT

    def now(self) -> datetime:
        return self.at


def with_jobs(count: int, slots: int = 1) -> FakeState:
    state = fakes.with_host(FakeState(), Host(name="h1", total={"slots": slots}))
    return fakes.submitted(state, [PendingJob(id="new", resreq="")] * count, MINUTE, AT)


def place(job: str, slots: int = 1, host: str = "h1") -> Allocation:
    return Allocation(job=job, hosts=(PlacedOn(name=host, tasks=slots, uses={"slots": slots}),))


def test_a_job_runs_for_its_time_and_leaves_the_host_idle() -> None:
    state = fakes.started(with_jobs(1), place("1"), AT)
    assert fakes.moved_on(state, AT + MINUTE / 2) == state

    after = fakes.moved_on(state, AT + 2 * MINUTE)

    assert [(end.job, end.ended) for end in after.ended] == [("1", AT + MINUTE)]
    assert fakes.host_of(after, "h1").idle_since == AT + MINUTE


def test_a_host_takes_no_more_than_it_has_and_nothing_while_it_is_drained() -> None:
    state = fakes.started(with_jobs(3), place("1"), AT)

    with pytest.raises(RejectedError, match="0 slots left; wanted 1"):
        fakes.started(state, place("2"), AT)
    closed = fakes.with_state(with_jobs(1), "h1", HostState.DRAINING)
    with pytest.raises(RejectedError, match="is draining"):
        fakes.started(closed, place("1"), AT)
    with pytest.raises(NotFoundError, match="no host h9"):
        fakes.started(state, place("2", host="h9"), AT)
    with pytest.raises(NotFoundError, match="does not wait"):
        fakes.started(state, place("1"), AT)


def test_jobs_of_a_host_that_dies_wait_again() -> None:
    state = fakes.started(with_jobs(2), place("1"), AT)

    after = fakes.without_host(state, "h1")

    assert [one.job.id for one in after.waiting] == ["1", "2"]
    assert after.running == ()


def test_expected_hosts_boot_once_and_in_their_time() -> None:
    one = ExpectedHost("cloud/m1", "m1", "n1", "c4", AT, {"type": "X"}, {"slots": 4})
    early = fakes.booted(FakeState(), [one], MINUTE, AT)
    assert early.hosts == ()

    after = fakes.booted(early, [one], MINUTE, AT + MINUTE)
    again = fakes.booted(after, [one], MINUTE, AT + 2 * MINUTE)

    assert [(host.name, host.instance, host.total) for host in again.hosts] == [
        ("n1", "cloud/m1", {"slots": 4})
    ]
    gone = fakes.without_host(again, "n1")
    assert fakes.booted(gone, [one], MINUTE, AT + 3 * MINUTE).hosts == ()


def test_orders_that_the_world_has_overtaken_are_told_and_the_others_done() -> None:
    orders = SchedulerOrders(
        position=1, close=("h1", "h9"), remove=("h9",), start=(place("1"), place("7"))
    )

    after, problems = fakes.obeyed(with_jobs(1), orders, AT)

    assert fakes.host_of(after, "h1").state is HostState.DRAINING
    assert problems == ["job 1: host h1 is draining", "job 7: job 7 does not wait"]


def test_a_host_with_a_job_is_not_removed() -> None:
    state = fakes.started(with_jobs(1), place("1"), AT)

    after, _ = fakes.obeyed(state, SchedulerOrders(position=1, remove=("h1",)), AT)

    assert [host.name for host in after.hosts] == ["h1"]


def test_names_are_given_once(tmp_path: Path) -> None:
    file = FakeFile(tmp_path / "b.json")
    file.change(lambda state: fakes.submitted(state, [PendingJob(id="a", resreq="")], MINUTE, AT))

    with pytest.raises(RejectedError, match="job a is there already"):
        file.change(
            lambda state: fakes.submitted(state, [PendingJob(id="a", resreq="")], MINUTE, AT)
        )

    assert len(FakeFile(tmp_path / "b.json").read().waiting) == 1


def test_a_file_of_something_else_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    path.write_text("hello")

    with pytest.raises(PermanentError, match="no state of a fake batch system"):
        FakeFile(path).change(lambda state: state)

    assert path.read_text() == "hello"


def test_waiting_ends_when_a_job_ends_or_somebody_changes_the_file(tmp_path: Path) -> None:
    file, clock = FakeFile(tmp_path / "b.json"), Hands()
    file.change(lambda _: fakes.started(with_jobs(1), place("1"), AT))
    waits: list[float] = []

    def wait(length: float) -> None:
        waits.append(length)
        clock.at += 30 * MINUTE / 60

    source = FakeScheduler(file, clock, boot_time=None, wait=wait)
    view = source.view()
    assert view is not None
    assert [job.id for job in view.running] == ["1"]

    source.wait(600.0)

    assert len(waits) == 2
    ended = source.view()
    assert ended is not None
    assert ended.running == ()
