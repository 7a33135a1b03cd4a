"""A process that follows a log and serves when its turn comes: stand by, take over, serve.

::

    with open_log(place) as log, Standby(log, name="controller-1") as standby:
        if standby.wait(stop) is Role.PRIMARY:
            with standby.signs(on_lost=stop.set):
                serve(log, standby.follower, fences={"primary": standby.epoch})

While it stands by it folds whatever the primary appends, so that little is left to do when it takes over. Before it becomes the primary it has read
the log to the end: a release that does not know an event never serves (F26).
"""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Event, Thread
from types import TracebackType
from typing import Self

from xce.adapters.store.election import DETECTION_S, Election, Role
from xce.adapters.store.follower import Follower
from xce.adapters.store.log import StoredLog
from xce.adapters.store.seat import Sign
from xce.domain.errors import AdapterError, PermanentError, TransientError


class Standby:
    """One controller of a log, from standing by to the end of its time as the primary. Close it when done."""

    def __init__(
        self,
        log: StoredLog,
        follower: Follower | None = None,
        *,
        name: str,
        url: str = "",
        detection_s: float = DETECTION_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Stand by.

        Args:
            log: open for writing.
            follower: of the log; None: a new one, from the log's beginning.
            name: of this controller, for people.
            url: where it serves.
            detection_s: seconds after which a primary without a sign of life is gone.
            monotonic: clock in seconds that never goes back.
        """
        self._log = log
        #: The projections; the primary folds what it appends (``Follower.appended``).
        self.follower = follower or Follower(log)
        self._election = Election(
            log.recorder.seat(),
            self._become_primary,
            name=name,
            url=url,
            detection_s=detection_s,
            monotonic=monotonic,
        )
        #: What went wrong in the last step and may pass; None: nothing did.
        self.problem: AdapterError | None = None

    def __enter__(self) -> Self:
        """Return itself."""
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
    def role(self) -> Role:
        """What this process is for the log."""
        return self._election.role

    @property
    def epoch(self) -> int:
        """Epoch of this primary, for the fence ``primary`` of every append; 0: it never was one."""
        return self._election.epoch

    @property
    def primary(self) -> Sign | None:
        """Who is the primary, as last seen; None: nobody."""
        return self._election.primary

    @property
    def before(self) -> Sign | None:
        """Who had the seat before this primary and did not leave it; None: whoever it was has ended by itself."""
        return self._election.before

    @property
    def leads(self) -> bool:
        """Whether this is the primary by its own clock: what it shows may be out of date otherwise."""
        return self._election.leads

    @property
    def step_s(self) -> float:
        """Seconds between two steps."""
        return self._election.step_s

    def step(self) -> Role:
        """Follow the log and look at the primary, or as the primary show a sign of life; return what this process is now.

        What may pass is kept in ``problem``, and the next step tries again.

        Raises:
            BrokenLogError: an event cannot be read; this process must not become the primary.
            InputError: the store does not let us in any more.
        """
        self.problem = None
        try:
            if self.role is Role.STANDBY:
                self.follower.catch_up()
            return self._election.step()
        except (TransientError, PermanentError) as error:
            self.problem = error
            return self.role

    def wait(self, stop: Event) -> Role:
        """Step until this process is the primary, or until ``stop`` is set."""
        while self.step() is Role.STANDBY and not stop.wait(self.step_s):
            pass
        return self.role

    @contextmanager
    def signs(self, on_lost: Callable[[], None]) -> Generator[None]:
        """Show signs of life from a thread of its own; nobody else calls ``step`` meanwhile.

        Args:
            on_lost: called once, by that thread, when this process is not the primary any more: it must stop.
        """
        end = Event()

        def show() -> None:
            while not end.wait(self.step_s):
                if self.step() is Role.LOST:
                    on_lost()
                    return

        thread = Thread(target=show, name="signs of life", daemon=True)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()

    def close(self) -> None:
        """Give up the seat, so that the next one need not wait; the log stays open. May be repeated."""
        self._election.close()

    def _become_primary(self) -> int:
        self.follower.catch_up()
        epoch = self._log.take_primary()
        self.follower.catch_up()  # what the one before saved up to then; nothing of it comes after
        return epoch
