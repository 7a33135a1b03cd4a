"""Every measure of a scenario, at the present moment of its run."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from xce.domain.events.base import DomainEvent
from xce.domain.events.ids import name_of
from xce.domain.events.recorded import Recorded
from xce.domain.formats.expectations import ExpectValue, Measure
from xce.domain.formats.inventory import InstanceEntry, RequestEntry
from xce.domain.formats.session_result import SessionResult
from xce.domain.formats.snapshot import Snapshot
from xce.domain.provisioning.grant import Grant
from xce.domain.provisioning.instance import Instance, InstanceState
from xce.domain.provisioning.request import OPEN, Request
from xce.replay.history import History
from xce.replay.provider_truth import Machine, MachineState
from xce.replay.rounding import money
from xce.replay.workloads.workload import WorkloadJob
from xce.replay.world import World

M = Measure
_SECOND = timedelta(seconds=1)


class Gauge:
    """Follows a run as one of its watchers; ``attach`` says which."""

    def __init__(self) -> None:
        self.history = History()
        self.events: list[Recorded] = []
        self._world: World | None = None
        self._waits: dict[str, int] = {}
        self._ended: set[str] = set()
        self._result: SessionResult | None = None
        self._demanded: frozenset[str] = frozenset()

    def attach(self, world: World) -> None:
        """Say whose run it is."""
        self._world = world

    # ------------------------------------------------------------------ watcher
    def started(self, job: WorkloadJob, at: datetime) -> None:
        """See ``Watcher.started``."""
        submitted = self.world.workload.start + job.submit * _SECOND
        self._waits.setdefault(job.id, (at - submitted) // _SECOND)

    def ended(self, job: WorkloadJob, at: datetime) -> None:
        """See ``Watcher.ended``."""
        self._ended.add(job.id)

    def session(self, snapshot: Snapshot, result: SessionResult) -> None:
        """See ``Watcher.session``."""
        self._result = result
        self._demanded = frozenset(
            (
                *(part.job for entry in result.demand.hosts for part in entry.jobs),
                *(part.job for entry in result.demand.countable for part in entry.jobs),
            )
        )

    def take(self, recorded: Iterable[Recorded]) -> None:
        """Take events in that were appended since the last call."""
        for entry in recorded:
            self.events.append(entry)
            self.history.apply(entry.event)

    # ----------------------------------------------------------------- measures
    @property
    def world(self) -> World:
        """The world."""
        assert self._world is not None, "attached before the run"
        return self._world

    def value(self, wanted: ExpectValue) -> Decimal | None:
        """Return a measure now; None: it is not known."""
        found = self._value(wanted)
        return found if isinstance(found, Decimal) or found is None else Decimal(found)

    def _value(self, wanted: ExpectValue) -> int | Decimal | None:
        match wanted.of:
            case M.REQUESTS | M.ASKED:
                asks = list(self.asks(wanted.provider, wanted.item))
                return len(asks) if wanted.of is M.REQUESTS else sum(ask.amount for ask in asks)
            case M.EXISTING | M.MADE:
                return self._truth(wanted)
            case M.OWNED | M.JOINED | M.IN_FLIGHT:
                return self._books(wanted)
            case M.RETURNS | M.EVENTS:
                return sum(1 for entry in self.events if _counts(entry.event, wanted))
            case M.ORPHANS:
                rows = self.world.projections.reasons.orphans()
                return sum(1 for row in rows if wanted.provider in (None, row.provider))
            case M.REFUSED:
                return self.world.process.refused
            case M.PAUSES:
                pauses = self.world.projections.catalog.pauses(self.world.now)
                return sum(
                    1
                    for pause in pauses
                    if wanted.provider in (None, pause.provider)
                    and wanted.item in (None, pause.item)
                )
            case M.WAITING | M.RUNNING | M.ENDED | M.DEMAND:
                return self._jobs(wanted)
            case M.LONGEST_WAIT:
                return max(self._waits.values(), default=0)
            case M.MEAN_WAIT:
                return (
                    None
                    if not self._waits
                    else Decimal(sum(self._waits.values())) / len(self._waits)
                )
            case M.TOTAL | M.BORROWED | M.OCCUPIED | M.FREE:
                return self._shared(wanted)
            case M.COST:
                now = self.world.now
                hosts, grants = self.history.hosts.values(), self.history.grants.values()
                return money(
                    [
                        *(
                            use.cost(now)
                            for use in hosts
                            if _mine(wanted, use.provider, use.template)
                        ),
                        *(
                            use.cost(now)
                            for use in grants
                            if _mine(wanted, use.provider, use.resource)
                        ),
                    ]
                )
            case M.COST_PER_HOUR:
                return self._rate(wanted)

    def asks(self, provider: str | None, item: str | None) -> Iterable[Request.Intended]:
        """Yield the asks so far, in order."""
        for entry in self.events:
            event = entry.event
            if not isinstance(event, Request.Intended):
                continue
            if provider in (None, event.provider) and item in (None, event.item):
                yield event

    def reason(self, job: str) -> str:
        """Return what the last session says of a job, in words; "" if it says nothing."""
        if self._result is None:
            return ""
        demand = self._result.demand
        found = [f"{entry.job}: {entry.why}" for entry in demand.impossible if entry.job == job]
        found += [f"{entry.job}: {entry.why}" for entry in demand.not_counted if entry.job == job]
        found += [entry.reason.value for entry in self._result.pending if entry.job == job]
        return "; ".join(found)

    # ------------------------------------------------------------------- inside
    def _truth(self, wanted: ExpectValue) -> int:
        now = self.world.now
        count = 0
        for name, provider in self.world.providers.items():
            if wanted.provider not in (None, name):
                continue
            machines = [
                one
                for one in provider.machines()
                if wanted.item in (None, one.template) and one.launched_at <= now
            ]
            if wanted.of is M.MADE:
                count += len(machines)
                continue
            count += sum(1 for one in machines if _is_there(one, now))
            count += sum(
                one.held(now)
                for one in provider.grants()
                if wanted.item in (None, one.resource) and one.granted_at <= now
            )
        return count

    def _books(self, wanted: ExpectValue) -> int:
        view = self.world.projections.inventory.view()
        instances = [e for e in view.instances if _mine(wanted, e.provider, e.template)]
        match wanted.of:
            case M.JOINED:
                return sum(1 for entry in instances if entry.state is InstanceState.JOINED)
            case M.IN_FLIGHT:
                return _coming(view.requests, instances, wanted)
            case _:
                grants = [e for e in view.grants if _mine(wanted, e.provider, e.resource)]
                return len(instances) + sum(entry.amount - entry.returned for entry in grants)

    def _jobs(self, wanted: ExpectValue) -> int:
        cluster = self.world.cluster
        match wanted.of:
            case M.WAITING:
                names: Iterable[str] = (job.id for job in cluster.pending())
            case M.RUNNING:
                names = (job.id for job in cluster.running())
            case M.ENDED:
                names = self._ended
            case _:
                names = self._demanded
        return sum(1 for name in names if wanted.job in (None, name))

    def _shared(self, wanted: ExpectValue) -> int:
        assert wanted.shared is not None, "the format asks for it"
        totals = self.world.shared.totals(wanted.shared)
        match wanted.of:
            case M.TOTAL:
                return totals.total
            case M.BORROWED:
                return totals.borrowed
            case _:
                reading = self.world.shared.meter(wanted.shared).read(totals, self.world.now)
                return reading.occupied if wanted.of is M.OCCUPIED else reading.free

    def _rate(self, wanted: ExpectValue) -> Decimal | None:
        rate = Decimal(0)
        for host in self.history.hosts.values():
            if host.until is None and _mine(wanted, host.provider, host.template):
                if host.price_per_hour is None:
                    return None
                rate += host.price_per_hour
        for grant in self.history.grants.values():
            if grant.held and _mine(wanted, grant.provider, grant.resource):
                if grant.price_per_hour is None:
                    return None
                rate += grant.price_per_hour * grant.held
        return rate


def _mine(wanted: ExpectValue, provider: str, item: str) -> bool:
    return wanted.provider in (None, provider) and wanted.item in (None, item)


def _is_there(machine: Machine, now: datetime) -> bool:
    if machine.state(now) is MachineState.GONE:
        return False
    return machine.exists(now)


def _coming(
    requests: Iterable[RequestEntry], instances: Iterable[InstanceEntry], wanted: ExpectValue
) -> int:
    asked = 0
    for entry in requests:
        item = entry.template if entry.template is not None else entry.resource
        assert item is not None, "a request is for something"
        if entry.state in OPEN and _mine(wanted, entry.provider, item):
            asked += max(0, entry.amount - entry.granted - entry.failed)
    return asked + sum(1 for entry in instances if entry.state is InstanceState.STARTING)


def _counts(event: DomainEvent, wanted: ExpectValue) -> bool:
    if wanted.of is M.RETURNS:
        match event:
            case Instance.ReturnIntended() | Grant.ReturnStarted():
                return True
            case _:
                return False
    if wanted.event is not None and wanted.event != type(event).TOPIC:
        return False
    if not wanted.where:
        return True
    fields: dict[str, Any] = {
        **event.model_dump(mode="json"),
        "id": name_of(event.originator_id),
    }
    return all(_text(fields.get(name)) == text for name, text in wanted.where.items())


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)
