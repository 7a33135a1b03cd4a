"""Grant: one amount of a countable resource that a request brought, given back whole or in parts.

What is in return does not count as ours any more (the resource's total fell when the return started), but the provider still
has it lent to us until it confirms.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import ClassVar, Final

from xce.domain.errors import RejectedError
from xce.domain.events import ids
from xce.domain.events.base import Aggregate, ProviderFact, Why, applies
from xce.domain.events.transitions import Table, lands, starts, stays
from xce.domain.formats.base import Amount, Money, Name, Time


class GrantState(StrEnum):
    """Where a grant is in its life."""

    ACTIVE = "active"
    RETURNING = "returning"
    CLOSED = "closed"
    LOST = "lost"


S = GrantState

#: States in which the provider still has (a part of) it lent to us.
LIVE: Final = frozenset({S.ACTIVE, S.RETURNING})

TRANSITIONS: Final[Table[GrantState]] = {
    "Granted": starts(S.ACTIVE),
    "ReturnStarted": lands(LIVE, S.RETURNING),
    "ReturnAccepted": stays({S.RETURNING}),
    "ReturnConfirmed": lands({S.RETURNING}, S.RETURNING, S.ACTIVE, S.CLOSED),
    "ReturnRefused": lands({S.RETURNING}, S.RETURNING, S.ACTIVE),
    "Extended": stays(LIVE),
    "PartLost": lands(LIVE, S.RETURNING, S.ACTIVE, S.CLOSED),
    "Lost": lands(LIVE, S.LOST),
}


class ReturnState(StrEnum):
    """What became of one return of a grant."""

    OPEN = "open"
    CONFIRMED = "confirmed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class PartialReturn:
    """One return of a part of a grant, or of all of it."""

    amount: int
    state: ReturnState


class Grant(Aggregate[GrantState]):
    """One amount that a provider lends us."""

    KIND: ClassVar[str] = ids.GRANT
    TRANSITIONS: ClassVar[Table[GrantState]] = TRANSITIONS

    class Event(ProviderFact):
        """Base of this aggregate's events."""

    class Granted(Event):
        """The provider lends it. Saved together with ``Request.AmountGranted`` and ``ElasticResource.Borrowed``.

        Attributes:
            request_id: the request that brought it.
            provider: who lends.
            resource: the shared resource.
            amount: units.
            hold_until: nothing of it goes back before; null: at any time.
            expires_at: when the lender ends it by itself; null: never.
            price_per_hour: of one unit; null: unknown.
            project: the project whose budgets pay for it; null: several projects, or none.
        """

        TOPIC: ClassVar[str] = "xce.grant.granted"
        request_id: Name
        provider: Name
        resource: Name
        amount: Amount
        hold_until: Time | None
        expires_at: Time | None
        price_per_hour: Money | None
        project: Name | None = None

    class ReturnStarted(Event):
        """A part goes back. Saved with ``ElasticResource.GivenBack``, before the provider is called.

        Attributes:
            return_id: our id of the return.
            amount: units.
        """

        TOPIC: ClassVar[str] = "xce.grant.return-started"
        return_id: Name
        amount: Amount

    class ReturnAccepted(Event):
        """The provider took the return on.

        Attributes:
            return_id: our id of the return.
            provider_return_id: the provider's id of it.
        """

        TOPIC: ClassVar[str] = "xce.grant.return-accepted"
        return_id: Name
        provider_return_id: Name

    class ReturnConfirmed(Event):
        """The provider has it back.

        Attributes:
            return_id: our id of the return.
        """

        TOPIC: ClassVar[str] = "xce.grant.return-confirmed"
        return_id: Name

    class ReturnRefused(Event):
        """The provider did not take it back. Saved with ``ElasticResource.PutBack``.

        Attributes:
            return_id: our id of the return.
            why: what the provider says.
        """

        TOPIC: ClassVar[str] = "xce.grant.return-refused"
        return_id: Name
        why: Why

    class Extended(Event):
        """The lender put its end off.

        Attributes:
            expires_at: when the lender ends it by itself now; null: never.
        """

        TOPIC: ClassVar[str] = "xce.grant.extended"
        expires_at: Time | None

    class PartLost(Event):
        """The lender has less of it lent to us than we counted. Saved with ``ElasticResource.PartLost``.

        Attributes:
            amount: units that are gone without our return.
            why: how we know.
        """

        TOPIC: ClassVar[str] = "xce.grant.part-lost"
        amount: Amount
        why: Why

    class Lost(Event):
        """What was left of it is gone without our return. Saved with ``ElasticResource.GrantLost``.

        Attributes:
            why: how we know: its term ended, or the provider does not list it any more.
        """

        TOPIC: ClassVar[str] = "xce.grant.lost"
        why: Why

    # ------------------------------------------------------------- commands
    @classmethod
    def grant(
        cls,
        *,
        grant: str,
        request_id: str,
        provider: str,
        resource: str,
        amount: int,
        hold_until: datetime | None,
        expires_at: datetime | None,
        price_per_hour: Decimal | None,
        project: str | None = None,
        at: datetime,
        by: str,
        epoch: int,
    ) -> "Grant":
        """Return the grant that a request brought; ``grant`` is our name for it.

        Raises:
            RejectedError: the amount is below 1.
        """
        if amount < 1:
            raise RejectedError(f"grant {grant} is of at least 1, found {amount}")
        return cls._first(
            cls.Granted,
            ids.grant_id(grant),
            at=at,
            by=by,
            epoch=epoch,
            request_id=request_id,
            provider=provider,
            resource=resource,
            amount=amount,
            hold_until=hold_until,
            expires_at=expires_at,
            price_per_hour=price_per_hour,
            project=project,
        )

    def start_return(
        self, *, return_id: str, amount: int, at: datetime, by: str, epoch: int
    ) -> None:
        """Record that a part goes back; the same return again records nothing.

        Raises:
            IllegalTransitionError: it is closed or lost.
            RejectedError: the hold is not over; more than is left; or the id stands for another amount.
        """
        known = self.returns.get(return_id)
        if known is not None:
            if known.amount != amount:
                raise RejectedError(f"return {return_id} is of {known.amount}, found {amount}")
            return
        self._require(self.ReturnStarted)
        if self.hold_until is not None and at < self.hold_until:
            raise RejectedError(
                f"grant {self.name} must be kept until {self.hold_until.isoformat()}"
            )
        if not 1 <= amount <= self.active:
            raise RejectedError(
                f"grant {self.name} has {self.active} left; {amount} of it cannot go back"
            )
        self._record(
            self.ReturnStarted, at=at, by=by, epoch=epoch, return_id=return_id, amount=amount
        )

    def accept_return(
        self, *, return_id: str, provider_return_id: str, at: datetime, by: str, epoch: int
    ) -> None:
        """Record that the provider took a return on; the same id again, or of a return that is over, records nothing.

        Raises:
            RejectedError: no such return.
        """
        known = self.returns.get(return_id)
        if known is None:
            raise RejectedError(f"grant {self.name} has no return {return_id}")
        if (
            known.state is not ReturnState.OPEN
            or self.state not in LIVE
            or self.accepted_returns.get(return_id) == provider_return_id
        ):
            return
        self._require(self.ReturnAccepted)
        self._record(
            self.ReturnAccepted,
            at=at,
            by=by,
            epoch=epoch,
            return_id=return_id,
            provider_return_id=provider_return_id,
        )

    def confirm_return(self, *, return_id: str, at: datetime, by: str, epoch: int) -> None:
        """Record that the provider has it back; a repeat, or of a grant that is lost, records nothing.

        Raises:
            RejectedError: no such return, or it was refused.
        """
        if self._settle(return_id, ReturnState.CONFIRMED):
            self._record(self.ReturnConfirmed, at=at, by=by, epoch=epoch, return_id=return_id)

    def refuse_return(self, *, return_id: str, why: str, at: datetime, by: str, epoch: int) -> None:
        """Record that the provider did not take it back; a repeat, or of a grant that is lost, records nothing.

        Raises:
            RejectedError: no such return, or it was confirmed.
        """
        if self._settle(return_id, ReturnState.REFUSED):
            self._record(
                self.ReturnRefused, at=at, by=by, epoch=epoch, return_id=return_id, why=why
            )

    def extend(self, *, expires_at: datetime | None, at: datetime, by: str, epoch: int) -> None:
        """Record that the lender put its end off; the same end again, or of a grant that is over, records nothing."""
        if self.state not in LIVE or self.expires_at == expires_at:
            return
        self._require(self.Extended)
        self._record(self.Extended, at=at, by=by, epoch=epoch, expires_at=expires_at)

    def lose_part(self, *, amount: int, why: str, at: datetime, by: str, epoch: int) -> None:
        """Record that a part is gone without our return.

        Raises:
            IllegalTransitionError: it is closed or lost.
            RejectedError: it is more than is ours and not going back.
        """
        self._require(self.PartLost)
        if not 1 <= amount <= self.active:
            raise RejectedError(
                f"grant {self.name} has {self.active} left; {amount} of it cannot be lost"
            )
        self._record(self.PartLost, at=at, by=by, epoch=epoch, amount=amount, why=why)

    def lose(self, *, why: str, at: datetime, by: str, epoch: int) -> None:
        """Record that what is left is gone without our return; if nothing is left, nothing is recorded."""
        if self.state not in LIVE:
            return
        self._require(self.Lost)
        self._record(self.Lost, at=at, by=by, epoch=epoch, why=why)

    # -------------------------------------------------------------- queries
    @property
    def active(self) -> int:
        """Units that are ours and not going back; 0 once lost."""
        return 0 if self.state is S.LOST else self.amount - self.returned - self.returning

    # ------------------------------------------------------ event functions
    @applies(Granted)
    def _granted(self, event: Granted) -> None:
        self.state = S.ACTIVE
        self.request_id = event.request_id
        self.provider = event.provider
        self.resource = event.resource
        self.amount = event.amount
        self.hold_until = event.hold_until
        self.expires_at = event.expires_at
        self.price_per_hour = event.price_per_hour
        self.project = event.project
        #: Units that the provider has back, those included that were lost.
        self.returned = 0
        #: Units that are to go back and not confirmed.
        self.returning = 0
        #: All returns there ever were, by return id.
        self.returns: dict[str, PartialReturn] = {}
        #: The provider's id of each return it took on, by ours.
        self.accepted_returns: dict[str, str] = {}

    @applies(ReturnStarted)
    def _return_started(self, event: ReturnStarted) -> None:
        self.state = self._land(event)
        self.returning += event.amount
        self.returns[event.return_id] = PartialReturn(event.amount, ReturnState.OPEN)

    @applies(ReturnAccepted)
    def _return_accepted(self, event: ReturnAccepted) -> None:
        self.accepted_returns[event.return_id] = event.provider_return_id

    @applies(ReturnConfirmed)
    def _return_confirmed(self, event: ReturnConfirmed) -> None:
        amount = self._end_return(event.return_id, ReturnState.CONFIRMED)
        self.returned += amount
        self.state = self._land(event, self._resting_state())

    @applies(ReturnRefused)
    def _return_refused(self, event: ReturnRefused) -> None:
        self._end_return(event.return_id, ReturnState.REFUSED)
        self.state = self._land(event, self._resting_state())

    @applies(Extended)
    def _extended(self, event: Extended) -> None:
        self.expires_at = event.expires_at

    @applies(PartLost)
    def _part_lost(self, event: PartLost) -> None:
        self.returned += event.amount
        self.state = self._land(event, self._resting_state())

    @applies(Lost)
    def _lost(self, event: Lost) -> None:
        self.state = self._land(event)

    # -------------------------------------------------------------- helpers
    def _settle(self, return_id: str, wanted: ReturnState) -> bool:
        known = self.returns.get(return_id)
        if known is None:
            raise RejectedError(f"grant {self.name} has no return {return_id}")
        if known.state is wanted or self.state is S.LOST:
            return False
        if known.state is not ReturnState.OPEN:
            raise RejectedError(f"return {return_id} of grant {self.name} was {known.state}")
        return True

    def _end_return(self, return_id: str, state: ReturnState) -> int:
        amount = self.returns[return_id].amount
        self.returns[return_id] = PartialReturn(amount, state)
        self.returning -= amount
        return amount

    def _resting_state(self) -> GrantState:
        if self.returning:
            return S.RETURNING
        return S.CLOSED if self.returned == self.amount else S.ACTIVE
