"""What the controller's REST interface takes and gives, beside the formats that have a page of their own."""

from typing import Annotated, Literal

from pydantic import Field, StrictBool

from xce.domain.alerts.alert import AlertKind, AlertState
from xce.domain.events.base import Why
from xce.domain.formats.base import Count, Duration, Format, Money, Name, Time, TotalTime
from xce.domain.formats.config import SharedPool
from xce.domain.formats.inventory import GrantEntry, InstanceEntry, Inventory, RequestEntry
from xce.domain.formats.observation import Observation
from xce.domain.formats.periods import Spent
from xce.domain.formats.policy import AskedEntry, FailureEntry, LossEntry, Pause
from xce.domain.formats.provider import Kind, ProviderDescription
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.shared_report import SharedReport
from xce.domain.formats.snapshot import Attribute, Catalog
from xce.domain.provisioning.decision import Deed
from xce.domain.provisioning.drain import AtDeadline, DrainState
from xce.domain.provisioning.lease import LeaseState
from xce.domain.provisioning.orphan import OrphanKind, OrphanState

#: Entries of one page.
PAGE_DEFAULT = 100
PAGE_MAX = 1000


# ---------------------------------------------------------------------- answers
class OrderAnswer(Format):
    """An order was carried out, and is durable."""

    changed: StrictBool = Field(description="false: it was a repeat, nothing was recorded")
    versions: dict[str, Count] = Field(
        description="of each aggregate that the order named, such as request:R1, after it"
    )
    epochs: dict[Name, Count] = Field(
        description="by provider: the epoch of each lease that the order took or renewed"
    )


class HostAnswer(OrderAnswer):
    """An order about a host was carried out, and is durable; the batch system obeys when the scheduler next comes by."""

    confirmed: StrictBool = Field(
        description="the cluster is known to have the host; false: the newest snapshot does not have it (it drains already), "
        "or none was posted since the controller started"
    )


class ProblemDetail(Format):
    """One thing that is wrong with a message."""

    path: str
    message: str


class ProblemAnswer(Format):
    """An error (RFC 9457, ``application/problem+json``)."""

    type: str = Field(description="urn:xce:problem:CODE")
    title: str
    status: Count
    detail: str
    instance: str = Field(description="the path that was called")
    code: str = Field(description="stable: decide on it")
    request_id: str = Field(description="names the call in the controller's log")
    problems: tuple[ProblemDetail, ...] = Field(
        default=(), description="all that is wrong with a message that cannot be read"
    )


class Health(Format):
    """Whether the process works, or takes orders."""

    status: Literal["ok"] = "ok"


# ------------------------------------------------------------------------ lists
class RequestPage(Format):
    """Requests that are open or of which something lives, by id."""

    items: tuple[RequestEntry, ...]
    next: str | None = Field(description="cursor of the next page; null: this is the last")


class JobEntry(Format):
    """What was asked for one job of the batch system."""

    job: Name
    requests: tuple[RequestEntry, ...] = Field(description="oldest first, also those that are over")
    known_after: Count = Field(
        description="requests up to this position are not known here any more; 0: all are; the audit read models have them"
    )


class InstancePage(Format):
    """Instances that exist, by id."""

    items: tuple[InstanceEntry, ...]
    next: str | None = Field(description="cursor of the next page; null: this is the last")


class GrantPage(Format):
    """Grants of which the lender has not all back, by id."""

    items: tuple[GrantEntry, ...]
    next: str | None = Field(description="cursor of the next page; null: this is the last")


class SharedEntry(Format):
    """A shared resource: total = owned + borrowed."""

    name: Name
    total: Count
    owned: Count
    borrowed: Count
    in_flight: Count = Field(description="asked for and not yet granted")
    returning: Count = Field(description="out of the total, not yet confirmed by the lender")
    occupied: Count | None = Field(description="in use, as reported; null: unknown")
    report: SharedReport | None = Field(
        default=None, description="what else the scheduler reported; null: nothing"
    )
    headroom: Count = Field(description="what may still be borrowed")
    provider: Name | None
    max_borrow: Count
    step: Count
    idle_return_after: Duration
    min_hold: Duration


class SharedPage(Format):
    """Shared resources, by name."""

    items: tuple[SharedEntry, ...]
    next: str | None = Field(description="cursor of the next page; null: this is the last")


class ProviderEntry(Format):
    """What a provider says it is, and what of it is paused."""

    name: Name
    description: ProviderDescription
    pauses: tuple[Pause, ...]
    hosts: Count = Field(description="that exist or are asked")


class ProviderPage(Format):
    """Providers, by name."""

    items: tuple[ProviderEntry, ...]
    next: str | None = Field(description="cursor of the next page; null: this is the last")


