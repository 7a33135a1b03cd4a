"""Why a job that found nothing is not counted, and whether it could ever run here."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from xce.domain.cluster.hosts import key_of_name
from xce.domain.cluster.kinds import HostKind
from xce.domain.cluster.limits import Meters
from xce.domain.cluster.state import Ground, State
from xce.domain.demand.catalog_pass import Pass, Stopped
from xce.domain.demand.supply import Offer, Supply, most_hosts_of, tasks_on_empty
from xce.domain.formats.session_result import ReasonKind
from xce.domain.scheduling.classes import Alternative, JobClass, Part
from xce.domain.scheduling.compile import Compiled
from xce.domain.scheduling.explain import measure
from xce.domain.scheduling.placement import place, undo_placed


class Judge:
    """Judges jobs that found nothing, each class once."""

    def __init__(self, compiled: Compiled, supply: Supply) -> None:
        self._compiled = compiled
        self._supply = supply
        self._never: dict[JobClass, str | None] = {}
        self._not: dict[JobClass, str] = {}
        self._ideal: State | None = None
        self._kinds_counted: list[tuple[HostKind, int]] | None = None
        self._totals = {pool.name: pool.total for pool in compiled.snapshot.shared}

    # never

    def why_never(self, job: JobClass) -> str | None:
        """Return what is missing for a job that could not run even in an empty cluster with all that the catalog has."""
        if job not in self._never and self._is_plainly_possible(job):
            self._never[job] = None
        if job not in self._never:
            ideal = self._ideal_state()
            there = job.on(ideal.ground)
            hosts = self._add_all(ideal, there)
            placed = place(ideal, there, job.least)
            if placed is not None:
                undo_placed(ideal, placed)
                self._never[job] = None
            else:
                texts = [self._missing(ideal, there, each) for each in there.alternatives]
                self._never[job] = "; ".join(dict.fromkeys(texts))
            for _ in range(hosts):
                ideal.remove_last_host()
        return self._never[job]

    def _is_plainly_possible(self, job: JobClass) -> bool:
        """Return whether kinds of hosts, counted, show a place in the ideal state; False: that is not known."""
        for alternative in job.alternatives:
            part = alternative.parts[0]
            if len(alternative.parts) == 1 and part.scope.admission == (None, None):
                tasks = part.tasks or job.least
                if self._has_counts(part, tasks) and self._has_rooms(part, tasks):
                    return True
        return False

    def _has_counts(self, part: Part, tasks: int) -> bool:
        """Return whether all shared amounts could be had."""
        request = part.request
        if request.shared_host:
            return False
        for name, amount in part.fixed_shared(tasks).items():
            number = self._compiled.core.ground.meters.shared[name].number
            if amount > self._totals.get(name, 0) + self._supply.all_counts.get(number, 0):
                return False
        return True

    def _has_rooms(self, part: Part, tasks: int) -> bool:
        """Return whether empty hosts have room for a part, wherever the search looks first."""
        request = part.request
        hosts = self._compiled.core.ground.hosts
        if request.job or request.selector.same or hosts.exclusive_to or hosts.available_until:
            return False
        wanted = request.largest_bucket(tasks)
        buckets = 1 if request.span.one_host else request.fewest_hosts(tasks)
        is_whole = request.span.one_host or request.span.one_task_a_host or request.span.ptile
        found = 0
        for kind, count in self._counted_kinds():
            room = tasks_on_empty(part, kind, tasks)
            if is_whole:
                found += count if room >= wanted else 0
                if found >= buckets:
                    return True
            else:
                found += count * room
                if found >= tasks:
                    return True
        return False

    def _counted_kinds(self) -> list[tuple[HostKind, int]]:
        """Return all kinds of hosts that there could be, with their number."""
        if self._kinds_counted is None:
            compiled = self._compiled
            counts = Counter(compiled.core.ground.hosts.kinds)
            counts.update(compiled.template_kinds[host.template] for host in compiled.in_flight)
            for offer in self._supply.offers:
                counts[offer.kind] += offer.allowed
            self._kinds_counted = list(counts.items())
        return self._kinds_counted

    def _ideal_state(self) -> State:
        """Return the cluster empty and open, with all that is in flight, all counts and no limits."""
        if self._ideal is None:
            compiled, supply = self._compiled, self._supply
            snapshot, ground = compiled.snapshot, compiled.core.ground
            shared: dict[str, int | None] = {}
            for pool in snapshot.shared:
                number = ground.meters.shared[pool.name].number
                shared[pool.name] = pool.total + supply.all_counts.get(number, 0)
            self._ideal = State(Ground(ground.hosts.all_open(), Meters(shared), (), snapshot.now))
            for host in compiled.in_flight:
                self._ideal.add_host(compiled.template_kinds[host.template], host.expected_name)
        return self._ideal

    def _add_all(self, core: State, job: JobClass) -> int:
        """Add all hosts that templates allow and the job could use; return how many."""
        hosts = 0
        for offer in self._supply.offers:
            for _ in range(min(offer.allowed, most_hosts_of(job, offer.kind))):
                core.add_host(offer.kind)
                hosts += 1
        return hosts

    def _missing(self, ideal: State, job: JobClass, alternative: Alternative) -> str:
        meters = ideal.ground.meters.all
        taken: dict[int, int] = {}
        for part in alternative.parts:
            tasks = part.tasks or job.least
            for number, a_task, once in part.fixed:
                taken[number] = taken.get(number, 0) + tasks * a_task + once
            for number, _, a_host, _, _ in part.claimed:
                least = a_host * part.request.fewest_hosts(tasks)
                taken[number] = taken.get(number, 0) + least
        for number, amount in taken.items():
            if amount > ideal.left[number]:
                return (
                    f"needs {amount} of {meters[number].name}, "
                    f"at most {max(0, ideal.left[number])} are possible"
                )
        kinds = self._kinds(ideal)
        for part in alternative.parts:
            if text := _missing_on_hosts(ideal, part, part.tasks or job.least, kinds):
                return text
        return f"its parts have no place together on the {ideal.count} hosts that are possible"

    def _kinds(self, ideal: State) -> list[HostKind]:
        offered = [offer.kind for offer in self._supply.offers if offer.allowed > 0]
        return list(dict.fromkeys([*map(ideal.kind, range(ideal.count)), *offered]))

    # not now

    def why_not(self, catalog: Pass, job: JobClass) -> str:
        """Return why a job that could run some day found nothing in the catalog pass."""
        if job not in self._not:
            self._not[job] = self._why_not(catalog, job)
        return self._not[job]

    def _why_not(self, catalog: Pass, job: JobClass) -> str:
        core = catalog.core
        stopped = catalog.failed.get(job, Stopped())
        if stopped.short:
            name, amount = min(stopped.short, key=lambda short: key_of_name(short[0]))
            return f"short {amount} of {name}, not provisionable"
        if stopped.limits:
            return f"limit {min(stopped.limits, key=key_of_name)}"
        for offer in self._supply.offers:
            if offer.is_paused and self._would_fit(core, job, [offer]):
                why = f": {offer.template.paused_why}" if offer.template.paused_why else ""
                assert offer.template.paused_until is not None, "it is paused"
                return f"template {offer.template.id} is paused until {_stamp(offer.template.paused_until)}{why}"
        return self._no_room(core, job)

    def _no_room(self, core: State, job: JobClass) -> str:
        everything = [offer for offer in self._supply.offers if most_hosts_of(job, offer.kind) > 0]
        if not everything:
            return "no template fits"
        if self._would_fit(core, job, everything):
            return "no more room on any template that fits"
        for alternative in job.alternatives:
            for part in alternative.parts:
                for found in measure(core, job, part, part.tasks or job.least):
                    if found.kind is ReasonKind.LIMIT:
                        return f"limit {found.name}"
        names = [meter.name for meter in job.placed]
        return f"limit {min(names, key=key_of_name)}" if names else "no template fits"

    def _would_fit(self, core: State, job: JobClass, offers: Sequence[Offer]) -> bool:
        """Return whether the job had a place with as many hosts of these templates as it could use."""
        hosts = 0
        for offer in offers:
            for _ in range(most_hosts_of(job, offer.kind)):
                core.add_host(offer.kind)
                hosts += 1
        placed = place(core, job, job.least)
        if placed is not None:
            undo_placed(core, placed)
        for _ in range(hosts):
            core.remove_last_host()
        return placed is not None


def _missing_on_hosts(
    ideal: State, part: Part, tasks: int, kinds: Sequence[HostKind]
) -> str | None:
    """Return what no host has for a part, None if only the number of hosts is too small."""
    request = part.request
    span = request.span
    smallest = tasks if span.one_host else 1
    amounts = request.bucket(smallest, first=True)
    for name, amount in amounts:
        if amount > 0 and all(kind.totals.get(name, 0) == 0 for kind in kinds):
            return f"no template provides {name!r}"
    matching = [
        kind
        for kind in kinds
        if request.selector.matches(kind)
        and (not request.selector.same or request.selector.same_value(kind) is not None)
    ]
    if not matching:
        return "no host and no template is what it selects"
    for name, amount in amounts:
        most = max(kind.totals.get(name, 0) for kind in matching)
        if amount > most:
            return f"needs {amount} of {name!r} on one host, at most {most} are possible"
    fitting = [
        place
        for place in ideal.view(part.scope).hosts
        if all(ideal.column(name)[place] >= amount for name, amount in amounts)
    ]
    fewest = request.fewest_hosts(tasks)
    if len(fitting) < fewest:
        return f"needs {fewest} hosts, at most {len(fitting)} are possible"
    return None


def _stamp(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")
