"""The fake batch system in one durable file, and the source that drives it: for trying out, and for tests from end to end."""

import fcntl
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import structlog

from xce.adapters.schedulers import fake_state as fakes
from xce.adapters.schedulers.fake_state import FakeState
from xce.adapters.schedulers.watched import replace_file
from xce.domain.errors import PermanentError, TransientError
from xce.domain.formats.snapshot import Snapshot
from xce.domain.ports import Clock, SchedulerOrders

#: How often the file is looked at while nothing happens.
POLL_S: Final = 0.2
_LOG = structlog.get_logger("xce.scheduler")

Change = Callable[[FakeState], FakeState]


class FakeFile:
    """The state in a file. Several processes may change it: each change is made under a lock, and is on disk when it is over."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> FakeState:
        """Return the state; an empty one, if there is no file.

        Raises:
            PermanentError: the file is none of ours.
            TransientError: it cannot be read.
        """
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return FakeState()
        except OSError as error:
            raise TransientError(f"{self.path} cannot be read: {error.strerror}") from None
        try:
            return FakeState.model_validate_json(raw)
        except ValueError as error:
            line = str(error).splitlines()[0]
            raise PermanentError(
                f"{self.path} is no state of a fake batch system: {line}"
            ) from None

    def change(self, *changes: Change) -> FakeState:
        """Carry changes out one after the other, all or nothing; return the state after them."""
        with self._locked():
            before = state = self.read()
            for change in changes:
                state = change(state)
            if state != before:
                replace_file(self.path, state.to_json(indent=1) + "\n")
            return state

    def stamp(self) -> tuple[int, int]:
        """Return what is different after each change."""
        try:
            found = self.path.stat()
        except OSError:
            return (0, 0)
        return (found.st_mtime_ns, found.st_ino)

    @contextmanager
    def _locked(self) -> Generator[None]:
        try:
            lock = self.path.with_name(f".{self.path.name}.lock").open("a")
        except OSError as error:
            raise TransientError(f"{self.path} cannot be locked: {error.strerror}") from None
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


class FakeScheduler:
    """The fake batch system as a source: it lets sessions place its jobs, and obeys drains."""

    def __init__(
        self,
        file: FakeFile,
        clock: Clock,
        *,
        boot_time: timedelta | None,
        wait: Callable[[float], object],
    ) -> None:
        """Drive the system in ``file``; ``boot_time`` None: expected hosts do not boot by themselves."""
        self._file = file
        self._clock = clock
        self._boot_time = boot_time
        self._wait = wait
        self._stamp = (0, 0)
        self._next: datetime | None = None

    def view(self) -> Snapshot | None:
        """Return what it shows now."""
        now = self._clock.now()
        state = self._file.change(lambda state: fakes.moved_on(state, now))
        self._stamp = self._file.stamp()
        self._next = min((run.ends_at for run in state.running), default=None)
        return fakes.view_of(state, now)

    def obey(self, orders: SchedulerOrders) -> None:
        """Carry orders out; what the state does not allow any more is named in the log."""
        now = self._clock.now()
        problems: list[str] = []

        def obey(state: FakeState) -> FakeState:
            after, found = fakes.obeyed(state, orders, now)
            problems.extend(found)
            if self._boot_time is not None:
                after = fakes.booted(after, orders.expected, self._boot_time, now)
            return after

        state = self._file.change(obey)
        self._next = min((run.ends_at for run in state.running), default=None)
        if self._boot_time is not None:
            here = {host.instance for host in state.hosts} | set(state.departed)
            boots = [
                one.since + self._boot_time for one in orders.expected if one.instance not in here
            ]
            self._next = min([*boots, *([] if self._next is None else [self._next])], default=None)
        for problem in problems:
            _LOG.warning("order not obeyed", why=problem)

    def wait(self, timeout_s: float) -> None:
        """Return when somebody changed the file, a job ends or a host boots, or after the time."""
        left = timeout_s
        while left > 0:
            self._wait(min(left, POLL_S))
            left -= POLL_S
            if self._file.stamp() != self._stamp:
                return
            if self._next is not None and self._next <= self._clock.now():
                return

    def close(self) -> None:
        """There is nothing to let go of."""
