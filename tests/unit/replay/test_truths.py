"""What must hold in every simulated run: each promise, broken once."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.aggregates import AT
from tests.unit.invariants.forger import Forger
from xce.adapters.store.open import MEMORY, open_log
from xce.domain.events.base import DomainEvent
from xce.domain.events.digest import GENESIS
from xce.domain.events.recorded import Recorded
from xce.domain.formats.policy import Decision, DecisionKind, PolicyInput
from xce.domain.formats.provider import Granularity, Kind, ProviderDescription, TemplateOffer
from xce.domain.formats.scenario import Scenario
from xce.domain.formats.session_result import CountDemand, Demand, HostDemand
from xce.domain.policy.bounds import CountBound
from xce.domain.policy.granularity import Sizes
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.request import Request
from xce.projections.all import Projections
from xce.projections.invariants.report import Invariant
from xce.replay.scenario.run import Runner
from xce.replay.scenario.truths import Asked, Busy, Rebuilt


def see(invariant: Invariant, events: Sequence[DomainEvent]) -> None:
    for position, event in enumerate(events, start=1):
        invariant.see(Recorded(position, event, GENESIS))


def messages(invariant: Invariant) -> list[str]:
    return [one.message for one in invariant.end().findings]


# ---------------------------------------------------------------------- 4
@pytest.mark.parametrize(
    ("busy", "found"), [(True, ["I1 goes back with a job on it"]), (False, [])]
)
def test_an_instance_with_a_job_on_it_does_not_go_back(busy: bool, found: list[str]) -> None:
    invariant = Busy(lambda instance: busy and instance == "I1")

    see(
        invariant,
        Forger()
        .host("I1")
        .add(Instance.ReturnIntended, "instance:I1", return_id="X1", why="")
        .events,
    )

    assert messages(invariant) == found


# ---------------------------------------------------------------------- 8
def test_what_is_in_memory_is_what_the_log_says() -> None:
    events = Forger().describe().lease().intend("R1").host("I1").events
    right, wrong = Projections(), Projections()
    right.apply([Recorded(n, event, GENESIS) for n, event in enumerate(events, 1)])
    forgotten = [*events[:-1], events[1]]
    wrong.apply([Recorded(n, event, GENESIS) for n, event in enumerate(forgotten, 1)])

    for served, found in ((right, 0), (wrong, 1)):
        invariant = Rebuilt()
        see(invariant, events)
        invariant.compare(served)
        assert len(messages(invariant)) == found


# ---------------------------------------------------------------------- 9
def inputs(hosts: int = 0, units: int = 0, *, step: int = 1, **parts: Any) -> PolicyInput:
    provider = ProviderDescription(
        name="aws",
        templates=(TemplateOffer(template_id="c4"),),
        granularity=Granularity(minimum=1, step=step),
    )
    demand = Demand(
        hosts=(HostDemand(template="c4@0.5", count=hosts, jobs=()),) if hosts else (),
        order=(("c4@0.5", hosts),) if hosts else (),
        countable=(CountDemand(name="lic", amount=units, wanted=units, jobs=()),) if units else (),
    )
    return PolicyInput(now=AT, position=0, demand=demand, providers=(provider,), **parts)


def asks(count: int, template: str | None = "c4", resource: str | None = None) -> tuple[Decision]:
    host = template is not None
    return (
        Decision(
            kind=DecisionKind.REQUEST,
            provider="aws",
            template=template,
            resource=resource,
            count=count if host else None,
            amount=None if host else count,
            reason="",
        ),
    )


def after(events: Sequence[DomainEvent], given: PolicyInput, decided: tuple[Decision]) -> list[str]:
    invariant = Asked()
    see(invariant, events)
    invariant.decided(given, decided)
    return messages(invariant)


def test_no_more_is_asked_than_the_demand() -> None:
    assert after((), inputs(2), asks(2)) == []
    assert after((), inputs(2), asks(3)) == [
        "3 of c4 are asked on a demand of 2 with 0 asked since"
    ]
    assert after((), inputs(2, step=2), asks(3)) == []
    assert len(after((), inputs(units=1), asks(2, None, "lic"))) == 1


def test_what_was_asked_since_and_is_coming_or_there_counts() -> None:
    coming = Forger().intend("R1", 2).events
    there = Forger().intend("R1", 2).host("I1").events
    missed = Forger().intend("R1", 2).host("I1").add(Instance.JoinMissed, "instance:I1", why="")
    short = Forger().intend("R1", 2).add(Request.FellShort, "request:R1", amount=1, why="")

    for events in (coming, there):
        assert after(events, inputs(2), asks(1)) == [
            "1 of c4 are asked on a demand of 2 with 2 asked since"
        ]
    for forger in (missed, short):
        assert after(forger.events, inputs(2), asks(1)) == []
    later = inputs(2).model_copy(update={"position": 1})
    assert after(coming, later, asks(2)) == []


def test_units_that_were_asked_since_count() -> None:
    asked = Forger().intend("R1", 2, Kind.COUNTABLE, "lic").declare().units("G1", 1).events

    assert len(after(asked, inputs(units=2), asks(1, None, "lic"))) == 1
    assert after(asked, inputs(units=3), asks(1, None, "lic")) == []


# ------------------------------------------------------------------ a whole run
def scenario(**policy: object) -> Scenario:
    offers = [{"template_id": "c4", "price_per_hour": "0.20", "provides": {"slots": 1}}]
    return Scenario.model_validate(
        {
            "name": "small",
            "cluster": {},
            "providers": [{"name": "cloud", "templates": offers}],
            "workload": {"jobs": [{"id": "job[1-6]", "run_time": "10min"}]},
            "session": {"idle_host_after": "5min"},
            "policy": policy,
        }
    )


def broken(made: Scenario) -> set[str]:
    run = Runner(made, open_log(MEMORY)).run()
    return {one.expectation.partition(":")[0] for one in run.verdicts if not one.passed}


def test_a_run_says_of_each_promise_whether_it_held() -> None:
    run = Runner(scenario(), open_log(MEMORY)).run()

    named = [one.expectation.partition(":")[0] for one in run.verdicts]
    assert named == [*(f"invariant-{number}" for number in range(1, 10)), "truth"]
    assert all(one.passed for one in run.verdicts)


def test_a_run_that_asks_for_more_than_its_demand_breaks_a_promise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = Sizes.up

    def many_more(sizes: Sizes, amount: int) -> int:
        return right(sizes, amount) + 7

    monkeypatch.setattr(Sizes, "up", many_more)

    assert broken(scenario()) == {"invariant-9"}


def test_a_run_that_passes_a_budget_breaks_a_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    bounded = scenario(budgets=[{"name": "all", "max_hosts": 3}])
    assert broken(bounded) == set()

    def endless(self: CountBound, price: object) -> int:
        return 9

    monkeypatch.setattr(CountBound, "room", endless)

    assert broken(bounded) == {"invariant-5"}
