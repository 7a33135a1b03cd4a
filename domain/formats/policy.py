"""Input and output of one round of the provisioning policy: ``xce.policy/1`` and ``xce.decisions/1``."""

from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, StrictBool, StrictInt, field_validator, model_validator

from xce.domain.formats.base import Amount, Count, Duration, Format, Money, Name, Time, Whole
from xce.domain.formats.inventory import Inventory
from xce.domain.formats.periods import Spent
from xce.domain.formats.provider import ProviderDescription
from xce.domain.formats.session_result import Demand, Idle
from xce.domain.formats.simulated_provider import Share, Zone
from xce.domain.formats.windows import Window

#: Asks are remembered for so long, so no bound on their rate looks further back.
LONGEST_RATE: Final = timedelta(days=1)
_SECOND: Final = timedelta(seconds=1)


class AskedEntry(Format):
    """Hosts of a template that were asked of a provider, in one request or in several at about one time."""

    provider: Name
    template: Name
    hosts: Amount
    asked_at: Time = Field(description="of the last of these requests")
    project: Name | None = Field(
        default=None, description="whose budgets pay for them; null: several projects, or none"
    )


def _countable_time(value: timedelta) -> timedelta:
    if not _SECOND <= value <= LONGEST_RATE:
        raise ValueError("wanted a time from 1s to 1d")
    return value


def _some_time(value: timedelta) -> timedelta:
    if value < _SECOND:
        raise ValueError("wanted at least 1s")
    return value


class AskRate(Format):
    """At most so many hosts within so long a time, whatever became of the asks."""

    hosts: Count = Field(description="0: none is asked")
    within: Annotated[Duration, AfterValidator(_countable_time)] = Field(
        description="up to now; 1s to 1d"
    )


class Budget(Format):
    """A bound on what exists or is asked, returning and errored included: for all providers, some or one; all hosts and units or the
    hosts of some templates; all jobs or those of some projects.
    """

    name: Name
    provider: Name | None = Field(
        default=None, description="null: all providers together, or those that `providers` names"
    )
    providers: tuple[Name, ...] = Field(
        default=(), description="one bound for these together; empty: as `provider` says"
    )
    templates: tuple[Name, ...] = Field(
        default=(), description="one bound for the hosts of these together; empty: for everything"
    )
    projects: tuple[Name, ...] = Field(
        default=(),
        description="one bound for what is asked for jobs of these together; empty: for everything",
    )
    max_hosts: Count | None = None
    max_asked: AskRate | None = Field(
        default=None, description="how fast hosts are asked; null: no bound"
    )
    max_cost_per_hour: Money | None = Field(
        default=None, description="sum of the prices per hour of hosts and units"
    )
    max_cost_per_day: Money | None = Field(
        default=None,
        description="what was spent since midnight, and what all that exists and is asked will cost up to the next",
    )
    max_cost_per_month: Money | None = Field(
        default=None, description="the same from the first of the month to the next"
    )
    zone: Zone = Field(default="UTC", description="whose midnight begins the day and the month")
    committed_for: Annotated[Duration, AfterValidator(_some_time)] | None = Field(
        default=None,
        description="what exists and is asked is counted on to be kept for so long; null: to the end of the day or month, so that "
        "nothing that is asked in it can pass the budget in it",
    )

    @model_validator(mode="after")
    def _one_scope(self) -> Self:
        if self.provider is not None and self.providers:
            raise ValueError("provider and providers are both there; wanted one of them")
        return self

    def covers(self, provider: str, template: str | None, project: str | None) -> bool:
        """Return whether hosts of a template, or units (None), of a provider count, which are for a project, or for several (None)."""
        if self.templates and template not in self.templates:
            return False
        if self.projects and project not in self.projects:
            return False
        return self.provider in (None, provider) and (
            not self.providers or provider in self.providers
        )


class Pause(Format):
    """A provider, or one template or resource of it, that is not asked for a while."""

    provider: Name
    item: Name | None = Field(
        default=None, description="template or resource; null: the whole provider"
    )
    until: Time
    why: str


