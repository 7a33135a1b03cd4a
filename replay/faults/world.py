"""One run: a site under faults until its storm is over, and then time to settle; every promise is looked at all along."""

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from xce.domain.engine.commands import Command, DeclareShared, DescribeProvider, DismissOrphan
from xce.domain.engine.messages import Caller, Role
from xce.domain.formats.session_result import SessionResult
from xce.replay.agenda import CountedIds
from xce.replay.faults.batch import OWNED, SESSION_S, Batch, SchedulerLife, host_of
from xce.replay.faults.broken import BrokenPromiseError
from xce.replay.faults.chance import Chance
from xce.replay.faults.checks import Checks
from xce.replay.faults.cloud import RESOURCE, Cloud
from xce.replay.faults.controller import ControllerNode
from xce.replay.faults.controllers import (
    Controllers,
    ProvisionerLink,
    SchedulerLink,
    quietly,
)
from xce.replay.faults.disk import Disk
from xce.replay.faults.lives import (
    LIFECYCLE,
    RHYTHM,
    Equipment,
    MakeLife,
    ProvisionerLife,
    SupplyOf,
)
from xce.replay.faults.network import Line, Network
from xce.replay.faults.remote import RemoteProvider, Spool
from xce.replay.faults.scenario import Scenario, scenario
from xce.replay.faults.time import MachineClock, NeverRestsError, Thread, Threads, Time

T = TypeVar("T")

