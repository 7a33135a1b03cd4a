"""The configuration of a licence pool that several sites share; written by people in YAML."""

from collections.abc import Iterator
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StrictInt, model_validator

from xce.domain.formats.base import Count, Duration, Format, Money, Name


class PoolPolicy(StrEnum):
    """Who gets what is beyond the guaranteed parts."""

    #: Whoever asks first.
    FIRST = "first"
    #: Equal shares of it for those that have it or were denied it; who has more is asked to give it back.
    SHARE = "share"


class PoolSite(Format):
    """A site that borrows of one resource."""

    name: Name
    guaranteed: Count = Field(default=0, description="kept for it, whoever asks")
    cap: Count | None = Field(default=None, description="most that it may hold; null: no bound")


class PooledResource(Format):
    """One resource of a pool."""

    name: Name
    size: Count
    sites: Annotated[tuple[PoolSite, ...], Field(min_length=1)]
    outside: Count = Field(default=0, description="used by others, who ask nobody; for trials")
    step: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = 1
    minimum_hold: Duration = timedelta(0)
    lease: Duration | None = Field(
        default=None,
        description="a grant ends by itself after so long, unless renewed; null: never",
    )
    partial_returns: StrictBool = True
    policy: PoolPolicy = PoolPolicy.SHARE
    wish: Duration = Field(
        default=timedelta(minutes=5),
        description="a site that was denied something counts for so long as one that wants it",
    )
    price_per_hour: Money | None = None

    def site(self, name: str) -> PoolSite | None:
        """Return what is set for a site; None: it does not borrow of this."""
        return next((site for site in self.sites if site.name == name), None)


class PoolCall(StrEnum):
    """What a site calls a pool for."""

    ASK = "ask"
    STATUS = "status"
    RETURN = "return"
    RENEW = "renew"
    LIST = "list"
    DESCRIBE = "describe"


class PoolFaultKind(StrEnum):
    """What goes wrong."""

    #: What was asked is done, and its answer is lost.
    LOST = "lost"
    #: The answer comes late.
    LATE = "late"
    #: It is refused, and nothing is done.
    REFUSE = "refuse"
    #: A list has one unit less of each grant than there is, and leaves out those of a single unit.
    WRONG = "wrong"


class PoolFault(Format):
    """A fault of the pool's scripts, for trials and tests."""

    fault: PoolFaultKind
    call: PoolCall | None = Field(default=None, description="null: every call")
    site: Name | None = Field(default=None, description="null: every site")
    every: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = Field(
        default=1, description="it strikes each so-manieth of these calls of a site"
    )
    after: Duration = Field(default=timedelta(seconds=5), description="late: how long it takes")

    def concerns(self, site: str, call: PoolCall) -> bool:
        """Return whether it can strike a call."""
        return self.site in (None, site) and self.call in (None, call)


class LicencePool(Format):
    """All that a pool lends, and to whom."""

    format: Literal["xce.pool/1"] = "xce.pool/1"
    resources: Annotated[tuple[PooledResource, ...], Field(min_length=1)]
    faults: tuple[PoolFault, ...] = Field(
        default=(), description="what goes wrong with the scripts, for trials; empty: nothing"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        problems = [*self._contradictions()]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def resource(self, name: str) -> PooledResource | None:
        """Return a resource by its name."""
        return next((one for one in self.resources if one.name == name), None)

    def _contradictions(self) -> Iterator[str]:
        names = [one.name for one in self.resources]
        yield from (f"resource {name} is there twice" for name in _twice(names))
        for one in self.resources:
            sites = [site.name for site in one.sites]
            yield from (f"{one.name}: site {name} is there twice" for name in _twice(sites))
            guaranteed = sum(site.guaranteed for site in one.sites)
            if guaranteed > one.size:
                yield f"{one.name}: {guaranteed} are guaranteed, and there are {one.size}"
            for site in one.sites:
                if site.cap is not None and site.cap < site.guaranteed:
                    yield f"{one.name}: the cap {site.cap} of {site.name} is below its {site.guaranteed}"


def _twice(names: list[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})
