"""What happens in a simulated world, and who is told of it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from xce.domain.formats.policy import Decision, PolicyInput
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import Snapshot
from xce.domain.scheduling.outcome import Outcome
from xce.replay.workloads.workload import WorkloadJob


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job is submitted."""

    job: WorkloadJob


@dataclass(frozen=True, slots=True)
class End:
    """An attempt of a job (0: the first) has run for its true run time, or fails."""

    job: str
    attempt: int = 0
    fails: bool = False


@dataclass(frozen=True, slots=True)
class CheckOut:
    """An attempt of a job takes its tokens from the licence server."""

    job: str
    attempt: int
    server: str


@dataclass(frozen=True, slots=True)
class Observe:
    """A licence server is looked at."""

    server: str


@dataclass(frozen=True, slots=True)
class Change:
    """Something is different at a provider: a host joins, or ends."""

    provider: str


@dataclass(frozen=True, slots=True)
class Poll:
    """Providers are asked what became of requests and returns."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Providers that can are asked for everything they have."""


@dataclass(frozen=True, slots=True)
class Wake:
    """A session is due."""


@dataclass(frozen=True, slots=True)
class Act:
    """Somebody interferes."""

    do: Callable[[], None]


Happening = Arrival | End | CheckOut | Observe | Change | Poll | Listing | Wake | Act


class Watcher(Protocol):
    """Told what happens, as it happens."""

    def started(self, job: WorkloadJob, at: datetime) -> None:
        """A job starts; the session that started it is told at the same time."""
        ...

    def ended(self, job: WorkloadJob, at: datetime) -> None:
        """A job ended."""
        ...

    def session(self, snapshot: Snapshot, result: SessionResult) -> None:
        """A session is over; its allocations start now."""
        ...


@runtime_checkable
class OutcomeWatcher(Protocol):
    """Told of sessions by ``outcome`` instead of ``session``: their results are written only if it reads them."""

    def outcome(self, snapshot: Snapshot, outcome: Outcome) -> None:
        """A session is over; its allocations start now."""
        ...


@runtime_checkable
class RoundWatcher(Protocol):
    """Told of rounds of the policy."""

    def decided(self, inputs: PolicyInput, decisions: tuple[Decision, ...]) -> None:
        """The policy decided; nothing of it is carried out yet."""
        ...


@runtime_checkable
class StopWatcher(Protocol):
    """Told of attempts that end before their job does."""

    def stopped(self, job: WorkloadJob, at: datetime) -> None:
        """An attempt failed, or its host went: the job is queued again, or given up."""
        ...


def told_of_sessions(watcher: Watcher) -> Callable[[Snapshot, Outcome], None]:
    """Return how a watcher is told of a session."""
    if isinstance(watcher, OutcomeWatcher):
        return watcher.outcome

    def tell(snapshot: Snapshot, outcome: Outcome) -> None:
        watcher.session(snapshot, outcome.result)

    return tell


@runtime_checkable
class NoteWatcher(Protocol):
    """Told of what happens to the process and its provisioners, and is no event."""

    def noted(self, what: str, at: datetime) -> None:
        """It happened."""
        ...
