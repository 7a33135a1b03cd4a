"""Jobs that our model would start and Slurm does not: with the difference that can be seen, so that one of the two can be mended."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from xce.adapters.schedulers.slurm.build import View
from xce.adapters.schedulers.slurm.facts import JobFact, NodeFact
from xce.adapters.schedulers.slurm.reasons import Waits, waits_for
from xce.domain.formats.session_result import Allocation, PlacedOn


@dataclass(frozen=True, slots=True)
class Difference:
    """One job.

    Attributes:
        since: since when our model would start it.
        reason: Slurm's word, and its sentence where it has one.
        hosts: where our model would start it.
        seen: what explains it, as far as the readings show; at least one sentence.
    """

    job: str
    since: datetime
    reason: str
    hosts: tuple[str, ...]
    seen: tuple[str, ...]

    def __str__(self) -> str:
        where = ", ".join(self.hosts)
        return f"job {self.job} would start on {where}; Slurm says {self.reason}: {'; '.join(self.seen)}"


class Differences:
    """What was seen from one session to the next."""

    def __init__(self, after: timedelta) -> None:
        """Report a job once it could have started for ``after``: a scheduler takes its time."""
        self._after = after
        self._since: dict[str, datetime] = {}
        self._said: dict[str, str] = {}

    def note(
        self, view: View, nodes: Iterable[NodeFact], start: Iterable[Allocation]
    ) -> tuple[Difference, ...]:
        """Note what a session over this view would start; return what is new to say."""
        now = view.snapshot.now
        starts = {one.job: one for one in start}
        self._since = {job: self._since.get(job, now) for job in starts}
        late = [starts[job] for job, since in self._since.items() if now - since >= self._after]
        self._said = {job: words for job, words in self._said.items() if job in self._since}
        found: list[Difference] = []
        for one in differences(view, nodes, late, self._since):
            if self._said.get(one.job) != one.reason:
                self._said[one.job] = one.reason
                found.append(one)
        return tuple(found)


def differences(
    view: View,
    nodes: Iterable[NodeFact],
    start: Iterable[Allocation],
    since: Mapping[str, datetime] | None = None,
) -> tuple[Difference, ...]:
    """Return the difference of each job that would start."""
    by_name = {node.name: node for node in nodes}
    found: list[Difference] = []
    for one in start:
        fact = view.facts.get(one.job)
        if fact is None:
            continue
        reason = fact.reason or "nothing yet"
        if fact.words and fact.words != fact.reason:
            reason = f"{reason} ({fact.words})"
        seen = tuple(dict.fromkeys(_seen(fact, one, by_name, view)))
        found.append(
            Difference(
                job=one.job,
                since=(since or {}).get(one.job, view.snapshot.now),
                reason=reason,
                hosts=tuple(place.name for place in one.hosts),
                seen=seen or ("no difference can be seen in what Slurm shows",),
            )
        )
    return tuple(found)


def _seen(
    fact: JobFact, start: Allocation, nodes: Mapping[str, NodeFact], view: View
) -> Iterator[str]:
    for place in start.hosts:
        node = nodes.get(place.name)
        if node is None:
            yield f"node {place.name} was not in the last reading"
        else:
            yield from _on_node(node, place)
    if waits_for(fact.reason) is Waits.LICENCES:
        free = {one.name: one for one in view.snapshot.shared}
        for wanted in start.shared:
            entry = free.get(wanted.name)
            if entry is not None:
                elsewhere = "unknown" if entry.used_elsewhere is None else entry.used_elsewhere
                yield (
                    f"of {wanted.name} Slurm has {entry.total}, {elsewhere} used by none of its jobs; "
                    f"wanted {wanted.amount}: the log may have another total than Slurm"
                )
    if fact.contiguous:
        yield "it wants neighbouring nodes, which our model does not know of"
    if fact.reason == "Priority":
        yield "jobs in front of it wait for the same nodes, and Slurm does not fill in around them now"
    if fact.reason in ("", "None"):
        yield "Slurm has not looked at it yet"
    if fact.min_cpus_node > 1 and fact.tasks > 1:
        yield f"it wants at least {fact.min_cpus_node} cpus of each node"


def _on_node(node: NodeFact, place: PlacedOn) -> Iterator[str]:
    free = node.cpus - node.cpus_used
    wanted = place.uses.get("slots", 0)
    if wanted > free:
        yield f"node {node.name} has {free} cpus free by its own count; wanted {wanted}"
    memory = place.uses.get("mem", 0)
    if memory > node.memory - node.memory_used:
        left = node.memory - node.memory_used
        yield f"node {node.name} has {left} MiB free by its own count; wanted {memory}"
    if "PLANNED" in node.states:
        yield f"node {node.name} is planned for another job"
    if node.threads > 1:
        yield f"node {node.name} has {node.threads} threads a core, and Slurm gives whole cores"
    if odd := node.states - {"IDLE", "MIXED", "ALLOCATED", "PLANNED", "DYNAMIC_NORM", "CLOUD"}:
        yield f"node {node.name} is {'+'.join(sorted(odd))}"
