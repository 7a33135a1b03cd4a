"""A batch system with real sessions and jobs, a real provisioner, and a cloud that does what a case says, minute by minute in virtual time."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests.provisioner.rig import START, Process, Site
from tests.provisioner.truth import MINUTE, Cloud, Means
from xce.adapters.allocators import allocators_for
from xce.adapters.provisioner.newest import Published
from xce.adapters.schedulers import fake_state as fakes
from xce.adapters.schedulers.fake_state import FakeState
from xce.domain.engine import scheduler
from xce.domain.engine.commands import RecordJoin, ReportBookings
from xce.domain.engine.messages import Role
from xce.domain.engine.scheduler import SchedulerMemory
from xce.domain.engine.site_commands import ReportDrain
from xce.domain.formats.config import PolicyConfig
from xce.domain.formats.inventory import Inventory
from xce.domain.formats.lifecycle import LifecycleSettings
from xce.domain.formats.provider import Billing, Capabilities, ProviderDescription, TemplateOffer
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import Host, HostState, PendingJob
from xce.domain.ports import (
    Accepted,
    Ask,
    MachineReport,
    MachineResult,
    Refused,
    RequestStatus,
    ReturnStatus,
    StatusAnswer,
)
from xce.domain.provisioning.request import Request
from xce.domain.scheduling.series import Series


@dataclass
class Kind:
    """A template, and what its machines do.

    Attributes:
        boots: from the ask until the machine runs.
        joins: whether it ever reports to the cluster, and with what instead of what the template promises.
        fails: after so long each machine is in error; None: they run.
        refuses: asks are refused, for lack of capacity, when they have been looked at for so long.
    """

    template: str
    slots: int = 4
    mem: int | None = None
    price: str = "1.00"
    cap: int = -1
    priority: int = 10
    boots: timedelta = timedelta(0)
    joins: bool = True
    really: Mapping[str, int] | None = None
    fails: timedelta | None = None
    no_capacity_after: timedelta | None = None

    @property
    def offer(self) -> TemplateOffer:
        provides = {"slots": self.slots} | ({} if self.mem is None else {"mem": self.mem})
        return TemplateOffer.model_validate(
            {
                "templateId": self.template,
                "maxNumber": self.cap,
                "priority": self.priority,
                "pricePerHour": self.price,
                "provides": provides,
            }
        )


class ScriptedCloud(Cloud):
    """Accepts every ask; what comes of it is as its kind says."""

    def __init__(
        self, *kinds: Kind, means: Means = Means.LISTING, billing: Billing | None = None
    ) -> None:
        super().__init__(means)
        self.kinds = {one.template: one for one in kinds}
        self.billing = billing or Billing()
        self.returns_take = timedelta(0)
        #: (minute, template, amount) of each ask that was made.
        self.asked: list[tuple[int, str, int]] = []
        self._asks: dict[str, tuple[Ask, datetime]] = {}
        self._sent: dict[str, datetime] = {}

    def ask(self, ask: Ask, now: datetime) -> Accepted | Refused:
        self.asked.append((minute_of(now), ask.item, ask.amount))
        self._asks[f"add-{ask.tag}"] = (ask, now)
        if self.kinds[ask.item].no_capacity_after is not None:
            return Accepted(f"add-{ask.tag}")
        return super().ask(ask, now)

    def status(self, provider_request_id: str, now: datetime) -> StatusAnswer:
        ask, at = self._asks[provider_request_id]
        kind = self.kinds[ask.item]
        if kind.no_capacity_after is not None:
            if now < at + kind.no_capacity_after:
                return StatusAnswer(RequestStatus.RUNNING)
            return StatusAnswer(
                RequestStatus.COMPLETE_WITH_ERROR,
                message="Error Code: InsufficientInstanceCapacity: none left",
            )
        answer = super().status(provider_request_id, now)
        machines = tuple(self._report(one, at, now) for one in answer.machines)
        running = any(one.result is MachineResult.EXECUTING for one in machines)
        status = RequestStatus.RUNNING if running else answer.status
        return StatusAnswer(status, machines)

    def _report(self, report: MachineReport, at: datetime, now: datetime) -> MachineReport:
        kind = self.kinds[self.machines[report.machine].template]
        result = MachineResult.SUCCEED
        if kind.fails is not None:
            late = now >= at + kind.fails
            result = MachineResult.FAIL if late else MachineResult.EXECUTING
        elif now < at + kind.boots:
            result = MachineResult.EXECUTING
        return MachineReport(report.machine, report.name, result)

    def give_back(self, return_id: str, machines: tuple[str, ...], *more: Any, **others: Any) -> Accepted | Refused:  # fmt: skip
        now: datetime = more[1]
        self._returns[return_id] = machines
        for machine in machines:
            self._sent.setdefault(machine, now)
        self._let_go(now)
        return Accepted(f"ret-{return_id}")

    def return_status(
        self, return_id: str, now: datetime, *, theirs: str | None = None
    ) -> ReturnStatus:
        self._let_go(now)
        machines = self._returns.get(return_id, ())
        gone = frozenset(one for one in machines if self.machines[one].gone)
        done = len(gone) == len(machines)
        return ReturnStatus(RequestStatus.COMPLETE if done else RequestStatus.RUNNING, gone)

    def _let_go(self, now: datetime) -> None:
        for machine, sent in self._sent.items():
            if now >= sent + self.returns_take and not self.machines[machine].gone:
                self.machines[machine].gone = True
                self.returned[machine] += 1

    def sent_back(self) -> dict[str, int]:
        """Return the minute in which each return was sent, by machine."""
        return {machine: minute_of(at) for machine, at in self._sent.items()}

    def describe(self, now: datetime) -> ProviderDescription:
        return ProviderDescription(
            name=self.name,
            capabilities=Capabilities(
                request_tag=self.means is Means.TAG, listing=self.means is not Means.NEITHER
            ),
            billing=self.billing,
            templates=tuple(one.offer for one in self.kinds.values()),
        )


def minute_of(at: datetime) -> int:
    return int((at - START) / MINUTE)


@dataclass
class Town:
    """All of it. ``live`` lets minutes pass; ``on`` has what happens in a minute, before anything else does in it."""

    site: Site
    cloud: ScriptedCloud
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    lifecycle: LifecycleSettings = field(default_factory=LifecycleSettings)

    def __post_init__(self) -> None:
        self.began = self.site.clock.at
        self.batch = FakeState()
        self.results: list[SessionResult] = []
        self.most_live = 0
        self.restart()

    def restart(self) -> None:
        """Begin with a new provisioner, and a new scheduler driver; the batch system goes on."""
        self.memory, self.series = SchedulerMemory(), Series()
        self.process = Process(
            self.site, self.cloud, policy=self.policy, lifecycle=self.lifecycle, name="p1"
        )
        self.process.begin()

    def submit(
        self, *resreqs: str, run: timedelta = timedelta(days=1), count: int = 1, tasks: Any = None
    ) -> None:
        more = {} if tasks is None else {"tasks": tasks}
        jobs = [
            PendingJob.model_validate({"id": "new", "resreq": resreq, **more})
            for resreq in resreqs or ("",)
            for _ in range(count)
        ]
        self.batch = fakes.submitted(self.batch, jobs, run, self.site.clock.now())

    def submit_gang(self, tasks: int, resreq: str, run: timedelta = timedelta(days=1)) -> None:
        self.submit(resreq, run=run, tasks={"min": tasks, "max": tasks})

    # --------------------------------------------------------------------- minutes
    def live(
        self, until: int, on: Mapping[int, Callable[[], object]] | None = None, step: int = 1
    ) -> None:
        """Let time pass up to the end of a minute; every ``step`` minutes everybody has their turn."""
        while (minute := minute_of(self.site.clock.at)) <= until:
            for at in range(minute, minute + step):
                if on and at in on:
                    on[at]()
            self.turn()
            self.site.clock.at += step * MINUTE

    def turn(self) -> None:
        process = self.process
        process.keeper.step()
        process.driver.describe()
        process.driver.reconcile()
        process.driver.poll()
        process.work()
        for _ in range(3):  # sessions and rounds are more frequent than what a case counts in
            self.session()
            process.rounds.once()
            process.work()
            process.driver.poll()
            process.work()
        self.most_live = max(self.most_live, len(self.cloud.present()))

    def session(self) -> None:
        """Do what the scheduler daemon does in a round."""
        site, now = self.site, self.site.clock.now()
        self._boot()
        self.batch = fakes.moved_on(self.batch, now)
        view = fakes.view_of(self.batch, now)
        supply = site.supply()
        reports = scheduler.reports(view, supply)
        for join in reports.joins:
            assert join.instance is not None, "its hosts say which instance they are"
            site.do(
                Role.SCHEDULER,
                RecordJoin(
                    join.instance,
                    join.host,
                    join.booted_at,
                    join.attributes,
                    join.total,
                    busy=join.busy,
                ),
            )
        instances = {one.host: one.id for one in supply.inventory.instances if one.host}
        for look in reports.looks:
            site.do(
                Role.SCHEDULER, ReportDrain(look.host, instances.get(look.host), tuple(look.jobs))
            )
        if reports:
            supply = site.supply()
        self.memory.see(view, supply, now)
        snapshot = scheduler.merged(view, supply, self.memory)
        snapshot, result = self.series.run(
            snapshot, trace=False, allocators=allocators_for(snapshot)
        )
        self.memory.note_needs(snapshot, result)
        site.do(
            Role.SCHEDULER,
            ReportBookings(
                self.memory.occupied(snapshot, result), self.memory.shared_reports(snapshot.now)
            ),
        )
        orders = scheduler.orders(view, supply, result, scheduler.departed(view, supply))
        self.batch, problems = fakes.obeyed(self.batch, orders, now)
        assert not problems, problems
        self.results.append(result)
        site.newest.put(Published(result, site.clock.elapsed_s(), "0" * 64))

    def _boot(self) -> None:
        """Let the machines into the cluster that have booted, and out of it that are gone."""
        now = self.site.clock.now()
        hosts = {host.name for host in self.batch.hosts}
        for machine in self.cloud.machines.values():
            kind, name = self.cloud.kinds[machine.template], f"host-{machine.machine}"
            up = not machine.gone and machine.made_at + kind.boots <= now
            if up and kind.joins and kind.fails is None and name not in hosts:
                total = dict(kind.really or {})
                if not total:
                    total = {"slots": kind.slots} | ({} if kind.mem is None else {"mem": kind.mem})
                host = Host(
                    name=name, total=total, instance=f"cloud/{machine.machine}", booted_at=now
                )
                self.batch = fakes.with_host(self.batch, host)
            elif machine.gone and name in hosts:
                self.batch = fakes.without_host(self.batch, name)

    # ---------------------------------------------------------------- what there is
    @property
    def inventory(self) -> Inventory:
        return self.site.inventory

    def asks(self) -> list[tuple[int, str, int]]:
        """Return (minute, template, amount) of each ask, as the log has it."""
        return [
            (minute_of(one.timestamp), one.item, one.amount)
            for one in self.site.events()
            if isinstance(one, Request.Intended)
        ]

    def asked_of(self, template: str) -> int:
        return sum(amount for _, item, amount in self.asks() if item == template)

    def running_on(self, host: str) -> list[str]:
        return [
            run.job.id
            for run in self.batch.running
            if any(use.name == host for use in run.job.hosts)
        ]

    def why_pending(self) -> dict[str, str]:
        """Return the reasons of the newest session, by job."""
        return {one.job: str(one.reason) for one in self.results[-1].pending}

    def close_host(self, name: str) -> None:
        self.batch = fakes.with_state(self.batch, name, HostState.CLOSED)


def returns_by_minute(cloud: ScriptedCloud) -> Sequence[int]:
    return sorted(cloud.sent_back().values())


def only(found: Iterable[Any]) -> Any:
    (one,) = found
    return one
