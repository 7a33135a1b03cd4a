"""The judge of demand on field cases: it accepts the right answer and names what is wrong with the tempting ones."""

from typing import Any

import pytest

from tests.reference.answers import answer
from tests.reference.cases import host, job, snapshot, template
from tests.reference.exactness import violations
from xce.domain.formats.snapshot import Snapshot

Why = dict[str, str]


def wrong(
    given: Snapshot,
    order: list[tuple[str, int]],
    *,
    amounts: dict[str, int] | None = None,
    impossible: Why | None = None,
    not_counted: Why | None = None,
) -> str:
    """Return what the judge finds wrong with a demand, all else of the result being right."""
    result = answer(given, order, amounts or {}, impossible or {}, not_counted or {})
    return "\n".join(violations(given, result))


def flying(*ids: str, of: str = "T") -> dict[str, Any]:
    return {"hosts": [{"id": name, "template": of} for name in ids]}


def cores(many: int, first: int = 1, **more: Any) -> list[dict[str, Any]]:
    return [job(f"j{number}", **more) for number in range(first, first + many)]


def starting_hosts_are_supply(jobs: int, in_flight: int, hosts: int = 0) -> Snapshot:
    """F01: T has 4 cores, six at most."""
    live = in_flight + hosts
    return snapshot(
        hosts=[host(f"h{n}", slots=4) for n in range(hosts)],
        pending=cores(jobs),
        catalog={
            "templates": [template("T", slots=4, allowed=6 - live)],
            "in_flight": flying(*[f"i{n}" for n in range(in_flight)]),
        },
    )


@pytest.mark.parametrize(
    ("jobs", "in_flight", "asked", "too_many"),
    [(12, 0, 3, 4), (12, 3, 0, 1), (14, 3, 1, 2), (14, 4, 0, 3)],
)
def test_f01_hosts_on_their_way_are_supply(
    jobs: int, in_flight: int, asked: int, too_many: int
) -> None:
    given = starting_hosts_are_supply(jobs, in_flight)

    assert wrong(given, [("T", asked)] if asked else []) == ""
    assert "not tight" in wrong(given, [("T", too_many)])
    if asked:
        assert "not sound" in wrong(given, [("T", asked - 1)] if asked > 1 else [])


def test_f02_a_job_seen_on_a_host_is_not_pending_and_a_joined_host_not_in_flight() -> None:
    given = snapshot(
        hosts=[host(f"h{n}", slots=8, instance=f"i{n}") for n in (1, 2, 3, 4)],
        running=[
            {"id": f"j{n}", "hosts": [{"name": f"h{n}", "uses": {"slots": 8}}]} for n in (1, 2)
        ],
        pending=cores(5, resreq="rusage[slots=8]"),
        catalog={"templates": [template("T", slots=8)], "in_flight": flying("i4", "i5")},
    )

    assert wrong(given, []) == ""
    assert "not tight" in wrong(given, [("T", 1)])


@pytest.mark.parametrize(
    ("jobs", "chosen", "others"),
    [
        (cores(1, resreq="rusage[slots=4,mem=17GiB]"), [("C", 1)], [[("A", 1)], [("B", 1)]]),
        (cores(1, resreq="rusage[slots=4,mem=8GiB]"), [("D", 1)], [[("C", 1)]]),
        (cores(4, resreq="rusage[slots=4,mem=8GiB]"), [("C", 1)], [[("A", 1)]]),
    ],
)
def test_f12_one_host_for_all_is_the_cheapest_that_serves_them(
    jobs: list[dict[str, Any]], chosen: list[tuple[str, int]], others: list[list[tuple[str, int]]]
) -> None:
    templates = [
        template("A", slots=16, mem="64GiB", price_per_hour="1.30"),
        template("B", slots=16, mem="32GiB", price_per_hour="1.05"),
        template("C", slots=16, mem="32GiB", price_per_hour="0.30"),
        template("D", slots=4, mem="8GiB", price_per_hour="0.09"),
    ]
    given = snapshot(pending=jobs, catalog={"templates": templates})

    assert wrong(given, chosen) == ""
    for other in others:
        assert "comes first" in wrong(given, other)


def test_f12_priority_comes_before_price_and_the_id_decides_between_equals() -> None:
    def choice(**a: Any) -> Snapshot:
        templates = [template("A", slots=4, **a), template("B", slots=4, price_per_hour="0.10")]
        return snapshot(pending=cores(1), catalog={"templates": templates})

    assert wrong(choice(price_per_hour="0.50", priority=20), [("A", 1)]) == ""
    assert "comes first" in wrong(choice(price_per_hour="0.50", priority=20), [("B", 1)])
    assert "comes first" in wrong(choice(price_per_hour="0.10"), [("B", 1)])
    assert wrong(choice(), [("B", 1)]) == ""


