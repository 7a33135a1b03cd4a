"""What waits for the writer of a controller."""

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

from xce.domain.engine.commands import Command
from xce.domain.engine.messages import Answer, Caller
from xce.domain.engine.refusal_notes import Attempt

#: Orders that may wait; more are told to come again.
WAITING_MAX: Final = 10_000


@dataclass(slots=True)
class Waiting:
    """An order that waits; ``attempt`` is a refusal to note instead of commands."""

    caller: Caller | None
    commands: tuple[Command, ...] = ()
    key: str | None = None
    epochs: Mapping[str, int] = field(default_factory=dict[str, int])
    expected: Mapping[str, int] = field(default_factory=dict[str, int])
    attempt: Attempt | None = None
    future: "Future[Answer]" = field(default_factory=lambda: Future[Answer]())
