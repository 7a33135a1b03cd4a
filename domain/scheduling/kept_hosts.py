"""Hosts and what running jobs take of them and of meters, kept up to date from one session to the next."""

from collections import Counter
from collections.abc import Iterable, Mapping

from xce.domain.cluster.hosts import HostList
from xce.domain.cluster.limits import (
    Guarantee,
    Meter,
    Meters,
    PlacedUse,
    Share,
    placed_of,
)
from xce.domain.cluster.state import Ground, State
from xce.domain.formats.snapshot import Host, RunningJob
from xce.domain.scheduling.compile import overuse_warnings


class KeptHosts:
    """Hosts in host order, and what is free on them.

    Whether a host is put in the place of an equal one or the hosts are other ones is for the caller to say.

    Attributes:
        ordered: the hosts in host order.
        jobs: how many jobs run on each host, by its place.
        instances: instances of the hosts that providers created.
        maybe_idle: hosts of providers of which it is known since when they are idle, by name.
    """

    __slots__ = (
        "_all_free",
        "_busy",
        "_exclusive",
        "_free",
        "_short",
        "instances",
        "jobs",
        "maybe_idle",
        "ordered",
    )

    def __init__(self, hosts: Iterable[Host], running: Iterable[RunningJob]) -> None:
        self.ordered = HostList(tuple(hosts))
        count = len(self.ordered.hosts)
        #: What is free by resource and place, below 0 where more is used than there is.
        self._free: dict[str, list[int]] = {
            name: column[:] for name, column in self.ordered.totals.items()
        }
        self._all_free: dict[str, int] = {name: sum(each) for name, each in self._free.items()}
        self._short: set[tuple[str, int]] = set()
        self._busy: set[int] = set()
        self._exclusive: Counter[int] = Counter()
        self.jobs: list[int] = [0] * count
        self.instances = {host.instance for host in self.ordered.hosts if host.instance is not None}
        self.maybe_idle: dict[str, Host] = {}
        for host in self.ordered.hosts:
            self._note_idle(host)
        for job in running:
            self.take(job)

    def _note_idle(self, host: Host) -> None:
        if host.instance is not None and host.idle_since is not None:
            self.maybe_idle[host.name] = host
        else:
            self.maybe_idle.pop(host.name, None)

    def replace(self, host: Host) -> None:
        """Put a host in the place of one that ``is_alike``."""
        self.ordered.replace(host)
        self._note_idle(host)

    def jobs_on(self, name: str) -> int:
        """Return how many jobs run on a host; 0 for one that is not there."""
        place = self.ordered.index.get(name)
        return 0 if place is None else self.jobs[place]

    def take(self, job: RunningJob) -> None:
        """Take what a job uses from its hosts."""
        self._count(job, 1)

    def give_back(self, job: RunningJob) -> None:
        """Give back to its hosts what a job used."""
        self._count(job, -1)

    def _count(self, job: RunningJob, times: int) -> None:
        index, free, short, jobs = self.ordered.index, self._free, self._short, self.jobs
        all_free = self._all_free
        for use in job.hosts:
            place = index[use.name]
            jobs[place] += times
            if jobs[place]:
                self._busy.add(place)
            else:
                self._busy.discard(place)
            if job.exclusive:
                self._exclusive[place] += times
                if not self._exclusive[place]:
                    del self._exclusive[place]
            for name, amount in use.uses.items():
                column = free.get(name)
                if column is None:
                    column = free[name] = [0] * len(jobs)
                column[place] -= times * amount
                all_free[name] = all_free.get(name, 0) - times * amount
                if column[place] < 0:
                    short.add((name, place))
                elif short:
                    short.discard((name, place))

    def all_free(self) -> dict[str, int] | None:
        """Return what is free on all hosts together, a copy; None where more is used of one than there is."""
        return None if self._short else self._all_free.copy()

    def state(
        self, ground: Ground, placed: PlacedUse, granted: list[int], warnings: list[str]
    ) -> State:
        """Return the state at the start of a session; warn of hosts of which more is used than there is."""
        free = {name: column[:] for name, column in self._free.items()}
        for name, place in self._short:
            free[name][place] = 0
        warnings += overuse_warnings(self.ordered, {place for _, place in self._short})
        return State.of(ground, free, placed, self._busy.copy(), set(self._exclusive), granted)


def is_alike(one: Host, other: Host) -> bool:
    """Return whether two hosts of one name differ in nothing but since when they are idle or up.

    Attributes and totals that are equal but not the same object are taken to differ, which costs time only.
    """
    return (
        one.attributes is other.attributes
        and one.total is other.total
        and one.state is other.state
        and one.rank == other.rank
        and one.instance == other.instance
        and one.exclusive_to == other.exclusive_to
        and one.available_until == other.available_until
    )


class KeptMeters:
    """Meters of limits and shared resources, and what groups use of their guarantees, as running jobs come and go.

    Attributes:
        meters: those of the ground.
    """

    __slots__ = ("_at_start", "_granted", "_guarantees", "_has_placed", "_placed", "meters")

    def __init__(self, meters: Meters, guarantees: tuple[Guarantee, ...]) -> None:
        self.meters = meters
        self._guarantees = guarantees
        self._granted = [0] * len(guarantees)
        self._has_placed = any(rule.placed for rule in meters.rules)
        self._placed: PlacedUse | None = None
        self._at_start = len(meters.all)

    @property
    def is_overgrown(self) -> bool:
        """Return whether so many users, arrays and so on have come and gone that it is time to begin anew."""
        return len(self.meters.all) > 4_000 + 4 * self._at_start

    def take(self, job: RunningJob) -> None:
        """Count what a job uses."""
        self._count(job, 1)

    def give_back(self, job: RunningJob) -> None:
        """Count no more what a job used."""
        self._count(job, -1)

    def forget_places(self) -> None:
        """Note that hosts have other places, or that other jobs run on them."""
        self._placed = None

    def change_total(self, name: str, more: int) -> None:
        """Let there be more of a shared resource of which it is known what is free, or less."""
        self.meters.shared[name].start += more

    def _count(self, job: RunningJob, times: int) -> None:
        meters = self.meters
        if meters.rules or job.shared:
            shares: list[Share] = [(0, use.uses) for use in job.hosts]
            meters.count_fixed(self._of(job), shares, job.shared, times=times)
            self._placed = None
        for number, guarantee in enumerate(self._guarantees):
            if job.user in guarantee.members:
                amount = job.shared.get(guarantee.resource, 0)
                amount += sum(use.uses.get(guarantee.resource, 0) for use in job.hosts)
                self._granted[number] += times * amount

    def _of(self, job: RunningJob) -> tuple[Meter, ...]:
        array = None if job.array is None else job.array.id
        return self.meters.of_job(job.user, job.project, job.queue, array)

    def granted(self) -> list[int]:
        """Return what each guaranteed group uses."""
        return self._granted[:]

    def placed_use(self, hosts: HostList, running: Mapping[str, RunningJob]) -> PlacedUse:
        """Return what placed meters count: anew where anything that runs has changed."""
        if not self._has_placed:
            return PlacedUse()
        if self._placed is None:
            self._placed = PlacedUse()
            index, names = hosts.index, hosts.names
            for job in running.values():
                placed = placed_of(self._of(job))
                if placed:
                    shares: list[Share] = [(index[use.name], use.uses) for use in job.hosts]
                    self._placed.add(placed, shares, job.shared, names)
        return self._placed.copy()