def waiting_for_a_licence(held: int, in_flight: int) -> Snapshot:
    """F13: ten tokens of simA, 30 jobs of one core and one token, no free core, T has 4 cores."""
    return snapshot(
        shared=[{"name": "simA", "total": 10}],
        running=[{"id": "r", "shared": {"simA": held}}],
        pending=cores(30, resreq="rusage[simA=1]"),
        catalog={"templates": [template("T", slots=4)], "in_flight": flying(*"ab"[:in_flight])},
    )


@pytest.mark.parametrize(
    ("held", "in_flight", "startable", "asked"), [(8, 0, 2, 1), (8, 1, 2, 0), (3, 1, 7, 1)]
)
def test_f13_jobs_that_wait_for_a_licence_bring_no_hosts(
    held: int, in_flight: int, startable: int, asked: int
) -> None:
    given = waiting_for_a_licence(held, in_flight)
    short = {f"j{n}": "short 1 of simA, not provisionable" for n in range(startable + 1, 31)}
    one_fewer = {f"j{n}": "short" for n in range(startable, 31)}

    order = [("T", asked)] if asked else []

    assert wrong(given, order, not_counted=short) == ""
    assert "not sound" in wrong(given, [("T", 8)])
    assert "not complete" in wrong(given, order, not_counted=one_fewer)


def test_f14_jobs_that_wait_for_a_queue_or_user_limit_bring_no_hosts() -> None:
    limits = [
        {"name": "q-run", "resource": "jobs", "amount": 6, "queues": ["q"]},
        {"name": "u1-run", "resource": "jobs", "amount": 1, "queues": ["q"], "users": ["u1"]},
    ]
    pending = [*cores(15, user="u1", queue="q"), *cores(5, 16, user="u2", queue="q")]
    pending += [job(f"k{n}", queue="q", held=True) for n in range(3)]
    pending += [job(f"m{n}", queue="q", waits_for=["r0"]) for n in range(2)]
    given = snapshot(
        queues=[{"name": "q"}],
        limits=limits,
        running=[{"id": f"r{n}", "queue": "q", "user": "u3"} for n in range(4)],
        pending=pending,
        catalog={"templates": [template("T", slots=1)]},
    )
    left = {f"j{n}": "limit u1-run" for n in range(2, 16)} | {
        f"j{n}": "limit q-run" for n in range(17, 21)
    }
    left |= {f"k{n}": "held" for n in range(3)} | {"m0": "dependency", "m1": "dependency"}

    assert wrong(given, [("T", 2)], not_counted=left) == ""
    assert "not sound" in wrong(
        given, [("T", 3)], not_counted={j: w for j, w in left.items() if j != "j2"}
    )
    assert "not complete" in wrong(given, [("T", 1)], not_counted={**left, "j16": "limit q-run"})


GANG = job("G", tasks=(9, 9), resreq="1*{rusage[slots=4,fpga=1]} + 8*{}")


def gang(p_allowed: int, t_allowed: int) -> Snapshot:
    templates = [template("T", slots=2, allowed=t_allowed)]
    if p_allowed:
        templates.append(template("P", slots=8, fpga=1, allowed=p_allowed))
    return snapshot(pending=[GANG], catalog={"templates": templates})


def test_f15_a_gang_with_a_part_that_fits_nowhere_is_impossible_as_a_whole() -> None:
    given = gang(0, 20)

    assert wrong(given, [], impossible={"G": "no template provides 'fpga'"}) == ""
    assert "not sound" in wrong(given, [("T", 4)])
    assert "not called impossible" in wrong(given, [], not_counted={"G": "no room"})


def test_f15_a_gang_is_placed_on_a_mix_and_only_whole() -> None:
    assert wrong(gang(1, 20), [("P", 1), ("T", 2)]) == ""
    assert "not tight" in wrong(gang(1, 20), [("P", 1), ("T", 3)])
    assert wrong(gang(1, 1), [], impossible={"G": "needs 3 hosts, at most 2 are possible"}) == ""
    assert "called impossible" in wrong(gang(1, 20), [], impossible={"G": "no"})


def test_f16_an_impossible_job_does_not_stop_the_others() -> None:
    apart = "rusage[slots=2] span[hosts=-1]"
    given = snapshot(
        pending=[job("g1", tasks=(3, 3), resreq=apart), job("g2", tasks=(2, 2), resreq=apart)],
        catalog={"templates": [template("T", slots=2, allowed=2)]},
    )

    assert (
        wrong(given, [("T", 2)], impossible={"g1": "needs 3 hosts, at most 2 are possible"}) == ""
    )
    assert "not complete" in wrong(
        given, [], impossible={"g1": "no"}, not_counted={"g2": "no room"}
    )


def test_f17_a_host_that_is_smaller_than_promised_covers_nothing() -> None:
    given = snapshot(
        hosts=[host("t1", slots=4, mem="440GiB", instance="i1")],
        pending=[job("j1", resreq="rusage[mem=445GiB]")],
        catalog={
            "templates": [
                template("T", slots=4, mem="440GiB"),
                template("U", slots=4, mem="512GiB"),
            ]
        },
    )

    assert wrong(given, [("U", 1)]) == ""
    assert "not sound" in wrong(given, [("T", 1)])
    assert "not complete" in wrong(given, [], not_counted={"j1": "covered"})


