"""The live driver: it reads the batch system, runs sessions, tells the controller, and gives the batch system its orders.

It keeps nothing that must survive it. A controller that is away, or is another one now, costs sessions until one answers; a batch
system that shows nothing new for too long makes demand unknown, never old.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol

import structlog

from xce.adapters.allocators import allocators_for
from xce.adapters.client import Client
from xce.adapters.clock import SystemClock
from xce.domain.engine import scheduler
from xce.domain.engine.scheduler import Reports, SchedulerMemory
from xce.domain.errors import (
    ForbiddenError,
    InputError,
    NotFoundError,
    RejectedError,
    TransientError,
)
from xce.domain.formats.rest import Observations, Supply
from xce.domain.formats.scheduler_config import SchedulerConfig
from xce.domain.formats.session_result import Allocation, SessionResult
from xce.domain.formats.snapshot import Snapshot
from xce.domain.formats.snapshot_check import contradictions
from xce.domain.ports import SchedulerSource
from xce.domain.provisioning.instance import GONE
from xce.domain.scheduling.plans import Allocator
from xce.domain.scheduling.series import Series

#: Waits this long after a failure, at most.
BACK_OFF_MAX_S: Final = 30.0
_LOG = structlog.get_logger("xce.scheduler")


class Recorder(Protocol):
    """Keeps what a driver saw and published."""

    def seen(self, view: Snapshot, supply: Supply, observations: Observations) -> None:
        """What a session's snapshot is made of; there may be no session."""
        ...

    def session(self, snapshot: Snapshot, result: SessionResult) -> None:
        """A session is over."""
        ...


@dataclass(frozen=True, slots=True)
class Round:
    """What one round did."""

    snapshot: Snapshot
    result: SessionResult
    supply: Supply