#: How often the world draws what breaks next.
WEATHER_S: Final = 20.0
#: After the storm everything must have settled within this.
SETTLE_S: Final = 7200.0
_LOOK_S: Final = 120.0
_FOLLOW_S: Final = 40.0
_TIDY_S: Final = 600.0
_TRIES: Final = 3
_ADMIN: Final = Caller(Role.ADMIN, "site")
_SCHEDULER: Final = Caller(Role.SCHEDULER, "s1")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to.

    Attributes:
        promise: the promise that was broken; None: none.
        message: what was found.
        faults: those that happened, in order: ``kill:3``.
        seconds: of virtual time.
    """

    seed: int
    promise: str | None
    message: str
    faults: tuple[str, ...]
    events: int
    seconds: float


@dataclass(slots=True)
class _Body:
    """One machine with a provisioner on it, and the present life of that."""

    name: str
    clock: MachineClock
    spools: dict[str, Spool]
    lines: dict[str, Line]
    life: "_Life | None" = None
    lives: int = 0


@dataclass(slots=True)
class _Life:
    body: _Body
    dead: bool = False
    #: Whether there is demand that it has not heard.
    missed: bool = True
    process: ProvisionerLife | None = None
    threads: dict[str, Thread] = field(default_factory=dict[str, Thread])


class World:
    """Everything."""

    def __init__(
        self,
        seed: int,
        make_life: MakeLife,
        supply_of: SupplyOf,
        only: Collection[str] | None = None,
    ) -> None:
        """Make the site of a seed; ``only``: these faults happen, and no others."""
        self.seed = seed
        self.chance = Chance(seed, only)
        self.scenario: Scenario = scenario(self.chance)
        self.chance.scale = self.scenario.scale
        self.time = Time()
        self.threads = Threads(self.time)
        self.threads.held_up_s = self._held_up_s
        self.network = Network(self.threads, self.chance)
        self.network.kill = self._kill_running
        self.disk = Disk()
        self.clouds = {
            plan.name: Cloud(
                plan.name, plan.kind, plan.means, plan.capacity, self.time, self.chance,
                bound=plan.bound, price=plan.price,
            )
            for plan in self.scenario.providers
        }  # fmt: skip
        self.checks = Checks(self.disk, self.time, self.scenario.budget, self.clouds)
        self.disk.on_saved = self.checks.see
        self.batch = Batch(self.time, tuple(self.clouds.values()))
        self.batch.expected = len(self.scenario.jobs)
        self._make_life = make_life
        self._ids = CountedIds()
        self.controllers = Controllers(
            self.disk, self.threads, self.network, self.chance, self.checks, supply_of
        )
        self._policy = self.scenario.policy()
        self.bodies = [self._body(name) for name in self.scenario.provisioners]
        self._scheduler_line = Line("s1 to the controller")
        self._scheduler_clock = MachineClock(self.time)

    # ----------------------------------------------------------------------- run
    def run(self) -> Outcome:
        """Run to the end, or to the first broken promise."""
        promise: str | None = None
        message = ""
        try:
            self._begin()
            self.time.pass_until(self.scenario.storm_s)
            self._calm()
            end = self.time.now_s + SETTLE_S
            while self.time.now_s < end and not self._is_settled():
                self.time.pass_until(self.time.now_s + _LOOK_S)
            self._end()
        except BrokenPromiseError as error:
            promise, message = error.promise, str(error)
        except NeverRestsError as error:
            promise, message = "settles", f"settles: it never comes to rest: {error}"
        except Exception as error:  # noqa: BLE001 - a defect of whatever runs here is a finding
            promise, message = f"defect {type(error).__name__}", _where(error)
        faults = tuple(self.chance.fired)
        return Outcome(self.seed, promise, message, faults, self.checks.events, self.time.now_s)

    def _begin(self) -> None:
        primary = self.controllers.nodes[0]
        self.chance.active = False
        primary.start()
        lender = self.scenario.shared
        commands: list[Command] = [
            DescribeProvider(cloud.description) for cloud in self.clouds.values()
        ]
        if lender is not None:
            hold = self.clouds[lender.name].description.minimum_hold
            step = hold / 2
            commands.append(
                DeclareShared(RESOURCE, OWNED, lender.name, self.scenario.max_borrow, 1, step, hold)
            )
        primary.order(_ADMIN, tuple(commands))
        self.chance.active = True
        for at, job in self.scenario.jobs:
            self.time.after(at, partial(self.batch.submit, job))
        for body in self.bodies:
            self._live(body)
        self._schedule()
        self.time.after(WEATHER_S, self._weather)
        self.time.after(WEATHER_S, self._tick)

    def _tick(self) -> None:
        self.controllers.tick()
        self.time.after(WEATHER_S, self._tick)

    # ----------------------------------------------------------------- the weather
    def _weather(self) -> None:
        """Break things."""
        if not self.chance.active:
            return
        fires, size = self.chance.fires, self.chance.size
        for body in self.bodies:
            if fires("kill", 60) and body.life is not None:
                self._kill(body.life)
            if fires("stop", 40) and body.life is not None:
                self._leave(body.life)
            for line in body.lines.values():
                if fires("cut", 30):
                    self._cut(line, size("cut", 20, 400))
            if fires("clock", 40):
                body.clock.jump(size("clock", -600, 900))
        for node in self.controllers.nodes:
            if fires("controller killed", 25) and node.up:
                self.controllers.kill(node)
            if fires("controller clock", 25):
                node.clock.jump(size("controller clock", -600, 900))
                self.checks.clocks_jumped = True
        if fires("take over", 15):
            self.controllers.take_over()
        if fires("take over unseen", 25):
            self.controllers.take_over()  # and its scheduler does not tell the new one what is in use
            self._cut(self._scheduler_line, size("take over unseen", 60, 240))
        if fires("scheduler cut", 40):
            self._cut(self._scheduler_line, size("scheduler cut", 20, 300))
        for cloud in self.clouds.values():
            if fires("outage", 25):
                cloud.away = True
                self.time.after(size("outage", 30, 400), partial(setattr, cloud, "away", False))
        if fires("slip in", 1500):
            self._slip_in()
        self.time.after(WEATHER_S, self._weather)

    def _held_up_s(self) -> float:
        """A thread does not get its turn, while the others of its process do."""
        fires = self.chance.fires("thread held up", 100)
        return float(self.chance.size("thread held up", 1, 40)) if fires else 0.0

    def _slip_in(self) -> None:
        """The batch system starts a job by itself on a host that takes work."""
        node = self.controllers.leading
        rows = [] if node is None else list(node.projections.totals.all())
        total = sum(row.total for row in rows)
        for job in self.batch.waiting():
            if job.unit and self.batch.units() >= total:
                continue
            for host, _ in self.batch.hosts():
                takes = host in self.batch.admitted and self.batch.is_open(host)
                if takes and self.batch.job_on(host) is None:
                    self.batch.start(job, host)
                    return

    def _calm(self) -> None:
        """The storm is over: everything works again."""
        self.chance.active = False
        self.time.after(_TIDY_S, self._tidy)
        for body in self.bodies:
            for line in body.lines.values():
                line.cut = False
            body.clock.mend()
            if body.life is None:
                self._live(body)
        self._scheduler_line.cut = False
        for node in self.controllers.nodes:
            node.clock.mend()
        for cloud in self.clouds.values():
            cloud.away = False
        if self.controllers.leading is None:
            self.controllers.take_over()

    def _cut(self, line: Line, seconds: float) -> None:
        line.cut = True
        self.time.after(seconds, partial(setattr, line, "cut", False))

    def _schedule(self) -> None:
        """A life of the scheduler begins."""
        life = SchedulerLife(
            self.batch,
            SchedulerLink(self.controllers, self._scheduler_line, self.published),
            self._scheduler_clock,
            self.checks.needs,
            self.scenario.shared is not None,
        )
        Thread(self.threads, life, "scheduler", life.step).wake(1.0)

    # ---------------------------------------------------------------- provisioners
    def _body(self, name: str) -> _Body:
        return _Body(
            name,
            MachineClock(self.time),
            {provider: {} for provider in self.clouds},
            {to: Line(f"{name} to {to}") for to in ("controller", *self.clouds)},
        )

    def _live(self, body: _Body) -> None:
        if body.life is not None:
            return
        body.lives += 1
        life = body.life = _Life(body)
        equipment = Equipment(
            name=body.name,
            controller=ProvisionerLink(self.controllers, body.lines["controller"]),
            providers={
                name: RemoteProvider(
                    cloud,
                    body.lines[name],
                    self.network,
                    self.checks,
                    body.name,
                    body.spools[name],
                    self._job_on,
                )
                for name, cloud in self.clouds.items()
            },
            clock=body.clock,
            ids=self._ids,
            wait=self.threads.wait,
            wake=lambda name: life.threads[name].wake(),
            policy=self._policy,
            lifecycle=LIFECYCLE,
            rhythm=RHYTHM,
        )
        life.process = self._make_life(equipment)
        for name, step in life.process.threads().items():
            life.threads[name] = Thread(self.threads, life, name, step)
        for number, thread in enumerate(life.threads.values()):
            thread.wake(0.1 * number)
        self.time.after(0.5, partial(self._follow, life))

    def _kill_running(self) -> None:
        thread = self.threads.running
        if thread is None or thread.life.dead:
            return
        if isinstance(thread.life, _Life):
            self._kill(thread.life)
        else:
            thread.life.dead = True
            self.time.after(SESSION_S, self._schedule)

    def _kill(self, life: _Life) -> None:
        if life.dead:
            return
        life.dead = True
        body = life.body
        body.life = None
        self.time.after(self.chance.draw("reborn", body.lives, 5, 240), partial(self._live, body))

    def _leave(self, life: _Life) -> None:
        """Stop a provisioner as an operator does, and start it again."""
        if life.process is None or any(thread.busy for thread in life.threads.values()):
            return
        leaving = Thread(self.threads, life, "leave", partial(self._left, life))
        leaving.wake()

    def _left(self, life: _Life) -> float:
        assert life.process is not None, "what leaves has lived"
        if any(thread.busy for thread in life.threads.values()):
            return 1.0
        for thread in life.threads.values():
            thread.halt()
        quietly(life.process.leave)
        self._kill(life)
        return 0.0

    def _follow(self, life: _Life) -> None:
        """A provisioner that has missed a push connects again, now and then, and gets the newest."""
        if life.dead:
            return
        self.time.after(_FOLLOW_S, partial(self._follow, life))
        if life.missed:
            self._push(life)

    def published(self) -> None:
        """A session was published."""
        for body in self.bodies:
            if body.life is not None:
                self._push(body.life)

    def _push(self, life: _Life) -> None:
        life.missed = True
        if life.body.lines["controller"].cut or self.chance.fires("push lost", 100):
            return
        node = self.controllers.leading
        if node is None or node.session is None:
            return
        life.missed = False
        late = 0
        if self.chance.fires("push late", 100):
            late = self.chance.size("push late", 1, 60)
        self.time.after(late, partial(self._pushed, life, node.session, node.session_s))

    def _pushed(self, life: _Life, result: SessionResult, since_s: float) -> None:
        if not life.dead and life.process is not None:
            life.process.hear(result, self.time.now_s - since_s)
            life.threads["rounds"].wake()

    # ----------------------------------------------------------------------- end
    def _job_on(self, machine: str) -> str | None:
        self.batch.look()
        return self.batch.job_on(host_of(machine))

    def _is_settled(self) -> bool:
        node = self.controllers.leading
        if node is None or not self.batch.finished:
            return False
        view = node.projections.inventory.view()
        return not (view.instances or view.grants or view.requests or self._nobodys(node))

    def _nobodys(self, node: ControllerNode) -> list[str]:
        """Return what exists at providers, and no record owns or has reported."""
        return [
            f"{theirs} of {cloud.name}, made for {tag}"
            for cloud, theirs, tag in self._unowned(node)
            if not {theirs, tag} & self._reported(node)
        ]

    def _unowned(self, node: ControllerNode) -> list[tuple[Cloud, str, str]]:
        view = node.projections.inventory.view()
        owned = {one.machine for one in view.instances} | {
            one.id.partition("/")[2] for one in view.grants
        }
        return [
            (cloud, theirs, tag)
            for cloud in self.clouds.values()
            for theirs, tag in cloud.there()
            if theirs not in owned
        ]

    @staticmethod
    def _reported(node: ControllerNode) -> set[str | None]:
        orphans = node.projections.reasons.orphans()
        return {name for one in orphans for name in (one.theirs, one.tag)}

    def _tidy(self) -> None:
        """A person looks at what was reported, ends at the provider what is there of it, and dismisses the asks of which nothing is."""
        self.time.after(_TIDY_S, self._tidy)
        node = self.controllers.leading
        if node is None:
            return
        reported = self._reported(node)
        left: set[str] = set()
        for cloud, theirs, tag in self._unowned(node):
            if {theirs, tag} & reported:
                cloud.end(theirs)
                left.add(tag)
        for one in node.projections.reasons.orphans():
            if one.theirs == one.tag and one.tag not in left:
                nothing = DismissOrphan(
                    one.provider, one.theirs, "it has made nothing that is left"
                )
                quietly(partial(node.order, _ADMIN, (nothing,)))

    def _end(self) -> None:
        self.checks.end()
        node = self.controllers.leading
        assert node is not None, "after the storm somebody is the primary"
        self.controllers.compare(node)
        nobodys = self._nobodys(node)
        if nobodys:
            raise BrokenPromiseError("invariant-1", f"nobody's: {', '.join(nobodys)}")
        view = node.projections.inventory.view()
        left = [
            *(one.id for one in view.requests),
            *(one.id for one in view.instances),
            *(one.id for one in view.grants),
        ]
        left += [job.job for job in self.batch.alive]
        if left:
            raise BrokenPromiseError("settles", f"still there long after the storm: {left}")


def _where(error: Exception) -> str:
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    place = "" if last is None else f" at {last.tb_frame.f_code.co_qualname}:{last.tb_lineno}"
    return f"{error!r}{place}"
