"""What can be looked at where one stands: in a run that goes on, or in something that was kept of one."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from xce.domain.events.recorded import Recorded
from xce.domain.formats.policy import Decision
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import Host, PendingJob, RunningJob, Snapshot
from xce.projections.all import Projections
from xce.replay.history import History


class SeenSession(Protocol):
    """The newest session; None where there was none yet."""

    @property
    def sessions(self) -> int:
        """How many there were."""
        ...

    @property
    def snapshot(self) -> Snapshot | None:
        """What it was shown."""
        ...

    @property
    def result(self) -> SessionResult | None:
        """What it said."""
        ...

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """Of the rounds of the policy at its time."""
        ...


class Stand(Protocol):
    """A place in a course of events."""

    @property
    def now(self) -> datetime:
        """The time."""
        ...

    @property
    def seen(self) -> SeenSession:
        """The newest session."""
        ...

    @property
    def projections(self) -> Projections:
        """What the events up to here come to."""
        ...

    @property
    def history(self) -> History:
        """What was obtained up to here."""
        ...

    @property
    def events(self) -> Sequence[Recorded]:
        """The events up to here."""
        ...

    @property
    def running(self) -> tuple[RunningJob, ...]:
        """The jobs that run."""
        ...

    @property
    def pending(self) -> tuple[PendingJob, ...]:
        """The jobs that wait."""
        ...

    @property
    def hosts(self) -> tuple[Host, ...]:
        """The hosts of the cluster."""
        ...

    def fate(self, job: str) -> str:
        """Return where a job is that neither runs nor was spoken of by a session, in words."""
        ...
