"""The controller at work on a log: one thread that writes, any number that ask and read.

Orders wait in one bounded queue. The writer takes all that wait, lets the state machine judge them one after the other, appends what
they change in one go, and answers only after that is durable. Views change after the append and before the answers, so that who was
answered sees what they did.
"""

import queue
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from threading import RLock, Thread
from typing import Protocol, TypeVar

import structlog

from xce.adapters.clock import SystemClock
from xce.adapters.controller.errors import BusyError, NotPrimaryError, StoppingError
from xce.adapters.controller.feed import Feed, Published
from xce.adapters.controller.views import Views
from xce.adapters.controller.waiting import WAITING_MAX, Waiting
from xce.adapters.store.follower import Follower
from xce.domain.engine.commands import Command
from xce.domain.engine.controller import Controller as StateMachine
from xce.domain.engine.messages import Answer, Caller, Order
from xce.domain.engine.refusal_notes import Attempt
from xce.domain.errors import (
    BrokenLogError,
    ConflictError,
    RejectedError,
    StaleEpochError,
    TransientError,
    XceError,
)
from xce.domain.events import ids
from xce.domain.events.recorded import Recorded
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.shared_report import SharedReport
from xce.domain.formats.snapshot import Template
from xce.domain.ports import EventLog
from xce.domain.provisioning.lease import LeaseState, ProviderLease
from xce.projections.all import Projections

T = TypeVar("T")

_LOG = structlog.get_logger("xce.controller")


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSettings:
    """How the writer works.

    Attributes:
        gather_s: how long it waits for company, where the batch before had some.
        batch_max: most orders of one append.
        tick_s: how often it looks what is due by itself.
        demand_time_to_live: demand older than this is unknown.
        templates: static parts of the catalog from the cluster's configuration.
    """

    gather_s: float = 0.002
    batch_max: int = 500
    tick_s: float = 0.2
    demand_time_to_live: timedelta = timedelta(minutes=5)
    templates: tuple[Template, ...] = ()


class Watch(Protocol):
    """Told what the writer does, for metrics."""

    def batch(self, orders: int, events: int, seconds: float) -> None:
        """A batch was appended."""
        ...


class _NoWatch:
    def batch(self, orders: int, events: int, seconds: float) -> None:
        pass


