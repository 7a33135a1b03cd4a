"""A simulation that is recorded: its sessions, its rounds of the policy, the events between them, and what its providers answered."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial

from xce.domain.formats.config import ProviderConfig
from xce.domain.formats.event_entry import event_entry
from xce.domain.formats.policy import Decision, PolicyInput
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import Snapshot
from xce.domain.ports import (
    Accepted,
    Ask,
    EventLog,
    GrantBack,
    Holding,
    Refused,
    ReturnStatus,
    StatusAnswer,
)
from xce.replay.answers import (
    Answers,
    ask_call,
    give_back_call,
    return_status_call,
    status_call,
)
from xce.replay.providers import SimulatedProvider
from xce.replay.recording import RecordingWriter
from xce.replay.workloads.workload import WorkloadJob


class RecordedProvider(SimulatedProvider):
    """A simulated provider whose answers are recorded, each new one once."""

    def __init__(self, config: ProviderConfig, seed: int, writer: RecordingWriter) -> None:
        super().__init__(config, seed)
        self._said = Answers(config.name, writer)

    def ask(self, ask: Ask, now: datetime) -> Accepted | Refused:
        """Ask, and record the answer."""
        return self._said.of(ask_call(ask), now, partial(super().ask, ask, now))

    def status(self, provider_request_id: str, now: datetime) -> StatusAnswer:
        """Ask where a request is, and record the answer."""
        make = partial(super().status, provider_request_id, now)
        return self._said.of(status_call(provider_request_id), now, make)

    def give_back(
        self,
        return_id: str,
        machines: tuple[str, ...],
        grants: tuple[GrantBack, ...],
        now: datetime,
        *,
        names: Mapping[str, str] | None = None,
    ) -> Accepted | Refused:
        """Give back, and record the answer."""
        make = partial(super().give_back, return_id, machines, grants, now, names=names)
        return self._said.of(give_back_call(return_id, machines, grants), now, make)

    def return_status(
        self, return_id: str, now: datetime, *, theirs: str | None = None
    ) -> ReturnStatus:
        """Ask what became of a return, and record the answer."""
        make = partial(super().return_status, return_id, now, theirs=theirs)
        return self._said.of(return_status_call(return_id), now, make)

    def holdings(self, now: datetime) -> tuple[Holding, ...] | None:
        """Ask for all there is, and record what is different."""
        answer = super().holdings(now)
        self._said.listed(answer, now)
        return answer


class RecordedSessions:
    """Sees a simulation and records its sessions and rounds, each after the events that came before it."""

    def __init__(self, writer: RecordingWriter, log: EventLog) -> None:
        self._writer = writer
        self._log = log
        self._position = 0

    def started(self, job: WorkloadJob, at: datetime) -> None:
        """See ``Watcher.started``."""

    def ended(self, job: WorkloadJob, at: datetime) -> None:
        """See ``Watcher.ended``."""

    def session(self, snapshot: Snapshot, result: SessionResult) -> None:
        """Record it."""
        self._events(snapshot.position)
        self._writer.session(snapshot, result)

    def decided(self, inputs: PolicyInput, decisions: tuple[Decision, ...]) -> None:
        """Record a round; it is about the session just before it."""
        self._writer.round(inputs, decisions, session=self._writer.counts.sessions)

    def finish(self) -> None:
        """Record the events after the last session."""
        self._events(self._log.head().position)

    def _events(self, upto: int) -> None:
        if upto > self._position:
            for recorded in self._log.read(self._position, upto):
                self._writer.event(event_entry(recorded).model_dump(mode="json"))
            self._position = upto
