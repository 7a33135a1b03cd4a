"""What a pool may lend to whom: guaranteed parts first, caps, and fair shares of the rest. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from xce.domain.formats.licence_pool import PooledResource, PoolPolicy


@dataclass(frozen=True, slots=True)
class Standing:
    """One resource of a pool at one moment.

    Attributes:
        held: what each site holds.
        wishes: what each site was denied lately, beyond what it holds.
    """

    resource: PooledResource
    held: Mapping[str, int]
    wishes: Mapping[str, int]

    @property
    def free(self) -> int:
        """What nobody has; below 0 where outside users, or a smaller size, took it from under the sites."""
        return self.resource.size - self.resource.outside - sum(self.held.values())

    def has(self, site: str) -> int:
        """Return what a site holds."""
        return self.held.get(site, 0)

    def lendable(self, site: str) -> int:
        """Return the most that a site gets now, in steps."""
        terms = self.resource.site(site)
        if terms is None:
            return 0
        kept = sum(
            max(0, other.guaranteed - self.has(other.name))
            for other in self.resource.sites
            if other.name != site
        )
        amount = self.free - kept
        if terms.cap is not None:
            amount = min(amount, terms.cap - self.has(site))
        if self.resource.policy is PoolPolicy.SHARE and self._others_want(site):
            amount = min(amount, self.entitled(site) - self.has(site))
        amount = max(0, amount)
        return amount - amount % self.resource.step

    def entitled(self, site: str) -> int:
        """Return what a site may hold while others want some too: its guaranteed part and an equal share of the rest."""
        terms = self.resource.site(site)
        if terms is None:
            return 0
        guaranteed = sum(each.guaranteed for each in self.resource.sites)
        rest = max(0, self.resource.size - self.resource.outside - guaranteed)
        contenders = {
            each.name
            for each in self.resource.sites
            if self.has(each.name) > each.guaranteed or self.wishes.get(each.name, 0)
        }
        return terms.guaranteed + rest // len(contenders | {site})

    def recalled(self, site: str) -> int:
        """Return what a site should give back, as others are denied what they are entitled to."""
        if self.resource.policy is not PoolPolicy.SHARE:
            wanted = self._missing_guarantees(site)
        else:
            wanted = sum(
                min(wish, max(0, self.entitled(other) - self.has(other)))
                for other, wish in self.wishes.items()
                if other != site
            )
        excess = max(0, self.has(site) - self.entitled(site))
        return min(excess, max(0, wanted - max(0, self.free)))

    def recalled_to(self, site: str) -> int | None:
        """Return what a site should hold at most, as others are denied what they are entitled to; None: it is not asked."""
        recalled = self.recalled(site)
        return self.has(site) - recalled if recalled else None

    def _missing_guarantees(self, site: str) -> int:
        return sum(
            min(wish, max(0, each.guaranteed - self.has(each.name)))
            for each in self.resource.sites
            if each.name != site and (wish := self.wishes.get(each.name, 0))
        )

    def _others_want(self, site: str) -> bool:
        return any(
            wish and self.has(other) < self.entitled(other)
            for other, wish in self.wishes.items()
            if other != site
        )


@dataclass(frozen=True, slots=True)
class Loan:
    """One grant of a pool."""

    grant: str
    site: str
    resource: str
    tag: str
    amount: int
    returned: int
    granted_at: datetime
    hold_until: datetime | None
    expires_at: datetime | None

    @property
    def left(self) -> int:
        """What of it is still lent."""
        return self.amount - self.returned


def why_not_back(loan: Loan, amount: int, terms: PooledResource, now: datetime) -> str | None:
    """Return why an amount is not taken back; None: it is."""
    if not 1 <= amount <= loan.left:
        return f"{loan.left} of grant {loan.grant} are lent, not {amount}"
    if loan.hold_until is not None and now < loan.hold_until:
        return f"grant {loan.grant} is held until {loan.hold_until.isoformat()}"
    if amount < loan.left and not terms.partial_returns:
        return f"grant {loan.grant} goes back as a whole"
    if amount < loan.left and amount % terms.step:
        return f"parts go back in steps of {terms.step}"
    return None
