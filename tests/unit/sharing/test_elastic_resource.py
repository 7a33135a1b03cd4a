"""ElasticResource: given earlier steps, when a command, then new events or a refusal."""

from collections.abc import Callable

import pytest

from tests.unit.aggregates import HOUR, STAMP, then
from xce.domain.errors import RejectedError
from xce.domain.sharing.elastic_resource import ElasticResource

Step = Callable[[ElasticResource], None]


def declared(owned: int = 14, max_borrow: int = 10) -> ElasticResource:
    return ElasticResource.declare(
        resource="lic_spice",
        owned=owned,
        provider="pool",
        max_borrow=max_borrow,
        step=2,
        idle_return_after=HOUR,
        min_hold=HOUR,
        **STAMP,
    )


def given(*steps: Step) -> ElasticResource:
    resource = declared()
    for step in steps:
        step(resource)
    resource.collect_events()
    return resource


def borrow(grant: str, amount: int) -> Step:
    return lambda resource: resource.borrow(grant_id=grant, amount=amount, **STAMP)


def give_back(return_id: str, grant: str, amount: int, occupied: int = 0) -> Step:
    return lambda resource: resource.give_back(
        return_id=return_id, grant_id=grant, amount=amount, occupied=occupied, **STAMP
    )


def put_back(return_id: str) -> Step:
    return lambda resource: resource.put_back(return_id=return_id, why="hold", **STAMP)


def lose(grant: str) -> Step:
    return lambda resource: resource.lose_grant(grant_id=grant, **STAMP)


def test_the_total_is_what_is_owned_and_what_is_borrowed() -> None:
    resource = given()

    borrow("G1", 6)(resource)

    assert then(resource) == [("Borrowed", {"grant_id": "G1", "amount": 6})]
    assert (resource.owned, resource.borrowed, resource.total) == (14, 6, 20)


def test_an_amount_leaves_the_total_before_the_provider_is_told() -> None:
    resource = given(borrow("G1", 6))

    give_back("X1", "G1", 4, occupied=16)(resource)

    assert then(resource) == [
        ("GivenBack", {"return_id": "X1", "grant_id": "G1", "amount": 4, "occupied": 16})
    ]
    assert resource.total == 16


def test_the_total_never_falls_below_what_is_occupied() -> None:
    resource = given(borrow("G1", 6))

    with pytest.raises(RejectedError, match="17 of 20 are occupied; 4 cannot go back"):
        give_back("X1", "G1", 4, occupied=17)(resource)

    assert then(resource) == []


def test_a_refused_return_is_in_the_total_again() -> None:
    resource = given(borrow("G1", 6), give_back("X1", "G1", 4))

    put_back("X1")(resource)
    put_back("X1")(resource)

    assert then(resource) == [
        ("PutBack", {"return_id": "X1", "grant_id": "G1", "amount": 4, "why": "hold"})
    ]
    assert resource.total == 20


def test_each_grant_and_return_takes_effect_once() -> None:
    resource = given(borrow("G1", 6), give_back("X1", "G1", 4))

    borrow("G1", 6)(resource)
    give_back("X1", "G1", 4)(resource)

    assert then(resource) == []


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (borrow("G1", 5), "G1 is of 6, found 5"),
        (borrow("G2", 0), "at least 1"),
        (give_back("X1", "G1", 3), "X1 is of 4 of grant G1, found 3 of G1"),
        (give_back("X2", "G1", 3), "has 2 in the total; 3 of it cannot go back"),
        (give_back("X2", "G9", 1), "G9 has 0 in the total"),
        (put_back("X9"), "has no return X9"),
        (lose("G9"), "has no grant G9"),
    ],
)
def test_what_does_not_add_up_is_refused(step: Step, message: str) -> None:
    resource = given(borrow("G1", 6), give_back("X1", "G1", 4))

    with pytest.raises(RejectedError, match=message):
        step(resource)

    assert then(resource) == []


def test_a_late_grant_is_taken_whatever_the_settings_allow() -> None:
    resource = given(borrow("G1", 10))

    borrow("G2", 3)(resource)

    assert [name for name, _ in then(resource)] == ["Borrowed"]
    assert resource.borrowed == 13


def test_a_lost_grant_leaves_the_total_and_does_not_come_back() -> None:
    resource = given(borrow("G1", 6), give_back("X1", "G1", 4))

    lose("G1")(resource)
    lose("G1")(resource)
    put_back("X1")(resource)

    assert then(resource) == [("GrantLost", {"grant_id": "G1", "amount": 2})]
    assert resource.total == 14


def test_owned_may_fall_below_what_is_in_use() -> None:
    resource = given()

    resource.set_owned(owned=0, **STAMP)
    resource.set_owned(owned=0, **STAMP)

    assert then(resource) == [("OwnedSet", {"owned": 0})]


def test_other_settings_leave_what_is_owned_and_borrowed() -> None:
    resource = given(borrow("G1", 6))

    for _ in range(2):
        resource.change_settings(
            provider=None, max_borrow=0, step=1, idle_return_after=HOUR, min_hold=HOUR, **STAMP
        )

    assert [name for name, _ in then(resource)] == ["SettingsChanged"]
    assert (resource.total, resource.max_borrow) == (20, 0)


@pytest.mark.parametrize(("owned", "max_borrow"), [(-1, 0), (0, -1)])
def test_numbers_below_zero_are_refused(owned: int, max_borrow: int) -> None:
    with pytest.raises(RejectedError, match="wanted owned >= 0"):
        declared(owned, max_borrow)
    with pytest.raises(RejectedError, match="wanted owned >= 0"):
        declared().set_owned(owned=-1, **STAMP)
