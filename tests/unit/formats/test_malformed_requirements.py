"""A requirement that cannot be read makes the snapshot invalid; the error names the job's path and the column."""

import json
from typing import Any

import pytest

from xce.domain.errors import InputError
from xce.domain.formats.snapshot import Snapshot
from xce.domain.scheduling.session import run_session


def snapshot_with(resreq: str, tasks: int = 1, **more: Any) -> str:
    return json.dumps(
        {
            "format": "xce.snapshot/1",
            "now": "2026-03-01T10:00:00Z",
            "hosts": [{"name": "h1", "attributes": {"type": "x", "rev": 3}, "total": {"slots": 4}}],
            "shared": [{"name": "lic", "total": 1}],
            "pending": [
                {"id": "1"},
                {"id": "2", "resreq": resreq, "tasks": {"min": tasks, "max": tasks}},
            ],
            **more,
        }
    )


@pytest.mark.parametrize(
    ("resreq", "column"),
    [
        ("rusage[mem", 11),
        ("rusage[mem=", 12),
        ("rusage[mem=-1]", 12),
        ("rusage[mem=5XB]", 13),
        ("rusage[slots=1GiB]", 8),
        ("rusage[mem=1,lic=1K]", 14),
        ("rusage[mem=99999999999999999999]", 12),
        ("bogus[x]", 1),
        ("select[type==x", 15),
        ("select[type=x]", 12),
        ("select[type<x]", 12),
        ("select[rev>2 && type==5]", 17),
        ("select[rev==x]", 8),
        ("select[type==true]", 8),
        ("span[hosts=2]", 12),
        ("span[ptile=0]", 12),
        ("select[a] select[b]", 11),
        ("2*{rusage[mem=1]} +", 20),
        ("{select[type==x]} ||", 21),
        ("select[" + "(" * 5000 + "a" + ")" * 5000 + "]", None),
        ("select[" + "!" * 5000 + "a]", None),
        ("\N{SNOWMAN}", 1),
        ("select[type==x]\x00", 16),
    ],
)
def test_a_wrong_requirement_is_one_problem_at_its_column(resreq: str, column: int | None) -> None:
    with pytest.raises(InputError) as caught:
        run_session(Snapshot.from_json(snapshot_with(resreq)))

    (problem,) = caught.value.problems
    assert problem.path == "pending[1].resreq"
    assert problem.column is not None
    if column is not None:
        assert problem.column == column, problem
    assert problem.message.strip()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("resreq", "tasks"),
    [("1*{} + 2*{}", 4), ("{1*{} + 2*{}} || {}", 4), ("{} || {1*{} + 1*{}}", 1)],
)
def test_the_counts_of_a_compound_must_add_up_to_the_tasks(resreq: str, tasks: int) -> None:
    with pytest.raises(InputError) as caught:
        run_session(Snapshot.from_json(snapshot_with(resreq, tasks)))

    (problem,) = caught.value.problems
    assert problem.path == "pending[1].resreq"
    assert str(tasks) in problem.message


def test_a_requirement_that_is_too_long_is_refused() -> None:
    with pytest.raises(InputError, match=r"pending\[1\]\.resreq: .*65536"):
        Snapshot.from_json(snapshot_with("a" * 70_000))


def test_every_wrong_requirement_is_told() -> None:
    text = json.loads(snapshot_with("bogus[x]"))
    text["pending"].append({"id": "3", "resreq": "rusage[mem"})

    with pytest.raises(InputError) as caught:
        run_session(Snapshot.from_json(json.dumps(text)))

    assert [problem.path for problem in caught.value.problems] == [
        "pending[1].resreq",
        "pending[2].resreq",
    ]
