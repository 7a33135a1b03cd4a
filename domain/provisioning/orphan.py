"""Orphan: something at a provider that no live record of ours owns, or of ours that the provider does not know.

It may cost money, so it stays open until it is adopted, is gone, or somebody says that it is none of ours (SPEC P8).
"""

from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import ClassVar, Final

from pydantic import AwareDatetime

from xce.domain.errors import RejectedError
from xce.domain.events import ids
from xce.domain.events.base import Aggregate, ProviderFact, Why, applies
from xce.domain.events.transitions import Table, lands
from xce.domain.formats.base import Count, Money, Name
from xce.domain.formats.provider import Kind


class OrphanState(StrEnum):
    """Where an orphan is in its life."""

    REPORTED = "reported"
    RETURNING = "returning"
    ADOPTED = "adopted"
    DISMISSED = "dismissed"
    GONE = "gone"


S = OrphanState

#: States in which somebody has to do something about it.
OPEN: Final = frozenset({S.REPORTED, S.RETURNING})
ENDED: Final = frozenset(S) - OPEN

TRANSITIONS: Final[Table[OrphanState]] = {
    "Found": lands({S.GONE, S.ADOPTED}, S.REPORTED, first=True),
    "Adopted": lands({S.REPORTED}, S.ADOPTED),
    "Dismissed": lands({S.REPORTED}, S.DISMISSED),
    "ReturnIntended": lands({S.REPORTED}, S.RETURNING),
    "ReturnRefused": lands({S.RETURNING}, S.REPORTED),
    "Vanished": lands(OPEN, S.GONE),
}


class OrphanKind(StrEnum):
    """What kind of orphan it is."""

    UNKNOWN_TO_US = "unknown_to_us"
    UNKNOWN_TO_PROVIDER = "unknown_to_provider"
    NEVER_JOINED = "never_joined"


@dataclass(frozen=True, slots=True)
class What:
    """What something is that nobody owns, as far as anybody knows: what it counts as against capacities and budgets.

    Attributes:
        of: hosts, or units of a countable resource.
        item: template or resource; None: unknown.
        amount: hosts or units.
        price_per_hour: of one; None: unknown.
        project: whose budgets pay for it; None: several projects, none, or unknown.
        since: since when it is there and nobody's, as far as anybody knows; None: not known.
    """

    of: Kind = Kind.HOST
    item: str | None = None
    amount: int = 1
    price_per_hour: Decimal | None = None
    project: str | None = None
    since: datetime | None = None


UNKNOWN: Final = What()


