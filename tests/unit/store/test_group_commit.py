"""Group commit: callers go to disk together, each is answered for itself, and nobody waits for ever."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from threading import Event, Thread
from typing import Any

import pytest

from tests.contract.test_event_log import lease, names, request_of
from tests.unit.aggregates import FACT
from xce.adapters.store.follower import Follower
from xce.adapters.store.group_commit import GroupCommit
from xce.adapters.store.log import StoredLog
from xce.adapters.store.open import MEMORY, open_log
from xce.domain.errors import BrokenLogError, ConflictError, StaleEpochError, TransientError
from xce.domain.events.base import Aggregate
from xce.domain.events.recorded import Recorded
from xce.domain.provisioning.request import Request


class HeldLog:
    """A log whose appends wait until they are let go; says how large the groups were."""

    def __init__(self, log: StoredLog) -> None:
        self.log = log
        self.go = Event()
        self.begun = Event()
        self.groups: list[int] = []
        self.error: Exception | None = None

    def append(
        self, aggregates: Sequence[Aggregate[Any]], *, fences: Mapping[str, int] | None = None
    ) -> Sequence[Recorded]:
        self.begun.set()
        self.go.wait()
        self.groups.append(len(aggregates))
        if self.error is not None:
            raise self.error
        return self.log.append(aggregates, fences=fences)


@pytest.fixture
def held() -> Iterator[HeldLog]:
    with open_log(MEMORY) as log:
        yield HeldLog(log)


def begin(commit: GroupCommit, held: HeldLog) -> Any:
    """Have one append under way, so that what follows gathers behind it."""
    first = commit.submit([request_of("first")])
    held.begun.wait()
    return first


def test_callers_that_come_while_a_group_is_on_its_way_go_together(held: HeldLog) -> None:
    with GroupCommit(held) as commit:
        first = begin(commit, held)
        answers = [commit.submit([request_of(f"R{number}")]) for number in range(20)]
        held.go.set()

        assert [r.position for r in first.result()] == [1]
        assert [[r.position for r in answer.result()] for answer in answers] == [
            [position] for position in range(2, 22)
        ]
    assert held.groups == [1, 20]
    assert (commit.groups, commit.callers) == (2, 21)


def test_one_who_fails_does_not_fail_the_others(held: HeldLog) -> None:
    with GroupCommit(held) as commit:
        held.go.set()
        commit.append([request_of("R1")])
        epoch = held.log.take_primary()
        held.go.clear()
        held.begun.clear()
        begin(commit, held)
        good = commit.submit([request_of("R2")], fences={"primary": epoch})
        taken = commit.submit([request_of("R1", 7)], fences={"primary": epoch})
        also_good = commit.submit([request_of("R3")])
        stale = commit.submit([request_of("R4")], fences={"primary": epoch + 1})
        last = commit.submit([request_of("R5")], fences={"primary": epoch})
        held.go.set()

        assert [r.position for r in good.result()] == [3]
        with pytest.raises(ConflictError):
            taken.result()
        assert [r.position for r in also_good.result()] == [4]
        with pytest.raises(StaleEpochError):
            stale.result()
        assert [r.position for r in last.result()] == [5]


def test_two_changes_of_one_aggregate_do_not_go_together(held: HeldLog) -> None:
    with GroupCommit(held) as commit:
        held.go.set()
        commit.append([request_of("R1")])
        one, two = (held.log.get(Request, "request:R1") for _ in range(2))
        one.accept(provider_request_id="add-1", **FACT)
        two.lose_track(why="timeout", **FACT)
        held.go.clear()
        held.begun.clear()
        begin(commit, held)
        answers = [commit.submit([one]), commit.submit([two])]
        held.go.set()

        assert [r.position for r in answers[0].result()] == [3]
        with pytest.raises(ConflictError):
            answers[1].result()
    assert held.groups == [1, 1, 1, 1]


def test_what_moves_a_fence_goes_alone(held: HeldLog) -> None:
    """Fences are compared before any is moved: in one append the old holder would pass."""
    with GroupCommit(held) as commit:
        begin(commit, held)
        moved = commit.submit([lease()])
        behind = commit.submit([request_of("R1")], fences={"lease:aws": 0})
        held.go.set()

        moved.result()
        with pytest.raises(StaleEpochError):
            behind.result()


def test_an_error_of_the_log_is_everybodys_and_nothing_is_saved(held: HeldLog) -> None:
    with GroupCommit(held) as commit:
        held.error = TransientError("the disk is full")
        requests = [request_of(f"R{number}") for number in range(3)]
        begin(commit, held)
        answers = [commit.submit([request]) for request in requests]
        held.go.set()
        for answer in answers:
            with pytest.raises(TransientError, match="the disk is full"):
                answer.result()

        held.error = None
        for request in requests:
            commit.append([request])
    assert [name for _, name in names(held.log)] == ["request:R0", "request:R1", "request:R2"]


def test_a_fault_of_ours_is_told_and_the_thread_goes_on(held: HeldLog) -> None:
    with GroupCommit(held) as commit:
        held.go.set()
        held.error = ZeroDivisionError("a fault")
        with pytest.raises(ZeroDivisionError):
            commit.append([request_of("R1")])
        held.error = None
        assert len(commit.append([request_of("R1")])) == 1


def test_too_many_who_wait_are_sent_away(held: HeldLog) -> None:
    with GroupCommit(held, waiting_max=2) as commit:
        begin(commit, held)
        answers = [commit.submit([request_of(f"R{number}")]) for number in range(2)]
        late = request_of("R9")
        with pytest.raises(TransientError, match="2 callers wait"):
            commit.append([late])
        assert len(late.pending_events) == 1
        held.go.set()
        for answer in answers:
            answer.result()
        commit.append([late])


def test_a_group_has_a_largest_size(held: HeldLog) -> None:
    with GroupCommit(held, group_events_max=8) as commit:
        begin(commit, held)
        answers = [commit.submit([request_of(f"R{number}")]) for number in range(20)]
        held.go.set()
        for answer in answers:
            answer.result()
    assert held.groups == [1, 8, 8, 4]


def test_nothing_pending_is_answered_at_once(held: HeldLog) -> None:
    with GroupCommit(held) as commit:
        assert commit.append([]) == ()
    assert held.groups == []


def test_what_is_cancelled_in_time_is_not_appended(held: HeldLog) -> None:
    with GroupCommit(held) as commit:
        begin(commit, held)
        cancelled = commit.submit([request_of("R1")])
        assert cancelled.cancel()
        held.go.set()
    assert [name for _, name in names(held.log)] == ["request:first"]


def test_closing_appends_what_waits_and_takes_nothing_more(held: HeldLog) -> None:
    commit = GroupCommit(held)
    begin(commit, held)
    answer = commit.submit([request_of("R1")])
    closing = Thread(target=commit.close)
    closing.start()
    held.go.set()
    closing.join()

    assert len(answer.result(timeout=0)) == 1
    with pytest.raises(TransientError, match="being closed"):
        commit.append([request_of("R2")])
    commit.close()


def test_coroutines_wait_without_holding_each_other_up() -> None:
    with open_log(MEMORY) as log, GroupCommit(log, gather_s=0.001) as commit:

        async def many() -> list[Sequence[Recorded]]:
            return await asyncio.gather(
                *(commit.append_async([request_of(f"R{number}")]) for number in range(50))
            )

        answers = asyncio.run(many())

        assert [answer[0].position for answer in answers] == list(range(1, 51))
        assert commit.groups < 50


def test_projections_are_folded_before_anybody_is_answered() -> None:
    with open_log(MEMORY) as log:
        follower = Follower(log)
        with GroupCommit(log, appended=follower.appended) as commit:

            def ask(name: str) -> None:
                (recorded,) = commit.append([request_of(name)])
                seen.append(follower.position >= recorded.position)

            seen: list[bool] = []
            threads = [Thread(target=ask, args=(f"R{number}",)) for number in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        assert seen == [True] * 8
        assert follower.head == log.head()


def test_what_is_saved_but_cannot_be_folded_is_said() -> None:
    def refuse(_: Sequence[Recorded]) -> None:
        raise LookupError("no such host")

    with open_log(MEMORY) as log, GroupCommit(log, appended=refuse) as commit:
        with pytest.raises(BrokenLogError, match="saved, but not folded: no such host"):
            commit.append([request_of("R1")])
        assert log.head().position == 1
