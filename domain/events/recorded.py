"""What reading the log gives: events with their positions, and the log's head."""

from dataclasses import dataclass

from xce.domain.events.base import DomainEvent


@dataclass(frozen=True, slots=True)
class Recorded:
    """One event of the log.

    Attributes:
        position: its number in the log, from 1, without holes on SQLite and in memory.
        event: the event.
        digest: the chain's digest up to and including it: see ``domain/events/digest.py``.
    """

    position: int
    event: DomainEvent
    digest: bytes


@dataclass(frozen=True, slots=True)
class Head:
    """The end of the log: two logs with equal heads hold the same events in the same order.

    Attributes:
        position: of the last event; 0: the log is empty.
        digest: of the last event; ``digest.GENESIS`` for an empty log.
    """

    position: int
    digest: bytes

    def __str__(self) -> str:
        return f"{self.position}:{self.digest.hex()}"
