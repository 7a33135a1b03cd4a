"""What the controller can be told of the site as a whole: hosts closed and opened, the freeze switch, configurations, alerts.

``domain/engine/commands.py`` has the other commands, and says of all what they are.
"""

from dataclasses import dataclass

from xce.domain.alerts.alert import AlertKind
from xce.domain.alerts.webhook import Outcome
from xce.domain.events.base import Why
from xce.domain.formats.base import Amount, Name, Time
from xce.domain.provisioning.drain import AtDeadline
from xce.domain.provisioning.evidence import Sha256


# ------------------------------------------------------------------------ drains
@dataclass(frozen=True, slots=True)
class DrainHost:
    """Close a host of the cluster to new work; a provisioned one goes back when it is empty, an own one stays closed."""

    host: Name
    instance: Name | None
    why: Why
    deadline: Time | None = None
    at_deadline: AtDeadline = AtDeadline.WAIT


@dataclass(frozen=True, slots=True)
class OpenHost:
    """End the drain of a host: it takes work again. ``instance`` is that of a provisioned host."""

    host: Name
    instance: Name | None
    why: Why


@dataclass(frozen=True, slots=True)
class ReportDrain:
    """The scheduler has closed a host and then looked at it again: these jobs run on it.

    ``instance`` is that of a provisioned host. A job that slipped in before the closing opens a host again that its
    provisioner had begun to drain.
    """

    host: Name
    instance: Name | None
    jobs: tuple[Name, ...]


# -------------------------------------------------------------------------- site
@dataclass(frozen=True, slots=True)
class Freeze:
    """Ask, drain and give back nothing new, until it is unfrozen."""

    why: Why


@dataclass(frozen=True, slots=True)
class Unfreeze:
    """Act again."""

    why: Why


@dataclass(frozen=True, slots=True)
class RecordConfiguration:
    """A daemon works with this configuration from now on; ``changes`` say for people what is different."""

    daemon: Name
    digest: Sha256
    changes: tuple[Why, ...]


# ------------------------------------------------------------------------ alerts
@dataclass(frozen=True, slots=True)
class RaiseAlert:
    """Something is not as it should be; while it is raised already, nothing happens."""

    kind: AlertKind
    subject: Name
    text: Why


@dataclass(frozen=True, slots=True)
class ClearAlert:
    """It is over; an alert that is not raised stays as it is."""

    kind: AlertKind
    subject: Name
    why: Why


@dataclass(frozen=True, slots=True)
class RecordTold:
    """A webhook was told of an alert's event at a position, and of all before, or will never be."""

    webhook: Name
    position: Amount
    outcome: Outcome
    why: Why
