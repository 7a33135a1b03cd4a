"""Who may do what: one table, for every command and every question, drawn in ``docs/reference/roles.md``."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from xce.domain.engine import commands as c
from xce.domain.engine import site_commands as s
from xce.domain.engine.commands import COMMANDS, Command, command_name
from xce.domain.engine.messages import Caller, Role
from xce.domain.errors import ForbiddenError


class Question(StrEnum):
    """What can be read."""

    STATUS = "read-status"
    REQUESTS = "read-requests"
    INSTANCES = "read-instances"
    GRANTS = "read-grants"
    SHARED = "read-shared"
    PROVIDERS = "read-providers"
    LEASES = "read-leases"
    COSTS = "read-costs"
    CATALOG = "read-catalog"
    SUPPLY = "read-supply"
    BOOKINGS = "read-bookings"
    OBSERVATIONS = "read-observations"
    DRAINS = "read-drains"
    ORPHANS = "read-orphans"
    DECISIONS = "read-decisions"
    SESSION = "read-session"
    SNAPSHOT = "read-snapshot"
    ALERTS = "read-alerts"
    STANDING = "read-standing"
    EVENTS = "read-events"
    STREAM = "follow-stream"
    METRICS = "read-metrics"


class Report(StrEnum):
    """What is told and kept in memory only, without being a command."""

    SESSION = "publish-session"
    NO_SESSION = "report-no-session"
    SNAPSHOT = "post-snapshot"
    OBSERVATIONS = "report-observations"
    STANDING = "report-standing"


Action = type[Command] | Question | Report

_ADMIN: Final = frozenset({Role.ADMIN})
_SCHEDULER: Final = frozenset({Role.ADMIN, Role.SCHEDULER})
_PROVISIONER: Final = frozenset({Role.ADMIN, Role.PROVISIONER})
_BOTH: Final = _SCHEDULER | _PROVISIONER
_ALL: Final = frozenset(Role)

#: The whole table. An admin may do everything; facts of a provider come from its provisioner, the state of hosts from both daemons.
ROLES: Final[Mapping[Action, frozenset[Role]]] = {
    c.DescribeProvider: _PROVISIONER,
    c.PauseProvider: _PROVISIONER,
    c.ResumeProvider: _PROVISIONER,
    c.DeclareShared: _ADMIN,
    c.SetOwned: _ADMIN,
    c.ReportBookings: _SCHEDULER,
    c.TakeLease: _PROVISIONER,
    c.RenewLease: _PROVISIONER,
    c.ReleaseLease: _PROVISIONER,
    c.OpenRequest: _PROVISIONER,
    c.AcceptRequest: _PROVISIONER,
    c.RefuseRequest: _PROVISIONER,
    c.LoseTrack: _PROVISIONER,
    c.RecordStatus: _PROVISIONER,
    c.GiveUpRequest: _PROVISIONER,
    c.SettleRequest: _PROVISIONER,
    c.RecordJoin: _SCHEDULER,
    c.PassCheck: _PROVISIONER,
    c.MissJoin: _PROVISIONER,
    c.StartDrain: _BOTH,
    c.Reopen: _BOTH,
    c.StartReturn: _PROVISIONER,
    c.AcceptReturn: _PROVISIONER,
    c.RefuseReturn: _PROVISIONER,
    c.ConfirmReturn: _PROVISIONER,
    c.LoseInstance: _PROVISIONER,
    c.StartGrantReturn: _PROVISIONER,
    c.AcceptGrantReturn: _PROVISIONER,
    c.ConfirmGrantReturn: _PROVISIONER,
    c.RefuseGrantReturn: _PROVISIONER,
    c.ExtendGrant: _PROVISIONER,
    c.LosePart: _PROVISIONER,
    c.LoseGrant: _PROVISIONER,
    c.ReportOrphan: _PROVISIONER,
    c.AdoptOrphan: _PROVISIONER,
    c.DismissOrphan: _ADMIN,
    c.ReturnOrphan: _PROVISIONER,
    c.RefuseOrphanReturn: _PROVISIONER,
    c.CloseOrphan: _PROVISIONER,
    c.RecordDecision: _PROVISIONER,
    c.RecordEvidence: _PROVISIONER,
    s.DrainHost: _BOTH,
    s.OpenHost: _BOTH,
    s.ReportDrain: _SCHEDULER,
    s.Freeze: _ADMIN,
    s.Unfreeze: _ADMIN,
    s.RecordConfiguration: _ADMIN,
    s.RaiseAlert: _ADMIN,
    s.ClearAlert: _ADMIN,
    s.RecordTold: _ADMIN,
    Report.SESSION: _SCHEDULER,
    Report.NO_SESSION: _SCHEDULER,
    Report.SNAPSHOT: _SCHEDULER,
    Report.OBSERVATIONS: _PROVISIONER,
    Report.STANDING: _PROVISIONER,
    Question.STATUS: _ALL,
    Question.REQUESTS: _ALL,
    Question.INSTANCES: _ALL,
    Question.GRANTS: _ALL,
    Question.SHARED: _ALL,
    Question.PROVIDERS: _ALL,
    Question.LEASES: _ALL,
    Question.COSTS: _ALL - {Role.OBSERVER},
    Question.CATALOG: _ALL - {Role.OBSERVER},
    Question.SUPPLY: _ALL - {Role.OBSERVER},
    Question.BOOKINGS: _ALL,
    Question.OBSERVATIONS: _ALL,
    Question.DRAINS: _ALL,
    Question.ORPHANS: _ALL - {Role.OBSERVER},
    Question.DECISIONS: _ALL - {Role.OBSERVER},
    Question.SESSION: _ALL - {Role.OBSERVER},
    Question.SNAPSHOT: _ALL - {Role.OBSERVER},
    Question.ALERTS: _ALL - {Role.OBSERVER},
    Question.STANDING: _ALL - {Role.OBSERVER},
    Question.EVENTS: _ALL - {Role.OBSERVER},
    Question.STREAM: _ALL - {Role.OBSERVER},
    Question.METRICS: _ALL,
}


def action_name(action: Action) -> str:
    """Return what an action is called outside the code."""
    return action.value if isinstance(action, (Question, Report)) else command_name(action)


def require(caller: Caller, action: Action) -> None:
    """Refuse what a role may not do.

    Raises:
        ForbiddenError: names role, action and who may.
    """
    allowed = ROLES[action]
    if caller.role not in allowed:
        may = ", ".join(role for role in Role if role in allowed)
        raise ForbiddenError(
            f"the role {caller.role} may not {action_name(action)}; it is for {may}"
        )


def require_command(caller: Caller, command: Command) -> None:
    """Refuse a command that the caller may not give: for its role, or in another's name.

    Raises:
        ForbiddenError: names what is not allowed.
    """
    require(caller, type(command))
    match command:
        case c.TakeLease() | c.RenewLease() | c.ReleaseLease():
            if caller.role is Role.PROVISIONER and command.holder != caller.name:
                raise ForbiddenError(
                    f"provisioner {caller.name} acts under its own name only, not as {command.holder}"
                )
            if isinstance(command, c.TakeLease) and command.force and caller.role is not Role.ADMIN:
                raise ForbiddenError("only an admin takes a lease that another one holds by force")
        case _:
            pass


assert ROLES.keys() == {*COMMANDS, *Question, *Report}, "every action has a row"
