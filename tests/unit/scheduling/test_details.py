"""What a pend reason says for people: amounts, and what they are compared with."""

from typing import Any

import pytest

from tests.reference.cases import host, job, snapshot
from xce.domain.scheduling.session import run_session


def said(job_id: str, **parts: Any) -> list[tuple[str, str | None]]:
    """Return the name and the detail of each reason of one job."""
    result = run_session(snapshot(**parts))
    sets = {each.id: each.reasons for each in result.reason_sets}
    (pending,) = [each for each in result.pending if each.job == job_id]
    assert pending.reasons is not None
    return [
        (each.limit or each.resource or each.kind.value, each.detail)
        for each in sets[pending.reasons]
    ]


def running(**more: Any) -> dict[str, Any]:
    return {"id": "r", "hosts": [{"name": "h1", "tasks": 1, "uses": {"slots": 3}}], **more}


def test_a_dependency_names_the_jobs_that_are_still_here() -> None:
    names = [f"j{n}" for n in (10, 9, 8, 1, 2, 3, 4)]
    pending = [job("w", waits_for=["gone", *names, "j1"]), *map(job, names)]

    assert said("w", pending=pending) == [("dependency", "waits for j1, j2, j3, j4, j8 and 2 more")]


def test_a_unit_that_is_not_known_is_said_of_the_resource() -> None:
    units = {"units": {"mem": None}}

    assert said("1", pending=[job("1", resreq="rusage[mem=5]")], settings=units) == [
        ("mem", "a bare number of mem, and its unit could not be read")
    ]


def test_a_limit_says_what_was_wanted_and_what_is_left_of_it() -> None:
    limits = [
        {"name": "few jobs", "resource": "jobs", "amount": 1},
        {"name": "slots of a user", "resource": "slots", "amount": 5, "per": "user"},
    ]

    assert said(
        "1",
        hosts=[host("h1", slots=9)],
        limits=limits,
        running=[running()],
        pending=[job("1", resreq="rusage[slots=4]")],
    ) == [("few jobs", "jobs: 1 wanted, 0 of 1 left"), ("slots of a user", "slots: 4 wanted, 2 of 5 left")]  # fmt: skip


@pytest.mark.parametrize(
    ("elsewhere", "detail"),
    [(0, "4 wanted, 3 free"), (9, "4 wanted, 0 free"), (None, "4 wanted, use unknown")],
)
def test_a_short_shared_resource_says_what_was_wanted_and_what_is_free(
    elsewhere: int | None, detail: str
) -> None:
    shared = [{"name": "lic", "total": 3, "used_elsewhere": elsewhere}]

    assert said(
        "1",
        hosts=[host("h1", slots=9)],
        shared=shared,
        pending=[job("1", tasks=(2, 2), resreq="rusage[lic=2]")],
    ) == [("lic", detail)]


def test_a_later_part_of_a_compound_is_compared_with_what_the_earlier_ones_left() -> None:
    compound = job("1", tasks=(2, 2), resreq="1*{rusage[lic=2]} + 1*{rusage[lic=2]}")

    assert said(
        "1", hosts=[host("h1", slots=9)], shared=[{"name": "lic", "total": 3}], pending=[compound]
    ) == [("lic", "2 wanted, 1 free")]


def test_a_selection_says_how_many_open_hosts_it_turned_down() -> None:
    hosts = [host("h1"), host("h2"), host("h3", state="closed")]
    pending = [job("1", resreq="gpu")]

    assert said("1", hosts=hosts, pending=pending) == [("host_selection", "none of 2 open hosts")]
    assert said("1", hosts=hosts[2:], pending=pending) == [("host_selection", "no host is open")]


def test_short_hosts_say_the_most_that_is_free_on_any_of_them() -> None:
    hosts = [host("h1", slots=4, mem=0), host("h2", slots=2, mem=0), host("h3", slots=9, mem=0)]

    assert said(
        "1", hosts=hosts, running=[running()], pending=[job("1", resreq="rusage[slots=3,mem=1]")]
    ) == [("mem", "none free"), ("slots", "at most 2 free")]


