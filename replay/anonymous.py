"""Recordings without the names of users and jobs: other names in the same order, and each session run again on them.

The order of names decides ties between jobs, so the new names keep it: the first job by name is the first again. Texts of events
and answers are taken out; texts of sessions are made anew by the session itself, so that none of an old name is left in them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from xce.domain.errors import RejectedError
from xce.domain.formats.session_result import Demand, Idle
from xce.domain.formats.snapshot import (
    ArrayElement,
    Group,
    Host,
    Limit,
    PendingJob,
    RunningJob,
    Snapshot,
)
from xce.domain.policy.decide import decide
from xce.domain.scheduling.plans import Allocator
from xce.domain.scheduling.session import run_session
from xce.domain.values import natural_key
from xce.replay.anonymous_rounds import jobs_in, renamed_input, without_words
from xce.replay.recording import (
    Line,
    Other,
    RecordedSession,
    RecordingReader,
    RecordingWriter,
    Start,
)
from xce.replay.rounds import SESSIONS_BACK, RecordedRound
from xce.replay.verification import Mismatch, mismatch, round_mismatch
from xce.replay.views import Seen

#: Fields of events and answers that hold text that somebody wrote.
_TEXTS = frozenset({"why", "reason", "message", "changes"})
#: Fields of configurations that hold addresses, names of files, and what scripts find in their environment.
_PLACES = ("controller", "source", "scripts", "observers", "state", "record")


@dataclass(slots=True)
class Names:
    """The names that are in a recording, and what they are called instead."""

    users: set[str] = field(default_factory=set[str])
    jobs: set[str] = field(default_factory=set[str])
    _user: dict[str, str] = field(default_factory=dict[str, str])
    _job: dict[str, str] = field(default_factory=dict[str, str])

    def see(self, snapshot: Snapshot) -> None:
        """Take in the names of a snapshot."""
        every: tuple[PendingJob | RunningJob, ...] = (*snapshot.pending, *snapshot.running)
        for job in every:
            self.users.add(job.user)
            self.jobs.add(job.id)
            if job.array is not None:
                self.jobs.add(job.array.id)
        for pending in snapshot.pending:
            self.jobs.update(pending.waits_for)
        for group in snapshot.groups:
            self.users.update(group.users)
        for limit in snapshot.limits:
            self.users.update(limit.users or ())
            self.jobs.update(limit.arrays or ())
        self.users.update(host.exclusive_to for host in snapshot.hosts if host.exclusive_to)

    def settle(self) -> None:
        """Give each name another one, in the same order."""
        self._user = _renamed(self.users, "user")
        self._job = _renamed(self.jobs, "job")

    def user(self, name: str) -> str:
        """Return what a user is called."""
        return self._user.get(name, "user")

    def job(self, name: str) -> str:
        """Return what a job is called."""
        return self._job.get(name, "job")


def _renamed(names: Iterable[str], prefix: str) -> dict[str, str]:
    ordered = sorted(names, key=natural_key)
    width = len(str(len(ordered)))
    return {name: f"{prefix}{number:0{width}d}" for number, name in enumerate(ordered, start=1)}


def anonymised(
    lines: Callable[[], Iterable[str]],
    source: str,
    write: Callable[[str], None],
    *,
    allocators: Callable[[Snapshot], Iterable[Allocator]] = lambda _: (),
) -> RecordingWriter:
    """Write a recording without the names of users and jobs; ``lines`` is read twice.

    Raises:
        InputError: not a recording.
        RejectedError: a session or a round says something else than the recording now: its texts cannot be made anew.
    """
    names = Names()
    for entry in RecordingReader(source).entries(lines()):
        match entry:
            case RecordedSession():
                names.see(entry.snapshot)
            case RecordedRound(session=None):
                names.jobs.update(jobs_in(entry.inputs.demand))
            case _:
                pass
    names.settle()
    reader = RecordingReader(source)
    again: _Again | None = None
    for entry in reader.entries(lines()):
        if isinstance(entry, Start):
            again = _Again(source, names, _begin(entry, write, names), entry, allocators)
            continue
        assert again is not None, "the start comes first"
        match entry:
            case RecordedSession():
                again.session(entry)
            case RecordedRound():
                again.round(entry, reader.counts.sessions)
            case Seen():
                pass  # the session's snapshot says what came of it, without names
            case Other(kind="event"):
                again.writer.event(_event(entry.document, names))
            case Other():
                _answer(entry.document, again.writer)
    assert again is not None, "a recording has a start"
    if reader.whole:
        again.writer.end()
    return again.writer


@dataclass(slots=True)
class _Again:
    """What is run again, and written with other names."""

    source: str
    names: Names
    writer: RecordingWriter
    start: Start
    allocators: Callable[[Snapshot], Iterable[Allocator]]
    _said: dict[int, tuple[Demand, Idle]] = field(default_factory=dict[int, tuple[Demand, Idle]])

    def session(self, entry: RecordedSession) -> None:
        """Run a session again under both names."""
        trace = self.start.trace
        given = tuple(self.allocators(entry.snapshot))
        before = run_session(entry.snapshot, trace=trace, allocators=given)
        self._require_none(mismatch(entry, before))
        snapshot = renamed(entry.snapshot, self.names)
        after = run_session(snapshot, trace=trace, allocators=given)
        if [self.names.job(one.job) for one in before.allocations] != [
            one.job for one in after.allocations
        ]:
            raise RejectedError(
                f"{self.source}: session {entry.number} hangs on the names of users or jobs"
            )
        self._said[entry.number] = (after.demand, after.idle)
        if len(self._said) > SESSIONS_BACK:
            del self._said[next(iter(self._said))]
        self.writer.session(snapshot, after)

    def round(self, entry: RecordedRound, session: int) -> None:
        """Decide a round again under both names; ``session``: the last one before it."""
        self._require_none(round_mismatch(entry, session))
        said = None if entry.session is None else self._said[entry.session]
        inputs = renamed_input(entry.inputs, self.names.job, said)
        decided = decide(inputs).decisions
        if without_words(entry.decisions) != without_words(decided):
            raise RejectedError(f"{self.source}: round {entry.number} hangs on the names of jobs")
        # The digest is of a result with the old names.
        self.writer.round(inputs, decided, session=entry.session)

    def _require_none(self, found: Mismatch | None) -> None:
        if found is not None:
            what = f"session {found.session}" if found.round is None else f"round {found.round}"
            raise RejectedError(
                f"{self.source}: {what} says something else now, at {found.path};"
                " xce replay verify shows it"
            )


def _begin(start: Start, write: Callable[[str], None], names: Names) -> RecordingWriter:
    config = dict(_walk(start.config, names))
    parts = cast("list[Line]", config.get("joined", []))
    for part in (config, *parts):
        for name in _PLACES:
            part.pop(name, None)
    return RecordingWriter(
        write,
        by=start.by,
        release=start.release,
        at=datetime.fromisoformat(start.at),
        config=config,
        trace=start.trace,
    )


# -------------------------------------------------------------------- snapshots
def renamed(snapshot: Snapshot, names: Names) -> Snapshot:
    """Return a snapshot with other names of users and jobs."""
    return snapshot.model_copy(
        update={
            "hosts": tuple(_host(host, names) for host in snapshot.hosts),
            "limits": tuple(_limit(limit, names) for limit in snapshot.limits),
            "groups": tuple(_group(group, names) for group in snapshot.groups),
            "running": tuple(_running(job, names) for job in snapshot.running),
            "pending": tuple(_pending(job, names) for job in snapshot.pending),
        }
    )


def _host(host: Host, names: Names) -> Host:
    if host.exclusive_to is None:
        return host
    return host.model_copy(update={"exclusive_to": names.user(host.exclusive_to)})


def _limit(limit: Limit, names: Names) -> Limit:
    users = None if limit.users is None else tuple(map(names.user, limit.users))
    arrays = None if limit.arrays is None else tuple(map(names.job, limit.arrays))
    return limit.model_copy(update={"users": users, "arrays": arrays})


def _group(group: Group, names: Names) -> Group:
    return group.model_copy(update={"users": tuple(map(names.user, group.users))})


def _array(array: ArrayElement | None, names: Names) -> ArrayElement | None:
    return None if array is None else array.model_copy(update={"id": names.job(array.id)})


def _running(job: RunningJob, names: Names) -> RunningJob:
    return job.model_copy(
        update={
            "id": names.job(job.id),
            "user": names.user(job.user),
            "array": _array(job.array, names),
        }
    )


def _pending(job: PendingJob, names: Names) -> PendingJob:
    return job.model_copy(
        update={
            "id": names.job(job.id),
            "user": names.user(job.user),
            "array": _array(job.array, names),
            "waits_for": tuple(map(names.job, job.waits_for)),
        }
    )


# ---------------------------------------------------------- events, answers, config
def _event(document: Line, names: Names) -> Line:
    made = dict(_walk(document, names))
    made["by"] = str(made.get("by", "")).partition("/")[0]
    return made


def _answer(document: Line, writer: RecordingWriter) -> None:
    writer.answer(
        at=datetime.fromisoformat(document["at"]),
        provider=document["provider"],
        call=document["call"],
        answer=dict(_without_texts(document["answer"])),
    )


def _without_texts(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in document.items():
        yield key, ("" if key in _TEXTS and isinstance(value, str) else value)


def _walk(document: Mapping[str, Any], names: Names) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a document with users and jobs renamed and texts taken out."""
    for key, value in document.items():
        if key in _TEXTS:
            yield key, [] if isinstance(value, list) else ""
        elif key in ("user", "exclusive_to") and isinstance(value, str):
            yield key, names.user(value)
        elif key == "job" and isinstance(value, str):
            yield key, names.job(value)
        elif isinstance(value, dict):
            yield key, dict(_walk(cast("Line", value), names))
        elif isinstance(value, list):
            yield key, [_item(key, one, names) for one in cast("Iterable[Any]", value)]
        else:
            yield key, value


def _item(key: str, value: Any, names: Names) -> Any:
    if isinstance(value, dict):
        return dict(_walk(cast("Line", value), names))
    if isinstance(value, str) and key == "users":
        return names.user(value)
    if isinstance(value, str) and key in ("jobs", "arrays"):
        return names.job(value)
    return value
