"""Many jobs that could be served in part only cost what they are, not their square, and one hold does not list them all."""

import pytest

from tests.unit.policy.makers import demand, hosts, provider, round_of, template
from xce.domain.formats.policy import DecisionKind
from xce.domain.policy.decide import decide
from xce.domain.policy.offers import Offer


def test_each_lot_is_taken_once_and_once_more_for_each_job_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    number = 200
    taken: list[int] = []
    take = Offer.take

    def counted(offer: Offer, amount: int, jobs: tuple[str, ...]) -> int:
        taken.append(amount)
        return take(offer, amount, jobs)

    monkeypatch.setattr(Offer, "take", counted)
    jobs = [(f"j{place}", place, 3) for place in range(1, number + 1)]
    inputs = round_of(
        provider("aws", template("c4", max_number=4)),
        wants=demand(hosts("c4", 3 * number, *jobs)),
    )

    request, hold = decide(inputs).decisions

    assert (request.kind, request.count, request.jobs) == (DecisionKind.REQUEST, 3, ("j1",))
    assert (hold.kind, hold.count) == (DecisionKind.HOLD, 3 * number - 3)
    assert len(taken) <= 2 * number
    assert "so for 194 more jobs" in hold.reason
    assert len(hold.reason) < 1000


def test_what_a_job_given_up_would_have_taken_is_left_to_smaller_ones_behind_it() -> None:
    jobs = [("big", 1, 5), ("small", 2, 2), ("big2", 3, 3), ("small2", 4, 2)]
    inputs = round_of(
        provider("aws", template("c4", max_number=4)),
        wants=demand(hosts("c4", 12, *jobs)),
    )

    request, hold = decide(inputs).decisions

    assert (request.count, request.jobs) == (4, ("small", "small2"))
    assert hold.count == 8
    assert "job big is served whole or not at all, and only 4 of 5 c4 could be asked" in hold.reason
