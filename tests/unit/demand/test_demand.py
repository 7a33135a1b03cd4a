"""What is demanded, by hand: price, mixes, reservation, soundness, tightness, and who does not count."""

from typing import Any

import pytest

from tests.reference.cases import host, job, snapshot, template
from tests.reference.comparison import differences
from xce.domain.formats.session_result import SessionResult, Tightness
from xce.domain.formats.snapshot import Snapshot
from xce.domain.scheduling.session import run_session


def run(given: Snapshot) -> SessionResult:
    result = run_session(given)
    assert differences(given, result) == []
    return result


def cloud(*templates: dict[str, Any], **parts: Any) -> Snapshot:
    catalog = {"templates": list(templates), **parts.pop("catalog", {})}
    return snapshot(catalog=catalog, **parts)


def jobs(many: int, resreq: str = "", **more: Any) -> list[dict[str, Any]]:
    return [job(str(n), resreq=resreq, **more) for n in range(1, many + 1)]


def why(result: SessionResult) -> dict[str, str]:
    demand = result.demand
    return {each.job: each.why for each in (*demand.impossible, *demand.not_counted)}


BIG = template("big", slots=16, mem="32GiB", price_per_hour="0.30")
SMALL = template("small", slots=4, mem="8GiB", price_per_hour="0.09")
QUARTER = "rusage[slots=4,mem=8GiB]"


@pytest.mark.parametrize(
    ("many", "order"),
    [
        (1, {"small": 1}),
        (3, {"small": 3}),
        (4, {"big": 1}),
        (5, {"big": 1, "small": 1}),
        (8, {"big": 2}),
    ],
)
def test_the_jobs_behind_decide_whether_a_large_host_pays(many: int, order: dict[str, int]) -> None:
    result = run(cloud(BIG, SMALL, pending=jobs(many, QUARTER)))

    assert dict(result.demand.order) == order


def test_an_unpriced_template_comes_after_all_priced_ones() -> None:
    unpriced = template("a", slots=4)

    assert dict(run(cloud(unpriced, SMALL, pending=jobs(1))).demand.order) == {"small": 1}
    assert dict(run(cloud(unpriced, pending=jobs(1))).demand.order) == {"a": 1}


def test_a_free_template_is_taken_before_one_that_costs() -> None:
    free = template("z", slots=1, price_per_hour="0")

    assert dict(run(cloud(free, SMALL, pending=jobs(1))).demand.order) == {"z": 1}


def test_when_supply_is_short_earlier_jobs_get_it() -> None:
    result = run(cloud(template("T", slots=1, allowed=2), pending=jobs(3)))

    assert dict(result.demand.order) == {"T": 2}
    assert why(result) == {"3": "no more room on any template that fits"}


def test_a_lower_priority_serves_what_the_higher_has_no_room_for() -> None:
    first = template("first", slots=1, allowed=1, priority=9, price_per_hour="9")
    second = template("second", slots=1, priority=1, price_per_hour="1")

    assert result_order(cloud(first, second, pending=jobs(3))) == [("first", 1), ("second", 2)]


def result_order(given: Snapshot) -> list[tuple[str, int]]:
    return list(run(given).demand.order)


def test_a_mix_of_templates_is_used_only_if_no_single_one_will_do() -> None:
    two = "rusage[slots=2] span[hosts=-1]"
    a, b = template("a", slots=2, allowed=1), template("b", slots=2, allowed=3)

    assert result_order(cloud(a, b, pending=[job("1", tasks=(2, 2), resreq=two)])) == [("b", 2)]
    assert result_order(cloud(a, b, pending=[job("1", tasks=(4, 4), resreq=two)])) == [
        ("a", 1),
        ("b", 3),
    ]


