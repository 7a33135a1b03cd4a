"""Drains, the freeze and configurations in the controller: given orders, when one, then its events."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.engine.rig import ADMIN, AT, OPEN, P1, Rig, ready
from tests.unit.engine.test_controller import names
from xce.domain.engine import commands as c
from xce.domain.engine import site_commands as s
from xce.domain.engine.messages import Caller, Role
from xce.domain.engine.site import FrozenError
from xce.domain.errors import ForbiddenError, NotFoundError, RejectedError
from xce.domain.ports import MachineReport, MachineResult, RequestStatus, StatusAnswer
from xce.domain.provisioning.drain import AtDeadline

SCHEDULER = Caller(Role.SCHEDULER, "s1")
NOW = AtDeadline.WAIT
IDLE = c.StartDrain("cloud/m1", "idle")
BACK = c.StartReturn("B1", ("cloud/m1",), "drained")


def joined() -> Rig:
    """A host of the cloud is in the cluster as node-1."""
    rig = ready()
    report = MachineReport("m1", "node-1", MachineResult.SUCCEED)
    answer = StatusAnswer(RequestStatus.COMPLETE, (report,))
    rig.order(P1, OPEN, c.AcceptRequest(OPEN.request, "a1"), c.RecordStatus(OPEN.request, answer))
    rig.order(SCHEDULER, c.RecordJoin("cloud/m1", "node-1", AT, {}, {"slots": 4}))
    return rig


def look(*jobs: str, host: str = "node-1", instance: str | None = "cloud/m1") -> s.ReportDrain:
    return s.ReportDrain(host, instance, jobs)


def by_hand(*, hours: int | None = None, policy: AtDeadline = NOW) -> s.DrainHost:
    deadline = None if hours is None else AT + timedelta(hours=hours)
    return s.DrainHost("node-1", "cloud/m1", "maintenance", deadline, policy)


def test_a_host_that_its_provisioner_closes_is_found_empty_and_goes_back() -> None:
    rig = joined()
    rig.order(P1, IDLE)

    rig.order(SCHEDULER, look())
    assert names(rig.new) == ["drain.Asked", "drain.Closed", "drain.Emptied"]

    rig.order(P1, BACK)
    rig.order(P1, c.ConfirmReturn("B1", "cloud/m1"))
    assert names(rig.new) == ["instance.Returned", "drain.Ended"]


def test_a_job_that_slipped_in_opens_the_host_in_the_same_append() -> None:
    rig = joined()
    rig.order(P1, IDLE)

    rig.order(SCHEDULER, look("7"))

    assert names(rig.new) == [
        "instance.Reopened", "drain.Asked", "drain.Closed", "drain.SlippedIn",
    ]  # fmt: skip
    with pytest.raises(RejectedError):
        rig.order(P1, BACK)


def test_a_host_drained_by_hand_is_not_opened_by_a_job_but_by_a_person() -> None:
    rig = joined()
    rig.order(ADMIN, by_hand(), epochs={})
    assert names(rig.new) == ["instance.DrainStarted", "drain.Asked"]
    rig.order(SCHEDULER, look("7"))

    with pytest.raises(RejectedError, match="drained by hand"):
        rig.order(P1, c.Reopen("cloud/m1", "a job had started on it"))
    rig.order(ADMIN, s.OpenHost("node-1", "cloud/m1", "done"), epochs={})

    assert names(rig.new) == ["drain.Cancelled", "instance.Reopened"]


def test_a_person_takes_a_drain_over_that_yields() -> None:
    rig = joined()
    rig.order(P1, IDLE)
    rig.order(SCHEDULER, look())

    rig.order(ADMIN, by_hand(), epochs={})

    assert names(rig.new) == ["drain.Cancelled", "drain.Asked"]


def test_an_own_host_stays_closed_until_a_person_opens_it() -> None:
    rig = Rig()
    rig.order(ADMIN, s.DrainHost("own-1", None, "disk"), epochs={})
    rig.order(SCHEDULER, look(host="own-1", instance=None))
    assert names(rig.new) == ["drain.Closed", "drain.Emptied"]

    rig.order(ADMIN, s.OpenHost("own-1", None, "mended"), epochs={})

    assert names(rig.new) == ["drain.Cancelled"]


def test_what_is_not_drained_is_not_opened_or_looked_at() -> None:
    rig = joined()

    with pytest.raises(NotFoundError, match="never drained"):
        rig.order(ADMIN, s.OpenHost("own-1", None, ""))
    with pytest.raises(RejectedError, match="is not being drained"):
        rig.order(SCHEDULER, look())
    with pytest.raises(RejectedError, match="is host node-1, not node-2"):
        rig.order(ADMIN, s.DrainHost("node-2", "cloud/m1", ""), epochs={})


def test_to_requeue_at_the_deadline_needs_a_deadline() -> None:
    rig = joined()

    with pytest.raises(RejectedError, match="needs a deadline"):
        rig.order(ADMIN, by_hand(policy=AtDeadline.REQUEUE), epochs={})

    assert names(rig.new) == []


def test_a_drain_whose_instance_is_lost_is_over() -> None:
    rig = joined()
    rig.order(ADMIN, by_hand(), epochs={})

    rig.order(P1, c.LoseInstance("cloud/m1", "spot"))

    assert names(rig.new) == ["instance.Lost", "drain.Ended"]


# ------------------------------------------------------------------------ freeze
def test_while_the_site_is_frozen_nothing_new_begins_and_what_is_under_way_goes_on() -> None:
    rig = joined()
    rig.order(P1, IDLE)
    rig.order(P1, BACK)
    rig.order(ADMIN, s.Freeze("audit"))

    for command in (
        replace(OPEN, request="R2"), c.StartReturn("B2", ("cloud/m1",), ""),
        c.StartGrantReturn("B2", "g", 1), c.ReturnOrphan("cloud", "x", "B2", ""), IDLE,
    ):  # fmt: skip
        with pytest.raises(FrozenError, match="the site is frozen: audit"):
            rig.order(P1, command)
        assert names(rig.new) == []
    rig.order(P1, OPEN)  # heard twice: begun before
    assert names(rig.new) == []
    rig.order(P1, c.ConfirmReturn("B1", "cloud/m1"))
    assert names(rig.new) == ["instance.Returned"]

    rig.order(ADMIN, s.Unfreeze("over"))
    rig.order(P1, replace(OPEN, request="R2"))
    assert names(rig.new) == ["request.Intended"]


def test_to_freeze_twice_records_it_once_and_to_unfreeze_what_runs_nothing() -> None:
    rig = Rig()
    rig.order(ADMIN, s.Unfreeze(""))
    assert names(rig.new) == []
    rig.order(ADMIN, s.Freeze("a"))
    rig.order(ADMIN, s.Freeze("b"))
    assert names(rig.new) == []
    rig.order(ADMIN, s.Unfreeze(""))
    rig.order(ADMIN, s.Freeze("c"))
    assert names(rig.new) == ["site.Frozen"]


def test_only_an_admin_freezes() -> None:
    with pytest.raises(ForbiddenError):
        Rig().order(P1, s.Freeze(""))


# ----------------------------------------------------------------- configuration
def test_a_configuration_is_recorded_when_it_changes() -> None:
    rig = Rig()
    rig.order(ADMIN, s.RecordConfiguration("controller", "a" * 64, ("first start",)))
    assert names(rig.new) == ["configuration.Changed"]

    rig.order(ADMIN, s.RecordConfiguration("controller", "a" * 64, ("started again",)))
    assert names(rig.new) == []
    rig.order(ADMIN, s.RecordConfiguration("controller", "b" * 64, ("leases: changed",)))

    assert names(rig.new) == ["configuration.Changed"]