class LiveScheduler:
    """One driver between one batch system and one controller."""

    def __init__(
        self,
        config: SchedulerConfig,
        client: Client,
        source: SchedulerSource,
        *,
        clock: SystemClock | None = None,
        allocators: Callable[[Snapshot], Iterable[Allocator]] = allocators_for,
        recorder: Recorder | None = None,
    ) -> None:
        self._config = config
        self._client = client
        self._source = source
        self._clock = clock or SystemClock()
        self._allocators = allocators
        self._recorder = recorder
        self._memory = SchedulerMemory()
        self._series = Series()
        self._gone: dict[str, bool] = {}
        self._said: str | None = None
        self._stopped = False

    # -------------------------------------------------------------------- loop
    def run(self, *, wait: Callable[[float], object], rounds_max: int | None = None) -> None:
        """Run rounds until ``stop``; ``rounds_max`` bounds them for a trial.

        Raises:
            XceError: what trying again cannot help: the controller refuses the caller, the source is broken.
        """
        failures = 0
        done = 0
        while not self._stopped and (rounds_max is None or done < rounds_max):
            begun = self._clock.elapsed_s()
            try:
                self.round()
                failures = 0
            except TransientError as error:
                failures += 1
                _LOG.warning("round given up", why=str(error), code=error.code, failures=failures)
            except ForbiddenError:
                raise
            except RejectedError as error:  # of something that has changed meanwhile
                _LOG.warning("round given up", why=str(error), code=error.code)
            done += 1
            if self._stopped or done == rounds_max:
                return
            if failures:
                wait(min(BACK_OFF_MAX_S, 0.5 * 2 ** min(failures, 10)))
                continue
            self._source.wait(self._config.session_interval.total_seconds())
            spent = self._clock.elapsed_s() - begun
            if (left := self._config.session_spacing.total_seconds() - spent) > 0:
                wait(left)

    def stop(self) -> None:
        """End after the present round; may be called from a signal handler or another thread."""
        self._stopped = True

    # ------------------------------------------------------------------- round
    def round(self) -> Round | None:
        """Read, report, decide, order, publish; None: there is no view to decide on.

        Raises:
            TransientError: the controller or the batch system is away; what was done may be done again.
            XceError: the controller refuses the caller.
        """
        view = self._view()
        if view is None:
            return None
        supply = self._client.supply()
        reports = scheduler.reports(view, supply)
        if reports:
            self._report(reports)
            supply = self._client.supply()
        observations = self._client.observations()
        snapshot = self._memory.look(view, supply, observations)
        if self._recorder is not None:
            self._recorder.seen(view, supply, observations)
        if problems := list(contradictions(snapshot)):
            self._say(f"the view does not fit the log: {problems[0]}", problems=len(problems))
            return None
        begun = self._clock.elapsed_s()
        try:
            snapshot, result = self._series.run(
                snapshot, trace=self._config.trace, allocators=self._allocators(snapshot)
            )
        except InputError as error:
            self._say(scheduler.unreadable(snapshot, error), problems=len(error.problems))
            return None
        self._said = None
        took = self._clock.elapsed_s() - begun
        self._memory.note_needs(snapshot, result)
        if self._recorder is not None:
            self._recorder.session(snapshot, result)
        self._client.report_bookings(
            self._memory.occupied(snapshot, result),
            self._memory.shared_reports(snapshot.now),
            of=supply,
        )
        refused = self._order(view, supply, result)
        self._publish(snapshot, result)
        _LOG.info(
            "session",
            position=result.position,
            pending=len(snapshot.pending),
            started=len(result.allocations) - refused,
            hosts=sum(line.count for line in result.demand.hosts),
            counts=sum(line.amount for line in result.demand.countable),
            idle_hosts=len(result.idle.hosts),
            took_s=round(took, 4),
        )
        return Round(snapshot, result, supply)

    def _view(self) -> Snapshot | None:
        view = self._source.view()
        if view is None:
            self._say("the batch system has shown nothing yet")
            return None
        age = self._clock.now() - view.now
        if age > self._config.view_time_to_live:
            self._say(f"the newest view is of {view.now.isoformat()}: too old for a session")
            return None
        return view

    def _report(self, reports: Reports) -> None:
        """Tell the controller of joins and looks; what it refuses is said, and hinders nothing else."""
        for join in reports.joins:
            try:
                self._client.join(join)
                _LOG.info("host joined", host=join.host, instance=join.instance)
            except RejectedError as error:
                _LOG.warning("join refused", host=join.host, why=str(error))
        for look in reports.looks:
            try:
                self._client.looked(look.host, look.jobs)
                _LOG.info("host looked at", host=look.host, jobs=len(look.jobs))
            except RejectedError as error:
                _LOG.warning("look refused", host=look.host, why=str(error))

    def _order(self, view: Snapshot, supply: Supply, result: SessionResult) -> int:
        """Give the batch system its orders; return how many starts were held back."""
        gone = [name for name in scheduler.departed(view, supply) if self._is_gone(name)]
        orders = scheduler.orders(view, supply, result, gone)
        held = self._held_back(result.allocations, supply)
        if held:
            kept = tuple(one for one in orders.start if one.job not in held)
            orders = replace(orders, start=kept)
        try:
            self._source.obey(orders)
        except TransientError as error:
            _LOG.warning("the batch system does not obey now", why=str(error))
        return len(held)

    def _held_back(self, starts: tuple[Allocation, ...], supply: Supply) -> set[str]:
        """Return the jobs that must not start now: tokens they are to take went back while the session ran."""
        declared = {entry.name: entry.total for entry in supply.shared}
        using = {one.name for start in starts for one in start.shared} & declared.keys()
        if not using:
            return set()
        now = {entry.name: entry.total for entry in self._client.shared()}
        less = {name for name in using if now.get(name, 0) < declared[name]}
        return {start.job for start in starts if any(one.name in less for one in start.shared)}

    def _publish(self, snapshot: Snapshot, result: SessionResult) -> None:
        """Post the snapshot and the result; one that the controller does not take keeps the other from nobody."""
        for what, call in (
            ("snapshot", partial(self._client.post_snapshot, snapshot)),
            ("session", partial(self._client.publish_session, result)),
        ):
            try:
                call()
            except ForbiddenError:
                raise
            except (RejectedError, InputError) as error:
                _LOG.warning("not published", what=what, why=str(error), code=error.code)

    def _is_gone(self, instance: str) -> bool:
        """Return whether the log has an instance as gone; one that it never had is none of ours."""
        if (known := self._gone.get(instance)) is not None:
            return known
        try:
            if self._client.instance(instance).state not in GONE:
                return False
            self._gone[instance] = True
        except NotFoundError:
            self._gone[instance] = False
        return self._gone[instance]

    def _say(self, what: str, **more: object) -> None:
        """Log why there is no session, once until there is one; and tell the controller, each time.

        Raises:
            TransientError: the controller is away.
        """
        if what != self._said:
            _LOG.warning("no session", why=what, **more)
            self._said = what
        try:
            self._client.report_no_session(what)
        except ForbiddenError:
            raise
        except RejectedError as error:  # of a release that knows no such report
            _LOG.debug("not told", why=str(error), code=error.code)
