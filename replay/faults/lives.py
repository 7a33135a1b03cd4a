"""What a provisioner process is made of, and what it is given: the real one is handed in by the layer above."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from xce.domain.engine.commands import Command
from xce.domain.engine.messages import Answer, Caller
from xce.domain.formats.config import PolicyConfig
from xce.domain.formats.lifecycle import LifecycleSettings
from xce.domain.formats.provisioner_config import Rhythm
from xce.domain.formats.rest import LeaseEntry, Supply
from xce.domain.formats.session_result import SessionResult
from xce.domain.ports import FullProvider, IdSource
from xce.replay.faults.controller import ControllerNode
from xce.replay.faults.time import MachineClock


class ControllerCalls(Protocol):
    """The controller over the network: retried under one key, at whichever node is the primary."""

    def order(
        self,
        caller: Caller,
        commands: tuple[Command, ...],
        epochs: Mapping[str, int],
        *,
        once: bool,
    ) -> Answer:
        """Give an order; ``once``: it is not tried again."""
        ...

    def supply(self) -> Supply:
        """Return what is known."""
        ...

    def leases(self) -> Mapping[str, LeaseEntry]:
        """Return the leases."""
        ...

    def orphans(self, provider: str) -> Mapping[str, str | None]:
        """Return the open orphans of a provider, and the id of the return of each."""
        ...


@dataclass(frozen=True, slots=True)
class Equipment:
    """What one life of a provisioner works with.

    Attributes:
        wait: let virtual time pass for the running thread.
        wake: a thread, by name, has something to do.
    """

    name: str
    controller: ControllerCalls
    providers: Mapping[str, FullProvider]
    clock: MachineClock
    ids: IdSource
    wait: Callable[[float], None]
    wake: Callable[[str], None]
    policy: PolicyConfig
    lifecycle: LifecycleSettings
    rhythm: Rhythm


class ProvisionerLife(Protocol):
    """One life of a provisioner."""

    def threads(self) -> Mapping[str, Callable[[], float]]:
        """Return its threads by name: each does one step and says for how many seconds there is nothing to do."""
        ...

    def hear(self, result: SessionResult, age_s: float) -> None:
        """Take pushed demand."""
        ...

    def leave(self) -> None:
        """Stop as after a signal, between two steps."""
        ...


MakeLife = Callable[[Equipment], ProvisionerLife]
SupplyOf = Callable[[ControllerNode], Supply]

RHYTHM = Rhythm(
    lease_term=timedelta(seconds=120),
    poll=timedelta(seconds=45),
    reconcile=timedelta(minutes=3),
    describe=timedelta(hours=3),
    round=timedelta(seconds=10),
    review=timedelta(seconds=75),
)
LIFECYCLE = LifecycleSettings(late_answers_for=timedelta(minutes=25))
