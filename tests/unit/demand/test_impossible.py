"""What is said of jobs that can never run: what is missing, and where more of it is only not allowed."""

from typing import Any

import pytest

from tests.reference.cases import host, job, snapshot, template
from tests.reference.comparison import differences
from xce.domain.scheduling.session import run_session


def why(*templates: dict[str, Any], resreq: str, tasks: int = 1, **parts: Any) -> str:
    """Return why one job can never run."""
    given = snapshot(
        pending=[job("1", tasks=(tasks, tasks), resreq=resreq)],
        catalog={"templates": list(templates)},
        **parts,
    )
    result = run_session(given)
    assert differences(given, result) == []
    (impossible,) = result.demand.impossible
    return impossible.why


PLAIN = template("T", slots=4)


def full(name: str, **more: Any) -> dict[str, Any]:
    return template(name, slots=4, allowed=0, fpga=1, **more)


def test_a_resource_that_nothing_has_is_named() -> None:
    assert why(PLAIN, resreq="rusage[fpga=1]") == "no template provides 'fpga'"


def test_where_only_templates_without_room_have_it_they_are_named() -> None:
    names = [full(f"P{n}") for n in (10, 2)]

    assert why(PLAIN, *names, resreq="rusage[fpga=1]") == (
        "no template with room provides 'fpga' (no more are allowed of P2, P10)"
    )
    more = [full(f"P{n}") for n in range(1, 6)]
    assert why(PLAIN, *more, resreq="rusage[fpga=1]") == (
        "no template with room provides 'fpga' (no more are allowed of P1, P2, P3 and 2 more)"
    )


def test_so_it_is_of_a_selection() -> None:
    other = template("G", slots=4, allowed=0, attributes={"gpu": True})

    assert why(PLAIN, resreq="gpu") == "no host and no template is what it selects"
    assert why(PLAIN, other, resreq="gpu") == (
        "no host and no template with room is what it selects (no more are allowed of G)"
    )


@pytest.mark.parametrize(
    ("resreq", "tasks", "text"),
    [
        ("rusage[slots=5]", 1, "needs 5 of 'slots' on one host, at most 4 are possible"),
        ("span[hosts=1]", 5, "needs 5 of 'slots' on one host, at most 4 are possible"),
        ("span[hosts=-1]", 4, "needs 4 hosts, at most 3 are possible"),
        ("", 13, "has 13 tasks, at most 12 have room"),
        ("rusage[lic=3]", 1, "needs 3 of lic, at most 2 are possible"),
    ],
)
def test_a_job_that_is_too_large_says_by_what(resreq: str, tasks: int, text: str) -> None:
    given = template("T", slots=4, allowed=2)
    shared = [{"name": "lic", "total": 2}]

    assert why(given, resreq=resreq, tasks=tasks, hosts=[host("h1", slots=4)], shared=shared) == text  # fmt: skip
