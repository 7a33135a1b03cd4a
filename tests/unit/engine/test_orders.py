"""Orders: roles, keys, versions and refusals; given orders, when one, then its answer and events."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.engine.rig import ADMIN, AT, OPEN, P1, P2, TAKE, TERM, VIEWER, Rig, ready
from tests.unit.engine.test_controller import CLOUD, names
from xce.domain.engine import commands as c
from xce.domain.engine.authorisation import ROLES, action_name, require
from xce.domain.engine.commands import COMMANDS, Command, command_name
from xce.domain.engine.controller import (
    REMEMBERED_MAX,
    UNIDENTIFIED,
    LateReportError,
)
from xce.domain.engine.messages import Caller, Role
from xce.domain.engine.refusal_notes import INTERVAL_S, KINDS_MAX, Attempt
from xce.domain.engine.wire import content_of, read_command, read_order, write_command
from xce.domain.errors import (
    ForbiddenError,
    InputError,
    KeyReusedError,
    RejectedError,
    StaleEpochError,
    StaleVersionError,
)
from xce.domain.provisioning.decision import Deed
from xce.domain.provisioning.orphan import OrphanKind


# ----------------------------------------------------------------------- roles
def test_what_a_role_may_not_do_is_refused_and_noted_and_nothing_else_is_recorded() -> None:
    rig = ready()

    with pytest.raises(ForbiddenError, match="the role viewer may not open-request"):
        rig.order(VIEWER, OPEN)

    assert names(rig.new) == ["refusals.Noted"]
    assert rig.new[0].by == "viewer/victor"


def test_every_command_is_refused_to_every_role_without_a_row_for_it() -> None:
    for action, roles in ROLES.items():
        for role in Role:
            if role in roles:
                require(Caller(role, "x"), action)
            else:
                with pytest.raises(ForbiddenError, match=action_name(action)):
                    require(Caller(role, "x"), action)


def test_an_admin_may_do_everything_and_a_viewer_and_an_observer_change_nothing() -> None:
    assert all(Role.ADMIN in roles for roles in ROLES.values())
    for command in COMMANDS:
        assert not ROLES[command] & {Role.VIEWER, Role.OBSERVER}


@pytest.mark.parametrize(
    "command", [TAKE, c.RenewLease("cloud", "p1", 1), c.ReleaseLease("cloud", "p1")]
)
def test_a_provisioner_handles_leases_under_its_own_name_only(command: Command) -> None:
    with pytest.raises(ForbiddenError, match="not as p1"):
        ready().order(P2, command)


def test_only_an_admin_takes_a_lease_by_force() -> None:
    with pytest.raises(ForbiddenError, match="by force"):
        ready().order(P2, c.TakeLease("cloud", "p2", TERM, force=True))


# --------------------------------------------------------------- all or nothing
def test_an_order_of_which_one_command_is_refused_leaves_nothing() -> None:
    rig = ready()

    with pytest.raises(RejectedError, match="there is no request R9"):
        rig.order(P1, OPEN, c.AcceptRequest("R9", "x"))

    assert rig.new == []
    assert rig.order(P1, OPEN).changed


def test_bookings_of_an_order_that_is_refused_are_not_taken() -> None:
    rig = ready()

    with pytest.raises(RejectedError):
        rig.order(ADMIN, c.ReportBookings({"lic": 3}), c.AcceptRequest("R9", "x"))

    assert rig.controller.occupied() == {}


def test_bookings_that_come_behind_newer_ones_are_refused() -> None:
    rig = ready()
    newer, older = AT + timedelta(seconds=20), AT + timedelta(seconds=10)
    rig.order(ADMIN, c.ReportBookings({"lic": 8}, primary=1, as_of=newer), key="second")

    with pytest.raises(LateReportError, match="there is one as of 2026"):
        rig.order(ADMIN, c.ReportBookings({"lic": 2}, primary=1, as_of=older), key="first")
    rig.order(ADMIN, c.ReportBookings({"lic": 8}, primary=1, as_of=newer), key="second")

    assert rig.controller.occupied() == {"lic": 8}


def test_bookings_of_a_batch_that_was_not_saved_are_behind_nothing() -> None:
    rig = ready()
    later = AT + timedelta(seconds=20)
    rig.order(ADMIN, c.ReportBookings({"lic": 8}, as_of=later), fails=True)

    rig.order(ADMIN, c.ReportBookings({"lic": 2}, as_of=AT))

    assert rig.controller.occupied() == {"lic": 2}


def test_bookings_of_an_order_that_is_refused_are_newer_than_nothing() -> None:
    rig = ready()
    later = AT + timedelta(seconds=20)
    with pytest.raises(RejectedError):
        rig.order(ADMIN, c.ReportBookings({"lic": 8}, as_of=later), c.AcceptRequest("R9", "x"))

    rig.order(ADMIN, c.ReportBookings({"lic": 2}, as_of=AT))

    assert rig.controller.occupied() == {"lic": 2}


def test_bookings_that_were_told_to_the_primary_before_are_unknown_to_the_next_one() -> None:
    rig = ready()
    told = c.ReportBookings({"lic": 2}, primary=1, as_of=AT)
    rig.controller.start([], elapsed_s=0.0, primary=1)
    rig.order(ADMIN, told, key="first")
    again = rig.restarted(primary=2)

    with pytest.raises(LateReportError, match="epoch 1; this one has 2"):
        again.order(ADMIN, told, key="first")

    assert again.controller.occupied() == {}
    again.order(ADMIN, replace(told, primary=2))
    assert again.controller.occupied() == {"lic": 2}


def test_bookings_of_one_who_does_not_say_what_they_are_of_are_taken_as_they_come() -> None:
    rig = ready()
    rig.controller.start([], elapsed_s=0.0, primary=3)
    rig.order(ADMIN, c.ReportBookings({"lic": 8}, primary=3, as_of=AT))

    rig.order(ADMIN, c.ReportBookings({"lic": 2}))

    assert rig.controller.occupied() == {"lic": 2}


def test_what_no_event_can_hold_is_refused() -> None:
    with pytest.raises(RejectedError, match="cannot be recorded"):
        ready().order(P1, replace(OPEN, request="R" * 300, jobs=("j" * 300,)))


# ------------------------------------------------------------------------ keys
def test_a_repeated_key_gives_the_same_answer_and_records_nothing() -> None:
    rig = ready()
    first = rig.order(P1, TAKE, key="k1")

    again = rig.order(P1, TAKE, key="k1")

    assert rig.new == []
    assert (again.epochs, again.versions) == (first.epochs, first.versions)
    assert not again.changed


def test_a_repeated_key_is_known_after_a_restart() -> None:
    rig = ready()
    first = rig.order(P1, TAKE, key="k1")
    rig.order(P1, TAKE, key="k2")

    again = rig.restarted().order(P1, TAKE, key="k1")

    assert again.epochs == first.epochs == {"cloud": 2}


def test_a_key_whose_append_failed_was_never_used() -> None:
    rig = ready()
    rig.order(P1, TAKE, key="k1", fails=True)

    assert rig.order(P1, TAKE, key="k1").changed


def test_a_key_for_other_commands_is_refused_also_after_a_restart() -> None:
    rig = ready()
    rig.order(P1, TAKE, key="k1")

    for controller in (rig, rig.restarted()):
        with pytest.raises(KeyReusedError):
            controller.order(P1, replace(TAKE, term=2 * TERM), key="k1")


def test_the_same_key_of_another_caller_is_another_key() -> None:
    rig = ready()
    rig.order(P1, TAKE, key="k1")

    assert rig.order(ADMIN, TAKE, key="k1").changed


def test_a_refusal_under_a_key_is_repeated_while_the_controller_lives() -> None:
    rig = ready()
    with pytest.raises(RejectedError):
        rig.order(P1, c.AcceptRequest("R1", "x"), key="k1")
    rig.order(P1, OPEN)

    with pytest.raises(RejectedError, match="there is no request R1"):
        rig.order(P1, c.AcceptRequest("R1", "x"), key="k1")


def test_a_late_repeat_of_a_toggle_does_not_undo_what_came_after_it() -> None:
    rig = ready()
    pause = c.PauseProvider("cloud", None, AT + timedelta(days=1), "maintenance")
    rig.order(P1, pause, key="k1")
    rig.order(P1, c.ResumeProvider("cloud", None), key="k2")

    rig.restarted().order(P1, pause, key="k1")

    assert [type(e).__name__ for e in rig.streams.events if "provider:" in e.originator_id] == [
        "Described",
        "Paused",
        "Resumed",
    ]


def test_a_command_with_an_id_of_its_own_gets_no_receipt() -> None:
    rig = ready()
    rig.order(P1, OPEN, key="k1")

    assert names(rig.new) == ["request.Intended"]
    assert not rig.restarted().order(P1, OPEN, key="k1").changed


def test_remembered_answers_are_bounded() -> None:
    rig = ready()
    for number in range(REMEMBERED_MAX + 10):
        rig.order(P1, c.RenewLease("cloud", "p1", 1), key=f"k{number}")

    assert len(vars(rig.controller)["_answers"]) == REMEMBERED_MAX


# -------------------------------------------------------------------- versions
def test_a_change_of_what_has_changed_since_it_was_read_is_refused() -> None:
    rig = ready()
    rig.order(P1, OPEN)
    rig.order(P1, c.AcceptRequest("R1", "add-1"), expected={"request:R1": 1})

    with pytest.raises(StaleVersionError, match="version 2, not 1"):
        rig.order(P1, c.GiveUpRequest("R1", "late"), expected={"request:R1": 1})


# -------------------------------------------------------------------- refusals
def attempts() -> Iterator[Attempt]:
    for number in range(KINDS_MAX + 50):
        yield Attempt(f"unauthenticated/10.0.0.{number}", "authenticate", "no such token")


def test_equal_attempts_are_noted_at_once_and_then_counted_for_a_while() -> None:
    rig = Rig()
    for _ in range(1000):
        with pytest.raises(ForbiddenError):
            rig.order(VIEWER, OPEN)
    assert rig.tick() == []
    rig.elapsed_s = INTERVAL_S

    assert rig.tick() == ["refusals.Noted"]
    assert rig.new[0].model_dump()["count"] == 999
    rig.elapsed_s = 2 * INTERVAL_S
    assert rig.tick() == []


def test_many_unknown_callers_share_one_line() -> None:
    rig = Rig()
    before = len(rig.streams.events)
    for attempt in attempts():
        rig.controller.refused(attempt, at=AT, elapsed_s=0.0)
    rig.save()
    assert len(rig.streams.events) - before == KINDS_MAX + 1

    rig.elapsed_s = INTERVAL_S
    rig.tick()

    assert [e.model_dump()["count"] for e in rig.new] == [49]


# -------------------------------------------------------------------- the wire
def test_every_command_comes_back_from_the_wire_as_it_went() -> None:
    for command in (TAKE, OPEN, c.DescribeProvider(CLOUD), c.ReportBookings({"lic": None})):
        assert read_command(write_command(command), "test") == command


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["commands", "command", "provider", "epochs"])
                | st.text(max_size=5),
                inner,
                max_size=4,
            )
        ),
    )
)
def test_what_is_no_order_is_an_input_error(document: Any) -> None:
    with pytest.raises(InputError):
        read_order(json.dumps(document), "test")


def test_equal_commands_have_equal_content_and_others_not() -> None:
    assert content_of((TAKE,)) == content_of((replace(TAKE),))
    assert content_of((TAKE,)) != content_of((TAKE, TAKE))
    assert content_of((TAKE,)) != content_of((replace(TAKE, term=2 * TERM),))


def test_what_needs_a_receipt_is_named_among_the_commands() -> None:
    assert set(COMMANDS) >= UNIDENTIFIED
    assert len({command_name(command) for command in COMMANDS}) == len(COMMANDS)


# --------------------------------------------------------- orphans and decisions
ORPHAN = c.ReportOrphan("cloud", "i-7", OrphanKind.UNKNOWN_TO_US, None, "listed, and nobody's")
DECISION = c.RecordDecision(
    "D1", "cloud", Deed.REQUEST, "c4", 10, "10 jobs wait", ("1", "2"), 7, None, None, ("request:R1",)
)  # fmt: skip


def test_a_decision_is_recorded_in_the_append_of_what_it_leads_to() -> None:
    rig = ready()
    rig.order(P1, DECISION, OPEN)

    assert names(rig.new) == ["decision.Made", "request.Intended"]


def test_the_same_decision_again_records_nothing_and_another_of_its_name_is_refused() -> None:
    rig = ready()
    rig.order(P1, DECISION)

    assert not rig.restarted().order(P1, DECISION).changed
    with pytest.raises(RejectedError, match="recorded before, as another one"):
        rig.order(P1, replace(DECISION, amount=11))


def test_a_decision_that_leads_to_nothing_is_not_recorded() -> None:
    with pytest.raises(RejectedError, match="leads to nothing"):
        ready().order(P1, replace(DECISION, led_to=()))


def test_an_orphan_from_its_discovery_to_its_end() -> None:
    rig = ready()
    rig.order(P1, ORPHAN)
    rig.order(P1, c.ReturnOrphan("cloud", "i-7", "B1", "nobody's"))
    rig.order(P1, c.RefuseOrphanReturn("cloud", "i-7", "B1", "busy"))
    rig.order(P1, c.ReturnOrphan("cloud", "i-7", "B2", "nobody's"))
    rig.order(P1, c.CloseOrphan("cloud", "i-7", "not listed any more"))
    rig.order(P1, ORPHAN)
    rig.order(P1, c.AdoptOrphan("cloud", "i-7", "instance:cloud/i-7"))

    found = [type(e).__name__ for e in rig.streams.events if e.originator_id == "orphan:cloud/i-7"]
    assert found == [
        "Found", "ReturnIntended", "ReturnRefused", "ReturnIntended", "Vanished", "Found", "Adopted",
    ]  # fmt: skip


def test_only_a_person_says_that_an_orphan_is_none_of_ours() -> None:
    rig = ready()
    rig.order(P1, ORPHAN)

    with pytest.raises(ForbiddenError):
        rig.order(P1, c.DismissOrphan("cloud", "i-7", "mine"))
    rig.order(ADMIN, c.DismissOrphan("cloud", "i-7", "a test machine"))

    assert not rig.order(P1, ORPHAN).changed


def test_an_orphan_is_a_fact_of_its_provider_under_its_lease() -> None:
    with pytest.raises(StaleEpochError):
        ready().order(P1, ORPHAN, epochs={"cloud": 9})
