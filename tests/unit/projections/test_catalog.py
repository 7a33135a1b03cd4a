"""The catalog: given descriptions and events, then lines with room, headroom, pauses and supply in flight."""

from datetime import datetime
from decimal import Decimal

import pytest

from tests.unit.projections.run import (
    Run,
    accept,
    at,
    came,
    cloud,
    declare,
    hosts,
    join,
    lent,
    minutes,
    occupied,
    pool,
    template,
    units,
)
from xce.domain.engine.commands import (
    ConfirmReturn,
    DescribeProvider,
    MissJoin,
    PauseProvider,
    RecordJoin,
    RefuseRequest,
    StartDrain,
    StartGrantReturn,
    StartReturn,
)
from xce.domain.formats.provider import ProviderDescription, TemplateOffer
from xce.domain.formats.snapshot import Countable, Snapshot, Template
from xce.projections.all import Projections
from xce.projections.room import UNLIMITED


def lines(run: Run) -> list[tuple[str, int]]:
    return [(line.id, line.allowed) for line in run.catalog().templates]


def draws(run: Run, now: datetime | None = None) -> dict[str, list[tuple[str | None, int]]]:
    view = run.projections.catalog.view(now or run.now)
    return {line.id: [(draw.capacity, draw.most) for draw in line.draws] for line in view.templates}


def capacities(run: Run, now: datetime | None = None) -> list[tuple[str, int]]:
    view = run.projections.catalog.view(now or run.now)
    return [(capacity.name, capacity.room) for capacity in view.capacities]


def in_flight(run: Run) -> list[tuple[str, str]]:
    return [(host.id, host.template) for host in run.catalog().in_flight.hosts]


# ------------------------------------------------------------------------ lines
def test_a_template_has_what_its_description_says() -> None:
    run = Run(
        cloud(
            "aws",
            template(
                "c4",
                "0.17",
                max_number=6,
                provides={"slots": 4},
                attributes={"arch": "x"},
                priority=2,
            ),
            lead=3,
        )
    )

    assert run.catalog().templates == (
        Template(
            id="c4",
            attributes={"arch": "x"},
            provides={"slots": 4},
            allowed=6,
            priority=2,
            price_per_hour=Decimal("0.17"),
            lead_time=minutes(3),
        ),
    )


def test_an_offer_is_not_compared_with_all_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    same = TemplateOffer.__eq__

    def counted(one: TemplateOffer, other: object) -> bool:
        nonlocal compared
        compared += 1
        return same(one, other)

    run = Run(cloud("aws", *(template(f"c{number}", "0.17") for number in range(200))))
    monkeypatch.setattr(TemplateOffer, "__eq__", counted)

    assert len(run.catalog().templates) == 200
    assert compared <= 5 * 200


def test_the_configuration_wins_over_the_description_field_by_field() -> None:
    run = Run(
        cloud("aws", template("c4", "0.17", max_number=6, provides={"slots": 4}, priority=2)),
        templates=[Template(id="c4", provides={"slots": 8}, price_per_hour=Decimal("0.20"))],
    )

    (line,) = run.catalog().templates
    assert (line.provides, line.price_per_hour) == ({"slots": 8}, Decimal("0.20"))
    assert (line.priority, line.allowed) == (2, 6)


def test_room_is_summed_over_the_providers_of_a_template_at_one_price() -> None:
    run = Run(
        cloud("aws", template(max_number=6)), cloud("gcp", template(price="0.170"), capacity=3)
    )

    assert lines(run) == [("c4", 9)]


def test_a_template_of_two_prices_has_two_lines() -> None:
    run = Run(
        cloud("aws", template(max_number=6)),
        cloud("gcp", template(price="0.2", max_number=2)),
        cloud("own", template(price=None, max_number=1)),
    )

    assert lines(run) == [("c4@0.17", 6), ("c4@0.2", 2), ("c4@?", 1)]
    run.do(hosts("R1", 2, of="gcp", price="0.20"))
    assert lines(run) == [("c4@0.17", 6), ("c4@0.2", 0), ("c4@?", 1)]
    assert in_flight(run) == [("R1/1", "c4@0.2"), ("R1/2", "c4@0.2")]


def test_a_line_promises_only_what_each_of_its_providers_promises() -> None:
    run = Run(
        cloud("aws", template(provides={"slots": 4, "mem": 8192}, attributes={"a": 1, "b": True})),
        cloud(
            "gcp",
            template(provides={"slots": 4, "mem": 8000, "gpu": 1}, attributes={"a": 1, "b": 1}),
        ),
    )

    (line,) = run.catalog().templates
    assert line.provides == {"slots": 4, "mem": 8000}
    assert line.attributes == {"a": 1}


