"""The thread of one provider: it makes the calls that wait, polls when none does, and is started again when it meets a defect.

Providers never wait for one another, and a provider never gets a poll beside a call that changes something: one thread does both.
"""

from collections.abc import Callable
from threading import Event, Thread
from typing import Final

import structlog

from xce.adapters.provisioner.driver import Driver
from xce.adapters.provisioner.leases import Permit
from xce.adapters.provisioner.surroundings import LeaseView
from xce.domain.errors import XceError
from xce.domain.formats.provisioner_config import Rhythm

_LOG = structlog.get_logger("xce.provisioner")
#: A worker that met a defect goes on after this, and after twice as long each time it meets one again, up to the longest.
REST_S: Final = 1.0
REST_MAX_S: Final = 60.0


class Worker:
    """Runs one driver."""

    def __init__(
        self,
        driver: Driver,
        leases: LeaseView,
        rhythm: Rhythm,
        *,
        elapsed_s: Callable[[], float],
        stopping: Event,
        permit: Permit | None = None,
    ) -> None:
        """Prepare; ``permit`` is told under which epoch the thread acts."""
        self.driver = driver
        self.restarts = 0
        self._leases = leases
        self._rhythm = rhythm
        self._elapsed_s = elapsed_s
        self._stopping = stopping
        self._permit = permit
        self._news = Event()
        self._epoch: int | None = None
        self._due_s = {"describe": 0.0, "poll": 0.0, "reconcile": 0.0}
        self._thread = Thread(target=self._run, name=f"provider {driver.name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Look now: there is a call, or a lease."""
        self._news.set()

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread to end; return whether it has."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._thread.is_alive()

    def _run(self) -> None:
        rest_s = REST_S
        while not self._stopping.is_set():
            try:
                self._news.clear()
                wait_s = self.step()
                if wait_s > 0:
                    self._news.wait(wait_s)
                rest_s = REST_S
            except XceError as error:  # the controller is away, or refuses a question
                _LOG.warning("worker waits", provider=self.driver.name, error=str(error))
                self._stopping.wait(REST_S)
            except Exception:  # noqa: BLE001 - the outermost loop: it says so and goes on
                _LOG.exception("the worker met a defect", provider=self.driver.name)
                self.restarts += 1
                self._stopping.wait(rest_s)
                rest_s = min(2 * rest_s, REST_MAX_S)

    def step(self) -> float:
        """Do one thing; return for how many seconds there is nothing to do, unless there is news: 0 is to go on."""
        epoch = self._leases.epoch(self.driver.name)
        if epoch is None:
            return self._rhythm.lease_term.total_seconds() / 3
        if epoch != self._epoch:
            self.driver.begin(self._epoch, epoch)
            self._epoch = epoch
            if self._permit is not None:
                self._permit.epoch = epoch
            self._begin_anew()
        if self.driver.work():
            return 0.0
        wait_s = self._next_due()
        if wait_s > 0 and self.driver.check_some():
            return 0.0
        return wait_s

    def _begin_anew(self) -> None:
        """A lease is ours: what a predecessor has left is found before anything is asked."""
        now = self._elapsed_s()
        self._due_s = {"describe": now, "poll": now, "reconcile": now}

    def _next_due(self) -> float:
        """Do what is due; return how long nothing is."""
        now = self._elapsed_s()
        rhythm, driver = self._rhythm, self.driver
        for what, do, period in (
            ("describe", driver.describe, rhythm.describe),
            ("reconcile", driver.reconcile, rhythm.reconcile),
            ("poll", driver.poll, rhythm.poll),
        ):
            if self._due_s[what] <= now:
                do()
                unanswered = what == "describe" and not driver.is_described
                if unanswered or (what == "reconcile" and driver.is_unsettled):
                    period = min(period, rhythm.poll)
                self._due_s[what] = self._elapsed_s() + period.total_seconds()
                return 0.0
        # A lease can end meanwhile, and is looked at again at least once a term.
        until = min(*self._due_s.values(), now + rhythm.lease_term.total_seconds())
        return max(0.0, until - now)
