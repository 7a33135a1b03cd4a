"""A simulation that is recorded: its sessions, the events between them, and what its providers answered."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final, cast

from xce.domain.formats.config import ProviderConfig
from xce.domain.formats.event_entry import event_entry
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import Snapshot
from xce.domain.ports import (
    Accepted,
    Ask,
    EventLog,
    GrantBack,
    Refused,
    ReturnStatus,
    StatusAnswer,
)
from xce.replay.providers import SimulatedProvider
from xce.replay.recording import Line, RecordingWriter
from xce.replay.workloads.workload import WorkloadJob

#: Calls whose last answer is remembered, so that a poll that brings nothing new is no line.
_REMEMBERED: Final = 10_000


class RecordedProvider(SimulatedProvider):
    """A simulated provider whose answers are recorded, each new one once."""

    def __init__(self, config: ProviderConfig, seed: int, writer: RecordingWriter) -> None:
        super().__init__(config, seed)
        self._writer = writer
        self._last: dict[str, Line] = {}

    def ask(self, ask: Ask, now: datetime) -> Accepted | Refused:
        """Ask, and record the answer."""
        answer = super().ask(ask, now)
        self._record({"call": "ask", **plain(ask)}, answer, now)
        return answer

    def status(self, provider_request_id: str, now: datetime) -> StatusAnswer:
        """Ask where a request is, and record the answer."""
        answer = super().status(provider_request_id, now)
        self._record({"call": "status", "provider_request_id": provider_request_id}, answer, now)
        return answer

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
        answer = super().give_back(return_id, machines, grants, now, names=names)
        call = {"call": "give_back", "return_id": return_id, "machines": list(machines)}
        self._record({**call, "grants": [plain(one) for one in grants]}, answer, now)
        return answer

    def return_status(
        self, return_id: str, now: datetime, *, theirs: str | None = None
    ) -> ReturnStatus:
        """Ask what became of a return, and record the answer."""
        answer = super().return_status(return_id, now, theirs=theirs)
        self._record({"call": "return_status", "return_id": return_id}, answer, now)
        return answer

    def _record(self, call: Line, answer: object, now: datetime) -> None:
        document, name = plain(answer), str(call)
        if self._last.get(name) == document:
            return
        self._last[name] = document
        if len(self._last) > _REMEMBERED:
            del self._last[next(iter(self._last))]
        self._writer.answer(at=now, provider=self.description.name, call=call, answer=document)


class RecordedSessions:
    """Sees a simulation and records its sessions, each after the events that came before it."""

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

    def finish(self) -> None:
        """Record the events after the last session."""
        self._events(self._log.head().position)

    def _events(self, upto: int) -> None:
        if upto > self._position:
            for recorded in self._log.read(self._position, upto):
                self._writer.event(event_entry(recorded).model_dump(mode="json"))
            self._position = upto


def plain(value: object) -> Line:
    """Return a dataclass as JSON; sets are sorted."""
    assert is_dataclass(value), "answers and calls are dataclasses"
    return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return plain(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, frozenset):
        return sorted(_plain(one) for one in cast("Iterable[Any]", value))
    if isinstance(value, tuple | list):
        return [_plain(one) for one in cast("Iterable[Any]", value)]
    return value