class LeaseEntry(Format):
    """The lease of one provider."""

    provider: Name
    holder: Name = Field(description="the present holder, or the last one")
    epoch: Count
    state: LeaseState
    term: Duration
    since: Time
    left_s: float | None = Field(
        description="seconds until the term ends without a renewal; null: nobody holds it"
    )


class LeasePage(Format):
    """Leases, by provider."""

    items: tuple[LeaseEntry, ...]
    next: str | None = Field(description="cursor of the next page; null: this is the last")


class DrainEntry(Format):
    """A host that takes no new work."""

    host: Name
    instance: Name | None = Field(
        description="of a provisioned host, which goes back when it is empty; null: an own host"
    )
    state: DrainState
    why: str
    yields: StrictBool = Field(
        description="true: a job that is found after the closing opens the host again"
    )
    deadline: Time | None
    at_deadline: AtDeadline
    since: Time
    changed: Time
    by: str
    jobs: tuple[Name, ...] = Field(description="that run at the deadline, or came back")


class DrainPage(Format):
    """Drains under way, by host."""

    items: tuple[DrainEntry, ...]
    next: str | None = Field(description="cursor of the next page; null: this is the last")


class OrphanEntry(Format):
    """Something that nobody owns, and that somebody has to do something about."""

    id: Name = Field(description="PROVIDER/THEIRS")
    provider: Name
    theirs: Name = Field(description="the provider's id of it")
    kind: OrphanKind
    state: OrphanState
    tag: Name | None
    why: str
    found: Time
    return_id: Name | None


class OrphanPage(Format):
    """Open orphans, by id."""

    items: tuple[OrphanEntry, ...]
    next: str | None = Field(description="cursor of the next page; null: this is the last")


class DecisionEntry(Format):
    """Why something was asked, given back, given up or paused."""

    decision: Name
    position: Count = Field(description="of its event in the log")
    at: Time
    by: str
    provider: Name
    deed: Deed
    item: Name | None
    amount: Count
    reason: str
    jobs: tuple[Name, ...]
    demand_position: Count
    cost_per_hour: Money | None
    led_to: tuple[str, ...]


class DecisionPage(Format):
    """The newest decisions, newest first; the log has older ones."""

    items: tuple[DecisionEntry, ...]
    next: str | None = Field(description="cursor of the next page; null: this is the last")


class AlertEntry(Format):
    """Something that is, or was, not as it should be."""

    id: str = Field(description="KIND/SUBJECT")
    position: Count = Field(description="of the event that raised it")
    kind: AlertKind
    subject: Name
    state: AlertState
    text: str
    raised_at: Time
    cleared_at: Time | None = Field(description="null: it is not over")
    not_told: tuple[Name, ...] = Field(
        description="webhooks of the configuration that do not know yet that it was raised"
    )


class AlertPage(Format):
    """Alerts, the newest first; the log has older ones."""

    items: tuple[AlertEntry, ...]
    next: str | None = Field(description="cursor of the next page; null: this is the last")


class SiteEntry(Format):
    """What holds for the whole site."""

    frozen: StrictBool = Field(description="nothing new is asked, drained or given back")
    why: str = ""
    since: Time | None = Field(default=None, description="of the freeze")
    by: str = ""
    configurations: dict[Name, str] = Field(
        default_factory=dict, description="by daemon, the digest of what it works with"
    )


class Supply(Format):
    """All that a session and a policy round need of the log, at one position."""

    position: Count
    now: Time
    primary: Count = Field(
        default=0,
        description="epoch of the controller that answers; a report of bookings names it",
    )
    catalog: Catalog
    shared: tuple[SharedEntry, ...]
    inventory: Inventory
    providers: tuple[ProviderEntry, ...]
    leases: tuple[LeaseEntry, ...]
    drains: tuple[DrainEntry, ...] = ()
    site: SiteEntry = SiteEntry(frozen=False)
    asked: tuple[AskedEntry, ...] = Field(
        default=(), description="hosts asked within the last day, for bounds on the rate"
    )
    failures: tuple[FailureEntry, ...] = Field(
        default=(), description="asks that failed one after the other, by provider and item"
    )
    losses: tuple[LossEntry, ...] = Field(
        default=(), description="hosts that were lost, the last time at each provider"
    )
    spent: tuple[Spent, ...] = Field(
        default=(), description="what was spent today and this month, in the zones that were named"
    )
    pools: tuple[SharedPool, ...] = Field(
        default=(), description="shared resources as the configuration wants them to be lent"
    )


