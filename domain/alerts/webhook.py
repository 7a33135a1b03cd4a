"""Webhook: how far somebody outside has been told of alerts. Notices go out in the order of the log, so a position says it all."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import Field

from xce.domain.events import ids
from xce.domain.events.base import Aggregate, DomainEvent, Why, applies
from xce.domain.events.transitions import Table, lands


class WebhookState(StrEnum):
    """A webhook that was ever told of something stays known."""

    KNOWN = "known"


S = WebhookState

TRANSITIONS: Final[Table[WebhookState]] = {
    "Told": lands({S.KNOWN}, S.KNOWN, first=True),
}


class Outcome(StrEnum):
    """What became of a notice."""

    DELIVERED = "delivered"
    #: The webhook does not want it: the same again would be refused again.
    REFUSED = "refused"
    #: It could not be reached for so long that the notice is of no use any more.
    EXPIRED = "expired"


class Webhook(Aggregate[WebhookState]):
    """One webhook, by its name in the configuration."""

    KIND: ClassVar[str] = ids.WEBHOOK
    TRANSITIONS: ClassVar[Table[WebhookState]] = TRANSITIONS

    class Event(DomainEvent):
        """Base of this aggregate's events."""

    class Told(Event):
        """A notice is settled, and all before it.

        Attributes:
            position: in the log, of the event that the notice was about.
            outcome: what became of it.
            why: what went wrong, for people; empty: nothing did.
        """

        TOPIC: ClassVar[str] = "xce.webhook.told"
        position: Annotated[int, Field(ge=1)]
        outcome: Outcome
        why: Why

    # ------------------------------------------------------------- commands
    @classmethod
    def tell_first(
        cls, *, webhook: str, position: int, outcome: Outcome, why: str, at: datetime, by: str
    ) -> "Webhook":
        """Return the webhook that was never told of anything before, told."""
        return cls._first(
            cls.Told,
            ids.webhook_id(webhook),
            at=at,
            by=by,
            position=position,
            outcome=outcome,
            why=why,
        )

    def tell(self, *, position: int, outcome: Outcome, why: str, at: datetime, by: str) -> None:
        """Settle a notice; one at or before the last that is settled records nothing."""
        if position <= self.told:
            return
        self._require(self.Told)
        self._record(self.Told, at=at, by=by, position=position, outcome=outcome, why=why)

    # ------------------------------------------------------ event functions
    @applies(Told)
    def _told(self, event: Told) -> None:
        self.state = S.KNOWN
        #: Position up to which everything is settled.
        self.told = event.position
