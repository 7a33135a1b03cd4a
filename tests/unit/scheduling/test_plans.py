"""How tasks split: the plans that are left out have no room, and the first that works is the same."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.cases import host, job, snapshot
from tests.reference.placing import partitions
from xce.domain.cluster.state import State
from xce.domain.scheduling.allocation import Code, allocate
from xce.domain.scheduling.attempt import Attempt, Context
from xce.domain.scheduling.classes import JobClass
from xce.domain.scheduling.compile import Compiled
from xce.domain.scheduling.plans import PARJOB, SEQJOB, Allocator, ListedPlans, Plan


def given_job(resreq: str, tasks: int, hosts: list[dict[str, Any]]) -> tuple[State, JobClass]:
    compiled = Compiled(
        snapshot(hosts=hosts, pending=[job("1", tasks=(tasks, tasks), resreq=resreq)])
    )
    job_class = compiled.queue[0][1]
    assert job_class is not None
    return compiled.core, job_class


def attempt_of(job_class: JobClass) -> Attempt:
    return Attempt(job_class.alternatives[0].parts[0], job_class.least, Context(job_class))


def all_plans(core: State, attempt: Attempt, allocator: Allocator) -> Iterator[Plan]:
    plans = allocator.plans(core, attempt)
    failed_at: int | None = None
    while plans is not None and (plan := plans.next(failed_at)) is not None:
        yield plan
        failed_at = len(plan) - 1


def hosts_of(*slots: int, **more: Any) -> list[dict[str, Any]]:
    return [host(f"h{n}", slots=many, **more) for n, many in enumerate(slots)]


@pytest.mark.parametrize(
    ("span", "plans"),
    [
        ("", [(4,), (3, 1), (2, 2), (2, 1, 1), (1, 1, 1, 1)]),
        ("span[hosts=1]", [(4,)]),
        ("span[ptile=3]", [(3, 1)]),
        ("span[ptile=2]", [(2, 2)]),
        ("span[ptile=9]", [(4,)]),
        ("span[hosts=-1]", [(1, 1, 1, 1)]),
    ],
)
def test_ar_6_2_with_room_everywhere_all_plans_come_in_descending_order(
    span: str, plans: list[Plan]
) -> None:
    core, job_class = given_job(span, 4, hosts_of(9, 9, 9, 9))

    assert list(all_plans(core, attempt_of(job_class), PARJOB)) == plans


def test_ar_6_2_one_task_has_one_plan() -> None:
    core, job_class = given_job("", 1, hosts_of(9))

    assert list(all_plans(core, attempt_of(job_class), SEQJOB)) == [(1,)]


def test_plans_that_no_hosts_have_room_for_are_left_out() -> None:
    core, job_class = given_job("", 4, hosts_of(2, 1, 1))

    assert list(all_plans(core, attempt_of(job_class), PARJOB)) == [(2, 1, 1)]


def test_a_job_larger_than_all_hosts_has_no_plan() -> None:
    core, job_class = given_job("", 1_000_000, hosts_of(2, 1, 1))

    assert list(all_plans(core, attempt_of(job_class), PARJOB)) == []


def test_a_gang_of_many_tasks_needs_no_list_of_all_partitions() -> None:
    core, job_class = given_job("", 400, hosts_of(*[7] * 60))
    attempt = attempt_of(job_class)

    assert allocate(core, PARJOB, attempt) is Code.SATISFIED
    assert attempt.allocation is not None
    assert [claim.tasks for claim in attempt.allocation.hosts] == [7] * 57 + [1]


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=5),
    st.integers(2, 7),
    st.sampled_from(
        ["", "rusage[slots=2]", "rusage[mem=2/host]", "rusage[mem=3/job,slots=1]", "same[zone]"]
    ),
    st.lists(st.integers(0, 5), min_size=5, max_size=5),
    st.lists(st.sampled_from("ab"), min_size=5, max_size=5),
)
def test_the_first_plan_that_works_is_that_of_all_partitions_tried_one_by_one(
    slots: list[int], tasks: int, resreq: str, mem: list[int], zones: list[str]
) -> None:
    hosts = [
        host(f"h{n}", slots=many, mem=mem[n], attributes={"zone": zones[n]})
        for n, many in enumerate(slots)
    ]

    def outcome(allocator: Allocator | None) -> tuple[Code, object]:
        core, job_class = given_job(resreq, tasks, hosts)
        attempt = attempt_of(job_class)
        if allocator is None:
            plain = (tuple(plan) for plan in partitions(tasks, tasks))
            allocator = Allocator("plain", lambda core, attempt: ListedPlans(plain))
        code = allocate(core, allocator, attempt)
        claims = attempt.allocation.hosts if attempt.allocation else ()
        return code, [(claim.place, claim.tasks, claim.amounts) for claim in claims]

    assert outcome(PARJOB) == outcome(None)