class SpentPeriods(Format):
    """What was spent in each day or month, the oldest first; none of those without costs."""

    position: Count
    now: Time
    items: tuple[Spent, ...]


class CostLine(Format):
    """What one provider's template or resource costs."""

    provider: Name
    kind: Kind
    item: Name | None = Field(
        description="null: unknown, of what nobody owns and whose provider offers none"
    )
    live: Count = Field(description="hosts or units that cost now")
    ended: Count
    used: TotalTime
    billed: TotalTime
    cost: Money
    per_hour: Money
    unpriced: Count = Field(description="hosts or units of unknown price")
    owned: bool = Field(
        default=True, description="false: orphans, which no record of ours owns or owned"
    )


class UnaccountedLine(Format):
    """Something that may exist and cost, and that nothing counts on: it counts against capacities and budgets all the same."""

    what: str = Field(description="its name: an orphan, or a request that was given up")
    provider: Name
    kind: Kind
    item: Name | None = Field(
        description="that it counts as: the dearest of its provider where nobody knows it"
    )
    amount: Count
    price_per_hour: Money | None = Field(description="of one; null: unknown")
    project: Name | None = Field(description="whose budgets it counts against")
    since: Time | None = Field(
        default=None,
        description="since when it is in the sums; null: it is not, for nothing of it may exist",
    )


class Costs(Format):
    """What everything costs, in the controller's currency."""

    position: Count
    now: Time
    cost: Money
    per_hour: Money
    lines: tuple[CostLine, ...]
    unaccounted: tuple[UnaccountedLine, ...] = Field(
        default=(), description="orphans, and asks of which nobody knows what they have done"
    )


class EventEntry(Format):
    """One event of the log."""

    position: Count
    name: str = Field(description="stored name, such as xce.request.intended")
    aggregate: str = Field(description="such as request:R1")
    version: Count
    at: Time
    by: str
    data: dict[str, object] = Field(description="the event's own fields: see the event reference")


class EventPage(Format):
    """Events in the order of the log."""

    items: tuple[EventEntry, ...]
    next: Count | None = Field(description="value of `after` for the next page; null: none yet")


class Status(Format):
    """Where the controller is."""

    release: str
    position: Count
    digest: str
    epoch: Count = Field(description="of this primary")
    primary: StrictBool
    session: Count = Field(description="session results posted since the start")
    session_age_s: float | None = Field(
        description="of the newest; null: none, or too old to count"
    )
    no_session: Why | None = Field(
        default=None,
        description="why the scheduler can hold none, as it said last; null: it has not said so since the newest",
    )
    now: Time


class Bookings(Format):
    """What is in use of each shared resource; null: unknown."""

    occupied: dict[Name, Count | None]
    reports: dict[Name, SharedReport] = Field(
        default_factory=dict, description="what else the scheduler said of each"
    )


class ObservationReport(Format):
    """What an observer saw: the newest of each resource and source stays; older ones change nothing."""

    observations: Annotated[tuple[Observation, ...], Field(max_length=10_000)]


class Observations(Format):
    """What observers saw last of shared resources, and how the configuration wants it to be read."""

    observations: tuple[Observation, ...]
    pools: tuple[SharedPool, ...]


class DemandMessage(Format):
    """The newest session result, as the stream pushes it."""

    number: Count = Field(description="grows with each result; 0: none since the start")
    age_s: float
    by: str
    result: SessionResult | None = Field(
        description="null: unknown, nothing may be bought or returned on it"
    )


# ------------------------------------------------------------------------ bodies
class JoinReport(Format):
    """A host reports to the cluster. Which instance it is, is found by id, machine, or name and boot time, never by name alone."""

    host: Name = Field(description="its name in the cluster")
    booted_at: Time
    instance: Name | None = Field(default=None, description="our id, where the host knows it")
    machine: Name | None = Field(default=None, description="the provider's id of the machine")
    attributes: dict[Name, Attribute] = Field(default_factory=dict, description="as measured")
    total: dict[Name, Count] = Field(default_factory=dict, description="as measured, in base units")
    busy: StrictBool = Field(
        default=False,
        description="true: it has a job already, so it is open, whether it was to be checked first or not",
    )


class Because(Format):
    """A reason, for people."""

    why: Why = ""


class DrainWish(Format):
    """How a host is drained."""

    why: Why = ""
    deadline: Time | None = Field(default=None, description="when its jobs should have ended")
    at_deadline: AtDeadline = Field(
        default=AtDeadline.WAIT,
        description="wait for jobs that still run, requeue them, or leave it to an administrator",
    )


class DrainLook(Format):
    """The scheduler closed a host, and then looked at it again."""

    jobs: tuple[Name, ...] = Field(description="that run on it; none: it is empty")
