"""ElasticResource: the total of a shared resource: what is owned, and what each grant lends.

total = owned + borrowed. An amount that goes back leaves the total before the provider is told, and comes back into it if the
provider refuses. Bookings and observations change none of these numbers.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar, Final

from xce.domain.errors import RejectedError
from xce.domain.events import ids
from xce.domain.events.base import Aggregate, DomainEvent, Why, applies
from xce.domain.events.transitions import Table, starts, stays
from xce.domain.formats.base import Amount, Count, Duration, Name


class ResourceState(StrEnum):
    """An elastic resource has one state: the configuration declares it."""

    DECLARED = "declared"


S = ResourceState

TRANSITIONS: Final[Table[ResourceState]] = {
    "Declared": starts(S.DECLARED),
    "SettingsChanged": stays({S.DECLARED}),
    "OwnedSet": stays({S.DECLARED}),
    "Borrowed": stays({S.DECLARED}),
    "GivenBack": stays({S.DECLARED}),
    "PutBack": stays({S.DECLARED}),
    "PartLost": stays({S.DECLARED}),
    "GrantLost": stays({S.DECLARED}),
}


@dataclass(frozen=True, slots=True)
class Share:
    """What one grant lends: ``amount`` of it is in the total now."""

    granted: int
    amount: int
    lost: bool = False


@dataclass(frozen=True, slots=True)
class GivingBack:
    """A return that left the total; ``put_back`` once the provider refused it."""

    grant_id: str
    amount: int
    put_back: bool = False


class ElasticResource(Aggregate[ResourceState]):
    """A cluster-wide countable resource with an owned base and a provider that can lend more."""

    KIND: ClassVar[str] = ids.SHARED
    TRANSITIONS: ClassVar[Table[ResourceState]] = TRANSITIONS

    class Event(DomainEvent):
        """Base of this aggregate's events."""

    class Declared(Event):
        """The configuration declares it.

        Attributes:
            owned: units that are always there.
            provider: who can lend more; null: nobody.
            max_borrow: most that may be lent at once, returning and asked included.
            step: it is borrowed and given back in multiples of it.
            idle_return_after: how long an amount must be unused before it goes back.
            min_hold: how long a grant is kept at least; its lender may ask for longer.
        """

        TOPIC: ClassVar[str] = "xce.shared.declared"
        owned: Count
        provider: Name | None
        max_borrow: Count
        step: Amount
        idle_return_after: Duration
        min_hold: Duration

    class SettingsChanged(Event):
        """The configuration declares it otherwise; what is owned and borrowed stays.

        Attributes:
            provider: who can lend more; null: nobody.
            max_borrow: most that may be lent at once, returning and asked included; may be below what is borrowed.
            step: it is borrowed and given back in multiples of it.
            idle_return_after: how long an amount must be unused before it goes back.
            min_hold: how long a grant is kept at least; its lender may ask for longer.
        """

        TOPIC: ClassVar[str] = "xce.shared.settings-changed"
        provider: Name | None
        max_borrow: Count
        step: Amount
        idle_return_after: Duration
        min_hold: Duration

    class OwnedSet(Event):
        """An administrator set the owned base; it may fall below what is in use, which then shows as over.

        Attributes:
            owned: units that are always there.
        """

        TOPIC: ClassVar[str] = "xce.shared.owned-set"
        owned: Count

    class Borrowed(Event):
        """A grant came into the total.

        Attributes:
            grant_id: the grant.
            amount: units.
        """

        TOPIC: ClassVar[str] = "xce.shared.borrowed"
        grant_id: Name
        amount: Amount

    class GivenBack(Event):
        """An amount left the total; the provider is told after this.

        Attributes:
            return_id: our id of the return.
            grant_id: the grant it is of.
            amount: units.
            occupied: what was in use or booked at that moment; the total does not fall below it.
        """

        TOPIC: ClassVar[str] = "xce.shared.given-back"
        return_id: Name
        grant_id: Name
        amount: Amount
        occupied: Count

    class PutBack(Event):
        """The provider refused a return: the amount is in the total again.

        Attributes:
            return_id: our id of the return.
            grant_id: the grant it is of.
            amount: units.
            why: what the provider says.
        """

        TOPIC: ClassVar[str] = "xce.shared.put-back"
        return_id: Name
        grant_id: Name
        amount: Amount
        why: Why

    class PartLost(Event):
        """The lender has less of a grant lent to us than we counted: the difference is not in the total any more.

        Attributes:
            grant_id: the grant.
            amount: units that left the total; it may fall below what is in use, which then shows as over.
        """

        TOPIC: ClassVar[str] = "xce.shared.part-lost"
        grant_id: Name
        amount: Amount

    class GrantLost(Event):
        """What was left of a grant in the total is gone without our return.

        Attributes:
            grant_id: the grant.
            amount: units that left the total; 0 when all of it was going back.
        """

        TOPIC: ClassVar[str] = "xce.shared.grant-lost"
        grant_id: Name
        amount: Count

    # ------------------------------------------------------------- commands
    @classmethod
    def declare(
        cls,
        *,
        resource: str,
        owned: int,
        provider: str | None,
        max_borrow: int,
        step: int,
        idle_return_after: timedelta = timedelta(0),
        min_hold: timedelta = timedelta(0),
        at: datetime,
        by: str,
    ) -> "ElasticResource":
        """Return the resource that was not declared before.

        Raises:
            RejectedError: a number is out of range.
        """
        _require_numbers(owned, max_borrow, step)
        return cls._first(
            cls.Declared,
            ids.shared_id(resource),
            at=at,
            by=by,
            owned=owned,
            provider=provider,
            max_borrow=max_borrow,
            step=step,
            idle_return_after=idle_return_after,
            min_hold=min_hold,
        )

    def change_settings(
        self,
        *,
        provider: str | None,
        max_borrow: int,
        step: int,
        idle_return_after: timedelta = timedelta(0),
        min_hold: timedelta = timedelta(0),
        at: datetime,
        by: str,
    ) -> None:
        """Declare it otherwise; equal settings record nothing.

        Raises:
            RejectedError: a number is out of range.
        """
        _require_numbers(self.owned, max_borrow, step)
        before = (self.provider, self.max_borrow, self.step, self.idle_return_after, self.min_hold)
        if before == (provider, max_borrow, step, idle_return_after, min_hold):
            return
        self._record(
            self.SettingsChanged,
            at=at,
            by=by,
            provider=provider,
            max_borrow=max_borrow,
            step=step,
            idle_return_after=idle_return_after,
            min_hold=min_hold,
        )

    def set_owned(self, *, owned: int, at: datetime, by: str) -> None:
        """Set the owned base, also below what is in use; the same number records nothing.

        Raises:
            RejectedError: below 0.
        """
        _require_numbers(owned, self.max_borrow, self.step)
        if owned != self.owned:
            self._record(self.OwnedSet, at=at, by=by, owned=owned)

    def borrow(self, *, grant_id: str, amount: int, at: datetime, by: str) -> None:
        """Take a grant into the total, whatever the settings allow: the provider thinks that we have it.

        The same grant again records nothing.

        Raises:
            RejectedError: below 1, or the grant was of another amount.
        """
        share = self.shares.get(grant_id)
        if share is not None:
            if share.granted != amount:
                raise RejectedError(f"grant {grant_id} is of {share.granted}, found {amount}")
            return
        if amount < 1:
            raise RejectedError(f"grant {grant_id} is of at least 1, found {amount}")
        self._record(self.Borrowed, at=at, by=by, grant_id=grant_id, amount=amount)

    def give_back(
        self, *, return_id: str, grant_id: str, amount: int, occupied: int, at: datetime, by: str
    ) -> None:
        """Take an amount out of the total; the provider is told only after that is saved. A repeat records nothing.

        Args:
            return_id: our id of the return.
            grant_id: the grant it is of.
            amount: units.
            occupied: what is in use or booked now. Where that is unknown nothing may go back.
            at: now.
            by: who.

        Raises:
            RejectedError: more than the grant has in the total; the total would fall below ``occupied``; or the id stands for
                another return.
        """
        known = self.returns.get(return_id)
        if known is not None:
            if (known.grant_id, known.amount) != (grant_id, amount):
                raise RejectedError(
                    f"return {return_id} is of {known.amount} of grant {known.grant_id},"
                    f" found {amount} of {grant_id}"
                )
            return
        share = self.shares.get(grant_id)
        left = 0 if share is None else share.amount
        if not 1 <= amount <= left:
            raise RejectedError(
                f"{self.name}: grant {grant_id} has {left} in the total; {amount} of it cannot go back"
            )
        if self.total - amount < occupied:
            raise RejectedError(
                f"{self.name}: {occupied} of {self.total} are occupied; {amount} cannot go back"
            )
        self._record(
            self.GivenBack,
            at=at,
            by=by,
            return_id=return_id,
            grant_id=grant_id,
            amount=amount,
            occupied=occupied,
        )

    def put_back(self, *, return_id: str, why: str, at: datetime, by: str) -> None:
        """Take a refused return into the total again; a repeat, or of a grant that is lost, records nothing.

        Raises:
            RejectedError: no such return.
        """
        known = self.returns.get(return_id)
        if known is None:
            raise RejectedError(f"{self.name} has no return {return_id}")
        if known.put_back or self.shares[known.grant_id].lost:
            return
        self._record(
            self.PutBack,
            at=at,
            by=by,
            return_id=return_id,
            grant_id=known.grant_id,
            amount=known.amount,
            why=why,
        )

    def lose_part(self, *, grant_id: str, amount: int, at: datetime, by: str) -> None:
        """Take a part of a grant out of the total, whatever is in use.

        Raises:
            RejectedError: more than the grant has in the total.
        """
        share = self.shares.get(grant_id)
        left = 0 if share is None else share.amount
        if not 1 <= amount <= left:
            raise RejectedError(
                f"{self.name}: grant {grant_id} has {left} in the total; {amount} of it cannot be lost"
            )
        self._record(self.PartLost, at=at, by=by, grant_id=grant_id, amount=amount)

    def lose_grant(self, *, grant_id: str, at: datetime, by: str) -> None:
        """Take what is left of a grant out of the total; a repeat records nothing.

        Raises:
            RejectedError: no such grant.
        """
        share = self.shares.get(grant_id)
        if share is None:
            raise RejectedError(f"{self.name} has no grant {grant_id}")
        if not share.lost:
            self._record(self.GrantLost, at=at, by=by, grant_id=grant_id, amount=share.amount)

    # -------------------------------------------------------------- queries
    @property
    def total(self) -> int:
        """What may be booked against: owned and borrowed."""
        return self.owned + self.borrowed

    # ------------------------------------------------------ event functions
    @applies(Declared)
    def _declared(self, event: Declared) -> None:
        self.state = S.DECLARED
        self.owned = event.owned
        #: Units of all grants that are in the total now.
        self.borrowed = 0
        #: What each grant lends, by grant id; only grows.
        self.shares: dict[str, Share] = {}
        #: All returns there ever were, by return id.
        self.returns: dict[str, GivingBack] = {}
        self._settle(event)

    @applies(SettingsChanged)
    def _settings_changed(self, event: SettingsChanged) -> None:
        self._settle(event)

    @applies(OwnedSet)
    def _owned_set(self, event: OwnedSet) -> None:
        self.owned = event.owned

    @applies(Borrowed)
    def _borrowed(self, event: Borrowed) -> None:
        self.shares[event.grant_id] = Share(event.amount, event.amount)
        self.borrowed += event.amount

    @applies(GivenBack)
    def _given_back(self, event: GivenBack) -> None:
        self.returns[event.return_id] = GivingBack(event.grant_id, event.amount)
        self._move(event.grant_id, -event.amount)

    @applies(PutBack)
    def _put_back(self, event: PutBack) -> None:
        self.returns[event.return_id] = GivingBack(event.grant_id, event.amount, put_back=True)
        self._move(event.grant_id, event.amount)

    @applies(PartLost)
    def _part_lost(self, event: PartLost) -> None:
        self._move(event.grant_id, -event.amount)

    @applies(GrantLost)
    def _grant_lost(self, event: GrantLost) -> None:
        self._move(event.grant_id, -event.amount, lost=True)

    # -------------------------------------------------------------- helpers
    def _settle(self, event: Declared | SettingsChanged) -> None:
        self.provider = event.provider
        self.max_borrow = event.max_borrow
        self.step = event.step
        self.idle_return_after = event.idle_return_after
        self.min_hold = event.min_hold

    def _move(self, grant_id: str, amount: int, *, lost: bool = False) -> None:
        share = self.shares[grant_id]
        self.shares[grant_id] = Share(share.granted, share.amount + amount, lost or share.lost)
        self.borrowed += amount


def _require_numbers(owned: int, max_borrow: int, step: int) -> None:
    if owned < 0 or max_borrow < 0 or step < 1:
        raise RejectedError(
            f"wanted owned >= 0, max_borrow >= 0 and step >= 1, found {owned}, {max_borrow}, {step}"
        )
