"""What is kept of the projections, and that nothing else is taken for it."""

import pytest

from tests.unit.projections.run import Run, cloud, declare, hosts, pool, template
from xce.projections.all import Projections


def kept() -> tuple[int, dict[str, bytes]]:
    run = Run(cloud("aws", template("c4")), pool())
    run.do(declare(), hosts("R1", 2))
    return run.projections.position, run.projections.keep()


def test_what_is_made_when_asked_for_is_not_kept() -> None:
    run = Run(cloud("aws", template("c4")))
    run.do(hosts("R1", 2))
    before = run.projections.keep()

    run.projections.inventory.view()

    assert run.projections.keep() == before
    assert b"_entry" not in before["inventory"]


def test_a_resumed_view_is_made_anew() -> None:
    position, parts = kept()
    projections = Projections.resumed(position, parts)
    projections.inventory.view()
    projections.totals.of("lic")

    for name, projection in projections.each().items():
        projection.resume(Projections().keep()[name])

    assert projections.inventory.view().requests == ()
    assert projections.totals.all() == ()


@pytest.mark.parametrize("name", ["totals", "inventory", "catalog", "spending"])
@pytest.mark.parametrize("wrong", [b"", b"{", b"{}", b"[]", b'{"ended": 1}', b"\xff"])
def test_what_was_not_kept_by_a_projection_is_refused(name: str, wrong: bytes) -> None:
    position, parts = kept()

    with pytest.raises(ValueError, match=r"."):
        Projections.resumed(position, parts | {name: wrong})


def test_a_part_that_is_missing_or_unknown_is_refused() -> None:
    position, parts = kept()
    with pytest.raises(ValueError, match="wanted totals, inventory, catalog, spending"):
        Projections.resumed(position, {})
    with pytest.raises(ValueError, match="found totals"):
        Projections.resumed(position, parts | {"more": b"{}"})
