"""What is not as it should be: one condition for each, in words for people."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.projections.run import Run, accept, at, came, cloud, hosts, template
from xce.domain.alerts.alert import AlertKind
from xce.domain.alerts.webhook import Outcome
from xce.domain.engine.commands import (
    Command,
    LoseInstance,
    PauseProvider,
    ReleaseLease,
    ReportOrphan,
)
from xce.domain.engine.site_commands import ClearAlert, RaiseAlert, RecordTold
from xce.domain.formats.alert_settings import AlertSettings
from xce.domain.formats.config import SharedPool
from xce.domain.formats.no_session import NoSession
from xce.domain.formats.shared_report import SharedReport
from xce.domain.formats.standing import BudgetUse, HeldBack, StandingReport
from xce.domain.provisioning.orphan import OrphanKind
from xce.projections.alerts import NOTICES_MAX, Alerts
from xce.projections.conditions import ORPHANS_EACH, Look, conditions, unknown

K = AlertKind


def look_at(run: Run, minute: float = 1, **more: Any) -> Look:
    return Look(run.projections, at(minute), more.pop("settings", AlertSettings()), **more)


def found(look: Look) -> list[str]:
    return [f"{one.kind} {one.subject}: {one.text}" for one in conditions(look)]


def orphan(theirs: str) -> Command:
    return ReportOrphan("aws", theirs, OrphanKind.UNKNOWN_TO_US, None, "listed twice")


@pytest.fixture
def run() -> Run:
    return Run(cloud("aws", template("c4"), template("m8")))


def lend_hosts(run: Run, number: int) -> list[str]:
    """Let a request bring hosts, and return their names."""
    machines = [f"m{one}" for one in range(number)]
    run.do(hosts("R1", number), accept("R1"), came("R1", *machines, ended=True))
    return [entry.id for entry in run.projections.inventory.view().instances]


def test_nothing_is_wrong_with_a_site_that_works(run: Run) -> None:
    lend_hosts(run, 3)

    assert found(look_at(run)) == []


def test_each_orphan_is_a_condition_until_it_is_settled(run: Run) -> None:
    run.do(orphan("i-9"))

    assert found(look_at(run)) == ["orphan aws/i-9: i-9 at aws: nobody owns it: listed twice"]


def test_a_flood_of_orphans_is_a_few_alerts(run: Run) -> None:
    for number in range(ORPHANS_EACH + 5):
        run.do(orphan(f"i-{number}"))

    conditions_found = found(look_at(run))
    assert len(conditions_found) == ORPHANS_EACH + 1
    assert conditions_found[-1].startswith(f"orphan aws (more): {ORPHANS_EACH + 5} orphans at aws")


def test_a_provider_that_is_paused_as_a_whole_is_a_condition_while_it_lasts(run: Run) -> None:
    run.do(PauseProvider("aws", None, at(30), "no credit"))

    assert found(look_at(run)) == [
        "paused aws: provider aws is paused until 2026-03-01 10:30:00 UTC: no credit"
    ]
    assert found(look_at(run, minute=31)) == []


def test_a_pause_of_one_template_is_none_but_of_all_that_is_offered_it_is(run: Run) -> None:
    run.do(PauseProvider("aws", "c4", at(30), "no capacity"))
    assert found(look_at(run)) == []

    run.do(PauseProvider("aws", "m8", at(20), "no capacity"))
    assert found(look_at(run)) == [
        "paused aws: all that provider aws offers is paused, m8 until 2026-03-01 10:20:00 UTC: no capacity"
    ]


def test_hosts_lost_at_once_are_a_mass_and_a_few_or_slow_ones_are_not(run: Run) -> None:
    names = lend_hosts(run, 4)

    for name in names[:2]:
        run.do(LoseInstance(name, "not listed"))
    assert found(look_at(run)) == []
    run.do(LoseInstance(names[2], "not listed"))
    (line,) = found(look_at(run))
    assert line.startswith("mass_loss aws: 3 hosts of aws were lost at once, the last at ")
    assert found(look_at(run, minute=60)) == []


def test_losses_that_a_provisioner_does_not_believe_are_a_mass_loss(run: Run) -> None:
    report = StandingReport(held_back=(HeldBack(provider="aws", why="9 of 9 are missing"),))

    assert found(look_at(run, standing={"p1": report})) == [
        "mass_loss aws: aws, as p1 sees it: 9 of 9 are missing"
    ]


def budget(used: str, limit: str, name: str = "all") -> StandingReport:
    use = BudgetUse(budget=name, bound="max_hosts", used=Decimal(used), limit=Decimal(limit))
    return StandingReport(budgets=(use,))


@pytest.mark.parametrize(
    ("used", "limit", "percents"),
    [("7", "10", []), ("8", "10", [80]), ("9.99", "10", [80]), ("10", "10", [80, 100]),
     ("0", "0", []), ("0.000001", "0", [80, 100]), ("99999999999999", "99999999999999", [80, 100])],
)  # fmt: skip
def test_a_budget_is_alerted_of_at_each_share_that_is_set(
    run: Run, used: str, limit: str, percents: list[int]
) -> None:
    subjects = [
        one.subject for one in conditions(look_at(run, standing={"p1": budget(used, limit)}))
    ]

    assert subjects == [f"all max_hosts {percent}%" for percent in percents]


@pytest.mark.parametrize(
    ("bound", "text"),
    [
        ("max_hosts", "budget all: 9 of 10 hosts (max_hosts) used, which is 80 % or more"),
        ("max_cost_per_day", "budget all: 9.00 of 10.00 (max_cost_per_day) used, which is 80 % or more"),
    ],
)  # fmt: skip
def test_hosts_are_counted_as_hosts_and_not_as_money(run: Run, bound: str, text: str) -> None:
    use = BudgetUse(budget="all", bound=bound, used=Decimal(9), limit=Decimal(10))

    (one,) = conditions(look_at(run, standing={"p1": StandingReport(budgets=(use,))}))

    assert one.text == text


def test_of_several_provisioners_the_fuller_look_at_a_budget_counts(run: Run) -> None:
    standing = {"p1": budget("5", "10"), "p2": budget("9", "10"), "p3": budget("1", "10")}

    assert [one.subject for one in conditions(look_at(run, standing=standing))] == [
        "all max_hosts 80%"
    ]


def drifting(run: Run, drift: int | None, since: float | None, minute: float) -> list[str]:
    pool = SharedPool(name="lic", owned=10, drift_alert=2, drift_alert_after=timedelta(minutes=15))
    report = SharedReport(drift=drift, drift_since=None if since is None else at(since))
    return found(look_at(run, minute, pools=(pool,), reports={"lic": report}))


def test_drift_is_a_condition_when_it_has_lasted_as_long_as_the_resource_wants(run: Run) -> None:
    assert drifting(run, 3, since=0, minute=14) == []
    assert drifting(run, 3, since=0, minute=15) == [
        "drift lic: 3 of lic are in use and not booked, since 2026-03-01 10:00:00 UTC"
    ]
    assert drifting(run, -3, since=0, minute=15) == [
        "drift lic: 3 of lic are booked and not in use, since 2026-03-01 10:00:00 UTC"
    ]
    assert drifting(run, 1, since=None, minute=99) == []
    assert drifting(run, None, since=None, minute=99) == []


def test_kinds_that_are_not_wanted_are_not_looked_for(run: Run) -> None:
    run.do(orphan("i-9"))
    settings = AlertSettings(kinds=(K.PAUSED,))

    assert found(look_at(run, settings=settings)) == []


def test_before_anybody_has_reported_budgets_losses_drift_and_sessions_are_unknown(
    run: Run,
) -> None:
    assert unknown(look_at(run)) == {K.BUDGET, K.MASS_LOSS, K.DRIFT, K.NO_SESSION}
    known = look_at(
        run,
        standing={"p1": StandingReport()},
        reports={"lic": SharedReport()},
        has_session=True,
    )
    assert unknown(known) == frozenset()
    none = {"scheduler/s1": NoSession(why="the view is too old")}
    assert K.NO_SESSION not in unknown(look_at(run, no_session=none))


def test_a_scheduler_that_can_hold_no_session_is_a_condition_that_lasts(run: Run) -> None:
    settings = AlertSettings(no_session_after=timedelta(minutes=3))
    why = "the requirement of job 7 cannot be read, 'select[mem >': column 13"

    look = look_at(run, settings=settings, no_session={"scheduler/s1": NoSession(why=why)})

    (one,) = conditions(look)
    assert (one.key, one.lasts) == ((K.NO_SESSION, "scheduler/s1"), timedelta(minutes=3))
    assert one.text == f"scheduler/s1 holds no session, so demand is unknown: {why}"


def test_a_take_over_is_alerted_of_for_a_while(run: Run) -> None:
    run.do(RaiseAlert(K.TAKEN_OVER, "epoch 2", "b took the place of a"))
    settings = AlertSettings(takeover_for=timedelta(minutes=30))

    later = (run.now - at(0)).total_seconds() / 60
    assert len(found(look_at(run, later + 29, settings=settings))) == 1
    assert found(look_at(run, later + 31, settings=settings)) == []


def test_a_provider_that_has_something_of_ours_and_on_which_nobody_acts_is_a_condition_that_lasts(
    run: Run,
) -> None:
    """Its provisioner was started again with a configuration that does not declare it, or calls it by another name."""
    lend_hosts(run, 2)
    run.do(replace(hosts("R1", 1), request="R2"))
    assert found(look_at(run)) == []

    run.do(ReleaseLease("aws", "p1"))

    settings = AlertSettings(unattended_after=timedelta(minutes=3))
    (one,) = conditions(look_at(run, settings=settings))
    assert (one.key, one.lasts) == ((K.UNATTENDED, "aws"), timedelta(minutes=3))
    assert one.text.startswith("nobody acts on aws, which has 2 hosts and 1 request of ours, since")


def test_a_provider_that_nobody_acts_on_and_that_has_nothing_of_ours_is_none(run: Run) -> None:
    run.do(ReleaseLease("aws", "p1"))

    assert found(look_at(run)) == []


# -------------------------------------------------------------------- the view
def notices(run: Run, webhook: str = "pager") -> list[str]:
    return [f"{one.state} {one.alert.subject}" for one in run.projections.alerts.notices(webhook)]


def test_a_webhook_that_was_never_told_of_anything_begins_with_what_is_raised_now(run: Run) -> None:
    run.do(RaiseAlert(K.ORPHAN, "old", "t"), ClearAlert(K.ORPHAN, "old", "gone"))
    run.do(RaiseAlert(K.ORPHAN, "new", "t"))

    assert notices(run) == ["raised new"]


def test_a_webhook_is_to_be_told_of_all_behind_the_last_it_was_told_of(run: Run) -> None:
    run.do(RaiseAlert(K.ORPHAN, "a", "t"))
    first = run.projections.alerts.notices("pager")[0]
    run.do(RecordTold("pager", first.position, Outcome.DELIVERED, ""))
    run.do(RaiseAlert(K.ORPHAN, "b", "t"), ClearAlert(K.ORPHAN, "a", "gone"))

    assert notices(run) == ["raised b", "cleared a"]
    assert notices(run, "another") == ["raised b"]


def test_a_webhook_that_was_away_for_more_than_is_kept_is_told_of_all_that_is_raised_still(
    run: Run,
) -> None:
    run.do(RaiseAlert(K.ORPHAN, "a", "t"))
    first = run.projections.alerts.notices("pager")[0]
    run.do(RecordTold("pager", first.position, Outcome.DELIVERED, ""))
    run.do(RaiseAlert(K.ORPHAN, "b", "t"), RaiseAlert(K.ORPHAN, "c", "t"))
    run.do(ClearAlert(K.ORPHAN, "c", "gone"))
    for _ in range(NOTICES_MAX // 2):
        run.do(RaiseAlert(K.PAUSED, "aws", "t"))
        run.do(ClearAlert(K.PAUSED, "aws", "over"))

    told = notices(run)

    assert told[:3] == ["raised b", "raised aws", "cleared aws"]
    assert len(told) == 1 + NOTICES_MAX
    second = run.projections.alerts.notices("pager")[0]
    run.do(RecordTold("pager", second.position, Outcome.DELIVERED, ""))
    assert notices(run) == told[1:]


def test_the_view_is_resumed_as_it_was_kept(run: Run) -> None:
    names = lend_hosts(run, 2)
    run.do(LoseInstance(names[0], "gone"), RaiseAlert(K.ORPHAN, "a", "t"))
    run.do(ClearAlert(K.ORPHAN, "a", "gone"), RecordTold("pager", 3, Outcome.EXPIRED, "down"))
    kept = run.projections.alerts
    resumed = Alerts()
    resumed.resume(kept.keep())

    assert resumed.state() == kept.state()
    assert resumed.over() == kept.over()


def test_hosts_that_are_asked_for_are_not_lost(run: Run) -> None:
    run.do(hosts("R5", 2))

    assert run.projections.alerts.losses(at(99), timedelta(hours=9)) == ()
