"""A pool as a provider, used in-process: what the scripts do, without a process a call."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from xce.adapters.providers.pool.book import PoolBook
from xce.adapters.providers.pool.rules import Loan
from xce.domain.formats.provider import (
    Capabilities,
    Kind,
    ProviderDescription,
    ResourceOffer,
)
from xce.domain.ports import (
    Accepted,
    Ask,
    GrantBack,
    GrantReport,
    Holding,
    Refused,
    Renewed,
    RequestStatus,
    ReturnStatus,
    StatusAnswer,
    TakeBack,
)

CAPABILITIES: Final = Capabilities(request_tag=True, listing=True, partial_returns=True)


class PoolProvider:
    """One site's face of a pool; fulfils the port ``Provider``."""

    def __init__(self, book: PoolBook, site: str, name: str = "pool") -> None:
        self.name = name
        self._book = book
        self._site = site

    def ask(self, ask: Ask, now: datetime) -> Accepted | Refused:
        """Borrow; the same tag gets the same answer."""
        if ask.kind is not Kind.COUNTABLE:
            return Refused("UnknownItem", "a licence pool has no hosts")
        answer = self._book.lend(self._site, ask.tag, ask.item, ask.amount, ask.least_useful, now)
        return answer if isinstance(answer, Refused) else Accepted(answer.grant)

    def status(self, provider_request_id: str, now: datetime) -> StatusAnswer:
        """Return what an ask brought; it is complete as soon as it is accepted."""
        loan = self._book.loan(provider_request_id)
        if loan is None or loan.site != self._site:
            return StatusAnswer(
                RequestStatus.COMPLETE_WITH_ERROR, message=f"no request {provider_request_id}"
            )
        return StatusAnswer(RequestStatus.COMPLETE, grants=(report_of(loan),))

    def give_back(
        self,
        return_id: str,
        machines: tuple[str, ...],
        grants: tuple[GrantBack, ...],
        now: datetime,
        *,
        names: Mapping[str, str] | None = None,
    ) -> Accepted | Refused:
        """Give amounts back; what is not taken, ``return_status`` says."""
        if machines:
            return Refused("UnknownItem", "a licence pool has no hosts")
        parts: dict[str, int] = {}
        for part in grants:
            parts[part.grant] = parts.get(part.grant, 0) + part.amount
        self._book.give_back(self._site, return_id, parts, now)
        return Accepted(return_id)

    def return_status(
        self, return_id: str, now: datetime, *, theirs: str | None = None
    ) -> ReturnStatus:
        """Return what became of a return."""
        made = self._book.returned(self._site, return_id)
        refused = tuple((each.grant, each.refused) for each in made if each.refused is not None)
        status = (
            RequestStatus.COMPLETE if made and not refused else RequestStatus.COMPLETE_WITH_ERROR
        )
        gone = frozenset(each.grant for each in made if each.refused is None)
        return ReturnStatus(status, gone, refused)

    def renew(self, grants: tuple[str, ...], now: datetime) -> Renewed:
        """Put the ends of grants off; what the pool wants back ends when it would have."""
        return Renewed(tuple(self._book.renew_some(self._site, grants, now).items()))

    def describe(self, now: datetime) -> ProviderDescription | None:
        """Return what the pool lends to this site; the capacity of a resource is what there can ever be for it."""
        offers: list[ResourceOffer] = []
        parts = True
        for one in self._book.settings().resources:
            site = one.site(self._site)
            if site is None:
                continue
            parts = parts and one.partial_returns
            cap = one.size if site.cap is None else min(one.size, site.cap)
            offers.append(
                ResourceOffer(
                    name=one.name,
                    capacity=cap,
                    step=one.step,
                    minimum_hold=one.minimum_hold,
                    price_per_hour=one.price_per_hour,
                    recalled_to=self._book.standing(one.name, now).recalled_to(self._site),
                )
            )
        return ProviderDescription(
            name=self.name,
            kinds=(Kind.COUNTABLE,),
            capabilities=CAPABILITIES.model_copy(update={"partial_returns": parts}),
            resources=tuple(offers),
        )

    def holdings(self, now: datetime) -> tuple[Holding, ...] | None:
        """Return all that is lent to this site."""
        return tuple(
            Holding(
                loan.grant,
                Kind.COUNTABLE,
                loan.resource,
                loan.tag,
                amount=loan.left,
                launched_at=loan.granted_at,
                hold_until=loan.hold_until,
                expires_at=loan.expires_at,
            )
            for loan in self._book.holdings(self._site, now)
        )

    def take_backs(self, machines: Mapping[str, str], now: datetime) -> tuple[TakeBack, ...]:
        """It has no machines to take back."""
        return ()

    def recalled(self, resource: str, now: datetime) -> int:
        """Return what the pool would like back of a resource, for other sites; a hint."""
        return self._book.standing(resource, now).recalled(self._site)


def report_of(loan: Loan) -> GrantReport:
    """Return a grant as the port says it: the whole amount, whatever went back of it."""
    return GrantReport(loan.grant, loan.resource, loan.amount, loan.hold_until, loan.expires_at)