@pytest.mark.parametrize(
    ("free", "detail"),
    [(8192, "at most 8GiB free"), (5000, "at most 5000MiB free"), (0, "none free")],
)
def test_memory_is_said_with_its_unit(free: int, detail: str) -> None:
    hosts = [host("h1", slots=4, mem=free)]
    busy = [running()] if free else []
    wants = job("1", resreq="rusage[slots=1,mem=16GiB]")

    assert said("1", hosts=hosts, running=busy, pending=[wants]) == [("mem", detail)]


def test_a_limit_of_memory_is_said_with_its_unit() -> None:
    limits = [{"name": "m", "resource": "mem", "amount": 6144, "per": "user"}]
    wants = job("1", resreq="rusage[slots=1,mem=8GiB]")

    (found,) = said("1", hosts=[host("h1", slots=4, mem=65536)], limits=limits, pending=[wants])

    assert found == ("m", "mem: 8GiB wanted, 6GiB of 6GiB left")


def test_what_is_said_of_hosts_parts_no_sets_of_jobs_that_want_different_amounts() -> None:
    result = run_session(
        snapshot(
            hosts=[host("h1", slots=2)],
            pending=[job(f"{n}", resreq=f"rusage[slots={n}]") for n in range(3, 9)],
        )
    )

    assert len(result.reason_sets) == 1


@pytest.mark.parametrize(
    ("more", "detail"),
    [
        ({"per": "host"}, "jobs: at most 0 on each host"),
        ({"hosts": ["h1"]}, "jobs: at most 0 on its hosts"),
        ({"hosts": ["h1"], "per": "host"}, "jobs: at most 0 on each of its hosts"),
    ],
)
def test_a_limit_about_hosts_says_what_it_allows(more: dict[str, Any], detail: str) -> None:
    limits = [{"name": "none", "resource": "jobs", "amount": 0, **more}]

    assert said("1", hosts=[host("h1")], limits=limits, pending=[job("1")]) == [("none", detail)]


def test_a_guarantee_says_how_much_is_kept() -> None:
    parts: dict[str, Any] = {
        "hosts": [host("h1", slots=4)],
        "groups": [{"name": "g", "users": ["ann"]}],
        "quotas": [{"name": "kept", "group": "g", "resource": "slots", "guaranteed": 3}],
    }
    pending = [job("1", resreq="rusage[slots=2]"), job("2", user="ann", resreq="gpu")]

    assert said("1", pending=pending, **parts) == [("kept", "slots: 3 guaranteed to its group")]


def test_jobs_behind_the_blocked_one_say_which_that_is() -> None:
    pending = [job("1", resreq="rusage[slots=2]"), job("2"), job("3")]

    result = run_session(
        snapshot(hosts=[host("h1", slots=1)], pending=pending, settings={"order": "strict"})
    )

    assert [reason.detail for each in result.reason_sets for reason in each.reasons] == [
        "at most 1 free",
        "behind 1",
    ]


def test_too_few_hosts_are_said_with_the_tasks() -> None:
    hosts = [host("h1"), host("h2")]

    assert said("1", hosts=hosts, pending=[job("1", tasks=(3, 3), resreq="span[ptile=1]")]) == [
        ("hosts", "3 tasks: too few hosts with room at once")
    ]


def test_hosts_that_jobs_do_not_share_say_so() -> None:
    hosts = [host("h1", slots=4)]

    assert said("1", hosts=hosts, running=[running()], pending=[job("1", exclusive=True)]) == [
        ("host", "jobs that cannot share it")
    ]


def test_an_amount_per_host_says_the_least_that_is_wanted() -> None:
    assert said(
        "1",
        hosts=[host("h1"), host("h2")],
        shared=[{"name": "lic", "total": 1}],
        pending=[job("1", tasks=(2, 2), resreq="span[hosts=-1] rusage[lic=1/host]")],
    ) == [("lic", "2 wanted at least, 1 free")]
