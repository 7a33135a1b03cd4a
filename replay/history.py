"""What a log says of everything obtained, in one pass: each host, each lent amount, each request and return.

This is the source of all money in a report: what is not in the log is not in the bill.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from xce.domain.events.base import DomainEvent
from xce.domain.events.ids import name_of
from xce.domain.formats.provider import Billing, Kind
from xce.domain.policy.billing import billed
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.request import Request
from xce.domain.sharing.elastic_resource import ElasticResource

_SECOND = timedelta(seconds=1)
_HOUR_SECONDS = 3600


@dataclass(slots=True)
class HostUse:
    """One host that a request brought, from the grant until it is gone."""

    instance: str
    provider: str
    template: str
    price_per_hour: Decimal | None
    billing: Billing
    since: datetime
    until: datetime | None = None
    host: str | None = None
    slots: int = 0
    joined_at: datetime | None = None
    trouble: str | None = None
    project: str | None = None

    def used(self, now: datetime) -> timedelta:
        """Return how long it existed, up to ``now`` if it still does."""
        return (self.until or now) - self.since

    def billed_seconds(self, now: datetime) -> int:
        """Return the seconds that are paid for."""
        return billed(self.used(now), self.billing) // _SECOND

    def cost(self, now: datetime) -> Fraction | None:
        """Return what it cost, exactly; None where its price is unknown."""
        if self.price_per_hour is None:
            return None
        return Fraction(self.price_per_hour) * self.billed_seconds(now) / _HOUR_SECONDS


@dataclass(slots=True)
class GrantUse:
    """One lent amount: ``parts`` says what of it ended when, for good."""

    grant: str
    provider: str
    resource: str
    amount: int
    price_per_hour: Decimal | None
    since: datetime
    hold_until: datetime | None
    parts: list[tuple[datetime, int]] = field(default_factory=list[tuple[datetime, int]])
    lost: int = 0
    project: str | None = None
    pending: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def held(self) -> int:
        """Return what of it is not back."""
        return self.amount - sum(amount for _, amount in self.parts)

    @property
    def returned(self) -> int:
        """Return what of it was given back and confirmed."""
        return self.amount - self.held - self.lost

    def unit_seconds(self, now: datetime) -> int:
        """Return the sum over its units of the seconds they were ours."""
        gone = sum(amount * ((at - self.since) // _SECOND) for at, amount in self.parts)
        return gone + self.held * ((now - self.since) // _SECOND)

    def cost(self, now: datetime) -> Fraction | None:
        """Return what it cost by the second, exactly; None where its price is unknown."""
        if self.price_per_hour is None:
            return None
        return Fraction(self.price_per_hour) * self.unit_seconds(now) / _HOUR_SECONDS


@dataclass(slots=True)
class RequestUse:
    """One request and what came of it."""

    request: str
    asked_at: datetime
    provider: str
    kind: Kind
    item: str
    amount: int
    reason: str
    jobs: tuple[str, ...]
    granted: int = 0
    outcome: str = "open"
    why: str = ""
    closed_at: datetime | None = None


@dataclass(slots=True)
class ReturnUse:
    """One thing that goes back: a host, or an amount of a grant."""

    return_id: str
    started_at: datetime
    provider: str
    what: str
    item: str
    amount: int
    reason: str
    outcome: str = "open"
    ended_at: datetime | None = None


class History:
    """A fold over the log."""

    def __init__(self) -> None:
        self.hosts: dict[str, HostUse] = {}
        self.grants: dict[str, GrantUse] = {}
        self.requests: dict[str, RequestUse] = {}
        self.returns: dict[tuple[str, str], ReturnUse] = {}
        self.owned: dict[str, int] = {}
        self._drain_why: dict[str, str] = {}
        self._going: dict[str, str] = {}

    @classmethod
    def of(cls, events: Iterable[DomainEvent]) -> "History":
        """Return the history that a log tells."""
        history = cls()
        for event in events:
            history.apply(event)
        return history

    @property
    def template_of_host(self) -> Mapping[str, str]:
        """Return the template of each host that joined, by its name in the cluster."""
        return {use.host: use.template for use in self.hosts.values() if use.host is not None}

    def apply(self, event: DomainEvent) -> None:
        """Take one more event in; events of other things change nothing."""
        name = name_of(event.originator_id)
        match event:
            case Instance.Event():
                self._instance(name, event)
            case Request.Event():
                self._request(name, event)
            case Grant.Event():
                self._grant(name, event)
            case ElasticResource.Declared(owned=owned) | ElasticResource.OwnedSet(owned=owned):
                self.owned[name] = owned
            case _:
                pass

    def _instance(self, name: str, event: Instance.Event) -> None:
        at = event.timestamp
        if isinstance(event, Instance.Granted):
            self.hosts[name] = HostUse(
                name, event.provider, event.template, event.price_per_hour, event.billing, at
            )
            self.hosts[name].project = event.project
            return
        use = self.hosts[name]
        match event:
            case Instance.Joined(host=host, total=total):
                use.host, use.slots, use.joined_at = host, total.get("slots", 0), at
            case Instance.JoinMissed(why=why):
                use.trouble = why
            case Instance.DrainStarted(why=why):
                self._drain_why[name] = why
            case Instance.ReturnIntended(return_id=return_id, why=why):
                self._going[name] = return_id
                self.returns[return_id, name] = ReturnUse(
                    return_id, at, use.provider, use.host or name, use.template, 1,
                    self._drain_why.get(name, why),
                )  # fmt: skip
            case Instance.ReturnRefused(return_id=return_id, why=why):
                self._end_return(return_id, name, f"refused: {why}", at)
            case Instance.Returned():
                use.until = at
                self._end_return(self._going[name], name, "returned", at)
            case Instance.Lost(why=why):
                use.until, use.trouble = at, why
            case _:
                pass

    def _request(self, name: str, event: Request.Event) -> None:
        if isinstance(event, Request.Intended):
            self.requests[name] = RequestUse(
                name, event.timestamp, event.provider, event.kind, event.item, event.amount, event.reason, event.jobs
            )  # fmt: skip
            return
        use = self.requests[name]
        match event:
            case Request.InstanceGranted():
                use.granted += 1
            case Request.AmountGranted(amount=amount):
                use.granted += amount
            case Request.Closed(outcome=outcome, why=why):
                use.outcome, use.why, use.closed_at = outcome.value, why, event.timestamp
            case _:
                pass

    def _grant(self, name: str, event: Grant.Event) -> None:
        at = event.timestamp
        if isinstance(event, Grant.Granted):
            self.grants[name] = GrantUse(
                name, event.provider, event.resource, event.amount, event.price_per_hour, at, event.hold_until
            )  # fmt: skip
            self.grants[name].project = event.project
            return
        use = self.grants[name]
        match event:
            case Grant.ReturnStarted(return_id=return_id, amount=amount):
                use.pending[return_id] = amount
                self.returns[return_id, name] = ReturnUse(
                    return_id, at, use.provider, name, use.resource, amount, "unused"
                )
            case Grant.ReturnConfirmed(return_id=return_id):
                use.parts.append((at, use.pending.pop(return_id)))
                self._end_return(return_id, name, "returned", at)
            case Grant.ReturnRefused(return_id=return_id, why=why):
                del use.pending[return_id]
                self._end_return(return_id, name, f"refused: {why}", at)
            case Grant.PartLost(amount=amount):
                use.parts.append((at, amount))
            case Grant.Lost():
                use.lost = use.held
                use.parts.append((at, use.held))
            case _:
                pass

    def _end_return(self, return_id: str, name: str, outcome: str, at: datetime) -> None:
        entry = self.returns[return_id, name]
        entry.outcome, entry.ended_at = outcome, at