class LiveController:
    """Owns a log as its primary, from ``start`` to ``close``."""

    def __init__(
        self,
        log: EventLog,
        *,
        clock: SystemClock | None = None,
        settings: LiveSettings | None = None,
        follower: Follower | None = None,
        watch: Watch | None = None,
        on_lost: Callable[[], None] | None = None,
        on_folded: Callable[[], None] | None = None,
    ) -> None:
        """Prepare; nothing is read or written yet.

        Args:
            log: the log; the caller closes it.
            clock: source of stamps and durations.
            settings: how the writer works.
            follower: views that already follow the log (a standby's), at whatever position.
            watch: told of each batch.
            on_lost: called from the writer when it is not the primary any more, so that the process can end or stand by.
            on_folded: called from the writer when the views have followed the log and nobody folds.
        """
        self.log = log
        self.settings = settings or LiveSettings()
        self.epoch = 0
        self._clock = clock or SystemClock()
        self._follower = follower or Follower(log, Projections(self.settings.templates))
        self._watch = watch or _NoWatch()
        self._on_lost = on_lost or (lambda: None)
        self._on_folded = on_folded or (lambda: None)
        self._machine = StateMachine(log)
        self._queue: queue.Queue[Waiting | None] = queue.Queue(WAITING_MAX)
        self._lock = RLock()
        self._lease_ends: Mapping[str, float] = {}
        self._occupied: Mapping[str, int | None] = {}
        self._reports: Mapping[str, SharedReport] = {}
        self._thread: Thread | None = None
        self._closed = False
        self._had_company = False
        self._next_tick = 0.0
        self._in_doubt = False
        #: Why this controller is not the primary any more; None: it is, or was not started.
        self.lost: XceError | None = None
        self.feed = Feed(0)

    # --------------------------------------------------------------- begin, end
    def start(self, epoch: int | None = None) -> None:
        """Become the primary, read the log, and take orders.

        Args:
            epoch: under which this process is the primary already; None: it becomes it now.

        Raises:
            XceError: the log cannot be owned or read.
        """
        assert self._thread is None, "a controller starts once"
        self._follower.catch_up()  # first: who cannot read all of the log does not become its primary (F26)
        self.epoch = self.log.take_primary() if epoch is None else epoch
        self._follower.catch_up()
        position = self._follower.position
        for recorded in self.log.read(position - 1, position) if position else ():
            self._clock.not_before(recorded.event.timestamp)  # stamps do not go back behind it
        self.feed = Feed(position)
        held = [
            self.log.get(ProviderLease, ids.lease_id(row.provider))
            for row in self._follower.projections.leases.rows()
            if row.state is LeaseState.HELD
        ]
        self._machine.start(held, elapsed_s=self._clock.elapsed_s(), primary=self.epoch)
        self._lease_ends = self._machine.lease_ends_s()
        self._thread = Thread(target=self._run, name="xce-writer", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Finish what waits, and end; may be repeated. What comes later is refused."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
        while True:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return
            if item is not None:
                item.future.set_exception(StoppingError("the controller is stopping"))

    @property
    def ready(self) -> bool:
        """Whether orders are taken."""
        return self._thread is not None and not self._closed and self.lost is None

    # ------------------------------------------------------------------- orders
    def submit(
        self,
        caller: Caller,
        *commands: Command,
        key: str | None = None,
        epochs: Mapping[str, int] | None = None,
        expected: Mapping[str, int] | None = None,
    ) -> "Future[Answer]":
        """Give an order; the future has its answer, or its error, once it is durable.

        Raises:
            TransientError: it is not taken now.
        """
        item = Waiting(caller, commands, key, epochs or {}, expected or {})
        self._put(item)
        return item.future

    def refused(self, attempt: Attempt) -> None:
        """Note for the audit trail what was refused before it became an order; lost when too much waits."""
        try:
            self._put(Waiting(None, attempt=attempt))
        except TransientError:
            _LOG.warning("refusal not noted", caller=attempt.caller, action=attempt.action)

    def publish(self, result: SessionResult, text: str, by: str) -> Published:
        """Take a session result; it replaces the one before.

        Raises:
            RejectedError: it is older than the one before, or of a position that the log has not reached.
        """
        before = self.feed.session
        if result.position > self.feed.position:
            raise RejectedError(
                f"the session is of position {result.position}; the log has {self.feed.position}"
            )
        if before is not None and result.position < before.result.position:
            raise RejectedError(
                f"the session is of position {result.position}; there is one of {before.result.position}"
            )
        return self.feed.post(result, text, at_s=self._clock.elapsed_s(), by=by)

    # ------------------------------------------------------------------ reading
    def read(self, question: Callable[[Views], T]) -> T:
        """Return what ``question`` makes of the views; nothing changes meanwhile, so it must be quick."""
        elapsed = self._clock.elapsed_s()
        with self._lock:
            left = {name: end - elapsed for name, end in self._lease_ends.items()}
            views = Views(
                self._follower.projections,
                self._clock.now(),
                left,
                self._occupied,
                self.session(),
                self._reports,
                self.epoch,
            )
            return question(views)

    def session(self) -> Published | None:
        """Return the newest session result; None: there is none since the start, or it is too old to count."""
        published = self.feed.session
        if published is None or self.age_s(published) > self._time_to_live_s:
            return None
        return published

    def age_s(self, published: Published) -> float:
        """Return how old a session result is."""
        return self._clock.elapsed_s() - published.at_s

    def events_after(self, position: int, limit: int) -> list[Recorded]:
        """Return the next events behind a position that are durable; may read the log.

        Raises:
            BrokenLogError: the log cannot be read.
        """
        kept = self.feed.after(position, limit)
        if kept is not None:
            return kept
        found: list[Recorded] = []
        for recorded in self.log.read(position, self.feed.position):
            found.append(recorded)
            if len(found) == limit:
                break
        return found

    @property
    def _time_to_live_s(self) -> float:
        return self.settings.demand_time_to_live.total_seconds()

    # ------------------------------------------------------------------- writer
    def _put(self, item: Waiting) -> None:
        if self.lost is not None:
            raise NotPrimaryError(f"this controller is not the primary any more: {self.lost}")
        if self._closed or self._thread is None:
            raise StoppingError("the controller is stopping")
        try:
            self._queue.put_nowait(item)
        except queue.Full:
            raise BusyError(f"{WAITING_MAX} orders wait") from None

    def _run(self) -> None:
        going = True
        while going:
            batch, going = self._gather()
            try:
                self._tick()
                if batch:
                    self._do(batch)
                self._had_company = len(batch) > 1
            except Exception as error:  # noqa: BLE001 - the outermost loop: it says so and goes on
                _LOG.exception("the writer met a defect")
                self._fail(batch, error)

    def _gather(self) -> tuple[list[Waiting], bool]:
        """Return what waits, and whether to go on after it."""
        batch: list[Waiting] = []
        wait_s = self.settings.tick_s
        while len(batch) < self.settings.batch_max:
            try:
                item = self._queue.get(timeout=wait_s) if wait_s else self._queue.get_nowait()
            except queue.Empty:
                if wait_s or not self._had_company or not batch:
                    break
                wait_s = self.settings.gather_s
                self._had_company = False  # waits once a batch
                continue
            if item is None:
                return batch, False
            if item.future.set_running_or_notify_cancel():  # else nobody waits for it any more
                batch.append(item)
            wait_s = 0.0
        return batch, True

    def _tick(self) -> None:
        elapsed = self._clock.elapsed_s()
        if elapsed < self._next_tick or self.lost is not None:
            return
        self._next_tick = elapsed + self.settings.tick_s
        try:
            if self._in_doubt:
                self._settle()
            self._machine.tick(at=self._clock.now(), elapsed_s=elapsed)
            self._append(0)
        except XceError as error:
            _LOG.warning("what was due could not be recorded", error=str(error), code=error.code)

    def _do(self, batch: Sequence[Waiting], *, again: bool = True) -> None:
        """Carry out a batch, append it, answer. If one of several spoils it, each is done alone."""
        if self.lost is not None:
            self._fail(batch, NotPrimaryError(f"this controller is not the primary: {self.lost}"))
            return
        try:
            answers = [self._judge(item) for item in batch]
            self._append(len(batch))
        except (ConflictError, StaleEpochError) as error:  # somebody else wrote: decide again
            if len(batch) > 1 or again:
                self._each(batch)
            else:
                self._fail(batch, error)
        except XceError as error:  # nothing can be written now, whatever it is
            self._fail(batch, error)
        except Exception as error:  # noqa: BLE001 - a defect that one order meets must not stop the others
            _LOG.exception("an order met a defect")
            self._machine.forget()
            if len(batch) > 1:
                self._each(batch)
            else:
                self._fail(batch, error)
        else:
            for item, answer in zip(batch, answers, strict=True):
                if isinstance(answer, Answer):
                    item.future.set_result(answer)
                else:
                    item.future.set_exception(answer)

    def _each(self, batch: Sequence[Waiting]) -> None:
        for item in batch:
            self._do([item], again=False)

    def _judge(self, item: Waiting) -> Answer | RejectedError:
        at, elapsed = self._clock.now(), self._clock.elapsed_s()
        if item.attempt is not None:
            self._machine.refused(item.attempt, at=at, elapsed_s=elapsed)
            return Answer({}, {})
        assert item.caller is not None, "an order has a caller"
        order = Order(
            commands=item.commands,
            caller=item.caller,
            at=at,
            elapsed_s=elapsed,
            key=item.key,
            epochs=item.epochs,
            expected=item.expected,
        )
        try:
            return self._machine.perform(order)
        except RejectedError as error:
            return error

    def _append(self, orders: int) -> None:
        """Append what the state machine has, and let the views follow.

        Raises:
            NotPrimaryError: another one owns the log.
            XceError: it was not saved; the state machine has forgotten it.
        """
        change = self._machine.take()
        recorded: Sequence[Recorded] = ()
        begun = self._clock.elapsed_s()
        if change:
            try:
                recorded = self.log.append(
                    change.aggregates, fences={"primary": self.epoch, **change.fences}
                )
            except StaleEpochError as error:
                self._machine.forget()
                if error.fence != "primary":
                    raise
                _LOG.error("another controller owns the log", error=str(error))
                self.lose(error)
                raise NotPrimaryError(str(error)) from None
            except ConflictError:
                self._machine.forget()
                raise
            except XceError:
                self._machine.forget()
                self._in_doubt = True  # it may have been saved all the same
                raise
        self._machine.appended()
        self._show(recorded)
        if recorded:
            self._on_folded()
        if orders or recorded:
            self._watch.batch(orders, len(recorded), self._clock.elapsed_s() - begun)

    def lose(self, error: XceError) -> None:
        """End being the primary: nothing is taken any more; from any thread."""
        if self.lost is None:
            self.lost = error
            self._on_lost()

    def lose_seat(self) -> None:
        """End being the primary: the seat is another's, or is not there any more."""
        self.lose(
            NotPrimaryError(
                "another controller has taken its place, or its files were removed or replaced"
            )
        )

    def _settle(self) -> None:
        """Find what an append saved although it seemed to fail.

        Raises:
            TransientError: the log cannot be read yet.
        """
        found = list(self.log.read(self._follower.position))
        self._show(found, seen=False)
        self._in_doubt = False

    def _show(self, recorded: Sequence[Recorded], *, seen: bool = True) -> None:
        """Let the views have what is durable; ``seen`` is whether the state machine knows of these events.

        Raises:
            NotPrimaryError: they cannot follow, and this controller has ended being the primary: nothing may be done twice.
        """
        try:
            with self._lock:
                self._follow(recorded, seen)
                self._lease_ends = self._machine.lease_ends_s()
                self._occupied = self._machine.occupied()
                self._reports = self._machine.shared_reports()
        except Exception as error:  # noqa: BLE001 - durable, but not shown
            _LOG.exception("the views cannot follow the log")
            self.lose(BrokenLogError(f"the views cannot follow the log: {error!r}"))
            raise NotPrimaryError(str(self.lost)) from None

    def _follow(self, recorded: Sequence[Recorded], seen: bool) -> None:
        if not recorded:
            return
        position = self._follower.position
        missed: list[Recorded] = []
        if recorded[0].position != position + 1:  # holes, or events of a doubtful append
            missed = list(self.log.read(position, recorded[0].position - 1))
        self._follower.appended([*missed, *recorded])
        self.feed.add([*missed, *recorded])
        self._find_leases(missed if seen else recorded)

    def _find_leases(self, recorded: Sequence[Recorded]) -> None:
        """Give leases that changed unseen their terms."""
        found = {one.event.originator_id for one in recorded}
        for lease_id in sorted(found):
            if lease_id.startswith(f"{ids.LEASE}:"):
                lease = self.log.get(ProviderLease, lease_id)
                self._machine.found(lease, elapsed_s=self._clock.elapsed_s())

    @staticmethod
    def _fail(batch: Sequence[Waiting], error: Exception) -> None:
        for item in batch:
            if not item.future.done():
                item.future.set_exception(error)


@contextmanager
def serving(live: LiveController) -> Generator[LiveController]:
    """Start a controller and close it in the end."""
    live.start()
    try:
        yield live
    finally:
        live.close()
