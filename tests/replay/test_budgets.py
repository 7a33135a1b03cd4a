"""Whole runs under budgets of a day and of projects: the log of the run itself says what was spent, and when."""

from datetime import timedelta
from decimal import Decimal

from tests.replay.worlds import Finished, demo_config, finish
from xce.domain.formats.config import SimulationConfig
from xce.domain.formats.periods import Period
from xce.domain.formats.policy import Budget
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.request import Request
from xce.replay.compare.measure import passed_budgets
from xce.replay.history import History
from xce.replay.workloads.eda_day import eda_day

DAILY = Budget(name="day", max_cost_per_day=Decimal(40), zone="Europe/Berlin")
PROJECT = Budget(name="few", projects=("chip1",), max_hosts=2)


def config_with(*budgets: Budget) -> SimulationConfig:
    config = demo_config()
    driver = config.driver.model_copy(update={"stall_limit": timedelta(hours=20)})
    policy = config.policy.model_copy(update={"budgets": budgets})
    return config.model_copy(update={"policy": policy, "driver": driver})


def run_with(*budgets: Budget) -> Finished:
    return finish(config_with(*budgets), eda_day(7))


def test_no_day_costs_more_than_its_budget_in_its_zone() -> None:
    run = run_with(DAILY)
    days = run.projections.spending.periods(Period.DAY, DAILY.zone, run.end)

    assert sum(line.cost for day in days for line in day.lines) > 10
    assert all(sum(line.cost for line in day.lines) <= 40 for day in days)
    history = History.of(entry.event for entry in run.events)
    assert list(passed_budgets([DAILY], history, run.end)) == []


def test_a_budget_that_a_run_did_not_have_is_said_to_be_passed() -> None:
    run = run_with()
    history = History.of(entry.event for entry in run.events)

    (said,) = passed_budgets([DAILY], history, run.end)

    assert "in the day that began 2026-03-01T23:00:00Z; at most 40 is allowed" in said


def test_hosts_are_paid_by_the_project_whose_jobs_they_were_asked_for() -> None:
    run = run_with(PROJECT)
    asked = [entry.event for entry in run.events if isinstance(entry.event, Request.Intended)]
    came = [entry.event for entry in run.events if isinstance(entry.event, Instance.Granted)]

    assert {event.project for event in asked} <= {"chip1", None}
    assert {event.project for event in came} == {"chip1"}
    history = History.of(entry.event for entry in run.events)
    assert list(passed_budgets([PROJECT], history, run.end)) == []
