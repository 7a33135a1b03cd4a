"""Decision: why something was asked, given back, given up or paused: what was known, and what it led to.

Only decisions that change something are recorded (decision 14), in the append of what they lead to.
"""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import Field

from xce.domain.errors import RejectedError
from xce.domain.events import ids
from xce.domain.events.base import Aggregate, ProviderFact, Why, applies
from xce.domain.events.transitions import Table, starts
from xce.domain.formats.base import Count, Money, Name


class DecisionState(StrEnum):
    """A decision has one state."""

    MADE = "made"


class Deed(StrEnum):
    """What was decided; to hold back changes nothing and is not recorded."""

    REQUEST = "request"
    RETURN = "return"
    CANCEL = "cancel"
    PAUSE = "pause"


TRANSITIONS: Final[Table[DecisionState]] = {"Made": starts(DecisionState.MADE)}


class Decision(Aggregate[DecisionState]):
    """One decision of the policy, or of a person."""

    KIND: ClassVar[str] = ids.DECISION
    TRANSITIONS: ClassVar[Table[DecisionState]] = TRANSITIONS

    class Event(ProviderFact):
        """Base of this aggregate's events."""

    class Made(Event):
        """It was decided.

        Attributes:
            provider: whom it concerns.
            deed: what was decided.
            item: template or resource; null: the whole provider.
            amount: hosts or units.
            reason: why, for people.
            jobs: the jobs it serves, in job order.
            demand_position: log position that the demand was computed at.
            demand_digest: SHA-256 of the session result with that demand; null: it was not decided on demand.
            cost_per_hour: what it adds, or ends; null: unknown.
            led_to: the aggregates it leads to, such as ``request:R1``.
        """

        TOPIC: ClassVar[str] = "xce.decision.made"
        provider: Name
        deed: Deed
        item: Name | None
        amount: Count
        reason: Why
        jobs: tuple[Name, ...]
        demand_position: Count
        demand_digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None
        cost_per_hour: Money | None
        led_to: tuple[str, ...]

    # ------------------------------------------------------------- commands
    @classmethod
    def make(
        cls,
        *,
        decision: str,
        provider: str,
        deed: Deed,
        item: str | None,
        amount: int,
        reason: str,
        jobs: Iterable[str],
        demand_position: int,
        demand_digest: str | None,
        cost_per_hour: Decimal | None,
        led_to: Iterable[str],
        at: datetime,
        by: str,
        epoch: int,
    ) -> "Decision":
        """Return a decision that was not recorded before.

        Raises:
            RejectedError: it leads to nothing.
        """
        aims = tuple(led_to)
        if not aims:
            raise RejectedError(f"decision {decision} leads to nothing: it is not recorded")
        return cls._first(
            cls.Made,
            ids.decision_id(decision),
            at=at,
            by=by,
            epoch=epoch,
            provider=provider,
            deed=deed,
            item=item,
            amount=amount,
            reason=reason,
            jobs=tuple(jobs),
            demand_position=demand_position,
            demand_digest=demand_digest,
            cost_per_hour=cost_per_hour,
            led_to=aims,
        )

    # -------------------------------------------------------------- queries
    def content(self) -> dict[str, object]:
        """Return what was decided, without when and by whom: equal for a repeat."""
        return self.made.model_dump(exclude=set(ProviderFact.model_fields))

    # ------------------------------------------------------ event functions
    @applies(Made)
    def _made(self, event: Made) -> None:
        self.state = DecisionState.MADE
        self.provider = event.provider
        self.made = event
