"""Refusals: what a caller tried on one day and may not do, for the audit trail.

Equal attempts are counted and noted together, so that nobody can fill the log by trying: see ``domain/engine/refusal_notes.py``.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import Field

from xce.domain.events import ids
from xce.domain.events.base import Aggregate, DomainEvent, Why, applies
from xce.domain.events.transitions import Table, lands
from xce.domain.formats.base import Name


class RefusalsState(StrEnum):
    """A day's refusals have one state."""

    NOTED = "noted"


TRANSITIONS: Final[Table[RefusalsState]] = {
    "Noted": lands({RefusalsState.NOTED}, RefusalsState.NOTED, first=True)
}


class Refusals(Aggregate[RefusalsState]):
    """What was refused to one caller on one day."""

    KIND: ClassVar[str] = ids.REFUSALS
    TRANSITIONS: ClassVar[Table[RefusalsState]] = TRANSITIONS

    class Event(DomainEvent):
        """Base of this aggregate's events."""

    class Noted(Event):
        """A caller tried what it may not do.

        Attributes:
            action: what was tried, such as ``open-request`` or ``read-costs``; ``authenticate`` where nobody knows who called.
            count: equal attempts since the last such note.
            why: the answer that was given.
        """

        TOPIC: ClassVar[str] = "xce.refusals.noted"
        action: Name
        count: Annotated[int, Field(ge=1)]
        why: Why

    # ------------------------------------------------------------- commands
    @classmethod
    def note_first(
        cls, *, caller: str, day: str, action: str, count: int, why: str, at: datetime
    ) -> "Refusals":
        """Return the first note of a day."""
        return cls._first(
            cls.Noted,
            ids.refusals_id(caller, day),
            at=at,
            by=caller,
            action=action,
            count=count,
            why=why,
        )

    def note(self, *, caller: str, action: str, count: int, why: str, at: datetime) -> None:
        """Note a further attempt of the day."""
        self._record(self.Noted, at=at, by=caller, action=action, count=count, why=why)

    # ------------------------------------------------------ event functions
    @applies(Noted)
    def _noted(self, event: Noted) -> None:
        self.state = RefusalsState.NOTED
