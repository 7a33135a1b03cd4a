"""The plain reference on cases made by hand, so that it can be trusted as a judge: orders, plans, limits, reasons."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.reference.cases import host, job, snapshot
from tests.reference.placing import partitions
from tests.reference.plain import Phase1, reference_phase1
from xce.domain.formats.session_result import Reason


def placed(phase: Phase1) -> dict[str, list[tuple[str, int]]]:
    return {a.job: [(on.name, on.tasks) for on in a.hosts] for a in phase.allocations}


def reasons(phase: Phase1, job_id: str) -> list[tuple[str, str | None, tuple[str, ...] | None]]:
    pending = next(pending for pending in phase.pending if pending.job == job_id)
    found: list[Reason] = list(pending.expanded or ())
    assert pending.reason is found[0].kind
    return [(reason.kind.value, reason.limit or reason.resource, reason.hosts) for reason in found]


def run(**parts: Any) -> Phase1:
    return reference_phase1(snapshot(**parts))


def test_partitions_come_in_descending_lexicographic_order() -> None:
    assert list(partitions(4, 4)) == [[4], [3, 1], [2, 2], [2, 1, 1], [1, 1, 1, 1]]


def test_hosts_are_taken_by_rank_then_by_name_with_digits_as_numbers() -> None:
    hosts = [host("h10", slots=1), host("h2", slots=1), host("z", slots=1, rank=-1)]

    phase = run(hosts=hosts, pending=[job("1"), job("2"), job("3")])

    assert placed(phase) == {"1": [("z", 1)], "2": [("h2", 1)], "3": [("h10", 1)]}


def test_jobs_go_by_queue_priority_then_priority_then_time_then_number() -> None:
    queues = [{"name": "fast", "priority": 20}, {"name": "normal", "priority": 10}]
    pending = [
        job("10", submitted="2026-03-01T09:00:00Z"),
        job("9", submitted="2026-03-01T09:00:00Z"),
        job("8", submitted="2026-03-01T08:00:00Z"),
        job("7"),
        job("6", priority=5, submitted="2026-03-01T09:59:00Z"),
        job("5", queue="fast", submitted="2026-03-01T09:59:00Z"),
    ]

    phase = run(hosts=[host("h1", slots=9)], queues=queues, pending=pending)

    assert [a.job for a in phase.allocations] == ["5", "6", "7", "8", "9", "10"]


def test_a_task_range_takes_the_most_tasks_that_fit() -> None:
    phase = run(
        hosts=[host("h1", slots=3)], pending=[job("1", tasks=(1, 5)), job("2", tasks=(1, 2))]
    )

    assert placed(phase) == {"1": [("h1", 3)]}


def test_the_first_plan_that_works_is_the_one_with_the_largest_buckets() -> None:
    hosts = [host("h1", slots=1), host("h2", slots=3), host("h3", slots=3)]

    phase = run(hosts=hosts, pending=[job("1", tasks=(4, 4))])

    assert placed(phase) == {"1": [("h2", 3), ("h1", 1)]}


@pytest.mark.parametrize(
    ("resreq", "hosts"),
    [
        ("span[hosts=1]", [("h3", 4)]),
        ("span[ptile=2]", [("h2", 2), ("h3", 2)]),
        ("span[ptile=3]", [("h2", 3), ("h1", 1)]),
        ("span[hosts=-1]", [("h1", 1), ("h2", 1), ("h3", 1), ("h4", 1)]),
        ("order[-slots]", [("h3", 4)]),
        ("order[slots] span[hosts=-1]", [("h1", 1), ("h4", 1), ("h2", 1), ("h3", 1)]),
        ("same[zone]", [("h3", 4)]),
        ("same[zone] span[ptile=2]", [("h3", 2), ("h4", 2)]),
        ("rusage[slots=2] same[zone]", [("h3", 3), ("h4", 1)]),
        ("rusage[mem=3/host] span[ptile=2]", [("h3", 2), ("h4", 2)]),
        ("rusage[mem=3/job] span[ptile=2]", [("h3", 2), ("h2", 2)]),
    ],
)
def test_a_job_of_four_tasks_is_spread_as_its_requirement_says(
    resreq: str, hosts: list[tuple[str, int]]
) -> None:
    cluster = [
        host("h1", slots=1, attributes={"zone": "a"}),
        host("h2", slots=3, attributes={"zone": "a"}),
        host("h3", slots=6, mem=4, attributes={"zone": "b"}),
        host("h4", slots=2, mem=4, attributes={"zone": "b"}),
    ]
    if resreq == "order[slots] span[hosts=-1]":
        cluster[3] = host("h4", slots=2)
    if resreq.startswith("span[hosts=1]"):
        cluster[3] = host("h4", slots=9)

    phase = run(hosts=cluster, pending=[job("1", tasks=(4, 4), resreq=resreq)])

    assert placed(phase) == {"1": hosts}


def test_a_host_takes_work_only_while_open_for_its_user_and_for_long_enough() -> None:
    hosts = [
        host("h1", slots=9, state="draining"),
        host("h2", slots=9, exclusive_to="u2"),
        host("h3", slots=9, available_until="2026-03-01T11:00:00Z"),
    ]
    pending = [
        job("1", user="u1"),
        job("2", user="u2"),
        job("3", run_limit="1h"),
        job("4", run_limit="61min"),
    ]

    phase = run(hosts=hosts, pending=pending)

    assert placed(phase) == {"2": [("h2", 1)], "3": [("h3", 1)]}
    assert reasons(phase, "1") == reasons(phase, "4") == [("host_selection", None, None)]


def test_an_exclusive_job_takes_empty_hosts_and_is_joined_by_nobody() -> None:
    running = [{"id": "r", "hosts": [{"name": "h1", "tasks": 1, "uses": {"slots": 1}}]}]

    phase = run(
        hosts=[host("h1", slots=4), host("h2", slots=5)],
        running=running,
        pending=[job("1", exclusive=True), job("2", tasks=(4, 4)), job("3", exclusive=True)],
    )

    assert placed(phase) == {"1": [("h2", 1)]}
    assert reasons(phase, "2") == [
        ("no_resource", "host", ("h2",)),
        ("no_resource", "slots", ("h1",)),
    ]
    assert reasons(phase, "3") == [("no_resource", "host", ("h1", "h2"))]


def test_parts_of_a_compound_may_share_a_host_and_start_together_or_not_at_all() -> None:
    gang = "1*{rusage[slots=4,fpga=1]} + 3*{rusage[slots=1]}"
    hosts = [host("h1", slots=6, fpga=1), host("h2", slots=1)]

    phase = run(
        hosts=hosts,
        pending=[job("1", tasks=(4, 4), resreq=gang), job("2", tasks=(4, 4), resreq=gang)],
    )

    assert placed(phase) == {"1": [("h1", 3), ("h2", 1)]}
    assert reasons(phase, "2") == [
        ("no_resource", "fpga", ("h1", "h2")),
        ("no_resource", "slots", ("h1", "h2")),
    ]


def test_the_first_alternative_that_works_is_taken_and_all_reasons_are_told() -> None:
    either = "{select[type==big] rusage[mem=8]} || {select[type==small] rusage[mem=2]}"
    hosts = [host("s", slots=3, mem=4, attributes={"type": "small"})]

    phase = run(hosts=hosts, pending=[job(str(n), resreq=either) for n in (1, 2, 3)])

    assert placed(phase) == {"1": [("s", 1)], "2": [("s", 1)]}
    assert reasons(phase, "3") == [("host_selection", None, None), ("no_resource", "mem", ("s",))]


def test_shared_resources_are_checked_first_and_unknown_use_is_enough_for_nothing_but_zero() -> (
    None
):
    shared = [
        {"name": "lic", "total": 3, "used_elsewhere": 1},
        {"name": "tok", "total": 9, "used_elsewhere": None},
    ]
    pending = [
        job("1", resreq="rusage[lic=1]"),
        job("2", resreq="rusage[lic=1]", tasks=(2, 2)),
        job("3", resreq="rusage[tok=1]"),
        job("4", resreq="rusage[tok=0]"),
    ]

    phase = run(hosts=[host("h1", slots=9)], shared=shared, pending=pending)

    assert placed(phase) == {"1": [("h1", 1)], "4": [("h1", 1)]}
    assert reasons(phase, "2") == [("no_resource", "lic", None)]
    assert reasons(phase, "3") == [("no_resource", "tok", None)]


LIMITS: list[tuple[Mapping[str, Any], list[str], str]] = [
    ({"resource": "jobs", "amount": 2}, ["1", "2"], "limit"),
    ({"resource": "jobs", "amount": 1, "per": "user"}, ["1", "3"], "limit"),
    ({"resource": "slots", "amount": 3, "users": ["u1"]}, ["1", "3"], "limit"),
    ({"resource": "hosts", "amount": 1}, ["1", "2"], "limit"),
    ({"resource": "slots", "amount": 2, "per": "host"}, ["1", "2"], "limit"),
    ({"resource": "slots", "amount": 2, "hosts": ["h1"]}, ["1", "2", "3"], "none"),
    ({"resource": "jobs", "amount": 0, "hosts": ["h1"]}, ["1", "2"], "limit"),
    ({"resource": "jobs", "amount": 0, "groups": ["g1"]}, ["3"], "limit"),
    ({"resource": "jobs", "amount": 1, "per": ["user", "host"]}, ["1", "2", "3"], "none"),
]


@pytest.mark.parametrize(("limit", "started", "main"), LIMITS)
def test_a_limit_counts_what_its_lists_and_its_per_say(
    limit: Mapping[str, Any], started: list[str], main: str
) -> None:
    hosts = [host("h1", slots=4), host("h2", slots=4)]
    pending = [
        job("1", user="u1", tasks=(2, 2)),
        job("2", user="u1", tasks=(2, 2)),
        job("3", user="u2", tasks=(2, 2)),
    ]
    groups = [{"name": "g1", "users": ["u1"]}]

    phase = run(hosts=hosts, limits=[{"name": "l", **limit}], groups=groups, pending=pending)

    assert list(placed(phase)) == started
    assert {pending.reason.value for pending in phase.pending} == (
        {main} if main != "none" else set()
    )


def test_an_array_runs_as_many_elements_at_once_as_its_limit_says() -> None:
    element = {"id": "5", "limit": 2}
    running = [{"id": "5[1]", "array": {**element, "index": 1}}]
    pending = [
        job("5[2]", array={**element, "index": 2}),
        job("5[3]", array={**element, "index": 3}),
    ]

    phase = run(hosts=[host("h1", slots=9)], running=running, pending=pending)

    assert placed(phase) == {"5[2]": [("h1", 1)]}
    assert reasons(phase, "5[3]") == [("limit", "array 5", None)]


def test_a_guaranteed_amount_is_kept_while_the_group_has_a_job_that_could_start() -> None:
    quotas = [{"name": "q", "group": "g1", "resource": "slots", "guaranteed": 2, "maximum": 3}]
    groups = [{"name": "g1", "users": ["u1"]}]
    mine = job("9", user="u1", tasks=(3, 3), resreq="rusage[mem=9]")
    others = [job(str(n), user="u2") for n in (1, 2, 3)]

    kept = run(hosts=[host("h1", slots=4)], quotas=quotas, groups=groups, pending=[mine, *others])
    free = run(
        hosts=[host("h1", slots=4)],
        quotas=quotas,
        groups=groups,
        pending=[{**mine, "held": True}, *others],
    )

    assert list(placed(kept)) == ["1", "2"]
    assert reasons(kept, "3") == [("limit", "q", None)]
    assert list(placed(free)) == ["1", "2", "3"]


def test_in_strict_order_the_first_job_that_lacks_resources_blocks_those_behind() -> None:
    pending = [
        job("1", held=True),
        job("2", tasks=(9, 9)),
        job("3"),
        job("4", waits_for=["3"]),
    ]

    phase = run(hosts=[host("h1", slots=4)], pending=pending, settings={"order": "strict"})

    assert placed(phase) == {}
    assert [(p.job, p.reason.value) for p in phase.pending] == [
        ("1", "held"),
        ("2", "no_resource"),
        ("3", "priority"),
        ("4", "dependency"),
    ]


def test_equal_jobs_that_fail_have_the_reasons_of_the_first_of_them() -> None:
    shared = [{"name": "lic", "total": 1}]
    pending = [
        job("1", tasks=(3, 3), resreq="rusage[lic=1/job]"),
        job("2", resreq="rusage[lic=1/job]"),
        job("3", tasks=(3, 3), resreq="rusage[lic=1/job]"),
        job("4", tasks=(3, 3), resreq="rusage[lic=1/job]", user="u2"),
    ]

    phase = run(hosts=[host("h1", slots=2)], shared=shared, pending=pending)

    assert reasons(phase, "1") == reasons(phase, "3") == [("no_resource", "slots", ("h1",))]
    assert reasons(phase, "4") == [("no_resource", "lic", None)]


def test_one_id_in_running_and_pending_is_running() -> None:
    running = [{"id": "j1", "hosts": [{"name": "h1", "uses": {"slots": 8}}]}]

    phase = run(
        hosts=[host("h1", slots=8)], running=running, pending=[job("j1", resreq="rusage[slots=8]")]
    )

    assert phase == Phase1((), ())


def test_a_bare_number_of_memory_is_read_in_the_unit_of_the_setting() -> None:
    pending = [job("1", resreq="rusage[mem=81920]"), job("2", resreq="rusage[mem=80M]")]
    hosts = [host("h1", slots=9, mem=160)]

    mib = run(hosts=hosts, pending=pending)
    kib = run(hosts=hosts, pending=pending, settings={"units": {"mem": "KiB"}})
    unknown = run(hosts=hosts, pending=pending, settings={"units": {"mem": None}})

    assert list(placed(mib)) == ["2"]
    assert [a.hosts[0].uses["mem"] for a in kib.allocations] == [80, 80]
    assert reasons(unknown, "1") == [("unit_unknown", "mem", None)]
    assert list(placed(unknown)) == ["2"]
