"""The framework routine that places one primary request, whoever makes the plans."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from inspect import isfunction
from types import CodeType, FrameType
from typing import Any, Self

import pytest

from tests.reference.cases import host, job, snapshot
from xce.domain.cluster.state import State
from xce.domain.scheduling import allocation as module
from xce.domain.scheduling import placement
from xce.domain.scheduling.allocation import Code, allocate
from xce.domain.scheduling.attempt import Attempt, Context
from xce.domain.scheduling.classes import JobClass, Part
from xce.domain.scheduling.compile import Compiled
from xce.domain.scheduling.plans import PARJOB, SEQJOB, Allocator, ListedPlans, Plan, Plans

LIMIT = {"name": "u-slots", "resource": "slots", "amount": 5, "per": "user"}
PER_HOST = {"name": "one a host", "resource": "jobs", "amount": 1, "per": "host"}


class Listed(ListedPlans):
    """Plans made by hand that remember whether they were closed."""

    closed = 0

    def __init__(self, *plans: Plan) -> None:
        super().__init__(iter(plans))
        self.failures: list[int | None] = []

    def next(self, failed_at: int | None) -> Plan | None:
        self.failures.append(failed_at)
        return super().next(failed_at)

    def close(self) -> None:
        super().close()
        self.closed += 1


def given(resreq: str = "", *, tasks: int = 1, **parts: Any) -> tuple[State, JobClass]:
    """Return the state and the class of one job in a cluster."""
    parts.setdefault("hosts", [host("h1", slots=2, mem=8), host("h2", slots=4, mem=8)])
    compiled = Compiled(snapshot(pending=[job("1", tasks=(tasks, tasks), resreq=resreq)], **parts))
    job_class = compiled.queue[0][1]
    assert job_class is not None
    return compiled.core, job_class


def attempt_of(job_class: JobClass, *, tasks: int | None = None, part: int = 0) -> Attempt:
    chosen = job_class.alternatives[0].parts[part]
    return Attempt(chosen, tasks or chosen.tasks or job_class.least, Context(job_class))


def hand_made(plans: Plans | None) -> Allocator:
    return Allocator("hand made", lambda core, attempt: plans)


def free(core: State) -> dict[str, list[int]]:
    return {name: column[:] for name, column in core.free.items()}


def hosts_of(attempt: Attempt) -> list[tuple[int, int]]:
    assert attempt.allocation is not None
    return [(claim.place, claim.tasks) for claim in attempt.allocation.hosts]


def test_ar_1_1_both_built_in_allocators_go_through_the_one_routine() -> None:
    core, one = given()
    _, several = given(tasks=3)

    assert allocate(core, SEQJOB, attempt_of(one)) is Code.SATISFIED
    assert allocate(core, PARJOB, attempt_of(several)) is Code.SATISFIED


def test_ar_1_3_without_a_guard_every_request_is_accepted() -> None:
    core, job_class = given()

    assert allocate(core, hand_made(Listed((1,))), attempt_of(job_class)) is Code.SATISFIED


def test_ar_1_4_a_request_that_the_guard_rejects_is_pending_and_nothing_was_looked_at() -> None:
    core, job_class = given()
    plans = Listed((1,))
    attempt = attempt_of(job_class)

    def rejects(part: Part, tasks: int) -> bool:
        return False

    code = allocate(core, replace(hand_made(plans), accepts=rejects), attempt)

    assert code is Code.PENDING
    assert attempt.record is None
    assert plans.failures == []


def test_a_preparation_hook_sees_every_accepted_attempt_before_anything_is_checked() -> None:
    core, job_class = given()
    seen: list[object] = []

    def prepare(attempt: Attempt) -> None:
        seen.append(attempt.record)

    allocate(core, replace(hand_made(None), prepare=prepare), attempt_of(job_class))

    assert seen == [None]


def test_ar_2_1_a_record_is_made_unless_the_attempt_has_one() -> None:
    core, job_class = given()
    first = attempt_of(job_class)
    allocate(core, SEQJOB, first)
    second = attempt_of(job_class)
    second.record = first.record
    allocate(core, SEQJOB, second)

    assert first.record is not None
    assert second.record is first.record


def test_ar_2_2_each_short_shared_resource_is_a_reason_and_no_host_is_tried() -> None:
    shared = [{"name": "lic", "total": 1}, {"name": "tok", "total": 0}, {"name": "ok", "total": 9}]
    core, job_class = given("rusage[lic=2,tok=1,ok=1]", shared=shared)
    plans = Listed((1,))
    attempt = attempt_of(job_class)

    assert allocate(core, hand_made(plans), attempt) is Code.PENDING
    assert attempt.record is not None
    assert attempt.record.shared == ["lic", "tok"]
    assert plans.failures == []


def test_ar_2_3_shared_amounts_count_once_whatever_the_plans_and_stay_counted_when_it_pends() -> (
    None
):
    core, job_class = given("rusage[lic=1]", tasks=3, shared=[{"name": "lic", "total": 9}])
    attempt = attempt_of(job_class)

    code = allocate(core, hand_made(Listed((3, 9), (2, 9), (1, 9))), attempt)

    assert code is Code.PENDING
    assert attempt.context.uncommitted == {0: 3}
    assert core.left == [9]


def test_ar_2_3_parts_of_a_compound_share_what_is_counted() -> None:
    resreq = "1*{rusage[lic=1]} + 1*{rusage[lic=1]}"
    core, job_class = given(resreq, tasks=2, shared=[{"name": "lic", "total": 1}])
    first = attempt_of(job_class)
    second = Attempt(job_class.alternatives[0].parts[1], 1, first.context)

    assert allocate(core, SEQJOB, first) is Code.SATISFIED
    assert allocate(core, SEQJOB, second) is Code.PENDING
    assert second.record is not None
    assert second.record.shared == ["lic"]


def test_ar_3_1_the_first_plan_whose_every_bucket_is_satisfied_is_taken() -> None:
    core, job_class = given(tasks=3)
    plans = Listed((5,), (3,), (2, 1))
    attempt = attempt_of(job_class)

    assert allocate(core, hand_made(plans), attempt) is Code.SATISFIED
    assert hosts_of(attempt) == [(1, 3)]
    assert plans.failures == [None, 0]


def test_ar_3_2_a_bucket_goes_to_the_first_host_in_order_that_no_earlier_bucket_has() -> None:
    core, job_class = given(
        tasks=3, hosts=[host("h10", slots=9), host("h2", slots=2), host("h3", slots=9)]
    )
    attempt = attempt_of(job_class)

    allocate(core, hand_made(Listed((1, 1, 1))), attempt)

    assert [core.names[place] for place, _ in hosts_of(attempt)] == ["h2", "h3", "h10"]


def test_ar_3_3_the_claims_of_a_plan_that_fails_are_undone_before_the_next() -> None:
    core, job_class = given(tasks=4)
    attempt = attempt_of(job_class)

    allocate(core, hand_made(Listed((2, 4, 4), (4,))), attempt)

    assert hosts_of(attempt) == [(1, 4)]
    assert free(core) == {"slots": [2, 0], "mem": [8, 8]}


@pytest.mark.parametrize("plans", [None, Listed(), Listed((9,), (4, 3))])
def test_ar_3_4_no_plan_or_none_that_works_is_pending(plans: Plans | None) -> None:
    core, job_class = given(tasks=9)
    before, attempt = free(core), attempt_of(job_class)

    assert allocate(core, hand_made(plans), attempt) is Code.PENDING
    assert attempt.allocation is None
    assert free(core) == before


def test_ar_3_8_a_plan_may_have_as_many_buckets_as_the_job_has_tasks() -> None:
    core, job_class = given(
        "span[hosts=-1]", tasks=3_000, hosts=[host(f"h{n}", slots=1) for n in range(3_000)]
    )
    attempt = attempt_of(job_class)

    assert allocate(core, PARJOB, attempt) is Code.SATISFIED
    assert len(hosts_of(attempt)) == 3_000


def test_ar_4_1_one_host_allocation_a_claim_in_claim_order_with_what_was_claimed() -> None:
    core, job_class = given("rusage[mem=2,mem2=0]", tasks=3)
    attempt = attempt_of(job_class)

    allocate(core, hand_made(Listed((2, 1))), attempt)

    assert attempt.allocation is not None
    assert [(claim.place, claim.amounts) for claim in attempt.allocation.hosts] == [
        (0, (("mem", 4), ("slots", 2))),
        (1, (("mem", 2), ("slots", 1))),
    ]


def test_ar_4_2_one_shared_record_an_entry_and_limits_add_entries() -> None:
    shared = [{"name": "lic", "total": 9}]
    core, job_class = given("rusage[lic=2]", tasks=2, shared=shared, limits=[LIMIT])
    attempt = attempt_of(job_class)

    allocate(core, PARJOB, attempt)

    assert attempt.allocation is not None
    names = {meter.number: meter.name for meter in core.ground.meters.all}
    assert {names[number]: amount for number, amount in attempt.allocation.shared} == {
        "lic": 4,
        "u-slots": 2,
    }


def test_ar_4_2_without_shared_amounts_and_limits_there_are_no_shared_records() -> None:
    core, job_class = given()
    attempt = attempt_of(job_class)

    allocate(core, SEQJOB, attempt)

    assert attempt.allocation is not None
    assert attempt.allocation.shared == ()


def test_ar_5_1_missing_input_is_an_error_without_a_record() -> None:
    core, job_class = given()
    without_core, without_part = attempt_of(job_class), Attempt(None, 1, Context(job_class))

    assert allocate(None, SEQJOB, without_core) is Code.INVALID
    assert allocate(core, PARJOB, without_part) is Code.INVALID
    assert Code.INVALID < 0
    assert without_core.record is None
    assert without_part.record is None


@pytest.mark.parametrize("tasks", [1, 0, -1])
def test_ar_5_2_parjob_leaves_requests_of_one_task_or_fewer_pending(tasks: int) -> None:
    core, job_class = given()
    attempt = Attempt(job_class.alternatives[0].parts[0], tasks, Context(job_class))

    assert allocate(core, PARJOB, attempt) is Code.PENDING
    assert attempt.record is None


def test_ar_5_3_seqjob_takes_every_request_whatever_its_task_count() -> None:
    core, job_class = given(tasks=3)

    assert allocate(core, SEQJOB, attempt_of(job_class)) is Code.SATISFIED


class Tripwire:
    """Raises MemoryError at one step of some functions, a step being a line that is about to run."""

    def __init__(self, codes: set[CodeType], step: int) -> None:
        self.codes = codes
        self.step = step
        self.seen = 0

    def __enter__(self) -> Self:
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _call(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        return self._line if frame.f_code in self.codes else None

    def _line(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        if event == "line":
            self.seen += 1
            if self.seen == self.step:
                raise MemoryError
        return self._line


def framework_codes() -> set[CodeType]:
    """Return the code of the routine, except of what undoes claims: cleaning up needs no memory."""
    functions = [
        function
        for function in vars(module).values()
        if isfunction(function) and function.__module__ == module.__name__
    ]
    codes = {function.__code__ for function in functions if function.__name__ != "_release"}
    assert len(codes) > 4
    return codes | {
        Attempt.metered.__code__,
        Attempt.is_refused.__code__,
        placement.try_alternative.__code__,
    }


def steps(run: Callable[[], object]) -> Iterator[int]:
    """Yield the number of each step of a run; the run must end with the error in all of them."""
    with Tripwire(framework_codes(), 0) as counter:
        run()
    yield from range(1, counter.seen + 1)


COMPOUND = "2*{rusage[mem=2,lic=1/host]} + 1*{rusage[mem=4/host]}"


def everything() -> dict[str, Any]:
    return {
        "hosts": [host("h1", slots=1, mem=4), host("h2", slots=4, mem=8)],
        "shared": [{"name": "lic", "total": 3}],
        "limits": [
            LIMIT,
            {"name": "mem", "resource": "mem", "amount": 99},
            {**PER_HOST, "amount": 2},
        ],
    }


def test_ar_5_4_and_5_5_an_error_at_any_step_leaves_no_debit_and_no_allocation() -> None:
    def attempt_once(step: int) -> tuple[State, Attempt, Listed]:
        core, job_class = given("rusage[mem=2,lic=1/host]", tasks=3, **everything())
        attempt, plans = attempt_of(job_class), Listed((1, 5), (1, 2))
        before = free(core)
        with Tripwire(framework_codes(), step) as wire:
            try:
                code = allocate(core, hand_made(plans), attempt)
            except MemoryError:
                assert free(core) == before
                assert attempt.allocation is None
                assert attempt.context.claims == []
            else:
                assert wire.seen < step or step == 0, "an error was swallowed"
                assert code is Code.SATISFIED
        return core, attempt, plans

    core, attempt, _ = attempt_once(0)
    assert free(core) == {"slots": [0, 2], "mem": [2, 4]}
    assert attempt.allocation is not None

    tried = left_open = 0
    for step in steps(lambda: allocate(*_fresh())):
        _, attempt, plans = attempt_once(step)
        left_open += plans.closed == 0 and bool(plans.failures)
        tried += 1
    assert tried > 60
    assert left_open == 1, "only an error of closing itself leaves the generator open"


def _fresh() -> tuple[State, Allocator, Attempt]:
    core, job_class = given("rusage[mem=2,lic=1/host]", tasks=3, **everything())
    return core, hand_made(Listed((1, 5), (1, 2))), attempt_of(job_class)


def test_ar_5_5_an_error_in_a_later_part_undoes_the_earlier_ones() -> None:
    def run(step: int) -> bool:
        core, job_class = given(COMPOUND, tasks=3, **everything())
        before = free(core)
        with Tripwire(framework_codes(), step):
            try:
                placed = placement.try_alternative(
                    core, job_class, job_class.alternatives[0], 3, None
                )
            except MemoryError:
                assert free(core) == before
                return False
        assert placed is not None
        return True

    def clean() -> object:
        core, job_class = given(COMPOUND, tasks=3, **everything())
        return placement.try_alternative(core, job_class, job_class.alternatives[0], 3, None)

    outcomes = [run(step) for step in steps(clean)]

    assert len(outcomes) > 100
    assert not any(outcomes)


def test_ar_5_7_the_plan_generator_is_closed_once_on_success_pending_and_error() -> None:
    core, job_class = given(tasks=3)
    works, pends, breaks = Listed((3,)), Listed((9,)), Listed((3,))

    allocate(core, hand_made(works), attempt_of(job_class))
    allocate(core, hand_made(pends), attempt_of(job_class))
    core, job_class = given(tasks=3)
    attempt = attempt_of(job_class)
    assembling = {code for code in framework_codes() if code.co_name == "_assemble"}
    with Tripwire(assembling, 1), pytest.raises(MemoryError):
        allocate(core, hand_made(breaks), attempt)

    assert [works.closed, pends.closed, breaks.closed] == [1, 1, 1]


def test_ar_5_8_each_part_of_a_compound_is_sized_by_its_own_request() -> None:
    core, job_class = given("2*{rusage[mem=1]} + 3*{rusage[mem=2/host]}", tasks=5)

    placed = placement.try_alternative(core, job_class, job_class.alternatives[0], 5, None)

    assert placed is not None
    assert [(claim.place, claim.tasks, dict(claim.amounts)) for claim in placed.claims] == [
        (0, 2, {"mem": 2, "slots": 2}),
        (1, 3, {"mem": 2, "slots": 3}),
    ]


def test_ar_6_1_a_plan_generator_gets_the_core_and_the_attempt_with_its_request() -> None:
    core, job_class = given()
    seen: list[tuple[State, Attempt]] = []

    def plans(core: State, attempt: Attempt) -> None:
        seen.append((core, attempt))

    attempt = attempt_of(job_class)
    allocate(core, Allocator("observer", plans), attempt)

    assert seen == [(core, attempt)]


def test_a_limit_about_a_host_refuses_a_claim_there_and_the_next_host_is_taken() -> None:
    running = [{"id": "r", "hosts": [{"name": "h1", "tasks": 0, "uses": {"slots": 0}}]}]
    core, job_class = given(limits=[PER_HOST], running=running)
    attempt = attempt_of(job_class)

    assert allocate(core, SEQJOB, attempt) is Code.SATISFIED
    assert hosts_of(attempt) == [(1, 1)]


def test_amounts_that_depend_on_the_plan_are_counted_with_its_claims_and_rolled_back() -> None:
    core, job_class = given("rusage[lic=1/host]", tasks=3, shared=[{"name": "lic", "total": 1}])
    attempt = attempt_of(job_class)

    code = allocate(core, hand_made(Listed((2, 1), (3,))), attempt)

    assert code is Code.SATISFIED
    assert hosts_of(attempt) == [(1, 3)]
    assert attempt.context.uncommitted == {0: 1}
