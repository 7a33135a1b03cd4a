"""A provisioner of real parts, its threads stepped one at a time in virtual time."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from threading import Event

from xce.adapters.controller.questions import supply_of
from xce.adapters.controller.views import Views
from xce.adapters.provisioner.driver import Driver
from xce.adapters.provisioner.leases import LeaseKeeper, Leases
from xce.adapters.provisioner.newest import Newest, Published
from xce.adapters.provisioner.rounds import Rounds
from xce.adapters.provisioner.surroundings import Surroundings
from xce.adapters.provisioner.worker import Worker
from xce.domain.engine.commands import Command, ReleaseLease, RenewLease, TakeLease
from xce.domain.engine.messages import Caller, Role
from xce.domain.engine.provisioner import Provisioner
from xce.domain.errors import XceError
from xce.domain.formats.rest import LeaseEntry, Supply
from xce.domain.formats.session_result import SessionResult
from xce.replay.faults.controller import ControllerNode
from xce.replay.faults.lives import ControllerCalls, Equipment

#: A thread that met an error goes on after this.
_REST_S = 5.0


class _Books:
    """Fulfils ``Books`` and ``LeaseDesk`` over the virtual network."""

    def __init__(self, calls: ControllerCalls, name: str) -> None:
        self._calls = calls
        self._caller = Caller(Role.PROVISIONER, name)

    def supply(self, not_before_s: float) -> Supply:
        return self._calls.supply()

    def orphans(self, provider: str) -> Mapping[str, str | None]:
        return self._calls.orphans(provider)

    def record(self, commands: tuple[Command, ...], epochs: Mapping[str, int]) -> None:
        self._calls.order(self._caller, commands, epochs, once=False)

    def leases(self) -> Mapping[str, LeaseEntry]:
        return self._calls.leases()

    def take(self, provider: str, holder: str, term: timedelta) -> int:
        command = TakeLease(provider, holder, term)
        return self._calls.order(self._caller, (command,), {}, once=True).epochs[provider]

    def renew(self, epochs: Mapping[str, int], holder: str) -> None:
        commands = tuple(RenewLease(name, holder, epoch) for name, epoch in epochs.items())
        self._calls.order(self._caller, commands, {}, once=True)

    def release(self, provider: str, holder: str) -> None:
        self._calls.order(self._caller, (ReleaseLease(provider, holder),), {}, once=True)


class RealLife:
    """Fulfils ``ProvisionerLife``: what ``adapters/provisioner/service.py`` puts together, without its threads."""

    def __init__(self, given: Equipment) -> None:
        self._rhythm = given.rhythm
        clock = given.clock
        books = _Books(given.controller, given.name)
        leases = Leases(clock.elapsed_s, lambda: given.wake("keeper"))
        engine = Provisioner(given.ids)

        def pause(seconds: float) -> bool:
            given.wait(seconds)
            return True

        self._newest = Newest()
        around = Surroundings(
            books=books,
            leases=leases,
            engine=engine,
            ids=given.ids,
            clock=clock,
            elapsed_s=clock.elapsed_s,
            pause=pause,
            newest=self._newest,
            policy=given.policy.settings(),
            lifecycle=given.lifecycle,
        )
        self._workers = {
            name: Worker(
                Driver(name, provider, around),
                leases,
                given.rhythm,
                elapsed_s=clock.elapsed_s,
                stopping=Event(),
            )
            for name, provider in given.providers.items()
        }
        self._clock = clock
        self._keeper = LeaseKeeper(
            books,
            leases,
            self._workers,
            holder=given.name,
            term=given.rhythm.lease_term,
            elapsed_s=clock.elapsed_s,
            taken=given.wake,
        )
        self._rounds = Rounds(
            books,
            engine,
            {name: worker.driver for name, worker in self._workers.items()},
            self._newest,
            given.policy,
            given.rhythm,
            elapsed_s=clock.elapsed_s,
            wake=given.wake,
        )

    def threads(self) -> Mapping[str, Callable[[], float]]:
        """See ``ProvisionerLife.threads``."""
        workers = {name: _patient(worker.step) for name, worker in self._workers.items()}
        return {"keeper": self._keep, "rounds": _patient(self._decide), **workers}

    def hear(self, result: SessionResult, age_s: float) -> None:
        """See ``ProvisionerLife.hear``."""
        self._newest.put(Published(result, self._clock.elapsed_s() - age_s, "0" * 64))

    def leave(self) -> None:
        """See ``ProvisionerLife.leave``."""
        for worker in self._workers.values():
            worker.driver.withdraw()
        self._keeper.release()

    def _keep(self) -> float:
        self._keeper.step()
        return self._keeper.period_s

    def _decide(self) -> float:
        return self._rhythm.review.total_seconds() if self._rounds.once() else _REST_S


def _patient(step: Callable[[], float]) -> Callable[[], float]:
    """Return a step that says what the thread does when the controller is away: wait, and go on."""

    def patiently() -> float:
        try:
            return step()
        except XceError:
            return _REST_S

    return patiently


def supply_of_node(node: ControllerNode) -> Supply:
    """Return what the real controller answers of a node's views."""
    return supply_of(
        Views(
            node.projections,
            node.clock.now(),
            node.lease_left_s(),
            node.occupied(),
            None,
            primary=node.epoch,
        )
    )
