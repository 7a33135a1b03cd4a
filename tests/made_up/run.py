"""A made-up run: jobs, sessions and a log that fit together, without an engine. For tests of statistics and report."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TypedDict

from xce.domain.events.base import DomainEvent
from xce.domain.events.recorded import Head
from xce.domain.formats.config import (
    ClusterConfig,
    HostGroup,
    ProviderConfig,
    SharedPool,
    SimulationConfig,
)
from xce.domain.formats.provider import Billing, Kind, ResourceOffer, TemplateOffer
from xce.domain.formats.session_result import (
    Allocation,
    CountDemand,
    Demand,
    JobWhy,
    Pending,
    PlacedOn,
    ReasonKind,
    SessionResult,
    SharedAmount,
)
from xce.domain.formats.snapshot import Host, Shared, Snapshot
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance
from xce.domain.provisioning.request import Request, RequestState
from xce.domain.sharing.elastic_resource import ElasticResource
from xce.replay.history import History
from xce.replay.statistics import Statistics
from xce.replay.workloads.workload import LeftOut, Note, Shape, Workload, WorkloadJob

START = datetime(2026, 3, 2, 6, tzinfo=UTC)
HOUR = timedelta(hours=1)
PRICES = {"c8": Decimal("0.34"), "c32": Decimal("1.20")}
SLOTS = {"c8": 8, "c32": 32}


class Who(TypedDict):
    """Who writes the events."""

    by: str
    epoch: int


_WHO: Who = {"by": "test", "epoch": 1}


@dataclass(frozen=True, slots=True)
class MadeUp:
    """All that a report is made of."""

    config: SimulationConfig
    workload: Workload
    statistics: Statistics
    history: History
    events: tuple[DomainEvent, ...]
    end: datetime
    head: Head


def config() -> SimulationConfig:
    """Return a site with eight own hosts, a cloud and a licence pool."""
    return SimulationConfig(
        cluster=ClusterConfig(
            hosts=(HostGroup(name="own[1-8]", total={"slots": 8}),),
            shared=(SharedPool(name="lic_sim", owned=20, provider="pool", max_borrow=20, step=5),),
        ),
        providers=(
            ProviderConfig(
                name="cloud",
                templates=tuple(
                    TemplateOffer(
                        template_id=name,
                        price_per_hour=PRICES[name],
                        provides={"slots": SLOTS[name]},
                    )
                    for name in PRICES
                ),
            ),
            ProviderConfig(
                name="pool",
                kinds=("countable",),
                resources=(ResourceOffer(name="lic_sim", capacity=20),),
            ),
        ),
    )


def made_up_run(days: int = 2) -> MadeUp:
    """Return a run of so many days; the same every time."""
    site = config()
    jobs = tuple(_jobs(days))
    workload = Workload(
        "made-up.swf",
        START,
        jobs,
        len(jobs) + 2,
        (LeftOut("run time unknown", ("x1", "x2")),),
        (Note("ran past the time asked: runs as long here", 7, "3"),),
    )
    statistics = Statistics(site, workload)
    log = _Log()
    _play(statistics, workload, log)
    end = log.end + HOUR
    return MadeUp(
        site, workload, statistics, History.of(log.events), tuple(log.events), end,
        Head(len(log.events), bytes(range(32))),
    )  # fmt: skip


def _jobs(days: int) -> Iterator[WorkloadJob]:
    number = 0
    for minute in range(days * 24 * 60):
        hour = (minute // 60) % 24
        rate = 5 if 2 <= hour < 10 else 1
        for k in range(rate):
            mixed = (minute * 7919 + k * 104729) % 1000
            if mixed < 280:
                number += 1
                shape = Shape(1 + mixed % 4, "rusage[lic_sim=1/job]" if mixed % 2 == 0 else "")
                yield WorkloadJob(str(number), minute * 60, 600 + mixed * 20, shape)


class _Log:
    """Events of hosts and tokens, made by the real aggregates."""

    def __init__(self) -> None:
        self.events: list[DomainEvent] = []
        self.end = START
        self.hosts: dict[str, tuple[Host, Instance]] = {}
        self.borrowed: list[Grant] = []
        self._asked = 0
        shared = ElasticResource.declare(
            resource="lic_sim", owned=20, provider="pool", max_borrow=20, step=5,
            idle_return_after=HOUR, min_hold=HOUR, at=START, by="test",
        )  # fmt: skip
        self.events += shared.new_events()

    def get_host(self, template: str, jobs: tuple[str, ...], at: datetime) -> None:
        request = self._request(Kind.HOST, template, 1, jobs, at, PRICES[template])
        name = f"cloud/vm-{request.name}"
        request.grant_instance(
            instance_id=name, machine=f"vm-{request.name}", at=at + HOUR / 60, **_WHO
        )
        instance = Instance.grant(
            instance=name, request_id=request.name, provider="cloud", template=template, machine=f"vm-{request.name}",
            name=None, price_per_hour=PRICES[template], billing=Billing(), hold_until=None, at=at + HOUR / 60, **_WHO,
        )  # fmt: skip
        host = f"{template}-{request.name.lower()}"
        instance.join(
            host=host,
            booted_at=at,
            attributes={},
            total={"slots": SLOTS[template]},
            at=at + HOUR / 20,
            **_WHO,
        )
        request.close(outcome=RequestState.COMPLETE, why="all came", at=at + HOUR / 60, **_WHO)
        self.hosts[host] = (
            Host(name=host, instance=name, total={"slots": SLOTS[template]}),
            instance,
        )
        self.events += (*request.new_events(), *instance.new_events())

    def drop_host(self, host: str, at: datetime) -> None:
        _, instance = self.hosts.pop(host)
        before = len(instance.new_events())
        instance.start_drain(why="idle for 30 min", at=at, **_WHO)
        instance.intend_return(return_id=f"B-{host}", why="idle", at=at, **_WHO)
        instance.confirm_return(at=at + HOUR / 60, **_WHO)
        self.events += instance.new_events()[before:]
        self.end = max(self.end, at + HOUR / 60)

    def borrow(self, amount: int, jobs: tuple[str, ...], at: datetime) -> None:
        request = self._request(Kind.COUNTABLE, "lic_sim", amount, jobs, at, Decimal("1.5"))
        grant_id = f"pool/lent-{request.name}"
        request.grant_amount(grant_id=grant_id, amount=amount, at=at, **_WHO)
        request.close(outcome=RequestState.COMPLETE, why="all came", at=at, **_WHO)
        grant = Grant.grant(
            grant=grant_id, request_id=request.name, provider="pool", resource="lic_sim", amount=amount, hold_until=None,
            expires_at=None, price_per_hour=Decimal("1.5"), at=at, **_WHO,
        )  # fmt: skip
        self.borrowed.append(grant)
        self.events += (*request.new_events(), *grant.new_events())

    def give_back(self, at: datetime) -> None:
        grant = self.borrowed.pop()
        before = len(grant.new_events())
        grant.start_return(return_id=f"B-{grant.name}", amount=5, at=at, **_WHO)
        grant.confirm_return(return_id=f"B-{grant.name}", at=at + HOUR / 120, **_WHO)
        self.events += grant.new_events()[before:]

    def _request(
        self,
        kind: Kind,
        item: str,
        amount: int,
        jobs: tuple[str, ...],
        at: datetime,
        price: Decimal,
    ) -> Request:
        self._asked += 1
        request = Request.intend(
            request=f"R{self._asked}", provider="cloud" if kind is Kind.HOST else "pool", kind=kind, item=item,
            amount=amount, price_per_hour=price, deadline=at + HOUR, reason="demand of waiting jobs", jobs=jobs,
            demand_position=0, hold=timedelta(0), at=at, **_WHO,
        )  # fmt: skip
        request.accept(provider_request_id=f"p-{request.name}", at=at, **_WHO)
        return request


def _play(statistics: Statistics, workload: Workload, log: _Log) -> None:
    """First come, first served, a session every five minutes, hosts when many slots are short."""
    own = config().cluster.all_hosts()
    waiting: list[WorkloadJob] = []
    running: list[tuple[datetime, WorkloadJob, str]] = []
    free = {host.name: host.total["slots"] for host in own}
    coming = list(workload.jobs)
    tokens = 0
    at = START
    while coming or waiting or running:
        for end, job, place in sorted(running, key=lambda entry: entry[0]):
            if end <= at:
                statistics.ended(job, end)
                free[place] += job.shape.tasks
                tokens -= bool(job.shape.resreq)
                running.remove((end, job, place))
        while coming and START + timedelta(seconds=coming[0].submit) <= at:
            waiting.append(coming.pop(0))
        allocations: list[Allocation] = []
        started: list[WorkloadJob] = []
        total = 20 + 5 * len(log.borrowed)
        for job in waiting:
            host = next((name for name, left in free.items() if left >= job.shape.tasks), None)
            needs = bool(job.shape.resreq)
            if host is None or tokens + needs > total:
                continue
            free[host] -= job.shape.tasks
            tokens += needs
            started.append(job)
            running.append((at + timedelta(seconds=job.run_time), job, host))
            allocations.append(
                Allocation(
                    job=job.id,
                    hosts=(
                        PlacedOn(name=host, tasks=job.shape.tasks, uses={"slots": job.shape.tasks}),
                    ),
                    shared=(SharedAmount(name="lic_sim", amount=1),) if needs else (),
                )
            )
        snapshot = _snapshot(at, own, log, waiting)
        waiting = [job for job in waiting if job not in started]
        for job in started:
            statistics.started(job, at)
        statistics.session(snapshot, _result(waiting, allocations))
        _steer(log, free, waiting, tokens, at)
        at += timedelta(minutes=5)
    while log.hosts:
        log.drop_host(next(iter(log.hosts)), at)


def _snapshot(
    at: datetime, own: tuple[Host, ...], log: _Log, waiting: list[WorkloadJob]
) -> Snapshot:
    borrowed = 5 * len(log.borrowed)
    return Snapshot(
        format="xce.snapshot/1",
        now=at,
        hosts=(*own, *(host for host, _ in log.hosts.values())),
        shared=(Shared(name="lic_sim", total=20 + borrowed, owned=20, borrowed=borrowed),),
        pending=tuple(job.pending(START) for job in waiting),
    )


def _result(waiting: list[WorkloadJob], allocations: list[Allocation]) -> SessionResult:
    wanted = sum(bool(job.shape.resreq) for job in waiting[:30])
    return SessionResult(
        position=0,
        allocations=tuple(allocations),
        pending=tuple(Pending(job=job.id, reason=ReasonKind.NO_RESOURCE) for job in waiting),
        demand=Demand(
            countable=(CountDemand(name="lic_sim", amount=0, wanted=wanted, jobs=()),)
            if wanted
            else (),
            impossible=(JobWhy(job="never", why="no template provides 'fpga'"),),
        ),
    )


def _steer(
    log: _Log, free: dict[str, int], waiting: list[WorkloadJob], tokens: int, at: datetime
) -> None:
    short = sum(job.shape.tasks for job in waiting)
    names = tuple(job.id for job in waiting[:5])
    if short > 40 and len(log.hosts) < 6:
        log.get_host("c32", names, at)
    elif short > 6 and len(log.hosts) < 6:
        log.get_host("c8", names, at)
    for host, (known, _) in log.hosts.items():
        free.setdefault(host, known.total["slots"])
    if not waiting:
        idle = next(
            (h for h, (known, _) in log.hosts.items() if free[h] == known.total["slots"]), None
        )
        if idle is not None:
            del free[idle]
            log.drop_host(idle, at)
    if tokens >= 20 + 5 * len(log.borrowed) - 1 and len(log.borrowed) < 4:
        log.borrow(5, names, at)
    elif log.borrowed and tokens < 20 + 5 * len(log.borrowed) - 12:
        log.give_back(at)
