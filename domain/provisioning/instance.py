"""Instance: one host that a request brought, from the provider's word to its confirmed end.

It is known by the provider's machine id. Names and addresses are attributes: a new machine may get those of a dead one.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import Field

from xce.domain.errors import RejectedError
from xce.domain.events import ids
from xce.domain.events.base import Aggregate, ProviderFact, Why, applies
from xce.domain.events.transitions import Table, lands, starts, stays
from xce.domain.formats.base import Money, Name, Time
from xce.domain.formats.provider import Billing
from xce.domain.formats.snapshot import Attribute


class InstanceState(StrEnum):
    """Where an instance is in its life."""

    STARTING = "starting"
    JOINED = "joined"
    DRAINING = "draining"
    NEVER_JOINED = "never_joined"
    RETURNING = "returning"
    RETURNED = "returned"
    LOST = "lost"


S = InstanceState

#: States in which it does not exist any more; in all others it may cost money and counts against capacity.
GONE: Final = frozenset({S.RETURNED, S.LOST})
LIVE: Final = frozenset(S) - GONE

TRANSITIONS: Final[Table[InstanceState]] = {
    "Granted": starts(S.STARTING),
    "CheckStarted": stays({S.STARTING}),
    "Joined": lands({S.STARTING}, S.JOINED),
    "JoinMissed": lands({S.STARTING}, S.NEVER_JOINED),
    "DrainStarted": lands({S.JOINED}, S.DRAINING),
    "Reopened": lands({S.DRAINING}, S.JOINED),
    "ReturnIntended": lands({S.DRAINING, S.NEVER_JOINED}, S.RETURNING),
    "ReturnAccepted": stays({S.RETURNING}),
    "ReturnRefused": lands({S.RETURNING}, S.DRAINING, S.NEVER_JOINED),
    "Returned": lands({S.RETURNING}, S.RETURNED),
    "Lost": lands(LIVE, S.LOST),
}


class Instance(Aggregate[InstanceState]):
    """One host of a provider that we own."""

    KIND: ClassVar[str] = ids.INSTANCE
    TRANSITIONS: ClassVar[Table[InstanceState]] = TRANSITIONS

    class Event(ProviderFact):
        """Base of this aggregate's events."""

    class Granted(Event):
        """The provider created it. Saved together with ``Request.InstanceGranted``.

        Attributes:
            request_id: the request that brought it.
            provider: whose it is.
            template: what kind it is.
            machine: the provider's id, by which it is known.
            name: the provider's name of it; may be reused for another machine; null: none yet.
            price_per_hour: while it exists; null: unknown.
            billing: how use turns into cost.
            hold_until: it does not go back before; null: at any time.
            project: the project whose budgets pay for it; null: several projects, or none.
        """

        TOPIC: ClassVar[str] = "xce.instance.granted"
        request_id: Name
        provider: Name
        template: Name
        machine: Name
        name: Name | None
        price_per_hour: Money | None
        billing: Billing
        hold_until: Time | None
        project: Name | None = None

    class CheckStarted(Event):
        """It reported to the cluster, and takes no work before its health check has passed.

        Attributes:
            host: its name in the cluster.
            booted_at: when it booted.
            attributes: as measured.
            total: amounts as measured, in base units.
        """

        TOPIC: ClassVar[str] = "xce.instance.check-started"
        host: Name
        booted_at: Time
        attributes: dict[Name, Attribute]
        total: dict[Name, Annotated[int, Field(ge=0)]]

    class Joined(Event):
        """It reported to the cluster and takes work.

        Attributes:
            host: its name in the cluster.
            booted_at: when it booted; null: the report did not say.
            attributes: as measured.
            total: amounts as measured, in base units.
        """

        TOPIC: ClassVar[str] = "xce.instance.joined"
        host: Name
        booted_at: Time | None
        attributes: dict[Name, Attribute]
        total: dict[Name, Annotated[int, Field(ge=0)]]

    class JoinMissed(Event):
        """It did not join in time, or failed while starting or in its health check: no supply, but it still costs money.

        Attributes:
            why: what was waited for, or what the provider or the check says.
        """

        TOPIC: ClassVar[str] = "xce.instance.join-missed"
        why: Why

    class DrainStarted(Event):
        """It takes no new work, so that it can go back.

        Attributes:
            why: the reason, for people.
        """

        TOPIC: ClassVar[str] = "xce.instance.drain-started"
        why: Why

    class Reopened(Event):
        """It takes work again: a job had slipped in, or it is needed.

        Attributes:
            why: the reason, for people.
        """

        TOPIC: ClassVar[str] = "xce.instance.reopened"
        why: Why

    class ReturnIntended(Event):
        """It will be given back; durable before the provider is called.

        Attributes:
            return_id: our id of the return.
            why: the reason, for people.
        """

        TOPIC: ClassVar[str] = "xce.instance.return-intended"
        return_id: Name
        why: Why

    class ReturnAccepted(Event):
        """The provider took the return on; it is not gone yet.

        Attributes:
            return_id: our id of the return.
            provider_return_id: the provider's id of it.
        """

        TOPIC: ClassVar[str] = "xce.instance.return-accepted"
        return_id: Name
        provider_return_id: Name

    class ReturnRefused(Event):
        """The provider did not take it back; it is drained still, or still has never joined.

        Attributes:
            return_id: our id of the return.
            why: what the provider says.
        """

        TOPIC: ClassVar[str] = "xce.instance.return-refused"
        return_id: Name
        why: Why

    class Returned(Event):
        """The provider confirmed that it is gone."""

        TOPIC: ClassVar[str] = "xce.instance.returned"

    class Lost(Event):
        """It is gone without our return: it died, or the provider took it back.

        Attributes:
            why: how we know.
        """

        TOPIC: ClassVar[str] = "xce.instance.lost"
        why: Why

    # ------------------------------------------------------------- commands
    @classmethod
    def grant(
        cls,
        *,
        instance: str,
        request_id: str,
        provider: str,
        template: str,
        machine: str,
        name: str | None,
        price_per_hour: Decimal | None,
        billing: Billing,
        hold_until: datetime | None,
        project: str | None = None,
        at: datetime,
        by: str,
        epoch: int,
    ) -> "Instance":
        """Return the instance that a request brought; ``instance`` is our name for it."""
        return cls._first(
            cls.Granted,
            ids.instance_id(instance),
            at=at,
            by=by,
            epoch=epoch,
            request_id=request_id,
            provider=provider,
            template=template,
            machine=machine,
            name=name,
            price_per_hour=price_per_hour,
            billing=billing,
            hold_until=hold_until,
            project=project,
        )

    def start_check(
        self,
        *,
        host: str,
        booted_at: datetime,
        attributes: Mapping[str, Attribute],
        total: Mapping[str, int],
        at: datetime,
        by: str,
        epoch: int,
    ) -> None:
        """Record that it reported to the cluster and is to be checked; the same host and boot again records nothing.

        Raises:
            IllegalTransitionError: it has joined, was given up, or is gone.
        """
        self._require(self.CheckStarted)
        known = self.report
        if known is not None and (known.host, known.booted_at) == (host, booted_at):
            return
        self._record(
            self.CheckStarted,
            at=at,
            by=by,
            epoch=epoch,
            host=host,
            booted_at=booted_at,
            attributes=dict(attributes),
            total=dict(total),
        )

    def join(
        self,
        *,
        host: str,
        booted_at: datetime | None,
        attributes: Mapping[str, Attribute],
        total: Mapping[str, int],
        at: datetime,
        by: str,
        epoch: int,
    ) -> None:
        """Record that it reported to the cluster; the same host and boot again records nothing.

        That the report is of this machine, and not of an earlier one of the same name, is found out before (boot time, machine).

        Raises:
            IllegalTransitionError: it joined as another host or boot, was given up, or is gone.
        """
        if self.host == host and self.booted_at == booted_at and self.state in LIVE:
            return
        self._require(self.Joined)
        self._record(
            self.Joined,
            at=at,
            by=by,
            epoch=epoch,
            host=host,
            booted_at=booted_at,
            attributes=dict(attributes),
            total=dict(total),
        )

    def miss_join(self, *, why: str, at: datetime, by: str, epoch: int) -> None:
        """Give up waiting for it, or record that it failed while starting; a repeat records nothing.

        Raises:
            IllegalTransitionError: it has joined, or is gone.
        """
        if self.state is S.NEVER_JOINED:
            return
        self._require(self.JoinMissed)
        self._record(self.JoinMissed, at=at, by=by, epoch=epoch, why=why)

    def start_drain(self, *, why: str, at: datetime, by: str, epoch: int) -> None:
        """Close it to new work; if it drains already, nothing is recorded.

        Raises:
            IllegalTransitionError: it has not joined, goes back, or is gone.
        """
        if self.state is S.DRAINING:
            return
        self._require(self.DrainStarted)
        self._record(self.DrainStarted, at=at, by=by, epoch=epoch, why=why)

    def reopen(self, *, why: str, at: datetime, by: str, epoch: int) -> None:
        """Let it take work again; if it does already, nothing is recorded.

        Raises:
            IllegalTransitionError: it has not joined, goes back, or is gone.
        """
        if self.state is S.JOINED:
            return
        self._require(self.Reopened)
        self._record(self.Reopened, at=at, by=by, epoch=epoch, why=why)

    def intend_return(self, *, return_id: str, why: str, at: datetime, by: str, epoch: int) -> None:
        """Record the intent to give it back, before the provider is called; the same return again records nothing.

        Raises:
            IllegalTransitionError: it is not drained, goes back under another id, or is gone.
            RejectedError: its hold is not over; or the return was refused: a new one needs a new id.
        """
        if return_id == self.return_id:
            return
        self._require(self.ReturnIntended)
        if return_id in self.refused_returns:
            raise RejectedError(f"return {return_id} of instance {self.name} was refused before")
        if self.hold_until is not None and at < self.hold_until:
            raise RejectedError(
                f"instance {self.name} must be kept until {self.hold_until.isoformat()}"
            )
        self._record(self.ReturnIntended, at=at, by=by, epoch=epoch, return_id=return_id, why=why)

    def accept_return(
        self, *, return_id: str, provider_return_id: str, at: datetime, by: str, epoch: int
    ) -> None:
        """Record that the provider took the return on; the same id again records nothing, another one (a retry) does.

        Raises:
            IllegalTransitionError: it does not go back.
            RejectedError: it goes back under another return id.
        """
        if self.provider_return_id == provider_return_id and self.return_id == return_id:
            return
        self._require(self.ReturnAccepted)
        self._require_return(return_id)
        self._record(
            self.ReturnAccepted,
            at=at,
            by=by,
            epoch=epoch,
            return_id=return_id,
            provider_return_id=provider_return_id,
        )

    def refuse_return(self, *, return_id: str, why: str, at: datetime, by: str, epoch: int) -> None:
        """Record that the provider did not take it back; a repeat records nothing.

        Raises:
            IllegalTransitionError: it does not go back.
            RejectedError: it goes back under another return id.
        """
        if return_id in self.refused_returns:
            return
        self._require(self.ReturnRefused)
        self._require_return(return_id)
        self._record(self.ReturnRefused, at=at, by=by, epoch=epoch, return_id=return_id, why=why)

    def confirm_return(self, *, at: datetime, by: str, epoch: int) -> None:
        """Record that the provider says it is gone; if we know that it is gone, nothing is recorded.

        Raises:
            IllegalTransitionError: it was not to go back: see ``lose``.
        """
        if self.state in GONE:
            return
        self._require(self.Returned)
        self._record(self.Returned, at=at, by=by, epoch=epoch)

    def lose(self, *, why: str, at: datetime, by: str, epoch: int) -> None:
        """Record that it is gone without our return; if we know that it is gone, nothing is recorded."""
        if self.state in GONE:
            return
        self._require(self.Lost)
        self._record(self.Lost, at=at, by=by, epoch=epoch, why=why)

    # ------------------------------------------------------ event functions
    @applies(Granted)
    def _granted(self, event: Granted) -> None:
        self.state = S.STARTING
        self.request_id = event.request_id
        self.provider = event.provider
        self.template = event.template
        self.machine = event.machine
        self.provider_name = event.name
        self.price_per_hour = event.price_per_hour
        self.project = event.project
        self.billing = event.billing
        self.hold_until = event.hold_until
        #: What it said when it reported and was not open yet; None: it was not checked.
        self.report: Instance.CheckStarted | None = None
        #: When it first did.
        self.reported_at: datetime | None = None
        self.host: str | None = None
        self.booted_at: datetime | None = None
        self.joined_at: datetime | None = None
        self.attributes: Mapping[str, Attribute] = {}
        self.total: Mapping[str, int] = {}
        #: Our id of the return under way, or of the one that ended it.
        self.return_id: str | None = None
        self.provider_return_id: str | None = None
        self.refused_returns: frozenset[str] = frozenset()

    @applies(CheckStarted)
    def _check_started(self, event: CheckStarted) -> None:
        self.report = event
        self.reported_at = self.reported_at or event.timestamp

    @applies(Joined)
    def _joined(self, event: Joined) -> None:
        self.state = self._land(event)
        self.host = event.host
        self.booted_at = event.booted_at
        self.joined_at = event.timestamp
        self.attributes = event.attributes
        self.total = event.total

    @applies(JoinMissed)
    def _join_missed(self, event: JoinMissed) -> None:
        self.state = self._land(event)

    @applies(DrainStarted)
    def _drain_started(self, event: DrainStarted) -> None:
        self.state = self._land(event)

    @applies(Reopened)
    def _reopened(self, event: Reopened) -> None:
        self.state = self._land(event)

    @applies(ReturnIntended)
    def _return_intended(self, event: ReturnIntended) -> None:
        self.state = self._land(event)
        self.return_id = event.return_id
        self.provider_return_id = None

    @applies(ReturnAccepted)
    def _return_accepted(self, event: ReturnAccepted) -> None:
        self.provider_return_id = event.provider_return_id

    @applies(ReturnRefused)
    def _return_refused(self, event: ReturnRefused) -> None:
        self.state = self._land(event, S.NEVER_JOINED if self.host is None else S.DRAINING)
        self.return_id = None
        self.provider_return_id = None
        self.refused_returns |= {event.return_id}

    @applies(Returned)
    def _returned(self, event: Returned) -> None:
        self.state = self._land(event)

    @applies(Lost)
    def _lost(self, event: Lost) -> None:
        self.state = self._land(event)

    # -------------------------------------------------------------- helpers
    def _require_return(self, return_id: str) -> None:
        if return_id != self.return_id:
            raise RejectedError(
                f"instance {self.name} goes back as {self.return_id}, not as {return_id}"
            )
