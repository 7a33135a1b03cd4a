"""Templates that draw on one capacity leave less room for one another: what is demanded can be had, and the reason names what ran out."""

from typing import Any

import pytest

from tests.reference.cases import host, job, snapshot, template
from tests.reference.comparison import differences
from xce.domain.demand.rooms import Rooms
from xce.domain.demand.supply import Supply
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import Snapshot
from xce.domain.scheduling.compile import Compiled
from xce.domain.scheduling.session import run_session

WHOLE = "rusage[slots=4]"


def of(*names: str | None, most: int = 99) -> list[dict[str, Any]]:
    """Return draws on these capacities, in this order."""
    return [{"capacity": name, "most": most} for name in names]


def catalog(*templates: dict[str, Any], in_flight: int = 0, **rooms: int) -> dict[str, Any]:
    return {
        "templates": list(templates),
        "capacities": [{"name": name, "room": room} for name, room in rooms.items()],
        "in_flight": {"hosts": [{"id": f"f{n}", "template": "a"} for n in range(in_flight)]},
    }


def jobs(many: int, resreq: str = WHOLE, first: int = 1, **more: Any) -> list[dict[str, Any]]:
    return [job(f"j{n}", resreq=resreq, **more) for n in range(first, first + many)]


def run(given: Snapshot) -> SessionResult:
    result = run_session(given)
    assert differences(given, result) == []
    return result


def why(result: SessionResult) -> dict[str, str]:
    demand = result.demand
    return {each.job: each.why for each in (*demand.impossible, *demand.not_counted)}


def rooms_of(given: Snapshot) -> tuple[Rooms, dict[str, Any]]:
    supply = Supply(Compiled(given))
    return supply.rooms, {offer.template.id: offer for offer in supply.offers}


A = template("a", slots=4, price_per_hour="0.10", draws=of("aws"))
B = template("b", slots=4, fpga=1, price_per_hour="0.20", draws=of("aws"))
OTHER = template("z", slots=4, price_per_hour="0.90", draws=of("gcp"))
USED_UP = "no more room on any template that fits: capacity of aws is used up"


def test_what_one_capacity_has_no_room_for_is_demanded_of_another_at_once() -> None:
    given = snapshot(pending=jobs(5), catalog=catalog(A, B, OTHER, aws=3, gcp=9))

    assert dict(run(given).demand.order) == {"a": 3, "z": 2}


def test_hosts_of_one_template_take_the_room_of_another_and_the_reason_names_the_capacity() -> None:
    wanted = [*jobs(2), *jobs(2, "rusage[slots=4,fpga=1]", first=3)]
    given = snapshot(pending=wanted, catalog=catalog(A, B, aws=3))

    result = run(given)

    assert dict(result.demand.order) == {"a": 2, "b": 1}
    assert why(result) == {"j4": USED_UP}


def test_a_template_has_its_own_maximum_below_the_capacity() -> None:
    scarce = template("a", slots=4, price_per_hour="0.10", draws=of("aws", most=1))
    given = snapshot(pending=jobs(4), catalog=catalog(scarce, B, aws=3))

    result = run(given)

    assert dict(result.demand.order) == {"a": 1, "b": 2}
    assert why(result) == {"j4": USED_UP}


def test_what_is_in_flight_is_used_before_any_room_is() -> None:
    given = snapshot(pending=jobs(3), catalog=catalog(A, B, in_flight=2, aws=1))

    assert dict(run(given).demand.order) == {"a": 1}


def test_a_gang_counts_only_whole_and_leaves_its_room_to_others() -> None:
    gang = job("gang", tasks=(4, 4), resreq=f"{WHOLE} span[hosts=-1]", priority=9)
    given = snapshot(pending=[gang, *jobs(2)], catalog=catalog(A, B, aws=3))

    result = run(given)

    assert dict(result.demand.order) == {"a": 2}
    assert why(result) == {
        "gang": "no more room on any template that fits: capacity of aws leaves room for 1"
    }


def test_a_gang_goes_on_a_mix_of_templates_that_share_a_capacity() -> None:
    # Given that small hosts are preferred, and three of them are too few,
    small = template("s", slots=2, priority=5, draws=of("aws"))
    large = template("l", slots=4, draws=of("aws", most=2))
    gang = job("gang", tasks=(9, 9))
    given = snapshot(pending=[gang], catalog=catalog(small, large, aws=3))

    # then the room is for those that hold more.
    assert dict(run(given).demand.order) == {"l": 2, "s": 1}


