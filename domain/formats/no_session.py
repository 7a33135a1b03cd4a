"""What a scheduler tells the controller while it can hold no session: demand is unknown then, and somebody should know why."""

from pydantic import Field

from xce.domain.events.base import Why
from xce.domain.formats.base import Format


class NoSession(Format):
    """Why there is no session. Kept in memory until there is one; never a part of the log."""

    why: Why = Field(
        description="for people; of a requirement that cannot be read it names the job and the text"
    )
