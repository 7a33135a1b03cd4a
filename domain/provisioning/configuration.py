"""Configuration: what a daemon was started with, or has read anew, so that a change of rules is in the audit trail (SPEC C11)."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import Field

from xce.domain.events import ids
from xce.domain.events.base import Aggregate, DomainEvent, Why, applies
from xce.domain.events.transitions import Table, lands


class ConfigurationState(StrEnum):
    """A configuration has one state."""

    IN_USE = "in_use"


S = ConfigurationState

TRANSITIONS: Final[Table[ConfigurationState]] = {
    "Changed": lands({S.IN_USE}, S.IN_USE, first=True),
}


class Configuration(Aggregate[ConfigurationState]):
    """The configuration of one daemon, by its name."""

    KIND: ClassVar[str] = ids.CONFIGURATION
    TRANSITIONS: ClassVar[Table[ConfigurationState]] = TRANSITIONS

    class Event(DomainEvent):
        """Base of this aggregate's events."""

    class Changed(Event):
        """The daemon works with another configuration than before, or for the first time.

        Attributes:
            digest: SHA-256 of the configuration, with its defaults filled in.
            changes: what is different, for people.
        """

        TOPIC: ClassVar[str] = "xce.configuration.changed"
        digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
        changes: tuple[Why, ...]

    # ------------------------------------------------------------- commands
    @classmethod
    def change_first(
        cls, *, daemon: str, digest: str, changes: Iterable[str], at: datetime, by: str
    ) -> "Configuration":
        """Return the first configuration of a daemon."""
        return cls._first(
            cls.Changed,
            ids.configuration_id(daemon),
            at=at,
            by=by,
            digest=digest,
            changes=tuple(changes),
        )

    def change(self, *, digest: str, changes: Iterable[str], at: datetime, by: str) -> None:
        """Record another configuration; the same one again records nothing."""
        if self.digest == digest:
            return
        self._require(self.Changed)
        self._record(self.Changed, at=at, by=by, digest=digest, changes=tuple(changes))

    # ------------------------------------------------------ event functions
    @applies(Changed)
    def _changed(self, event: Changed) -> None:
        self.state = S.IN_USE
        self.digest = event.digest
