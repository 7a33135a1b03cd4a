"""Both controllers as the others see them: one primary at a time, orders tried again under one key, a take-over when it is gone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Final, TypeVar

from xce.domain.engine.commands import Command, ReportBookings
from xce.domain.engine.messages import Answer, Caller, Role
from xce.domain.errors import TransientError, XceError
from xce.domain.formats.rest import LeaseEntry, Supply
from xce.domain.formats.session_result import SessionResult
from xce.projections.all import Projections
from xce.replay.agenda import CountedIds
from xce.replay.faults.broken import BrokenPromiseError
from xce.replay.faults.chance import Chance
from xce.replay.faults.checks import Checks
from xce.replay.faults.cloud import RESOURCE
from xce.replay.faults.controller import ControllerNode
from xce.replay.faults.disk import Disk
from xce.replay.faults.lives import SupplyOf
from xce.replay.faults.network import TIMEOUT_S, Line, Network
from xce.replay.faults.time import MachineClock, Threads

T = TypeVar("T")

_TRIES: Final = 3
_RETRY_S: Final = 2.0
#: A supply of the same position serves for so long, with a new time.
_GOOD_FOR_S: Final = 30.0
_SCHEDULER: Final = Caller(Role.SCHEDULER, "s1")


class Controllers:
    """Two controllers on one disk."""

    def __init__(
        self,
        disk: Disk,
        threads: Threads,
        network: Network,
        chance: Chance,
        checks: Checks,
        supply_of: SupplyOf,
    ) -> None:
        self._disk = disk
        self._threads = threads
        self._network = network
        self._chance = chance
        self._checks = checks
        self._supply_of = supply_of
        self._keys = CountedIds()
        #: Of orders, as they are given: a call may come much later.
        self._numbers = count(1)
        self._supplies: dict[str, tuple[int, float, Supply]] = {}
        #: Keys of what the present primary was told of what is in use.
        self._told: set[str] = set()
        self.nodes = tuple(
            ControllerNode(name, disk, MachineClock(threads.time), chance) for name in ("c1", "c2")
        )
        for node in self.nodes:
            node.on_death = self._died

    # ------------------------------------------------------------------- who leads
    @property
    def leading(self) -> ControllerNode | None:
        """The primary; None: nobody is."""
        return next((node for node in self.nodes if node.leads), None)

    def take_over(self) -> None:
        """The other one becomes the primary; the one before finds out when it writes."""
        leading = self.leading
        turn = 0 if leading is None else 1 - self.nodes.index(leading)
        if leading is not None:
            self.compare(leading)
        self.nodes[turn].start()
        self._checks.bookings = None
        self._told.clear()

    def tick(self) -> None:
        """Let the primary do what is due by itself."""
        if self.leading is not None:
            quietly(self.leading.tick)

    def kill(self, node: ControllerNode) -> None:
        """End a controller."""
        node.up = False
        self._died()

    def compare(self, node: ControllerNode) -> None:
        """Look whether what is served is what the log says (invariant 8)."""
        rebuilt = Projections()
        rebuilt.apply(self._disk.recorded[: node.projections.position])
        difference = rebuilt.difference(node.projections)
        if difference is not None:
            raise BrokenPromiseError("invariant-8", difference)

    def _died(self) -> None:
        noticed = self._chance.draw("noticed", len(self._disk.recorded), 5, 60)
        self._threads.time.after(noticed, self._revive)

    def _revive(self) -> None:
        if self.leading is None:
            self.take_over()

    # ----------------------------------------------------------------------- calls
    def order(
        self,
        line: Line,
        caller: Caller,
        commands: tuple[Command, ...],
        epochs: Mapping[str, int],
        *,
        once: bool = False,
    ) -> Answer:
        """Carry an order to whichever controller is the primary; tried again under one key."""
        key, number = self._keys.next_id("K"), next(self._numbers)

        def do(node: ControllerNode) -> Answer:
            answer = node.order(caller, commands, epochs, key)
            for command in commands:
                # A report that comes a second time is answered as before, and changes nothing.
                if isinstance(command, ReportBookings) and key not in self._told:
                    self._told.add(key)
                    self._checks.booked(number, command.occupied[RESOURCE])
            return answer

        if self._chance.fires("order lost", 20):
            self._threads.wait(TIMEOUT_S)
            raise TransientError("the order was lost, however often it was sent")
        if caller.role is Role.PROVISIONER and not once and self._chance.fires("order late", 40):
            late_s = self._chance.size("order late", 1, 90)
            self._threads.time.after(late_s, lambda: quietly(lambda: do(self._primary())))
            self._threads.wait(TIMEOUT_S)
            raise TransientError("the order has not arrived yet")
        answer = self.ask(line, do, tries=1 if once else _TRIES, twice=True)
        if self._chance.fires("order unheard", 20):
            self._threads.wait(TIMEOUT_S)
            raise TransientError("what came of the order was not heard, however often it was sent")
        return answer

    def ask(
        self, line: Line, do: Callable[[ControllerNode], T], *, tries: int = 1, twice: bool = False
    ) -> T:
        """Carry a question or an order.

        Raises:
            RejectedError: it is refused.
            TransientError: nothing was heard.
        """
        error = TransientError("nobody is the primary")
        for number in range(tries):
            if number:
                self._threads.wait(_RETRY_S)
            try:
                return self._network.call(line, lambda: do(self._primary()), twice=twice)
            except TransientError as failed:
                error = failed
        raise error

    def supply(self, line: Line) -> Supply:
        """Carry the question for the supply."""
        return self.ask(line, self.supply_here)

    def _primary(self) -> ControllerNode:
        leading = self.leading
        if leading is None:
            raise TransientError("nobody is the primary")
        return leading

    def supply_here(self, node: ControllerNode) -> Supply:
        """Return the supply as a controller answers it."""
        position, now_s = node.projections.position, self._threads.time.now_s
        known = self._supplies.get(node.name)
        if known is not None and known[0] == position and now_s - known[1] < _GOOD_FOR_S:
            return known[2].model_copy(update={"now": node.clock.now(), "primary": node.epoch})
        supply = self._supply_of(node)
        self._checks.served(supply)
        self._supplies[node.name] = (position, now_s, supply)
        return supply


@dataclass(frozen=True, slots=True)
class ProvisionerLink:
    """Fulfils ``ControllerCalls``."""

    controllers: Controllers
    line: Line

    def order(
        self,
        caller: Caller,
        commands: tuple[Command, ...],
        epochs: Mapping[str, int],
        *,
        once: bool,
    ) -> Answer:
        """Give an order."""
        return self.controllers.order(self.line, caller, commands, epochs, once=once)

    def supply(self) -> Supply:
        """Return what is known."""
        return self.controllers.supply(self.line)

    def leases(self) -> Mapping[str, LeaseEntry]:
        """Return the leases."""

        def asked(node: ControllerNode) -> Mapping[str, LeaseEntry]:
            left = node.lease_left_s()
            return {
                one.provider: one.model_copy(update={"left_s": left.get(one.provider)})
                for one in self.controllers.supply_here(node).leases
            }

        return self.controllers.ask(self.line, asked)

    def orphans(self, provider: str) -> Mapping[str, str | None]:
        """Return the open orphans of a provider, and the id of the return of each."""

        def asked(node: ControllerNode) -> Mapping[str, str | None]:
            return {
                one.theirs: one.return_id
                for one in node.projections.reasons.orphans()
                if one.provider == provider
            }

        return self.controllers.ask(self.line, asked)


@dataclass(frozen=True, slots=True)
class SchedulerLink:
    """Fulfils ``ControllerLink``; ``published`` is called after each session that was taken."""

    controllers: Controllers
    line: Line
    published: Callable[[], None]

    def supply(self) -> Supply:
        """Return what is known."""
        return self.controllers.supply(self.line)

    def order(self, *commands: Command) -> object:
        """Give an order."""
        return self.controllers.order(self.line, _SCHEDULER, commands, {})

    def publish(self, result: SessionResult) -> None:
        """Publish a session."""
        self.controllers.ask(self.line, partial(_publish, result))
        self.published()


def _publish(result: SessionResult, node: ControllerNode) -> None:
    node.publish(result)


def quietly(do: Callable[[], object]) -> None:
    """Do something whose failure is looked after elsewhere."""
    try:
        do()
    except XceError:
        return
