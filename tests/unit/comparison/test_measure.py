"""What runs are judged by, and which is best."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache

import pytest

from tests.replay.worlds import demo_config
from xce.adapters.comparison.runs import Run, carry_out
from xce.adapters.report.comparison import render_comparison
from xce.domain.formats.comparison import Comparison, Figures, RunOutcome
from xce.domain.formats.policy import Budget
from xce.domain.formats.provider import Billing
from xce.replay.compare.best import best_of
from xce.replay.compare.measure import passed_budgets
from xce.replay.history import GrantUse, History, HostUse
from xce.replay.workloads.eda_day import eda_day

AT = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)


@cache
def outcome() -> RunOutcome:
    config = demo_config()
    return carry_out(Run.of("as it is", "day", (), config, "digest", 482), eda_day(7))


def test_the_figures_are_those_of_the_report() -> None:
    figures, report = outcome().figures, outcome().report

    assert figures.cost == report.cost
    assert figures.cost == (figures.cost_hosts or 0) + (figures.cost_tokens or 0)
    assert figures.jobs == 482
    assert figures.jobs_not_ended == 0
    assert figures.wait_mean == report.waiting.mean
    assert figures.hosts == sum(use.hosts for use in report.templates)
    assert figures.violations == 0


def test_waste_is_what_was_paid_while_no_job_held_it() -> None:
    figures = outcome().figures
    assert figures.cost is not None
    assert figures.waste is not None
    assert figures.obtained_use is not None
    assert figures.borrowed_use is not None

    assert 0 < figures.waste < figures.cost
    assert 0 < figures.obtained_use < 1
    assert 0 < figures.borrowed_use <= 1
    assert figures.waste_share == round(figures.waste / figures.cost, 4)
    # Of all templates and resources together it lies between the worst and the best of them.
    uses = outcome().report.templates
    idle = sum((use.cost or 0) * (1 - (use.utilisation or 0)) for use in uses)
    assert figures.waste > Decimal("0.5") * idle


def test_curves_are_thin_and_end_where_the_run_does() -> None:
    curves = outcome().curves

    assert 0 < len(curves.times) <= 300
    assert all(len(series) == len(curves.times) for series in curves.series.values())
    assert curves.spent_times[-1] == outcome().report.ended
    assert len(curves.waits) == 101
    assert curves.waits[95] == outcome().report.waiting.p95
    assert curves.waits[100] == outcome().report.waiting.max


def test_an_outcome_is_the_same_text_again() -> None:
    text = outcome().to_json()

    assert RunOutcome.from_json(text, "text") == outcome()


# ------------------------------------------------------------------------ budgets
def history() -> History:
    found = History()
    for i in range(3):
        found.hosts[f"h{i}"] = HostUse(
            f"h{i}", "cloud", "c8", Decimal(2), Billing(), AT + i * HOUR, AT + (i + 2) * HOUR
        )
    found.grants["g"] = GrantUse(
        "g", "pool", "lic", 4, Decimal("0.5"), AT + HOUR, None, [(AT + 2 * HOUR, 4)]
    )
    return found


@pytest.mark.parametrize(
    ("budget", "found"),
    [
        (Budget(name="b", max_hosts=2), []),  # one goes as the next comes
        (Budget(name="b", max_hosts=1), ["budget b: 2 hosts at once; at most 1 are allowed"]),
        (Budget(name="b", max_cost_per_hour=Decimal(6)), []),
        (
            Budget(name="b", max_cost_per_hour=Decimal(5)),
            ["budget b: 6.00 an hour; at most 5 is allowed"],
        ),
        (Budget(name="b", provider="cloud", max_cost_per_hour=Decimal(4)), []),
        (Budget(name="b", templates=("other",), max_hosts=0), []),
    ],
)
def test_a_budget_that_was_passed_is_named_with_the_worst(budget: Budget, found: list[str]) -> None:
    assert list(passed_budgets([budget], history(), AT + 9 * HOUR)) == found


# --------------------------------------------------------------------------- best
def judged(policy: str, workload: str = "day", **changes: object) -> RunOutcome:
    figures = Figures.model_validate({**outcome().figures.model_dump(), **changes})
    return outcome().model_copy(update={"policy": policy, "workload": workload, "figures": figures})


def best(*outcomes: RunOutcome) -> dict[str, tuple[str, ...]]:
    return {one.figure: one.policies for one in best_of(outcomes)}


def test_the_least_cost_and_the_most_use_are_best() -> None:
    found = best(
        judged("a", cost=Decimal(5), obtained_use=Decimal("0.5")),
        judged("b", cost=Decimal(4), obtained_use=Decimal("0.4")),
        judged("c", cost=Decimal(4), obtained_use=Decimal("0.3")),
    )

    assert found == {"cost": ("b", "c"), "obtained_use": ("a",)}


def test_where_all_are_alike_none_is_best() -> None:
    assert best(judged("a"), judged("b")) == {}


def test_who_leaves_jobs_behind_is_out_of_the_race() -> None:
    found = best(
        judged("a", cost=Decimal(1), jobs_not_ended=3),
        judged("b", cost=Decimal(5)),
        judged("c", cost=Decimal(6)),
    )

    assert found["cost"] == ("b",)


def test_an_unknown_cost_is_never_best() -> None:
    assert best(judged("a", cost=None), judged("b", cost=Decimal(5))) == {}


def test_each_workload_has_its_own_best() -> None:
    entries = best_of(
        [judged("a", "x", cost=Decimal(1)), judged("b", "x", cost=Decimal(2)),
         judged("a", "y", cost=Decimal(4)), judged("b", "y", cost=Decimal(3))]
    )  # fmt: skip

    assert [(one.workload, one.policies) for one in entries] == [("x", ("a",)), ("y", ("b",))]


# --------------------------------------------------------------------------- page
def page(*outcomes: RunOutcome) -> str:
    return render_comparison(
        Comparison(
            release="1",
            policies=tuple(dict.fromkeys(one.policy for one in outcomes)),
            workloads=tuple(dict.fromkeys(one.workload for one in outcomes)),
            best=best_of(outcomes),
            runs=outcomes,
        )
    )


def test_the_page_marks_the_best_and_is_the_same_each_time() -> None:
    runs = judged("eager", cost=Decimal(50)), judged("<slow>", cost=Decimal(40))

    text = page(*runs)

    assert text == page(*runs)
    assert '<td class="n best">40.00</td>' in text
    assert '<td class="n">50.00</td>' in text
    assert "&lt;slow&gt;" in text
    assert "<slow>" not in text
    assert not re.findall(r'(?:href|src)="(?!#)', text), "a page that needs nothing from elsewhere"


def test_the_page_names_violations_and_jobs_that_did_not_end() -> None:
    broken = judged("a", violations=1).model_copy(update={"violations": ("budget b: too much",)})

    assert "budget b: too much" in page(broken)


def test_more_policies_than_letters_and_colours_have_names_and_pictures() -> None:
    text = page(*(judged(f"p{i}", cost=Decimal(i + 1)) for i in range(28)))

    assert ">A1</span>" in text
    assert "The other 22 policies are in the table" in text
