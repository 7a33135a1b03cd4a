"""Budgets of projects: who pays for a host, and that one project's budget does not hold another's demand."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.policy.makers import (
    asks,
    at,
    carried_out,
    demand,
    grant,
    holds,
    hosts,
    instance,
    minutes,
    of_kind,
    provider,
    request,
    resource,
    round_of,
    template,
    units,
)
from xce.domain.formats.policy import (
    AskedEntry,
    AskRate,
    Budget,
    Decision,
    DecisionKind,
    PolicyInput,
    PolicySettings,
    StandingMinimum,
)
from xce.domain.policy import facts
from xce.domain.policy.decide import decide

CHIPS = {"chip1": ("a", "b"), "chip2": ("c",)}


def budget(*projects: str, **bounds: object) -> Budget:
    return Budget.model_validate({"name": "-".join(projects), "projects": projects, **bounds})


def requests_of(inputs: PolicyInput) -> list[Decision]:
    return of_kind(decide(inputs), DecisionKind.REQUEST)


def test_a_full_budget_holds_its_own_project_and_no_other() -> None:
    inputs = round_of(
        provider("aws", template()),
        wants=demand(
            hosts("c4", 4, ("a", 1, 1), ("b", 2, 1), ("c", 3, 1), ("d", 4, 1)), projects=CHIPS
        ),
        instances=[instance("i", "m8", project="chip1"), instance("k", "m8", project="chip2")],
        budgets=[budget("chip1", max_hosts=2)],
    )

    assert [(one.count, one.project, one.jobs) for one in requests_of(inputs)] == [
        (1, "chip1", ("a",)),
        (2, None, ("c", "d")),
    ]
    assert holds(inputs) == [
        "1 of 4 hosts of c4 not asked for project chip1: aws: hosts of budget chip1: 2 of 2 used"
    ]
    assert asks(carried_out(inputs)) == []


def test_without_a_budget_for_it_the_project_of_a_request_is_that_of_all_its_jobs() -> None:
    def of(*jobs: str) -> str | None:
        wants = hosts("c4", len(jobs), *((job, n, 1) for n, job in enumerate(jobs, 1)))
        inputs = round_of(provider("aws", template()), wants=demand(wants, projects=CHIPS))
        return requests_of(inputs)[0].project

    assert [of("a", "b"), of("c"), of("d"), of("a", "c")] == ["chip1", "chip2", "default", None]


def test_a_host_that_jobs_of_two_projects_share_is_paid_by_the_first_of_them() -> None:
    inputs = round_of(
        provider("aws", template()),
        wants=demand(hosts("c4", 1, ("c", 1, 1), ("a", 2, 1)), projects=CHIPS),
        budgets=[budget("chip1", max_hosts=0), budget("chip2", max_hosts=1)],
    )

    assert [(one.project, one.jobs) for one in requests_of(inputs)] == [("chip2", ("c", "a"))]


def test_costs_and_rates_of_a_project_count_what_was_asked_for_it() -> None:
    inputs = round_of(
        provider("aws", template(price="1.00")),
        provider("pool", resources=[resource(price="1.00")]),
        wants=demand(hosts("c4", 3, ("a", 1, 3)), units("lic", 3, ("c", 2, 3)), projects=CHIPS),
        requests=[request("R1", "m8", 2, price="1.00", project="chip2", asked_at=at(-2))],
        grants=[grant(amount=2, price="1.00", project="chip2")],
        budgets=[
            budget("chip1", max_asked=AskRate(hosts=4, within=minutes(10))),
            budget("chip2", max_cost_per_hour=Decimal(6)),
        ],
    )
    asked = AskedEntry(provider="aws", template="m8", hosts=2, asked_at=at(-3), project="chip1")

    assert asks(inputs) == [("aws", "c4", 3)]
    assert "budget chip2: 6.00 of 6.00 per hour used" in holds(inputs)[0]
    assert asks(inputs.model_copy(update={"asked": (asked,)})) == []


def test_a_standing_minimum_is_for_no_project() -> None:
    inputs = round_of(
        provider("aws", template()),
        budgets=[budget("default", max_hosts=0)],
        settings=PolicySettings(standing=(StandingMinimum(template="c4", hosts=2),)),
    )

    assert [(one.count, one.project) for one in requests_of(inputs)] == [(2, None)]


@given(
    st.lists(st.sampled_from(["chip1", "chip2", "default"]), min_size=1, max_size=12),
    st.integers(1, 3),
    st.integers(1, 3),
    st.dictionaries(st.sampled_from(["chip1", "chip2", "default"]), st.integers(0, 5)),
    st.lists(st.sampled_from(["chip1", "chip2", None]), max_size=4),
)
def test_no_project_passes_its_budget_and_no_other_is_held_by_it(
    jobs: list[str], minimum: int, step: int, limits: dict[str, int], there: list[str | None]
) -> None:
    projects = {
        project: tuple(str(n) for n, of in enumerate(jobs) if of == project)
        for project in ("chip1", "chip2")
    }
    inputs = round_of(
        provider("aws", template(), minimum=minimum, step=step),
        wants=demand(
            hosts("c4", len(jobs), *((str(n), n, 1) for n in range(len(jobs)))), projects=projects
        ),
        instances=[instance(f"i{n}", project=project) for n, project in enumerate(there)],
        budgets=[budget(project, max_hosts=most) for project, most in limits.items()],
    )

    after = carried_out(inputs).inventory
    served = {job for one in requests_of(inputs) for job in one.jobs}
    for project, most in limits.items():
        before = there.count(project)
        asked = sum(facts.open_amount(one) for one in after.requests if one.project == project)
        assert before + asked <= max(most, before)
    for number, project in enumerate(jobs):
        if project not in limits:
            assert str(number) in served
    assert asks(carried_out(inputs)) == []
