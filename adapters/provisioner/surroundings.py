"""What all drivers of a provisioner share: the controller, the leases, the engine, the clock and the settings."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from xce.adapters.provisioner.books import Books
from xce.adapters.provisioner.newest import Newest
from xce.domain.engine.provisioner import Provisioner
from xce.domain.formats.lifecycle import LifecycleSettings
from xce.domain.formats.policy import PolicySettings
from xce.domain.ports import Clock, IdSource


class LeaseView(Protocol):
    """Whether we may act."""

    def epoch(self, provider: str) -> int | None:
        """Return the epoch under which we may act on a provider now; None: we may not."""
        ...

    def lost(self, provider: str) -> None:
        """It is somebody else's, or nobody's."""
        ...

    def doubt(self, provider: str, epoch: int) -> None:
        """An order under an epoch was sent, and nobody knows whether it arrives."""
        ...

    def in_doubt(self) -> frozenset[str]:
        """Return the providers of which something may still be on its way."""
        ...


class Watch(Protocol):
    """Told what happens, for metrics."""

    def called(self, provider: str, call: str, outcome: str, seconds: float) -> None:
        """A call was made."""
        ...

    def held_back(self, provider: str, why: str | None) -> None:
        """Losses that a listing shows are not believed yet; None: nothing is held back."""
        ...


class NoWatch:
    """Looks away."""

    def called(self, provider: str, call: str, outcome: str, seconds: float) -> None:
        """Nothing."""

    def held_back(self, provider: str, why: str | None) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all drivers of a process share.

    Attributes:
        elapsed_s: the monotonic clock.
        pause: wait so many seconds before a try is repeated; False: do not repeat it, we are stopping.
        newest: what the scheduler published, and when.
    """

    books: Books
    leases: LeaseView
    engine: Provisioner
    ids: IdSource
    clock: Clock
    elapsed_s: Callable[[], float]
    pause: Callable[[float], bool]
    newest: Newest
    policy: PolicySettings
    lifecycle: LifecycleSettings
    watch: Watch = field(default_factory=NoWatch)
