"""Provider: what a provider says it is, and what of it is paused.

That a pause ends at its time is no event: ``until`` is kept, and whoever reads it compares it with the clock.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Final

from xce.domain.errors import RejectedError
from xce.domain.events import ids
from xce.domain.events.base import Aggregate, DomainEvent, Why, applies
from xce.domain.events.transitions import Table, lands, stays
from xce.domain.formats.base import Name, Time
from xce.domain.formats.provider import ProviderDescription


class ProviderState(StrEnum):
    """A provider has one state: it has described itself."""

    KNOWN = "known"


S = ProviderState

TRANSITIONS: Final[Table[ProviderState]] = {
    "Described": lands({S.KNOWN}, S.KNOWN, first=True),
    "Paused": stays({S.KNOWN}),
    "Resumed": stays({S.KNOWN}),
}


@dataclass(frozen=True, slots=True)
class PauseOf:
    """Until when an item is not asked for, and why."""

    until: datetime
    why: str


class Provider(Aggregate[ProviderState]):
    """Something that creates hosts or lends counts."""

    KIND: ClassVar[str] = ids.PROVIDER
    TRANSITIONS: ClassVar[Table[ProviderState]] = TRANSITIONS

    class Event(DomainEvent):
        """Base of this aggregate's events."""

    class Described(Event):
        """A provider said what it is: for the first time, or something else than before.

        Attributes:
            description: the whole description; it replaces the one before.
        """

        TOPIC: ClassVar[str] = "xce.provider.described"
        description: ProviderDescription

    class Paused(Event):
        """Nothing is asked of the provider, or of one item of it, for a while.

        Attributes:
            item: template or resource; null: the whole provider.
            until: when it ends by itself.
            why: the reason, for people.
        """

        TOPIC: ClassVar[str] = "xce.provider.paused"
        item: Name | None
        until: Time
        why: Why

    class Resumed(Event):
        """A pause was ended before its time.

        Attributes:
            item: template or resource; null: the whole provider.
        """

        TOPIC: ClassVar[str] = "xce.provider.resumed"
        item: Name | None

    # ------------------------------------------------------------- commands
    @classmethod
    def describe_first(
        cls, *, description: ProviderDescription, at: datetime, by: str
    ) -> "Provider":
        """Return the provider that was never heard of before."""
        return cls._first(
            cls.Described,
            ids.provider_id(description.name),
            at=at,
            by=by,
            description=description,
        )

    def describe(self, *, description: ProviderDescription, at: datetime, by: str) -> None:
        """Record what the provider says it is; the same description again records nothing.

        Raises:
            RejectedError: the description is of another provider.
        """
        if description.name != self.name:
            raise RejectedError(
                f"provider {self.name} cannot become {description.name!r}; wanted the same name"
            )
        if description != self.description:
            self._record(self.Described, at=at, by=by, description=description)

    def pause(self, *, item: str | None, until: datetime, why: str, at: datetime, by: str) -> None:
        """Ask nothing of ``item`` (None: of the provider) until then; the same pause again records nothing.

        Raises:
            RejectedError: ``until`` is not after ``at``.
        """
        if until <= at:
            raise RejectedError(f"a pause until {until.isoformat()} is over at {at.isoformat()}")
        if self.pauses.get(item) != PauseOf(until, why):
            self._record(self.Paused, at=at, by=by, item=item, until=until, why=why)

    def resume(self, *, item: str | None, at: datetime, by: str) -> None:
        """End a pause; if there is none, or it ended by itself, nothing is recorded."""
        pause = self.pauses.get(item)
        if pause is not None and pause.until > at:
            self._record(self.Resumed, at=at, by=by, item=item)

    # ------------------------------------------------------ event functions
    @applies(Described)
    def _described(self, event: Described) -> None:
        if event.originator_version == 1:
            self.state = ProviderState.KNOWN
            self.pauses: dict[str | None, PauseOf] = {}
        self.description = event.description

    @applies(Paused)
    def _paused(self, event: Paused) -> None:
        self.pauses[event.item] = PauseOf(event.until, event.why)

    @applies(Resumed)
    def _resumed(self, event: Resumed) -> None:
        self.pauses.pop(event.item, None)