class Orphan(Aggregate[OrphanState]):
    """One thing by the provider's id of it."""

    KIND: ClassVar[str] = ids.ORPHAN
    TRANSITIONS: ClassVar[Table[OrphanState]] = TRANSITIONS

    class Event(ProviderFact):
        """Base of this aggregate's events."""

    class Found(Event):
        """A reconciliation found it; or found it again, after it was gone.

        Attributes:
            provider: where.
            theirs: the provider's id of the machine or grant.
            kind: what kind of orphan.
            tag: the request it says it belongs to; null: it carries none.
            why: how it was found.
            of: hosts, or units of a countable resource.
            item: template or resource; null: unknown.
            amount: hosts or units that it is; of an ask, what is not known of it.
            price_per_hour: of one, as its request has it; null: unknown.
            project: whose budgets pay for it; null: several projects, none, or unknown.
            since: since when it is there and nobody's, as its provider says, else since it was seen first; null: since this event.
        """

        TOPIC: ClassVar[str] = "xce.orphan.found"
        provider: Name
        theirs: Name
        kind: OrphanKind
        tag: Name | None
        why: Why
        of: Kind = Kind.HOST
        item: Name | None = None
        amount: Count = 1
        price_per_hour: Money | None = None
        project: Name | None = None
        since: AwareDatetime | None = None

        @property
        def costs_since(self) -> datetime | None:
            """Since when it costs; None: a record of ours counts already, or it is an ask: then nothing is known to exist."""
            if self.kind is not OrphanKind.UNKNOWN_TO_US or self.theirs == self.tag:
                return None
            return self.timestamp if self.since is None else min(self.since, self.timestamp)

    class Adopted(Event):
        """It is ours from now on: a live record owns it.

        Attributes:
            owner: the record, such as ``instance:aws/i-7``.
        """

        TOPIC: ClassVar[str] = "xce.orphan.adopted"
        owner: str

    class Dismissed(Event):
        """A person says that it is none of ours; it is not reported again.

        Attributes:
            why: the reason, for people.
        """

        TOPIC: ClassVar[str] = "xce.orphan.dismissed"
        why: Why

    class ReturnIntended(Event):
        """It will be given back; durable before the provider is called.

        Attributes:
            return_id: our id of the return.
            why: the reason, for people.
        """

        TOPIC: ClassVar[str] = "xce.orphan.return-intended"
        return_id: Name
        why: Why

    class ReturnRefused(Event):
        """The provider did not take it back.

        Attributes:
            return_id: our id of the return.
            why: what the provider says.
        """

        TOPIC: ClassVar[str] = "xce.orphan.return-refused"
        return_id: Name
        why: Why

    class Vanished(Event):
        """It is not there any more: it went back, or away.

        Attributes:
            why: how we know.
        """

        TOPIC: ClassVar[str] = "xce.orphan.vanished"
        why: Why

    # ------------------------------------------------------------- commands
    @classmethod
    def find(
        cls,
        *,
        provider: str,
        theirs: str,
        kind: OrphanKind,
        tag: str | None,
        why: str,
        what: What = UNKNOWN,
        at: datetime,
        by: str,
        epoch: int,
    ) -> "Orphan":
        """Return the orphan that was never found before."""
        return cls._first(
            cls.Found,
            ids.orphan_id(provider, theirs),
            at=at,
            by=by,
            epoch=epoch,
            provider=provider,
            theirs=theirs,
            kind=kind,
            tag=tag,
            why=why,
            **asdict(what),
        )

    def find_again(
        self,
        *,
        kind: OrphanKind,
        tag: str | None,
        why: str,
        what: What = UNKNOWN,
        at: datetime,
        by: str,
        epoch: int,
    ) -> None:
        """Report it again; while it is open, and once a person has dismissed it, nothing is recorded."""
        if self.state in OPEN or self.state is S.DISMISSED:
            return
        self._require(self.Found)
        self._record(
            self.Found,
            at=at,
            by=by,
            epoch=epoch,
            provider=self.provider,
            theirs=self.theirs,
            kind=kind,
            tag=tag,
            why=why,
            **asdict(what),
        )

    def adopt(self, *, owner: str, at: datetime, by: str, epoch: int) -> None:
        """Say which record owns it now; the same owner again records nothing.

        Raises:
            IllegalTransitionError: it goes back, is dismissed or gone, or has another owner.
        """
        if self.state is S.ADOPTED and self.owner == owner:
            return
        self._require(self.Adopted)
        self._record(self.Adopted, at=at, by=by, epoch=epoch, owner=owner)

    def dismiss(self, *, why: str, at: datetime, by: str, epoch: int) -> None:
        """Say that it is none of ours; a repeat records nothing.

        Raises:
            IllegalTransitionError: it goes back, is adopted or gone.
        """
        if self.state is S.DISMISSED:
            return
        self._require(self.Dismissed)
        self._record(self.Dismissed, at=at, by=by, epoch=epoch, why=why)

    def intend_return(self, *, return_id: str, why: str, at: datetime, by: str, epoch: int) -> None:
        """Record the intent to give it back, before the provider is called; the same return again records nothing.

        Raises:
            IllegalTransitionError: it goes back under another id, is adopted, dismissed or gone.
            RejectedError: the return was refused: a new one needs a new id.
        """
        if return_id == self.return_id:
            return
        self._require(self.ReturnIntended)
        if return_id in self.refused_returns:
            raise RejectedError(f"return {return_id} of orphan {self.name} was refused before")
        self._record(self.ReturnIntended, at=at, by=by, epoch=epoch, return_id=return_id, why=why)

    def refuse_return(self, *, return_id: str, why: str, at: datetime, by: str, epoch: int) -> None:
        """Record that the provider did not take it back; a repeat records nothing.

        Raises:
            IllegalTransitionError: it does not go back.
            RejectedError: it goes back under another return id.
        """
        if return_id in self.refused_returns:
            return
        self._require(self.ReturnRefused)
        if return_id != self.return_id:
            raise RejectedError(
                f"orphan {self.name} goes back as {self.return_id}, not {return_id}"
            )
        self._record(self.ReturnRefused, at=at, by=by, epoch=epoch, return_id=return_id, why=why)

    def vanish(self, *, why: str, at: datetime, by: str, epoch: int) -> None:
        """Record that it is not there any more; if we know that it is gone, nothing is recorded.

        Raises:
            IllegalTransitionError: it is adopted or dismissed.
        """
        if self.state is S.GONE:
            return
        self._require(self.Vanished)
        self._record(self.Vanished, at=at, by=by, epoch=epoch, why=why)

    # ------------------------------------------------------ event functions
    @applies(Found)
    def _found(self, event: Found) -> None:
        if event.originator_version == 1:
            self.state = S.REPORTED
            self.refused_returns: frozenset[str] = frozenset()
        else:
            self.state = self._land(event)
        self.provider = event.provider
        self.theirs = event.theirs
        self.kind = event.kind
        self.tag = event.tag
        self.owner: str | None = None
        self.return_id: str | None = None

    @applies(Adopted)
    def _adopted(self, event: Adopted) -> None:
        self.state = self._land(event)
        self.owner = event.owner

    @applies(Dismissed)
    def _dismissed(self, event: Dismissed) -> None:
        self.state = self._land(event)

    @applies(ReturnIntended)
    def _return_intended(self, event: ReturnIntended) -> None:
        self.state = self._land(event)
        self.return_id = event.return_id

    @applies(ReturnRefused)
    def _return_refused(self, event: ReturnRefused) -> None:
        self.state = self._land(event)
        self.return_id = None
        self.refused_returns |= {event.return_id}

    @applies(Vanished)
    def _vanished(self, event: Vanished) -> None:
        self.state = self._land(event)
