"""Looks: an alert is raised when its condition has lasted, and is over when that was gone for a while."""

from datetime import timedelta

from hypothesis import given as for_all
from hypothesis import strategies as st

from xce.domain.alerts.alert import AlertKind
from xce.domain.engine.alerting import Alerting, Condition, Key
from xce.domain.engine.site_commands import ClearAlert, RaiseAlert

K = AlertKind
CLEAR_AFTER = timedelta(seconds=60)


class Site:
    """A site that is looked at; what was raised stays raised until it is cleared, as in the log."""

    def __init__(self) -> None:
        self.alerting = Alerting(CLEAR_AFTER)
        self.raised: set[Key] = set()

    def look(
        self, at_s: float, *there: Condition, unknown: tuple[AlertKind, ...] = ()
    ) -> list[str]:
        found = self.alerting.look(there, self.raised, unknown=unknown, elapsed_s=at_s)
        said: list[str] = []
        for command in found:
            key = (command.kind, command.subject)
            if isinstance(command, RaiseAlert):
                assert key not in self.raised
                self.raised.add(key)
            else:
                assert isinstance(command, ClearAlert)
                self.raised.remove(key)
            said.append(f"{type(command).__name__} {command.subject}")
        return said


def orphan(name: str = "i-1", lasts_s: float = 0) -> Condition:
    return Condition(K.ORPHAN, name, "text", timedelta(seconds=lasts_s))


def test_a_condition_that_stays_is_raised_once() -> None:
    site = Site()

    assert site.look(0, orphan()) == ["RaiseAlert i-1"]
    assert site.look(10, orphan()) == []
    assert site.look(10_000, orphan()) == []


def test_an_alert_is_over_when_its_condition_was_gone_long_enough() -> None:
    site = Site()
    site.look(0, orphan())

    assert site.look(10) == []
    assert site.look(69) == []
    assert site.look(70) == ["ClearAlert i-1"]
    assert site.look(80) == []


def test_one_that_comes_and_goes_is_one_alert() -> None:
    site = Site()
    site.look(0, orphan())

    for at_s in range(10, 1000, 20):
        assert site.look(at_s) == []
        assert site.look(at_s + 10, orphan()) == []


def test_a_condition_that_must_last_is_raised_when_it_has_lasted_without_a_break() -> None:
    site = Site()

    assert site.look(0, orphan(lasts_s=30)) == []
    assert site.look(20) == []
    assert site.look(25, orphan(lasts_s=30)) == []
    assert site.look(54, orphan(lasts_s=30)) == []
    assert site.look(55, orphan(lasts_s=30)) == ["RaiseAlert i-1"]


def test_after_a_restart_what_is_raised_is_neither_raised_again_nor_over_at_once() -> None:
    site = Site()
    site.look(0, orphan())
    site.alerting = Alerting(CLEAR_AFTER)

    assert site.look(100, orphan()) == []
    assert site.look(110) == []
    assert site.look(170) == ["ClearAlert i-1"]


def test_what_nobody_reports_of_is_not_over() -> None:
    site = Site()
    site.look(0, Condition(K.BUDGET, "all 80%", "text"))

    assert site.look(10_000, unknown=(K.BUDGET,)) == []
    assert site.look(10_010, unknown=(K.BUDGET,)) == []
    assert site.look(10_020) == []
    assert site.look(10_080) == ["ClearAlert all 80%"]


@for_all(st.lists(st.tuples(st.sets(st.integers(0, 3)), st.integers(1, 40)), max_size=30))
def test_what_is_there_is_raised_and_what_is_raised_was_there_within_the_time(
    looks: list[tuple[set[int], int]],
) -> None:
    site, now, last_seen = Site(), 0, dict[str, int]()
    for there, later in looks:
        now += later
        names = {f"i-{number}" for number in there}
        last_seen |= dict.fromkeys(names, now)
        site.look(now, *(orphan(name) for name in sorted(names)))
        raised = {subject for _, subject in site.raised}
        assert names <= raised
        gap = 2 * 40 + CLEAR_AFTER.total_seconds()
        assert all(now - last_seen[name] < gap for name in raised)
