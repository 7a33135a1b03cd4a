"""A provisioner without threads, in virtual time: the real rounds, driver and leases over the real controller and a cloud that knows the truth."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from tests.provisioner.truth import MINUTE, Cloud, Fate
from xce.adapters.clock import SystemClock
from xce.adapters.controller.live import LiveController, LiveSettings
from xce.adapters.controller.questions import supply_of
from xce.adapters.controller.views import Views
from xce.adapters.provisioner.driver import Driver
from xce.adapters.provisioner.leases import LeaseKeeper, Leases
from xce.adapters.provisioner.newest import Newest, Published
from xce.adapters.provisioner.rounds import Rounds
from xce.adapters.provisioner.surroundings import Surroundings
from xce.adapters.store.open import MEMORY, open_log
from xce.domain.engine.commands import (
    Command,
    RecordJoin,
    ReleaseLease,
    RenewLease,
    TakeLease,
)
from xce.domain.engine.messages import Answer, Caller, Role
from xce.domain.engine.provisioner import Provisioner
from xce.domain.engine.site_commands import ReportDrain
from xce.domain.errors import TransientError
from xce.domain.events.base import DomainEvent
from xce.domain.formats.config import PolicyConfig
from xce.domain.formats.inventory import Inventory
from xce.domain.formats.lifecycle import LifecycleSettings
from xce.domain.formats.provisioner_config import Rhythm
from xce.domain.formats.rest import LeaseEntry, Supply
from xce.domain.formats.session_result import (
    Demand,
    HostDemand,
    Idle,
    IdleHost,
    JobHosts,
    SessionResult,
)
from xce.domain.formats.standing import StandingReport
from xce.domain.ports import FullProvider
from xce.domain.provisioning.instance import InstanceState
from xce.replay.agenda import CountedIds

E = TypeVar("E", bound=DomainEvent)

START = datetime(2026, 3, 2, 8, tzinfo=UTC)
TERM = timedelta(minutes=5)


class VirtualClock(SystemClock):
    """Time passes only when it is told to; the wall clock can be set back."""

    def __init__(self) -> None:
        #: Real time: what a clock would show that nobody sets.
        self.at = START
        self.set_back = timedelta(0)
        super().__init__(
            wall=lambda: self.at - self.set_back,
            monotonic_s=lambda: (self.at - START).total_seconds(),
        )


class Site:
    """What outlives a provisioner: the controller, its log, and the clock."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.log = open_log(MEMORY)
        self.live = LiveController(
            self.log,
            clock=self.clock,
            settings=LiveSettings(demand_time_to_live=timedelta(days=1)),
        )
        self.live.start()
        self.ids = CountedIds()
        self.newest = Newest()
        self.away = False

    def close(self) -> None:
        self.live.close()
        self.log.close()

    def do(self, role: Role, *commands: Command, name: str = "x", **more: Any) -> Answer:
        future: Future[Answer] = self.live.submit(Caller(role, name), *commands, **more)
        return future.result(60)

    def supply(self) -> Supply:
        return self.live.read(supply_of)

    @property
    def inventory(self) -> Inventory:
        return self.supply().inventory

    def orphans(self) -> list[tuple[str, str | None, str]]:
        """Return the open orphans: id at the provider, tag, reason."""
        return self.live.read(
            lambda views: [
                (one.theirs, one.tag, one.why) for one in views.projections.reasons.orphans()
            ]
        )

    def events(self) -> list[DomainEvent]:
        return [entry.event for entry in self.log.read()]

    def say(self, hosts: int = 0, idle: Idle | None = None, jobs: int = 1) -> None:
        """Publish a session that wants so many hosts, for so many jobs alike."""
        demand = Demand()
        if hosts:
            each = tuple(
                JobHosts(job=str(number), order=number, hosts=hosts // jobs)
                for number in range(1, jobs + 1)
            )
            demand = Demand(
                hosts=(HostDemand(template="c4", count=hosts, jobs=each),), order=(("c4", hosts),)
            )
        position = self.live.feed.position
        result = SessionResult(position=position, demand=demand, idle=idle or Idle())
        self.newest.put(Published(result, self.clock.elapsed_s(), "0" * 64))

    def join(self, machine: str) -> None:
        """Let a machine report to the cluster."""
        instance = next(
            entry.id
            for entry in reversed(self.inventory.instances)
            if entry.machine == machine and entry.state is InstanceState.STARTING
        )
        self.do(
            Role.SCHEDULER,
            RecordJoin(instance, f"host-{machine}", self.clock.now(), {}, {}),
        )

    def idle(self) -> Idle:
        """Return all joined hosts as idle since long ago."""
        return Idle(
            hosts=tuple(
                IdleHost(instance=e.id, host=e.host or "", idle_since=START)
                for e in self.inventory.instances
                if e.state is InstanceState.JOINED
            )
        )

    def look_at_drains(self, jobs: Mapping[str, tuple[str, ...]] | None = None) -> None:
        """The scheduler closes what drains, and looks again."""
        for entry in self.inventory.instances:
            if entry.state is InstanceState.DRAINING and entry.host is not None:
                found = (jobs or {}).get(entry.host, ())
                self.do(Role.SCHEDULER, ReportDrain(entry.host, entry.id, found))


def nothing() -> None:
    """Nothing happens."""


class Books:
    """Fulfils ``Books`` and ``LeaseDesk`` on a site, with a death before and after each append."""

    def __init__(self, site: Site, fate: Fate, name: str) -> None:
        self.site = site
        self.fate = fate
        self.name = name
        #: Orders are lost on their way, and may arrive later.
        self.loses = False
        self.on_their_way: list[Callable[[], Answer]] = []
        #: Happens while the answer to the next question is on its way.
        self.meanwhile: Callable[[], None] = nothing

    def supply(self, not_before_s: float) -> Supply:
        self._reach()
        supply = self.site.supply()
        meanwhile, self.meanwhile = self.meanwhile, nothing
        meanwhile()
        return supply

    def orphans(self, provider: str) -> Mapping[str, str | None]:
        self._reach()

        def asked(views: Views) -> Mapping[str, str | None]:
            return {
                one.theirs: one.return_id
                for one in views.projections.reasons.orphans()
                if one.provider == provider
            }

        return self.site.live.read(asked)

    def record(self, commands: tuple[Command, ...], epochs: Mapping[str, int]) -> None:
        self._reach()
        self.fate.pass_by(f"before {type(commands[0]).__name__}")
        if self.loses:
            arrive = partial(
                self.site.do, Role.PROVISIONER, *commands, name=self.name, epochs=epochs
            )
            self.on_their_way.append(arrive)
            raise TransientError("no answer")
        self.site.do(Role.PROVISIONER, *commands, name=self.name, epochs=epochs)
        self.fate.pass_by(f"after {type(commands[0]).__name__}")

    def leases(self) -> Mapping[str, LeaseEntry]:
        return {one.provider: one for one in self.site.supply().leases}

    def take(self, provider: str, holder: str, term: timedelta) -> int:
        self._reach()
        answer = self.site.do(Role.PROVISIONER, TakeLease(provider, holder, term), name=holder)
        return answer.epochs[provider]

    def renew(self, epochs: Mapping[str, int], holder: str) -> None:
        self._reach()
        commands = [RenewLease(provider, holder, epoch) for provider, epoch in epochs.items()]
        self.site.do(Role.PROVISIONER, *commands, name=holder)

    def release(self, provider: str, holder: str) -> None:
        self.site.do(Role.PROVISIONER, ReleaseLease(provider, holder), name=holder)

    def _reach(self) -> None:
        if self.site.away:
            raise TransientError("the controller is away")


class Process:
    """One life of a provisioner."""

    def __init__(
        self,
        site: Site,
        provider: FullProvider,
        fate: Fate | None = None,
        *,
        name: str = "p1",
        lifecycle: LifecycleSettings | None = None,
        policy: PolicyConfig | None = None,
        pause: Callable[[float], bool] = lambda seconds: False,
        clock: SystemClock | None = None,
    ) -> None:
        self.site = site
        self.books = Books(site, fate or Fate(), name)
        settings = policy or PolicyConfig()
        self.leases = Leases(site.clock.elapsed_s)
        engine = Provisioner(site.ids)
        around = Surroundings(
            books=self.books,
            leases=self.leases,
            engine=engine,
            ids=site.ids,
            clock=clock or site.clock,
            elapsed_s=site.clock.elapsed_s,
            pause=pause,
            newest=site.newest,
            policy=settings.settings(),
            lifecycle=lifecycle or LifecycleSettings(),
        )
        self.driver = Driver("cloud", provider, around)
        self.keeper = LeaseKeeper(
            self.books,
            self.leases,
            ["cloud"],
            holder=name,
            term=TERM,
            elapsed_s=site.clock.elapsed_s,
        )
        #: What the controller was told of how this one stands.
        self.told: list[StandingReport] = []
        self.rounds = Rounds(
            self.books,
            engine,
            {"cloud": self.driver},
            site.newest,
            settings,
            Rhythm(),
            elapsed_s=site.clock.elapsed_s,
            wake=lambda name: None,
            tell=self.told.append,
        )

    def begin(self) -> None:
        """Take the lease and find what a predecessor has left, before anything is asked."""
        self.keeper.step()
        self.driver.describe()
        self.driver.reconcile()
        self.driver.poll()
        self.work()

    def work(self) -> None:
        while self.driver.work() or self.driver.check_some():
            pass

    def tick(self) -> None:
        """Do what is done in one period."""
        self.keeper.step()
        self.rounds.once()
        self.work()
        if self.site.clock.at.minute % 3 == 0:
            self.driver.reconcile()
        self.driver.poll()
        self.work()


def pass_time(site: Site, minutes: int = 1) -> None:
    site.clock.at += minutes * MINUTE


def all_of(site: Site, kind: type[E]) -> list[E]:
    return [event for event in site.events() if isinstance(event, kind)]


def filled(site: Site, cloud: Cloud, hosts: int, process: Process | None = None) -> Process:
    """Return a provisioner whose hosts have all joined."""
    process = process or Process(site, cloud)
    process.begin()
    site.say(hosts)
    process.tick()
    process.tick()
    for machine in cloud.present():
        site.join(machine.machine)
    site.say()
    return process


__all__ = ["START", "Books", "Cloud", "Process", "Site", "all_of", "filled", "pass_time"]
