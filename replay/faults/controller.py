"""Controllers: the real state machine and views over the disk, with a death around each append, and a standby that takes over.

What ``adapters/controller/live.py`` does in a thread is done here at once: judge, append, show, answer.
"""

from collections.abc import Callable, Mapping
from typing import Final

from xce.domain.engine.commands import Command
from xce.domain.engine.controller import Controller
from xce.domain.engine.messages import Answer, Caller, Order
from xce.domain.errors import (
    ConflictError,
    RejectedError,
    StaleEpochError,
    TransientError,
    XceError,
)
from xce.domain.events import ids
from xce.domain.events.recorded import Recorded
from xce.domain.formats.session_result import SessionResult
from xce.domain.provisioning.lease import LeaseState, ProviderLease
from xce.projections.all import Projections
from xce.replay.faults.chance import Chance
from xce.replay.faults.disk import PRIMARY, Disk, DiskLog, Fate
from xce.replay.faults.time import MachineClock

_AGAIN: Final = 2


class ControllerNode:
    """One controller process, up or down."""

    def __init__(self, name: str, disk: Disk, clock: MachineClock, chance: Chance) -> None:
        self.name = name
        self.clock = clock
        self.up = False
        self.session: SessionResult | None = None
        self.session_s = 0.0
        self.projections = Projections()
        #: Told when it dies in the middle of something.
        self.on_death: Callable[[], None] = lambda: None
        self._disk = disk
        self._chance = chance
        self._log = DiskLog(disk, self._fate)
        self._machine = Controller(self._log)
        self._epoch = 0
        self._in_doubt = False

    def start(self) -> None:
        """Become the primary, from the log alone."""
        self.up = True
        self.session = None
        self._in_doubt = False
        self._epoch = self._log.take_primary()
        self._machine = Controller(self._log)
        self.projections = Projections()
        self.projections.apply(self._disk.recorded)
        for recorded in self._disk.recorded[-1:]:
            self.clock.not_before(recorded.event.timestamp)
        held = [
            self._log.get(ProviderLease, ids.lease_id(row.provider))
            for row in self.projections.leases.rows()
            if row.state is LeaseState.HELD
        ]
        self._machine.start(held, elapsed_s=self.clock.elapsed_s(), primary=self._epoch)

    @property
    def leads(self) -> bool:
        """Whether it is up, and no other has taken over: a primary that cannot show that it lives does not serve."""
        return self.up and self._disk.fences.get(PRIMARY, 0) == self._epoch

    def require(self) -> None:
        """Refuse while it does not serve."""
        if not self.up:
            raise TransientError(f"{self.name} is down")
        if not self.leads:
            raise TransientError(f"{self.name} is not the primary")

    def occupied(self) -> Mapping[str, int | None]:
        """Return what is in use of each shared resource, as reported."""
        return self._machine.occupied()

    @property
    def epoch(self) -> int:
        """Under which it is, or was, the primary."""
        return self._epoch

    def lease_left_s(self) -> dict[str, float]:
        """Return the seconds until each lease ends."""
        now = self.clock.elapsed_s()
        return {name: end - now for name, end in self._machine.lease_ends_s().items()}

    # ------------------------------------------------------------------- orders
    def order(
        self,
        caller: Caller,
        commands: tuple[Command, ...],
        epochs: Mapping[str, int] | None = None,
        key: str | None = None,
    ) -> Answer:
        """Carry out an order; returns once it is durable.

        Raises:
            RejectedError: the state does not allow it.
            TransientError: it is away; what came of it is not known.
        """
        self.require()
        self.tick()
        for _ in range(_AGAIN):
            try:
                answer = self._machine.perform(
                    Order(
                        commands=commands,
                        caller=caller,
                        at=self.clock.now(),
                        elapsed_s=self.clock.elapsed_s(),
                        key=key,
                        epochs=epochs or {},
                    )
                )
            except RejectedError as error:
                self._append()
                raise error from None
            try:
                self._append()
            except (ConflictError, StaleEpochError):  # somebody else wrote: decide again
                continue
            return answer
        raise TransientError("somebody else writes")

    def tick(self) -> None:
        """Do what is due by itself."""
        self.require()
        try:
            if self._in_doubt:
                self._settle()
            self._machine.tick(at=self.clock.now(), elapsed_s=self.clock.elapsed_s())
            self._append()
        except XceError:
            self.require()  # later, unless it has ended

    def publish(self, result: SessionResult) -> None:
        """Take a session result; it replaces the one before."""
        self.require()
        if result.position > self.projections.position:
            raise RejectedError("the session is of a position that the log has not reached")
        if self.session is not None and result.position < self.session.position:
            raise RejectedError("there is a newer session")
        self.session, self.session_s = result, self.clock.elapsed_s()

    # ------------------------------------------------------------------- inside
    def _append(self) -> None:
        change = self._machine.take()
        if not change:
            self._machine.appended()
            return
        self._die("before append")
        try:
            recorded = self._log.append(
                change.aggregates, fences={PRIMARY: self._epoch, **change.fences}
            )
        except StaleEpochError as error:
            self._machine.forget()
            if error.fence != PRIMARY:
                raise
            self.up = False
            self.on_death()
            raise TransientError(f"{self.name} is not the primary any more") from None
        except ConflictError:
            self._machine.forget()
            raise
        except XceError:
            self._machine.forget()
            self._in_doubt = True
            raise
        self._die("after append")
        self._machine.appended()
        self._show([*recorded], seen=True)

    def _settle(self) -> None:
        self._show([*self._log.read(self.projections.position)], seen=False)
        self._in_doubt = False

    def _show(self, recorded: list[Recorded], *, seen: bool) -> None:
        if not recorded:
            return
        position = self.projections.position
        missed = [*self._log.read(position, recorded[0].position - 1)]
        self.projections.apply([*missed, *recorded])
        for lease_id in sorted({r.event.originator_id for r in (missed if seen else recorded)}):
            if lease_id.startswith(f"{ids.LEASE}:"):
                lease = self._log.get(ProviderLease, lease_id)
                self._machine.found(lease, elapsed_s=self.clock.elapsed_s())

    def _die(self, where: str) -> None:
        if self._chance.fires(f"controller dies {where}", 4):
            self.up = False
            self.on_death()
            raise TransientError(f"{self.name} died {where}")

    def _fate(self) -> Fate:
        if self._chance.fires("disk refuses", 15):
            return Fate.REFUSED
        return Fate.UNHEARD if self._chance.fires("disk is not heard", 15) else Fate.SAVED
