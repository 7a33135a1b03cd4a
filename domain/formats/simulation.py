"""What a simulation amounts to: one JSON document, ``xce.simulation/1``.

Numbers are exact: whole seconds and counts; money and ratios are decimal strings, rounded once, half to even, from exact fractions.
"""

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, PlainSerializer, WithJsonSchema

from xce.domain.formats.base import Count, Format, Money, Name, Time


def _plain(value: Decimal) -> str:
    return format(value, "f")


#: A ratio or a mean, to a stated number of places; a decimal string in JSON.
Exact = Annotated[
    Decimal,
    PlainSerializer(_plain, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": r"^-?\d+(\.\d+)?$"}),
]


class JobsWhy(Format):
    """Jobs that share a fate, all by name."""

    why: str
    jobs: tuple[Name, ...]


class MappingNote(Format):
    """Something of a trace that could not be taken as it was."""

    what: str
    jobs: Count
    first: Name


class JobCounts(Format):
    """Where the jobs went: read = submitted + left_out, submitted = ended + not_ended."""

    read: Count
    submitted: Count
    started: Count
    ended: Count
    left_out: tuple[JobsWhy, ...] = ()
    not_ended: tuple[JobsWhy, ...] = ()
    notes: tuple[MappingNote, ...] = ()


class WaitingTimes(Format):
    """Seconds from submission to start, of the jobs that started. All null: none did.

    ``p95`` is the smallest waiting time that 95 of 100 jobs did not pass.
    """

    jobs: Count
    mean: Exact | None = None
    median: Exact | None = None
    p95: Count | None = None
    max: Count | None = None


class PartitionUse(Format):
    """The own hosts, and what of their slots jobs used."""

    hosts: Count
    slots: Count
    slot_seconds: Count
    busy_slot_seconds: Count
    utilisation: Exact | None = Field(description="busy of all, 4 places")


class TemplateUse(Format):
    """Hosts of one template of one provider: cost = billed seconds x price / 3600."""

    template: Name
    provider: Name
    price_per_hour: Money | None
    hosts: Count
    joined: Count
    host_seconds: Count = Field(description="from the grant until gone")
    billed_seconds: Count
    cost: Money | None
    slot_seconds: Count = Field(description="of joined hosts, from the join until gone")
    busy_slot_seconds: Count
    utilisation: Exact | None
    still_there: Count = Field(description="hosts that are not back at the end")


class SharedUse(Format):
    """One shared resource: borrowed = returned + lost + held at the end."""

    name: Name
    owned: Count
    peak_in_use: Count
    peak_borrowed: Count
    borrowed: Count = Field(description="sum over all grants")
    returned: Count
    lost: Count
    held_at_end: Count
    why_held: tuple[str, ...] = Field(description="one reason for each grant that is still held")
    unit_seconds: Count = Field(description="sum over borrowed units of the seconds they were ours")
    cost: Money | None


class RequestCounts(Format):
    """Requests by outcome, and what they asked for and got; hosts and units apart."""

    hosts_asked: Count = 0
    hosts_granted: Count = 0
    units_asked: Count = 0
    units_granted: Count = 0
    requests: Count = 0
    by_outcome: dict[Name, Count] = Field(default_factory=dict)


class ReturnCounts(Format):
    """Returns of hosts and of amounts."""

    returns: Count = 0
    hosts_returned: Count = 0
    units_returned: Count = 0
    refused: Count = 0
    open: Count = 0


class RoundCounts(Format):
    """Rounds of the policy, and what the last of those that held asks back did not ask, and why."""

    rounds: Count
    wanting: Count = Field(description="with demand for hosts or units that can be had")
    holding: Count = Field(description="that held back something that was wanted")
    held_at: Time | None = Field(default=None, description="the last of these; null: none")
    held: tuple[JobsWhy, ...] = Field(default=(), description="of that round: reasons and jobs")


class LogEnd(Format):
    """Where the log ends; two runs with equal ends wrote equal logs."""

    position: Count
    digest: str


class SimulationReport(Format):
    """The whole of a run in numbers."""

    format: Literal["xce.simulation/1"] = "xce.simulation/1"
    source: str
    seed: Count
    started: Time
    ended: Time
    sessions: Count
    jobs: JobCounts
    waiting: WaitingTimes
    own: PartitionUse
    templates: tuple[TemplateUse, ...]
    shared: tuple[SharedUse, ...]
    requests: RequestCounts
    returns: ReturnCounts
    rounds: RoundCounts | None = Field(
        default=None, description="null: there is nobody to ask, or they were not counted"
    )
    cost: Money | None = Field(description="of hosts and units together; null: a price is unknown")
    log: LogEnd