@pytest.mark.parametrize(("unit", "asked"), [("KiB", 10), ("MiB", None), (None, 0)])
def test_f18_a_number_means_what_the_unit_setting_says(unit: str | None, asked: int | None) -> None:
    given = snapshot(
        pending=cores(20, resreq="rusage[mem=81920]"),
        settings={"units": {"mem": unit}},
        catalog={"templates": [template("T", slots=2, mem=2048)]},
    )
    names = [f"j{n}" for n in range(1, 21)]
    impossible = dict.fromkeys(names, "no template has 81920 of 'mem'") if unit == "MiB" else {}
    unknown = dict.fromkeys(names, "unit unknown: mem") if unit is None else {}

    assert (
        wrong(given, [("T", asked)] if asked else [], impossible=impossible, not_counted=unknown)
        == ""
    )


def test_counts_in_flight_come_before_headroom_and_the_rest_is_named() -> None:
    given = snapshot(
        hosts=[host("h1", slots=9)],
        shared=[{"name": "lic", "total": 2, "owned": 2}],
        pending=cores(4, resreq="rusage[lic=2]"),
        catalog={
            "countable": [{"name": "lic", "headroom": 3}],
            "in_flight": {"counts": [{"name": "lic", "amount": 1}]},
        },
    )

    assert wrong(given, [], amounts={"lic": 3}, not_counted={"j4": "short 2 of lic"}) == ""
    assert "not tight" in wrong(given, [], amounts={"lic": 4}, not_counted={"j4": "short 2 of lic"})
    assert "not complete" in wrong(
        given, [], amounts={"lic": 1}, not_counted={"j3": "short", "j4": "short"}
    )
    assert "headroom" in wrong(given, [], amounts={"lic": 5})


def test_unknown_use_and_unknown_headroom_bring_nothing() -> None:
    given = snapshot(
        hosts=[host("h1", slots=9)],
        shared=[{"name": "lic", "total": 2, "used_elsewhere": None}, {"name": "tok", "total": 0}],
        pending=[job("1", resreq="rusage[lic=1]"), job("2", resreq="rusage[tok=1]")],
        catalog={"countable": [{"name": "lic", "headroom": 3}, {"name": "tok", "headroom": None}]},
    )
    left = {"1": "short 1 of lic, not provisionable", "2": "short 1 of tok, not provisionable"}

    assert wrong(given, [], not_counted=left) == ""
    assert "not sound" in wrong(given, [], amounts={"lic": 1}, not_counted={"2": left["2"]})


def test_jobs_that_opted_out_or_are_below_their_threshold_do_not_count() -> None:
    queues = [{"name": "slow", "demand_threshold": [[2, 10], [1, 60]]}]
    given = snapshot(
        queues=queues,
        pending=[
            job("1", provision=False),
            job("2", queue="slow", submitted="2026-03-01T09:45:00Z"),
            job("3", queue="normal"),
        ],
        catalog={"templates": [template("T", slots=1)]},
    )
    left = {"1": "opted out", "2": "below the demand threshold of queue slow"}

    assert wrong(given, [("T", 1)], not_counted=left) == ""
    assert "wanted 'opted out'" in wrong(given, [("T", 2)], not_counted={"2": left["2"]})
    assert "wanted 'below" in wrong(given, [("T", 2)], not_counted={"1": left["1"]})


def test_a_paused_template_has_no_room_and_makes_nothing_impossible() -> None:
    paused = template("T", slots=1, paused_until="2026-03-01T10:30:00Z", paused_why="2 refusals")
    given = snapshot(pending=[job("1")], catalog={"templates": [paused]})

    assert (
        wrong(given, [], not_counted={"1": "template T is paused until 2026-03-01T10:30:00Z"}) == ""
    )
    assert "called impossible" in wrong(given, [], impossible={"1": "no"})
    assert "room for 0" in wrong(given, [("T", 1)])


def test_jobs_past_the_cap_are_named_and_not_judged() -> None:
    given = snapshot(
        pending=cores(3),
        settings={"catalog_pass_cap": 2},
        catalog={"templates": [template("T", slots=1)]},
    )

    assert wrong(given, [("T", 2)]) == ""
    assert "wanted ['j3']" in wrong(given, [("T", 2)], not_counted={"j3": "no room"})


def test_in_strict_order_nothing_is_bought_behind_a_job_that_is_not_counted() -> None:
    given = snapshot(
        pending=[job("1"), job("2", tasks=(9, 9), resreq="span[hosts=1]"), job("3")],
        settings={"order": "strict"},
        catalog={"templates": [template("T", slots=1)]},
    )
    never = {"2": "needs 9 slots on one host"}

    assert wrong(given, [("T", 1)], impossible=never, not_counted={"3": "behind job 2"}) == ""
    assert "in strict order" in wrong(given, [("T", 2)], impossible=never)