def test_left_over_room_of_real_hosts_is_used_first_and_stays_taken() -> None:
    given = cloud(
        template("T", slots=2),
        hosts=[host("h1", slots=2)],
        shared=[{"name": "lic", "total": 0}],
        pending=[
            job("1", tasks=(3, 3), resreq="rusage[slots=2] span[hosts=-1]"),
            job("2", resreq="rusage[slots=2,lic=1]"),
        ],
        catalog={"countable": [{"name": "lic", "headroom": 1}]},
    )

    result = run(given)

    assert [(d.job, d.hosts) for d in result.demand.hosts[0].jobs] == [("1", 2), ("2", 1)]


def test_an_earlier_job_that_a_new_host_would_move_still_starts() -> None:
    # On the first new host job 1 has its tasks together, so job 3 finds no room there without one more host.
    given = cloud(
        template("T", slots=4, allowed=4),
        hosts=[host("h1", slots=2)],
        pending=[job("1", tasks=(3, 3)), job("2", tasks=(3, 3)), job("3", tasks=(2, 2), resreq="rusage[slots=3]")],
    )  # fmt: skip

    result = run(given)

    assert why(result) == {}
    assert dict(result.demand.order) == {"T": 4}


def test_a_host_that_turned_out_to_be_spare_is_dropped() -> None:
    # Job 1 alone asks for the preferred small host; the large one that job 2 needs has room for both.
    small = template("a", slots=1, priority=9)
    large = template("b", slots=8)

    result = run(cloud(small, large, pending=[job("1"), job("2", resreq="rusage[slots=4]")]))

    assert dict(result.demand.order) == {"b": 1}
    assert result.demand.tight is Tightness.PROVED


def test_without_budget_the_demand_is_sound_and_says_that_it_was_not_proved() -> None:
    # Three slots of each host are used, so four that are left in all might do for one host fewer.
    given = cloud(
        template("T", slots=4, attributes={"zone": "a"}),
        pending=jobs(5, "rusage[slots=3] same[zone]"),
        settings={"tightness_budget": 0},
    )

    result = run(given)

    assert result.demand.tight is Tightness.BUDGET
    assert dict(result.demand.order) == {"T": 5}


def test_an_alternative_that_needs_less_is_not_bought_for_another() -> None:
    resreq = "{rusage[lic=2]} || {rusage[slots=2]}"
    given = cloud(
        template("T", slots=2),
        shared=[{"name": "lic", "total": 0}],
        pending=[job("1", resreq=resreq)],
        catalog={"countable": [{"name": "lic", "headroom": 9}]},
    )

    result = run(given)

    assert dict(result.demand.order) == {"T": 1}
    assert result.demand.countable == ()


def test_amounts_in_flight_are_used_before_headroom_and_named() -> None:
    given = cloud(
        template("T", slots=1),
        hosts=[host("h1", slots=9)],
        shared=[{"name": "lic", "total": 1}],
        pending=jobs(3, "rusage[lic=2]"),
        catalog={
            "countable": [{"name": "lic", "headroom": 2}],
            "in_flight": {"counts": [{"name": "lic", "amount": 3}]},
        },
    )

    result = run(given)

    (count,) = result.demand.countable
    assert (count.amount, count.wanted) == (2, 5)
    waits_for = [each.provisioning for each in result.pending if each.provisioning is not None]
    assert [each.in_flight for each in waits_for] == [("lic",), ("lic",), ()]
    assert [each.countable for each in waits_for] == [{}, {}, {"lic": 2}]


