"""Why jobs wait: stages, sets of reasons, and the one place where reasons are made."""

import ast
from pathlib import Path
from typing import Any

import pytest

import xce.domain.scheduling.explain
from tests.reference.cases import host, job, snapshot
from xce.domain.scheduling.session import run_session

DOMAIN = Path(xce.domain.scheduling.explain.__file__).parents[1]


def found(job_id: str, **parts: Any) -> list[tuple[str, str | None, tuple[str, ...] | None]]:
    """Return the complete reasons of one job of a session."""
    result = run_session(snapshot(**parts))
    sets = {each.id: each.reasons for each in result.reason_sets}
    (pending,) = [each for each in result.pending if each.job == job_id]
    assert pending.reasons is not None
    reasons = sets[pending.reasons]
    assert pending.reason is reasons[0].kind
    return [(each.kind.value, each.limit or each.resource, each.hosts) for each in reasons]


def test_ar_7_3_pend_reason_records_and_reasons_are_made_in_one_module_only() -> None:
    makers: dict[str, set[str]] = {"PendRecord": set(), "Reason": set(), "ReasonSet": set()}
    for folder in ("scheduling", "demand", "cluster"):
        for path in (DOMAIN / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call):
                    target = node.func
                    if isinstance(target, ast.Attribute) and target.attr == "model_construct":
                        target = target.value
                    if isinstance(target, ast.Name) and target.id in makers:
                        makers[target.id].add(path.name)

    assert set().union(*makers.values()) == {"explain.py"}


def test_ar_3_7_every_matching_host_that_is_short_is_named_for_every_resource() -> None:
    hosts = [host("h1", slots=1, mem=1), host("h2", slots=9, mem=1), host("h3", slots=1, mem=9)]

    assert found("1", hosts=hosts, pending=[job("1", resreq="rusage[slots=2,mem=2]")]) == [
        ("no_resource", "mem", ("h1", "h2")),
        ("no_resource", "slots", ("h1", "h3")),
    ]


def test_hosts_are_described_as_they_are_at_the_end_of_phase_1() -> None:
    hosts = [host("h1", slots=2), host("h2", slots=1)]
    pending = [job("1", resreq="rusage[slots=3]"), job("2"), job("3"), job("4")]

    assert found("1", hosts=hosts, pending=pending) == [("no_resource", "slots", ("h1", "h2"))]
    assert found("1", hosts=[host("h1", slots=3)], pending=[job("0"), *pending]) == [
        ("no_resource", "slots", ("h1",))
    ]


def test_the_first_stage_that_finds_something_ends_the_search() -> None:
    limits = [{"name": "none", "resource": "jobs", "amount": 0}]

    assert found("1", pending=[job("1", held=True, waits_for=["2"]), job("2")], limits=limits) == [
        ("held", None, None),
        ("dependency", None, None),
    ]
    assert found("2", pending=[job("2", resreq="rusage[fpga=1]")], limits=limits) == [
        ("limit", "none", None)
    ]


def test_no_matching_host_and_short_shared_resources_are_one_stage() -> None:
    assert found(
        "1", shared=[{"name": "lic", "total": 1}], pending=[job("1", resreq="gpu rusage[lic=2]")]
    ) == [("host_selection", None, None), ("no_resource", "lic", None)]


@pytest.mark.parametrize(
    ("span", "hosts"),
    [
        ("", ("h1", "h2")),
        ("span[ptile=2]", ("h1",)),
        ("span[ptile=1]", None),
        ("span[hosts=-1]", None),
    ],
)
def test_the_largest_bucket_decides_which_hosts_are_short(
    span: str, hosts: tuple[str, ...] | None
) -> None:
    reasons = found(
        "1",
        hosts=[host("h1", slots=1), host("h2", slots=2)],
        pending=[job("1", tasks=(4, 4), resreq=span)],
    )

    assert reasons == [("no_resource", "hosts" if hosts is None else "slots", hosts)]


def test_a_limit_about_hosts_is_named_with_the_hosts_that_have_room() -> None:
    limits = [{"name": "one", "resource": "jobs", "amount": 1, "per": "host"}]
    uses: dict[str, int] = {}
    running = [{"id": "r", "hosts": [{"name": "h1", "tasks": 0, "uses": uses}]}]
    hosts = [host("h1", slots=4), host("h2", slots=1)]

    assert found(
        "1",
        hosts=hosts,
        limits=limits,
        running=running,
        pending=[job("1", resreq="rusage[slots=2]")],
    ) == [("limit", "one", ("h1",)), ("no_resource", "slots", ("h2",))]


def test_alternatives_have_their_reasons_together_and_equal_sets_are_one() -> None:
    hosts = [host("h1", slots=1, mem=9), host("h2", slots=9, mem=1)]
    both = "{select[mem>5] rusage[slots=2]} || {select[slots>5] rusage[slots=10]}"
    result = run_session(
        snapshot(
            hosts=hosts,
            pending=[job("1", resreq=both), job("2", user="u2", resreq="rusage[slots=10]")],
        )
    )

    assert [each.reasons for each in result.pending] == [1, 1]
    assert result.reason_sets[0].reasons[0].hosts == ("h1", "h2")


def test_a_host_that_an_exclusive_job_has_is_short_of_host() -> None:
    running = [
        {"id": "r", "exclusive": True, "hosts": [{"name": "h1", "tasks": 1, "uses": {"slots": 1}}]}
    ]
    hosts = [host("h1", slots=4)]

    assert found("1", hosts=hosts, running=running, pending=[job("1")]) == [
        ("no_resource", "host", ("h1",))
    ]
