"""When a line of the catalog has no room for a while: pauses, and what failed of late."""

from datetime import datetime

import pytest

from tests.unit.projections.run import (
    Run,
    at,
    cloud,
    hosts,
    template,
)
from xce.domain.engine.commands import (
    PauseProvider,
)
from xce.domain.formats.provider import TemplateOffer
from xce.projections.room import UNLIMITED


def paused_until(run: Run, now: datetime) -> tuple[int, datetime | None, str | None]:
    (line,) = run.projections.catalog.view(now).templates
    return line.allowed, line.paused_until, line.paused_why


def test_a_line_is_paused_while_all_its_providers_are() -> None:
    run = Run(cloud("aws", template(max_number=6)), cloud("gcp", template(max_number=2)))

    run.do(PauseProvider("aws", "c4", at(10), "no capacity"))
    assert paused_until(run, at(1)) == (2, None, None)

    run.do(PauseProvider("gcp", None, at(20), "throttled"))
    assert paused_until(run, at(1)) == (8, at(10), "no capacity")
    assert paused_until(run, at(10)) == (6, None, None)
    assert paused_until(run, at(20)) == (8, None, None)
    assert paused_until(run, at(1)) == (8, at(10), "no capacity"), (
        "the view follows the time asked for"
    )


def test_of_two_pauses_of_one_offer_the_longer_counts_and_a_resumed_one_is_over() -> None:
    run = Run(cloud("aws", template(max_number=6)))
    run.do(PauseProvider("aws", None, at(5), "throttled"))
    run.do(PauseProvider("aws", "c4", at(10), "no capacity"))
    assert paused_until(run, at(1)) == (6, at(10), "no capacity")
    assert [pause.item for pause in run.projections.catalog.pauses(at(1))] == [None, "c4"]
    assert [pause.item for pause in run.projections.catalog.pauses(at(7))] == ["c4"]

    provider = run.provider("aws")
    provider.resume(item="c4", at=at(1), by="admin")
    run.save(provider)

    assert paused_until(run, at(1)) == (6, at(5), "throttled")


def lines_at(run: Run, now: datetime) -> list[tuple[str, int]]:
    return [(line.id, line.allowed) for line in run.projections.catalog.view(now).templates]


def priorities(run: Run, now: datetime) -> list[tuple[str, int]]:
    return [(line.id, line.priority) for line in run.projections.catalog.view(now).templates]


def test_f06_what_failed_has_no_room_while_another_that_can_do_the_same_was_not_tried() -> None:
    """As long again as its pause, with the reason; all that failed are tried again once each had its turn."""
    offers = [template(name, priority=p) for name, p in (("a1", 50), ("a2", 50), ("b", 40))]
    run = Run(cloud("aws", *offers))
    run.do(PauseProvider("aws", "a1", at(10), "no capacity"))
    run.do(PauseProvider("aws", "a2", at(15), "no capacity"), at=at(5))

    assert lines_at(run, at(10)) == [("a1", 0), ("a2", UNLIMITED), ("b", UNLIMITED)]
    a1, a2, _ = run.projections.catalog.view(at(10)).templates
    assert a2.paused_until == at(15)
    assert (a1.paused_until, a1.paused_why) == (
        at(20),
        "it had its turn (no capacity); first comes b",
    )
    assert lines_at(run, at(15)) == [("a1", 0), ("a2", 0), ("b", UNLIMITED)]
    run.do(PauseProvider("aws", "b", at(20), "no capacity"), at=at(16))
    assert [count for _, count in lines_at(run, at(16))] == [UNLIMITED] * 3
    assert lines_at(run, at(26)) == [("a1", UNLIMITED), ("a2", UNLIMITED), ("b", UNLIMITED)]


def test_f06_an_untried_line_without_room_is_nobodys_turn() -> None:
    run = Run(cloud("aws", template("a"), template("b", max_number=2)))
    run.do(PauseProvider("aws", "a", at(10), "no capacity"))

    assert lines_at(run, at(10)) == [("a", 0), ("b", 2)]
    run.do(hosts("R1", 2, "b"))
    assert lines_at(run, at(10)) == [("a", UNLIMITED), ("b", 0)]


@pytest.mark.parametrize(
    "other",
    [
        template("b", priority=40, provides={"slots": 4, "mem": 8}),
        template("b", priority=40, provides={"slots": 9, "mem": 9}, attributes={"arch": "arm"}),
        template("b", priority=40, provides={"slots": 9, "mem": 9}, attributes={"gpu": True}),
    ],
    ids=["smaller", "another attribute", "one attribute more"],
)
def test_what_failed_keeps_its_room_and_comes_last_where_work_may_need_just_it(
    other: TemplateOffer,
) -> None:
    """A pause that a person makes is no failure, and one that is ended by hand is forgotten."""
    first = template("a", priority=50, provides={"slots": 4, "mem": 9}, attributes={"arch": "x"})
    run = Run(cloud("aws", first, other))
    run.do(PauseProvider("aws", "a", at(10), "no capacity"))

    assert lines_at(run, at(10)) == [("a", UNLIMITED), ("b", UNLIMITED)]
    assert priorities(run, at(10)) == [("a", 50 - 1_000_000_000), ("b", 40)]
    assert priorities(run, at(20)) == [("a", 50), ("b", 40)]

    provider = run.provider("aws")
    provider.resume(item="a", at=at(1), by="admin")
    run.save(provider)
    assert priorities(run, at(1)) == [("a", 50), ("b", 40)]

    provider = run.provider("aws")
    provider.pause(item="a", until=at(10), why="maintenance", at=at(1), by="admin/ann")
    run.save(provider)
    assert priorities(run, at(10)) == [("a", 50), ("b", 40)]
