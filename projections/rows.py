"""What the inventory keeps of each request, instance and grant, and how the policy reads it."""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Annotated

from xce.domain.formats.inventory import GrantEntry, InstanceEntry, RequestEntry, UnownedEntry
from xce.domain.formats.provider import Kind
from xce.domain.provisioning.grant import GrantState
from xce.domain.provisioning.instance import InstanceState
from xce.domain.provisioning.request import GIVEN_UP, OPEN, RequestState
from xce.projections.kept import NOT_KEPT


@dataclass(slots=True)
class RequestRow:
    """A request that is open, or of which something still lives.

    Attributes:
        live: instances and grants it brought that have not ended.
    """

    id: str
    provider: str
    kind: Kind
    item: str
    amount: int
    asked_at: datetime
    asked_position: int
    deadline: datetime
    price: Decimal | None
    project: str | None = None
    state: RequestState = RequestState.INTENDED
    granted: int = 0
    failed: int = 0
    live: int = 0
    theirs: str | None = None
    settled: bool = False
    _entry: Annotated[RequestEntry | None, NOT_KEPT] = field(default=None, compare=False)

    @property
    def over(self) -> bool:
        """Whether nothing of it lives and nothing more can come; one that was given up is not over until it is settled."""
        if self.live > 0 or self.state in OPEN:
            return False
        return self.settled or self.state not in GIVEN_UP

    @property
    def open(self) -> int:
        """What is asked and not answered."""
        if self.state not in OPEN:
            return 0
        return max(0, self.amount - self.granted - self.failed)

    def entry(self) -> RequestEntry:
        """Return it as the policy reads it."""
        if self._entry is None:
            host = self.kind is Kind.HOST
            self._entry = RequestEntry.model_construct(
                id=self.id,
                provider=self.provider,
                kind=self.kind,
                template=self.item if host else None,
                resource=None if host else self.item,
                amount=self.amount,
                granted=self.granted,
                failed=self.failed,
                state=self.state,
                asked_at=self.asked_at,
                asked_position=self.asked_position,
                deadline=self.deadline,
                price_per_hour=self.price,
                project=self.project,
                provider_request_id=self.theirs,
                settled=self.settled,
            )
        return self._entry

    def touch(self) -> None:
        """Forget the entry that was made of it."""
        self._entry = None


@dataclass(slots=True)
class InstanceRow:
    """An instance that exists."""

    id: str
    provider: str
    template: str
    request: str
    machine: str
    expected_name: str | None
    granted_at: datetime
    hold_until: datetime | None
    price: Decimal | None
    project: str | None = None
    state: InstanceState = InstanceState.STARTING
    host: str | None = None
    reported_as: str | None = None
    booted_at: datetime | None = None
    reported_at: datetime | None = None
    joined_at: datetime | None = None
    return_id: str | None = None
    provider_return_id: str | None = None
    _entry: Annotated[InstanceEntry | None, NOT_KEPT] = field(default=None, compare=False)

    def entry(self) -> InstanceEntry:
        """Return it as the policy reads it."""
        if self._entry is None:
            self._entry = InstanceEntry.model_construct(
                id=self.id,
                provider=self.provider,
                template=self.template,
                request=self.request,
                state=self.state,
                machine=self.machine,
                name=self.expected_name,
                host=self.host,
                granted_at=self.granted_at,
                reported_as=self.reported_as,
                booted_at=self.booted_at,
                reported_at=self.reported_at,
                joined_at=self.joined_at,
                hold_until=self.hold_until,
                price_per_hour=self.price,
                project=self.project,
                return_id=self.return_id,
                provider_return_id=self.provider_return_id,
            )
        return self._entry

    def touch(self) -> None:
        """Forget the entry that was made of it."""
        self._entry = None


@dataclass(slots=True)
class UnownedRow:
    """An orphan that is open: a thing at the provider, or an ask of which nobody knows what it has done.

    Attributes:
        id: ours: the provider and its id of the thing.
        tag: the request that made it, or may have.
        amount: hosts or units that it may be; of an ask less and less, as what it has done is found out.
        since: since when it costs; None: an ask.
    """

    id: str
    provider: str
    kind: Kind
    item: str | None
    amount: int
    tag: str | None
    price: Decimal | None
    project: str | None
    since: datetime | None = None

    @property
    def is_an_ask(self) -> bool:
        """Whether it is an ask, not a thing that was found."""
        return self.entry().is_ask

    def entry(self) -> UnownedEntry:
        """Return it as the policy reads it."""
        host = self.kind is Kind.HOST
        return UnownedEntry.model_construct(
            id=self.id,
            provider=self.provider,
            kind=self.kind,
            template=self.item if host else None,
            resource=None if host else self.item,
            amount=self.amount,
            request=self.tag,
            price_per_hour=self.price,
            project=self.project,
            since=self.since,
        )


@dataclass(slots=True)
class GrantRow:
    """A grant of which the lender has not all back.

    Attributes:
        returns: amounts on their way back, by return id.
        accepted: the provider's ids of those that it took on.
    """

    id: str
    provider: str
    resource: str
    request: str
    amount: int
    granted_at: datetime
    hold_until: datetime | None
    expires_at: datetime | None
    price: Decimal | None
    project: str | None = None
    renewed_at: datetime | None = None
    state: GrantState = GrantState.ACTIVE
    returned: int = 0
    returns: dict[str, int] = field(default_factory=dict[str, int])
    accepted: dict[str, str] = field(default_factory=dict[str, str])
    _entry: Annotated[GrantEntry | None, NOT_KEPT] = field(default=None, compare=False)

    def entry(self) -> GrantEntry:
        """Return it as the policy reads it."""
        if self._entry is None:
            self._entry = GrantEntry.model_construct(
                id=self.id,
                provider=self.provider,
                resource=self.resource,
                request=self.request,
                amount=self.amount,
                returning=sum(self.returns.values()),
                returned=self.returned,
                state=self.state,
                granted_at=self.granted_at,
                hold_until=self.hold_until,
                expires_at=self.expires_at,
                renewed_at=self.renewed_at,
                price_per_hour=self.price,
                project=self.project,
                return_id=(first := next(iter(self.returns), None)),
                provider_return_id=None if first is None else self.accepted.get(first),
            )
        return self._entry

    def touch(self) -> None:
        """Forget the entry that was made of it."""
        self._entry = None