@pytest.mark.parametrize(
    ("job_parts", "reason"),
    [
        ({"provision": False}, "opted out"),
        ({"queue": "slow", "submitted": "2026-03-01T09:59:00Z"}, "below the demand threshold of queue slow"),
        ({"resreq": "rusage[lic=3]"}, "short 3 of lic, not provisionable"),
        ({"resreq": "rusage[fpga=1]"}, "no template provides 'fpga'"),
        ({"resreq": "gpu"}, "no host and no template is what it selects"),
        ({"resreq": "rusage[slots=9]"}, "needs 9 of 'slots' on one host, at most 4 are possible"),
        ({"resreq": "select[slow]"}, "template P is paused until 2026-03-01T11:00:00Z: 2 refusals"),
        ({"tasks": (9, 9), "resreq": "rusage[tok=1/host] span[hosts=-1]"}, "needs 9 of tok, at most 1 are possible"),
    ],
)  # fmt: skip
def test_the_reason_why_a_job_is_not_in_the_demand(job_parts: dict[str, Any], reason: str) -> None:
    paused = template(
        "P",
        slots=2,
        attributes={"slow": True},
        paused_until="2026-03-01T11:00:00.305265Z",
        paused_why="2 refusals",
    )
    given = cloud(
        template("T", slots=4),
        paused,
        queues=[{"name": "slow", "demand_threshold": [[1, 10]]}],
        shared=[{"name": "lic", "total": 5, "used_elsewhere": 5}, {"name": "tok", "total": 1}],
        pending=[job("1", **job_parts)],
    )

    assert why(run(given)) == {"1": reason}


def test_a_host_on_which_a_counted_job_is_placed_is_not_idle() -> None:
    idle: dict[str, Any] = {"instance": "i-1", "idle_since": "2026-03-01T08:00:00Z"}
    waits = job("1", resreq="rusage[lic=1]")
    parts: dict[str, Any] = {
        "hosts": [host("h1", slots=1, **idle)],
        "shared": [{"name": "lic", "total": 0}],
    }
    countable = {"countable": [{"name": "lic", "headroom": 1}]}

    assert run(cloud(pending=[waits], catalog=countable, **parts)).idle.hosts == ()
    assert [each.host for each in run(cloud(pending=[waits], **parts)).idle.hosts] == ["h1"]


def test_borrowed_amounts_that_counted_jobs_will_take_are_not_idle() -> None:
    shared = [{"name": "lic", "total": 6, "owned": 2, "borrowed": 4, "peak_need": 3}]

    alone = run(cloud(shared=shared))
    wanted = run(cloud(template("T", slots=1), shared=shared, pending=jobs(1, "rusage[lic=5]")))

    assert [(each.name, each.amount) for each in alone.idle.counts] == [("lic", 3)]
    assert [(each.name, each.amount) for each in wanted.idle.counts] == [("lic", 1)]


def test_a_mix_is_found_in_another_order_where_one_part_would_take_the_host_of_the_next() -> None:
    resreq = "1*{rusage[mem=3] exclusive} + 1*{select[type==x] rusage[slots=2] span[hosts=1]}"
    wide = template("t2", slots=2, mem=4, allowed=1, attributes={"type": "x"})
    narrow = template("t10", slots=1, mem=4, allowed=2)

    result = run(cloud(wide, narrow, pending=jobs(1, resreq, tasks=(2, 2))))

    assert result.demand.order == (("t10", 1), ("t2", 1))


def test_a_count_that_is_short_on_every_host_is_named_with_what_is_missing() -> None:
    pending = jobs(2, "span[ptile=2] rusage[lic=1/host]", tasks=(4, 4))
    pool = [{"name": "lic", "total": 3}]

    result = run(cloud(template("T", slots=4), shared=pool, pending=pending))

    assert why(result) == {"2": "short 1 of lic, not provisionable"}


def test_price_picks_the_template_and_not_the_alternative() -> None:
    dear = template("g", slots=4, gpu=1, price_per_hour="9.0")
    cheap = template("c", slots=4, price_per_hour="0.1")
    either = job("1", resreq="{select[gpu]} || {}")

    assert result_order(cloud(dear, cheap, pending=[either])) == [("g", 1)]


def test_small_hosts_go_first_where_that_leaves_a_large_one_to_large_jobs() -> None:
    large = template("t0", slots=8, price_per_hour="0.24", allowed=1)
    small = template("t1", slots=2, price_per_hour="0.07", allowed=9)
    dear = template("t2", slots=4, price_per_hour="0.94", allowed=1)
    pending = [job(str(n), resreq=f"rusage[slots={slots}]") for n, slots in enumerate((4, 2, 4, 2))]

    assert result_order(cloud(large, small, dear, pending=pending)) == [("t1", 2), ("t0", 1)]
