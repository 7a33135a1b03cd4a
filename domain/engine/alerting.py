"""Alerts: what a look at the site raises and clears, and what the commands for it do.

A condition is what a look finds. It becomes an alert when it has lasted as long as its kind wants, and the alert is over when the
condition was gone for a while, so that one that comes and goes is one alert. A kind of which a look knows nothing, because nobody has
reported since the start, stays as it is: unknown is not over.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from xce.domain.alerts.alert import Alert, AlertKind
from xce.domain.alerts.webhook import Webhook
from xce.domain.engine.handling import Stamp
from xce.domain.engine.site_commands import ClearAlert, RaiseAlert, RecordTold
from xce.domain.engine.workspace import Workspace
from xce.domain.events import ids

AlertCommand = RaiseAlert | ClearAlert | RecordTold

#: Why an alert is over.
OVER: Final = "it is not so any more"

#: Kind and subject.
Key = tuple[AlertKind, str]


def alert(space: Workspace, command: AlertCommand, stamp: Stamp) -> None:
    """Raise or clear an alert, or settle a notice of one."""
    at, by = stamp.at, stamp.by
    match command:
        case RaiseAlert():
            known = space.find(Alert, ids.alert_id(command.kind, command.subject))
            if known is None:
                space.add(
                    Alert.raise_first(
                        kind=command.kind, subject=command.subject, text=command.text, at=at, by=by
                    )
                )
            else:
                known.raise_again(text=command.text, at=at, by=by)
        case ClearAlert():
            known = space.find(Alert, ids.alert_id(command.kind, command.subject))
            if known is not None:
                known.clear(why=command.why, at=at, by=by)
        case RecordTold():
            _settle(space, command, stamp)


def _settle(space: Workspace, command: RecordTold, stamp: Stamp) -> None:
    webhook = space.find(Webhook, ids.webhook_id(command.webhook))
    position, outcome, why = command.position, command.outcome, command.why
    if webhook is None:
        space.add(
            Webhook.tell_first(
                webhook=command.webhook,
                position=position,
                outcome=outcome,
                why=why,
                at=stamp.at,
                by=stamp.by,
            )
        )
    else:
        webhook.tell(position=position, outcome=outcome, why=why, at=stamp.at, by=stamp.by)


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that is not as it should be now.

    Attributes:
        subject: what it is about; with the kind it names the alert.
        text: for people.
        lasts: how long it must have been so before it is an alert.
    """

    kind: AlertKind
    subject: str
    text: str
    lasts: timedelta = timedelta(0)

    @property
    def key(self) -> Key:
        """Its kind and subject."""
        return self.kind, self.subject


class Alerting:
    """Compares looks. It keeps since when conditions are there or gone; what is raised is in the log."""

    def __init__(self, clear_after: timedelta) -> None:
        """Start; ``clear_after`` is how long a condition must be gone before its alert is over."""
        self._clear_after_s = clear_after.total_seconds()
        self._there_since_s: dict[Key, float] = {}
        self._gone_since_s: dict[Key, float] = {}

    def look(
        self,
        conditions: Iterable[Condition],
        raised: Collection[Key],
        *,
        unknown: Collection[AlertKind] = (),
        elapsed_s: float,
    ) -> list[RaiseAlert | ClearAlert]:
        """Return what one look changes.

        Args:
            conditions: what is not as it should be now.
            raised: alerts that are raised.
            unknown: kinds of which this look knows nothing.
            elapsed_s: the monotonic clock.
        """
        now = {one.key: one for one in conditions if one.kind not in unknown}
        self._there_since_s = {
            key: since
            for key, since in self._there_since_s.items()
            if key in now or key[0] in unknown
        }
        self._gone_since_s = {
            key: since
            for key, since in self._gone_since_s.items()
            if key in raised and key not in now
        }
        found: list[RaiseAlert | ClearAlert] = []
        for key, one in now.items():
            since = self._there_since_s.setdefault(key, elapsed_s)
            if key not in raised and elapsed_s - since >= one.lasts.total_seconds():
                found.append(RaiseAlert(one.kind, one.subject, one.text))
        for key in raised:
            if key in now or key[0] in unknown:
                continue
            since = self._gone_since_s.setdefault(key, elapsed_s)
            if elapsed_s - since >= self._clear_after_s:
                found.append(ClearAlert(*key, OVER))
        return found
