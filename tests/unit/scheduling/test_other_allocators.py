"""Allocators from other packages: found by entry point, asked for by jobs, held to the contract."""

import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib import invalidate_caches
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import ROOT
from tests.reference.cases import host, job, snapshot, template
from xce.adapters.allocators import GROUP, allocators_for
from xce.adapters.cli.session import session
from xce.domain.cluster.state import State
from xce.domain.errors import AllocatorError, InputError
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import Snapshot
from xce.domain.scheduling.attempt import Attempt
from xce.domain.scheduling.classes import Part
from xce.domain.scheduling.plans import PLANS_MAX, Allocator, ListedPlans, Plan
from xce.domain.scheduling.session import run_session

EXAMPLE = ROOT / "examples" / "allocator"
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install entry points, as a package installer does: a folder on the path with their metadata."""
    before = set(sys.modules)

    def entry_points(**points: str) -> None:
        info = tmp_path / "other-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines, ""]))
        monkeypatch.setattr(sys, "path", [str(tmp_path), str(EXAMPLE), *sys.path])
        invalidate_caches()

    yield entry_points
    for name in set(sys.modules) - before:
        del sys.modules[name]


def listed(*plans: Plan, name: str = "mine", **more: Any) -> Allocator:
    return Allocator(name, lambda core, attempt: ListedPlans(iter(plans)), **more)


def one_job(tasks: int = 4, *, allocator: str = "mine", **more: Any) -> Snapshot:
    more.setdefault("hosts", [host(f"h{n}", slots=4) for n in range(1, 5)])
    return snapshot(pending=[job("1", tasks=(tasks, tasks), allocator=allocator)], **more)


def sizes(result: SessionResult) -> dict[str, list[int]]:
    return {each.job: [on.tasks for on in each.hosts] for each in result.allocations}


def test_the_example_is_found_by_its_entry_point_and_places_the_jobs_that_ask_for_it(
    install: Install,
) -> None:
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    install(**project["entry-points"][GROUP])

    result = session((EXAMPLE / "spread.json").read_bytes(), "spread.json")

    assert sizes(result) == {"1": [2, 1, 1], "2": [2]}
    (waits,) = result.pending
    assert waits.job == "3"
    assert waits.provisioning is not None
    assert waits.provisioning.templates == {"t2": 2}


def test_an_allocator_that_nobody_asks_for_is_not_loaded(install: Install) -> None:
    install(mine="nowhere:MINE", spreadjob="xce_spreadjob:SPREADJOB")

    assert [each.name for each in allocators_for(one_job(allocator="spreadjob"))] == ["spreadjob"]


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("nowhere:MINE", "cannot be loaded from nowhere:MINE: ModuleNotFoundError"),
        ("xce_spreadjob:even_splits", "is a function in"),
        ("xce_spreadjob:SPREADJOB", "calls itself 'spreadjob'"),
    ],
)
def test_one_that_cannot_be_used_is_an_error_that_says_why(
    value: str, fault: str, install: Install
) -> None:
    install(mine=value)

    with pytest.raises(AllocatorError, match=f"allocator 'mine' {fault}"):
        allocators_for(one_job())


@pytest.mark.parametrize("name", ["mine", "parjob"])
def test_a_name_that_is_not_installed_is_a_mistake_of_the_snapshot(name: str) -> None:
    with pytest.raises(InputError) as refused:
        run_session(one_job(allocator=name))

    (problem,) = refused.value.problems
    assert problem.path == "pending[0].allocator"
    assert repr(name) in problem.message


@pytest.mark.parametrize("names", [("mine", "mine"), ("seqjob",)])
def test_a_name_is_given_once_and_not_the_name_of_a_built_in_one(names: tuple[str, ...]) -> None:
    with pytest.raises(AllocatorError):
        run_session(one_job(), allocators=[listed((4,), name=name) for name in names])


def test_ar_1_2_plans_come_from_the_one_that_the_job_names() -> None:
    result = run_session(one_job(), allocators=[listed((1, 3), (4,))])

    assert sizes(result) == {"1": [1, 3]}


def test_what_its_guard_rejects_goes_to_a_built_in_one() -> None:
    def rejects(part: Part, tasks: int) -> bool:
        return False

    assert sizes(run_session(one_job(), allocators=[listed((1, 3), accepts=rejects)])) == {"1": [4]}


@pytest.mark.parametrize("plan", [(3,), (5, -1), (4, 0), ()])
def test_a_plan_that_does_not_split_the_tasks_is_an_error(plan: Plan) -> None:
    with pytest.raises(AllocatorError, match="wanted buckets of 1 or more that add up to 4"):
        run_session(one_job(), allocators=[listed(plan)])


def test_endless_plans_come_to_an_end() -> None:
    asked = 0

    def plans(core: State, attempt: Attempt) -> ListedPlans:
        def forever() -> Iterator[Plan]:
            nonlocal asked
            while True:
                asked += 1
                yield (4,)

        return ListedPlans(forever())

    hosts = [host("h1", slots=3)]
    result = run_session(one_job(hosts=hosts), allocators=[Allocator("mine", plans)])

    assert [each.reason.value for each in result.pending] == ["no_resource"]
    assert PLANS_MAX <= asked <= 9 * PLANS_MAX  # a few attempts, in phase 1 and in the catalog pass


def _uneven(core: State, attempt: Attempt) -> ListedPlans:
    """Small buckets first: 4 tasks as [1, 1, 1, 1], then [1, 1, 2], then [1, 3], then [4]."""
    tasks = attempt.tasks
    return ListedPlans((1,) * ones + (tasks - ones,) for ones in range(tasks - 1, -1, -1))


@given(
    st.lists(st.integers(1, 5), max_size=3),
    st.lists(st.integers(1, 6), min_size=1, max_size=4),
    st.lists(st.integers(1, 6), min_size=1, max_size=2),
    st.sampled_from(["", "rusage[mem=2]", "rusage[lic=1/host]", "order[-slots]"]),
)
def test_demand_for_jobs_of_another_allocator_is_enough_for_all_of_them_to_start(
    hosts: list[int], tasks: list[int], templates: list[int], resreq: str
) -> None:
    given = snapshot(
        hosts=[host(f"h{n}", slots=many, mem=9) for n, many in enumerate(hosts)],
        shared=[{"name": "lic", "total": 50}],
        pending=[
            job(f"{n}", tasks=(many, many), resreq=resreq, allocator=None if n == 1 else "mine")
            for n, many in enumerate(tasks)
        ],
        catalog={
            "templates": [template(f"t{n}", slots=many, mem=9) for n, many in enumerate(templates)]
        },
    )
    mine = Allocator("mine", _uneven)

    result = run_session(given, allocators=[mine])

    started = {each.job for each in result.allocations}
    counted = {each.job for each in result.pending if each.provisioning is not None}
    assert started | counted == {each.id for each in given.pending}
    new = [
        host(f"new{n}", slots=templates[int(name[1:])], mem=9, rank=1 + n)
        for n, name in enumerate(name for name, many in result.demand.order for _ in range(many))
    ]
    running = [
        {
            "id": each.job,
            "hosts": [on.model_dump() for on in each.hosts],
            "shared": {one.name: one.amount for one in each.shared},
        }
        for each in result.allocations
    ]
    later = given.model_dump(mode="json") | {
        "hosts": [*given.model_dump(mode="json")["hosts"], *new],
        "running": running,
        "pending": [
            each for each in given.model_dump(mode="json")["pending"] if each["id"] in counted
        ],
    }
    then = run_session(Snapshot.model_validate(later), allocators=[mine])
    assert {each.job for each in then.allocations} == counted
