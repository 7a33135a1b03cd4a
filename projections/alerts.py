"""Alerts that are raised, what was said of them lately, how far each webhook was told, and hosts that were lost lately."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from xce.domain.alerts.alert import Alert, AlertKind, AlertState
from xce.domain.alerts.webhook import Webhook
from xce.domain.events.ids import name_of
from xce.domain.provisioning.instance import Instance
from xce.projections.kept import Keeper
from xce.projections.projection import Projection, State

#: Notices, alerts that are over, and losses, that are kept in memory; the log has them all.
NOTICES_MAX: Final = 1000
OVER_MAX: Final = 200
LOSSES_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class AlertRow:
    """One alert, as it was last raised.

    Attributes:
        position: of the event that raised it.
        cleared: when it was over; None: it is not.
        why: it is over.
    """

    kind: AlertKind
    subject: str
    text: str
    raised: datetime
    position: int
    cleared: datetime | None = None
    why: str = ""

    @property
    def id(self) -> str:
        """Kind and subject."""
        return f"{self.kind}/{self.subject}"


@dataclass(frozen=True, slots=True)
class Notice:
    """What a webhook is told: that an alert was raised, or that it is over.

    Attributes:
        position: in the log, of the event it is about; it names the notice.
        at: when that was.
    """

    position: int
    at: datetime
    state: AlertState
    alert: AlertRow


@dataclass(frozen=True, slots=True)
class Loss:
    """A host that is gone without our return."""

    at: datetime
    provider: str
    instance: str


@dataclass(slots=True)
class _Kept:
    raised: dict[str, AlertRow]
    over: list[AlertRow]
    notices: list[Notice]
    told: dict[str, int]
    losses: list[Loss]
    provider_of: dict[str, str]


_KEEPER: Final = Keeper(_Kept)


class Alerts(Projection):
    """Alerts at the position reached."""

    def __init__(self) -> None:
        super().__init__()
        self._raised: dict[str, AlertRow] = {}
        self._over: deque[AlertRow] = deque(maxlen=OVER_MAX)
        self._notices: deque[Notice] = deque(maxlen=NOTICES_MAX)
        self._told: dict[str, int] = {}
        self._losses: deque[Loss] = deque(maxlen=LOSSES_MAX)
        #: Of each host that exists.
        self._provider_of: dict[str, str] = {}
        self._on(Alert.Raised, self._raise)
        self._on(Alert.Cleared, self._clear)
        self._on(Webhook.Told, self._tell)
        self._on(Instance.Granted, self._granted)
        self._on(Instance.Lost, self._lost)
        self._on(Instance.Returned, self._returned)

    # -------------------------------------------------------------------- views
    def raised(self) -> tuple[AlertRow, ...]:
        """Return the alerts that are raised, in the order they were."""
        return tuple(self._raised.values())

    def over(self) -> tuple[AlertRow, ...]:
        """Return the last alerts that are over, in the order they ended."""
        return tuple(self._over)

    def told(self, webhook: str) -> int | None:
        """Return the position up to which a webhook was told everything; None: it was never told of anything."""
        return self._told.get(webhook)

    def notices(self, webhook: str) -> tuple[Notice, ...]:
        """Return what a webhook is still to be told, in the order of the log. One that was never told of anything begins with what is
        raised now, and does not hear of what is over; nor does one that was away for more notices than are kept hear of what was over
        before these.
        """
        told = self._told.get(webhook)
        if told is None:
            return tuple(self._still_raised())
        kept = tuple(notice for notice in self._notices if notice.position > told)
        if len(kept) < NOTICES_MAX:
            return kept
        first = kept[0].position
        return (*(one for one in self._still_raised() if told < one.position < first), *kept)

    def _still_raised(self) -> Iterator[Notice]:
        for row in sorted(self._raised.values(), key=lambda row: row.position):
            yield Notice(row.position, row.raised, AlertState.RAISED, row)

    def losses(self, now: datetime, within: timedelta) -> tuple[Loss, ...]:
        """Return the hosts that were lost lately, in that order."""
        return tuple(loss for loss in self._losses if loss.at > now - within)

    def state(self) -> State:
        """Return all that was folded as a comparable value."""
        return {
            "raised": dict(self._raised),
            "over": dict(enumerate(self._over)),
            "notices": {notice.position: notice for notice in self._notices},
            "told": dict(self._told),
            "losses": dict(enumerate(self._losses)),
            "provider of": dict(self._provider_of),
        }

    def keep(self) -> bytes:
        """Return all that was folded as JSON, for ``resume``."""
        return _KEEPER.dump(
            _Kept(
                self._raised,
                list(self._over),
                list(self._notices),
                self._told,
                list(self._losses),
                self._provider_of,
            )
        )

    def resume(self, kept: bytes) -> None:
        """Stand where ``keep`` was called."""
        parts = _KEEPER.load(kept)
        self._raised, self._told, self._provider_of = parts.raised, parts.told, parts.provider_of
        self._over.extend(parts.over)
        self._notices.extend(parts.notices)
        self._losses.extend(parts.losses)

    # -------------------------------------------------------------------- folds
    def _raise(self, event: Alert.Raised, position: int) -> None:
        name = name_of(event.originator_id)
        row = AlertRow(event.kind, event.subject, event.text, event.timestamp, position)
        self._raised[name] = row
        self._notices.append(Notice(position, event.timestamp, AlertState.RAISED, row))

    def _clear(self, event: Alert.Cleared, position: int) -> None:
        row = replace(
            self._raised.pop(name_of(event.originator_id)), cleared=event.timestamp, why=event.why
        )
        self._over.append(row)
        self._notices.append(Notice(position, event.timestamp, AlertState.CLEARED, row))

    def _tell(self, event: Webhook.Told, position: int) -> None:
        self._told[name_of(event.originator_id)] = event.position

    def _granted(self, event: Instance.Granted, position: int) -> None:
        self._provider_of[name_of(event.originator_id)] = event.provider

    def _lost(self, event: Instance.Lost, position: int) -> None:
        name = name_of(event.originator_id)
        provider = self._provider_of.pop(name, None)
        if provider is not None:
            self._losses.append(Loss(event.timestamp, provider, name))

    def _returned(self, event: Instance.Returned, position: int) -> None:
        self._provider_of.pop(name_of(event.originator_id), None)
