"""What the cluster knows of shared resources: totals by the log, bookings by its jobs, use by what licence servers show."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from xce.domain.formats.config import SharedPool
from xce.domain.formats.policy import SharedTerms
from xce.domain.formats.session_result import SharedAmount
from xce.domain.formats.snapshot import RunningJob, Shared
from xce.domain.sharing.meter import Meter, Totals
from xce.domain.sharing.recall import recalled_by, recalled_of
from xce.domain.sharing.wants import report_of, terms_of
from xce.projections.all import Projections
from xce.replay.happenings import CheckOut
from xce.replay.licence_servers import LicenceServer


class SharedUse:
    """The meters of all shared resources, and the servers behind them."""

    def __init__(
        self,
        pools: Iterable[SharedPool],
        servers: Iterable[LicenceServer],
        projections: Callable[[], Projections],
    ) -> None:
        self._meters = {pool.name: Meter(pool) for pool in pools}
        self._servers = {server.name: server for server in servers}
        self._projections = projections
        #: What the last session saw occupied, and the limit, of each resource, where there are servers.
        self._seen: dict[str, tuple[int, int]] = {}

    def totals(self, name: str) -> Totals:
        """Return what there is of a resource, by the log."""
        known = self._projections().totals.of(name)
        return Totals(known.owned, known.borrowed, known.returning)

    def meter(self, name: str) -> Meter:
        """Return what is known of the use of a resource."""
        return self._meters[name]

    def next_changes(self, now: datetime) -> Iterable[datetime]:
        """Yield when what is known of a resource changes by time alone."""
        for meter in self._meters.values():
            if (change := meter.next_change(now)) is not None:
                yield change

    # ---------------------------------------------------------------- sessions
    def shown(self, now: datetime) -> tuple[Shared, ...]:
        """Return all resources as a session is shown them now."""
        # In a new log nothing is declared yet.
        declared = self._projections().position > 0
        self._follow_recalls()
        return tuple(
            self._shown(name, meter, now) if declared else _owned(meter.pool)
            for name, meter in self._meters.items()
        )

    def _follow_recalls(self) -> None:
        known = self._projections()
        recalls = recalled_by(known.catalog.descriptions(), known.inventory.view().grants)
        for name, meter in self._meters.items():
            meter.recall(recalled_of(recalls, name))

    def _shown(self, name: str, meter: Meter, now: datetime) -> Shared:
        totals = self.totals(name)
        reading = meter.read(totals, now)
        if self._servers:
            self._seen[name] = reading.occupied, reading.limit
        return Shared.model_construct(
            name=name,
            total=totals.total,
            used_elsewhere=reading.used_elsewhere,
            owned=totals.owned,
            borrowed=totals.borrowed,
            peak_need=meter.peak(now),
        )

    def note(self, wants: Mapping[str, int], now: datetime) -> dict[str, int | None]:
        """Note what a session wanted; return what is occupied."""
        occupied: dict[str, int | None] = {}
        for name, meter in self._meters.items():
            totals = self.totals(name)
            meter.note(wants.get(name, 0), totals, now)
            occupied[name] = meter.read(totals, now).occupied
        return occupied

    def terms(self, wants: Mapping[str, int], now: datetime) -> tuple[SharedTerms, ...]:
        """Return what a policy round is told of each resource."""
        return tuple(self._terms(name, wants.get(name, 0), now) for name in self._meters)

    def _terms(self, name: str, wanted: int, now: datetime) -> SharedTerms:
        meter, totals = self._meters[name], self.totals(name)
        return terms_of(
            meter.pool,
            total=totals.total,
            in_flight=self._projections().totals.of(name).in_flight,
            occupied=meter.read(totals, now).occupied,
            report=report_of(meter, totals, now, wanted),
        )

    # -------------------------------------------------------------------- jobs
    def book(
        self, job: str, attempt: int, amounts: Iterable[SharedAmount], now: datetime
    ) -> Iterable[tuple[datetime, CheckOut]]:
        """Book what an attempt uses; yield when it takes its tokens from which server."""
        for entry in amounts:
            meter = self._meters[entry.name]
            meter.book(job, entry.amount, now)
            server = self._server_of(meter)
            if server is not None:
                at = server.take_on(entry.name, job, attempt, entry.amount, now)
                yield at, CheckOut(job, attempt, server.name)

    def free(self, job: str, names: Iterable[str], now: datetime) -> None:
        """Release what a job has booked."""
        for name in names:
            meter = self._meters[name]
            meter.release(job, now)
            server = self._server_of(meter)
            if server is not None:
                server.give_back(name, job, now)

    def sync(self, running: Iterable[RunningJob], now: datetime) -> None:
        """Forget all but what running jobs have booked: a new process knows no more."""
        running = tuple(running)
        for name, meter in self._meters.items():
            fresh = self._meters[name] = Meter(meter.pool)
            fresh.sync(
                {
                    job.id: (job.shared[name], job.started or now)
                    for job in running
                    if name in job.shared
                },
                now,
            )

    # ----------------------------------------------------------------- servers
    def intervals(self) -> Iterable[tuple[str, timedelta]]:
        """Yield the servers, and how often each is looked at."""
        return ((server.name, server.every) for server in self._servers.values())

    def interval(self, server: str) -> timedelta:
        """Return how often a server is looked at."""
        return self._servers[server].every

    def check_out(self, checkout: CheckOut, now: datetime) -> tuple[str, ...]:
        """Have an attempt take its tokens; return the resources that are denied."""
        totals = {name: self.totals(name).total for name in self._meters}
        return self._servers[checkout.server].check_out(checkout.job, checkout.attempt, totals, now)

    def observe(self, server: str, now: datetime, *, heard: bool) -> bool:
        """Look at a server, or let nobody hear what it says; return whether a session would see something else."""
        differs = False
        for seen in self._servers[server].look(now):
            meter = self._meters.get(seen.resource)
            if meter is None or not heard:
                continue
            meter.observe(seen)
            reading = meter.read(self.totals(seen.resource), now)
            if (reading.occupied, reading.limit) != self._seen.get(seen.resource):
                differs = True
        return differs

    def _server_of(self, meter: Meter) -> LicenceServer | None:
        return self._servers.get(meter.pool.observer or "")


def _owned(pool: SharedPool) -> Shared:
    return Shared.model_construct(
        name=pool.name,
        total=pool.owned,
        used_elsewhere=0,
        owned=pool.owned,
        borrowed=0,
        peak_need=None,
    )
