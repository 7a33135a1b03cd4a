"""What the controller is told, and what it answers: orders of one caller, all or nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from xce.domain.engine.commands import Command


class Role(StrEnum):
    """What somebody may do: see ``domain/engine/authorisation.py``."""

    ADMIN = "admin"
    SCHEDULER = "scheduler"
    PROVISIONER = "provisioner"
    OBSERVER = "observer"
    VIEWER = "viewer"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who gives an order."""

    role: Role
    name: str

    @property
    def by(self) -> str:
        """How events name them: ``admin/alice``."""
        return f"{self.role}/{self.name}"


#: Who acts when the controller does something by itself.
CONTROLLER: Final = "controller"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Commands to be carried out together, all or nothing.

    Attributes:
        commands: at least one, in this order.
        caller: on whose behalf.
        at: the stamp of what is recorded.
        elapsed_s: the process's monotonic clock, in seconds: terms of leases run by it, not by ``at``.
        key: the caller's idempotency key; the same key again gives the same answer and does nothing.
        epochs: by provider, the lease epoch under which the caller acts; a provisioner names it for
            each provider of which it writes facts; for others a provider that is not named is not compared.
        expected: by aggregate id, the version that the caller has read; another one refuses the order.
    """

    commands: tuple[Command, ...]
    caller: Caller
    at: datetime
    elapsed_s: float
    key: str | None = None
    epochs: Mapping[str, int] = field(default_factory=dict[str, int])
    expected: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class Answer:
    """What an order came to; given to the caller only after its events are durable.

    Attributes:
        versions: version of each aggregate that the order named, after it.
        epochs: lease epoch of each provider whose lease the order named, after it.
        changed: whether anything was recorded; a repeat records nothing.
    """

    versions: Mapping[str, int]
    epochs: Mapping[str, int]
    changed: bool = True
