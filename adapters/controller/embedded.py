"""The controller inside another program: open it on a log, give commands, ask, follow what happens, close it."""

import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from os import PathLike
from threading import Event
from types import TracebackType
from typing import Self, TypeVar

from xce.adapters.controller.errors import ServedError
from xce.adapters.controller.live import LiveController, LiveSettings
from xce.adapters.controller.views import Views
from xce.adapters.store.election import Role
from xce.adapters.store.follower import Follower
from xce.adapters.store.log import StoredLog
from xce.adapters.store.open import open_log
from xce.adapters.store.standby import Standby
from xce.domain.engine.commands import Command
from xce.domain.engine.messages import Answer, Caller
from xce.domain.engine.messages import Role as CallerRole
from xce.domain.events.recorded import Recorded
from xce.domain.formats.session_result import SessionResult
from xce.domain.ports import EventLog
from xce.projections.all import Projections

T = TypeVar("T")

#: Who the embedding program is, unless it says otherwise.
EMBEDDING = Caller(CallerRole.ADMIN, "embedded")


class Controller:
    """A controller on a log, in this process. Threads may share it; from asyncio wrap ``begin`` with ``asyncio.wrap_future``.

    It is the only primary of its log, and takes the same seat as ``xce controller`` does: where another one sits, it is refused; a daemon
    that is started beside it stands by, and takes over when this program ends, dies or hangs.
    """

    def __init__(
        self,
        log: EventLog,
        *,
        caller: Caller = EMBEDDING,
        settings: LiveSettings | None = None,
        name: str | None = None,
    ) -> None:
        """Become the primary of an open log, which is closed with the controller.

        Args:
            log: open for writing.
            caller: on whose behalf commands are given.
            settings: how it works.
            name: of this controller, for people; None: its host and process.

        Raises:
            ServedError: another controller, or a daemon, serves this log.
            XceError: the log cannot be owned or read.
        """
        self._log = log
        self._caller = caller
        with ExitStack() as opened:
            opened.callback(log.close)
            standby = None if not isinstance(log, StoredLog) else _seated(log, settings, name)
            if standby is not None:
                opened.callback(standby.close)
            self._live = LiveController(
                log, settings=settings, follower=None if standby is None else standby.follower
            )
            opened.callback(self._live.close)
            self._live.start(None if standby is None else standby.epoch)
            if standby is not None:
                opened.enter_context(standby.signs(self._lost))
            self._opened = opened.pop_all()

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        caller: Caller = EMBEDDING,
        settings: LiveSettings | None = None,
    ) -> Self:
        """Open a log by its path, made if it does not exist; ":memory:" is one that is not kept.

        Raises:
            ServedError: another controller, or a daemon, serves this log.
            InputError: not a log that this release can read.
            PermanentError: it cannot be made there.
            TransientError: it is locked.
        """
        return cls(open_log(str(path)), caller=caller, settings=settings)

    def __enter__(self) -> Self:
        """Return the controller itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    @property
    def live(self) -> LiveController:
        """The running controller beneath, for a service around it."""
        return self._live

    # ----------------------------------------------------------------- commands
    def command(self, *commands: Command, key: str | None = None) -> Answer:
        """Carry out commands, all or nothing; when it returns, they are on disk.

        Args:
            commands: at least one.
            key: an idempotency key; the same key again gives the same answer and does nothing.

        Raises:
            RejectedError: the current state does not allow it; nothing was recorded.
            TransientError: try again later, with the same key.
        """
        return self.begin(*commands, key=key).result()

    def begin(self, *commands: Command, key: str | None = None) -> "Future[Answer]":
        """Give commands without waiting; the future has the answer, or the error, once it is durable."""
        return self._live.submit(self._caller, *commands, key=key)

    def publish(self, result: SessionResult) -> None:
        """Publish a session's result to all who follow; it replaces the one before.

        Raises:
            RejectedError: it is older than the one before, or ahead of the log.
        """
        self._live.publish(result, result.to_json(), self._caller.by)

    # ------------------------------------------------------------------ reading
    def query(self, question: Callable[[Views], T]) -> T:
        """Return what ``question`` makes of the views, all of them at one position; it must be quick."""
        return self._live.read(question)

    def subscribe(self, after: int | None = None) -> "Subscription":
        """Follow the events behind a position; None: those from now on. Close it when done."""
        return Subscription(self._live, self._live.feed.position if after is None else after)

    def close(self) -> None:
        """Finish what waits and let go of the log; may be repeated."""
        self._live.close()
        self._opened.close()

    def _lost(self) -> None:
        self._live.lose_seat()


def _seated(log: StoredLog, settings: LiveSettings | None, name: str | None) -> Standby:
    """Return the seat of a log, taken.

    Raises:
        ServedError: somebody sits there.
    """
    templates = () if settings is None else settings.templates
    standby = Standby(
        log,
        Follower(log, Projections(templates)),
        name=name or f"{socket.gethostname()}/{os.getpid()}, embedded",
    )
    try:
        if standby.step() is not Role.PRIMARY:
            if standby.problem is not None:
                raise standby.problem
            sign = standby.primary
            who = "another controller" if sign is None else f"the controller {sign.name}"
            where = f" at {sign.url}" if sign is not None and sign.url else ""
            raise ServedError(
                f"{log.source}: {who}{where} serves this log; talk to it with xce.Client, or end it first"
            )
    except BaseException:
        standby.close()
        raise
    return standby


class Subscription:
    """Events in the order of the log, each once. It keeps a position and no queue: a slow reader holds nobody up."""

    def __init__(self, live: LiveController, after: int) -> None:
        self._live = live
        self._news = Event()
        self._closed = False
        self._unwatch = live.feed.watch(self._news.set)
        #: Position of the last event that was handed out.
        self.position = after

    def __iter__(self) -> Iterator[Recorded]:
        """Yield events, waiting for new ones, until the subscription is closed."""
        while not self._closed:
            yield from self.next(timeout_s=None)

    def next(self, timeout_s: float | None = 0.0, limit: int = 1000) -> list[Recorded]:
        """Return the next events; none: nothing came within the timeout (None: wait for ever), or it was closed."""
        self._news.clear()
        found = self._live.events_after(self.position, limit)
        if not found and not self._closed and self._news.wait(timeout_s):
            found = self._live.events_after(self.position, limit)
        if found:
            self.position = found[-1].position
        return found

    def close(self) -> None:
        """End it, and wake whoever waits for it."""
        self._closed = True
        self._unwatch()
        self._news.set()