def test_without_any_limit_the_room_is_large_and_finite() -> None:
    assert lines(Run(cloud("aws", template()))) == [("c4", UNLIMITED)]


# ------------------------------------------------------------------------- room
def test_what_is_asked_granted_or_exists_in_any_state_takes_room() -> None:
    run = Run(cloud("aws", template(max_number=6)))

    run.do(hosts("R1", 3), accept("R1"))
    assert lines(run) == [("c4", 3)]
    run.do(came("R1", "m1", failed=["m2"], ended=True))
    assert lines(run) == [("c4", 4)]
    run.do(StartReturn("B1", ("aws/m2",), "failed"))
    assert lines(run) == [("c4", 4)]
    run.do(ConfirmReturn("B1", "aws/m2"))
    assert lines(run) == [("c4", 5)]


def test_the_capacity_of_a_provider_is_shared_by_its_templates() -> None:
    run = Run(cloud("aws", template("c4"), template("m8", max_number=3), capacity=5))

    run.do(hosts("R1", 4, "c4"))

    assert lines(run) == [("c4", 1), ("m8", 1)]


def test_lines_name_the_capacities_that_they_share_and_what_is_left_of_them() -> None:
    run = Run(
        cloud("aws", template("c4"), template("m8", max_number=3), capacity=5),
        cloud("gcp", template("c4"), template("x1", max_number=2), priority=7),
        cloud("own", template("y1", max_number=2)),
    )
    run.do(hosts("R1", 4, "c4"))

    assert draws(run) == {
        "c4": [(None, UNLIMITED), ("aws", UNLIMITED)],  # gcp is asked first, and has no capacity
        "m8": [("aws", 3)],
        "x1": [],
        "y1": [],
    }
    assert capacities(run) == [("aws", 1)]
    run.do(RefuseRequest("R1", "no"))
    assert capacities(run) == [("aws", 5)]


def test_who_failed_of_late_is_drawn_on_last_and_who_is_paused_not_at_all() -> None:
    run = Run(
        cloud("aws", template("c4"), capacity=5, priority=7),
        cloud("gcp", template("c4"), capacity=3),
    )
    run.do(PauseProvider("aws", "c4", at(10), "no capacity"))

    assert draws(run, at(5)) == {"c4": [("gcp", UNLIMITED)]}
    assert capacities(run, at(5)) == [("gcp", 3)]
    assert draws(run, at(15)) == {"c4": [("gcp", UNLIMITED), ("aws", UNLIMITED)]}
    assert draws(run, at(20)) == {"c4": [("aws", UNLIMITED), ("gcp", UNLIMITED)]}


def test_what_is_left_of_a_capacity_is_a_size_that_can_be_asked() -> None:
    run = Run(cloud("aws", template("c4", max_number=9), capacity=7, minimum=4, step=2))

    assert (lines(run), draws(run)) == ([("c4", 6)], {"c4": [("aws", 8)]})
    assert capacities(run) == [("aws", 6)]


def test_a_line_that_is_offered_no_more_draws_on_nothing() -> None:
    run = Run(cloud("aws", template("c4"), capacity=5))
    run.do(hosts("R1", 1))

    run.do(DescribeProvider(cloud("aws", template("m8"), capacity=5)))

    assert draws(run) == {"c4": [], "m8": [("aws", UNLIMITED)]}


def test_room_is_a_size_that_can_be_asked() -> None:
    assert lines(Run(cloud("aws", template(max_number=7), minimum=4, step=2))) == [("c4", 6)]
    assert lines(Run(cloud("aws", template(max_number=3), minimum=4))) == [("c4", 0)]


def test_a_new_description_replaces_the_old_one() -> None:
    run = Run(cloud("aws", template(max_number=6), template("m8")))

    run.do(DescribeProvider(cloud("aws", template(max_number=2, price="0.30"))))

    (line,) = run.catalog().templates
    assert (line.id, line.allowed, line.price_per_hour) == ("c4", 2, Decimal("0.30"))


def test_what_is_in_flight_keeps_its_line_when_the_template_is_offered_no_more() -> None:
    run = Run(cloud("aws", template("c4", provides={"slots": 4}), template("m8")))
    run.do(hosts("R1", 1))

    run.do(DescribeProvider(cloud("aws", template("m8"))))

    assert lines(run) == [("c4", 0), ("m8", UNLIMITED)]
    assert run.catalog().templates[0].provides == {"slots": 4}
    run.do(RefuseRequest("R1", "no"))
    assert lines(run) == [("m8", UNLIMITED)]


