"""A site in small: jobs, a meter, the aggregates of one elastic resource, a pool that lends, and a server that sees the truth.

It drives the real rules cycle by cycle, as sessions and a provisioner do together, and can die between any two steps.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from xce.adapters.providers.pool.book import PoolBook
from xce.adapters.providers.pool.provider import PoolProvider
from xce.domain.errors import RejectedError
from xce.domain.formats.config import SharedPool
from xce.domain.formats.licence_pool import LicencePool, PooledResource
from xce.domain.formats.observation import Observation, Quality
from xce.domain.formats.provider import Kind
from xce.domain.ports import Accepted, Ask, GrantBack, Refused
from xce.domain.provisioning.grant import LIVE, Grant
from xce.domain.sharing.elastic_resource import ElasticResource
from xce.domain.sharing.lending import Lent, amount_to_ask, choose, unused
from xce.domain.sharing.meter import Meter, Reading, Totals

START = datetime(2026, 3, 1, 10, tzinfo=UTC)


def at(minute: float) -> datetime:
    return START + timedelta(minutes=minute)


def settings(**values: Any) -> SharedPool:
    """Return the settings of a resource ``lic`` with 10 owned and 10 more to borrow."""
    return SharedPool.model_validate(
        {
            "name": "lic", "owned": 10, "provider": "pool", "max_borrow": 10,
            "idle_return_after": timedelta(minutes=30), **values,
        }
    )  # fmt: skip


def lender(size: int = 100, **values: Any) -> PoolBook:
    """Return a pool that lends ``lic`` to the sites a and b."""
    book = PoolBook(":memory:")
    terms = {"name": "lic", "size": size, "sites": ({"name": "a"}, {"name": "b"}), **values}
    book.apply(LicencePool(resources=(PooledResource.model_validate(terms),)))
    return book


@dataclass
class Job:
    """A job that takes licences; its tool checks them out late, and may linger."""

    name: str
    amount: int
    run: float = 60
    late: float = 0
    linger: float = 0
    startable: bool = True
    out_at: datetime = field(default=START)
    ends: datetime = field(default=START)


class KilledError(BaseException):
    """The process died here."""


class Site:
    """One cluster."""

    def __init__(self, pool: SharedPool, book: PoolBook, name: str = "a") -> None:
        self.pool, self.name, self.now = pool, name, START
        self.provider = PoolProvider(book, name)
        self.resource = ElasticResource.declare(
            resource="lic", owned=pool.owned, provider="pool", max_borrow=pool.max_borrow,
            step=pool.step, at=START, by="test",
        )  # fmt: skip
        self.grants: dict[str, Grant] = {}
        self.granted_at: dict[str, datetime] = {}
        self.meter = Meter(pool)
        self.waiting: list[Job] = []
        self.running: dict[str, Job] = {}
        self.lingering: list[tuple[int, datetime]] = []
        self.outside = 0
        self.asks: dict[str, int] = {}
        self.backs: dict[str, tuple[str, int]] = {}
        self.denied_until = START
        self.recall = 0
        self.numbers = 0
        self.impossible: set[str] = set()
        self.asked: list[tuple[float, int]] = []
        self.gave: list[tuple[float, int]] = []
        self.why_not: str | None = None
        self.effects: Callable[[str], None] = lambda where: None

    # ------------------------------------------------------------------ numbers
    @property
    def totals(self) -> Totals:
        returning = sum(grant.returning for grant in self.grants.values())
        newest = max(self.granted_at.values(), default=None)
        return Totals(self.resource.owned, self.resource.borrowed, returning, newest)

    @property
    def reading(self) -> Reading:
        return self.meter.read(self.totals, self.now)

    def truly_used(self) -> int:
        """Return what the server sees."""
        ours = sum(job.amount for job in self.running.values() if job.out_at <= self.now)
        return ours + sum(amount for amount, _ in self.lingering) + self.outside

    @property
    def owed(self) -> int:
        return sum(g.amount - g.returned for g in self.grants.values() if g.state in LIVE)

    # ------------------------------------------------------------------- events
    def submit(self, *jobs: Job) -> None:
        self.waiting += jobs

    def observe(self, quality: Quality = Quality.OK, **values: Any) -> bool:
        seen = None if quality is Quality.UNREACHABLE else self.truly_used()
        self.numbers += 1
        return self.meter.observe(
            Observation.model_validate(
                {
                    "resource": "lic", "source": "server", "quality": quality, "in_use": seen,
                    "observed_at": self.now, "received_at": self.now, **values,
                }
            )
        )  # fmt: skip

    def wait(self, minutes: float, *, each: float = 1, look: Quality | None = None) -> None:
        """Let time pass, a cycle a step; ``look``: an observation before each."""
        end = self.now + timedelta(minutes=minutes)
        while self.now < end:
            self.now = min(end, self.now + timedelta(minutes=each))
            self._end_jobs()
            if look is not None:
                self.observe(look)
            self.cycle()

    def _end_jobs(self) -> None:
        self.lingering = [(a, until) for a, until in self.lingering if until > self.now]
        for job in [job for job in self.running.values() if job.ends <= self.now]:
            self.end(job.name)

    def end(self, name: str) -> None:
        job = self.running.pop(name)
        self.meter.release(name, self.now)
        if job.linger:
            self.lingering.append((job.amount, self.now + timedelta(minutes=job.linger)))

    def crash(self) -> None:
        """Begin again from what is durable: aggregates, running jobs, open asks and returns."""
        self.meter = Meter(self.pool)
        self.meter.sync(
            {
                name: (job.amount, job.ends - timedelta(minutes=job.run))
                for name, job in self.running.items()
            },
            self.now,
        )
        self.effects = lambda where: None

    # -------------------------------------------------------------------- cycle
    def cycle(self) -> None:
        """One session and one round."""
        self._start_jobs()
        self._settle()
        wanted = sum(
            job.amount for job in self.waiting if job.startable and job.name not in self.impossible
        )
        self.meter.note(wanted, self.totals, self.now)
        self.borrow(wanted)
        self._give_back(wanted)
        self.check()

    def _start_jobs(self) -> None:
        most = self.resource.owned + self.pool.max_borrow
        self.impossible = {job.name for job in self.waiting if job.amount > most}
        for job in list(self.waiting):
            if not job.startable or job.name in self.impossible:
                continue
            if not self.meter.fits(job.amount, self.totals, self.now):
                break  # what arrives is for the first one
            self.waiting.remove(job)
            self.meter.book(job.name, job.amount, self.now)
            job.out_at = self.now + timedelta(minutes=job.late)
            job.ends = self.now + timedelta(minutes=job.run)
            self.running[job.name] = job

    def borrow(self, wanted: int) -> None:
        since = self.meter.wanted_since
        if since is None or self.now - since < self.pool.borrow_after:
            return
        if self.now < self.denied_until or self.recall:
            return
        amount = amount_to_ask(
            occupied=self.reading.occupied,
            wanted=wanted,
            headroom=self.pool.headroom,
            total=self.totals.total,
            open_asks=sum(self.asks.values()),
            owed=self.owed,
            max_borrow=self.pool.max_borrow,
            step=self.pool.step,
        )
        if not amount:
            return
        self.numbers += 1
        tag = f"R{self.numbers}"
        self.asks[tag] = amount
        self.asked.append(((self.now - START) / timedelta(minutes=1), amount))
        self.effects("before ask")
        self._ask(tag)

    def _ask(self, tag: str) -> None:
        answer = self.provider.ask(Ask(tag, Kind.COUNTABLE, "lic", self.asks[tag]), self.now)
        self.effects("after ask")
        match answer:
            case Refused():
                del self.asks[tag]
                self.denied_until = self.now + timedelta(seconds=answer.retry_after_s or 600)
            case Accepted(provider_request_id=theirs):
                del self.asks[tag]
                for grant in self.provider.status(theirs, self.now).grants:
                    self.take(grant.grant, grant.amount, grant.hold_until)

    def take(self, name: str, amount: int, hold_until: datetime | None = None) -> None:
        """A grant comes, asked or not; twice is once."""
        self.resource.borrow(grant_id=name, amount=amount, at=self.now, by="test")
        if name not in self.grants:
            self.granted_at[name] = self.now
            self.grants[name] = Grant.grant(
                grant=name, request_id="R", provider="pool", resource="lic", amount=amount,
                hold_until=hold_until, expires_at=None, price_per_hour=None, at=self.now,
                by="test", epoch=1,
            )  # fmt: skip

    def granted(self, tag: str, amount: int) -> str:
        """Take a grant that nothing here asked for; return its name."""
        answer = self.provider.ask(Ask(tag, Kind.COUNTABLE, "lic", amount), self.now)
        assert isinstance(answer, Accepted)
        self.take(answer.provider_request_id, amount)
        return answer.provider_request_id

    def blocked(self, wanted: int) -> str | None:
        if self.reading.sight.blind and not self.pool.return_when_blind:
            return "blind"
        if self.asks:
            return "an ask is open"
        if self.reading.over:
            return "over"
        return "wanted" if wanted and not self.recall else None

    def _give_back(self, wanted: int) -> None:
        self.why_not = self.blocked(wanted)
        if self.why_not is not None:
            return
        peak = self.meter.peak(self.now)
        amount = 0
        if self.recall:
            amount = min(self.recall, max(0, self.totals.total - self.reading.occupied))
        elif peak is not None:
            amount = unused(owned=self.resource.owned, borrowed=self.resource.borrowed, peak=peak)
        if not amount:
            return
        chosen, _ = choose(
            [self.lent(grant) for grant in self.grants.values() if grant.active],
            amount,
            now=self.now,
            idle_return_after=self.pool.idle_return_after,
            recalled=bool(self.recall),
        )
        for lent, part in chosen:
            self.numbers += 1
            self.start_return(f"B{self.numbers}", lent.grant, part)

    def lent(self, grant: Grant) -> Lent:
        since = self.granted_at[grant.name]
        hold = since + self.pool.min_hold
        held = hold if grant.hold_until is None else max(hold, grant.hold_until)
        parts = self.provider.describe(self.now)
        assert parts is not None
        return Lent(
            grant.name, "pool", grant.active, since, held, grant.price_per_hour,
            self.pool.step, parts.capabilities.partial_returns,
        )  # fmt: skip

    def start_return(self, return_id: str, name: str, amount: int) -> bool:
        """Both sides in one save, then the call; False: it is void by now."""
        grant = self.grants[name]
        occupied = self.reading.occupied
        if self.totals.total - amount < occupied:
            return False
        try:
            grant.start_return(return_id=return_id, amount=amount, at=self.now, by="t", epoch=1)
        except RejectedError:
            return False
        self.resource.give_back(
            return_id=return_id, grant_id=name, amount=amount, occupied=occupied,
            at=self.now, by="t",
        )  # fmt: skip
        assert self.totals.total >= max(occupied, self.reading.booked)
        self.backs[return_id] = (name, amount)
        self.gave.append(((self.now - START) / timedelta(minutes=1), amount))
        self.recall = max(0, self.recall - amount)
        self.meter.recall(self.recall)
        self.effects("before return")
        self._tell(return_id)
        return True

    def _tell(self, return_id: str) -> None:
        name, amount = self.backs[return_id]
        self.provider.give_back(return_id, (), (GrantBack(name, amount),), self.now)
        self.effects("after return")
        answer = self.provider.return_status(return_id, self.now)
        refused = dict(answer.refused)
        if name in refused:
            self.refuse(return_id, refused[name])
        elif name in answer.gone:
            self.confirm(return_id)

    def refuse(self, return_id: str, why: str) -> None:
        name, _ = self.backs.pop(return_id)
        self.grants[name].refuse_return(return_id=return_id, why=why, at=self.now, by="t", epoch=1)
        self.resource.put_back(return_id=return_id, why=why, at=self.now, by="t")

    def confirm(self, return_id: str) -> None:
        name, _ = self.backs.pop(return_id)
        self.grants[name].confirm_return(return_id=return_id, at=self.now, by="t", epoch=1)

    def _settle(self) -> None:
        """Go on with what has no answer yet, under the same ids."""
        for tag in list(self.asks):
            self._ask(tag)
        for return_id in list(self.backs):
            self._tell(return_id)

    # --------------------------------------------------------------- invariants
    def check(self) -> None:
        """Invariants 1, 3 and 4 of the rules, at every moment."""
        assert self.resource.borrowed == sum(grant.active for grant in self.grants.values()) >= 0
        for grant in self.grants.values():
            assert 0 <= grant.returned + grant.returning <= grant.amount
        reading = self.reading
        assert min(reading.free, reading.over, reading.occupied, reading.booked) >= 0
        assert self.owed + sum(self.asks.values()) <= max(self.pool.max_borrow, self.most_owed)
        self.most_owed = self.owed

    #: What was owed before the settings or a late grant changed what is allowed.
    most_owed = 0
