"""Acceptance criteria of the allocator framework beyond those in ``test_allocation``; names carry their numbers."""

import ast
from dataclasses import FrozenInstanceError
from inspect import getsource
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.reference.cases import host, job, snapshot
from tests.unit.scheduling.test_allocation import (
    Listed,
    attempt_of,
    free,
    given,
    hand_made,
    hosts_of,
)
from xce.domain.scheduling import allocation as module
from xce.domain.scheduling import plans as plans_module
from xce.domain.scheduling.allocation import Code, allocate
from xce.domain.scheduling.attempt import Allocation, Attempt, Claim, Context
from xce.domain.scheduling.placement import place
from xce.domain.scheduling.plans import PARJOB, SEQJOB
from xce.domain.scheduling.session import run_session


def called(source: str) -> set[str]:
    """Return the names of all functions and methods that a module calls."""
    calls = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    names = [call.attr for call in calls if isinstance(call, ast.Attribute)]
    return {*names, *(call.id for call in calls if isinstance(call, ast.Name))}


def test_ar_1_5_the_allocators_check_nothing_claim_nothing_and_make_no_results() -> None:
    framework = {"new_record", "debit", "restore", "take", "put_back", "commit", "occupy"}
    framework |= {"Claim", "Allocation", "Context", "allocate", "claim"}

    assert called(getsource(plans_module)).isdisjoint(framework)
    assert framework & called(getsource(module))


def test_ar_1_6_an_allocator_is_data_that_no_attempt_changes() -> None:
    before = (SEQJOB.plans, SEQJOB.accepts, PARJOB.plans, PARJOB.accepts)
    for tasks in (1, 3):
        core, job_class = given(tasks=tasks)
        allocate(core, SEQJOB if tasks == 1 else PARJOB, attempt_of(job_class))

    assert (SEQJOB.plans, SEQJOB.accepts, PARJOB.plans, PARJOB.accepts) == before
    with pytest.raises(FrozenInstanceError):
        SEQJOB.name = "other"  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue]


def _fails(*_: object, **__: object) -> Any:
    raise MemoryError


@pytest.mark.parametrize(
    ("owner", "name"),
    [(module, "new_record"), (module, "_is_shared_met"), (Context, "take")],
    ids=["making the record", "checking shared amounts", "counting them"],
)
def test_ar_2_4_an_error_before_the_search_comes_out_and_leaves_no_allocation(
    owner: object, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    core, job_class = given("rusage[lic=1]", shared=[{"name": "lic", "total": 2}])
    attempt, before = attempt_of(job_class), free(core)
    monkeypatch.setattr(owner, name, _fails)

    with pytest.raises(MemoryError):
        allocate(core, SEQJOB, attempt)

    assert attempt.allocation is None
    assert free(core) == before


def test_ar_3_5_a_bucket_is_claimed_with_its_own_tasks_on_one_host() -> None:
    core, job_class = given("rusage[slots=1,mem=2/host]", tasks=4)
    attempt = attempt_of(job_class)

    allocate(core, hand_made(Listed((3, 1))), attempt)

    assert attempt.allocation is not None
    assert [(claim.tasks, dict(claim.amounts)) for claim in attempt.allocation.hosts] == [
        (3, {"slots": 3, "mem": 2}),
        (1, {"slots": 1, "mem": 2}),
    ]


def test_ar_3_6_what_one_part_found_on_a_host_keeps_no_later_part_from_it() -> None:
    hosts = [host("h1", slots=4, mem=4), host("h2", slots=4, mem=8)]
    core, job_class = given("1*{rusage[mem=8]} + 1*{rusage[mem=1]}", tasks=2, hosts=hosts)

    placed = place(core, job_class, 2)

    assert placed is not None
    assert [claim.place for claim in placed.claims] == [1, 0]


def test_ar_3_6_a_host_that_a_larger_bucket_found_short_takes_a_smaller_one() -> None:
    core, job_class = given("", tasks=4)
    attempt = attempt_of(job_class)

    assert allocate(core, hand_made(Listed((3, 1))), attempt) is Code.SATISFIED
    assert hosts_of(attempt) == [(1, 3), (0, 1)]


def test_ar_4_3_a_result_has_no_job_no_reservation_and_no_duration() -> None:
    assert Allocation._fields == ("hosts", "shared")
    assert set(Claim._fields) == {
        "place", "tasks", "amounts", "metered", "before", "uncommitted_before",
    }  # fmt: skip


def test_ar_4_4_a_satisfied_attempt_has_its_allocation_and_a_result_above_0() -> None:
    core, job_class = given()
    attempt = attempt_of(job_class)

    assert allocate(core, SEQJOB, attempt) > 0
    assert hosts_of(attempt) == [(0, 1)]


def test_ar_5_6_pending_and_error_set_no_allocation() -> None:
    core, job_class = given(tasks=9)
    pends, missing = attempt_of(job_class), Attempt(None, 1, Context(job_class))

    assert allocate(core, PARJOB, pends) == 0
    assert allocate(core, PARJOB, missing) < 0
    assert (pends.allocation, missing.allocation) == (None, None)


def test_ar_5_6_of_a_compound_whose_last_part_fails_nothing_is_published() -> None:
    result = run_session(
        snapshot(
            hosts=[host("h1", slots=2)],
            pending=[
                job("1", tasks=(3, 3), resreq="2*{} + 1*{rusage[fpga=1]}"),
                job("2", tasks=(2, 2)),
            ],
        )
    )

    assert [(each.job, [on.tasks for on in each.hosts]) for each in result.allocations] == [
        ("2", [2])
    ]


def test_ar_6_3_the_simulator_has_no_allocation_of_its_own() -> None:
    callers = {
        str(path.relative_to(ROOT))
        for folder in ("domain", "projections", "replay", "adapters")
        for path in (ROOT / folder).rglob("*.py")
        if "allocate" in called(path.read_text(encoding="utf-8"))
    }

    assert callers == {"domain/scheduling/placement.py"}
