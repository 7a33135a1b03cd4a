"""Alert: something is not as it should be, from when it was seen until it is over. Raised once, however often it is seen.

That it was raised is an event, so a restart neither loses it nor raises it again.
"""

from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Final

from xce.domain.events import ids
from xce.domain.events.base import Aggregate, DomainEvent, Why, applies
from xce.domain.events.transitions import Table, lands
from xce.domain.formats.base import Name


class AlertState(StrEnum):
    """Whether it is as alerted now."""

    RAISED = "raised"
    CLEARED = "cleared"


S = AlertState

TRANSITIONS: Final[Table[AlertState]] = {
    "Raised": lands({S.CLEARED}, S.RAISED, first=True),
    "Cleared": lands({S.RAISED}, S.CLEARED),
}


class AlertKind(StrEnum):
    """What an alert may be about."""

    #: A budget is used up to a share that the site has set.
    BUDGET = "budget"
    #: Something costs money that nobody owns, or is gone.
    ORPHAN = "orphan"
    #: A provider, or everything that it offers, is not asked for a while.
    PAUSED = "paused"
    #: What is in use of a shared resource is not what the books have.
    DRIFT = "drift"
    #: Many hosts vanished at once, or a listing says so.
    MASS_LOSS = "mass_loss"
    #: A controller had to take the place of one that did not end by itself.
    TAKEN_OVER = "taken_over"
    #: Something of a provider costs money, and nobody acts on the provider.
    UNATTENDED = "unattended"
    #: The scheduler can hold no session: demand is unknown, and nothing is bought or given back for it.
    NO_SESSION = "no_session"


class Alert(Aggregate[AlertState]):
    """One thing to be alerted of, by its kind and what it is about."""

    KIND: ClassVar[str] = ids.ALERT
    TRANSITIONS: ClassVar[Table[AlertState]] = TRANSITIONS

    class Event(DomainEvent):
        """Base of this aggregate's events."""

    class Raised(Event):
        """It is so from now on; or again, after it was over.

        Attributes:
            kind: of what kind.
            subject: what it is about, such as a provider's name; with the kind it names the alert.
            text: for people.
        """

        TOPIC: ClassVar[str] = "xce.alert.raised"
        kind: AlertKind
        subject: Name
        text: Why

    class Cleared(Event):
        """It is over.

        Attributes:
            why: the reason, for people.
        """

        TOPIC: ClassVar[str] = "xce.alert.cleared"
        why: Why

    # ------------------------------------------------------------- commands
    @classmethod
    def raise_first(
        cls, *, kind: AlertKind, subject: str, text: str, at: datetime, by: str
    ) -> "Alert":
        """Return the alert that was never raised before, raised."""
        return cls._first(
            cls.Raised,
            ids.alert_id(kind, subject),
            at=at,
            by=by,
            kind=kind,
            subject=subject,
            text=text,
        )

    def raise_again(self, *, text: str, at: datetime, by: str) -> None:
        """Raise it again; while it is raised nothing is recorded."""
        if self.state is S.RAISED:
            return
        self._require(self.Raised)
        self._record(self.Raised, at=at, by=by, kind=self.kind, subject=self.subject, text=text)

    def clear(self, *, why: str, at: datetime, by: str) -> None:
        """Say that it is over; a repeat records nothing."""
        if self.state is S.CLEARED:
            return
        self._require(self.Cleared)
        self._record(self.Cleared, at=at, by=by, why=why)

    # ------------------------------------------------------ event functions
    @applies(Raised)
    def _raised(self, event: Raised) -> None:
        self.state = S.RAISED
        self.kind = event.kind
        self.subject = event.subject

    @applies(Cleared)
    def _cleared(self, event: Cleared) -> None:
        self.state = self._land(event)
