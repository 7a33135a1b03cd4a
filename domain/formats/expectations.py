"""What a scenario expects of its run: one measure, compared with a bound, at a time or over a time."""

from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, cast

from pydantic import Discriminator, Field, StrictBool, Tag, model_validator

from xce.domain.formats.base import Count, Duration, Format, Name
from xce.domain.formats.simulation import Exact


class Measure(StrEnum):
    """What can be measured, at any time of a run."""

    #: Requests for hosts or amounts made so far.
    REQUESTS = "requests"
    #: Hosts or units asked for so far.
    ASKED = "asked"
    #: Machines, or lent units, that exist at the provider in truth.
    EXISTING = "existing"
    #: Machines that the provider has ever made.
    MADE = "made"
    #: Live instances, or lent units, in our books.
    OWNED = "owned"
    #: Instances that have joined and are not draining or going back.
    JOINED = "joined"
    #: Hosts or units that were asked for and are not there yet.
    IN_FLIGHT = "in-flight"
    #: Returns of instances and amounts begun so far.
    RETURNS = "returns"
    #: What is open as an orphan.
    ORPHANS = "orphans"
    #: Pauses that hold.
    PAUSES = "pauses"
    #: Writes of provisioners that were refused so far, since another one leads.
    REFUSED = "refused"
    #: Events so far, of one topic where `event` says so.
    EVENTS = "events"
    #: Jobs that wait, run, or have ended.
    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"
    #: Jobs that the last session counted as demand it could provision for.
    DEMAND = "demand"
    #: Seconds that the longest, or the average, started job waited.
    LONGEST_WAIT = "longest-wait"
    MEAN_WAIT = "mean-wait"
    #: Total, borrowed, occupied and free units of a shared resource.
    TOTAL = "total"
    BORROWED = "borrowed"
    OCCUPIED = "occupied"
    FREE = "free"
    #: Money spent until then, and what everything costs an hour then.
    COST = "cost"
    COST_PER_HOUR = "cost-per-hour"


class ExpectedAsk(Format):
    """One ask of the list that is expected."""

    at: Duration
    item: Name | None = Field(default=None, description="template or resource; null: any")
    amount: Count


class _Expectation(Format):
    """Base of the expectations."""

    why: str | None = Field(default=None, description="for people: what the rule is")


class ExpectAsks(_Expectation):
    """All asks, each with its time: neither one more nor one less."""

    asks: tuple[ExpectedAsk, ...]
    provider: Name | None = Field(default=None, description="null: of all providers")
    item: Name | None = Field(default=None, description="null: all templates and resources")
    within: Duration = Field(
        default=timedelta(0), description="how much later than expected an ask may come"
    )


class ExpectValue(_Expectation):
    """A measure, at a time (`at`), at some time up to one (`by`), from a time on, up to one, always, or at the end (none of these)."""

    of: Measure
    provider: Name | None = None
    item: Name | None = Field(default=None, description="template or resource")
    shared: Name | None = Field(default=None, description="a shared resource")
    event: Name | None = Field(default=None, description="topic, such as xce.request.closed")
    where: dict[Name, str] = Field(
        default_factory=dict, description="fields of the event, as texts; the originator's is `id`"
    )
    job: Name | None = Field(default=None, description="one job, where jobs are counted")
    at: Duration | None = Field(default=None, description="when all of that time has happened")
    by: Duration | None = Field(default=None, description="it holds at some time up to this")
    after: Duration | None = Field(default=None, description="with always or by: from this on")
    until: Duration | None = Field(default=None, description="with always: up to this")
    always: StrictBool = False
    equals: Annotated[Exact, Field(strict=False)] | None = None
    at_least: Annotated[Exact, Field(strict=False)] | None = None
    at_most: Annotated[Exact, Field(strict=False)] | None = None

    @model_validator(mode="after")
    def _whole(self) -> "ExpectValue":
        if self.equals is None and self.at_least is None and self.at_most is None:
            raise ValueError("wanted a bound: equals, at_least or at_most")
        if sum((self.at is not None, self.by is not None, self.always)) > 1:
            raise ValueError("at, by and always are said together; wanted one of them, or none")
        if not self.always and self.until is not None:
            raise ValueError("until goes with always")
        if not self.always and self.by is None and self.after is not None:
            raise ValueError("after goes with always or by")
        if self.event is not None and self.of is not Measure.EVENTS:
            raise ValueError("event goes with `of: events`")
        if self.of in _OF_SHARED and self.shared is None:
            raise ValueError(f"`of: {self.of}` needs the name of a shared resource: `shared`")
        return self

    def holds(self, value: Decimal | None) -> bool:
        """Return whether a value is within the bounds; an unknown one never is."""
        if value is None:
            return False
        if self.equals is not None and value != self.equals:
            return False
        if self.at_least is not None and value < self.at_least:
            return False
        return self.at_most is None or value <= self.at_most


_OF_SHARED = frozenset((Measure.TOTAL, Measure.BORROWED, Measure.OCCUPIED, Measure.FREE))


class ExpectReason(_Expectation):
    """What the session says of a job that waits, at a time: a part of the text."""

    reason_of: Name = Field(description="id of the job")
    at: Duration
    says: str


def _kind(value: object) -> str:
    """Return what an expectation is, by the key that only it has: a mistake is then told once."""
    keys = cast("dict[str, object]", value) if isinstance(value, dict) else vars(value)
    return "asks" if "asks" in keys else "reason" if "reason_of" in keys else "value"


#: Anything that can be expected, told apart by ``asks``, ``reason_of`` and ``of``.
Expectation = Annotated[
    Annotated[ExpectAsks, Tag("asks")]
    | Annotated[ExpectReason, Tag("reason")]
    | Annotated[ExpectValue, Tag("value")],
    Discriminator(_kind),
]
