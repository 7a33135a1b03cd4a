"""What a licence server, or any other monitor, sees in use of a shared resource."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from xce.domain.formats.base import Count, Format, Name, Time


class Quality(StrEnum):
    """How far an observation can be relied on."""

    OK = "ok"
    #: A node of a triad is down; the numbers are whole.
    DEGRADED = "degraded"
    #: A lower bound: it raises what is occupied, and frees nothing.
    PARTIAL = "partial"
    #: No observation: the last one goes on growing old.
    UNREACHABLE = "unreachable"


class Scope(StrEnum):
    """Whose use an observed number is."""

    OURS = "ours"
    POOL = "pool"


class Observation(Format):
    """One look at one resource. Unknown is null, never 0."""

    format: Literal["xce.observation/1"] = "xce.observation/1"
    resource: Name
    source: Name = Field(description="the observer")
    sequence: Count = Field(
        default=0, description="grows with each look of a source; 0: it does not count"
    )
    quality: Quality
    in_use: Count | None = Field(default=None, description="null: unknown")
    issued: Count | None = None
    queued: Count | None = None
    reserved: Count | None = None
    lingering: Count | None = Field(
        default=None, description="part of in_use that no running tool holds"
    )
    matched: dict[Name, Count] = Field(
        default_factory=dict,
        description="part of in_use that is known to be of these jobs, where the observer can tell",
    )
    observed_at: Time = Field(description="by our clock")
    received_at: Time
    note: str = ""

    @property
    def usable(self) -> bool:
        """Return whether it says what is in use, and not only a lower bound of it."""
        return self.in_use is not None and self.quality in (Quality.OK, Quality.DEGRADED)
