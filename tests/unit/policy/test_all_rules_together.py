"""Rounds with every rule at once: projects, days and months, spot shares, spare hosts, mass losses beside the older ones."""

from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.policy.makers import NOW, asks, carried_out, minutes
from tests.unit.policy.test_properties import PROVIDERS, TEMPLATES, rounds
from xce.domain.formats.periods import Period, Spent, SpentLine
from xce.domain.formats.policy import Budget, LossEntry, PolicyInput, SpareHosts, SpotShare
from xce.domain.formats.provider import Billing, Kind
from xce.domain.policy import facts
from xce.domain.policy.billing import due
from xce.domain.policy.decide import decide

PROJECTS = ("chip1", "chip2", None)
HOURS_LEFT = 14


@st.composite
def full_rounds(draw: st.DrawFn) -> PolicyInput:
    inputs = draw(rounds())
    inventory = inputs.inventory
    project = st.sampled_from(PROJECTS)
    jobs = sorted({job.job for host in inputs.demand.hosts for job in host.jobs})
    whose = {job: draw(project) for job in jobs}
    unused = [one.instance for one in inputs.idle.hosts]
    return inputs.model_copy(
        update={
            "demand": inputs.demand.model_copy(
                update={
                    "projects": {
                        name: tuple(job for job in jobs if whose[job] == name)
                        for name in ("chip1", "chip2")
                    }
                }
            ),
            "idle": inputs.idle.model_copy(
                update={"unused": draw(st.sampled_from([None, tuple(unused)]))}
            ),
            "inventory": inventory.model_copy(
                update={
                    part: tuple(
                        entry.model_copy(update={"project": draw(project)})
                        for entry in getattr(inventory, part)
                    )
                    for part in ("requests", "instances", "grants")
                }
            ),
            "budgets": (
                *inputs.budgets,
                *(
                    Budget(
                        name=f"p{n}",
                        projects=draw(st.sampled_from([(), ("chip1",), ("chip1", "chip2")])),
                        max_hosts=draw(st.none() | st.integers(0, 20)),
                        max_cost_per_day=draw(st.none() | st.integers(0, 200).map(Decimal)),
                        committed_for=draw(st.none() | st.integers(1, 900).map(minutes)),
                    )
                    for n in range(draw(st.integers(0, 2)))
                ),
            ),
            "spent": (
                Spent(
                    period=Period.DAY,
                    since=Period.DAY.start(NOW, "UTC"),
                    lines=tuple(
                        SpentLine(
                            provider=draw(st.sampled_from(PROVIDERS)),
                            kind=Kind.HOST,
                            item=draw(st.sampled_from(TEMPLATES)),
                            project=draw(project),
                            cost=Decimal(draw(st.integers(0, 50))),
                        )
                        for _ in range(draw(st.integers(0, 3)))
                    ),
                ),
            ),
            "losses": tuple(
                LossEntry(
                    provider=name,
                    hosts=draw(st.integers(1, 20)),
                    last_at=NOW - minutes(draw(st.integers(0, 40))),
                    joined_since=draw(st.integers(0, 5)),
                )
                for name in sorted(draw(st.sets(st.sampled_from(PROVIDERS), max_size=2)))
            ),
            "settings": inputs.settings.model_copy(
                update={
                    "spot": draw(
                        st.sampled_from(
                            [(), (SpotShare(template="c4", on_demand="m8", share=Decimal("0.5")),)]
                        )
                    ),
                    "spare": draw(st.sampled_from([(), (SpareHosts(template="m8", hosts=2),)])),
                }
            ),
        }
    )


@given(full_rounds())
def test_no_budget_is_passed_by_what_is_asked(inputs: PolicyInput) -> None:
    after = carried_out(inputs)
    new = after.inventory.requests[len(inputs.inventory.requests) :]
    billing = {one.name: one.billing for one in inputs.providers}

    for budget in inputs.budgets:
        mine = [one for one in new if budget.covers(one.provider, one.template, one.project)]
        if budget.max_hosts is not None and any(one.template for one in mine):
            there = sum(
                budget.covers(one.provider, one.template, one.project) and facts.exists(one)
                for one in inputs.inventory.instances
            ) + sum(
                facts.open_amount(one)
                for one in after.inventory.requests
                if one.template and budget.covers(one.provider, one.template, one.project)
            )
            assert there <= budget.max_hosts
        if budget.max_cost_per_day is not None and mine:
            spent = sum(
                line.cost
                for line in inputs.spent[0].lines
                if budget.covers(line.provider, line.item, line.project)
            )
            kept = min(timedelta(hours=HOURS_LEFT), budget.committed_for or timedelta(days=1))
            coming = Fraction(0)
            for one in mine:
                assert one.price_per_hour is not None
                paid = due(NOW, None, billing.get(one.provider, Billing()), NOW + kept)
                coming += (
                    Fraction(one.price_per_hour) * one.amount * int(paid.total_seconds()) / 3600
                )
            assert Fraction(spent) + coming <= Fraction(budget.max_cost_per_day) or not coming


@given(full_rounds())
def test_carried_out_and_decided_again_nothing_is_asked(inputs: PolicyInput) -> None:
    assert asks(carried_out(inputs)) == []


@given(full_rounds(), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_the_order_of_the_lists_does_not_matter(inputs: PolicyInput, random: Random) -> None:
    inventory = inputs.inventory
    mixed = inputs.model_copy(
        update={
            **{
                part: tuple(random.sample(getattr(inputs, part), len(getattr(inputs, part))))
                for part in ("budgets", "losses", "providers")
            },
            "inventory": inventory.model_copy(
                update={
                    part: tuple(
                        random.sample(getattr(inventory, part), len(getattr(inventory, part)))
                    )
                    for part in ("requests", "instances", "grants")
                }
            ),
        }
    )

    assert decide(mixed).to_json() == decide(inputs).to_json()
