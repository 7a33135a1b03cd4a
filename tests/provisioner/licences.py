"""A cluster with licences in virtual time: the real controller, scheduler and provisioner over a real pool, and a server that sees the truth.

One tick is what the daemons do in one period, in the order: jobs end, the server is looked at, a session, the provisioner.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from tests.provisioner.rig import START, Process, Site
from tests.provisioner.truth import MINUTE, Fate, Killed
from xce.adapters.controller.questions import supply_of
from xce.adapters.providers.pool.book import PoolBook
from xce.adapters.providers.pool.provider import PoolProvider
from xce.adapters.provisioner.newest import Published
from xce.domain.engine.commands import DeclareShared, ReportBookings
from xce.domain.engine.messages import Role
from xce.domain.engine.scheduler import SchedulerMemory, merged
from xce.domain.errors import AdapterError, TransientError
from xce.domain.formats.config import PolicyConfig, SharedPool
from xce.domain.formats.licence_pool import LicencePool, PooledResource
from xce.domain.formats.lifecycle import LifecycleSettings
from xce.domain.formats.observation import Observation, Quality
from xce.domain.formats.provider import ProviderDescription
from xce.domain.formats.rest import Observations, SharedEntry, Supply
from xce.domain.formats.snapshot import Snapshot
from xce.domain.ports import (
    Accepted,
    Ask,
    Holding,
    Refused,
    Renewed,
    ReturnStatus,
    StatusAnswer,
)
from xce.domain.scheduling.session import run_session

T = TypeVar("T")
#: The lender's name; that of the provider in the rig.
LENDER = "cloud"


def pool_of(**values: Any) -> SharedPool:
    """Return a resource ``lic`` with 2 owned and 8 more to borrow, idle after 10 minutes."""
    return SharedPool.model_validate(
        {"name": "lic", "owned": 2, "provider": LENDER, "max_borrow": 8, "idle_return_after": "10min", **values}
    )  # fmt: skip


def pool_settings(size: int = 20, **values: Any) -> LicencePool:
    """Return the settings of a pool that lends ``lic`` to the sites a and b."""
    terms = {"name": "lic", "size": size, "sites": ({"name": "a"}, {"name": "b"}), **values}
    return LicencePool(resources=(PooledResource.model_validate(terms),))


def book_of(size: int = 20, **values: Any) -> PoolBook:
    """Return a pool that lends ``lic`` to the sites a and b."""
    book = PoolBook(":memory:")
    book.apply(pool_settings(size, **values))
    return book


class Lender(PoolProvider):
    """A site's face of a pool, as the provisioner drives it; with switches for what goes wrong.

    ``loses`` names calls whose next answer is lost after they were carried out, ``fails`` those that come to nothing.
    """

    deaf = False
    renews = True
    #: Added to each amount of a list, and to those of the next one.
    miscounts = 0
    miscounts_once = 0
    can_list = True

    def __init__(self, book: PoolBook, site: str, name: str = LENDER) -> None:
        super().__init__(book, site, name)
        self.loses: set[str] = set()
        self.fails: set[str] = set()
        self.passes: Callable[[str], None] = lambda where: None

    def _trouble(self, call: str, make: Callable[[], T]) -> T:
        self.passes(f"before {call}")
        if call in self.fails:
            self.fails.discard(call)
            raise TransientError(f"{call} came to nothing")
        made = make()
        self.passes(f"after {call}")
        if call in self.loses:
            self.loses.discard(call)
            raise TransientError(f"the answer to {call} was lost")
        return made

    def ask(self, ask: Ask, now: datetime) -> Accepted | Refused:
        return self._trouble("ask", lambda: PoolProvider.ask(self, ask, now))

    def status(self, provider_request_id: str, now: datetime) -> StatusAnswer:
        return self._trouble("status", lambda: PoolProvider.status(self, provider_request_id, now))

    def give_back(self, *given: Any, **more: Any) -> Accepted | Refused:
        return self._trouble("return", lambda: PoolProvider.give_back(self, *given, **more))

    def return_status(self, *given: Any, **more: Any) -> ReturnStatus:
        return self._trouble(
            "return status", lambda: PoolProvider.return_status(self, *given, **more)
        )

    def renew(self, grants: tuple[str, ...], now: datetime) -> Renewed:
        if not self.renews:
            return Renewed()
        if self.deaf:
            self.loses.add("renew")
        return self._trouble("renew", lambda: PoolProvider.renew(self, grants, now))

    def holdings(self, now: datetime) -> tuple[Holding, ...] | None:
        if not self.can_list:
            return None
        found = self._trouble("list", lambda: PoolProvider.holdings(self, now)) or ()
        wrong, self.miscounts_once = self.miscounts + self.miscounts_once, 0
        return tuple(
            replace(one, amount=one.amount + wrong) for one in found if one.amount + wrong > 0
        )

    def describe(self, now: datetime) -> ProviderDescription | None:
        made = super().describe(now)
        assert made is not None
        able = made.capabilities.model_copy(update={"listing": self.can_list})
        return made.model_copy(update={"capabilities": able})

    def recall(self, tag: str, kind: Any) -> None:
        """Nothing is remembered on this machine."""

    def statuses(self, ids: Any, now: datetime) -> dict[str, Any]:
        return {one: self._status_or_error(one, now) for one in ids}

    def _status_or_error(self, one: str, now: datetime) -> StatusAnswer | AdapterError:
        try:
            return self.status(one, now)
        except AdapterError as error:
            return error


@dataclass
class Job:
    """A job that runs for some minutes, and whose tool takes its licences late and gives them back late."""

    name: str
    amount: int
    run: float
    late: float = 0
    linger: float = 0
    started: datetime = START


@dataclass
class Batch:
    """The cluster, and what the licence server sees of it."""

    waiting: list[Job] = field(default_factory=list[Job])
    running: dict[str, Job] = field(default_factory=dict[str, Job])
    lingering: list[tuple[int, datetime]] = field(default_factory=list[tuple[int, datetime]])
    outside: int = 0

    def pass_time(self, now: datetime) -> None:
        for job in list(self.running.values()):
            ends = job.started + job.run * MINUTE
            if ends <= now:
                del self.running[job.name]
                if job.linger:
                    self.lingering.append((job.amount, ends + job.linger * MINUTE))
        self.lingering = [one for one in self.lingering if one[1] > now]

    def in_use(self, now: datetime) -> int:
        out = sum(j.amount for j in self.running.values() if j.started + j.late * MINUTE <= now)
        return out + sum(amount for amount, _ in self.lingering) + self.outside

    def view(self, now: datetime) -> Snapshot:
        return Snapshot.model_validate(
            {
                "format": "xce.snapshot/1",
                "now": now,
                "hosts": [{"name": "h", "total": {"slots": 1000}}],
                "running": [
                    {"id": job.name, "started": job.started, "shared": {"lic": job.amount},
                     "hosts": [{"name": "h", "uses": {"slots": 1}}]}
                    for job in self.running.values()
                ],
                "pending": [
                    {"id": job.name, "resreq": f"rusage[lic={job.amount}/job]", "submitted": now}
                    for job in self.waiting
                ],
            }
        )  # fmt: skip

    def start(self, names: set[str], now: datetime) -> None:
        for job in [job for job in self.waiting if job.name in names]:
            self.waiting.remove(job)
            job.started = now
            self.running[job.name] = job


class LicenceSite(Site):
    """One cluster and its daemons."""

    def __init__(
        self,
        pool: SharedPool,
        lender: Lender,
        policy: PolicyConfig | None = None,
        lifecycle: LifecycleSettings | None = None,
    ) -> None:
        super().__init__()
        self.pool = pool
        self.over_is_right = False
        self.die_at = 0
        self.batch = Batch()
        self.memory = SchedulerMemory()
        self.look: Quality | None = Quality.OK if pool.observer else None
        self.seen: tuple[Observation, ...] = ()
        self.do(
            Role.ADMIN,
            DeclareShared(
                "lic", pool.owned, pool.provider, pool.max_borrow, pool.step,
                pool.idle_return_after, pool.min_hold,
            ),
        )  # fmt: skip
        self.lender = lender
        self.policy, self.lifecycle = policy, lifecycle
        self.process = self.provisioner()

    def supply(self) -> Supply:
        return self.live.read(lambda views: supply_of(views, (self.pool,)))

    @property
    def entry(self) -> SharedEntry:
        (entry,) = self.supply().shared
        return entry

    def submit(self, *jobs: Job) -> None:
        self.batch.waiting += jobs

    def session(self) -> None:
        """Look, decide, report, start what may start, and publish."""
        now = self.clock.now()
        if self.look is not None:
            used = None if self.look is Quality.UNREACHABLE else self.batch.in_use(now)
            self.seen = (
                Observation(
                    resource="lic", source=self.pool.observer or "", quality=self.look, in_use=used,
                    observed_at=now, received_at=now,
                ),
            )  # fmt: skip
        view, supply = self.batch.view(now), self.supply()
        seen = Observations(observations=self.seen, pools=(self.pool,))
        self.memory.see(view, supply, now, seen)
        snapshot = merged(view, supply, self.memory)
        result = run_session(snapshot)
        self.memory.note_needs(snapshot, result)
        occupied = self.memory.occupied(snapshot, result)
        self.do(Role.SCHEDULER, ReportBookings(occupied, self.memory.shared_reports(now)))
        self.batch.start({one.job for one in result.allocations}, now)
        self.newest.put(Published(result, self.clock.elapsed_s(), "0" * 64))

    def tick(self, minutes: float = 1) -> None:
        """Let a period pass, then do what the daemons do in it."""
        self.clock.at += timedelta(minutes=minutes)
        self.batch.pass_time(self.clock.at)
        self.session()
        try:
            self.process.tick()
        except Killed:
            self.process = self.provisioner()
        self.check()

    def run(self, minutes: int) -> None:
        for _ in range(minutes):
            self.tick()

    def restart(self) -> None:
        """Both daemons die and come again."""
        self.memory = SchedulerMemory()
        self.process = self.provisioner()

    def provisioner(self) -> Process:
        """Return a new life of the provisioner that has found what the one before has left."""
        while True:
            fate = Fate(self.die_at)
            self.die_at, self.lender.passes = 0, fate.pass_by
            made = Process(self, self.lender, fate, policy=self.policy, lifecycle=self.lifecycle)
            try:
                made.begin()
            except Killed:
                continue
            return made

    def die(self, boundary: int) -> None:
        """Let the provisioner die at so manieth boundary from now on."""
        fate = self.process.books.fate
        fate.die_at = fate.passed + boundary

    def check(self) -> None:
        """Never more than there is, and never less than is in use of what is borrowed."""
        entry = self.entry
        booked = sum(job.amount for job in self.batch.running.values())
        assert entry.total == entry.owned + entry.borrowed
        assert entry.borrowed + entry.returning + entry.in_flight <= self.pool.max_borrow
        assert booked <= entry.total or self.over_is_right