def test_a_compound_goes_on_a_mix_within_the_capacity() -> None:
    parts = job("c", tasks=(3, 3), resreq="1*{rusage[slots=4,fpga=1]} + 2*{rusage[slots=4]}")
    enough = snapshot(pending=[parts], catalog=catalog(A, B, aws=3))
    too_few = snapshot(pending=[parts, *jobs(1)], catalog=catalog(A, B, aws=2))

    assert sum(dict(run(enough).demand.order).values()) == 3
    assert dict(run(too_few).demand.order) == {"a": 1}


LARGE = template("l", slots=16, price_per_hour="0.50", draws=of("aws"))
SMALL = template("s", slots=4, price_per_hour="0.10", draws=of("aws"))


@pytest.mark.parametrize(
    ("room", "order"),
    [(9, {"s": 5}), (4, {"l": 1, "s": 1}), (2, {"l": 1, "s": 1}), (1, {"l": 1})],
)
def test_where_hosts_are_scarcer_than_money_those_are_taken_that_hold_more(
    room: int, order: dict[str, int]
) -> None:
    # Given small hosts that are the better buy,
    given = snapshot(pending=jobs(5), catalog=catalog(LARGE, SMALL, aws=room))

    # then they are taken only where there is room for enough of them.
    assert dict(run(given).demand.order) == order


def test_a_cheaper_set_of_hosts_is_not_taken_where_the_capacity_has_no_room_for_it() -> None:
    wanted = [job("1", resreq="rusage[slots=8]"), *jobs(2)]

    def chosen(room: int) -> dict[str, int]:
        dear = template("l", slots=16, price_per_hour="0.90", draws=of("aws"))
        middle = template("m", slots=8, price_per_hour="0.60", draws=of("aws"))
        given = snapshot(pending=wanted, catalog=catalog(dear, middle, SMALL, aws=room))
        return dict(run(given).demand.order)

    assert chosen(3) == {"m": 1, "s": 2}
    assert chosen(2) == {"l": 1}


def test_hosts_come_from_the_first_draw_with_room() -> None:
    both = template("both", slots=4, priority=1, draws=of("aws", "gcp"))
    only = template("only", slots=4, fpga=1, draws=of("aws"))
    wanted = [*jobs(2), *jobs(2, "rusage[slots=4,fpga=1]", first=3)]

    result = run(snapshot(pending=wanted, catalog=catalog(both, only, aws=3, gcp=5)))

    # As the policy will ask for them: both hosts of aws, whatever gcp has.
    assert dict(result.demand.order) == {"both": 2, "only": 1}
    assert why(result) == {"j4": USED_UP}


@pytest.mark.parametrize("order", ["skip", "strict"])
def test_where_nothing_can_come_the_reason_names_the_capacity(order: str) -> None:
    given = snapshot(
        hosts=[host("h1", slots=4)],
        running=[{"id": "r", "hosts": [{"name": "h1", "uses": {"slots": 4}}]}],
        pending=jobs(1),
        catalog=catalog(A, B, aws=0),
        settings={"order": order},
    )

    result = run(given)

    assert result.demand.order == ()
    assert why(result) == {"j1": USED_UP}


def test_a_capacity_that_is_not_drawn_on_bounds_nothing() -> None:
    free = template("free", slots=4)

    assert dict(run(snapshot(pending=jobs(3), catalog=catalog(free, aws=0))).demand.order) == {
        "free": 3
    }


def test_rooms_are_counted_for_all_who_share_and_a_copy_takes_nothing_back() -> None:
    spare = template("spare", slots=4, draws=of("aws", None, most=2))
    rooms, offers = rooms_of(snapshot(catalog=catalog(A, spare, aws=3)))
    a, mixed = offers["a"], offers["spare"]
    before = rooms.left[:]

    tried = rooms.copy()
    tried.take(a, 3)

    assert (tried.left[a.number], tried.left[mixed.number]) == (0, 2)
    assert rooms.left == before
    assert rooms.hold([mixed, mixed, a, mixed, mixed])
    assert not rooms.hold([mixed, mixed, a, a])
    assert not rooms.hold([mixed] * 5)
    assert rooms.are_shared


def test_a_capacity_that_is_never_short_is_not_shared() -> None:
    def of_two(room: int) -> bool:
        ours = [template(name, slots=4, draws=of("aws", most=2)) for name in ("a", "b")]
        return rooms_of(snapshot(catalog=catalog(*ours, aws=room)))[0].are_shared

    assert of_two(3)
    assert not of_two(4)