def test_what_was_bought_at_a_price_that_is_asked_no_more_is_in_flight_on_a_line_there_is() -> None:
    run = Run(cloud("aws", template()))
    run.do(hosts("R1", 1))

    run.do(DescribeProvider(cloud("aws", template(price="0.30"))))

    assert in_flight(run) == [("R1/1", "c4")]


# -------------------------------------------------------------------- in flight
def test_f01_hosts_that_are_asked_and_unanswered_are_in_flight_one_by_one() -> None:
    run = Run(cloud("aws", template(), lead=4))

    run.do(hosts("R17", 3), at=at(1))

    assert in_flight(run) == [("R17/1", "c4"), ("R17/2", "c4"), ("R17/3", "c4")]
    assert {host.ready_at for host in run.catalog().in_flight.hosts} == {at(5)}
    assert {host.expected_name for host in run.catalog().in_flight.hosts} == {None}


def test_a_granted_host_is_in_flight_by_its_own_id_until_it_joins_and_never_twice() -> None:
    run = Run(cloud("aws", template()))
    run.do(hosts("R17", 3), accept("R17"))

    run.do(came("R17", "m1"))
    assert in_flight(run) == [("R17/2", "c4"), ("R17/3", "c4"), ("aws/m1", "c4")]
    assert run.catalog().in_flight.hosts[2].expected_name == "node-m1"

    run.do(join("aws/m1"))
    assert in_flight(run) == [("R17/2", "c4"), ("R17/3", "c4")]
    assert run.projections.inventory.joined_hosts() == {"aws-m1": "aws/m1"}


def test_f02_of_four_hosts_of_which_two_joined_two_are_in_flight() -> None:
    run = Run(cloud("aws", template()))
    run.do(hosts("R1", 4), accept("R1"), came("R1", "h1", "h2", "h3", "h4", ended=True))

    run.do(join("aws/h1"), join("aws/h3"))

    assert in_flight(run) == [("aws/h2", "c4"), ("aws/h4", "c4")]
    assert sorted(run.projections.inventory.joined_hosts().values()) == ["aws/h1", "aws/h3"]


def test_f08_after_a_partial_answer_seven_are_in_flight_and_the_rest_is_not() -> None:
    run = Run(cloud("aws", template(max_number=20)))
    run.do(hosts("R1", 10), accept("R1"))
    assert len(in_flight(run)) == 10

    for _ in range(2):
        run.do(came("R1", *(f"m{n}" for n in range(1, 8)), ended=True))
        assert in_flight(run) == [(f"aws/m{n}", "c4") for n in range(1, 8)]
        assert lines(run) == [("c4", 13)]


def test_f03_a_host_that_never_joined_is_not_in_flight_and_still_takes_room() -> None:
    run = Run(cloud("aws", template(max_number=2)))
    run.do(hosts("R1", 1), accept("R1"), came("R1", "m1", ended=True))

    run.do(MissJoin("aws/m1", "did not join"))

    assert in_flight(run) == []
    assert lines(run) == [("c4", 1)]


def test_a_draining_host_is_neither_in_flight_nor_room() -> None:
    run = Run(cloud("aws", template(max_number=2)))
    run.do(hosts("R1", 1), accept("R1"), came("R1", "m1", ended=True), join("aws/m1"))

    run.do(StartDrain("aws/m1", "idle"))

    assert in_flight(run) == []
    assert lines(run) == [("c4", 1)]


# -------------------------------------------------------------------- countable
def countable(run: Run) -> tuple[int | None, list[tuple[str, int]]]:
    (line,) = run.catalog().countable
    return line.headroom, [(count.name, count.amount) for count in run.catalog().in_flight.counts]


def lender(capacity: int | None = 50, max_borrow: int = 40, step: int = 1) -> Run:
    run = Run(pool(capacity, step=step))
    run.do(declare(owned=10, max_borrow=max_borrow, step=step))
    return run


def test_a_countable_line_has_the_lenders_price() -> None:
    assert lender().catalog().countable == (
        Countable(name="lic", headroom=40, price_per_hour=Decimal("2.00")),
    )


@pytest.mark.parametrize(
    ("capacity", "max_borrow", "headroom"), [(50, 40, 40), (30, 40, 30), (None, 40, None)]
)
def test_headroom_is_bounded_by_the_lender_and_by_the_configuration_and_unknown_stays_unknown(
    capacity: int | None, max_borrow: int, headroom: int | None
) -> None:
    assert countable(lender(capacity, max_borrow)) == (headroom, [])


