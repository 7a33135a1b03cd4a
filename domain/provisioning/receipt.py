"""Receipt: what a caller was answered under an idempotency key, so that a repeated call gets the same answer for ever.

Only orders that no id of their own protects get one: see ``domain/engine/controller.py``. It is saved in the append of what it is for.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import Field

from xce.domain.events import ids
from xce.domain.events.base import Aggregate, DomainEvent, applies
from xce.domain.events.transitions import Table, starts
from xce.domain.formats.base import Name


class ReceiptState(StrEnum):
    """A receipt has one state."""

    GIVEN = "given"


TRANSITIONS: Final[Table[ReceiptState]] = {"Given": starts(ReceiptState.GIVEN)}


class Receipt(Aggregate[ReceiptState]):
    """The answer to one keyed order."""

    KIND: ClassVar[str] = ids.RECEIPT
    TRANSITIONS: ClassVar[Table[ReceiptState]] = TRANSITIONS

    class Event(DomainEvent):
        """Base of this aggregate's events."""

    class Given(Event):
        """An order was carried out under a key.

        Attributes:
            content: SHA-256 of the order's commands: the key stands for these and no others.
            versions: version of each aggregate that the order named, after it.
            epochs: lease epoch of each provider whose lease the order named, after it.
        """

        TOPIC: ClassVar[str] = "xce.receipt.given"
        content: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
        versions: dict[str, Annotated[int, Field(ge=1)]]
        epochs: dict[Name, Annotated[int, Field(ge=1)]]

    # ------------------------------------------------------------- commands
    @classmethod
    def give(
        cls,
        *,
        caller: str,
        key: str,
        content: str,
        versions: dict[str, int],
        epochs: dict[str, int],
        at: datetime,
    ) -> "Receipt":
        """Return the receipt for a key that was not used before."""
        return cls._first(
            cls.Given,
            ids.receipt_id(caller, key),
            at=at,
            by=caller,
            content=content,
            versions=versions,
            epochs=epochs,
        )

    # ------------------------------------------------------ event functions
    @applies(Given)
    def _given(self, event: Given) -> None:
        self.state = ReceiptState.GIVEN
        self.content = event.content
        self.versions = event.versions
        self.epochs = event.epochs