class FailureEntry(Format):
    """Asks for one template or resource of a provider that came to nothing one after the other."""

    provider: Name
    item: Name = Field(description="template or resource")
    in_a_row: Amount = Field(description="since a host of it last joined, or some of it was lent")
    last_at: Time
    refused: StrictBool = Field(
        default=False, description="the last ask was not even accepted: that alone leads to a pause"
    )
    at_once: StrictBool = Field(
        default=False,
        description="the last one alone leads to a pause: the provider named an error code, or did nothing until the deadline",
    )
    why: str = Field(default="", description="what was said of the last one")


class LossEntry(Format):
    """Hosts of one provider that were lost within an hour, without our doing."""

    provider: Name
    hosts: Amount
    last_at: Time
    joined_since: Count = Field(default=0, description="hosts that joined after the last of them")


class StandingMinimum(Window):
    """Hosts of a template that are there while a window holds, whether jobs want them or not."""

    template: Name
    hosts: Annotated[Count, Field(le=1_000_000)] = Field(
        description="starting and busy ones count; the largest of several that hold is what counts"
    )


class SpareHosts(Window):
    """Hosts of a template without a job that are kept ready while a window holds."""

    template: Name
    hosts: Annotated[Count, Field(le=1_000_000)] = Field(
        description="what is on its way counts; the largest of several that hold is what counts"
    )


class SpotShare(Format):
    """How much of what one template could serve may be of it: the rest is asked as another one, and all of it while it is refused."""

    template: Name = Field(description="cheap, and taken back at any moment")
    on_demand: Name = Field(description="the template that is asked instead")
    share: Share = Field(
        description="of the hosts of both that exist, are asked and are wanted, rounded down"
    )

    @model_validator(mode="after")
    def _of_two(self) -> Self:
        if self.template == self.on_demand:
            raise ValueError("template and on_demand are the same")
        return self


class PolicySettings(Format):
    """What the site has set for its policy."""

    max_in_flight_hosts: Annotated[Count, Field(le=1_000_000)] = Field(
        default=300, description="hosts on their way, over all providers"
    )
    max_per_request: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = Field(
        default=100, description="hosts of one ask"
    )
    request_deadline: Duration = Field(
        default=timedelta(minutes=15), description="an ask without an answer is given up after this"
    )
    minimum_hold: Duration = Field(
        default=timedelta(0),
        description="a joined host is kept at least this long, whoever lends it",
    )
    demand_time_to_live: Duration = Field(
        default=timedelta(minutes=5), description="demand older than this buys and returns nothing"
    )
    release_lead: Duration = Field(
        default=timedelta(minutes=3),
        description="what a return takes; in a paid hour it is sent earlier",
    )
    release_window: Duration = Field(
        default=timedelta(minutes=7),
        description="returns in a paid hour are sent for so long, before the lead",
    )
    join_limit: Duration = Field(
        default=timedelta(minutes=15),
        description="a machine that was not there when the scheduler looked after that time never will be; while no scheduler reports, it is kept",
    )
    pause_after_refusal: Duration = Field(
        default=timedelta(minutes=10),
        description="when the provider names no time itself; it doubles with each further failure in a row",
    )
    longest_pause: Duration = Field(
        default=timedelta(hours=1), description="to which it doubles at most"
    )
    failures_before_pause: Annotated[StrictInt, Field(ge=1, le=1000)] = Field(
        default=3,
        description="asks in a row that were accepted and came to nothing, after which an item is paused",
    )
    mass_loss_least: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = Field(
        default=3, description="so many hosts of a provider that are lost within an hour, and"
    )
    mass_loss_share: Share = Field(
        default=Decimal("0.2"), description="more than this share of its hosts, are a mass loss"
    )
    cautious_for: Duration = Field(
        default=timedelta(minutes=30),
        description="after a mass loss no more hosts of the provider are on their way than have joined since; 0s: no such bound",
    )
    standing: tuple[StandingMinimum, ...] = Field(
        default=(), description="hosts that are there whether jobs want them or not"
    )
    spare: tuple[SpareHosts, ...] = Field(
        default=(), description="hosts without a job that are kept ready for the next ones"
    )
    spot: tuple[SpotShare, ...] = Field(
        default=(), description="how much may be of templates that are taken back at any moment"
    )
    observe_only: StrictBool = Field(
        default=False,
        description="true: decisions are made and said, and none is carried out; what is under way is finished",
    )
    freeze: StrictBool = Field(default=False, description="true: no ask, no return")

    @field_validator("spot")
    @classmethod
    def _one_rule_each(cls, rules: tuple[SpotShare, ...]) -> tuple[SpotShare, ...]:
        names = [rule.template for rule in rules]
        if len(set(names)) < len(names):
            raise ValueError("a template is there twice")
        return rules


