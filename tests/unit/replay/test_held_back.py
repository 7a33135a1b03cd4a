"""A run that leaves jobs waiting, or asks for nothing, says what the policy held back and why."""

import io

from rich.console import Console

from xce.adapters.cli.simulate import render
from xce.adapters.settings.load import read_scenario
from xce.adapters.store.open import MEMORY, open_log
from xce.domain.formats.simulation import RoundCounts, SimulationReport
from xce.replay.scenario.run import Runner

TEXT = """name: tight
until: 30min
cluster: {hosts: [{name: own1, total: {slots: 1}}]}
providers:
  - name: cloud
    templates: [{template_id: T, max_number: 6, price_per_hour: 0.50, provides: {slots: 4}}]
    simulation: {lead_time: {lag: 0s, boot: 2min, join: 0s}}
workload: {jobs: [{id: "j[1-8]", run_time: 10min}]}
policy: {budgets: [{name: tiny, max_cost_per_hour: %s}]}
"""


def report_of(text: str) -> SimulationReport:
    with open_log(MEMORY) as log:
        return Runner(read_scenario(text.encode(), "tight.yaml"), log).run().report


def shown(report: SimulationReport) -> str:
    text = io.StringIO()
    render(report, Console(file=text, width=200))
    return text.getvalue()


def rounds_of(report: SimulationReport) -> RoundCounts:
    assert report.rounds is not None
    return report.rounds


def test_what_a_budget_held_back_is_said_with_its_reason_and_its_jobs() -> None:
    report = report_of(TEXT % "0.10")

    rounds = rounds_of(report)
    assert rounds.wanting == rounds.holding == rounds.rounds > 0
    assert rounds.held_at == report.ended
    assert [group.jobs for group in rounds.held] == [("j5", "j6", "j7", "j8")]
    assert (
        "asks held back in 7 of 7 rounds, at last 2026-03-01 10:30:00 UTC:\n"
        "  1 of 1 hosts of T not asked: cloud: budget tiny: 0.00 of 0.10 per hour used, and one more costs 0.50 (j5, j6, j7, j8)\n"
    ) in shown(report)


def test_of_a_run_whose_jobs_all_ended_what_was_held_back_most_of_the_time_is_said() -> None:
    """Two hosts are wanted, and one may be had: all jobs end, and wait longer."""
    report = report_of(TEXT % "0.50")

    rounds = rounds_of(report)
    assert not report.jobs.not_ended
    assert report.requests.requests == 1
    assert 2 * rounds.holding > rounds.wanting
    assert f"asks held back in {rounds.holding} of {rounds.rounds} rounds, at last " in shown(
        report
    )
    assert "budget tiny: 0.50 of 0.50 per hour used, and one more costs 0.50" in shown(report)


def test_of_a_run_whose_jobs_all_ended_a_hold_now_and_then_is_not_said() -> None:
    report = report_of(TEXT % "0.50")
    seldom = rounds_of(report).model_copy(update={"holding": 1, "wanting": 2})

    assert "held back" not in shown(report.model_copy(update={"rounds": seldom}))


def test_where_nobody_wanted_anything_that_is_what_is_said() -> None:
    report = report_of((TEXT % "9").replace("slots: 1}", "slots: 64}"))

    assert (rounds_of(report).wanting, rounds_of(report).holding) == (0, 0)
    assert "requests: none; no job waited for anything that a provider offers\n" in shown(report)


def test_where_there_is_nobody_to_ask_there_are_no_rounds() -> None:
    before, _, rest = (TEXT % "9").partition("providers:")
    report = report_of(before + rest[rest.index("workload:") :])

    assert report.rounds is None
    assert "requests: none\n" in shown(report)
