"""ProviderLease: who may act on a provider, under which epoch.

The epoch grows by one with each holder, and each write of a provider's facts is compared with it in the store. Renewals are
not events: they live in the primary's memory.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import Field

from xce.domain.errors import RejectedError, StaleEpochError
from xce.domain.events import ids
from xce.domain.events.base import Aggregate, DomainEvent, applies
from xce.domain.events.transitions import Table, lands, starts
from xce.domain.formats.base import Duration, Name

#: Counts the holders of a lease, from 1.
Epoch = Annotated[int, Field(ge=1)]


class LeaseState(StrEnum):
    """Whether somebody holds the lease."""

    HELD = "held"
    RELEASED = "released"
    LAPSED = "lapsed"


S = LeaseState

TRANSITIONS: Final[Table[LeaseState]] = {
    "Granted": starts(S.HELD),
    "TakenOver": lands({S.HELD}, S.HELD),
    "Released": lands({S.HELD}, S.RELEASED),
    "Lapsed": lands({S.HELD}, S.LAPSED),
    "Regranted": lands({S.RELEASED, S.LAPSED}, S.HELD),
}


class ProviderLease(Aggregate[LeaseState]):
    """The right of one provisioner instance to act on one provider."""

    KIND: ClassVar[str] = ids.LEASE
    TRANSITIONS: ClassVar[Table[LeaseState]] = TRANSITIONS

    class Event(DomainEvent):
        """Base of this aggregate's events."""

    class Granted(Event):
        """The first holder of a provider.

        Attributes:
            holder: the provisioner instance.
            epoch: 1.
            term: how long it is held without a renewal.
        """

        TOPIC: ClassVar[str] = "xce.lease.granted"
        holder: Name
        epoch: Epoch
        term: Duration

    class TakenOver(Event):
        """Another holder took the lease while it was held.

        Attributes:
            holder: the new holder; the same name is possible: it was started again.
            epoch: one more than before.
            term: how long it is held without a renewal.
        """

        TOPIC: ClassVar[str] = "xce.lease.taken-over"
        holder: Name
        epoch: Epoch
        term: Duration

    class Released(Event):
        """The holder gave the lease up."""

        TOPIC: ClassVar[str] = "xce.lease.released"

    class Lapsed(Event):
        """The holder did not renew in time."""

        TOPIC: ClassVar[str] = "xce.lease.lapsed"

    class Regranted(Event):
        """A lease that nobody held has a holder again.

        Attributes:
            holder: the provisioner instance.
            epoch: one more than before.
            term: how long it is held without a renewal.
        """

        TOPIC: ClassVar[str] = "xce.lease.regranted"
        holder: Name
        epoch: Epoch
        term: Duration

    # ------------------------------------------------------------- commands
    @classmethod
    def grant(
        cls, *, provider: str, holder: str, term: timedelta, at: datetime, by: str
    ) -> "ProviderLease":
        """Return the lease on a provider that nobody ever held; its epoch is 1.

        Raises:
            RejectedError: the term is not above 0.
        """
        _require_term(term)
        return cls._first(
            cls.Granted, ids.lease_id(provider), at=at, by=by, holder=holder, epoch=1, term=term
        )

    def take_over(self, *, holder: str, epoch: int, term: timedelta, at: datetime, by: str) -> None:
        """Give a held lease to ``holder`` under ``epoch``, the one after the present; a repeat records nothing.

        Raises:
            StaleEpochError: somebody else has it under ``epoch`` or a later one by now.
            IllegalTransitionError: nobody holds it: see ``regrant``.
            RejectedError: ``epoch`` is ahead, or the term is not above 0.
        """
        self._hand_over(self.TakenOver, holder, epoch, term, at, by)

    def regrant(self, *, holder: str, epoch: int, term: timedelta, at: datetime, by: str) -> None:
        """Give a released or lapsed lease to ``holder`` under ``epoch``; a repeat records nothing.

        Raises:
            StaleEpochError: somebody else has it under ``epoch`` or a later one by now.
            IllegalTransitionError: it is held: see ``take_over``.
            RejectedError: ``epoch`` is ahead, or the term is not above 0.
        """
        self._hand_over(self.Regranted, holder, epoch, term, at, by)

    def release(self, *, epoch: int, at: datetime, by: str) -> None:
        """The holder of ``epoch`` gives it up; a repeat records nothing.

        Raises:
            StaleEpochError: there is a later epoch.
            IllegalTransitionError: it has lapsed.
        """
        self._end(self.Released, LeaseState.RELEASED, epoch, at, by)

    def lapse(self, *, epoch: int, at: datetime, by: str) -> None:
        """Nobody renewed ``epoch`` in time; a repeat records nothing.

        Raises:
            StaleEpochError: there is a later epoch.
            IllegalTransitionError: it was released.
        """
        self._end(self.Lapsed, LeaseState.LAPSED, epoch, at, by)

    # ------------------------------------------------------ event functions
    @applies(Granted)
    def _granted(self, event: Granted) -> None:
        self.state = LeaseState.HELD
        self._give_to(event)

    @applies(TakenOver)
    def _taken_over(self, event: TakenOver) -> None:
        self.state = self._land(event)
        self._give_to(event)

    @applies(Released)
    def _released(self, event: Released) -> None:
        self.state = self._land(event)

    @applies(Lapsed)
    def _lapsed(self, event: Lapsed) -> None:
        self.state = self._land(event)

    @applies(Regranted)
    def _regranted(self, event: Regranted) -> None:
        self.state = self._land(event)
        self._give_to(event)

    # -------------------------------------------------------------- helpers
    def _give_to(self, event: Granted | TakenOver | Regranted) -> None:
        self.holder = event.holder
        self.epoch = event.epoch
        self.term = event.term
        self.held_since = event.timestamp

    def _hand_over(
        self,
        event_class: type[TakenOver | Regranted],
        holder: str,
        epoch: int,
        term: timedelta,
        at: datetime,
        by: str,
    ) -> None:
        if (epoch, holder, self.state) == (self.epoch, self.holder, LeaseState.HELD):
            return
        if epoch <= self.epoch:
            raise StaleEpochError(self.id, epoch, self.epoch)
        if epoch != self.epoch + 1:
            raise RejectedError(f"{self.id}: epoch {epoch} is ahead; wanted {self.epoch + 1}")
        _require_term(term)
        self._require(event_class)
        self._record(event_class, at=at, by=by, holder=holder, epoch=epoch, term=term)

    def _end(
        self,
        event_class: type[DomainEvent],
        target: LeaseState,
        epoch: int,
        at: datetime,
        by: str,
    ) -> None:
        if epoch != self.epoch:
            raise StaleEpochError(self.id, epoch, self.epoch)
        if self.state is target:
            return
        self._require(event_class)
        self._record(event_class, at=at, by=by)


def _require_term(term: timedelta) -> None:
    if term <= timedelta(0):
        raise RejectedError(f"the term of a lease is above 0, found {term}")
