"""What a scheduler reports of a shared resource, beside what is occupied of it."""

from pydantic import Field, StrictBool

from xce.domain.formats.base import Count, Format, Time, Whole


class SharedReport(Format):
    """What a scheduler knows of one shared resource at the end of a session. Kept in memory, and never a part of the log."""

    wanted: Count = Field(
        default=0,
        description="what waiting jobs that could start want of it, what is free of it included",
    )
    wanted_since: Time | None = Field(
        default=None, description="since when they have wanted some without a break; null: not now"
    )
    booked: Count | None = Field(default=None, description="of running jobs; null: not known")
    blind: StrictBool = Field(
        default=False,
        description="true: what is really in use is not seen now, and nothing is to go back then",
    )
    drift: Whole | None = Field(
        default=None,
        description="observed less booked, without fresh bookings that may not be seen yet; null: unknown",
    )
    drift_since: Time | None = Field(
        default=None, description="since when drift has been as large as the site has it reported"
    )