def test_headroom_is_beyond_what_is_lent_returning_and_asked_in_whole_steps() -> None:
    run = lender(capacity=50, max_borrow=17, step=5)
    assert countable(run) == (15, [])

    run.do(units("R1", 5))
    assert countable(run) == (10, [("lic", 5)])
    run.do(accept("R1"), lent("R1", ("g1", 5)))
    assert countable(run) == (10, [])
    run.do(occupied(0), StartGrantReturn("B1", "pool/g1", 5))
    assert countable(run) == (10, [])


def test_a_paused_lender_has_no_headroom() -> None:
    run = lender()

    run.do(PauseProvider("pool", "lic", at(5), "denied"))

    assert countable(run) == (0, [])
    assert run.projections.catalog.view(at(5)).countable[0].headroom == 40


def test_a_resource_that_is_not_declared_or_has_no_lender_has_no_line() -> None:
    run = Run(pool())
    assert run.catalog().countable == ()

    run.do(declare(lender=None, max_borrow=0))
    assert run.catalog().countable == ()

    run.do(declare(lender="nobody yet"))
    assert run.catalog().countable == ()


# --------------------------------------------------------------- for the policy
def described(run: Run) -> ProviderDescription:
    (description,) = run.projections.catalog.descriptions()
    return description


def test_the_policy_sees_of_a_lender_what_the_configuration_allows() -> None:
    run = Run(pool(50, step=2))
    assert described(run) == pool(50, step=2)

    run.do(declare(max_borrow=12, step=3, min_hold=7))
    (offer,) = described(run).resources
    assert (offer.capacity, offer.step, offer.minimum_hold) == (12, 6, minutes(7))
    assert described(run) is described(run)

    run.do(declare(lender="another"))
    assert described(run).resources[0].capacity == 0


def test_an_unknown_capacity_stays_unknown_for_the_policy() -> None:
    run = Run(pool(None))
    run.do(declare())

    assert described(run).resources[0].capacity is None


def test_the_catalog_is_part_of_a_right_snapshot() -> None:
    run = Run(cloud("aws", template(provides={"slots": 4})), pool())
    run.do(declare())
    run.do(hosts("R1", 2), units("R2", 3), accept("R1"), came("R1", "m1"))
    snapshot = Snapshot.from_json(
        Snapshot.model_validate(
            {
                "format": "xce.snapshot/1",
                "now": at(1),
                "shared": [{"name": "lic", "total": 10}],
                "catalog": run.catalog(),
            }
        ).to_json()
    )

    assert snapshot.catalog == run.catalog()


def test_the_view_is_made_anew_only_after_a_change_or_when_a_pause_ends() -> None:
    run = Run(cloud("aws", template()))
    before = run.projections.catalog.view(at(0))
    assert run.projections.catalog.view(at(500)) is before

    run.do(PauseProvider("aws", None, at(9), "throttled"))
    paused = run.projections.catalog.view(at(1))
    assert run.projections.catalog.view(at(8)) is paused
    assert run.projections.catalog.view(at(9)) is not paused
    assert before.templates[0].paused_until is None


def measured(instance: str, mem: int) -> RecordJoin:
    return RecordJoin(instance, instance.replace("/", "-"), at(0), {}, {"slots": 4, "mem": mem})


def test_f17_what_a_joined_host_has_wins_over_what_its_template_promises_also_after_a_restart() -> (
    None
):
    run = Run(cloud("aws", template(provides={"slots": 4, "mem": 448})))
    run.do(hosts("R1", 2), accept("R1"), came("R1", "h1", "h2", ended=True))

    run.do(measured("aws/h1", 440))

    (line,) = run.catalog().templates
    assert line.provides == {"slots": 4, "mem": 440}
    rebuilt = Projections.rebuild(run.log).catalog.view(run.now)
    assert rebuilt.templates == (line,)
    run.do(measured("aws/h2", 444))
    assert run.catalog().templates == (line,), "the least that was measured counts"


def test_f17_what_was_measured_wins_over_the_configuration_too() -> None:
    static = Template(id="c4", allowed=0, provides={"slots": 4, "mem": 448})
    run = Run(cloud("aws", template(provides={"slots": 4, "mem": 448})), templates=[static])
    run.do(hosts("R1", 1), accept("R1"), came("R1", "h1", ended=True))

    run.do(measured("aws/h1", 440))

    assert run.catalog().templates[0].provides == {"slots": 4, "mem": 440}


def test_f17_a_new_promise_is_believed_until_it_is_measured() -> None:
    run = Run(cloud("aws", template(provides={"slots": 4, "mem": 448})))
    run.do(hosts("R1", 1), accept("R1"), came("R1", "h1", ended=True))
    run.do(measured("aws/h1", 440))

    run.do(DescribeProvider(cloud("aws", template(provides={"slots": 4, "mem": 512}))))

    assert run.catalog().templates[0].provides == {"slots": 4, "mem": 512}
