"""Which jobs could never run here, and what they lack.

A job is impossible if it could not run even with every host empty and open, all room of all templates, all
counts in flight and all headroom, nothing used elsewhere, and no limits.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final

from xce.domain.cluster.hosts import key_of_name
from xce.domain.cluster.kinds import HostKind
from xce.domain.cluster.limits import Meters
from xce.domain.cluster.state import Ground, State
from xce.domain.cluster.units import written
from xce.domain.demand.supply import Supply, most_hosts_of, tasks_on_empty
from xce.domain.scheduling.classes import Alternative, JobClass, Part
from xce.domain.scheduling.compile import Compiled
from xce.domain.scheduling.placement import place, undo_placed

#: Templates named in one text before the others are only counted.
_NAMED: Final = 3

#: Hosts of templates that are added to see whether a job could run; a job that wants more is not judged.
_HOSTS_MAX: Final = 20_000


class Impossible:
    """Judges jobs that found nothing, each class once."""

    def __init__(self, compiled: Compiled, supply: Supply) -> None:
        self._compiled = compiled
        self._supply = supply
        self._known: dict[JobClass, str | None] = {}
        self._ideal: State | None = None
        self._kinds: list[tuple[HostKind, int]] | None = None
        shared = compiled.core.ground.meters.shared
        #: All that there could ever be of each shared resource.
        self._totals = {
            pool.name: pool.total + supply.all_counts.get(shared[pool.name].number, 0)
            for pool in compiled.snapshot.shared
        }

    def why(self, job: JobClass) -> str | None:
        """Return what a job lacks that could never run, None if it could."""
        if job not in self._known:
            self._known[job] = self._why(job)
        return self._known[job]

    def _why(self, job: JobClass) -> str | None:
        if any(self._is_plainly_possible(job, alternative) for alternative in job.alternatives):
            return None
        if not all(self._is_plain(job, alternative) for alternative in job.alternatives):
            possible = self._has_place(job)
            if possible is not False:
                return None
        texts = [self._lacks(job, alternative) for alternative in job.alternatives]
        return "; ".join(dict.fromkeys(texts))

    # by counting kinds of hosts

    def _is_plain(self, job: JobClass, alternative: Alternative) -> bool:
        """Return whether counting kinds of hosts decides: every host that takes a bucket does."""
        part = alternative.parts[0]
        request = part.request
        hosts = self._compiled.core.ground.hosts
        return not (
            len(alternative.parts) > 1
            or part.allocator is not None
            or request.job
            or request.shared_host
            or request.selector.same
            or hosts.exclusive_to
            or hosts.available_until
            or (request.span.ptile and (part.tasks or job.least) % request.span.ptile)
        )

    def _is_plainly_possible(self, job: JobClass, alternative: Alternative) -> bool:
        if not self._is_plain(job, alternative):
            return False
        part = alternative.parts[0]
        tasks = part.tasks or job.least
        if any(amount > self._totals[name] for name, amount in part.fixed_shared(tasks).items()):
            return False
        span = part.request.span
        if span.one_host or span.one_task_a_host or span.ptile:
            buckets = 1 if span.one_host else part.request.fewest_hosts(tasks)
            return self._hosts_for(part, part.request.largest_bucket(tasks)) >= buckets
        return self._rooms_for(part, tasks) >= tasks

    def _hosts_for(self, part: Part, bucket: int) -> int:
        """Return how many hosts there could be that take a bucket."""
        kinds = self._counted_kinds()
        return sum(count for kind, count in kinds if tasks_on_empty(part, kind, bucket) >= bucket)

    def _rooms_for(self, part: Part, tasks: int) -> int:
        """Return how many tasks all hosts that there could be would take."""
        return sum(
            count * tasks_on_empty(part, kind, tasks) for kind, count in self._counted_kinds()
        )

    def _counted_kinds(self) -> list[tuple[HostKind, int]]:
        """Return all kinds of hosts that there could be, with their number."""
        if self._kinds is None:
            compiled = self._compiled
            counts = Counter(compiled.core.ground.hosts.kinds)
            counts.update(compiled.template_kinds[host.template] for host in compiled.in_flight)
            for offer in self._supply.offers:
                counts[offer.kind] += offer.allowed
            self._kinds = [(kind, count) for kind, count in counts.items() if count > 0]
        return self._kinds

    # by placing the job

    def _has_place(self, job: JobClass) -> bool | None:
        """Return whether a job has a place in the ideal state; None: it would take too many hosts to know."""
        ideal = self._ideal_state()
        there = job.on(ideal.ground)
        kinds: list[HostKind] = []
        for offer in self._supply.offers:
            most = min(offer.allowed, most_hosts_of(there, offer.kind))
            if len(kinds) + most > _HOSTS_MAX:
                return None
            kinds += [offer.kind] * most
        for kind in kinds:
            ideal.add_host(kind)
        placed = place(ideal, there, job.least)
        if placed is not None:
            undo_placed(ideal, placed)
        for _ in kinds:
            ideal.remove_last_host()
        return placed is not None

    def _ideal_state(self) -> State:
        """Return the cluster empty and open, with all that is in flight, all counts and no limits."""
        if self._ideal is None:
            compiled = self._compiled
            hosts = compiled.core.ground.hosts.all_open()
            meters = Meters(dict[str, int | None](self._totals))
            self._ideal = State(Ground(hosts, meters, (), compiled.snapshot.now))
            for host in compiled.in_flight:
                self._ideal.add_host(compiled.template_kinds[host.template], host.expected_name)
        return self._ideal

    # what is missing

    def _lacks(self, job: JobClass, alternative: Alternative) -> str:
        taken: dict[str, int] = {}
        for part in alternative.parts:
            tasks = part.tasks or job.least
            for name, amount in part.fixed_shared(tasks).items():
                taken[name] = taken.get(name, 0) + amount
            for name, amount in part.request.shared_host:
                least = amount * part.request.fewest_hosts(tasks)
                taken[name] = taken.get(name, 0) + least
        for name, amount in taken.items():
            if amount > self._totals[name]:
                return f"needs {amount} of {name}, at most {self._totals[name]} are possible"
        for part in alternative.parts:
            if text := self._lacks_hosts(part, part.tasks or job.least):
                return text
        hosts = sum(count for _, count in self._counted_kinds())
        return f"its parts have no place together on the {hosts} hosts that are possible"

    def _without_room(self, would_do: Callable[[HostKind], bool]) -> str:
        """Return in brackets the templates of which no more are allowed and that would do; nothing if none would."""
        ids = [
            offer.template.id
            for offer in self._supply.offers
            if offer.allowed == 0 and would_do(offer.kind)
        ]
        if not ids:
            return ""
        more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
        named = ", ".join(sorted(ids, key=key_of_name)[:_NAMED])
        return f" (no more are allowed of {named}{more})"

    def _lacks_hosts(self, part: Part, tasks: int) -> str | None:
        """Return what no host has for a part, or how many hosts or tasks it is too large by."""
        request = part.request
        selector, span = request.selector, request.span
        amounts = request.bucket(tasks if span.one_host else 1, first=True)
        kinds = self._counted_kinds()
        for name, amount in amounts:
            if amount > 0 and all(kind.totals.get(name, 0) == 0 for kind, _ in kinds):
                full = self._without_room(partial(_provides, name))
                return f"no template{' with room' if full else ''} provides {name!r}{full}"

        def is_selected(kind: HostKind) -> bool:
            return selector.matches(kind) and bool(not selector.same or selector.same_value(kind))

        matching = [kind for kind, _ in kinds if is_selected(kind)]
        if not matching:
            full = self._without_room(is_selected)
            return f"no host and no template{' with room' if full else ''} is what it selects{full}"
        for name, amount in amounts:
            most = max(kind.totals.get(name, 0) for kind in matching)
            if amount > most:
                return f"needs {written(name, amount)} of {name!r} on one host, at most {written(name, most)} are possible"
        fewest = request.fewest_hosts(tasks)
        fitting = self._hosts_for(part, request.largest_bucket(tasks) if span.ptile else 1)
        if fitting < fewest:
            return f"needs {fewest} hosts, at most {fitting} are possible"
        rooms = self._rooms_for(part, tasks)
        if rooms < tasks:
            return f"has {tasks} tasks, at most {rooms} have room"
        return None


def _provides(name: str, kind: HostKind) -> bool:
    return kind.totals.get(name, 0) > 0
