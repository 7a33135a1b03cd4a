"""What a budget covers is found by its projects: all of it, once, and without a look at what is of others."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xce.domain.formats.inventory import InstanceEntry, Inventory
from xce.domain.formats.policy import Budget, PolicyInput
from xce.domain.policy.bounds import budget_uses
from xce.domain.policy.by_project import ByProject, Place
from xce.domain.provisioning.instance import InstanceState

NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)
NAMES = st.sampled_from(["a", "b", "c"])
PLACES: st.SearchStrategy[list[Place]] = st.lists(
    st.tuples(NAMES, st.none() | NAMES, st.none() | NAMES), max_size=12
)


@st.composite
def budgets(draw: st.DrawFn) -> Budget:
    return Budget(
        name="x",
        provider=draw(st.none() | NAMES),
        templates=tuple(draw(st.lists(NAMES, max_size=2))),
        projects=tuple(draw(st.lists(NAMES, max_size=3))),
    )


@given(PLACES, budgets())
def test_it_is_what_a_look_at_everything_finds(places: list[Place], budget: Budget) -> None:
    things = list(enumerate(places))

    found = ByProject(things, lambda thing: thing[1]).covered(budget)

    assert sorted(number for number, _ in found) == [
        number for number, place in things if budget.covers(*place)
    ]


def test_budgets_of_many_projects_do_not_each_look_at_all_hosts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = 0
    covers: Callable[..., bool] = Budget.covers

    def counted(self: Budget, provider: str, template: str | None, project: str | None) -> bool:
        nonlocal looks
        looks += 1
        return covers(self, provider, template, project)

    monkeypatch.setattr(Budget, "covers", counted)
    # Given fifty projects, each with a budget and four hosts.
    inputs = PolicyInput(
        now=NOW,
        budgets=tuple(
            Budget.model_validate(
                {"name": f"b{n}", "projects": [f"p{n}"], "max_hosts": 9, "max_cost_per_day": "5", "max_cost_per_hour": "5"}
            )
            for n in range(50)
        ),
        inventory=Inventory(
            instances=tuple(
                InstanceEntry(
                    id=f"cloud/{n}", provider="cloud", template="t", state=InstanceState.JOINED,
                    granted_at=NOW, project=f"p{n % 50}",
                )
                for n in range(200)
            )
        ),
    )  # fmt: skip

    uses = budget_uses(inputs)

    assert [use.used for use in uses if use.bound == "max_hosts"] == [4] * 50
    assert looks < 1_000, "of 50 times 200 for each kind of bound"
