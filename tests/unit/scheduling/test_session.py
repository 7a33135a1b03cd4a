"""One session from outside: orders, errors with their place, purity, and the trace."""

import json
import random
import sys
from types import FrameType
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.cases import host, job, snapshot, template
from tests.reference.snapshots import EVERYTHING, snapshots
from xce.domain.cluster.state import State
from xce.domain.errors import InputError
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import Snapshot, Tasks
from xce.domain.scheduling import placement
from xce.domain.scheduling import trace as trace_module
from xce.domain.scheduling.classes import JobClass
from xce.domain.scheduling.explain import Failure
from xce.domain.scheduling.placement import Placed
from xce.domain.scheduling.session import run_session


def starts(result: SessionResult) -> dict[str, list[str]]:
    return {each.job: [on.name for on in each.hosts] for each in result.allocations}


def reasons(result: SessionResult) -> dict[str, str]:
    return {each.job: each.reason.value for each in result.pending}


def test_in_skip_order_a_job_that_cannot_start_holds_back_nobody() -> None:
    result = run_session(
        snapshot(
            hosts=[host("h1", slots=1)], pending=[job("1", resreq="rusage[slots=2]"), job("2")]
        )
    )

    assert starts(result) == {"2": ["h1"]}


def test_in_strict_order_jobs_behind_the_blocked_one_wait_for_their_turn() -> None:
    result = run_session(
        snapshot(
            hosts=[host("h1", slots=1)],
            pending=[
                job("0", held=True),
                job("1", resreq="rusage[slots=2]"),
                job("2"),
                job("3", held=True),
            ],
            settings={"order": "strict"},
        )
    )

    assert starts(result) == {}
    assert reasons(result) == {"0": "held", "1": "no_resource", "2": "priority", "3": "held"}


def test_in_strict_order_nothing_is_bought_for_jobs_behind_one_that_is_not_served() -> None:
    def run(**first: Any) -> SessionResult:
        return run_session(
            snapshot(
                pending=[job("1", **first), job("2")],
                catalog={"templates": [template("T", slots=1)]},
                settings={"order": "strict"},
            )
        )

    served, refused = run(), run(resreq="rusage[fpga=1]")

    assert served.demand.order == (("T", 2),)
    assert refused.demand.order == ()
    assert [(each.job, each.why) for each in refused.demand.not_counted] == [("2", "behind job 1")]
    assert [each.job for each in refused.demand.impossible] == ["1"]


def test_equal_jobs_that_fail_are_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[JobClass] = []

    def counting(core: State, job_class: JobClass) -> Placed | Failure:
        tried.append(job_class)
        return placement.start(core, job_class)

    monkeypatch.setattr("xce.domain.scheduling.session.start", counting)

    result = run_session(
        snapshot(hosts=[host("h1", slots=1)], pending=[job(str(n)) for n in range(5)])
    )

    assert starts(result) == {"0": ["h1"]}
    assert len(tried) == 2
    assert len(result.reason_sets) == 1


def test_an_amount_kept_for_a_group_is_given_out_once_its_jobs_have_started() -> None:
    result = run_session(
        snapshot(
            hosts=[host("h1", slots=3)],
            groups=[{"name": "g", "users": ["u1"]}],
            quotas=[{"name": "kept", "group": "g", "resource": "slots", "guaranteed": 2}],
            pending=[
                job("1", user="u2", resreq="rusage[slots=2]"),
                job("2", user="u1"),
                job("3", user="u2", resreq="rusage[slots=2]"),
            ],
        )
    )

    assert starts(result) == {"2": ["h1"], "3": ["h1"]}
    assert reasons(result) == {"1": "limit"}


@pytest.mark.parametrize(
    ("wrong", "path", "column", "text"),
    [
        ({"resreq": "rusage[slots=]"}, "pending[1].resreq", 14, "expected"),
        ({"resreq": "select[zone>3]"}, "pending[1].resreq", 8, "zone"),
        ({"resreq": "rusage[slots=1G]"}, "pending[1].resreq", 8, "slots is a count"),
        ({"resreq": "rusage[lic=1G]"}, "pending[1].resreq", 8, "lic is a count"),
        ({"resreq": "1*{} + 2*{}", "tasks": (4, 4)}, "pending[1].resreq", None, "add up to 3; wanted the tasks of the job, 4"),
        ({"resreq": "1*{} + 2*{}", "tasks": (3, 4)}, "pending[1].resreq", None, "found 3 to 4"),
    ],
)  # fmt: skip
def test_a_requirement_that_cannot_be_read_names_job_and_column(
    wrong: dict[str, Any], path: str, column: int | None, text: str
) -> None:
    given = snapshot(
        hosts=[host("h1", attributes={"zone": "a"})],
        shared=[{"name": "lic", "total": 1}],
        pending=[job("1"), job("2", **wrong)],
    )

    with pytest.raises(InputError) as caught:
        run_session(given)

    (problem,) = caught.value.problems
    assert (problem.path, problem.column) == (path, column)
    assert text in problem.message


