"""Request: one ask of a provider, from the durable intent to the last late answer.

What came is counted one by one, by the provider's machine id or by grant id: the same answer again records nothing, more than
was asked is recorded, and so is what comes after the request was closed (it costs money and needs an owner).
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import ClassVar, Final

from xce.domain.errors import RejectedError
from xce.domain.events import ids
from xce.domain.events.base import Aggregate, ProviderFact, Why, applies
from xce.domain.events.transitions import Table, lands, starts, stays
from xce.domain.formats.base import Amount, Count, Duration, Money, Name, Time
from xce.domain.formats.provider import Kind


class RequestState(StrEnum):
    """Where a request is in its life."""

    INTENDED = "intended"
    ACCEPTED = "accepted"
    UNKNOWN = "unknown"
    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"


S = RequestState

#: States in which more is expected.
OPEN: Final = frozenset({S.INTENDED, S.ACCEPTED, S.UNKNOWN})
#: States in which nothing more is counted on; what comes all the same is still recorded.
CLOSED: Final = frozenset(S) - OPEN
#: Closed by us, while the provider may still be at it.
GIVEN_UP: Final = frozenset({S.TIMED_OUT, S.CANCELLED})

TRANSITIONS: Final[Table[RequestState]] = {
    "Intended": starts(S.INTENDED),
    "Accepted": lands({S.INTENDED, S.UNKNOWN}, S.ACCEPTED, keeps=CLOSED),
    "OutcomeUnknown": lands({S.INTENDED, S.ACCEPTED}, S.UNKNOWN),
    "InstanceGranted": stays(S),
    "MachineFailed": stays(S),
    "AmountGranted": stays(S),
    "FellShort": stays(S),
    "Settled": stays(CLOSED),
    "Closed": lands(OPEN, S.COMPLETE, S.PARTIAL, S.FAILED, S.TIMED_OUT, S.CANCELLED),
}


class Request(Aggregate[RequestState]):
    """One ask with a durable id, which is also the tag the provider knows it by."""

    KIND: ClassVar[str] = ids.REQUEST
    TRANSITIONS: ClassVar[Table[RequestState]] = TRANSITIONS

    class Event(ProviderFact):
        """Base of this aggregate's events."""

    class Intended(Event):
        """What will be asked, durable before the provider is called.

        Attributes:
            provider: whom.
            kind: hosts, or units of a countable resource.
            item: template id or resource.
            amount: how many.
            price_per_hour: of one, as known when it was decided; null: unknown.
            deadline: when it is given up.
            reason: why, for people.
            jobs: the jobs it serves, in job order.
            demand_position: log position that the demand was computed at.
            hold: how long what comes must be kept.
            project: the project whose budgets pay for it; null: several projects, or none.
        """

        TOPIC: ClassVar[str] = "xce.request.intended"
        provider: Name
        kind: Kind
        item: Name
        amount: Amount
        price_per_hour: Money | None
        deadline: Time
        reason: Why
        jobs: tuple[Name, ...]
        demand_position: Count
        hold: Duration
        project: Name | None = None

    class Accepted(Event):
        """The provider took it on.

        Attributes:
            provider_request_id: the provider's id of it; unique at that provider only.
        """

        TOPIC: ClassVar[str] = "xce.request.accepted"
        provider_request_id: Name

    class OutcomeUnknown(Event):
        """It is not known whether the call had an effect; it will be looked up, not repeated.

        Attributes:
            why: what happened to the answer.
        """

        TOPIC: ClassVar[str] = "xce.request.outcome-unknown"
        why: Why

    class InstanceGranted(Event):
        """It brought one host. Saved together with ``Instance.Granted``.

        Attributes:
            instance_id: our name for the instance.
            machine: the provider's id of it.
        """

        TOPIC: ClassVar[str] = "xce.request.instance-granted"
        instance_id: Name
        machine: Name

    class MachineFailed(Event):
        """One host of it failed while it was made. Saved together with ``Instance.Granted``: it may exist and cost money.

        Attributes:
            instance_id: our name for the instance.
            machine: the provider's id of it.
            why: what the provider says.
        """

        TOPIC: ClassVar[str] = "xce.request.machine-failed"
        instance_id: Name
        machine: Name
        why: Why

    class AmountGranted(Event):
        """It brought an amount. Saved together with ``Grant.Granted`` and ``ElasticResource.Borrowed``.

        Attributes:
            grant_id: our name for the grant.
            amount: units.
        """

        TOPIC: ClassVar[str] = "xce.request.amount-granted"
        grant_id: Name
        amount: Amount

    class FellShort(Event):
        """A further part of the amount is known not to come.

        Attributes:
            amount: how many, beyond those known before.
            why: what the provider says.
        """

        TOPIC: ClassVar[str] = "xce.request.fell-short"
        amount: Amount
        why: Why

    class Closed(Event):
        """Nothing more is counted on.

        Attributes:
            outcome: the closing state.
            why: the reason, for people.
        """

        TOPIC: ClassVar[str] = "xce.request.closed"
        outcome: RequestState
        why: Why

    class Settled(Event):
        """Nothing more is expected of it: it was given up before its provider had ended it, and its provider was asked on.

        Attributes:
            why: the provider's last word, or why it is not asked any more.
        """

        TOPIC: ClassVar[str] = "xce.request.settled"
        why: Why

    # ------------------------------------------------------------- commands
    @classmethod
    def intend(
        cls,
        *,
        request: str,
        provider: str,
        kind: Kind,
        item: str,
        amount: int,
        price_per_hour: Decimal | None,
        deadline: datetime,
        reason: str,
        jobs: Iterable[str],
        demand_position: int,
        hold: timedelta,
        project: str | None = None,
        at: datetime,
        by: str,
        epoch: int,
    ) -> "Request":
        """Return the request whose intent is to be saved before the provider is called.

        Raises:
            RejectedError: the amount is below 1, or the deadline is not after ``at``.
        """
        if amount < 1:
            raise RejectedError(f"the amount of a request is at least 1, found {amount}")
        if deadline <= at:
            raise RejectedError(f"the deadline {deadline.isoformat()} is over at {at.isoformat()}")
        return cls._first(
            cls.Intended,
            ids.request_id(request),
            at=at,
            by=by,
            epoch=epoch,
            provider=provider,
            kind=kind,
            item=item,
            amount=amount,
            price_per_hour=price_per_hour,
            deadline=deadline,
            reason=reason,
            jobs=tuple(jobs),
            demand_position=demand_position,
            hold=hold,
            project=project,
        )

    def accept(self, *, provider_request_id: str, at: datetime, by: str, epoch: int) -> None:
        """Record the provider's id; also late, so that what it brings is found. The same id again records nothing.

        Raises:
            IllegalTransitionError: it was accepted under another id.
        """
        if self.provider_request_id == provider_request_id and self.state is not S.UNKNOWN:
            return
        self._require(self.Accepted)
        if self.provider_request_id not in (None, provider_request_id):
            raise RejectedError(
                f"request {self.name} is {self.provider_request_id!r} at the provider,"
                f" found {provider_request_id!r}"
            )
        self._record(
            self.Accepted, at=at, by=by, epoch=epoch, provider_request_id=provider_request_id
        )

    def lose_track(self, *, why: str, at: datetime, by: str, epoch: int) -> None:
        """Record that the outcome is unknown; if it is so already, nothing is recorded.

        Raises:
            IllegalTransitionError: it is closed.
        """
        if self.state is S.UNKNOWN:
            return
        self._require(self.OutcomeUnknown)
        self._record(self.OutcomeUnknown, at=at, by=by, epoch=epoch, why=why)

    def grant_instance(
        self, *, instance_id: str, machine: str, at: datetime, by: str, epoch: int
    ) -> None:
        """Record one host; a machine heard of before records nothing, under whatever instance id (see ``instance_of``).

        Raises:
            RejectedError: the request is for units; or the instance id stands for another machine.
        """
        if machine in self.instance_of:
            return
        self._require_kind(Kind.HOST)
        self._require_new(instance_id, machine)
        self._record(
            self.InstanceGranted,
            at=at,
            by=by,
            epoch=epoch,
            instance_id=instance_id,
            machine=machine,
        )

    def fail_machine(
        self, *, instance_id: str, machine: str, why: str, at: datetime, by: str, epoch: int
    ) -> None:
        """Record one host that failed while it was made; a machine heard of before records nothing.

        Raises:
            RejectedError: the request is for units; or the instance id stands for another machine.
        """
        if machine in self.instance_of:
            return
        self._require_kind(Kind.HOST)
        self._require_new(instance_id, machine)
        self._record(
            self.MachineFailed,
            at=at,
            by=by,
            epoch=epoch,
            instance_id=instance_id,
            machine=machine,
            why=why,
        )

    def grant_amount(
        self, *, grant_id: str, amount: int, at: datetime, by: str, epoch: int
    ) -> None:
        """Record an amount; the same grant again records nothing.

        Raises:
            RejectedError: the request is for hosts; the amount is below 1; or the grant had another amount.
        """
        self._require_kind(Kind.COUNTABLE)
        known = self.amount_of.get(grant_id)
        if known == amount:
            return
        if known is not None:
            raise RejectedError(f"grant {grant_id} is of {known}, found {amount}")
        if amount < 1:
            raise RejectedError(f"grant {grant_id} is of at least 1, found {amount}")
        self._record(
            self.AmountGranted, at=at, by=by, epoch=epoch, grant_id=grant_id, amount=amount
        )

    def fall_short(self, *, failed: int, why: str, at: datetime, by: str, epoch: int) -> None:
        """Record how much will not come, in all; no more than known before records nothing.

        Raises:
            RejectedError: more than was asked.
        """
        if failed <= self.failed:
            return
        if failed > self.amount:
            raise RejectedError(
                f"request {self.name} is of {self.amount}: {failed} of it cannot fail"
            )
        self._record(
            self.FellShort, at=at, by=by, epoch=epoch, amount=failed - self.failed, why=why
        )

    def close(self, *, outcome: RequestState, why: str, at: datetime, by: str, epoch: int) -> None:
        """Count on nothing more; the same outcome again records nothing.

        Raises:
            IllegalTransitionError: it is closed with another outcome.
            RejectedError: not an outcome, or one that what was granted contradicts (see ``outcome``).
        """
        if outcome not in CLOSED:
            raise RejectedError(f"{outcome} is not an outcome of a request")
        if self.state is outcome:
            return
        self._require(self.Closed)
        counted = outcome in (S.COMPLETE, S.PARTIAL, S.FAILED)
        if counted and outcome is not self.outcome:
            raise RejectedError(
                f"request {self.name} cannot be {outcome}: granted {self.granted} of {self.amount}"
            )
        self._record(self.Closed, at=at, by=by, epoch=epoch, outcome=outcome, why=why)

    def settle(self, *, why: str, at: datetime, by: str, epoch: int) -> None:
        """Record that nothing more is expected of a request that was given up; a repeat records nothing.

        Raises:
            IllegalTransitionError: it is open.
        """
        self._require(self.Settled)
        if not self.settled:
            self._record(self.Settled, at=at, by=by, epoch=epoch, why=why)

    # -------------------------------------------------------------- queries
    @property
    def granted(self) -> int:
        """Hosts or units that came and did not fail while they were made; may pass ``amount``."""
        return len(self.instance_of) - self.machines_failed + self.amount_granted

    @property
    def open_amount(self) -> int:
        """What is still counted on: in flight."""
        return max(0, self.amount - self.granted - self.failed) if self.state in OPEN else 0

    @property
    def outcome(self) -> RequestState:
        """The closing state that what was granted by now amounts to: complete, partial or failed."""
        if self.granted >= self.amount:
            return S.COMPLETE
        return S.PARTIAL if self.granted else S.FAILED

    # ------------------------------------------------------ event functions
    @applies(Intended)
    def _intended(self, event: Intended) -> None:
        self.state = S.INTENDED
        self.provider = event.provider
        self.kind = event.kind
        self.item = event.item
        self.amount = event.amount
        self.price_per_hour = event.price_per_hour
        self.deadline = event.deadline
        self.jobs = event.jobs
        self.demand_position = event.demand_position
        self.hold = event.hold
        self.project = event.project
        self.provider_request_id: str | None = None
        #: Instance id by machine, of those that failed too; only grows.
        self.instance_of: dict[str, str] = {}
        self.machines_failed = 0
        #: Amount by grant id; only grows.
        self.amount_of: dict[str, int] = {}
        self.amount_granted = 0
        #: Part of the amount known not to come, failed machines included.
        self.failed = 0
        #: Nothing more is expected, not even late.
        self.settled = False

    @applies(Accepted)
    def _accepted(self, event: Accepted) -> None:
        self.state = self._land(event)
        self.provider_request_id = event.provider_request_id

    @applies(OutcomeUnknown)
    def _outcome_unknown(self, event: OutcomeUnknown) -> None:
        self.state = self._land(event)

    @applies(InstanceGranted)
    def _instance_granted(self, event: InstanceGranted) -> None:
        self.instance_of[event.machine] = event.instance_id

    @applies(MachineFailed)
    def _machine_failed(self, event: MachineFailed) -> None:
        self.instance_of[event.machine] = event.instance_id
        self.machines_failed += 1
        self.failed += 1

    @applies(AmountGranted)
    def _amount_granted(self, event: AmountGranted) -> None:
        self.amount_of[event.grant_id] = event.amount
        self.amount_granted += event.amount

    @applies(FellShort)
    def _fell_short(self, event: FellShort) -> None:
        self.failed += event.amount

    @applies(Closed)
    def _closed(self, event: Closed) -> None:
        self.state = self._land(event, event.outcome)

    @applies(Settled)
    def _settled(self, event: Settled) -> None:
        self.settled = True

    # -------------------------------------------------------------- helpers
    def _require_new(self, instance_id: str, machine: str) -> None:
        if instance_id in self.instance_of.values():
            raise RejectedError(f"instance {instance_id} of request {self.name} is not {machine!r}")

    def _require_kind(self, kind: Kind) -> None:
        if self.kind is not kind:
            raise RejectedError(f"request {self.name} is for {self.kind}, not for {kind}")
