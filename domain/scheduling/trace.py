"""The decision trace: for every job, step by step, what was tried and what stopped it.

Nothing here is called unless a trace was asked for. The lines are made from what the session found; hosts
are described as they are at the end of phase 1, those that the same thing stops together.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from xce.domain.cluster.hosts import key_of_name
from xce.domain.cluster.limits import Share
from xce.domain.cluster.requests import Amounts
from xce.domain.cluster.state import State
from xce.domain.formats.session_result import (
    Allocation,
    Demand,
    JobWhy,
    Provisioning,
    ReasonKind,
)
from xce.domain.formats.snapshot import PendingJob
from xce.domain.scheduling.attempt import Attempt, Context
from xce.domain.scheduling.classes import JobClass, Part
from xce.domain.scheduling.explain import Failure

#: Hosts named in one line before the others are only counted.
_NAMED_HOSTS: Final = 8


class Trace:
    """Collects the lines of one session."""

    def __init__(self, core: State) -> None:
        self._core = core
        self._lines: list[str] = []
        self._texts: dict[Failure, list[str]] = {}
        self._on_hosts: dict[tuple[Part, int], list[str]] = {}

    @property
    def lines(self) -> tuple[str, ...]:
        """Return all lines, in the order of the steps."""
        return tuple(self._lines)

    def started(self, allocations: Iterable[Allocation]) -> None:
        """Describe the jobs that start."""
        for allocation in allocations:
            hosts = ", ".join(f"{on.name} ({_tasks(on.tasks)})" for on in allocation.hosts)
            shared = "".join(f", {each.amount} of {each.name}" for each in allocation.shared)
            self._lines.append(f"job {allocation.job}: starts on {hosts}{shared}")

    def waiting(self, waiting: Iterable[tuple[PendingJob, JobClass, Failure]]) -> None:
        """Describe the jobs that wait: what stopped them, and on which hosts."""
        lines = self._lines
        last: Failure | None = None
        said: list[str] = []
        for job, job_class, failure in waiting:
            if failure is not last:
                last, said = failure, self.texts(job_class, failure)
            name = job.id
            for text in said:
                lines.append(f"job {name}: {text}")

    def add(self, lines: Iterable[str]) -> None:
        """Add lines that were made elsewhere."""
        self._lines += lines

    def texts(self, job_class: JobClass, failure: Failure) -> list[str]:
        """Return what is said of a job that waits, a text for each of its lines."""
        known = self._texts.get(failure)
        if known is None:
            known = self._texts[failure] = self._of_failure(job_class, failure)
        return known

    def _of_failure(self, job_class: JobClass, failure: Failure) -> list[str]:
        texts: list[str] = []
        for found in failure.early:
            said = "" if found.detail is None else f" ({found.detail})"
            texts.append(f"{_stop(found.kind, found.name)}{said}")
        for part in failure.unselected:
            texts += self._unselected(part)
        for part, tasks in failure.late:
            texts += self._part(job_class, part, tasks)
        return texts

    def catalog(
        self, demand: Demand, provisioning: Mapping[str, Provisioning], jobs: Iterable[PendingJob]
    ) -> None:
        """Describe what the catalog pass found for each job."""
        refused = {
            each.job: not_provisionable(each.job, each.why)
            for each in (*demand.not_counted, *demand.impossible)
        }
        for name in demand.not_examined:
            refused[name] = f"job {name}: not examined: past the cap"
        for job in jobs:
            given = provisioning.get(job.id)
            if given is None:
                if job.id in refused:
                    self._lines.append(refused[job.id])
                continue
            for template, hosts in given.templates.items():
                self._lines.append(
                    f"job {job.id}: would fit on template {template} ({_hosts(hosts)})"
                )
            for name, amount in given.countable.items():
                self._lines.append(f"job {job.id}: short {amount} of {name}, provisionable")
            for name in given.in_flight:
                self._lines.append(f"job {job.id}: waits for {name}, in flight")
            if not (given.templates or given.countable or given.in_flight):
                self._lines.append(f"job {job.id}: has a place behind the jobs before it")

    def not_counted(self, whys: Iterable[JobWhy]) -> None:
        """Describe what ``catalog`` says where no job is counted: ``whys`` is all that there is to say, in job order."""
        self._lines += [not_provisionable(each.job, each.why) for each in whys]

    def _part(self, job: JobClass, part: Part, tasks: int) -> list[str]:
        """Return the first thing that stops a part on every class of hosts."""
        key = (part, tasks)
        known = self._on_hosts.get(key)
        if known is None:
            known = self._on_hosts[key] = self._describe(job, part, tasks)
        return known

    def _describe(self, job: JobClass, part: Part, tasks: int) -> list[str]:
        request = part.request
        bucket = request.largest_bucket(tasks)
        amounts = request.bucket(bucket, first=True)
        wanted = ", ".join(f"{amount} {name}" for name, amount in amounts) or "nothing"
        stops = self._stops(part, self._short(job, part, amounts, tasks))
        return [f"wants {wanted} on a host for {_tasks(bucket)} of {tasks}", *stops]

    def _unselected(self, part: Part) -> list[str]:
        """Return why each class of hosts is not one for a part that none matches."""
        key = (part, 0)
        known = self._on_hosts.get(key)
        if known is None:
            known = self._on_hosts[key] = self._stops(part, lambda _: "matches")
        return known

    def _stops(self, part: Part, of_matching: Callable[[int], str]) -> list[str]:
        """Return a line for all hosts that the same thing stops; ``of_matching`` says it of a host that matches."""
        stopped: dict[str, list[str]] = {}
        hosts = self._core.ground.hosts
        selected = set(self._core.view(part.scope).matching)
        for place, (name, is_open) in enumerate(zip(hosts.names, hosts.is_open, strict=True)):
            if not is_open:
                stop = f"is {hosts.hosts[place].state.value}"
            elif place not in selected:
                stop = self._not_selected(part, place)
            else:
                stop = of_matching(place)
            known = stopped.get(stop)
            if known is None:
                stopped[stop] = [name]
            else:
                known.append(name)
        lines = [f"{_names(names)}: {stop}" for stop, names in stopped.items()]
        return lines or ["there are no hosts"]

    def _not_selected(self, part: Part, place: int) -> str:
        """Return why an open host does not match: the rules in the order of the page."""
        host = self._core.ground.hosts.hosts[place]
        user, _ = part.scope.admission
        if host.exclusive_to is not None and host.exclusive_to != user:
            return f"is for user {host.exclusive_to} only"
        if not part.request.selector.matches(self._core.kind(place)):
            return "is not what select asks for"
        return "must go before the job would end"

    def _short(
        self, job: JobClass, part: Part, amounts: Amounts, tasks: int
    ) -> Callable[[int], str]:
        """Return what says of a host that matches the first thing that stops the largest bucket there, which takes ``amounts``."""
        core = self._core
        barred = core.busy if part.is_exclusive else core.shut
        rows = [(core.column(name), amount, f"short of {name}") for name, amount in amounts]

        def short(place: int) -> str:
            if place in barred:
                return "has a job that cannot share it"
            for column, amount, stop in rows:
                if column[place] < amount:
                    return stop
            return self._refused(job, part, place, amounts, tasks)

        return short

    def _refused(self, job: JobClass, part: Part, place: int, amounts: Amounts, tasks: int) -> str:
        """Return what stops the largest bucket on a host that has room for it."""
        core = self._core
        attempt = Attempt(part, tasks, Context(job))
        bucket = part.request.largest_bucket(tasks)
        fixed = part.fixed_shared(tasks)
        limits: list[str] = []
        taken = fixed.copy()
        for number, amount in attempt.metered(bucket, first=True):
            meter = core.ground.meters.all[number]
            if meter.rule is None:
                taken[meter.name] = amount = amount + fixed.get(meter.name, 0)
                if amount > core.left[number]:
                    return f"short of {meter.name}"
            elif amount > 0 and amount > core.left[number]:
                limits.append(meter.name)
        if part.placed:
            shares: list[Share] = [(place, dict(amounts))]
            refusing = core.placed.refusing(part.placed, shares, taken, core.names)
            limits += [meter.name for meter in refusing]
        if part.is_guarded:
            uses = dict(amounts)
            each_host = (*part.request.host, *part.request.shared_host)
            guarded = {name: taken.get(name, 0) + uses.get(name, 0) for name, _ in each_host}
            limits += attempt.context.guarantees_broken(core, guarded)
        if limits:
            return f"limit {min(limits, key=key_of_name)}"
        return "has room, and is too few"


def not_provisionable(job: str, why: str) -> str:
    """Return the line of a job that is not counted."""
    return f"job {job}: not provisionable: {why}"


def _stop(kind: ReasonKind, name: str | None) -> str:
    match kind:
        case ReasonKind.LIMIT:
            return f"limit {name}"
        case ReasonKind.NO_RESOURCE:
            return f"short of {name}"
        case ReasonKind.UNIT_UNKNOWN:
            return f"unit unknown: {name}"
        case ReasonKind.HOST_SELECTION:
            return "no host is what it selects"
        case ReasonKind.PRIORITY:
            return "stands behind a job that cannot start"
        case ReasonKind.HELD | ReasonKind.DEPENDENCY:
            return kind.value


def _names(names: Sequence[str]) -> str:
    if len(names) <= _NAMED_HOSTS:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMED_HOSTS])} and {len(names) - _NAMED_HOSTS} more"


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"


def _hosts(count: int) -> str:
    return "1 host" if count == 1 else f"{count} hosts"