def test_all_requirements_that_cannot_be_read_are_named_at_once() -> None:
    given = snapshot(pending=[job("1", resreq="span[]"), job("2"), job("3", resreq="same[]")])

    with pytest.raises(InputError) as caught:
        run_session(given)

    assert [problem.path for problem in caught.value.problems] == [
        "pending[0].resreq",
        "pending[2].resreq",
    ]


def test_a_selection_of_a_wrong_type_is_an_error_even_where_only_a_closed_host_or_a_template_shows_it() -> (
    None
):
    closed = snapshot(
        hosts=[host("h1", state="down", attributes={"gen": "new"})],
        pending=[job("1", resreq="gen>3")],
    )
    offered = snapshot(
        pending=[job("1", resreq="gen>3")],
        catalog={"templates": [template("T", slots=1, attributes={"gen": "new"})]},
    )

    for wrong in (closed, offered):
        with pytest.raises(InputError, match="gen"):
            run_session(wrong)


@given(snapshots(EVERYTHING))
def test_a_session_changes_nothing_and_says_the_same_again(given: Snapshot) -> None:
    before = given.to_json()

    first, second = run_session(given), run_session(Snapshot.from_json(before))

    assert given.to_json() == before
    assert first.to_json() == second.to_json()
    assert SessionResult.from_json(first.to_json()) == first


@given(snapshots(EVERYTHING), st.integers(0, 2**32))
def test_the_order_of_the_lists_of_a_snapshot_does_not_matter(given: Snapshot, seed: int) -> None:
    document = json.loads(given.to_json())
    shuffle = random.Random(seed).shuffle
    for lists in (document, document["catalog"], document["catalog"]["in_flight"]):
        for value in lists.values():
            if isinstance(value, list):
                shuffle(cast(list[object], value))

    assert run_session(Snapshot.model_validate(document)).to_json() == run_session(given).to_json()


def test_parts_that_were_built_without_validation_do_as_well() -> None:
    whole = snapshot(hosts=[host("h1", slots=2)], pending=[job("1", tasks=(2, 2))])
    (pending,) = whole.pending
    tasks = Tasks.model_construct(min=2, max=None)
    built = whole.model_copy(update={"pending": (pending.model_copy(update={"tasks": tasks}),)})

    assert starts(run_session(built)) == {"1": ["h1"]}


TRACED = snapshot(
    hosts=[host("h1", slots=1), host("h2", slots=2, state="closed"), host("h3", slots=9, attributes={"zone": "b"})],
    shared=[{"name": "lic", "total": 1}],
    pending=[
        job("1"),
        job("2", resreq="select[zone==a] rusage[slots=2]"),
        job("3", resreq="rusage[lic=2]"),
        job("4", resreq="rusage[fpga=1]"),
        job("5", resreq="rusage[slots=12]"),
    ],
    catalog={
        "templates": [template("T", slots=4, attributes={"zone": "a"})],
        "countable": [{"name": "lic", "headroom": 1}],
    },
)  # fmt: skip


def test_a_trace_says_for_every_job_what_was_tried_and_what_would_help() -> None:
    trace = run_session(TRACED, trace=True).trace

    assert trace == (
        "job 1: starts on h1 (1 task)",
        "job 2: no host is what it selects (none of 2 open hosts)",
        "job 2: h1, h3: is not what select asks for",
        "job 2: h2: is closed",
        "job 3: short of lic (2 wanted, 1 free)",
        "job 4: wants 1 fpga, 1 slots on a host for 1 task of 1",
        "job 4: h1, h3: short of fpga",
        "job 4: h2: is closed",
        "job 5: wants 12 slots on a host for 1 task of 1",
        "job 5: h1, h3: short of slots",
        "job 5: h2: is closed",
        "job 2: would fit on template T (1 host)",
        "job 3: short 1 of lic, provisionable",
        "job 4: not provisionable: no template provides 'fpga'",
        "job 5: not provisionable: needs 12 of 'slots' on one host, at most 9 are possible",
    )


def test_without_a_trace_no_function_of_the_trace_module_is_called() -> None:
    called: list[str] = []

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename == trace_module.__file__:
            called.append(frame.f_code.co_name)

    sys.setprofile(profile)
    try:
        without = run_session(TRACED)
        off = list(called)
        run_session(TRACED, trace=True)
    finally:
        sys.setprofile(None)

    assert without.trace is None
    assert off == []
    assert called