class SharedTerms(Format):
    """What the site has set for one elastic resource, and what is known of it now."""

    name: Name
    max_borrow: Count | None = Field(default=None, description="null: as much as is offered")
    step: Annotated[StrictInt, Field(ge=1, le=2**53 - 1)] = 1
    idle_return_after: Duration = Field(
        default=timedelta(0), description="a grant younger than this stays"
    )
    min_hold: Duration = timedelta(0)
    borrow_after: Duration = Field(
        default=timedelta(0), description="demand must last so long before more is borrowed"
    )
    wanted_since: Time | None = Field(
        default=None, description="since when there is demand; null: not known, it counts at once"
    )
    headroom: Count = Field(default=0, description="kept free beyond what is needed")
    spare: Whole | None = Field(
        default=None,
        description="what is there or asked, less what is occupied and wanted; null: unknown",
    )
    blind: StrictBool = Field(
        default=False, description="true: what is really in use is not seen now; nothing goes back"
    )
    over: Count = Field(default=0, description="occupied beyond the total; nothing goes back")
    free: Count | None = Field(
        default=None,
        description="of the total, what is not occupied: what a lender that recalls some gets at most; null: unknown",
    )


class PolicyInput(Format):
    """One round's input."""

    format: Literal["xce.policy/1"] = "xce.policy/1"
    now: Time
    position: Count = Field(default=0, description="log position the demand was computed at")
    computed_at: Time | None = Field(
        default=None, description="when the demand was computed; null: now"
    )
    demand: Demand = Demand()
    idle: Idle = Idle()
    providers: tuple[ProviderDescription, ...] = ()
    inventory: Inventory = Inventory()
    budgets: tuple[Budget, ...] = ()
    pauses: tuple[Pause, ...] = ()
    asked: tuple[AskedEntry, ...] = Field(
        default=(),
        description="hosts asked within the last day, for bounds on the rate; the requests of the inventory count anyhow",
    )
    failures: tuple[FailureEntry, ...] = Field(
        default=(), description="asks that failed one after the other, by provider and item"
    )
    losses: tuple[LossEntry, ...] = Field(
        default=(), description="hosts that were lost, the last time at each provider"
    )
    spent: tuple[Spent, ...] = Field(
        default=(),
        description="what was spent today and this month, for budgets of a day or month in the zones of these; without it they allow nothing",
    )
    shared: tuple[SharedTerms, ...] = Field(
        default=(),
        description="elastic resources; of one that is not here only its lender says how",
    )
    settings: PolicySettings = PolicySettings()


class DecisionKind(StrEnum):
    """What is to be done."""

    REQUEST = "request"
    RETURN = "return"
    CANCEL = "cancel"
    PAUSE = "pause"
    HOLD = "hold"


class GrantPart(Format):
    """An amount of one grant that goes back."""

    grant: Name
    amount: Count


class Decision(Format):
    """One thing to do, or deliberately not to do (``hold``), with its reason."""

    kind: DecisionKind
    provider: Name | None = None
    template: Name | None = None
    resource: Name | None = None
    count: Count | None = Field(default=None, description="hosts")
    amount: Count | None = Field(default=None, description="units of a resource")
    instances: tuple[Name, ...] = ()
    grants: tuple[GrantPart, ...] = ()
    requests: tuple[Name, ...] = Field(
        default=(), description="the requests that a cancel gives up"
    )
    project: Name | None = Field(
        default=None,
        description="whose budgets pay for what is asked; null: several projects, or none",
    )
    until: Time | None = Field(default=None, description="when a pause ends")
    reason: str
    jobs: tuple[Name, ...] = Field(default=(), description="the jobs it serves, in job order")
    cost_per_hour: Money | None = Field(
        default=None, description="what it adds (request) or ends (return); null: unknown"
    )


class Decisions(Format):
    """One round's output."""

    format: Literal["xce.decisions/1"] = "xce.decisions/1"
    decisions: tuple[Decision, ...] = ()

    @classmethod
    def of(cls, *decisions: Decision) -> Self:
        """Return the round's decisions in the order they are to be carried out."""
        return cls(decisions=decisions)
