"""Site: the freeze switch. While the site is frozen nothing new is asked, drained or given back; what is under way is followed to its end."""

from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Final

from xce.domain.events import ids
from xce.domain.events.base import Aggregate, DomainEvent, Why, applies
from xce.domain.events.transitions import Table, lands


class SiteState(StrEnum):
    """Whether anything new is asked or given back."""

    RUNNING = "running"
    FROZEN = "frozen"


S = SiteState

TRANSITIONS: Final[Table[SiteState]] = {
    "Frozen": lands({S.RUNNING}, S.FROZEN, first=True),
    "Unfrozen": lands({S.FROZEN}, S.RUNNING),
}


class Site(Aggregate[SiteState]):
    """The one site of a log; one that was never frozen has no record, and runs."""

    KIND: ClassVar[str] = ids.SITE
    TRANSITIONS: ClassVar[Table[SiteState]] = TRANSITIONS

    class Event(DomainEvent):
        """Base of this aggregate's events."""

    class Frozen(Event):
        """Nothing new is asked, drained or given back from now on.

        Attributes:
            why: the reason, for people.
        """

        TOPIC: ClassVar[str] = "xce.site.frozen"
        why: Why

    class Unfrozen(Event):
        """The policy acts again.

        Attributes:
            why: the reason, for people.
        """

        TOPIC: ClassVar[str] = "xce.site.unfrozen"
        why: Why

    # ------------------------------------------------------------- commands
    @classmethod
    def freeze_first(cls, *, why: str, at: datetime, by: str) -> "Site":
        """Return the site that was never frozen, frozen."""
        return cls._first(cls.Frozen, ids.site_id(), at=at, by=by, why=why)

    def freeze(self, *, why: str, at: datetime, by: str) -> None:
        """Freeze it; while it is frozen nothing is recorded."""
        if self.state is S.FROZEN:
            return
        self._require(self.Frozen)
        self._record(self.Frozen, at=at, by=by, why=why)

    def unfreeze(self, *, why: str, at: datetime, by: str) -> None:
        """Let the policy act again; a repeat records nothing."""
        if self.state is S.RUNNING:
            return
        self._require(self.Unfrozen)
        self._record(self.Unfrozen, at=at, by=by, why=why)

    # ------------------------------------------------------ event functions
    @applies(Frozen)
    def _frozen(self, event: Frozen) -> None:
        self.state = S.FROZEN
        self.why = event.why

    @applies(Unfrozen)
    def _unfrozen(self, event: Unfrozen) -> None:
        self.state = self._land(event)
        self.why = ""
