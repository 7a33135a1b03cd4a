"""Provider: what a provider says it is, and what of it is paused.

That a pause ends at its time is no event: ``until`` is kept, and whoever reads it compares it with the clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Final

from xce.domain.errors import RejectedError
from xce.domain.events import ids
from xce.domain.events.base import Aggregate, DomainEvent, Why, applies
from xce.domain.events.transitions import Table, lands, stays
from xce.domain.formats.base import Count, Name, Time
from xce.domain.formats.provider import ProviderDescription


class ProviderState(StrEnum):
    """A provider has one state: it has described itself."""

    KNOWN = "known"


S = ProviderState

TRANSITIONS: Final[Table[ProviderState]] = {
    "Described": lands({S.KNOWN}, S.KNOWN, first=True),
    "Paused": stays({S.KNOWN}),
    "Resumed": stays({S.KNOWN}),
    "Learned": stays({S.KNOWN}),
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

    class Learned(Event):
        """A host joined with other totals than its template promises: from now on these are counted on (field case F17).

        Attributes:
            template: the kind of host.
            total: the least that was measured, of each consumable that is promised and differs; in base units.
            host: the host that was measured.
        """

        TOPIC: ClassVar[str] = "xce.provider.learned"
        template: Name
        total: dict[Name, Count]
        host: Name

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

    def learn(
        self, *, template: str, total: Mapping[str, int], host: str, at: datetime, by: str
    ) -> None:
        """Record what a joined host has, where it is not what was promised, or less than was measured before."""
        offer = next(
            (one for one in self.description.templates if one.template_id == template), None
        )
        if offer is None:
            return
        known = self.learned.get(template, {})
        news = {
            name: amount
            for name, promised in offer.provides.items()
            if (amount := total.get(name)) is not None
            and (amount < known[name] if name in known else amount != promised)
        }
        if news:
            merged = {**known, **news}
            self._record(self.Learned, at=at, by=by, template=template, total=merged, host=host)

    # ------------------------------------------------------ event functions
    @applies(Described)
    def _described(self, event: Described) -> None:
        if event.originator_version == 1:
            self.state = ProviderState.KNOWN
            self.pauses: dict[str | None, PauseOf] = {}
            #: Measured totals by template, where they are not as promised.
            self.learned: dict[str, Mapping[str, int]] = {}
        else:
            for name in changed_promises(self.description, event.description):
                self.learned.pop(name, None)
        self.description: ProviderDescription = event.description

    @applies(Learned)
    def _learned(self, event: Learned) -> None:
        self.learned[event.template] = event.total

    @applies(Paused)
    def _paused(self, event: Paused) -> None:
        self.pauses[event.item] = PauseOf(event.until, event.why)

    @applies(Resumed)
    def _resumed(self, event: Resumed) -> None:
        self.pauses.pop(event.item, None)


def changed_promises(before: ProviderDescription, after: ProviderDescription) -> frozenset[str]:
    """Return the templates that promise other totals than before: what was measured of the old ones says nothing of these."""
    promised = {one.template_id: one.provides for one in before.templates}
    return frozenset(
        one.template_id
        for one in after.templates
        if one.template_id in promised and promised[one.template_id] != one.provides
    )
