"""How a simulated provider behaves: the part of a configuration that no real provider has.

What the policy is told is the provider's description; this is what then happens, and the two may differ.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field, StrictBool, StrictInt, WithJsonSchema, model_validator

from xce.domain.formats.base import Count, Duration, Format, Name, Total

_TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):([0-5]\d)", re.ASCII)


def _time_of_day(value: str) -> str:
    if not _TIME_OF_DAY.fullmatch(value):
        raise ValueError(f"{value!r} is not a time of day; wanted such as 08:30")
    return value


def _zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{value!r} is not a time zone; wanted such as Europe/Berlin") from None
    return value


#: A share of 1, exact: 0, 0.25, 1.
Share = Annotated[
    Decimal,
    Field(ge=0, le=1, max_digits=12, decimal_places=9),
    WithJsonSchema({"type": ["string", "number"], "description": "0 to 1, such as 0.25"}),
]
#: A time of day, to the minute.
TimeOfDay = Annotated[str, AfterValidator(_time_of_day)]
#: The name of a time zone, such as Europe/Berlin.
Zone = Annotated[str, AfterValidator(_zone)]


class Day(StrEnum):
    """A day of the week."""

    MON = "mon"
    TUE = "tue"
    WED = "wed"
    THU = "thu"
    FRI = "fri"
    SAT = "sat"
    SUN = "sun"


_DAYS = tuple(Day)


def minute_of_day(text: str) -> int:
    """Return the minutes since midnight of a ``TimeOfDay``."""
    hour, minute = text.split(":")
    return int(hour) * 60 + int(minute)


class Delay(Format):
    """A length of time that varies: log-normal with this median and 95th percentile; a single value means always that."""

    p50: Duration
    p95: Duration

    @model_validator(mode="before")
    @classmethod
    def _constant(cls, value: object) -> object:
        return {"p50": value, "p95": value} if isinstance(value, (str, int, timedelta)) else value

    @model_validator(mode="after")
    def _in_order(self) -> "Delay":
        if self.p95 < self.p50:
            raise ValueError("p95 is below p50")
        if self.p95 > self.p50 == timedelta(0):
            raise ValueError("a median of 0 cannot vary; p95 must be 0 too")
        return self


class LeadTimes(Format):
    """From asking to usable, in three parts."""

    lag: Delay = Field(
        default=Delay.model_validate("20s"),
        description="from the ask until the machine exists and costs",
    )
    boot: Delay = Field(
        default=Delay.model_validate("90s"),
        description="until the provider calls it a success or a failure",
    )
    join: Delay = Field(
        default=Delay.model_validate("10s"), description="until it joins the cluster"
    )


class Refusal(Format):
    """When asks are refused: in a daily window, or by chance, or by chance within a window."""

    items: tuple[Name, ...] | None = Field(
        default=None, description="templates or resources; null: all"
    )
    share: Share = Field(default=Decimal(1), description="of the asks")
    start: TimeOfDay | None = Field(default=None, description="null: all day")
    end: TimeOfDay | None = Field(default=None, description="a window may pass midnight")
    days: tuple[Day, ...] | None = Field(
        default=None, description="on which the window starts; null: all"
    )
    zone: Zone = Field(default="UTC", description="of the times and days")
    code: Name = "InsufficientInstanceCapacity"
    why: str = "no capacity"
    retry_after: Duration | None = None
    late: Duration | None = Field(
        default=None,
        description="null: the ask itself is refused; else it is accepted, and ends so long after with nothing",
    )

    @model_validator(mode="after")
    def _whole_window(self) -> "Refusal":
        if (self.start is None) != (self.end is None):
            raise ValueError("start and end belong together")
        return self

    def covers(self, item: str, now: datetime) -> bool:
        """Return whether an ask for ``item`` at ``now`` may be refused by this rule."""
        if self.items is not None and item not in self.items:
            return False
        if self.start is None and self.days is None:
            return True
        now = now.astimezone(ZoneInfo(self.zone))
        day = now
        if self.start is not None and self.end is not None:
            minute, start, end = (
                now.hour * 60 + now.minute,
                minute_of_day(self.start),
                minute_of_day(self.end),
            )
            inside = start <= minute < end if start < end else minute >= start or minute < end
            if not inside:
                return False
            if start >= end and minute < end:
                day = now - timedelta(days=1)
        return self.days is None or _DAYS[day.weekday()] in self.days


class OutsideUse(Format):
    """What others take of a pool from a time of day on, until the next entry that holds on the day."""

    start: TimeOfDay
    amount: Count
    days: tuple[Day, ...] | None = Field(default=None, description="null: all")
    zone: Zone = Field(default="UTC", description="of the time and days")


class CallKind(StrEnum):
    """What a provider is called for."""

    ASK = "ask"
    STATUS = "status"
    RETURN = "return"
    LIST = "list"


class Throttle(Format):
    """More calls than these within a time are answered with "too many requests", and change nothing."""

    calls: Annotated[StrictInt, Field(ge=1, le=1_000_000)]
    per: Duration
    of: tuple[CallKind, ...] | None = Field(default=None, description="null: every kind of call")


class TakeBacks(Format):
    """Machines that the provider takes back by itself, as it does with spot ones."""

    share: Share = Field(default=Decimal(1), description="of the machines")
    after: Delay = Field(description="from the launch until it is told")
    notice: Duration = Field(
        default=timedelta(minutes=2), description="from then until the machine is gone"
    )


class TemplateBehaviour(Format):
    """How machines of one template differ from what holds for the provider; null: they do not."""

    lead_time: LeadTimes | None = None
    return_time: Delay | None = None
    boot_failure: Share | None = None
    never_join: Share | None = None
    unhealthy: Share | None = None
    take_backs: TakeBacks | None = None
    measured: dict[Name, Total] = Field(
        default_factory=dict,
        description="what its hosts really have, where that is not what the template promises",
    )


class Behaviour(Format):
    """What a simulated provider does with what it is asked. All shares are drawn from the seed and the request's id."""

    lead_time: LeadTimes = LeadTimes()
    return_time: Delay = Field(
        default=Delay.model_validate("30s"),
        description="from the return until the machine is gone and costs no more",
    )
    partial: Share = Field(
        default=Decimal(0), description="of the asks, brings fewer than asked, or none"
    )
    surplus: Share = Field(
        default=Decimal(0), description="of the asks for hosts, brings one more than asked"
    )
    boot_failure: Share = Field(
        default=Decimal(0), description="of the machines, fails instead of booting"
    )
    never_join: Share = Field(
        default=Decimal(0), description="of the machines, boots and never joins"
    )
    unhealthy: Share = Field(
        default=Decimal(0),
        description="of the machines, joins and fails its health check, where there is one (capability healthCheck)",
    )
    return_refusal: Share = Field(
        default=Decimal(0), description="of the returned machines and grants, refused"
    )
    refusals: tuple[Refusal, ...] = ()
    capacity: dict[Name, Count] = Field(
        default_factory=dict,
        description="what really exists, by template or resource; without an entry: no limit for hosts, "
        "the described capacity for resources",
    )
    enforce_max_number: StrictBool = Field(
        default=False,
        description="true: also refuses what passes a template's max_number; real ones seldom do",
    )
    outside_use: dict[Name, tuple[OutsideUse, ...]] = Field(
        default_factory=dict, description="what others take of a resource, by time of day"
    )
    term: Duration | None = Field(
        default=None,
        description="after which a lent amount ends by itself; null: when it is given back",
    )
    renews: StrictBool = Field(
        default=False, description="true: the end of a lent amount is put off when it is asked to"
    )
    recalls: StrictBool = Field(
        default=False,
        description="true: it wants back what others use beyond the rest of a resource, and says so when it is polled",
    )
    lost_answers: Share = Field(
        default=Decimal(0), description="of the asks, is carried out, and the answer is lost"
    )
    answer_delay: Delay = Field(
        default=Delay.model_validate("0s"),
        description="how much later than it happens a status tells what became of an ask",
    )
    failed_stay: StrictBool = Field(
        default=False,
        description="true: a machine that failed to boot is there and costs until it is given back",
    )
    reused_names: StrictBool = Field(
        default=False, description="true: a new machine gets the name of one that is gone"
    )
    throttle: Throttle | None = Field(default=None, description="null: every call is answered")
    take_backs: TakeBacks | None = Field(default=None, description="null: none")
    templates: dict[Name, TemplateBehaviour] = Field(
        default_factory=dict, description="what is different for some templates"
    )

    def of(self, template: str) -> "TemplateBehaviour":
        """Return what holds for a template, with nothing left open but ``take_backs``."""
        own = self.templates.get(template, _AS_ALL)
        return TemplateBehaviour.model_construct(
            lead_time=own.lead_time if own.lead_time is not None else self.lead_time,
            return_time=own.return_time if own.return_time is not None else self.return_time,
            boot_failure=own.boot_failure if own.boot_failure is not None else self.boot_failure,
            never_join=own.never_join if own.never_join is not None else self.never_join,
            unhealthy=own.unhealthy if own.unhealthy is not None else self.unhealthy,
            take_backs=own.take_backs if own.take_backs is not None else self.take_backs,
            measured=own.measured,
        )

    def used_outside(self, resource: str, now: datetime) -> int:
        """Return what others take of a resource at ``now``."""
        return outside_use(self.outside_use.get(resource, ()), now)


_AS_ALL = TemplateBehaviour()


def outside_use(entries: Iterable[OutsideUse], now: datetime) -> int:
    """Return what others take at ``now``: the entry that began last, looking back a week; 0 where none did."""
    begun = [(at, entry.amount) for entry in entries if (at := _began(entry, now)) is not None]
    return max(begun, key=lambda found: found[0])[1] if begun else 0


def _began(entry: OutsideUse, now: datetime) -> datetime | None:
    """Return when an entry last began to hold."""
    local = now.astimezone(ZoneInfo(entry.zone))
    minute = minute_of_day(entry.start)
    for back in range(8):
        day = local - timedelta(days=back)
        begin = day.replace(hour=minute // 60, minute=minute % 60, second=0, microsecond=0)
        if begin <= local and (entry.days is None or _DAYS[begin.weekday()] in entry.days):
            return begin.astimezone(UTC)
    return None
